"""The parts of an audit beside its curves: groups, effect sizes, and what controls leave.

With many rows every dependence is significant, so an audit reports a test *and* effect sizes. Tests
of one column use all rows. Everything else is measured on at most the number of rows that its cost
allows. These rows are a random sample, and the report names their number.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy import stats
from sklearn import config_context
from sklearn.linear_model import RidgeCV
from sklearn.model_selection import KFold, cross_val_predict
from sklearn.preprocessing import SplineTransformer, StandardScaler

from frhsic_core._arrays import spaced_rows
from frhsic_core.auditing._curves import certain_difference, extremes
from frhsic_core.auditing._representation import FOLDS, audit_representation
from frhsic_core.auditing._results import KHGR_RIDGE, Measure
from frhsic_core.conditional import Curve
from frhsic_core.conditional._curve import LEVELS, Array, Smoother
from frhsic_core.inputs.columns import Column
from frhsic_core.joint import distance_correlation, khgr

GROUPS = 4
ROWS_PER_LEVEL = 5  # on average, of a control with few values
FIT_ROWS = 100_000  # for the control features
PROBE_ROWS = 20_000
KHGR_ROWS = 500
_KNOTS = 6
_SHUFFLES = 3
_SIGNIFICANT = 4.0  # standard errors of a correlation of neighbors
_HIDDEN = 0.05  # of the variance of the scores


def indicators(column: Column) -> Array:
    """Return a numeric attribute as one column, and categories as indicators."""
    values = column.values[:, None]
    if not column.categories:
        return values
    return (values == np.unique(values)).astype(np.float64)


def scaled(columns: Iterable[Column]) -> Array:
    """Return columns side by side, each divided by its standard deviation."""
    joined = np.hstack([indicators(column) for column in columns])
    return StandardScaler(with_mean=False).fit_transform(joined)


def with_labels(controls: Array) -> pd.DataFrame:
    """Return controls with few values as labels, which are not smoothed."""
    table = pd.DataFrame(controls)
    for name in table:
        values = table[name].nunique()
        if values <= LEVELS and len(table) >= ROWS_PER_LEVEL * values:
            table[name] = table[name].astype("category")
    return table


def group_table(f: Array, s: Array, curve: Curve, *, weight: Array | None = None) -> pd.DataFrame:
    """Return what a table of four groups of about equal size shows, and what it hides.

    The groups end at the quantiles of S, as in :func:`pandas.qcut`: a value at a boundary is in the
    lower group.

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
        A row for each group, fewer than four where values are tied, but at least two: ``start``
        and ``end``, the smallest and largest S; ``rows``; ``means``, the mean score with the interval ``low`` to
        ``high`` for this group; and ``inside``, the largest certain difference along the curve
        *within* the group, which the table hides.

    Examples
    --------
    >>> from frhsic_core import gdp_curve
    >>> s = np.linspace(0, 1, 800)
    >>> wave = np.cos(8 * np.pi * s)
    >>> found = group_table(wave, s, gdp_curve(wave, s))
    >>> bool(found.means.max() - found.means.min() < 0.01), bool(found.inside.max() > 1.9)
    (True, True)
    """
    group = _quantile_groups(s, weight)
    levels = Smoother(group.astype(np.float64), weight=weight, nominal=True)
    means, spread = levels.means(f)
    if np.isin(f, (0.0, 1.0)).all():
        low, high = _rate_interval(means, levels.effective, curve.alpha)
    else:
        low, high = _mean_interval(means, spread / levels.share, levels.effective, curve.alpha)
    ends = pd.Series(s).groupby(group).agg(["min", "max"])
    start = ends["min"].to_numpy()
    end = ends["max"].to_numpy()
    bins = np.clip(np.searchsorted(end, curve.s, side="left"), 0, len(end) - 1)
    inside = [certain_difference(curve, bins == k) for k in range(len(end))]
    return pd.DataFrame(
        {
            "start": start,
            "end": end,
            "rows": np.bincount(group),
            "means": means,
            "low": low,
            "high": high,
            "inside": inside,
        }
    )


def _quantile_groups(s: Array, weight: Array | None) -> NDArray[np.intp]:
    """Return the number of the group of each row; the groups have about equal weight, and are at least two.

    Few values are a group each: quantiles would join them, and one group alone has an impact ratio of one.
    """
    values, group_of_value = np.unique(s, return_inverse=True)
    if len(values) <= GROUPS:
        return group_of_value
    shares = np.linspace(0.0, 1.0, GROUPS + 1)[1:-1]
    if weight is None:
        edges = np.quantile(s, shares)
    else:
        order = np.argsort(s)
        below = np.cumsum(weight[order])
        edges = s[order][np.searchsorted(below, shares * below[-1])]
    inner = (edges > values[0]) & (edges < values[-1])
    if inner.any():
        edges = np.unique(edges[inner])
    elif edges[0] == values[0]:  # most rows have the smallest value
        edges = values[:1]
    else:
        edges = values[-2:-1]
    group = np.searchsorted(edges, s, side="left")
    return np.unique(group, return_inverse=True)[1]


def _rate_interval(rates: Array, rows: Array, alpha: float) -> tuple[Array, Array]:
    """Return intervals of Clopper and Pearson, which serve where nobody is selected."""
    hits = rates * rows
    misses = rows - hits
    low = stats.beta.ppf(0.5 * alpha, hits, misses + 1.0)
    high = stats.beta.ppf(1.0 - 0.5 * alpha, hits + 1.0, misses)
    return np.nan_to_num(low, nan=0.0), np.nan_to_num(high, nan=1.0)


def _mean_interval(means: Array, variance: Array, rows: Array, alpha: float) -> tuple[Array, Array]:
    """Return intervals of Student's t, because the variance of a group is estimated."""
    freedom = np.maximum(rows - 1.0, 1.0)
    half = stats.t.ppf(1.0 - 0.5 * alpha, freedom) * np.sqrt(variance / freedom)
    return means - half, means + half


