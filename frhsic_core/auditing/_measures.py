"""The parts of an audit beside its curves: groups, the test of independence, effect sizes, and control features.

With many rows every dependence is significant, so an audit reports a test *and* effect sizes. Tests of one column use
all rows. Everything else is measured on at most the number of rows that its cost allows. These rows are a random
sample, and the report names their number.
"""

from __future__ import annotations

import math
import warnings
from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy import stats
from sklearn.compose import ColumnTransformer
from sklearn.linear_model import RidgeCV
from sklearn.model_selection import KFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, SplineTransformer

from frhsic_core.auditing._representation import audit_representation
from frhsic_core.conditional import Curve
from frhsic_core.joint import distance_correlation, khgr
from frhsic_core.registry import labels

Array = NDArray[np.float64]

GROUPS = 4
FIT_ROWS = 100_000  # for the control features
FOLDS = 5
_KNOTS = 6

TEST_ROWS = 20_000  # of several columns
PERMUTATIONS = 499
PROBE_ROWS = 20_000
KHGR_ROWS = 500
KHGR_RIDGE = 0.01
_SHUFFLES = 3


# The numbers with an interval, which a threshold can be compared with.
MEASURES = ("gdp", "equal_opportunity", "equalized_odds", "calibration", "gdp_given")
MEANING = {
    "gdp": "mean distance between the mean score at one value of the attribute and the overall mean",
    "equal_opportunity": "GDP among people with label 1",
    "equalized_odds": "the larger of the numbers for people with label 1 and with label 0",
    "calibration": "mean distance from zero of label minus score along the attribute",
    "gdp_given": "GDP of what is left of the scores after the control features",
    "gdp_bound": "guaranteed upper bound on GDP",
    "pvalue": "p-value of the test of independence",
    "pvalue_given_label": "p-value given the label (equalized odds)",
    "pvalue_given": "p-value given the control features",
    "impact_ratio": "lowest selection rate over the highest, along the attribute",
    "impact_ratio_groups": "the same of the groups",
    "khgr": f"kernel HGR (ridge {KHGR_RIDGE:g})",
    **labels(("linear_r2", "nonlinear_r2")),
}


@dataclass(frozen=True)
class Measure:
    """One number with the rows behind it, and where they are known its interval and what chance alone would give."""

    value: float
    rows: int
    low: float = math.nan
    high: float = math.nan
    floor: float = math.nan


def largest_gap(curve: Curve) -> tuple[int, slice]:
    """Return the bin with the largest gap, and the bins around it in which the gap is at least 80 % of it.

    The largest gap is the one that is certainly largest, by its band; if no gap is certain, that of the curve.
    """
    size = np.where(curve.inside, np.abs(curve.gap), -1.0)
    certain = np.where(curve.inside, np.maximum(curve.gap_low, -curve.gap_high), -1.0)
    top = int(np.argmax(certain if certain.max() > 0 else size))
    near = curve.inside & (np.sign(curve.gap) == np.sign(curve.gap[top])) & (size >= 0.8 * size[top])
    if not curve.smooth:  # levels have no neighbors
        return top, slice(top, top + 1)
    far = np.flatnonzero(~near)
    place = np.searchsorted(far, top)
    first = far[place - 1] + 1 if place > 0 else 0
    last = far[place] if place < len(far) else len(size)
    return top, slice(int(first), int(last))


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


def group_table(f: Array, s: Array, curve: Curve, *, weight: Array | None = None) -> pd.DataFrame:
    """Return what a table of four groups of about equal size shows of the scores, and what it hides.

    The groups end at the quantiles of S, as in :func:`pandas.qcut`: a value at a boundary is in the lower group.

    Parameters
    ----------
    f, s : array
        ``(n,)``: scores and attribute.
    curve : Curve
        The curve of the scores along the attribute.
    weight : array, optional
        ``(n,)``: positive weights of the rows.

    Returns
    -------
    DataFrame
        A row for each group, fewer than four where values are tied: ``start`` and ``end``, the smallest and
        largest S; ``rows``; ``means``, the mean score with the interval ``low`` to ``high`` for this group; and
        ``inside``, the largest certain difference along the curve *within* the group, which the table hides.

    Examples
    --------
    >>> from frhsic_core import gdp_curve
    >>> s = np.linspace(0, 1, 800)
    >>> wave = np.cos(8 * np.pi * s)
    >>> found = group_table(wave, s, gdp_curve(wave, s))
    >>> bool(found.means.max() - found.means.min() < 0.01), bool(found.inside.max() > 1.9)
    (True, True)
    """
    w = np.ones(len(f)) if weight is None else weight
    inner = np.linspace(0.0, 1.0, GROUPS + 1)[1:-1]
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
    start, end = np.full(count, np.inf), np.full(count, -np.inf)
    np.minimum.at(start, group, s)
    np.maximum.at(end, group, s)
    part = np.clip(np.searchsorted(end, curve.s, side="left"), 0, count - 1)
    inside = [certain_difference(curve, part == k) for k in range(count)]
    table = {"start": start, "end": end, "rows": np.bincount(group), "means": means}
    return pd.DataFrame(table | {"low": means - half, "high": means + half, "inside": inside})


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


def effect_sizes(z: Array, s: Array, *, weight: Array | None = None, random_state: int = 0) -> dict[str, Measure]:
    """Return normalized HSIC, distance correlation, kernel HGR and the R² of two probes, each with its floor.

    The floor is the mean of the same number if the rows of S are shuffled.
    """
    rows = sample_rows(len(z), PROBE_ROWS, weight=weight, random_state=random_state)
    z, s = z[rows], s[rows]
    s = s[:, np.ptp(s, axis=0) > 0] if len(s) else s[:, :0]
    if s.shape[1] == 0 or len(s) < 10:  # a rare value can be absent from the sample
        return {}
    audited = audit_representation(z, s, random_state=random_state)
    middle = audited.bandwidths.index(1.0)
    few = audited.rows
    first = np.linspace(0, len(z) - 1, few).round().astype(int)
    tiny = np.linspace(0, len(z) - 1, min(KHGR_ROWS, len(z))).round().astype(int)
    generator = np.random.default_rng(random_state)
    shuffled = [generator.permutation(len(tiny)) for _ in range(_SHUFFLES)]
    moved = [generator.permutation(few) for _ in range(_SHUFFLES)]
    distance = [float(distance_correlation(z[first], s[first][order])) for order in (slice(None), *moved)]
    canonical = [float(khgr(z[tiny], s[tiny][order], ridge=KHGR_RIDGE)) for order in (slice(None), *shuffled)]
    found = {
        "normalized_hsic": (audited.normalized_hsic[middle], audited.floor[middle], audited.rows),
        "distance_correlation": (distance[0], np.mean(distance[1:]), few),
        "khgr": (canonical[0], np.mean(canonical[1:]), len(tiny)),
        "linear_r2": (audited.linear_r2, 0.0, len(z)),
        "nonlinear_r2": (audited.nonlinear_r2, 0.0, len(z)),
    }
    return {name: Measure(float(value), rows, floor=float(floor)) for name, (value, floor, rows) in found.items()}


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
