"""The bound on HSIC: what one row, or one pair of rows, can do to a covariance operator."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from torch import Tensor

from frhsic_core._arrays import ArrayLike, as_pair, same_kind
from frhsic_core._choices import one_of
from frhsic_core.bounds.result import FIXED, INDEPENDENT, DependenceBound, check_delta
from frhsic_core.joint import hsic
from frhsic_core.joint._factors import thin_pair
from frhsic_core.kernels import (
    Categorical,
    Gaussian,
    InverseMultiquadric,
    Kernel,
    Laplacian,
    MultiScale,
    Product,
)

NON_NEGATIVE = (Gaussian, MultiScale, Laplacian, InverseMultiquadric, Categorical)


@same_kind
def hsic_bound(
    z: ArrayLike,
    s: ArrayLike,
    *,
    kernel_z: Kernel,
    kernel_s: Kernel,
    delta: float = 0.05,
    candidates: int = 1,
    method: str = "difference",
) -> DependenceBound:
    r"""Return an upper bound on HSIC that holds with probability 1 − ``delta``, for kernels that are fixed in advance.

    .. math:: \sqrt{\mathrm{HSIC}} \le \tfrac{n}{n-1}\sqrt{\mathrm{HSIC}_n} + \sqrt{3\log(K/\delta)/n}

    There is no bias term, and near zero the bound falls like 1/n. The covariance of g(Z) and h(S)
    is then at most ‖g‖·‖h‖·√HSIC in absolute value, for all functions g and h of the two RKHS at once. Time and
    memory are those of :func:`frhsic_core.hsic`.

    With ``method="variance"`` the last term is :math:`\tfrac43 q+\sqrt{2\hat vq+q^2}`, where q = log(2K/δ)/⌊n/2⌋ and
    :math:`\hat v` is the mean of (1 − k)(1 − l) over pairs of rows. It is smaller from some hundreds of rows on if most
    pairs are similar in Z or in S.

    Parameters
    ----------
    z, s : array_like
        ``(n, d)`` and ``(n, p)`` or ``(n,)``. The encoder of Z did not see these rows.
    kernel_z, kernel_s : Kernel
        Non-negative kernels with k(x, x) ≤ 1, with bandwidths that do not come from these rows.
    delta : float
        Largest probability that the bound is too small.
    candidates : int
        K, the number of encoders, fixed in advance, from which one was chosen with the help of these rows.
    method : {"difference", "variance"}
        Which bound. Choose it before you see the rows.

    Returns
    -------
    DependenceBound
        The bound on HSIC and what it assumes.

    Examples
    --------
    >>> from frhsic_core.laws import GaussianPair
    >>> law = GaussianPair(0.0)
    >>> z, s = law.sample(10_000, random_state=0)
    >>> found = hsic_bound(z, s, kernel_z=Gaussian(1.0), kernel_s=Gaussian(1.0))
    >>> bool(law.hsic(Gaussian(1.0), Gaussian(1.0)) <= found.bound < 0.002)
    True
    """
    check_delta(delta, candidates)
    z, s = as_pair(z, s, min_rows=2)
    for name, kernel in (("kernel_z", kernel_z), ("kernel_s", kernel_s)):
        _check_kernel(name, kernel)
    one_of("method", method, ("difference", "variance"))
    if z.dim() != 2:
        raise ValueError(
            f"z has shape {tuple(z.shape)}: a bound is one of a single sample, so pass (n, d)."
        )
    n = len(z)
    estimate = float(hsic(z, s, kernel_z=kernel_z, kernel_s=kernel_s))
    if method == "variance":
        added = float(pair_slack(pair_variance(z, s, kernel_z, kernel_s), n, delta / candidates))
    else:
        added = math.sqrt(3.0 * math.log(candidates / delta) / n)
    slack = math.sqrt(estimate) / (n - 1) + added
    kernels = "The kernels, with their bandwidths, were fixed before these rows were seen."
    encoder = FIXED.format(
        what="representation was" if candidates == 1 else "candidate representations were"
    )
    # k and l lie in [0, 1], so HSIC, the squared norm of a covariance operator, is at most 1/4 (two equal groups).
    bound = min((math.sqrt(estimate) + slack) ** 2, 0.25)
    assumptions = (INDEPENDENT, encoder, kernels)
    return DependenceBound(
        bound, estimate, "HSIC", delta, n, candidates, method, assumptions, slack, estimate
    )


def pair_variance(z: Tensor, s: Tensor, kernel_z: Kernel, kernel_s: Kernel) -> float:
    r"""Return the mean of (1 − k)(1 − l) over all pairs of rows, in the time and memory of :func:`frhsic_core.hsic`.

    With centered features of unit-diagonal kernels, 1 − k is half the squared distance of two features, and

    .. math:: \tfrac14\sum_{ij}\|\varphi_i-\varphi_j\|^2\|\psi_i-\psi_j\|^2 = \tfrac n2\sum_i\|\varphi_i\|^2\|\psi_i\|^2
        + \tfrac12\sum_i\|\varphi_i\|^2\sum_i\|\psi_i\|^2 + \Big\|\sum_i\varphi_i\otimes\psi_i\Big\|^2 .
    """
    n, total = len(z), 0.0
    pair = thin_pair(z, s, kernel_z, kernel_s)
    if pair is not None:
        both, d, e, cross = pair.over_rows(_squares)
        total = float(0.5 * (n * both + d * e) + cross.square().sum())
        return total / (n * (n - 1))
    size = max(1, 2**22 // n)
    for start in range(0, n, size):
        rows = slice(start, start + size)
        total += float(((1.0 - kernel_z(z[rows], z)) * (1.0 - kernel_s(s[rows], s))).sum())
    return total / (n * (n - 1))


def _squares(phi: Tensor, psi: Tensor, _: Tensor) -> tuple[Tensor, ...]:
    d, e = phi.square().sum(-1), psi.square().sum(-1)
    return d @ e, d.sum(), e.sum(), phi.mT @ psi


def pair_slack(variance: ArrayLike, n: int, delta: float) -> Any:
    r"""Return what the variance bound adds to n/(n − 1)·√HSIC_n, from the mean of (1 − k)(1 − l) over pairs of n rows.

    Examples
    --------
    >>> round(float(pair_slack(0.18, 10_000, 0.05)), 4)
    0.0173
    """
    q = math.log(2.0 / delta) / (n // 2)
    return 4.0 * q / 3.0 + np.sqrt(2.0 * np.asarray(variance) * q + q * q)


def _check_kernel(name: str, kernel: Kernel) -> None:
    parts = kernel.factors if isinstance(kernel, Product) else (kernel,)
    if not all(isinstance(part, NON_NEGATIVE) for part in parts):
        raise TypeError(
            f"{name} is {kernel!r}: the bound needs a kernel object with values in [0, 1] and a bandwidth that was "
            "fixed before these rows were seen, for example Gaussian(1.0)."
        )
