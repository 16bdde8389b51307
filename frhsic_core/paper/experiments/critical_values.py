"""The independence tests that could choose λ, side by side: one statistic, n·HSIC_b, and four critical values.

The paper's rule (``sec:adaptive_lambda``) needs the law of the statistic under independence. The *released* code fits a
gamma law to two moments that are not those of the statistic; *gamma* has the moments of Gretton et al. (2007);
*spectral* is :func:`frhsic_core.hsic_test`'s calibrated fit; *permutation* compares with shuffled attributes.
"""

from __future__ import annotations

import torch
from scipy.special import gammainccinv
from torch import Tensor

from frhsic_core.joint import hsic_test
from frhsic_core.joint.contraction import center
from frhsic_core.kernels import Gaussian, median_distance

TESTS = ("released", "gamma", "spectral", "permutation")
ALPHA = 0.05
# The released code takes its bandwidths from the first 500 of the rows it tests.
BANDWIDTH_ROWS = 500
_NUMBERS = {"cuda": 400_000_000, "cpu": 20_000_000}  # entries of the Gram matrices held at once


def released_moments(k: Tensor, l: Tensor) -> tuple[Tensor, Tensor]:
    r"""Return null mean and variance as the released code has them, from uncentred Gram matrices ``(..., n, n)``.

    With sums over the off-diagonal entries,

    .. math:: m = \frac{\sum K \sum L}{n(n-1)(n-2)(n-3)},\qquad v = \frac{2\sum K^2 \sum L^2}{n(n-1)\cdots(n-5)},

    about μ_K μ_L and 2 E[k²] E[l²]/n². The mean of n·HSIC_b is (1 − μ_K)(1 − μ_L)(1 − 1/n), of which m is one term of
    four; v lacks the centring, and is on the scale of HSIC_b where m is on that of n·HSIC_b. O(n²).
    """
    n = k.shape[-1]

    def off_diagonal(gram: Tensor) -> Tensor:
        return gram.sum((-2, -1)) - gram.diagonal(dim1=-2, dim2=-1).sum(-1)

    four = float(n * (n - 1) * (n - 2) * (n - 3))
    mean = off_diagonal(k) * off_diagonal(l) / four
    variance = 2.0 * off_diagonal(k.square()) * off_diagonal(l.square()) / (four * (n - 4) * (n - 5))
    return mean, variance


def released_threshold(k: Tensor, l: Tensor) -> Tensor:
    """Return the upper α quantile of the gamma law with :func:`released_moments`, compared with n·HSIC_b."""
    mean, variance = released_moments(k, l)
    shape = (mean.square() / variance).cpu().numpy()
    quantile = torch.as_tensor(gammainccinv(shape, ALPHA), device=mean.device)
    return variance / mean * quantile


def permuted_statistics(k: Tensor, l: Tensor, *, permutations: int, generator: torch.Generator) -> Tensor:
    """Return n·HSIC_b with the rows of S shuffled, ``(..., permutations)``; all batch elements share the permutations.

    ``k`` and ``l`` are centred. Each element's test is exact; sharing only makes the tests of a stack dependent.
    """
    n = k.shape[-1]
    drawn = []
    for _ in range(permutations):
        order = torch.randperm(n, generator=generator).to(k.device)
        drawn.append((k * l.index_select(-2, order).index_select(-1, order)).sum((-2, -1)) / n)
    return torch.stack(drawn, -1)


@torch.no_grad()
def thresholds(z: Tensor, s: Tensor, *, permutations: int = 0) -> dict[str, Tensor]:
    """Return statistic and critical values of every test on ``z (..., n, d)`` and ``s (..., n)``; float64 on the CPU.

    ``statistic`` (n·HSIC_b), ``threshold_released``, ``threshold_gamma``, ``threshold_spectral``; with ``permutations``
    also ``threshold_permutation`` and the share of shuffled statistics above two of the others, ``level_released`` and
    ``level_gamma``: the level each of them has on this sample. A test rejects where the statistic exceeds its critical
    value. The kernels are Gaussian at the medians over the first 500 rows in all of them. A constant Z has statistic
    zero and is never rejected. O(n³) for each element, O(n²) for each permutation.
    """
    z = z.double()
    s = s.double().unsqueeze(-1)
    size = max(1, _NUMBERS["cuda" if z.device.type == "cuda" else "cpu"] // z.shape[-2] ** 2)
    parts = [
        _thresholds(zb, sb, permutations=permutations) for zb, sb in zip(z.split(size), s.split(size), strict=True)
    ]
    return {name: torch.cat([part[name] for part in parts]) for name in parts[0]}


def _thresholds(z: Tensor, s: Tensor, *, permutations: int) -> dict[str, Tensor]:
    kernel_z, kernel_s = (Gaussian(median_distance(v[..., :BANDWIDTH_ROWS, :])) for v in (z, s))
    spectral, gamma = (
        hsic_test(z, s, method=method, kernel_z=kernel_z, kernel_s=kernel_s, alpha=ALPHA)
        for method in ("spectral", "gamma")
    )
    k = kernel_z(z)
    l = kernel_s(s)
    found = {
        "statistic": spectral.statistic,
        "threshold_released": released_threshold(k, l),
        "threshold_gamma": gamma.threshold,
        "threshold_spectral": spectral.threshold,
    }
    if permutations:
        generator = torch.Generator().manual_seed(0)
        null = permuted_statistics(center(k), center(l), permutations=permutations, generator=generator)
        # p ≤ α exactly when the statistic exceeds the m-th largest shuffled one, m = α(B + 1).
        found["threshold_permutation"] = null.topk(int(ALPHA * (permutations + 1) + 1e-9), -1).values[..., -1]
        for name in ("released", "gamma"):
            found[f"level_{name}"] = (null > found[f"threshold_{name}"].unsqueeze(-1)).double().mean(-1)
    return {name: value.double().cpu() for name, value in found.items()}
