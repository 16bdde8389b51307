"""Section 5 and appendix G: the bound of Theorem 5.1, what breaks it, and better bounds.

    B_n(H, δ) = 8√2·ν_Zν_S·√(log(2/δ)/n) + 4ν_Zν_S/n + 48√π·max{ν_Zℓ_S, ν_Sℓ_Z}·G_n(H).

HSIC and its estimate both lie in [0, ν_Zν_S/4] for kernels with values in [0, ν], so a bound above
it says nothing.

**Coverage.** On inputs with finitely many values both HSICs are linear in the Gram matrix of the
encoded values, so

    HSIC_n(h) − HSIC(h) = Σ_ij k(h(x_i), h(x_j))·M_ij,    M = A(counts/n) − A(probabilities),

and M does not depend on h. Since 0 ≤ k ≤ 1 and ΣM_ij = 0, ½Σ|M_ij| bounds the supremum over every
class of encoders. The bound is far from tight, so each certificate also has the fraction of B_n at
which coverage would fall below 1 − δ.

**One row.** The proofs rest on how far one row moves the covariance. A search looks for a larger
change than √6/n.

**All samples.** A sample of a law with few values is a table of counts, and all tables can be
enumerated: the mean of n/(n−1)·√HSIC_n and the probability that the bound for √HSIC fails are sums,
not simulations.

The linear-encoder bound after Corollary 5.3 is about H = {x ↦ Wx : ‖W‖_F ≤ R}. The supremum inside
the complexity is a maximum of a linear function over a ball, so Ĝ_n = R·E_ξ‖(1/n)Σ ξ_i x_iᵀ‖_F: an
equality. The squared norm is Σ_j a_j χ²_{d_Z} with a_j the eigenvalues of ΣX_iX_iᵀ, and the mean of
its root is one smooth integral. The paper prints the right side without its expectation over ξ.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
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
from frhsic_core.paper.statements.certificate import Options

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
    """Return B_n(H, δ) of Theorem 5.1 for kernels c·k, where k has ν = ℓ = 1; O(1).

    The equation has the label ``eq:Bn_explicit``.

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
        The corrected last term, max{ν_Z√ν_S·ℓ_S, ν_S√ν_Z·ℓ_Z}: it scales like HSIC under k → c·k,
        which the printed one does not. The two agree for kernels bounded by one.

    Examples
    --------
    >>> round(uniform_bound(10_000, complexity=0.0), 4)
    0.2177
    """
    deviation = 8.0 * math.sqrt(2.0) * math.sqrt(math.log(2.0 / delta) / n) + 4.0 / n
    slope = scale**1.5  # max{ν_Z·ℓ_S, ν_S·ℓ_Z}
    if homogeneous:
        slope = scale**2  # max{ν_Z√ν_S·ℓ_S, ν_S√ν_Z·ℓ_Z}
    return scale**2 * deviation + 48.0 * math.sqrt(math.pi) * slope * complexity


def proved_bound(n: int, *, complexity: float, delta: float = DELTA) -> float:
    """Return the bound that the book proves for kernels with values in [0, 1] and ℓ_Z = 1; O(1).

    √3·√(log(2/δ)/n) + 2/n + 20√π·G_n(H). The chapter on uniform concentration has the proof. For
    fewer than twelve rows the first term alone exceeds the trivial bound. The attribute is not
    encoded, so that no Lipschitz constant of its kernel is needed.

    Examples
    --------
    >>> round(proved_bound(10_000, complexity=0.0), 4)
    0.0335
    """
    deviation = math.sqrt(3.0 * math.log(2.0 / delta) / n)
    bias = 2.0 / n
    return deviation + bias + 20.0 * math.sqrt(math.pi) * complexity


# What breaks the bound ----------------------------------------------------------------------------


VALUES = (0.0, 3.0)  # far apart for a kernel of bandwidth one
# The share of ones is between two numbers with probability 1 − RARE.
RARE = 1e-6


def copied_hsic(ones: float) -> float:
    """Return the HSIC of S with itself, when S is 3 with probability ``ones`` and else 0."""
    shares = [1.0 - ones, ones]
    return float(hsic(VALUES, VALUES, sample_weight=shares, kernel_z=UNIT, kernel_s=UNIT))


def broken_by_kernels(
    claim: str, *, learned: bool = False, factor: float = 1e6, times: int = 1
) -> list[Certificate]:
    """Certify a deviation against ``times`` the bound for kernels c·k, as printed and corrected.

    The factor c is ``factor``. X is continuous, S a fair coin independent of X with values 0 and 3,
    H all functions into {0, 3}. For every h the population HSIC is zero. The encoder that copies
    S_i at each X_i and is zero elsewhere is in H, and its empirical HSIC depends on the number of
    ones alone: c²·(π₀π₁)²·(2 − 2a)(2 − 2b), a = b = exp(−9/2). G_n(H) = 3/√(2π).

    A ``learned`` encoder breaks the consequences with the roles exchanged. Let X = (U, S) with U
    continuous, and let ĥ be zero at the n sampled points and S elsewhere. Then HSIC_n(ĥ) = 0 and
    HSIC(ĥ) is that of S with itself, c²(1 − a)²/4.
    """
    n = 1_000_000
    complexity = 3.0 / math.sqrt(2.0 * math.pi)
    if learned:
        ones = 0.5
    else:
        ones = float(stats.binom.ppf(RARE / 2.0, n, 0.5)) / n
    deviation = factor**2 * copied_hsic(ones)
    printed = uniform_bound(n, complexity=complexity, scale=factor)
    homogeneous = uniform_bound(n, complexity=complexity, scale=factor, homogeneous=True)
    assumptions = ("kernels bounded by c",)
    details = {"n": n, "c": factor, "probability": 1.0 - RARE, "G_n": complexity}
    return [
        inequality(
            f"the printed bound for kernels of any size: {claim}",
            middle=deviation,
            upper=times * printed,
            evidence="exact",
            assumptions=assumptions,
            details=details,
        ),
        inequality(
            f"the bound with a last term that scales like HSIC: {claim}",
            middle=deviation,
            upper=times * homogeneous,
            evidence="exact",
            corrected=True,
            assumptions=assumptions,
            details=details,
        ),
    ]


@check("Theorem 5.1", "Proposition G.2")
def broken_by_scaling() -> list[Certificate]:
    """Break Theorem 5.1, and Proposition G.2, with kernels c·k; check the corrected bound."""
    return broken_by_kernels("an encoder class and kernels c times Gaussian")


@check("Corollary 5.2", "Corollary G.3")
def learned_by_scaling() -> list[Certificate]:
    """Break Corollary 5.2, and Corollary G.3, with kernels c·k; check the corrected bound."""
    claim = (
        "population HSIC is at most empirical HSIC plus the bound, "
        "an encoder that is zero on the sample"
    )
    return broken_by_kernels(claim, learned=True)


@check("Remark G.4")
def bridge_by_scaling() -> list[Certificate]:
    """Break Remark G.4 with kernels c·k, and check the corrected bound.

    The test sample has new points, so that Z = S there. For a binary S the centered Gram matrix has
    one positive eigenvalue. The head f = k(3, ·) − k(0, ·) attains Cauchy-Schwarz, hence its
    projected gap times λ̂₁/‖f‖² equals the test HSIC, c²(π₀π₁)²(2 − 2a)².
    """
    claim = (
        "the projected test gap is at most the spectral factor times training HSIC "
        "plus twice the bound"
    )
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
            "text: the kernels have Lipschitz feature maps; "
            "Laplacian kernel of the ablation, steepness near and far",
            middle=steep,
            upper=flat,
            evidence="exact",
            details={"distances": [near, far]},
        ),
        inequality(
            "the feature map of a Laplacian kernel is Hölder continuous with exponent 1/2",
            middle=abs(exponent - 0.5),
            upper=1e-3,
            evidence="exact",
            corrected=True,
            details={"exponent": exponent},
        ),
    ]


# Coverage for all encoders at once ----------------------------------------------------------------

POINTS = 50


def drawn_suprema(n: int, draws: int, *, random_state: RandomState) -> Tensor:
    """Draw samples, and return for each a bound on |HSIC_n(h) − HSIC(h)| for all encoders h.

    X takes 50 values with equal probability, S = −1 … 1 rises with X, and k_S is Gaussian of
    bandwidth 1/2. The number is ½Σ|M_ij| for kernels on Z with values in [0, 1]; the time does not
    depend on n.

    Examples
    --------
    >>> drawn_suprema(1000, 3, random_state=0).shape
    torch.Size([3])
    """
    seed = int(torch.randint(2**62, (), generator=as_generator(random_state)))
    probabilities = np.full(POINTS, 1.0 / POINTS)
    counts = np.random.default_rng(seed).multinomial(n, probabilities, size=draws)
    s = torch.linspace(-1.0, 1.0, POINTS, dtype=torch.float64)
    gram = Gaussian(0.5)(s.unsqueeze(-1))
    population = contraction_weights(gram, row_weights=torch.as_tensor(probabilities))
    empirical = contraction_weights(gram, row_weights=torch.as_tensor(counts / n))
    return 0.5 * (empirical - population).abs().sum((-2, -1))


def coverage(
    claim: str, gaps: Tensor, bound: float, *, delta: float = DELTA, **details: Any
) -> Certificate:
    """Certify that ``gaps ≤ bound`` with probability at least 1 − delta.

    The probability is the lower end of an exact 95 % interval.
    """
    if bound >= TRIVIAL:
        raise ValueError(
            f"The bound is {bound:.3g}: at {TRIVIAL} or more, coverage cannot fail. Use more rows."
        )
    hits = int((gaps <= bound).sum())
    low, high = stats.binomtest(hits, len(gaps)).proportion_ci()
    quantile = torch.quantile(gaps, 1.0 - delta).item()
    return inequality(
        claim,
        middle=1.0 - delta,
        upper=low,
        evidence="statistical",
        assumptions=("bounded X", "independent rows", "fixed unit kernels"),
        details={
            "coverage": hits / len(gaps),
            "interval": [low, high],
            "draws": len(gaps),
            "bound": bound,
            "fraction of the bound at which coverage breaks": quantile / bound,
            **details,
        },
    )


def draws_of_coverage(quick: bool) -> int:
    """Return how many samples a check of coverage draws."""
    return 100 if quick else 400


@check("Theorem 5.1", "Proposition G.2", "Corollary 5.2", "Corollary G.3")
def any_encoders(*, quick: bool) -> list[Certificate]:
    """Check the bound for every encoder at once, on inputs with finitely many values.

    The bound then holds for a learned encoder too.
    """
    n = 20_000
    gaps = drawn_suprema(n, draws_of_coverage(quick), random_state=54)
    # G_n ≥ 0 for every class that holds a fixed encoder, so B_n is at least its first two terms.
    bound = uniform_bound(n, complexity=0.0)
    claim = (
        "coverage, any encoders at all, learned or not, on finitely many inputs, "
        "unit kernels, complexity left out"
    )
    return [coverage(claim, gaps, bound, n=n)]


@check("Remark G.4")
def train_to_test(*, quick: bool) -> list[Certificate]:
    """Check Remark G.4 for all encoders; Theorem 4.7 then bounds the gap on the test sample."""
    n = 100_000
    draws = draws_of_coverage(quick)
    train = drawn_suprema(n, draws, random_state=55)
    test = drawn_suprema(n, draws, random_state=56)
    twice_the_bound = 2.0 * uniform_bound(n, complexity=0.0)
    claim = "test HSIC is at most training HSIC plus twice the bound, any encoders at all"
    return [coverage(claim, train + test, twice_the_bound, delta=2.0 * DELTA, n=n)]


# One row ------------------------------------------------------------------------------------------


def summed_covariance(phi: Tensor, psi: Tensor) -> Tensor:
    """Return n times the unbiased covariance of the n rows of two samples of features."""
    n = phi.shape[-2]
    a = phi - phi.mean(-2, keepdim=True)
    b = psi - psi.mean(-2, keepdim=True)
    return a.mT @ b * (n / (n - 1))


def with_one_row_replaced(phi: Tensor, psi: Tensor) -> tuple[Tensor, Tensor]:
    """Return n·Ĉ_u before and after the last of n + 1 rows has taken the place of the first.

    Ĉ_u = n/(n − 1)·Ĉ is the unbiased covariance of ``phi`` and ``psi``, ``(..., n + 1, d)`` and
    ``(..., n + 1, e)``.
    """
    before = summed_covariance(phi[..., :-1, :], psi[..., :-1, :])
    after = summed_covariance(phi[..., 1:, :], psi[..., 1:, :])
    return before, after


SAMPLE_SIZES = (2, 3, 5, 10, 40)


def random_features(count: int, n: int, generator: torch.Generator) -> Tensor:
    """Draw non-negative unit features of n rows in 4 dimensions; half of the samples are one-hot.

    In most samples all rows but the first and the last agree, which makes the change of one row
    largest.
    """
    features = torch.randn(count, n, 4, generator=generator, dtype=torch.float64).abs()
    one_hot = torch.nn.functional.one_hot(features.argmax(-1), 4)
    on_the_sphere = torch.nn.functional.normalize(features, dim=-1)
    choices = torch.rand(count, 1, 1, 2, generator=generator)
    is_one_hot = choices[..., 0] < 0.5
    rows_agree = choices[..., 1] < 0.8
    features = torch.where(is_one_hot, one_hot, on_the_sphere)
    features[:, 1:-1] = torch.where(rows_agree, features[:, 1:2], features[:, 1:-1])
    return features


@check("Theorem 5.1")
def bounded_difference(*, quick: bool) -> list[Certificate]:
    """Search for a row that moves the covariance by more than the proof allows."""
    generator = torch.Generator().manual_seed(58)
    count = 500 if quick else 4000
    largest = 0.0
    for n in SAMPLE_SIZES:
        phi = random_features(count, n + 1, generator)
        psi = random_features(count, n + 1, generator)
        before, after = with_one_row_replaced(phi, psi)
        change = torch.linalg.matrix_norm(before - after).max().item()
        largest = max(largest, change)
    proved = math.sqrt(6.0)
    return [
        inequality(
            "step of the proof: one row moves n times the unbiased covariance by at most root 6, "
            "kernels in [0, 1]; the search reaches 99 % of it",
            lower=0.99 * proved,
            middle=largest,
            upper=proved,
            evidence="deterministic",
            ours=True,
            details={"instances": len(SAMPLE_SIZES) * count},
        )
    ]


# All samples of a law with few values -------------------------------------------------------------


def all_tables(n: int, cells: int) -> np.ndarray:
    """Return every table of ``cells`` counts that sum to n, ``(tables, cells)``.

    Examples
    --------
    >>> len(all_tables(3, 4))
    20
    """
    if cells == 1:
        return np.array([[n]])
    rest_of = [all_tables(n - first, cells - 1) for first in range(n + 1)]
    first = np.repeat(np.arange(n + 1), [len(rest) for rest in rest_of])
    return np.column_stack([first, np.concatenate(rest_of)])


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
ROUNDING = 1e-12  # a bound that is below the truth by no more than this did not fail


@dataclass(frozen=True)
class Enumerated:
    """All samples of a law: its true value, and the chance of each table of ``all_tables``."""

    truth: float
    chances: np.ndarray

    def mean(self, values: np.ndarray) -> float:
        """Return the mean of a statistic from its value for every table."""
        return float(self.chances @ values)

    def chance_of_failure(self, bounds: np.ndarray) -> float:
        """Return the probability that the truth exceeds a bound, given for every table."""
        return self.mean(bounds < self.truth - ROUNDING)


def bound_certificates(
    name: str,
    estimate: Callable[[np.ndarray], np.ndarray],
    laws: Sequence[Sequence[float]],
    slacks: Mapping[str, Slack],
    *,
    n: int,
) -> list[Certificate]:
    """Certify bounds n/(n − 1)·estimate + slack(δ) in all samples of n rows of each law.

    Means and chances are exact. The estimate, a function of tables of shares, is on average at
    least the truth, and each bound fails with probability at most δ. A slack has one value, or one
    for every table of ``all_tables``.
    """
    counts = all_tables(n, len(laws[0]))
    values = n / (n - 1) * estimate(counts / n)
    cases = []
    for law in laws:
        truth = float(estimate(np.asarray(law)))
        cases.append(Enumerated(truth, chances=stats.multinomial(n, law).pmf(counts)))
    options: Options = {
        "evidence": "exact",
        "ours": True,
        "details": {"laws": len(laws), "deltas": DELTAS, "n": n},
    }

    least = min(cases, key=lambda case: case.mean(values) - case.truth)
    found = [
        inequality(
            f"{name}: n/(n-1) times the estimate is on average at least the truth, "
            "all samples enumerated",
            middle=least.truth,
            upper=least.mean(values),
            **options,
        )
    ]
    for words, slack in slacks.items():
        failures = {}
        for delta in DELTAS:
            bounds = values + slack(delta)
            failures[delta] = max(case.chance_of_failure(bounds) for case in cases)
        worst = max(DELTAS, key=lambda delta: failures[delta] / delta)
        claim = (
            f"{name}{words}: the truth exceeds the bound with probability at most delta, "
            "all samples enumerated"
        )
        found.append(inequality(claim, middle=failures[worst], upper=worst, **options))
    return found


@check("Corollary 5.2")
def root_certificate(*, quick: bool) -> list[Certificate]:
    """Check the bounds for the root of HSIC with all samples of 2 × 2 laws.

    One bound uses the variance. For a fair coin Z = S the mean of the estimate is the truth, so
    that the factor n/(n − 1) cannot be smaller.
    """
    n = 40 if quick else 100
    a, b, c, d = all_tables(n, 4).T
    # The mean of (1 − k)(1 − l) over pairs, k = l = 1[x = y].
    both_differ = 2.0 * (a * d + b * c) / (n * (n - 1))
    slacks: dict[str, Slack] = {
        "": lambda delta: math.sqrt(3.0 * math.log(1.0 / delta) / n),
        " with the variance": lambda delta: pair_slack(both_differ, n, delta),
    }
    return bound_certificates("the root of HSIC", root_hsic, TABLES, slacks, n=n)


# Linear encoders ----------------------------------------------------------------------------------

# E√Q = π^(−1/2) ∫ (1 − E exp(−e^{2y}Q)) e^{−y} dy. The integrand decays like e^{−|y|} and is
# analytic for |Im y| < π/4, so the trapezoidal rule with step h is right to about exp(−π²/2h).
STEP = 0.1
REACH = 40.0  # the integrand is below e^{−40} outside of ±REACH


def linear_complexity(x: ArrayLike, *, radius: float, dimension: int) -> Tensor:
    """Return the Gaussian complexity Ĝ_n of the linear encoders {x ↦ Wx : ‖W‖_F ≤ R}.

    W has ``dimension`` rows. The result is right to about 14 digits. O(n·d² + d³) time for inputs
    in R^d; the number of rows of W costs nothing.

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
    >>> complexity = linear_complexity([[1.0]], radius=1.0, dimension=1)  # E|ξ| = √(2/π)
    >>> round(complexity.item() ** 2 * math.pi, 10)
    2.0
    """
    x = torch.as_tensor(x, dtype=torch.float64)
    values = torch.linalg.svdvals(x).square()
    total = values.sum(-1, keepdim=True).clamp_min(torch.finfo(x.dtype).tiny)
    y = torch.arange(-REACH, REACH + STEP / 2, STEP, dtype=x.dtype, device=x.device)
    shares = (values / total).unsqueeze(-1)
    # E exp(−e^{2y}Q) = Π_j (1 + 2e^{2y}·a_j)^(−d_Z/2) for Q = Σ_j a_j χ²_{d_Z}.
    logs = torch.log1p(2.0 * torch.exp(2.0 * y) * shares).sum(-2)
    integrand = -torch.expm1(-0.5 * dimension * logs) * torch.exp(-y)
    mean_root = integrand.sum(-1) * (STEP / math.sqrt(math.pi))
    return radius * total.squeeze(-1).sqrt() * mean_root / x.shape[-2]


@check("Linear-encoder bound")
def as_printed(*, quick: bool) -> list[Certificate]:
    """Compare Ĝ_n with R·‖(1/n)Σξ_i x_iᵀ‖_F for single draws of ξ, and with its mean."""
    n, d = 50, 3
    dimension = 2
    radius = 1.5
    draws = 4_000 if quick else 40_000
    generator = torch.Generator().manual_seed(11)
    x = torch.rand(n, d, generator=generator, dtype=torch.float64)
    noise = torch.randn(draws, dimension, n, generator=generator, dtype=torch.float64)
    norms = radius * torch.linalg.matrix_norm(noise @ x / n)
    mean = norms.mean().item()
    four_standard_errors = 4.0 * norms.std().item() / math.sqrt(draws)
    exact = linear_complexity(x, radius=radius, dimension=dimension).item()
    below = int((norms < exact).sum())
    low, high = stats.binomtest(below, draws).proportion_ci(0.999)
    return [
        inequality(
            "text: the complexity is at most the norm without its expectation; "
            "share of draws that break it is zero",
            middle=low,
            upper=0.0,
            evidence="statistical",
            details={"share": below / draws, "interval": [low, high], "draws": draws},
        ),
        inequality(
            "the complexity equals the expectation of the norm "
            "(exact value against the mean of draws)",
            middle=abs(mean - exact),
            upper=four_standard_errors,
            evidence="statistical",
            corrected=True,
            details={"exact": exact, "mean of draws": mean, "draws": draws},
        ),
    ]


def random_inputs(count: int, *, random_state: RandomState) -> list[tuple[Tensor, int]]:
    """Draw batches of bounded inputs, each with a dimension d_Z.

    Inputs are on a sphere, in a ball, in one direction, or mostly close to zero.
    """
    generator = as_generator(random_state)
    settings = list(itertools.product((1, 2, 10, 40), (1, 3, 8), (1, 2, 50)))
    smaller, left_over = divmod(count, len(settings))
    batches = []
    for index, (n, d, dimension) in enumerate(settings):
        size = smaller + (index < left_over)
        x = torch.randn(size, n, d, generator=generator, dtype=torch.float64)
        sphere = x / torch.linalg.vector_norm(x, dim=-1, keepdim=True)
        radii = torch.rand(size, n, 1, generator=generator, dtype=torch.float64)
        ball = sphere * radii
        one_direction = sphere[:, :1].expand_as(sphere)
        mostly_small = sphere * (radii < 0.1) + 1e-3 * sphere
        options = torch.stack([sphere, ball, one_direction, mostly_small])
        kind = torch.randint(4, (size,), generator=generator)
        batches.append((options[kind, torch.arange(size)], dimension))
    return batches


@check("Linear-encoder bound")
def search_inputs(*, quick: bool) -> list[Certificate]:
    """Search random inputs for a violation of the printed bound, at R = 1 and relative to it."""
    count = 1_200 if quick else 10_000
    excesses = []
    for x, dimension in random_inputs(count, random_state=12):
        n = x.shape[-2]
        largest = torch.linalg.vector_norm(x, dim=-1).amax(-1)
        printed = largest * math.sqrt(dimension / n)
        exact = linear_complexity(x, radius=1.0, dimension=dimension)
        excesses.append(exact / printed - 1.0)
    # The maximum of a tensor keeps a NaN; Python's `max` would drop it.
    worst = torch.cat(excesses).max().item()
    return [
        inequality(
            "the complexity is at most R times M times the root of d_Z over n",
            middle=worst,
            upper=0.0,
            evidence="deterministic",
            assumptions=("inputs bounded by M",),
            details={"instances": count},
        )
    ]
