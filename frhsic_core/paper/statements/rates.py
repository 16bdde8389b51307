"""Rates of convergence against exact truths, and where the estimator of HSIC is degenerate.

The paper's synthetic study takes each estimator's value at a large sample as the truth. For the
Gaussian law the truth is known (:class:`frhsic_core.laws.GaussianPair`), and then the two
estimators differ. HSIC converges to HSIC at root-n. EIPM at a fixed smoothing bandwidth also
converges at root-n, but to the wrong number. The rate n^(−2/5) belongs to γ_n ∝ n^(−1/5), where the
smoothing bias is of order γ_n². With γ_n ∝ n^(−1/3) the bias is smaller than the sampling error,
and off the null EIPM converges at root-n to the right number.

A slope certificate names the rival exponent too: its interval has to contain one and to exclude the
other. An interval that contains both is inconclusive.

The paper calls HSIC's estimator a non-degenerate V-statistic. √n(HSIC_n − HSIC) has a normal limit
with variance 4·Var h₁, h₁(z, s) = E[k̃(Z, z)·l̃(S, s)]. The estimator is degenerate where h₁ is
constant. At Z ⟂ S, the target of training, h₁ is zero everywhere. It can also be constant under
dependence: for Z = S a fair coin the symmetry of the two values makes h₁ constant, as it must be
where HSIC is largest.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pandas as pd
from scipy import stats

from frhsic_core.kernels import Gaussian
from frhsic_core.laws import GaussianPair
from frhsic_core.paper.statements import Certificate, check, equality, inequality, strict_inequality
from frhsic_core.paper.statements.concentration import drawn_suprema
from frhsic_core.paper.statements.disintegration import Exact, exact_hsic, power_gram
from frhsic_core.paper.stored import stored_rows

LAW = GaussianPair(0.5)
KERNEL = Gaussian(1.0)
ROOT_N = Fraction(-1, 2)
SMOOTHED = Fraction(-2, 5)  # of EIPM at a bandwidth of order n^(−1/5)
CONFIDENCE = 0.99  # of slope intervals

SlopeInterval = tuple[float, tuple[float, float]]  # a slope with its interval


def rmse_slope(sizes: np.ndarray, errors: np.ndarray) -> SlopeInterval:
    """Return the slope of the log of the root mean squared error on log n, with an interval.

    The mean square at each n has a relative standard error (delta method for its logarithm); the
    slope is the weighted least-squares one, its variance the weighted one, no line being assumed
    beyond that. Independent replications at each n are needed.

    Parameters
    ----------
    sizes : ndarray
        Sample sizes, ``(k,)``.
    errors : ndarray
        Errors, ``(k, replications)``.

    Returns
    -------
    slope : float
    interval : (float, float)

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> sizes = np.array([10.0, 100.0, 1000.0])
    >>> slope, (low, high) = rmse_slope(sizes, rng.normal(size=(3, 4000)) * sizes[:, None] ** -0.4)
    >>> low < -0.4 < high and high - low < 0.05
    True
    """
    replications = errors.shape[1]
    squares = errors**2
    means = squares.mean(1)
    # One over the variance of the logarithm of each mean square.
    weights = replications * (means / squares.std(1, ddof=1)) ** 2
    log_errors = 0.5 * np.log(means)
    line, covariance = np.polyfit(np.log(sizes), log_errors, 1, w=np.sqrt(weights), cov="unscaled")
    slope = float(line[0])
    # Half, since the logarithm of the error is half of that of its square.
    standard_error = 0.5 * math.sqrt(covariance[0, 0])
    reach = standard_error * float(stats.norm.isf((1.0 - CONFIDENCE) / 2.0))
    return slope, (slope - reach, slope + reach)


def slope_certificate(
    claim: str,
    found: SlopeInterval,
    *,
    rate: float,
    rival: float,
    **options: Any,
) -> Certificate:
    """Certify that the interval of a slope contains ``rate`` and not ``rival``.

    If it contains both, the certificate is inconclusive.

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
    details = {
        "slope": slope,
        "interval": [low, high],
        "rival": rival,
        **options.pop("details", {}),
    }
    upper = high
    if low <= rate <= high and low <= rival <= high:
        upper = math.nan  # inconclusive
    return inequality(claim, lower=low, middle=rate, upper=upper, details=details, **options)


