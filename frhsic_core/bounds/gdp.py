"""The bound on GDP: McDiarmid's inequality, or Bernstein's with the variance of the scores."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from scipy.stats import beta

from frhsic_core._arrays import ArrayLike, same_kind
from frhsic_core.bounds.columns import read_scores
from frhsic_core.bounds.result import FIXED, INDEPENDENT, DependenceBound, check_delta

# The four errors that the variance bound adds up, as shares of its δ: the mean, the standard deviation of the scores,
# and the two small means. The first decides the size of the bound, and the others enter at order 1/n.
SHARES = (0.7, 0.1, 0.1, 0.1)


@same_kind
def gdp_bound(
    y_pred: ArrayLike,
    *,
    sensitive_features: ArrayLike,
    delta: float = 0.05,
    groups: Sequence[float] | None = None,
    variation: float | None = None,
    bounds: tuple[float, float] = (0.0, 1.0),
    candidates: int = 1,
) -> DependenceBound:
    r"""Return an upper bound on GDP = E|E[f | S] − E f| that holds with probability 1 − ``delta``.

    .. math:: \mathrm{GDP} \le \tfrac{n}{n-1}\mathrm{GDP}_n + \sqrt{2\log(1/\delta)/n},\qquad
        \mathrm{GDP}_n = \sum_g \hat\pi_g\,|\bar f_g - \bar f|

    The groups are the distinct values of S, of which there may be any number, or the bins between fixed edges. The
    smaller of this bound and the one with the variance of the scores is returned, each at δ/2. For a continuous S no
    bound without an assumption can be useful. If s ↦ E[f | S = s] has total variation of at most V, then GDP is at most
    that of the bins plus V/2 times the largest mass of a bin. V ≤ 1 if the mean score only rises or only falls. O(n
    log n) time.

    No weights and no clusters: the proof needs independent rows that count alike. Of people who belong together, such
    as a household, keep one at random (``table.groupby("household").sample(1)``).

    Parameters
    ----------
    y_pred : array_like
        ``(n,)``, scores of a model that did not see these rows.
    sensitive_features : array_like
        ``(n,)``, the attribute.
    delta : float
        Largest probability that the bound is too small.
    groups : sequence of float, optional
        Inner edges of bins of S, fixed before the rows were seen. Without them each value of S is a group.
    variation : float, optional
        V, the assumed total variation of the mean score along S, in the units of the score. Needs ``groups``. Without
        it, the bound is one for GDP over the groups.
    bounds : tuple of float
        Smallest and largest possible score.
    candidates : int
        Number of models, fixed in advance, from which one was chosen with the help of these rows.

    Returns
    -------
    DependenceBound
        The bound and what it assumes.

    Examples
    --------
    >>> age = np.repeat(np.arange(20, 70), 40)
    >>> found = gdp_bound(np.where(age > 45, 0.6, 0.4), sensitive_features=age)
    >>> round(found.estimate, 3), round(found.bound, 3)
    (0.1, 0.127)
    """
    f, groups_of, unit = read_scores(y_pred, sensitive_features, groups, bounds)
    n = len(f)
    check_delta(delta, candidates)
    if variation is not None and groups is None:
        raise ValueError(
            "variation is given without groups: pass the inner edges of bins that were fixed in advance."
        )
    if variation is not None and not 0.0 <= variation < math.inf:
        raise ValueError(f"variation is {variation}: it must be a finite number of at least 0.")
    share = delta / candidates if variation is None else 0.8 * delta / candidates
    counts = np.bincount(groups_of, minlength=0 if groups is None else len(groups) + 1)
    means = np.bincount(groups_of, f, len(counts)) / np.maximum(counts, 1)
    estimate = float((counts / n * np.abs(means - f.mean())).sum())
    slacks = {
        "difference": math.sqrt(2.0 * math.log(2.0 / share) / n) + estimate / (n - 1),
        "variance": variance_slack(f, share / 2.0),
    }
    method = min(slacks, key=lambda name: slacks[name])
    slack = unit * slacks[method]
    floor = unit * estimate
    values = int((counts > 0).sum())
    assumptions = [
        INDEPENDENT,
        FIXED.format(what="scores were" if candidates == 1 else "candidate models were"),
    ]
    if groups is None:
        measure = f"GDP over the {values} values of the attribute"
    else:
        measure = f"GDP over {len(groups) + 1} bins of the attribute"
        assumptions.append("The edges of the bins were fixed before these rows were seen.")
    if variation is not None:
        # With probability 1 − δ/5 no bin has more mass than the largest of these exact (Clopper–Pearson) limits.
        limits = beta.ppf(1.0 - 0.2 * delta / len(counts), counts + 1, np.maximum(n - counts, 0.5))
        largest = float(np.where(counts < n, limits, 1.0).max())
        floor += 0.5 * largest * variation
        measure = "GDP"
        assumptions.append(
            f"Along the attribute, the mean score has a total variation of at most {variation:g}."
        )
    # |E[f | S] − E f| averages to at most half of the range of the scores.
    bound = min(floor + slack, 0.5 * unit)
    return DependenceBound(
        bound,
        unit * estimate,
        measure,
        delta,
        n,
        candidates,
        method,
        tuple(assumptions),
        slack,
        floor,
        values,
    )


def variance_slack(f: np.ndarray, delta: float) -> float:
    r"""Return what the variance bound adds to GDP_n, for scores in [0, 1].

    With μ = E f, ν = E ε and X = (f − μ)(ε − ν), the sample covariance is mean(X) − (f̄ − μ)(ε̄ − ν), and E X = GDP.

    .. math:: \sqrt{2v\log(1/\delta_1)/n} + \tfrac{2}{3n}\log(1/\delta_1)
        + \tfrac1n\sqrt{\log(2/\delta_3)\log(2/\delta_4)},
        \qquad \sqrt v = \min\big(1,\; 2\,\mathrm{sd}_n(f) + 2\sqrt{2\log(1/\delta_2)/(n-1)}\big)

    The first two terms are Bernstein's inequality: X has a range of at most 2, and Var X ≤ min(1, 4 Var f). √v is the
    bound of Maurer and Pontil (2009) for the standard deviation. The last term is Hoeffding's inequality for f̄ and ε̄.

    Examples
    --------
    >>> round(variance_slack(np.tile([0.3, 0.7], 5000), 0.05), 4)
    0.0129
    """
    n = len(f)
    one, two, three, four = (math.log(1.0 / (share * delta)) for share in SHARES)
    spread = min(1.0, 2.0 * float(f.std(ddof=1)) + 2.0 * math.sqrt(2.0 * two / (n - 1)))
    product = math.sqrt((three + math.log(2.0)) * (four + math.log(2.0))) / n
    return spread * math.sqrt(2.0 * one / n) + 2.0 * one / (3.0 * n) + product
