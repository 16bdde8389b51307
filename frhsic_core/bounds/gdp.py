"""The bound on GDP: McDiarmid's inequality, or Bernstein's with the variance of the scores."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.stats import beta

from frhsic_core._arrays import ArrayLike, require_same_rows, same_kind
from frhsic_core._choices import one_of
from frhsic_core.bounds.columns import labels, read_scores
from frhsic_core.bounds.inequalities import (
    LARGEST_MOMENT,
    bernstein,
    bernstein_radius,
    hoeffding,
    mixture_radius,
    product_moment,
    variance_always,
    variance_once,
)
from frhsic_core.bounds.result import (
    ALWAYS,
    FIXED,
    INDEPENDENT,
    DependenceBound,
    Projection,
    check_count,
    check_delta,
)

# The four errors that the variance bound adds up, as shares of its δ: the mean, the standard
# deviation of the scores, and the two small means. The first decides the size of the bound.
SHARES = (0.8, 0.06, 0.07, 0.07)
CRITERIA = ("equal_opportunity", "equalized_odds")


@dataclass(frozen=True)
class Summary:
    """What the bounds on GDP use of a sample: GDP_n, the mean and the deviation (divisor n − 1)."""

    gdp: float
    mean: float
    deviation: float


def levels(delta: float) -> tuple[float, ...]:
    """Return log(1/δ_j) of the four errors of the variance bound."""
    return tuple(math.log(1.0 / (share * delta)) for share in SHARES)


@dataclass(frozen=True)
class Once:
    r"""The slack at one number of rows, which does not depend on the rows.

    ``difference``: :math:`\mathrm{GDP}_n/(n-1) + \sqrt{2\log(1/\delta)/n}`.

    ``variance``, with μ = E f, ν = E ε, X = (f − μ)(ε − ν) and E X = GDP: GDP_n is at least the
    sample covariance of f and ε, which is mean(X) − (f̄ − μ)(ε̄ − ν), so

    .. math:: \mathrm{GDP}-\mathrm{GDP}_n \le \sqrt{2\bar vL_1/n} + \tfrac23\sqrt{\bar m}L_1/n
        + \tfrac1n\sqrt{(L_3+\log2)(L_4+\log2)},\qquad \bar v = v(\bar V, \bar m).

    The first two terms are Bernstein's inequality for −X ≤ 2√m̄ and E X² ≤ v̄. m̄ is the square of the
    largest \|f − μ\|, from Hoeffding's inequality for f̄, and V̄ bounds Var f. The last term is
    Hoeffding's inequality for f̄ and ε̄. Whatever the scores are, v ≤ .3607.

    Which of the two is used depends on n and δ alone: the smaller one in the worst case, v = .3607.
    So the choice costs nothing.
    """

    def method(self, n: int, delta: float) -> str:
        """Return which slack is smaller if nothing is known about the scores."""
        one, _, three, four = levels(delta)
        worst = bernstein(LARGEST_MOMENT, 2.0, n, one) + small_means(n, three, four)
        return "variance" if worst < hoeffding(2.0, n, math.log(1.0 / delta)) else "difference"

    def slack(self, found: Summary, n: int, delta: float) -> float:
        """Return what the bound adds to GDP_n, for scores in [0, 1]."""
        if self.method(n, delta) == "difference":
            return float(hoeffding(2.0, n, math.log(1.0 / delta)) + found.gdp / (n - 1))
        return float(variance_slack(found.mean, found.deviation, n, delta))

    def assumption(self) -> tuple[str, ...]:
        """Return what the bound assumes beyond independent rows and fixed scores."""
        return ()


@dataclass(frozen=True)
class Always:
    """The slack for all numbers of rows at once: the same four errors, each by a mixture.

    ``rows`` decides where the bound is tight, and was fixed before the first row.
    """

    rows: int

    def method(self, n: int, delta: float) -> str:
        """Return the name of the only method."""
        return "variance"

    def slack(self, found: Summary, n: int, delta: float) -> float:
        """Return what the bound adds to GDP_n, for scores in [0, 1]."""
        return float(always_slack(found.mean, found.deviation, n, delta, rows=self.rows))

    def assumption(self) -> tuple[str, ...]:
        """Return what the bound assumes beyond independent rows and fixed scores."""
        return (ALWAYS.format(rows=self.rows),)


def small_means(n: ArrayLike, three: float, four: float) -> ArrayLike:
    """Return Hoeffding's bound on |f̄ − μ||ε̄ − ν|."""
    two_sided = math.log(2.0)
    return hoeffding(1.0, n, three + two_sided) * hoeffding(2.0, n, four + two_sided)


