"""The parts of an audit beside its curves: groups, the test of independence, effect sizes, and control features.

With many rows every dependence is significant, so an audit reports a test *and* effect sizes. Tests of one column use
all rows. Everything else is measured on at most the number of rows that its cost allows. These rows are a random
sample, and the report names their number.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import stats
from sklearn.compose import ColumnTransformer
from sklearn.linear_model import RidgeCV
from sklearn.model_selection import KFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, SplineTransformer

from frhsic_core.auditing._representation import audit_representation
from frhsic_core.conditional import Curve
from frhsic_core.joint import distance_correlation, hsic_test, khgr

Array = NDArray[np.float64]

GROUPS = 4
FIT_ROWS = 100_000  # for the control features
FOLDS = 5
_KNOTS = 6

TEST_ROWS = 20_000  # of several columns
PERMUTATIONS = 499
PROBE_ROWS = 20_000
KERNEL_ROWS = 2000
KHGR_ROWS = 500
KHGR_RIDGE = 0.01
_SHUFFLES = 3


@dataclass(frozen=True)
class Region:
    """The values of S around the largest gap, and the people there."""

    low: float
    high: float
    rows: int
    share: float
    at: float
    gap: float
    gap_low: float
    gap_high: float


def largest_gap(curve: Curve) -> Region:
    """Return the values of S around the largest gap, where the gap is at least 80 % of it.

    The largest gap is the one that is certainly largest, by its band; if no gap is certain, that of the curve.
    """
    size = np.where(curve.inside, np.abs(curve.gap), -1.0)
    certain = np.where(curve.inside, np.maximum(curve.gap_low, -curve.gap_high), -1.0)
    top = int(np.argmax(certain if certain.max() > 0 else size))
    first = last = top
    same_side = np.sign(curve.gap) == np.sign(curve.gap[top])
    near = curve.inside & same_side & (size >= 0.8 * size[top])
    if curve.smooth:  # levels have no neighbors
        while first > 0 and near[first - 1]:
            first -= 1
        while last < len(size) - 1 and near[last + 1]:
            last += 1
    there = slice(first, last + 1)
    return Region(
        low=float(curve.s[first]),
        high=float(curve.s[last]),
        rows=int(curve.rows[there].sum()),
        share=float(curve.share[there].sum()),
        at=float(curve.s[top]),
        gap=float(curve.gap[top]),
        gap_low=float(curve.gap_low[top]),
        gap_high=float(curve.gap_high[top]),
    )


def gap_below(curve: Curve, share: float) -> float:
    """Return the number that the gap does not exceed for the given share of people."""
    size = np.abs(curve.gap)
    order = np.argsort(size)
    reached = np.searchsorted(np.cumsum(curve.share[order]), share - 1e-12)
    return float(size[order][min(int(reached), len(size) - 1)])


def extremes(curve: Curve, where: NDArray[np.bool_] | None = None) -> tuple[int, int]:
    """Return the bins between which the difference is most certain, the lower first.

    These are the least upper end and the largest lower end of the band. The extremes of the curve itself are often at
    the ends of S, where there are few people and the band is wide.
    """
    chosen = curve.inside if where is None else curve.inside & where
    low = np.where(chosen, curve.high, np.inf)
    high = np.where(chosen, curve.low, -np.inf)
    return int(np.argmin(low)), int(np.argmax(high))


def certain_difference(curve: Curve, where: NDArray[np.bool_] | None = None) -> float:
    """Return the difference between the :func:`extremes`; zero if a constant lies inside the band."""
    if where is not None and not curve.inside[where].any():
        return 0.0
    low, high = extremes(curve, where)
    rounding = 1e-12 * float(np.abs(curve.mean).max())
    certain = curve.low[high] > curve.high[low] + rounding
    return float(curve.mean[high] - curve.mean[low]) if certain else 0.0


@dataclass(frozen=True)
class Groups:
    """The scores in groups of an attribute with about equal numbers of people, as a table of groups shows them.

    Attributes
    ----------
    first, last : array
        ``(groups,)``: smallest and largest S in each group; fewer groups than asked for where values are tied.
    rows : array
        ``(groups,)``: number of people in each group.
    means, low, high : array
        ``(groups,)``: mean score of each group with an interval for this group.
    inside : float
        The largest certain difference along the curve *within* one group: what the table hides.
    where : int
        The number of the group in which that is.
    """

    first: Array
    last: Array
    rows: Array
    means: Array
    low: Array
    high: Array
    inside: float
    where: int


def group_table(f: Array, s: Array, curve: Curve, *, groups: int = GROUPS, weight: Array | None = None) -> Groups:
    """Return what a table of ``groups`` groups of about equal size shows of the scores, and what it hides.

    The groups end at the quantiles of S, as in :func:`pandas.qcut`: a value at a boundary is in the lower group.

    Parameters
    ----------
    f, s : array
        ``(n,)``: scores and attribute.
    curve : Curve
        The curve of the scores along the attribute.
    groups : int
        Number of groups.
    weight : array, optional
        ``(n,)``: positive weights of the rows.

    Examples
    --------
    >>> from frhsic_core import gdp_curve
    >>> s = np.linspace(0, 1, 800)
    >>> wave = np.cos(4 * np.pi * s)
    >>> found = group_table(wave, s, gdp_curve(wave, s), groups=2)
    >>> bool(np.ptp(found.means) < 0.01), found.inside > 1.9
    (True, True)
    """
    w = np.ones(len(f)) if weight is None else weight
    inner = np.linspace(0.0, 1.0, groups + 1)[1:-1]
    if weight is None:
        edges = np.quantile(s, inner)
    else:
        order = np.argsort(s)
        below = np.cumsum(w[order])
        edges = s[order][np.searchsorted(below, inner * below[-1])]
    edges = np.unique(edges[edges > s.min()])
    _, group = np.unique(np.searchsorted(edges, s, side="left"), return_inverse=True)
    count = int(group.max()) + 1
    mass = np.bincount(group, w)
    means = np.bincount(group, w * f) / mass
    # Kish's effective number of rows; Student's t because the variance of a group is estimated.
    effective = mass**2 / np.bincount(group, w * w)
    freedom = np.maximum(effective - 1.0, 1.0)
    variance = np.bincount(group, w * (f - means[group]) ** 2) / mass * effective / freedom
    half = stats.t.ppf(1.0 - 0.5 * curve.alpha, freedom) * np.sqrt(variance / effective)
    first, last = np.full(count, np.inf), np.full(count, -np.inf)
    np.minimum.at(first, group, s)
    np.maximum.at(last, group, s)
    part = np.clip(np.searchsorted(last, curve.s, side="left"), 0, count - 1)
    spans = [certain_difference(curve, part == k) for k in range(count)]
    return Groups(
        first=first,
        last=last,
        rows=np.bincount(group).astype(np.float64),
        means=means,
        low=means - half,
        high=means + half,
        inside=float(max(spans)),
        where=int(np.argmax(spans)),
    )


@dataclass(frozen=True)
class Decisions:
    """What a threshold decides along one attribute.

    Attributes
    ----------
    groups : Groups or None
        Selection rates of four groups; None for categories, which are groups of their own.
    impact : float
        Impact ratio along the attribute: the lowest selection rate over the highest, where their difference is most
        certain.
    impact_high : float
        The largest ratio that the band allows there.
    group_impact : float
        Impact ratio of the groups: the lowest selection rate over the highest.
    """

    groups: Groups | None
    impact: float
    impact_high: float
    group_impact: float


def decisions(selected: Curve, groups: Groups | None) -> Decisions:
    """Return what follows from the curve of selection rates and the rates of groups."""
    rates = selected.mean if groups is None else groups.means
    return Decisions(groups, *impact_ratio(selected), float(rates.min() / rates.max()) if rates.max() > 0 else 1.0)


def impact_ratio(curve: Curve) -> tuple[float, float]:
    """Return the ratio of the lowest to the highest rate of a curve, and the largest that its band allows.

    Examples
    --------
    >>> from frhsic_core import gdp_curve
    >>> chosen = np.repeat([0.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 0.0], 50)
    >>> round(impact_ratio(gdp_curve(chosen, np.repeat([30, 60], 200)))[0], 2)
    1.0
    """
    low, high = extremes(curve)
    top, least = float(curve.mean[high]), max(float(curve.mean[low]), 0.0)
    if top <= 0.0:
        return 1.0, 1.0
    sure = max(float(curve.low[high]), 0.0)
    return min(least / top, 1.0), min(float(curve.high[low]) / sure, 1.0) if sure > 0.0 else 1.0


@dataclass(frozen=True)
class Test:
    """A test of independence: the p-value, and the number of rows and permutations behind it."""

    pvalue: float
    rows: int
    permutations: int

    @property
    def is_smallest(self) -> bool:
        """Whether no smaller p-value is possible with this number of permutations."""
        return self.pvalue <= (1.0 + 1e-9) / (self.permutations + 1)


@dataclass(frozen=True)
class Effect:
    """One effect size, what chance alone gives, and the number of rows behind it."""

    value: float
    floor: float
    rows: int


def sample_rows(n: int, rows: int, *, weight: Array | None = None, random_state: int = 0) -> NDArray[np.intp]:
    """Return the numbers of at most ``rows`` rows, drawn without replacement.

    With weights a row is kept with a probability that is proportional to its weight. The rows kept are then independent
    draws from the weighted population, and no row occurs twice, so the tests keep their level.

    Examples
    --------
    >>> sample_rows(3, 10)
    array([0, 1, 2])
    >>> sample_rows(4, 10, weight=np.array([1.0, 0.0, 1.0, 1.0]))
    array([0, 2, 3])
    """
    generator = np.random.default_rng(random_state)
    kept = np.arange(n)
    if weight is not None:
        kept = kept[generator.random(n) < weight / weight.max()]
    if len(kept) > rows:
        kept = np.sort(generator.choice(kept, rows, replace=False))
    return kept


def independence_test(
    z: Array, s: Array, *, given: Array | None = None, weight: Array | None = None, random_state: int = 0
) -> Test:
    """Test whether scores ``(n, k)`` and attributes ``(n, p)`` are independent, or so given a third variable."""
    columns = max(x.shape[1] for x in (z, s, s if given is None else given))
    most = len(z) if columns == 1 else TEST_ROWS
    rows = sample_rows(len(z), most, weight=weight, random_state=random_state)
    if len(rows) < 4:  # weights can leave hardly any row
        return Test(1.0, len(rows), 0)
    found = hsic_test(
        z[rows],
        s[rows],
        given=None if given is None else given[rows],
        method="aggregated",
        n_permutations=PERMUTATIONS,
        random_state=random_state,
    )
    return Test(float(found.pvalue), len(rows), PERMUTATIONS)


def effect_sizes(z: Array, s: Array, *, weight: Array | None = None, random_state: int = 0) -> dict[str, Effect]:
    """Return normalized HSIC, distance correlation, kernel HGR and the R² of two probes, each with its floor.

    The floor is the mean of the same number if the rows of S are shuffled.
    """
    rows = sample_rows(len(z), PROBE_ROWS, weight=weight, random_state=random_state)
    z, s = z[rows], s[rows]
    s = s[:, np.ptp(s, axis=0) > 0] if len(s) else s[:, :0]
    if s.shape[1] == 0 or len(s) < 10:  # a rare value can be absent from the sample
        return {}
    audited = audit_representation(z, s, max_rows=KERNEL_ROWS, random_state=random_state)
    middle = audited.bandwidths.index(1.0)
    few = min(audited.rows, len(z))
    first = np.linspace(0, len(z) - 1, few).round().astype(int)
    tiny = np.linspace(0, len(z) - 1, min(KHGR_ROWS, len(z))).round().astype(int)
    generator = np.random.default_rng(random_state)
    shuffled = [generator.permutation(len(tiny)) for _ in range(_SHUFFLES)]
    moved = [generator.permutation(few) for _ in range(_SHUFFLES)]
    distance = [distance_correlation(z[first], s[first][order]) for order in (slice(None), *moved)]
    canonical = [khgr(z[tiny], s[tiny][order], ridge=KHGR_RIDGE) for order in (slice(None), *shuffled)]
    return {
        "normalized_hsic": Effect(float(audited.normalized_hsic[middle]), float(audited.floor[middle]), audited.rows),
        "distance_correlation": Effect(float(distance[0]), float(np.mean([float(x) for x in distance[1:]])), few),
        "khgr": Effect(float(canonical[0]), float(np.mean([float(x) for x in canonical[1:]])), len(tiny)),
        "linear_r2": Effect(float(audited.linear_r2), 0.0, len(z)),
        "nonlinear_r2": Effect(float(audited.nonlinear_r2), 0.0, len(z)),
    }


def residuals(
    f: Array, controls: list[tuple[Array, bool]], *, weight: Array | None = None, random_state: int = 0
) -> Array:
    """Return f − E[f | controls], cross-fitted: each row is predicted by a fit that did not see it.

    The fit is additive: cubic splines with 6 knots for a number, indicators for categories, and a small ridge. It uses
    at most 100,000 rows.

    Parameters
    ----------
    f : array
        ``(n,)``.
    controls : list
        Values ``(n,)`` of each control, and whether they are codes of categories.
    weight : array, optional
        ``(n,)``.
    random_state : int
        Seed of the folds.

    Examples
    --------
    >>> c = np.linspace(-1, 1, 400)
    >>> float(np.abs(residuals(c**2, [(c, False)])).max()) < 0.02
    True
    """
    parts = []
    for k, (values, nominal) in enumerate(controls):
        knots = np.unique(np.quantile(values, np.linspace(0, 1, _KNOTS)))
        spline = SplineTransformer(knots=knots[:, None], degree=3 if len(knots) > 2 else 1, extrapolation="constant")
        few = nominal or len(np.unique(values)) <= 2 * _KNOTS
        basis = OneHotEncoder(handle_unknown="ignore", sparse_output=False) if few else spline
        parts.append((str(k), basis, [k]))
    model = make_pipeline(ColumnTransformer(parts), RidgeCV(alphas=(1e-3, 1e-1, 10.0)))
    folds = KFold(FOLDS, shuffle=True, random_state=random_state)
    left = np.empty(len(f))
    design = np.column_stack([values for values, _ in controls])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # collinear columns are what the ridge is for
        for train, test in folds.split(design):
            train = train[:: -(-len(train) // FIT_ROWS)]
            model.fit(design[train], f[train], ridgecv__sample_weight=None if weight is None else weight[train])
            left[test] = f[test] - model.predict(design[test])
    return left
