"""Rates of convergence against exact truths, and the law of HSIC's estimator at independence.

The paper's synthetic study takes each estimator's value at a large sample as the truth. For the Gaussian law the truth
is known (:class:`frhsic_core.laws.GaussianPair`), and then the two estimators differ. HSIC converges to HSIC at root-n.
EIPM at a fixed smoothing bandwidth also converges at root-n, but to the wrong number. The rate n^(−2/5) belongs to
γ_n ∝ n^(−1/5), where the smoothing bias is of order γ_n². With γ_n ∝ n^(−1/3) the bias is smaller than the sampling
error, and off the null EIPM converges at root-n to the right number.

A slope certificate names the rival exponent too: its interval has to contain one and to exclude the other. An interval
that contains both is inconclusive.

The paper calls HSIC's estimator a non-degenerate V-statistic. √n(HSIC_n − HSIC) has a normal limit with variance
4·Var h₁, h₁(z, s) = E[k̃(Z, z)·l̃(S, s)]. The estimator is degenerate where h₁ is constant. At Z ⟂ S, the target of
training, h₁ is zero everywhere. It can also be constant under dependence: for Z = S a fair coin the symmetry of the two
values makes h₁ constant, as it must be where HSIC is largest. At Z ⟂ S n·HSIC_b has a limit law and, for kernels with
k(x, x) = 1, the mean

    E[n·HSIC_b] = (1 − μ_K)(1 − μ_L)(1 − 1/n),    μ_K = E k(Z, Z'), μ_L = E l(S, S'),

so that a mini-batch of m rows has a penalty of about (1 − μ_K)(1 − μ_L)/m even when nothing is left to remove.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
import torch
from scipy import stats

from frhsic_core.joint.hsic import hsic
from frhsic_core.kernels import Gaussian
from frhsic_core.laws import FiniteLaw, GaussianPair
from frhsic_core.paper.experiments.shared.fourier_features import (
    gaussian_features,
    mean_mmd,
    squared_mmd_at_rows,
    v_statistic_hsic,
)
from frhsic_core.paper.runs.stored import stored_rows
from frhsic_core.paper.statements import Certificate, check, equality, inequality, strict_inequality
from frhsic_core.paper.statements.zero_level import rational_hsic

LAW, KERNEL = GaussianPair(0.5), Gaussian(1.0)
CONFIDENCE = 0.99  # of slope intervals


def loglog_slope(
    sizes: np.ndarray, errors: np.ndarray, *, confidence: float = 0.95
) -> tuple[float, tuple[float, float]]:
    """Return the slope of log(mean error) on log n, with an interval from the spread of the replications.

    The mean error at each n has a relative standard error (delta method for its logarithm); the slope is the weighted
    least-squares one, its variance the weighted one, no line being assumed beyond that. Independent replications at
    each n are needed.

    Parameters
    ----------
    sizes : ndarray
        Sample sizes, ``(k,)``.
    errors : ndarray
        Non-negative errors, ``(k, replications)``.
    confidence : float
        Of the normal interval.

    Returns
    -------
    slope : float
    interval : (float, float)

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> sizes = np.array([10.0, 100.0, 1000.0])
    >>> slope, (low, high) = loglog_slope(sizes, np.abs(rng.normal(size=(3, 4000))) / np.sqrt(sizes)[:, None])
    >>> low < -0.5 < high and high - low < 0.05
    True
    """
    means = errors.mean(1)
    variance = (errors.std(1, ddof=1) / means) ** 2 / errors.shape[1]
    weight = 1.0 / variance
    x, y = np.log(sizes), np.log(means)
    centered = x - (weight @ x) / weight.sum()
    spread = float(weight @ centered**2)
    slope = float(weight @ (centered * y)) / spread
    reach = float(stats.norm.isf((1.0 - confidence) / 2.0)) / math.sqrt(spread)
    return slope, (slope - reach, slope + reach)


def slope_certificate(
    claim: str, found: tuple[float, tuple[float, float]], *, rate: float, rival: float, **options: Any
) -> Certificate:
    """Certify that the interval of a slope contains ``rate``; inconclusive if it also contains ``rival``.

    Examples
    --------
    >>> options = {"rate": -0.5, "rival": -0.4, "evidence": "statistical"}
    >>> slope_certificate("narrow", (-0.49, (-0.52, -0.46)), **options).verdict
    'holds'
    >>> slope_certificate("wide", (-0.49, (-0.59, -0.39)), **options).verdict
    'inconclusive'
    >>> slope_certificate("wrong", (-0.41, (-0.44, -0.38)), **options).verdict
    'fails as stated'
    """
    slope, (low, high) = found
    both = low <= rate <= high and low <= rival <= high
    details = {"slope": slope, "interval": [low, high], "rival": rival, **options.pop("details", {})}
    return inequality(claim, lower=low, middle=rate, upper=math.nan if both else high, details=details, **options)


@dataclass(frozen=True)
class Convergence:
    """Estimates of one number at several sample sizes, beside the number.

    Attributes
    ----------
    sizes : ndarray
        ``(k,)``.
    estimates : ndarray
        ``(k, replications)``.
    truth : float
        What should be estimated, exactly.
    """

    sizes: np.ndarray
    estimates: np.ndarray
    truth: float

    def errors(self, target: float | None = None) -> np.ndarray:
        """Return the absolute errors against ``target``, by default the truth."""
        return np.abs(self.estimates - (self.truth if target is None else target))

    def slope(self, target: float | None = None, *, confidence: float = 0.95) -> tuple[float, tuple[float, float]]:
        """Return the slope of the mean absolute error on log-log axes, with its interval."""
        return loglog_slope(self.sizes, self.errors(target), confidence=confidence)


def _chunks(
    law: GaussianPair, n: int, replications: int, generator: torch.Generator
) -> Iterator[tuple[torch.Tensor, torch.Tensor]]:
    """Draw all samples at once and yield them in chunks that stay in the cache."""
    sample = law.sample(n, random_state=generator, batch=(replications,))
    yield from zip(*(part.split(max(1, 20_000 // n)) for part in sample), strict=True)


def hsic_convergence(
    sizes: tuple[int, ...],
    *,
    replications: int,
    law: GaussianPair = LAW,
    kernel: Gaussian = KERNEL,
    estimator: str = "biased",
    generator: torch.Generator,
) -> Convergence:
    """Draw HSIC estimates at each size; O(replications·Σn) time, since kernels of one variable have short features.

    Examples
    --------
    >>> found = hsic_convergence((20, 40), replications=3, generator=torch.Generator().manual_seed(0))
    >>> found.estimates.shape, round(found.truth, 9)
    ((2, 3), 0.01076332)
    """
    which = {"biased": 0, "unbiased": 1}[estimator]
    sigma = float(kernel.bandwidth)
    estimates = []
    for n in sizes:
        values = [
            v_statistic_hsic(gaussian_features(z.squeeze(-1), sigma), gaussian_features(s, sigma))[which]
            for z, s in _chunks(law, n, replications, generator)
        ]
        estimates.append(torch.cat(values).numpy())
    return Convergence(np.array(sizes, dtype=np.float64), np.array(estimates), law.hsic(kernel, kernel))


def eipm_convergence(
    sizes: tuple[int, ...],
    *,
    replications: int,
    bandwidth: float,
    power: float = 0.0,
    law: GaussianPair = LAW,
    kernel: Gaussian = KERNEL,
    generator: torch.Generator,
) -> Convergence:
    """Draw EIPM estimates with smoothing bandwidth γ_n = bandwidth·n^power; O(replications·Σn/γ_n) time.

    Examples
    --------
    >>> found = eipm_convergence((20,), replications=2, bandwidth=0.5, generator=torch.Generator().manual_seed(0))
    >>> round(found.truth, 9)
    0.199520697
    """
    sigma = float(kernel.bandwidth)
    estimates = []
    for n in sizes:
        gamma = bandwidth * n**power
        values = [
            mean_mmd(squared_mmd_at_rows(gaussian_features(z.squeeze(-1), sigma), s, gamma))
            for z, s in _chunks(law, n, replications, generator)
        ]
        estimates.append(torch.cat(values).numpy())
    return Convergence(np.array(sizes, dtype=np.float64), np.array(estimates), law.expected_mmd(kernel))


def smoothing_bias_slope(small: float, large: float, *, constant: float = 1.0) -> float:
    """Return the log-log slope between two n of the exact bias |EIPM(γ_n) − E[MMD]|, γ_n = constant·n^(−1/5).

    Examples
    --------
    >>> round(smoothing_bias_slope(1e8, 1e10), 3)
    -0.4
    """
    truth = LAW.expected_mmd(KERNEL)
    biases = [abs(LAW.eipm_limit(KERNEL, bandwidth=constant * n**-0.2) - truth) for n in (small, large)]
    return math.log(biases[1] / biases[0]) / math.log(large / small)


@check("Corollary 5.3")
def hsic_rate(*, quick: bool) -> list[Certificate]:
    """Check that the 99 % interval of HSIC's slope against its exact value contains −1/2 and excludes −2/5."""
    sizes = (200, 800, 3200) if quick else (200, 800, 3200, 12_800)
    replications = 400
    found = hsic_convergence(sizes, replications=replications, generator=torch.Generator().manual_seed(0))
    return [
        slope_certificate(
            "a single encoder: the interval of HSIC's log-log slope contains -1/2 and excludes -2/5, Gaussian law off "
            "the null",
            found.slope(confidence=CONFIDENCE), rate=-0.5, rival=-0.4, evidence="statistical",
            assumptions=("rho = .5", "unit bandwidths", "truth in closed form"),
            details={"truth": found.truth, "replications": replications, "sizes": list(sizes)})
    ]  # fmt: skip