def variance_slack(mean: ArrayLike, deviation: ArrayLike, n: ArrayLike, delta: float) -> ArrayLike:
    """Return the slack with the variance at one number of rows; see :class:`Once`.

    Examples
    --------
    >>> f = np.tile([0.3, 0.7], 5000)
    >>> round(float(variance_slack(f.mean(), f.std(ddof=1), len(f), 0.05)), 4)
    0.0096
    """
    one, two, three, four = levels(delta)
    error = hoeffding(1.0, n, three + math.log(2.0))
    square = largest_square(mean, error)
    count = np.asarray(n, dtype=float)
    sampled = np.asarray(deviation) ** 2 * (count - 1.0) / count
    variance = variance_once(sampled, error, square, count, two)
    variance = np.minimum(variance, np.minimum(square, 0.25))
    moment = np.minimum(product_moment(variance, square), LARGEST_MOMENT)
    return bernstein(moment, 2.0 * np.sqrt(square), n, one) + small_means(n, three, four)


def always_slack(
    mean: ArrayLike, deviation: ArrayLike, n: ArrayLike, delta: float, *, rows: int
) -> ArrayLike:
    """Return the slack with the variance for all numbers of rows; see :class:`Always`.

    The two small means enter at order 1/n, where few rows matter, so they are tuned to fewer rows.

    Examples
    --------
    >>> f = np.tile([0.3, 0.7], 5000)
    >>> round(float(always_slack(f.mean(), f.std(ddof=1), len(f), 0.05, rows=10_000)), 4)
    0.0114
    """
    one, two, three, four = levels(delta)
    few = max(2, rows // 20)
    count = np.asarray(n, dtype=float)
    error = mixture_radius(1.0, count, three, rows=few)
    signs = mixture_radius(2.0, count, four, rows=few)
    square = largest_square(mean, error)
    sampled = np.asarray(deviation) ** 2 * (count - 1.0) / count
    variance = variance_always(sampled, error, square, count, two)
    variance = np.minimum(variance, np.minimum(square, 0.25))
    moment = np.minimum(product_moment(variance, square), LARGEST_MOMENT)
    return bernstein_radius(moment, 2.0, count, one, rows=rows) + error * signs


def largest_square(mean: ArrayLike, error: ArrayLike) -> np.ndarray:
    """Return an upper bound on (f − μ)² for scores in [0, 1], where μ is known up to ``error``."""
    mean = np.asarray(mean)
    return np.minimum(1.0, np.maximum(mean, 1.0 - mean) + error) ** 2


@dataclass(frozen=True)
class GapProjection:
    """The bound on GDP with another number of rows and the same estimates."""

    summary: Summary
    times: Once | Always
    delta: float
    unit: float
    shares: tuple[float, ...] = ()
    variation: float | None = None
    error: float = 0.0  # the share of δ for the masses of the bins

    def floor(self, n: int) -> float:
        """Return the part of the bound that is no slack: GDP_n, and what bins can hide."""
        estimate = self.unit * self.summary.gdp
        if self.variation is None:
            return estimate
        return estimate + 0.5 * self.variation * largest_mass(np.array(self.shares), n, self.error)

    def bound(self, n: int) -> float:
        """Return the bound at n rows. |E[f | S] − E f| averages to at most half of the range."""
        slack = self.unit * self.times.slack(self.summary, n, self.delta)
        return min(self.floor(n) + slack, 0.5 * self.unit)


@dataclass(frozen=True)
class LargestProjection:
    """The largest of several bounds, each of which has a fixed share of the rows."""

    parts: tuple[Projection, ...]
    shares: tuple[float, ...]

    def bound(self, n: int) -> float:
        """Return the largest bound at n rows in all."""
        pairs = zip(self.parts, self.shares, strict=True)
        return max(part.bound(max(2, math.floor(share * n))) for part, share in pairs)


def largest_mass(shares: np.ndarray, n: int, error: float) -> float:
    """Return a number that no bin's mass exceeds, but with probability ``error``.

    The largest of the exact (Clopper–Pearson) limits, which share the probability.
    """
    counts = shares * n
    limits = beta.ppf(1.0 - error / len(shares), counts + 1.0, np.maximum(n - counts, 0.5))
    return float(np.where(shares < 1.0, limits, 1.0).max())


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
    y_true: ArrayLike | None = None,
    criterion: str = "equal_opportunity",
    anytime: bool = False,
    planned_rows: int = 10_000,
) -> DependenceBound:
    r"""Return an upper bound on GDP = E|E[f | S] − E f| that holds with probability 1 − ``delta``.

    .. math:: \mathrm{GDP} \le \mathrm{GDP}_n + \sqrt{2\bar v\log(1/\delta_1)/n} + O(1/n),\qquad
        \mathrm{GDP}_n = \sum_g \hat\pi_g\,|\bar f_g - \bar f|

    The groups are the distinct values of S, of which there may be any number, or the bins between
    fixed edges. v̄ bounds the second moment of the product of the score and a sign; it is at most
    .3607, and less where scores vary little. With few rows, the bound of McDiarmid's inequality,
    n/(n−1)·GDP_n + √(2 log(1/δ)/n), is smaller; which of the two is used depends on n and δ alone.
    For a continuous S no bound without an assumption can be useful. If s ↦ E[f | S = s] has total
    variation of at most V, then GDP is at most that of the bins plus V/2 times the largest mass of a
    bin. V ≤ 1 if the mean score only rises or only falls. O(n log n) time.

    No weights and no clusters: the proof needs independent rows that count alike. Of people who
    belong together, such as a household, keep one at random
    (``table.groupby("household").sample(1)``).

    Parameters
    ----------
    y_pred : array_like
        ``(n,)``, scores of a model that did not see these rows.
    sensitive_features : array_like
        ``(n,)``, the attribute.
    delta : float
        Largest probability that the bound is too small.
    groups : sequence of float, optional
        Inner edges of bins of S, fixed before the rows were seen. Without them each value of S is a
        group.
    variation : float, optional
        V, the assumed total variation of the mean score along S, in the units of the score. Needs
        ``groups``. Without it, the bound is one for GDP over the groups.
    bounds : tuple of float
        Smallest and largest possible score.
    candidates : int
        Number of models, fixed in advance, from which one was chosen with the help of these rows.
    y_true : array_like, optional
        ``(n,)``, labels with two values, of which the larger counts as positive. The bound is then
        one for the people of one label, as ``criterion`` says.
    criterion : {"equal_opportunity", "equalized_odds"}
        With ``y_true``: GDP among the positive rows, or the larger one of both labels, each of which
        gets half of ``delta``.
    anytime : bool
        Whether the bound holds for all n at once, so that you may look as often as you like and stop
        when you like. The rows must come in a fixed order, such as that of their dates.
    planned_rows : int
        With ``anytime``: the number of rows for which the bound is tightest, fixed before the first
        row. At other numbers it holds as well, and is a little larger.

    Returns
    -------
    DependenceBound
        The bound and what it assumes.

    Examples
    --------
    >>> age = np.repeat(np.arange(20, 70), 40)
    >>> found = gdp_bound(np.where(age > 45, 0.6, 0.4), sensitive_features=age)
    >>> round(found.estimate, 3), round(found.bound, 3)
    (0.1, 0.118)
    """
    check_delta(delta, candidates)
    check_variation(variation, groups)
    check_count("planned_rows", planned_rows)
    times = Always(int(planned_rows)) if anytime else Once()
    if y_true is not None:
        one_of("criterion", criterion, CRITERIA)
        require_same_rows(y_pred, y_true, names=("y_pred", "y_true"))
    f, groups_of, unit = read_scores(y_pred, sensitive_features, groups, bounds)
    bins = 0 if groups is None else len(groups) + 1
    options = _Options(delta, bins, variation, unit, candidates, times)
    if y_true is None:
        return _bound(f, groups_of, options)
    positive = labels(y_true, len(f))
    if criterion == "equal_opportunity":
        return _among(f, groups_of, positive, options, "the positive rows")
    half = _Options(0.5 * delta, bins, variation, unit, candidates, times)
    parts = (
        _among(f, groups_of, positive, half, "the positive rows"),
        _among(f, groups_of, ~positive, half, "the negative rows"),
    )
    return _largest(parts, delta)