@check("Corollary 5.3")
def smoothing_bias() -> list[Certificate]:
    """Check EIPM at γ_n = n^(−1/5): the exact bias |EIPM(γ_n) − E[MMD]| falls like n^(−2/5)."""
    truth = LAW.expected_mmd(KERNEL)
    n, larger = 1e10, 1e12
    bias = abs(LAW.eipm_limit(KERNEL, bandwidth=n**-0.2) - truth)
    smaller_bias = abs(LAW.eipm_limit(KERNEL, bandwidth=larger**-0.2) - truth)
    slope = math.log(smaller_bias / bias) / math.log(larger / n)
    return [
        inequality(
            "EIPM at a bandwidth of order n^(-1/5): "
            "the exact smoothing bias has log-log slope -2/5",
            middle=abs(slope + 0.4),
            upper=1e-3,
            evidence="exact",
            corrected=True,
            details={"slope": slope},
        )
    ]


def errors_by_size(
    rows: pd.DataFrame, estimator: str, target: float
) -> tuple[np.ndarray, np.ndarray]:
    """Return the sample sizes of a stored study, and the errors ``(sizes, replications)``."""
    table = rows.pivot(index="n", columns="replicate", values=estimator)
    return table.index.to_numpy(float), table.to_numpy() - target


def stored_rate(
    what: str,
    found: tuple[np.ndarray, np.ndarray],
    *,
    rate: Fraction = ROOT_N,
    rival: Fraction = SMOOTHED,
    corrected: bool = True,
) -> Certificate:
    """Certify the rate of an estimator from its errors at several sample sizes."""
    sizes, errors = found
    return slope_certificate(
        f"{what}: the interval of the log-log slope of the error contains {rate} and not {rival}",
        rmse_slope(sizes, errors),
        rate=float(rate),
        rival=float(rival),
        evidence="statistical",
        corrected=corrected,
        details={"replications": errors.shape[1], "sizes": [int(n) for n in sizes]},
    )


@check("Corollary 5.3")
def stored_samples() -> list[Certificate]:
    """Check the rates of HSIC and EIPM on stored samples of the Gaussian law off the null.

    The study is ``frhsic run convergence``. Its part ``exact`` has HSIC and EIPM at the paper's
    bandwidth one, its part ``bandwidth`` has EIPM at two bandwidths that shrink. Without a book
    there are no stored samples, and no certificate.
    """
    try:
        rows = stored_rows("convergence")
    except FileNotFoundError:
        return []
    truth = LAW.expected_mmd(KERNEL)
    limit = LAW.eipm_limit(KERNEL, bandwidth=1.0)
    # Below 200 rows, the bias of biased HSIC is of the size of its error.
    fixed = rows.query("part == 'exact' and n >= 200")
    shrinking = rows.query(f"part == 'bandwidth' and rho == {LAW.rho}")
    details = {"limit": limit, "truth": truth}

    _, at_one = errors_by_size(fixed, "eipm_1", limit)
    largest_samples = at_one[-1]
    bias = float(largest_samples.mean())
    standard_error = largest_samples.std(ddof=1) / math.sqrt(len(largest_samples))
    certificates = [
        inequality(
            "text: EIPM at the fixed bandwidth 1.0 converges to its population value E[MMD]",
            middle=abs(bias + limit - truth),
            upper=4.0 * standard_error,
            evidence="statistical",
            details=details,
        ),
        inequality(
            "EIPM at the fixed bandwidth 1.0 has the mean of the smoothed criterion, "
            "up to four standard errors",
            middle=abs(bias),
            upper=4.0 * standard_error,
            evidence="statistical",
            corrected=True,
            details=details,
        ),
    ]
    hsic = errors_by_size(fixed, "hsic_biased", LAW.hsic(KERNEL, KERNEL))
    smoothed = errors_by_size(fixed, "eipm_1", limit)
    third = errors_by_size(shrinking, "eipm_third", truth)
    fifth = errors_by_size(shrinking, "eipm_n", truth)
    certificates += [
        stored_rate("HSIC of a single encoder, off the null", hsic, corrected=False),
        stored_rate("EIPM at the fixed bandwidth 1.0 against the smoothed criterion", smoothed),
        stored_rate("EIPM at the bandwidth n^(-1/3), off the null", third),
        stored_rate(
            "EIPM at the bandwidth n^(-1/5), off the null", fifth, rate=SMOOTHED, rival=ROOT_N
        ),
    ]
    return certificates