@check("Corollary 5.3")
def fixed_bandwidth(*, quick: bool) -> list[Certificate]:
    """Check EIPM at a fixed γ: it misses the truth and converges to the smoothed criterion."""
    sizes = (200, 800, 3200) if quick else (200, 800, 3200, 12_800)
    replications = 400 if quick else 300
    generator = torch.Generator().manual_seed(1)
    certificates = []
    for bandwidth in (0.5, 1.0):
        found = eipm_convergence(sizes, replications=replications, bandwidth=bandwidth, generator=generator)
        limit = LAW.eipm_limit(KERNEL, bandwidth=bandwidth)
        mean = float(found.estimates[-1].mean())
        reach = 4.0 * found.estimates[-1].std(ddof=1) / math.sqrt(replications)
        details = {
            "limit": limit,
            "truth": found.truth,
            "mean of the estimates": mean,
            "slope against the truth": found.slope()[0],
            "replications": replications,
            "sizes": list(sizes),
        }
        certificates += [
            inequality(f"text: EIPM at the fixed bandwidth {bandwidth} converges to its population value E[MMD]",
                       middle=abs(mean - found.truth), upper=reach, evidence="statistical", details=details),
            inequality(
                f"EIPM at the fixed bandwidth {bandwidth} has the mean of the smoothed criterion, up to four standard "
                "errors", middle=abs(mean - limit), upper=reach, evidence="statistical", corrected=True,
                details=details),
            slope_certificate(
                f"EIPM at the fixed bandwidth {bandwidth} converges to the smoothed criterion; the slope interval "
                "contains -1/2 and excludes -2/5",
                found.slope(limit, confidence=CONFIDENCE), rate=-0.5, rival=-0.4, evidence="statistical",
                corrected=True, details=details),
        ]  # fmt: skip
    return certificates


