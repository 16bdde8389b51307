"""Section 5 and appendix G: the bound B_n of Theorem 5.1, what breaks it, and the bounds that the book proves instead.

    B_n(H, δ) = 8√2·ν_Zν_S·√(log(2/δ)/n) + 4ν_Zν_S/n + 48√π·max{ν_Zℓ_S, ν_Sℓ_Z}·G_n(H).

HSIC and its estimate both lie in [0, ν_Zν_S/4] for kernels with values in [0, ν], so a bound above it says nothing.

**Coverage.** On inputs with finitely many values both HSICs are linear in the Gram matrix of the encoded values, so

    HSIC_n(h) − HSIC(h) = Σ_ij k(h(x_i), h(x_j))·M_ij,    M = A(counts/n) − A(probabilities),

and M does not depend on h. Since 0 ≤ k ≤ 1 and ΣM_ij = 0, ½Σ|M_ij| bounds the supremum over every class of encoders.
The bound is far from tight, so each certificate also has the fraction of B_n at which coverage would fall below 1 − δ.

**One row.** The proofs rest on how far one row moves the covariance. A search looks for a larger change than √6/n.

**All samples.** A sample of a law with few values is a table of counts, and all tables can be enumerated: the mean of
n/(n−1)·√HSIC_n and the probability that the bound for √HSIC fails are sums, not simulations.

The linear-encoder bound after Corollary 5.3 is about H = {x ↦ Wx : ‖W‖_F ≤ R}. The supremum inside the complexity is a
maximum of a linear function over a ball, so Ĝ_n = R·E_ξ‖(1/n)Σ ξ_i x_iᵀ‖_F: an equality. The squared norm is
Σ_j a_j χ²_{d_Z} with a_j the eigenvalues of ΣX_iX_iᵀ, and the mean of its root is one smooth integral. The paper prints
the right side without its expectation over ξ.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import torch
from scipy import stats
from torch import Tensor

from frhsic_core._arrays import ArrayLike, RandomState, as_generator
from frhsic_core.bounds.hsic import pair_slack
from frhsic_core.joint import hsic
from frhsic_core.joint.contraction import contraction_weights
from frhsic_core.kernels import Gaussian, Kernel, Laplacian
from frhsic_core.paper.statements import Certificate, check, inequality

DELTA = 0.05
UNIT = Gaussian(1.0)
TRIVIAL = 0.25  # the largest |HSIC_n − HSIC| that there can be for kernels with values in [0, 1]


def uniform_bound(
    n: int,
    *,
    complexity: float,
    delta: float = DELTA,
    scale: float = 1.0,
    homogeneous: bool = False,
) -> float:
    """Return B_n(H, δ) of Theorem 5.1 (``eq:Bn_explicit``) for kernels c·k with ν = ℓ = 1 for k; O(1).

    Parameters
    ----------
    n : int
        Sample size.
    complexity : float
        G_n(H), the Gaussian complexity of the encoder class.
    delta : float
        Allowed probability of failure.
    scale : float
        c, the size of both kernels. Then ν = c and ℓ = √c.
    homogeneous : bool
        The corrected last term, max{ν_Z√ν_S·ℓ_S, ν_S√ν_Z·ℓ_Z}: it scales like HSIC under k → c·k, which the printed one
        does not. The two agree for kernels bounded by one.

    Examples
    --------
    >>> round(uniform_bound(10_000, complexity=0.0), 4)
    0.2177
    """
    deviation = 8.0 * math.sqrt(2.0) * math.sqrt(math.log(2.0 / delta) / n) + 4.0 / n
    slope = scale**2 if homogeneous else scale**1.5
    return scale**2 * deviation + 48.0 * math.sqrt(math.pi) * slope * complexity


def proved_bound(n: int, *, complexity: float, delta: float = DELTA) -> float:
    """Return the bound that the book proves for kernels with values in [0, 1] and ℓ_Z = 1; O(1).

    √3·√(log(2/δ)/n) + 2/n + 20√π·G_n(H). The chapter on uniform concentration has the proof. For fewer than twelve rows
    the first term alone exceeds the trivial bound. The attribute is not encoded, so that no Lipschitz constant of its
    kernel is needed.

    Examples
    --------
    >>> round(proved_bound(10_000, complexity=0.0), 4)
    0.0335
    """
    return (
        math.sqrt(3.0 * math.log(2.0 / delta) / n)
        + 2.0 / n
        + 20.0 * math.sqrt(math.pi) * complexity
    )


# What breaks the bound -----------------------------------------------------------------------------------------------


def broken_by_kernels(
    claim: str, *, learned: bool = False, factor: float = 1e6, times: int = 1
) -> list[Certificate]:
    """Certify a deviation against ``times`` the bound for kernels c·k, c = ``factor``: as printed, and corrected.

    X is continuous, S a fair coin independent of X with values 0 and 3, H all functions into {0, 3}. For every h the
    population HSIC is zero. The encoder that copies S_i at each X_i and is zero elsewhere is in H, and its empirical
    HSIC depends on the number of ones alone: c²·(π₀π₁)²·(2 − 2a)(2 − 2b), a = b = exp(−9/2). G_n(H) = 3/√(2π).

    A ``learned`` encoder breaks the consequences with the roles exchanged. Let X = (U, S) with U continuous, and let ĥ
    be zero at the n sampled points and S elsewhere. Then HSIC_n(ĥ) = 0 and HSIC(ĥ) is that of S with itself,
    c²(1 − a)²/4.
    """
    n, complexity = 1_000_000, 3.0 / math.sqrt(2.0 * math.pi)
    # The number of ones is binomial, and smaller or larger than this with probability 1e-6.
    ones = 0.5 if learned else float(stats.binom.ppf(5e-7, n, 0.5)) / n
    # The encoder copies S, so that Z = S: HSIC of S with itself, from its two values and shares.
    shares = [1.0 - ones, ones]
    copied = hsic([0.0, 3.0], [0.0, 3.0], sample_weight=shares, kernel_z=UNIT, kernel_s=UNIT)
    deviation = factor**2 * float(copied)
    names = (
        "the printed bound for kernels of any size",
        "the bound with a last term that scales like HSIC",
    )
    return [
        inequality(
            f"{name}: {claim}", middle=deviation,
            upper=times * uniform_bound(n, complexity=complexity, scale=factor, homogeneous=corrected),
            evidence="exact", corrected=corrected, assumptions=("kernels bounded by c",),
            details={"n": n, "c": factor, "probability": 1.0 - 1e-6, "G_n": complexity})
        for name, corrected in zip(names, (False, True), strict=True)
    ]  # fmt: skip


@check("Theorem 5.1", "Proposition G.2")
def broken_by_scaling() -> list[Certificate]:
    """Break Theorem 5.1, and Proposition G.2, which is the same, with kernels c·k, and check the corrected bound."""
    return broken_by_kernels("an encoder class and kernels c times Gaussian")


@check("Corollary 5.2", "Corollary G.3")
def learned_by_scaling() -> list[Certificate]:
    """Break Corollary 5.2, and Corollary G.3, which is the same, with kernels c·k, and check the corrected bound."""
    claim = "population HSIC is at most empirical HSIC plus the bound, an encoder that is zero on the sample"
    return broken_by_kernels(claim, learned=True)


@check("Remark G.4")
def bridge_by_scaling() -> list[Certificate]:
    """Break Remark G.4 with kernels c·k, and check the corrected bound.

    The test sample has new points, so that Z = S there. For a binary S the centered Gram matrix has one positive
    eigenvalue. The head f = k(3, ·) − k(0, ·) attains Cauchy-Schwarz, hence its projected gap times λ̂₁/‖f‖² equals the
    test HSIC, c²(π₀π₁)²(2 − 2a)².
    """
    claim = "the projected test gap is at most the spectral factor times training HSIC plus twice the bound"
    return broken_by_kernels(claim, factor=1e7, times=2)


def steepness(kernel: Kernel, distance: float) -> float:
    """Return ‖φ(x) − φ(y)‖/|x − y| for two points at a distance, from the kernel's values.

    The squared length is k(x, x) + k(y, y) − 2k(x, y). Below a distance of about 1e-10 for a
    Laplacian kernel, and 1e-5 for a Gaussian one, this difference has few digits left.

    Examples
    --------
    >>> round(steepness(Gaussian(1.0), 1e-3), 5)
    1.0
    """
    gram = kernel(torch.tensor([[0.0], [distance]], dtype=torch.float64))
    squared = gram[0, 0] + gram[1, 1] - 2.0 * gram[0, 1]
    return math.sqrt(squared.item()) / distance


@check("Proposition G.2")
def laplacian_feature_map() -> list[Certificate]:
    """Check the Lipschitz assumption for a Laplacian kernel: its feature map is too steep."""
    near, far = 1e-8, 1e-2
    steep = steepness(Laplacian(1.0), near)
    flat = steepness(Laplacian(1.0), far)
    exponent = 1.0 + math.log(steep / flat) / math.log(near / far)
    return [
        inequality(
            "text: the kernels have Lipschitz feature maps; Laplacian kernel of the ablation, steepness near and far",
            middle=steep, upper=flat, evidence="exact", details={"distances": [near, far]}),
        inequality("the feature map of a Laplacian kernel is Hölder continuous with exponent 1/2",
                   middle=abs(exponent - 0.5), upper=1e-3, evidence="exact", corrected=True,
                   details={"exponent": exponent}),
    ]  # fmt: skip


# Coverage for all encoders at once -----------------------------------------------------------------------------------

POINTS = 50


def drawn_suprema(n: int, draws: int, *, random_state: RandomState) -> Tensor:
    """Draw samples, and return for each a number that |HSIC_n(h) − HSIC(h)| exceeds for no encoder h whatsoever.

    X takes 50 values with equal probability, S = −1 … 1 rises with X, and k_S is Gaussian of bandwidth 1/2. The number
    is ½Σ|M_ij| for kernels on Z with values in [0, 1]; the time does not depend on n.

    Examples
    --------
    >>> drawn_suprema(1000, 3, random_state=0).shape
    torch.Size([3])
    """
    seed = int(torch.randint(2**62, (), generator=as_generator(random_state)))
    counts = np.random.default_rng(seed).multinomial(n, np.full(POINTS, 1.0 / POINTS), size=draws)
    gram = Gaussian(0.5)(torch.linspace(-1.0, 1.0, POINTS, dtype=torch.float64).unsqueeze(-1))
    population = contraction_weights(
        gram, row_weights=torch.full((POINTS,), 1.0 / POINTS, dtype=torch.float64)
    )
    empirical = contraction_weights(gram, row_weights=torch.as_tensor(counts / n))
    return 0.5 * (empirical - population).abs().sum((-2, -1))


def coverage(
    claim: str, gaps: Tensor, bound: float, *, delta: float = DELTA, **details: Any
) -> Certificate:
    """Certify that ``gaps ≤ bound`` with probability at least 1 − delta, by the lower end of an exact 95 % interval."""
    if bound >= TRIVIAL:
        raise ValueError(
            f"The bound is {bound:.3g}: at {TRIVIAL} or more, coverage cannot fail. Use more rows."
        )
    hits = int((gaps <= bound).sum())
    low, high = stats.binomtest(hits, len(gaps)).proportion_ci()
    quantile = torch.quantile(gaps, 1.0 - delta).item()
    return inequality(
        claim, middle=1.0 - delta, upper=low, evidence="statistical",
        assumptions=("bounded X", "independent rows", "fixed unit kernels"),
        details={"coverage": hits / len(gaps), "interval": [low, high], "draws": len(gaps), "bound": bound,
                 "fraction of the bound at which coverage breaks": quantile / bound, **details})  # fmt: skip


@check("Theorem 5.1", "Proposition G.2", "Corollary 5.2", "Corollary G.3")
def any_encoders(*, quick: bool) -> list[Certificate]:
    """Check the bound for every encoder at once, and so for a learned one, on inputs with finitely many values."""
    n = 20_000
    gaps = drawn_suprema(n, 100 if quick else 400, random_state=54)
    # G_n ≥ 0 for every class that holds a fixed encoder, so B_n is at least its first two terms.
    claim = "coverage, any encoders at all, learned or not, on finitely many inputs, unit kernels, complexity left out"
    return [coverage(claim, gaps, uniform_bound(n, complexity=0.0), n=n)]


@check("Remark G.4")
def train_to_test(*, quick: bool) -> list[Certificate]:
    """Check Remark G.4 for every encoder at once; Theorem 4.7 then bounds the gap on the test sample."""
    n, draws = 100_000, 100 if quick else 400
    train, test = (drawn_suprema(n, draws, random_state=seed) for seed in (55, 56))
    claim = "test HSIC is at most training HSIC plus twice the bound, any encoders at all"
    return [
        coverage(
            claim, train + test, 2.0 * uniform_bound(n, complexity=0.0), delta=2.0 * DELTA, n=n
        )
    ]


# One row -------------------------------------------------------------------------------------------------------------


def with_one_row_replaced(phi: Tensor, psi: Tensor) -> tuple[Tensor, Tensor]:
    """Return n·Ĉ_u of the first n of n + 1 rows, and after the last row has taken the place of the first.

    Ĉ_u = n/(n − 1)·Ĉ is the unbiased covariance of ``phi`` and ``psi``, ``(..., n + 1, d)`` and ``(..., n + 1, e)``.
    """
    n = phi.shape[-2] - 1

    def covariance(kept: slice) -> Tensor:
        a, b = (
            part[..., kept, :] - part[..., kept, :].mean(-2, keepdim=True) for part in (phi, psi)
        )
        return a.mT @ b * (n / (n - 1))

    return covariance(slice(0, n)), covariance(slice(1, n + 1))


SAMPLE_SIZES = (2, 3, 5, 10, 40)


def random_features(count: int, n: int, generator: torch.Generator) -> Tensor:
    """Draw non-negative unit features of n rows in four dimensions; half of the samples are one-hot.

    In most samples all rows but the first and the last agree, which makes the change of one row largest.
    """
    features = torch.randn(count, n, 4, generator=generator, dtype=torch.float64).abs()
    one_hot = torch.nn.functional.one_hot(features.argmax(-1), 4)
    choice = torch.rand(count, 1, 1, 2, generator=generator)
    features = torch.where(
        choice[..., 0] < 0.5, one_hot, torch.nn.functional.normalize(features, dim=-1)
    )
    features[:, 1:-1] = torch.where(choice[..., 1] < 0.8, features[:, 1:2], features[:, 1:-1])
    return features


@check("Theorem 5.1")
def bounded_difference(*, quick: bool) -> list[Certificate]:
    """Search for a row that moves the covariance by more than the proof allows."""
    generator, count = torch.Generator().manual_seed(58), 500 if quick else 4000
    largest = 0.0
    for n in SAMPLE_SIZES:
        phi, psi = (random_features(count, n + 1, generator) for _ in range(2))
        before, after = with_one_row_replaced(phi, psi)
        largest = max(largest, torch.linalg.matrix_norm(before - after).max().item())
    return [
        inequality("step of the proof: one row moves n times the unbiased covariance by at most root 6, kernels in "
                   "[0, 1]; the search reaches 99 % of it", lower=0.99 * math.sqrt(6.0), middle=largest,
                   upper=math.sqrt(6.0), evidence="deterministic", ours=True,
                   details={"instances": len(SAMPLE_SIZES) * count})
    ]  # fmt: skip


# All samples of a law with few values --------------------------------------------------------------------------------


def all_tables(n: int, cells: int) -> np.ndarray:
    """Return every table of ``cells`` counts that sum to n, ``(tables, cells)``.

    Examples
    --------
    >>> len(all_tables(3, 4))
    20
    """
    if cells == 1:
        return np.array([[n]])
    parts = [all_tables(n - first, cells - 1) for first in range(n + 1)]
    first = np.repeat(np.arange(n + 1), [len(part) for part in parts])
    return np.column_stack([first, np.concatenate(parts)])


def root_hsic(table: np.ndarray) -> np.ndarray:
    """Return √HSIC = 2|ad − bc| of 2 × 2 tables of shares, for kernels 1[x = y]."""
    a, b, c, d = np.moveaxis(table, -1, 0)
    return 2.0 * np.abs(a * d - b * c)


# Shares of Z = 0 and 1 for S = 0, then for S = 1: independent, dependent, and Z = S a fair coin.
TABLES = (
    (0.25, 0.25, 0.25, 0.25),
    (0.06, 0.14, 0.24, 0.56),
    (0.3, 0.2, 0.1, 0.4),
    (0.5, 0.0, 0.0, 0.5),
)


DELTAS = (0.05, 0.2, 0.5)
Slack = Callable[[float], float | np.ndarray]


def bound_certificates(
    name: str,
    estimate: Callable[[np.ndarray], np.ndarray],
    laws: Sequence[Sequence[float]],
    slacks: Mapping[str, Slack],
    *,
    n: int,
) -> list[Certificate]:
    """Certify bounds n/(n − 1)·estimate + slack(δ) in all samples of n rows of each law; means and chances are exact.

    The estimate, a function of tables of shares, is on average at least the truth, and each bound fails with
    probability at most δ. A slack has one value, or one for every table of ``all_tables``.
    """
    counts = all_tables(n, len(laws[0]))
    values = n / (n - 1) * estimate(counts / n)
    cases = [
        (float(estimate(np.asarray(law))), stats.multinomial(n, law).pmf(counts)) for law in laws
    ]
    means = [(truth, float(chances @ values)) for truth, chances in cases]
    truth, mean = min(means, key=lambda pair: pair[1] - pair[0])
    options: Any = {
        "evidence": "exact",
        "ours": True,
        "details": {"laws": len(laws), "deltas": DELTAS, "n": n},
    }
    found = [
        inequality(f"{name}: n/(n-1) times the estimate is on average at least the truth, all samples enumerated",
                   middle=truth, upper=mean, **options)
    ]  # fmt: skip
    for words, slack in slacks.items():
        failures = {
            delta: max(
                float(chances @ (values + slack(delta) < truth - 1e-12)) for truth, chances in cases
            )
            for delta in DELTAS
        }
        worst = max(DELTAS, key=lambda delta: failures[delta] / delta)
        claim = f"{name}{words}: the truth exceeds the bound with probability at most delta, all samples enumerated"
        found.append(inequality(claim, middle=failures[worst], upper=worst, **options))
    return found


@check("Corollary 5.2")
def root_certificate(*, quick: bool) -> list[Certificate]:
    """Check the bounds for the root of HSIC, without and with the variance, with all samples of 2 × 2 laws.

    For a fair coin Z = S the mean of the estimate is the truth, so that the factor n/(n − 1) cannot be smaller.
    """
    n = 40 if quick else 100
    a, b, c, d = all_tables(n, 4).T
    both_differ = (
        2.0 * (a * d + b * c) / (n * (n - 1))
    )  # the mean of (1 − k)(1 − l) over pairs, k = l = 1[x = y]
    slacks: dict[str, Slack] = {
        "": lambda delta: math.sqrt(3.0 * math.log(1.0 / delta) / n),
        " with the variance": lambda delta: pair_slack(both_differ, n, delta),
    }
    return bound_certificates("the root of HSIC", root_hsic, TABLES, slacks, n=n)


# Linear encoders -----------------------------------------------------------------------------------------------------

# E√Q = π^(−1/2) ∫ (1 − E exp(−e^{2y}Q)) e^{−y} dy. The integrand decays like e^{−|y|} and is analytic for |Im y| < π/4,
# so the trapezoidal rule with step h is right to about exp(−π²/2h).
STEP, REACH = 0.1, 40.0


def linear_complexity(x: ArrayLike, *, radius: float, dimension: int) -> Tensor:
    """Return the Gaussian complexity Ĝ_n of {x ↦ Wx : ‖W‖_F ≤ R, W of ``dimension`` rows}, to about 14 digits.

    O(n·d² + d³) time for inputs in R^d; the number of rows of W costs nothing.

    Parameters
    ----------
    x : array_like
        Inputs, ``(..., n, d)``.
    radius : float
        R.
    dimension : int
        d_Z, the dimension of the representation.

    Returns
    -------
    Tensor
        Batch shape.

    Examples
    --------
    >>> round(linear_complexity([[1.0]], radius=1.0, dimension=1).item() ** 2 * math.pi, 10)  # E|ξ| = √(2/π)
    2.0
    """
    x = torch.as_tensor(x, dtype=torch.float64)
    values = torch.linalg.svdvals(x).square()
    total = values.sum(-1, keepdim=True).clamp_min(torch.finfo(x.dtype).tiny)
    y = torch.arange(-REACH, REACH + STEP / 2, STEP, dtype=x.dtype, device=x.device)
    logs = torch.log1p(2.0 * torch.exp(2.0 * y) * (values / total).unsqueeze(-1)).sum(-2)
    mean_root = (-torch.expm1(-0.5 * dimension * logs) * torch.exp(-y)).sum(-1) * (
        STEP / math.sqrt(math.pi)
    )
    return radius * total.squeeze(-1).sqrt() * mean_root / x.shape[-2]


@check("Linear-encoder bound")
def as_printed(*, quick: bool) -> list[Certificate]:
    """Compare Ĝ_n with R·‖(1/n)Σξ_i x_iᵀ‖_F for single draws of ξ, and with its mean."""
    n, d, dimension, radius = 50, 3, 2, 1.5
    draws = 4_000 if quick else 40_000
    generator = torch.Generator().manual_seed(11)
    x = torch.rand(n, d, generator=generator, dtype=torch.float64)
    noise = torch.randn(draws, dimension, n, generator=generator, dtype=torch.float64)
    norms = radius * torch.linalg.matrix_norm(noise @ x / n)
    exact = linear_complexity(x, radius=radius, dimension=dimension).item()
    below = int((norms < exact).sum())
    low, high = stats.binomtest(below, draws).proportion_ci(0.999)
    radius_of_mean = 4.0 * norms.std().item() / math.sqrt(draws)
    return [
        inequality(
            "text: the complexity is at most the norm without its expectation; share of draws that break it is zero",
            middle=low, upper=0.0, evidence="statistical",
            details={"share": below / draws, "interval": [low, high], "draws": draws}),
        inequality("the complexity equals the expectation of the norm (exact value against the mean of draws)",
                   middle=abs(norms.mean().item() - exact), upper=radius_of_mean, evidence="statistical",
                   corrected=True, details={"exact": exact, "mean of draws": norms.mean().item(), "draws": draws}),
    ]  # fmt: skip


def random_inputs(count: int, *, random_state: RandomState) -> list[tuple[Tensor, int]]:
    """Draw batches of bounded inputs with a dimension d_Z each: on a sphere, in a ball, one direction, mostly zero."""
    generator, batches = as_generator(random_state), []
    settings = [
        (n, d, dimension) for n in (1, 2, 10, 40) for d in (1, 3, 8) for dimension in (1, 2, 50)
    ]
    for index, (n, d, dimension) in enumerate(settings):
        share = count // len(settings) + (index < count % len(settings))
        x = torch.randn(share, n, d, generator=generator, dtype=torch.float64)
        sphere = x / torch.linalg.vector_norm(x, dim=-1, keepdim=True)
        radii = torch.rand(share, n, 1, generator=generator, dtype=torch.float64)
        rare = sphere * (radii < 0.1) + 1e-3 * sphere
        options = torch.stack([sphere, sphere * radii, sphere[:, :1].expand_as(sphere), rare])
        kind = torch.randint(4, (share,), generator=generator)
        batches.append((options[kind, torch.arange(share)], dimension))
    return batches


@check("Linear-encoder bound")
def search_inputs(*, quick: bool) -> list[Certificate]:
    """Search random inputs for a violation of the printed bound, at R = 1 and relative to its right side."""
    count, found = 1_200 if quick else 10_000, []
    for x, dimension in random_inputs(count, random_state=12):
        largest = torch.linalg.vector_norm(x, dim=-1).amax(-1)
        printed = largest * math.sqrt(dimension / x.shape[-2])
        found.append(linear_complexity(x, radius=1.0, dimension=dimension) / printed - 1.0)
    worst = (
        torch.cat(found).max().item()
    )  # the maximum of a tensor keeps a NaN; Python's `max` would drop it
    return [
        inequality("the complexity is at most R times M times the root of d_Z over n", middle=worst, upper=0.0,
                   evidence="deterministic", assumptions=("inputs bounded by M",), details={"instances": count})
    ]  # fmt: skip