@check("Corollary 5.3")
def root_n() -> list[Certificate]:
    """Check Corollary 5.3 for all encoders at once: the slope of a bound on the supremum."""
    sizes = np.array([1e3, 1e4, 1e5, 1e6])
    draws = 1000
    found = []
    for seed, n in enumerate(sizes, start=53):
        found.append(drawn_suprema(int(n), draws, random_state=seed).numpy())
    suprema = np.stack(found)
    return [
        slope_certificate(
            "any encoders at all on finitely many inputs: "
            "the interval of the log-log slope of the supremum contains -1/2 and not -2/5",
            rmse_slope(sizes, suprema),
            rate=float(ROOT_N),
            rival=float(SMOOTHED),
            evidence="statistical",
            details={"draws": draws, "mean suprema": suprema.mean(1).tolist()},
        )
    ]


def projection_variance(joint: Exact, gram_z: Exact, gram_s: Exact) -> Fraction:
    """Return 4·Var h₁, the variance of the normal limit of √n(HSIC_n − HSIC).

    It is zero where the estimator is degenerate.
    """
    p_z = joint.sum(1)
    p_s = joint.sum(0)
    difference = joint - np.outer(p_z, p_s)
    h = centered_under(gram_z, p_z) @ difference @ centered_under(gram_s, p_s)
    mean = (joint * h).sum()
    mean_square = (joint * h * h).sum()
    return 4 * (mean_square - mean * mean)


def centered_under(gram: Exact, probabilities: Exact) -> Exact:
    """Return a Gram matrix of features whose mean under the probabilities is zero."""
    rows_centered = gram - (gram @ probabilities)[:, None]
    return rows_centered - probabilities @ rows_centered


GRAM_Z = power_gram(2)
GRAM_S = power_gram(2, ratio=Fraction(1, 4))
INDEPENDENT = np.outer([Fraction(1, 3), Fraction(2, 3)], [Fraction(1, 4), Fraction(3, 4)])
DEPENDENT = np.array([[Fraction(1, 2), Fraction(1, 8)], [Fraction(1, 8), Fraction(1, 4)]])
COIN = np.eye(2, dtype=int) * Fraction(1, 2)  # Z = S a fair coin


@check("Definition 2.1")
def degeneracy() -> list[Certificate]:
    """Check the first projection at independence, for a fair coin Z = S, and for another law.

    It is zero for the first two and positive for the third.
    """
    at_null = projection_variance(INDEPENDENT, GRAM_Z, GRAM_S)
    off_null = projection_variance(DEPENDENT, GRAM_Z, GRAM_S)
    at_maximum = projection_variance(COIN, GRAM_Z, GRAM_S)
    coin_hsic = exact_hsic(COIN, GRAM_Z, GRAM_S)
    return [
        strict_inequality(
            "text: the estimator is a non-degenerate V-statistic; "
            "variance of its first projection at independence",
            middle=0.0,
            upper=float(at_null),
            evidence="exact",
            details={"variance": str(at_null)},
        ),
        strict_inequality(
            "a dependent law where the estimator is non-degenerate; "
            "variance of its first projection",
            middle=0.0,
            upper=float(off_null),
            evidence="exact",
            corrected=True,
            details={"variance": str(off_null)},
        ),
        equality(
            "a dependent law where the estimator is degenerate, Z = S a fair coin; "
            "variance of its first projection",
            left=float(at_maximum),
            right=0.0,
            tolerance=0.0,
            evidence="exact",
            corrected=True,
            details={"HSIC": str(coin_hsic)},
        ),
        strict_inequality(
            "the same coin: HSIC is positive",
            middle=0.0,
            upper=float(coin_hsic),
            evidence="exact",
            corrected=True,
            details={"HSIC": str(coin_hsic)},
        ),
    ]