@check("Corollary 5.3")
def shrinking_bandwidth(*, quick: bool) -> list[Certificate]:
    """Check EIPM at γ_n ∝ n^(−1/5): the error falls, and the exact bias falls like n^(−2/5)."""
    sizes = (100, 200, 400) if quick else (100, 200, 400, 800)
    replications = 40 if quick else 100
    found = eipm_convergence(
        sizes, replications=replications, bandwidth=1.0, power=-0.2, generator=torch.Generator().manual_seed(2)
    )
    slope, (low, high) = found.slope()
    return [
        inequality(
            "EIPM at a bandwidth of order n^(-1/5): the error against the truth falls (upper end of its slope)",
            middle=high, upper=0.0, evidence="statistical", corrected=True,
            details={"slope": slope, "interval": [low, high], "replications": replications, "sizes": list(sizes)}),
        inequality("EIPM at a bandwidth of order n^(-1/5): the exact smoothing bias has log-log slope -2/5",
                   middle=abs(smoothing_bias_slope(1e10, 1e12) + 0.4), upper=1e-3, evidence="exact", corrected=True,
                   details={"slope at practical sizes": smoothing_bias_slope(1e2, 1e4)}),
    ]  # fmt: skip


def rmse_slope(
    sizes: np.ndarray, errors: np.ndarray, *, confidence: float = CONFIDENCE
) -> tuple[float, tuple[float, float]]:
    """Return the log-log slope of the root mean squared error, with its interval: half of that of the mean square.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> sizes = np.array([10.0, 100.0, 1000.0])
    >>> slope, (low, high) = rmse_slope(sizes, rng.normal(size=(3, 4000)) * sizes[:, None] ** -0.4)
    >>> low < -0.4 < high
    True
    """
    slope, (low, high) = loglog_slope(sizes, errors**2, confidence=confidence)
    return 0.5 * slope, (0.5 * low, 0.5 * high)