def group_impact(low: Array, rate: Array, high: Array) -> tuple[float, float, float]:
    """Return the lowest rate over the highest, and the least and most that intervals allow."""
    return _ratio(rate, rate), _ratio(low, high), _ratio(high, low)


def _ratio(lowest: Array, highest: Array) -> float:
    """Return the lowest of some rates over the highest of others; 1 if nobody is selected."""
    if highest.max() <= 0.0:
        return 1.0
    return float(np.clip(lowest.min() / highest.max(), 0.0, 1.0))


def impact_ratio(curve: Curve) -> tuple[float, float]:
    """Return the lowest rate of a curve over the highest, and the most that its band allows.

    Examples
    --------
    >>> from frhsic_core import gdp_curve
    >>> chosen = np.repeat([0.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 0.0], 50)
    >>> round(impact_ratio(gdp_curve(chosen, np.repeat([30, 60], 200)))[0], 2)
    1.0
    """
    low, high = extremes(curve)
    highest = float(curve.mean[high])
    lowest = max(float(curve.mean[low]), 0.0)
    if highest <= 0.0:
        return 1.0, 1.0
    certainly_selected = float(curve.low[high])
    if certainly_selected <= 0.0:
        return min(lowest / highest, 1.0), 1.0
    most = float(curve.high[low]) / certainly_selected
    return min(lowest / highest, 1.0), min(most, 1.0)


def sample_rows(n: int, rows: int, *, weight: Array | None, random_state: int) -> NDArray[np.intp]:
    """Return the numbers of at most ``rows`` rows, drawn without replacement.

    With weights a row is kept with a probability that is proportional to its weight. The rows kept
    are then independent draws from the weighted population, and no row occurs twice, so the tests
    keep their level.

    Examples
    --------
    >>> sample_rows(3, 10, weight=None, random_state=0)
    array([0, 1, 2])
    >>> sample_rows(4, 10, weight=np.array([1.0, 0.0, 1.0, 1.0]), random_state=0)
    array([0, 2, 3])
    """
    generator = np.random.default_rng(random_state)
    kept = np.arange(n)
    if weight is not None:
        kept = kept[generator.random(n) < weight / weight.max()]
    if len(kept) > rows:
        kept = np.sort(generator.choice(kept, rows, replace=False))
    return kept


def _distance_correlations(z: Array, orders: Array) -> list[Any]:
    """Return the distance correlation of the scores with S, for several orders of the rows of S."""
    return [distance_correlation(z, s) for s in orders]


# How strong a dependence is, in numbers that no threshold is compared with: functions of the scores
# and of several
# orders of S, ``(orders, n, p)``, to a number for each order. What a number means is said in
# ``_sentences.MEANING``.
EFFECTS: dict[str, Callable[[Array, Array], Any]] = {
    "distance_correlation": _distance_correlations,
}


def effect_sizes(
    z: Array, s: Array, *, weight: Array | None, random_state: int
) -> dict[str, Measure]:
    """Return normalized HSIC, ``EFFECTS``, kernel HGR and the R² of two probes with floors.

    The floor is the mean of the same number if the rows of S are shuffled.
    """
    rows = sample_rows(len(z), PROBE_ROWS, weight=weight, random_state=random_state)
    z, s = z[rows], s[rows]
    if len(s) < 10:
        return {}
    s = s[:, np.ptp(s, axis=0) > 0]  # a rare value can be absent from the sample
    if s.shape[1] == 0:
        return {}
    audited = audit_representation(z, s, random_state=random_state)
    found = audited.as_dict()
    generator = np.random.default_rng(random_state)

    def shuffled(statistic: Callable[..., Any], most: int) -> Measure:
        """Return a statistic of evenly spaced rows, with its mean over a few orders of S."""
        kept = spaced_rows(len(z), most).numpy()
        orders = [np.arange(len(kept))]
        orders += [generator.permutation(len(kept)) for _ in range(_SHUFFLES)]
        values = statistic(z[kept], s[kept][np.stack(orders)])
        value, *others = [float(each) for each in values]
        return Measure(value, len(kept), floor=float(np.mean(others)))

    # Z is decomposed once for all orders.
    canonical = shuffled(partial(khgr, ridge=KHGR_RIDGE), KHGR_ROWS)
    effects = {name: shuffled(each, audited.rows) for name, each in EFFECTS.items()}
    kernels = found["normalized_hsic_1"], audited.rows, found["floor_1"]
    return {
        "normalized_hsic": Measure(kernels[0], kernels[1], floor=kernels[2]),
        **effects,
        "khgr": canonical,
        "linear_r2": Measure(found["linear_r2"], len(z), floor=0.0),
        "nonlinear_r2": Measure(found["nonlinear_r2"], len(z), floor=0.0),
    }


