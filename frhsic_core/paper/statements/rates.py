"""Rates of convergence against exact truths, and where the estimator of HSIC is degenerate.

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
values makes h₁ constant, as it must be where HSIC is largest.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
from scipy import stats

from frhsic_core.kernels import Gaussian
from frhsic_core.laws import GaussianPair
from frhsic_core.paper.runs.stored import stored_rows
from frhsic_core.paper.statements import Certificate, check, equality, inequality, strict_inequality
from frhsic_core.paper.statements.concentration import drawn_suprema
from frhsic_core.paper.statements.disintegration import Exact, exact_hsic, power_gram

LAW, KERNEL = GaussianPair(0.5), Gaussian(1.0)
CONFIDENCE = 0.99  # of slope intervals


def rmse_slope(sizes: np.ndarray, errors: np.ndarray) -> tuple[float, tuple[float, float]]:
    """Return the slope of the logarithm of the root mean squared error on log n, with a normal interval.

    The mean square at each n has a relative standard error (delta method for its logarithm); the slope is the weighted
    least-squares one, its variance the weighted one, no line being assumed beyond that. Independent replications at
    each n are needed.

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
    squares = errors**2
    means = squares.mean(1)
    weight = errors.shape[1] * (means / squares.std(1, ddof=1)) ** 2
    line, covariance = np.polyfit(
        np.log(sizes), 0.5 * np.log(means), 1, w=np.sqrt(weight), cov="unscaled"
    )
    slope = float(line[0])
    reach = 0.5 * float(stats.norm.isf((1.0 - CONFIDENCE) / 2.0)) * math.sqrt(covariance[0, 0])
    return slope, (slope - reach, slope + reach)


def slope_certificate(
    claim: str,
    found: tuple[float, tuple[float, float]],
    *,
    rate: float,
    rival: float,
    **options: Any,
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
    details = {
        "slope": slope,
        "interval": [low, high],
        "rival": rival,
        **options.pop("details", {}),
    }
    return inequality(
        claim, lower=low, middle=rate, upper=math.nan if both else high, details=details, **options
    )


@check("Corollary 5.3")
def smoothing_bias() -> list[Certificate]:
    """Check EIPM at γ_n = n^(−1/5): the exact bias |EIPM(γ_n) − E[MMD]| falls like n^(−2/5)."""
    truth = LAW.expected_mmd(KERNEL)
    biases = [abs(LAW.eipm_limit(KERNEL, bandwidth=n**-0.2) - truth) for n in (1e10, 1e12)]
    slope = math.log(biases[1] / biases[0]) / math.log(100.0)
    return [
        inequality("EIPM at a bandwidth of order n^(-1/5): the exact smoothing bias has log-log slope -2/5",
                   middle=abs(slope + 0.4), upper=1e-3, evidence="exact", corrected=True, details={"slope": slope})
    ]  # fmt: skip


@check("Corollary 5.3")
def stored_samples() -> list[Certificate]:
    """Check the rates of HSIC and EIPM on stored samples of the Gaussian law off the null; none without a book.

    The study is ``frhsic run convergence``. Its part ``exact`` has HSIC and EIPM at the paper's bandwidth one, its part
    ``bandwidth`` has EIPM at two bandwidths that shrink.
    """
    try:
        rows = stored_rows("convergence")
    except FileNotFoundError:
        return []
    truth, limit = LAW.expected_mmd(KERNEL), LAW.eipm_limit(KERNEL, bandwidth=1.0)
    exact = (
        "part == 'exact' and n >= 200"  # below, the bias of biased HSIC is of the size of its error
    )
    shrinking = f"part == 'bandwidth' and rho == {LAW.rho}"

    def errors(name: str, chosen: str, target: float) -> tuple[np.ndarray, np.ndarray]:
        table = rows.query(chosen).pivot(index="n", columns="replicate", values=name)
        return table.index.to_numpy(float), table.to_numpy() - target

    sizes, at_one = errors("eipm_1", exact, limit)
    bias, reach = (
        float(at_one[-1].mean()),
        4.0 * at_one[-1].std(ddof=1) / math.sqrt(at_one.shape[1]),
    )
    options: Any = {"evidence": "statistical", "details": {"limit": limit, "truth": truth}}
    certificates = [
        inequality("text: EIPM at the fixed bandwidth 1.0 converges to its population value E[MMD]",
                   middle=abs(bias + limit - truth), upper=reach, **options),
        inequality("EIPM at the fixed bandwidth 1.0 has the mean of the smoothed criterion, up to four standard errors",
                   middle=abs(bias), upper=reach, corrected=True, **options),
    ]  # fmt: skip
    claim = "the interval of the log-log slope of the error contains"
    for name, target, chosen, rate, rival, what in (
        (
            "hsic_biased",
            LAW.hsic(KERNEL, KERNEL),
            exact,
            -0.5,
            -0.4,
            "HSIC of a single encoder, off the null",
        ),
        (
            "eipm_1",
            limit,
            exact,
            -0.5,
            -0.4,
            "EIPM at the fixed bandwidth 1.0 against the smoothed criterion",
        ),
        (
            "eipm_third",
            truth,
            shrinking,
            -0.5,
            -0.4,
            "EIPM at the bandwidth n^(-1/3), off the null",
        ),
        ("eipm_n", truth, shrinking, -0.4, -0.5, "EIPM at the bandwidth n^(-1/5), off the null"),
    ):
        sizes, found = errors(name, chosen, target)
        certificates.append(
            slope_certificate(
                f"{what}: {claim} {Fraction(rate).limit_denominator(9)} and not {Fraction(rival).limit_denominator(9)}",
                rmse_slope(sizes, found), rate=rate, rival=rival, evidence="statistical",
                corrected=name != "hsic_biased",
                details={"replications": found.shape[1], "sizes": [int(n) for n in sizes]})
        )  # fmt: skip
    return certificates


@check("Corollary 5.3")
def root_n() -> list[Certificate]:
    """Check Corollary 5.3 for all encoders at once: the slope against n of a bound on the supremum."""
    sizes, draws = np.array([1e3, 1e4, 1e5, 1e6]), 1000
    suprema = np.stack(
        [drawn_suprema(int(n), draws, random_state=53 + k).numpy() for k, n in enumerate(sizes)]
    )
    return [
        slope_certificate(
            "any encoders at all on finitely many inputs: the interval of the log-log slope of the supremum contains "
            "-1/2 and not -2/5", rmse_slope(sizes, suprema), rate=-0.5, rival=-0.4,
            evidence="statistical", details={"draws": draws, "mean suprema": suprema.mean(1).tolist()})
    ]  # fmt: skip


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
def degeneracy() -> list[Certificate]:
    """Check the first projection: zero at independence and for a fair coin Z = S, positive for another law."""
    at_null, off_null, at_maximum = (
        projection_variance(joint, GRAM_Z, GRAM_S)
        for joint in (np.outer(P_Z, P_S), DEPENDENT, COIN)
    )
    coin_hsic = exact_hsic(COIN, GRAM_Z, GRAM_S)
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
    ]  # fmt: skip