@check("Corollary 5.3")
def bandwidth_decides_the_rate() -> list[Certificate]:
    """Check on stored samples off the null that the rate of EIPM follows from the bandwidth rule; none without a book.

    The study is ``frhsic run convergence``; its part ``bandwidth`` has both rules on the same samples.
    """
    try:
        rows = stored_rows("convergence")
    except FileNotFoundError:
        return []
    rows = rows[(rows["part"] == "bandwidth") & (rows["rho"] == LAW.rho)]
    truth = LAW.expected_mmd(KERNEL)
    certificates = []
    for name, rule, rate, rival in (("eipm_third", "n^(-1/3)", -0.5, -0.4), ("eipm_n", "n^(-1/5)", -0.4, -0.5)):
        table = rows.pivot(index="n", columns="replicate", values=name)
        found = rmse_slope(table.index.to_numpy(float), table.to_numpy() - truth)
        certificates.append(
            slope_certificate(
                f"EIPM at the bandwidth {rule}, off the null: the interval of the slope of its error contains "
                f"{Fraction(rate).limit_denominator(9)} and excludes {Fraction(rival).limit_denominator(9)}",
                found, rate=rate, rival=rival, evidence="statistical", corrected=True,
                details={"replications": table.shape[1], "sizes": [int(n) for n in table.index]})
        )  # fmt: skip
    return certificates


Matrix = Sequence[Sequence[Any]]


def null_mean(mean_k: Any, mean_l: Any, *, n: int) -> Any:
    """Return (1 − μ_K)(1 − μ_L)(1 − 1/n), the mean of n·HSIC_b at independence if k(x, x) = 1.

    Examples
    --------
    >>> null_mean(Fraction(1, 2), Fraction(1, 2), n=2)
    Fraction(1, 8)
    """
    return (1 - mean_k) * (1 - mean_l) * (1 - Fraction(1, n))