@dataclass(frozen=True)
class _Options:
    delta: float
    bins: int
    variation: float | None
    unit: float
    candidates: int
    times: Once | Always


def _bound(
    f: np.ndarray, groups_of: np.ndarray, options: _Options, among: str = ""
) -> DependenceBound:
    """Return the bound for scores in [0, 1] and the number of each row's group."""
    n, unit, variation = len(f), options.unit, options.variation
    error = options.delta / options.candidates
    share = error if variation is None else 0.8 * error
    counts = np.bincount(groups_of, minlength=options.bins)
    means = np.bincount(groups_of, f, len(counts)) / np.maximum(counts, 1)
    estimate = float((counts / n * np.abs(means - f.mean())).sum())
    summary = Summary(estimate, float(f.mean()), float(f.std(ddof=1)))
    projection = GapProjection(
        summary,
        options.times,
        share,
        unit,
        tuple((counts / n).tolist()) if variation is not None else (),
        variation,
        0.2 * options.delta,
    )
    values = int((counts > 0).sum())
    scores = "scores were" if options.candidates == 1 else "candidate models were"
    assumptions = [INDEPENDENT, FIXED.format(what=scores), *options.times.assumption()]
    measure = f"GDP over the {values} values of the attribute"
    if options.bins:
        measure = f"GDP over {options.bins} bins of the attribute"
        assumptions.append("The edges of the bins were fixed before these rows were seen.")
    if variation is not None:
        measure = "GDP"
        assumptions.append(
            f"Along the attribute, the mean score has a total variation of at most {variation:g}."
        )
    return DependenceBound(
        projection.bound(n),
        unit * estimate,
        measure + among,
        options.delta,
        n,
        options.candidates,
        options.times.method(n, share),
        tuple(assumptions),
        unit * options.times.slack(summary, n, share),
        projection.floor(n),
        values,
        isinstance(options.times, Always),
        projection,
    )