def residuals(
    f: Array, controls: list[Column], *, weight: Array | None = None, random_state: int = 0
) -> Array:
    """Return f − E[f | controls], cross-fitted: each row is predicted by a fit that did not see it.

    The fit is additive: cubic splines with 6 knots for a number, indicators for categories, and a
    small ridge. It uses at most 100,000 rows.

    Parameters
    ----------
    f : array
        ``(n,)``.
    controls : list of Column
        The controls, each with n values.
    weight : array, optional
        ``(n,)``.
    random_state : int
        Seed of the folds.

    Examples
    --------
    >>> c = np.linspace(-1, 1, 400)
    >>> float(np.abs(residuals(c**2, [Column("c", c)])).max()) < 0.02
    True
    """
    design = np.hstack([_features(control) for control in controls]).astype(np.float64)
    folds = KFold(FOLDS, shuffle=True, random_state=random_state).split(design)
    cuts = [(_thinned(train), test) for train, test in folds]
    weights = {} if weight is None else {"sample_weight": weight}
    ridge = RidgeCV(alphas=(1e-3, 1e-1, 10.0))
    # Collinear columns are what the ridge is for. A user's routing of metadata is not meant for it.
    with warnings.catch_warnings(action="ignore"), config_context(enable_metadata_routing=False):
        fitted = cross_val_predict(ridge, design, f, cv=cuts, params=weights)
    return f - fitted


def _features(control: Column) -> Array:
    """Return what an additive fit uses of a control: indicators, or splines of many values."""
    values = control.values[:, None]
    levels = np.unique(control.values)
    if control.categories or len(levels) <= 2 * _KNOTS:
        return values == levels
    knots = np.unique(np.quantile(values, np.linspace(0, 1, _KNOTS)))[:, None]
    degree = 3 if len(knots) > 2 else 1
    return SplineTransformer(knots=knots, degree=degree, extrapolation="constant").fit_transform(
        values
    )


def _thinned(rows: NDArray[np.intp]) -> NDArray[np.intp]:
    """Return evenly spaced rows, at most as many as a fit may use."""
    step = -(-len(rows) // FIT_ROWS)
    return rows[::step]


def explained_share(
    attribute: Column, controls: list[Column], *, weight: Array | None, random_state: int = 0
) -> float:
    """Return the cross-fitted R² of the attribute given the controls; at least zero.

    Of categories the variances of all indicators are added.

    Examples
    --------
    >>> age = np.linspace(20, 70, 400)
    >>> explained_share(Column("age", age), [Column("months", 12 * age)], weight=None) > 0.99
    True
    """
    left = 0.0
    total = 0.0
    for values in indicators(attribute).T:
        rest = residuals(values, controls, weight=weight, random_state=random_state)
        mean = np.average(values, weights=weight)
        left += float(np.average(rest**2, weights=weight))
        total += float(np.average((values - mean) ** 2, weights=weight))
    return max(0.0, 1.0 - left / total) if total > 0.0 else 0.0


def neighbor_correlation(f: Array, s: Array, curve: Curve, *, random_state: int = 0) -> float:
    """Return the correlation of neighbors in S beyond the curve, if it is large; otherwise 0.

    A curve smooths changes over short distances away. Its residuals are then alike in neighbors.
    The correlation counts if it is significant, and if the hidden part is at least 5 % of the
    variance.

    Examples
    --------
    >>> from frhsic_core import gdp_curve
    >>> s = np.linspace(0.0, 1.0, 4000)
    >>> flips = np.sign(np.sin(2000.0 * s))
    >>> neighbor_correlation(flips, s, gdp_curve(flips, s)) > 0.5
    True
    >>> noise = np.random.default_rng(0).normal(size=4000)
    >>> neighbor_correlation(noise, s, gdp_curve(noise, s))
    0.0
    """
    if curve.smooth and len(f) >= 100:
        # People of the same age have no order: that of the rows could be one by score.
        order = np.lexsort((np.random.default_rng(random_state).random(len(s)), s))
        rest = (f - np.interp(s, curve.s, curve.mean))[order]
        rest = rest - rest.mean()
        variance = float(np.mean(rest * rest))
        if variance > 0.0:
            correlation = float(np.mean(rest[1:] * rest[:-1])) / variance
            significant = correlation > _SIGNIFICANT / np.sqrt(len(f))
            if significant and correlation * variance > _HIDDEN * float(f.var()):
                return correlation
    return 0.0