def rational_unbiased_hsic(gram: list[list[Fraction]], other: list[list[Fraction]]) -> Fraction:
    """Return unbiased HSIC (Song et al., 2012) in rational arithmetic, O(n²), at least four rows."""
    n = len(gram)
    k, l = ([[Fraction(0) if i == j else m[i][j] for j in range(n)] for i in range(n)] for m in (gram, other))
    rows, other_rows = [sum(row, Fraction(0)) for row in k], [sum(row, Fraction(0)) for row in l]
    paired = sum((k[i][j] * l[i][j] for i in range(n) for j in range(n)), Fraction(0))
    product = sum(rows, Fraction(0)) * sum(other_rows, Fraction(0))
    cross = sum((a * b for a, b in zip(rows, other_rows, strict=True)), Fraction(0))
    return (paired + product / ((n - 1) * (n - 2)) - 2 * cross / (n - 2)) / (n * (n - 3))


def exact_mean(
    statistic: Callable[[list[list[Fraction]], list[list[Fraction]]], Fraction],
    *,
    n: int,
    p_z: Sequence[Fraction],
    p_s: Sequence[Fraction],
    gram_z: Matrix,
    gram_s: Matrix,
) -> Fraction:
    """Return the mean of a statistic over all samples of n rows with Z ⟂ S, by enumeration: (|Z|·|S|)^n terms."""
    cells = [(i, j, p * q) for i, p in enumerate(p_z) for j, q in enumerate(p_s)]
    total = Fraction(0)
    for sample in itertools.product(cells, repeat=n):
        chance = math.prod((cell[2] for cell in sample), start=Fraction(1))
        k = [[gram_z[a[0]][b[0]] for b in sample] for a in sample]
        l = [[gram_s[a[1]][b[1]] for b in sample] for a in sample]
        total += chance * statistic(k, l)
    return total


def projection_variance(law: FiniteLaw, gram_z: Matrix, gram_s: Matrix) -> Any:
    """Return 4·Var h₁, the variance of the normal limit of √n(HSIC_n − HSIC); zero where that is degenerate."""
    k, l = np.array(gram_z, dtype=object), np.array(gram_s, dtype=object)
    k = k - (k @ law.p_z)[:, None]
    l = l - (l @ law.p_s)[:, None]
    h = (k - (law.p_z @ k)[None, :]) @ law.difference @ (l - (law.p_s @ l)[None, :])
    mean = (law.probabilities * h).sum()
    return 4 * ((law.probabilities * h * h).sum() - mean * mean)


HALF, THIRD = Fraction(1, 2), Fraction(1, 3)
GRAM_Z = [[Fraction(1), HALF], [HALF, Fraction(1)]]
GRAM_S = [[Fraction(1), Fraction(1, 4)], [Fraction(1, 4), Fraction(1)]]
P_Z, P_S = (THIRD, 1 - THIRD), (Fraction(1, 4), Fraction(3, 4))


@check("Definition 2.1")
def exact_null_means() -> list[Certificate]:
    """Check the means of both estimators on a two-by-two law, all samples enumerated."""
    options: dict[str, Any] = {"p_z": P_Z, "p_s": P_S, "gram_z": GRAM_Z, "gram_s": GRAM_S}
    mean_k = sum(P_Z[i] * P_Z[j] * GRAM_Z[i][j] for i in range(2) for j in range(2))
    mean_l = sum(P_S[i] * P_S[j] * GRAM_S[i][j] for i in range(2) for j in range(2))
    n = 4
    biased = n * exact_mean(rational_hsic, n=n, **options)
    formula = null_mean(mean_k, mean_l, n=n)
    unbiased = exact_mean(rational_unbiased_hsic, n=n, **options)
    return [
        equality("at independence n times biased HSIC has mean (1 - mu_K)(1 - mu_L)(1 - 1/n), all samples enumerated",
                 left=float(biased), right=float(formula), tolerance=0.0, evidence="exact",
                 details={"n": n, "mean": str(biased), "formula": str(formula)}),
        equality("at independence unbiased HSIC has mean zero, all samples enumerated", left=float(unbiased),
                 right=0.0, tolerance=0.0, evidence="exact", details={"n": n, "mean": str(unbiased)}),
    ]  # fmt: skip