def _among(
    f: np.ndarray, groups_of: np.ndarray, rows: np.ndarray, options: _Options, what: str
) -> DependenceBound:
    """Return the bound among some rows: given their number they are independent draws as well."""
    if rows.sum() < 2:
        raise ValueError(f"y_true leaves {int(rows.sum())} of {what}: a bound needs at least 2.")
    return _bound(f[rows], groups_of[rows], options, f" among {what}")


def _largest(parts: tuple[DependenceBound, ...], delta: float) -> DependenceBound:
    """Return the larger of two bounds, which both hold with probability 1 − δ."""
    n = sum(part.n for part in parts)
    worst = max(parts, key=lambda part: part.bound)
    projections = tuple(part.projection for part in parts if part.projection is not None)
    shares = tuple(part.n / n for part in parts)
    return DependenceBound(
        worst.bound,
        max(part.estimate for part in parts),
        worst.measure.partition(" among ")[0] + " among the rows of each label",
        delta,
        n,
        worst.candidates,
        worst.method,
        worst.assumptions,
        worst.slack,
        worst.floor,
        max(part.values for part in parts),
        worst.anytime,
        LargestProjection(projections, shares),
    )


def check_variation(variation: float | None, groups: Sequence[float] | None) -> None:
    """Raise an error for a variation without bins, or one that is no size."""
    if variation is None:
        return
    if groups is None:
        raise ValueError(
            "variation is given without groups: pass the inner edges of bins that were fixed in "
            "advance."
        )
    if not 0.0 <= variation < math.inf:
        raise ValueError(f"variation is {variation}: it must be a finite number of at least 0.")
