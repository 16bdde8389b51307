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
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import torch
from scipy import stats

from frhsic_core.conditional import eipm
from frhsic_core.kernels import Gaussian
from frhsic_core.laws import GaussianPair
from frhsic_core.paper.runs.stored import stored_rows
from frhsic_core.paper.statements import Certificate, check, equality, inequality, strict_inequality
from frhsic_core.paper.statements.disintegration import Exact, exact_hsic, power_gram, rational_hsic

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
def smoothing_bias() -> list[Certificate]:
    """Check EIPM at γ_n ∝ n^(−1/5): the exact bias falls like n^(−2/5)."""
    return [
        inequality("EIPM at a bandwidth of order n^(-1/5): the exact smoothing bias has log-log slope -2/5",
                   middle=abs(smoothing_bias_slope(1e10, 1e12) + 0.4), upper=1e-3, evidence="exact", corrected=True,
                   details={"slope at practical sizes": smoothing_bias_slope(1e2, 1e4)})
    ]  # fmt: skip


@check("Corollary 5.3")
def stored_samples() -> list[Certificate]:
    """Check the rates of HSIC and EIPM on stored samples of the Gaussian law off the null; none without a book.

    The study is ``frhsic run convergence``. Its part ``exact`` has HSIC and EIPM at two fixed bandwidths, its part
    ``bandwidth`` has EIPM at two bandwidths that shrink.
    """
    try:
        rows = stored_rows("convergence")
    except FileNotFoundError:
        return []
    truth, hsic_truth = LAW.expected_mmd(KERNEL), LAW.hsic(KERNEL, KERNEL)

    def estimates(name: str, chosen: str) -> tuple[np.ndarray, np.ndarray, dict[str, Any]]:
        table = rows.query(chosen).pivot(index="n", columns="replicate", values=name)
        sizes = table.index.to_numpy(float)
        return sizes, table.to_numpy(), {"replications": table.shape[1], "sizes": [int(n) for n in sizes]}

    exact = "part == 'exact' and n >= 200"  # below, the bias of biased HSIC is of the size of its error
    sizes, values, details = estimates("hsic_biased", exact)
    certificates = [
        slope_certificate(
            "a single encoder: the interval of HSIC's log-log slope contains -1/2 and excludes -2/5, Gaussian law off "
            "the null", loglog_slope(sizes, np.abs(values - hsic_truth), confidence=CONFIDENCE), rate=-0.5, rival=-0.4,
            evidence="statistical", assumptions=("rho = .5", "unit bandwidths", "truth in closed form"),
            details={"truth": hsic_truth, **details})
    ]  # fmt: skip
    for bandwidth in (0.5, 1.0):
        sizes, values, details = estimates(f"eipm_{bandwidth:g}", exact)
        limit, mean = LAW.eipm_limit(KERNEL, bandwidth=bandwidth), float(values[-1].mean())
        reach = 4.0 * values[-1].std(ddof=1) / math.sqrt(values.shape[1])
        details |= {"limit": limit, "truth": truth, "mean of the estimates": mean}
        details["slope against the truth"] = loglog_slope(sizes, np.abs(values - truth))[0]
        certificates += [
            inequality(f"text: EIPM at the fixed bandwidth {bandwidth} converges to its population value E[MMD]",
                       middle=abs(mean - truth), upper=reach, evidence="statistical", details=details),
            inequality(
                f"EIPM at the fixed bandwidth {bandwidth} has the mean of the smoothed criterion, up to four standard "
                "errors", middle=abs(mean - limit), upper=reach, evidence="statistical", corrected=True,
                details=details),
            slope_certificate(
                f"EIPM at the fixed bandwidth {bandwidth} converges to the smoothed criterion; the slope interval "
                "contains -1/2 and excludes -2/5",
                loglog_slope(sizes, np.abs(values - limit), confidence=CONFIDENCE), rate=-0.5, rival=-0.4,
                evidence="statistical", corrected=True, details=details),
        ]  # fmt: skip
    sizes, values, details = estimates("eipm_n", exact)
    slope, (low, high) = loglog_slope(sizes, np.abs(values - truth))
    certificates.append(
        inequality(
            "EIPM at a bandwidth of order n^(-1/5): the error against the truth falls (upper end of its slope)",
            middle=high, upper=0.0, evidence="statistical", corrected=True,
            details={"slope": slope, "interval": [low, high], **details})
    )  # fmt: skip
    for name, rule, rate, rival in (("eipm_third", "n^(-1/3)", -0.5, -0.4), ("eipm_n", "n^(-1/5)", -0.4, -0.5)):
        sizes, values, details = estimates(name, f"part == 'bandwidth' and rho == {LAW.rho}")
        certificates.append(
            slope_certificate(
                f"EIPM at the bandwidth {rule}, off the null: the interval of the slope of its error contains "
                f"{Fraction(rate).limit_denominator(9)} and excludes {Fraction(rival).limit_denominator(9)}",
                rmse_slope(sizes, values - truth), rate=rate, rival=rival, evidence="statistical", corrected=True,
                details=details)
        )  # fmt: skip
    return certificates


def smoothing_weights(s: torch.Tensor, bandwidth: float) -> torch.Tensor:
    """Return the weights w_ij of row j for the conditional law at anchor i, ``(..., n, n)``; a row sums to one."""
    weights = Gaussian(bandwidth)(s.unsqueeze(-1)).clone()
    weights.diagonal(dim1=-2, dim2=-1).zero_()
    return weights / weights.sum(-1, keepdim=True)