@check("Definition 2.1")
def degeneracy(*, quick: bool) -> list[Certificate]:
    """Check the first projection: zero at independence and for a fair coin Z = S, positive for another law."""
    independent = FiniteLaw([0, 1], [0, 1], [[p * q for q in P_S] for p in P_Z])
    table = [[Fraction(1, 2), Fraction(1, 8)], [Fraction(1, 8), Fraction(1, 4)]]
    dependent = FiniteLaw([0, 1], [0, 1], table)
    at_null = projection_variance(independent, GRAM_Z, GRAM_S)
    off_null = projection_variance(dependent, GRAM_Z, GRAM_S)
    coin = FiniteLaw([0, 1], [0, 1], [[HALF, Fraction(0)], [Fraction(0), HALF]])
    at_maximum = projection_variance(coin, GRAM_Z, GRAM_S)
    coin_hsic = (coin.difference * (np.array(GRAM_Z, dtype=object) @ coin.difference @ GRAM_S)).sum()
    n, draws = 4000, 2000 if quick else 20_000
    rng = np.random.default_rng(21)
    counts = rng.multinomial(n, np.array(table, dtype=float).ravel(), size=draws).reshape(draws, 2, 2) / n
    difference = counts - counts.sum(2, keepdims=True) * counts.sum(1, keepdims=True)
    k, l = np.array(GRAM_Z, dtype=float), np.array(GRAM_S, dtype=float)
    variance = float(n * ((k @ difference @ l) * difference).sum((1, 2)).var(ddof=1))
    return [
        strict_inequality(
            "text: the estimator is a non-degenerate V-statistic; variance of its first projection at independence",
            middle=0.0, upper=float(at_null), evidence="exact", details={"variance": str(at_null)}),
        strict_inequality(
            "a dependent law where the estimator is non-degenerate; variance of its first projection", middle=0.0,
            upper=float(off_null), evidence="exact", corrected=True, details={"variance": str(off_null)}),
        equality(
            "a dependent law where the estimator is degenerate, Z = S a fair coin; variance of its first projection",
            left=float(at_maximum), right=0.0, tolerance=0.0, evidence="exact", corrected=True,
            details={"HSIC": str(coin_hsic)}),
        strict_inequality("the same coin: HSIC is positive", middle=0.0, upper=float(coin_hsic), evidence="exact",
                          corrected=True, details={"HSIC": str(coin_hsic)}),
        inequality(
            "off the null n times the variance of HSIC is that of the first projection, up to sampling error and 1/n",
            middle=abs(variance / float(off_null) - 1.0), upper=5.0 * math.sqrt(2.0 / draws) + 40.0 / n,
            evidence="statistical", corrected=True,
            details={"n": n, "draws": draws, "n times variance": variance, "limit": float(off_null)}),
    ]  # fmt: skip


@check("Definition 2.1")
def gaussian_null(*, quick: bool) -> list[Certificate]:
    """Check the means of n·HSIC_b and of the unbiased form for the Gaussian law at ρ = 0."""
    n, draws = 64, 500 if quick else 4000
    z, s = GaussianPair(0.0).sample(n, random_state=torch.Generator().manual_seed(22), batch=(draws,))
    kernel = Gaussian(1.0)
    expected = GaussianPair(0.0).null_mean(kernel, kernel, n=n)
    certificates = []
    for estimator, factor, target in (("biased", n, expected), ("unbiased", 1, 0.0)):
        values = factor * hsic(z, s, kernel_z=kernel, kernel_s=kernel, estimator=estimator)
        certificates.append(
            inequality(f"Gaussian law at independence: mean of the {estimator} estimator against its exact value",
                       middle=abs(values.mean().item() - target), upper=4.0 * values.std().item() / math.sqrt(draws),
                       evidence="statistical",
                       details={"n": n, "draws": draws, "mean": values.mean().item(), "exact": target})
        )  # fmt: skip
    return certificates