@check("Corollary 5.3")
def moved_eipm(*, quick: bool) -> list[Certificate]:
    """Check the step that bounds the variance of EIPM: what one row changes, by the weights that it has."""
    generator, ratios = torch.Generator().manual_seed(22), []
    for n in (3, 5, 20):
        z, s = torch.randn(2, 200 if quick else 2000, n + 1, generator=generator, dtype=torch.float64)
        for bandwidth in (0.05, 0.3, 1.0):
            kept = [slice(0, n), slice(1, n + 1)]  # the last of n + 1 rows takes the place of the first
            values = [eipm(z[:, one].unsqueeze(-1), s[:, one], kernel_z=KERNEL, bandwidth=bandwidth) for one in kept]
            first, last = (
                smoothing_weights(s[:, one], bandwidth).sum(-2)[:, i] for one, i in zip(kept, (0, -1), strict=True)
            )
            ratios.append(n * (values[0] - values[1]).abs() / (math.sqrt(2.0) * (2.0 + first + last)))
    return [
        inequality(
            "one row changes n times EIPM by at most root 2 times (2 + its old and its new share of all weights)",
            middle=torch.cat(ratios).max().item(), upper=1.0, evidence="deterministic", corrected=True,
            details={"instances": sum(map(len, ratios))})
    ]  # fmt: skip


def null_mean(mean_k: Any, mean_l: Any, *, n: int) -> Any:
    """Return (1 − μ_K)(1 − μ_L)(1 − 1/n), the mean of n·HSIC_b at independence if k(x, x) = 1.

    Examples
    --------
    >>> null_mean(Fraction(1, 2), Fraction(1, 2), n=2)
    Fraction(1, 8)
    """
    return (1 - mean_k) * (1 - mean_l) * (1 - Fraction(1, n))


def rational_unbiased_hsic(gram_z: Exact, gram_s: Exact) -> Fraction:
    """Return unbiased HSIC (Song et al., 2012) in rational arithmetic, O(n²), at least four rows."""
    n = len(gram_z)
    k, l = (gram * (1 - np.eye(n, dtype=int)) for gram in (gram_z, gram_s))
    cross = k.sum(1) @ l.sum(1)
    return ((k * l).sum() + k.sum() * l.sum() / ((n - 1) * (n - 2)) - 2 * cross / (n - 2)) / (n * (n - 3))


def exact_mean(
    statistic: Callable[[Exact, Exact], Fraction], joint: Exact, gram_z: Exact, gram_s: Exact, *, n: int
) -> Fraction:
    """Return the mean of a statistic over all samples of n rows from a law, by enumeration: (|Z|·|S|)^n terms."""
    total = Fraction(0)
    for cells in itertools.product(np.ndindex(*joint.shape), repeat=n):
        z, s = np.array(cells).T
        total += joint[z, s].prod() * statistic(gram_z[np.ix_(z, z)], gram_s[np.ix_(s, s)])
    return total


def projection_variance(joint: Exact, gram_z: Exact, gram_s: Exact) -> Fraction:
    """Return 4·Var h₁, the variance of the normal limit of √n(HSIC_n − HSIC); zero where that is degenerate."""
    p_z, p_s = joint.sum(1), joint.sum(0)
    k, l = gram_z - (gram_z @ p_z)[:, None], gram_s - (gram_s @ p_s)[:, None]
    h = (k - p_z @ k) @ (joint - np.outer(p_z, p_s)) @ (l - p_s @ l)
    mean = (joint * h).sum()
    return 4 * ((joint * h * h).sum() - mean * mean)


GRAM_Z, GRAM_S = power_gram(2), power_gram(2, ratio=Fraction(1, 4))
P_Z, P_S = np.array([Fraction(1, 3), Fraction(2, 3)]), np.array([Fraction(1, 4), Fraction(3, 4)])
DEPENDENT = np.array([[Fraction(1, 2), Fraction(1, 8)], [Fraction(1, 8), Fraction(1, 4)]])
COIN = np.eye(2, dtype=int) * Fraction(1, 2)  # Z = S a fair coin


@check("Definition 2.1")
def exact_null_means() -> list[Certificate]:
    """Check the means of both estimators on a two-by-two law, all samples enumerated."""
    n, law = 4, (np.outer(P_Z, P_S), GRAM_Z, GRAM_S)
    biased = n * exact_mean(rational_hsic, *law, n=n)
    formula = null_mean(P_Z @ GRAM_Z @ P_Z, P_S @ GRAM_S @ P_S, n=n)
    unbiased = exact_mean(rational_unbiased_hsic, *law, n=n)
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
    at_null, off_null, at_maximum = (
        projection_variance(joint, GRAM_Z, GRAM_S) for joint in (np.outer(P_Z, P_S), DEPENDENT, COIN)
    )
    coin_hsic = exact_hsic(COIN, GRAM_Z, GRAM_S)
    n, draws = 4000, 2000 if quick else 20_000
    rng = np.random.default_rng(21)
    counts = rng.multinomial(n, DEPENDENT.astype(float).ravel(), size=draws).reshape(draws, 2, 2) / n
    difference = counts - counts.sum(2, keepdims=True) * counts.sum(1, keepdims=True)
    k, l = GRAM_Z.astype(float), GRAM_S.astype(float)
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
