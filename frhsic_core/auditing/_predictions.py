"""Audit predictions: how much do they depend on each sensitive attribute, for whom, and is it more than chance."""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy import stats
from sklearn import config_context
from sklearn.linear_model import RidgeCV
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import KFold, cross_val_predict
from sklearn.preprocessing import SplineTransformer, StandardScaler

from frhsic_core._arrays import RandomState, as_seed, spaced_rows, warn_caller
from frhsic_core.auditing._report import Audit
from frhsic_core.auditing._representation import FOLDS, audit_representation
from frhsic_core.auditing._results import (
    KHGR_RIDGE,
    MEASURES,
    PERMUTATIONS,
    AttributeAudit,
    Measure,
    Missing,
)
from frhsic_core.auditing._sentences import certain_difference, extremes
from frhsic_core.bounds import gdp_bound
from frhsic_core.conditional._curve import LEVELS, Array, Curve, Smoother
from frhsic_core.inputs.columns import (
    CATEGORIES,
    MIN_ROWS,
    Column,
    Columns,
    far_codes,
    read_columns,
)
from frhsic_core.joint import distance_correlation, hsic_test, khgr

_CLASSES = 20  # at most so many different whole numbers are classes
_LABEL_ROWS = 50  # fewer people with a label have no curve
GROUPS = 4
ROWS_PER_LEVEL = 5  # on average, of a control with few values
FIT_ROWS = 100_000  # for the control features
_KNOTS = 6
TEST_ROWS = 20_000  # of several columns
PROBE_ROWS = 20_000
KHGR_ROWS = 500
_SHUFFLES = 3
_GAP = ("gdp", "gdp_low", "gdp_high", "floor")


def audit(
    y_pred: Any,
    *misplaced: Any,
    sensitive_features: Any = None,
    y_true: Any = None,
    control_features: Any = None,
    sample_weight: Any = None,
    positive_class: Any = None,
    threshold: float | None = None,
    alpha: float = 0.05,
    unit: str = "people",
    model: str = "",
    random_state: RandomState = 0,
) -> Audit:
    """Measure how much predictions depend on sensitive attributes, without cutting the attributes into groups.

    The curve E[prediction | S = s] has a band that covers the whole curve with probability about 1 − ``alpha``. GDP,
    the mean distance of this curve from the overall mean, has an interval. A test shows whether the dependence is more
    than chance, and effect sizes show how strong it is. The curve, GDP and the tests of one column use all rows. The
    probes and the tests of several columns use a random sample of at most 20,000 rows, the kernel statistics at most
    2,000; each number is reported with its rows.

    Rows without a score or a weight are left out everywhere, and rows without an attribute are left out of the audit of
    this attribute. All of them are counted, and the mean score of the rows left out is reported.

    O(n log n) time and O(n) memory for n rows: a million rows take less than a minute.

    Parameters
    ----------
    y_pred : array_like
        ``(n,)``: probabilities, hard labels or real predictions.
    sensitive_features : array_like
        ``(n,)`` or ``(n, p)``: numbers, or words with at most 50 categories. A DataFrame names the attributes.
    y_true : array_like, optional
        ``(n,)``: labels. Two values give equal opportunity, equalized odds and calibration; real numbers give the
        curve of the error.
    control_features : array_like, optional
        Legitimate factors. The audit is then repeated on what they leave of the predictions.
    sample_weight : array_like, optional
        ``(n,)``: weights of the rows, such as exposure or survey weights.
    positive_class : object, optional
        The value of ``y_true`` (or of hard labels) that counts as 1, if it is a word.
    threshold : float, optional
        People with a score of at least this number are selected. The audit then has selection rates and impact ratios
        by groups and along the attribute (the four-fifths rule), and with labels true and false positive rates.
    alpha : float
        One minus the coverage of bands and intervals.
    unit : str
        What a row is, for the sentences: people, communities, contracts.
    model : str
        Name and version of the model, for the report.
    random_state : int, numpy.random.Generator or torch.Generator
        Source of everything random.

    Returns
    -------
    Audit
        ``.gdp``, ``.interval``, ``.pvalue`` and the other main numbers (of several attributes ``result["age"].gdp``).
        It prints as sentences; ``.table()``, ``.as_dict()``, ``.to_html()`` and ``.save(path)``.

    Examples
    --------
    >>> import pandas as pd
    >>> generator = np.random.default_rng(0)
    >>> age = generator.uniform(20, 70, 400)
    >>> score = 0.3 + 0.2 * (age > 45) + 0.1 * generator.random(400)
    >>> result = audit(score, sensitive_features=pd.Series(age, name="age"))
    >>> result.gdp > 0.08, result.pvalue <= 0.05
    (True, True)
    """
    if misplaced or sensitive_features is None:
        raise TypeError(
            "audit takes the predictions alone by position and needs sensitive_features by name: "
            "audit(y_pred, sensitive_features=age, y_true=label)."
        )
    if not 0.0 < alpha <= 0.5:
        raise ValueError(
            f"alpha is {alpha}: it lies between 0 and 0.5, such as 0.05 for a coverage of 95 %."
        )
    columns = read_columns(
        y_pred, sensitive_features, y_true, control_features, sample_weight, positive_class
    )
    score = columns.score.values
    task = _task(score[columns.usable])
    _check(columns, task, threshold)
    seed = as_seed(random_state)
    work = _Work(columns, threshold, alpha, seed)
    crossed = _crossed(columns.sensitive)
    attributes = tuple(work.attribute(column) for column in (*columns.sensitive, *crossed))
    smallest = min(attribute.rows for attribute in attributes)
    doubts = [*_swapped(columns), *(far_codes(c.values, repr(c.name)) for c in columns.sensitive)]
    notes = list(filter(None, doubts))
    for doubt in notes:
        warn_caller(doubt)
    if not work.one_scale:
        notes.append(
            "Calibration is not measured: it needs predictions between 0 and 1, and many lie outside."
        )
    if smallest < 200:
        notes.append(
            f"There are only {smallest} rows: the bands are wide, and their coverage is approximate."
        )
    return Audit(
        attributes=attributes,
        joint=work.joint() if len(attributes) > 1 and not crossed else None,
        rows=len(score),
        missing=tuple(_missing(columns)),
        score=columns.score.name,
        label=columns.label.name if columns.label else "",
        weight=columns.weight.name if columns.weight else "",
        controls=tuple(column.name for column in columns.controls),
        task=task,
        alpha=alpha,
        random_state=seed,
        notes=tuple(notes),
        unit=unit,
        threshold=threshold,
        performance=work.performance(),
        provenance={"model": model} if model else {},
    )


def _check(columns: Columns, task: str, threshold: float | None) -> None:
    """Raise an error for scores, labels and thresholds that do not belong together."""
    score, label = columns.score.values[columns.usable], columns.label
    if label is not None and not label.categories and task in ("scores", "hard"):
        kinds = np.unique(label.values[label.known])
        if 2 < len(kinds) <= _CLASSES and (kinds == np.rint(kinds)).all():
            raise ValueError(
                f"{label.name!r} has {len(kinds)} values, but scores from 0 to 1 are for two classes: make a column "
                "that is 1 for the class that the scores are about, and 0 for the others."
            )
    if threshold is not None:
        low, high = float(score.min(initial=np.inf)), float(score.max(initial=-np.inf))
        if not low < threshold <= high:
            who = "everybody" if threshold <= low else "nobody"
            raise ValueError(
                f"threshold is {threshold:g}, but the scores are from {low:.3g} to {high:.3g}, so {who} would be "
                "selected: give the threshold in the unit of the scores."
            )


def _swapped(columns: Columns) -> list[str]:
    """Return a note if an attribute looks like the probabilities that the scores should be."""
    score, found = columns.score.values[columns.score.known], []
    # Predictions of a share may leave its range a little, and beside real labels no score is a probability.
    values = _outside(score) and (columns.label is None or bool(columns.label.categories))
    for column in columns.sensitive if values else ():
        s = column.values[column.known]
        if s.min() >= 0.0 and s.max() <= 1.0 and len(np.unique(s)) > _CLASSES:
            a, b = columns.score.name, column.name
            found.append(
                f"Are the columns swapped? The scores {a!r} are no probabilities, but the attribute {b!r} has many "
                f"values from 0 to 1. If {b!r} is the score, call audit({b}, sensitive_features={a}), or write "
                f"--score {b} --sensitive {a}."
            )
    return found


def _crossed(attributes: tuple[Column, ...]) -> list[Column]:
    """Return the intersections of several categorical attributes as one more attribute, if they are not too many."""
    if len(attributes) < 2 or not all(column.categories for column in attributes):
        return []
    known = np.logical_and.reduce([column.known for column in attributes])
    codes = np.column_stack([column.values[known].astype(int) for column in attributes])
    present, place = np.unique(codes, axis=0, return_inverse=True)
    if len(present) > CATEGORIES:
        return []
    names = [
        " × ".join(c.categories[k] for c, k in zip(attributes, row, strict=True)) for row in present
    ]
    values = np.full(len(known), np.nan)
    values[known] = place.ravel()
    return [Column(" × ".join(column.name for column in attributes), values, tuple(names))]


def _outside(score: Array) -> bool:
    """Whether many scores lie outside 0 to 1; a linear model of a label of two values gives a few."""
    return bool(np.mean((score < 0.0) | (score > 1.0)) > 0.25)


def _task(score: Array) -> str:
    if len(np.unique(score)) <= 2:
        return "hard"
    return "scores" if score.min() >= 0.0 and score.max() <= 1.0 else "values"


def _missing(columns: Columns) -> list[Missing]:
    score = columns.score.values
    found = []
    for column in columns.every():
        if column.missing:
            parts = [score[rows & np.isfinite(score)] for rows in (~column.known, column.known)]
            means = [
                float(part.mean()) if len(part) and column is not columns.score else None
                for part in parts
            ]
            found.append(Missing(column.name, column.missing, *means))
    return found


def _measures(curves: dict[str, Curve], spread: float) -> dict[str, Measure]:
    """Return the measures that follow from the curves; equalized odds needs those of both labels."""
    found, more = {}, {"equalized_odds": ("equal_opportunity", "label_0"), "gdp_over_sd": ("gdp",)}
    for name in MEASURES:
        parts, unit = more.get(name, (name,)), (spread or 1.0) if name == "gdp_over_sd" else 1.0
        each = [curves[part] for part in parts if part in curves]
        if len(each) == len(parts):
            # The larger of two numbers lies between the larger lower end and the larger upper end.
            value, low, high, floor = (max(getattr(c, key) for c in each) / unit for key in _GAP)
            found[name] = Measure(value, sum(curve.n for curve in each), low, high, floor)
    return found


@dataclass(frozen=True)
class _Work:
    """The checked input of one audit."""

    columns: Columns
    threshold: float | None
    alpha: float
    random_state: int

    @property
    def one_scale(self) -> bool:
        """Whether label minus prediction has a meaning: a label of two values needs predictions near 0 to 1."""
        label, score = self.columns.label, self.columns.score.values[self.columns.usable]
        return label is None or not label.categories or not _outside(score)

    def attribute(self, column: Column) -> AttributeAudit:
        """Return the audit of one attribute."""
        rows = self._rows(column)
        s, f, weight = column.values[rows], self.columns.score.values[rows], self._weight(rows)
        if np.ptp(s) == 0:
            raise ValueError(
                f"{column.name!r} is constant: nothing can depend on it. Check it, or leave it out."
            )
        nominal = bool(column.categories)
        whole = Smoother(s, weight=weight, nominal=nominal)
        everyone = np.ones(len(rows), dtype=bool)
        curves: dict[str, Curve] = {}

        def add(
            name: str,
            values: Array,
            part: NDArray[np.bool_],
            center: float | None = None,
            least: int = _LABEL_ROWS,
        ) -> None:
            """Add the curve of values among a part of the rows, unless they are too few."""
            smoother = whole
            if not part.all():
                if part.sum() < least or np.ptp(s[part]) == 0:
                    return
                smoother = Smoother(
                    s[part], weight=None if weight is None else weight[part], nominal=nominal
                )
            curves[name] = smoother.curve(
                values[part], center=center, alpha=self.alpha, random_state=self.random_state
            )

        add("gdp", f, everyone)
        attribute = _matrix(column.at(rows))
        tests = {"pvalue": self._test(f, attribute, rows)}
        chosen = None if self.threshold is None else (f >= self.threshold).astype(np.float64)
        if chosen is not None:
            add("selected", chosen, everyone)
        if (label := self.columns.label) is not None:
            y, told = label.values[rows], label.known[rows]
            if label.categories:
                kinds = (
                    (1, "equal_opportunity", "true_positives"),
                    (0, "label_0", "false_positives"),
                )
                for value, name, rate in kinds:
                    add(name, f, y == value)
                    if chosen is not None:
                        add(rate, chosen, y == value)
            if told.sum() >= _LABEL_ROWS and np.ptp(s[told]) > 0:
                if self.one_scale:
                    add("calibration", np.nan_to_num(y) - f, told, 0.0)
                tests["pvalue_given_label"] = self._test(
                    f[told], attribute[told], rows[told], y[told, None]
                )
        if self.columns.controls:
            kept = np.isin(rows, self._rows(column, *self.columns.controls))
            controls = [control.at(rows[kept]) for control in self.columns.controls]
            left = np.zeros(len(rows))
            left[kept] = residuals(
                f[kept], controls, weight=self._weight(rows[kept]), random_state=self.random_state
            )
            add("gdp_given", left, kept, 0.0, least=MIN_ROWS)
            tests["pvalue_given"] = self._test(
                f[kept], attribute[kept], rows[kept], _scaled(controls)
            )
        unbounded = _unbounded(f, column, weight)
        bound = None if unbounded else gdp_bound(f, sensitive_features=s, delta=self.alpha)
        spread = (
            float(np.sqrt(np.cov(f, aweights=weight, ddof=0))) if np.ptp(f) else 0.0
        )  # and not a rounding error
        numbers = _measures(curves, spread)
        if bound is not None:
            numbers["gdp_bound"] = Measure(bound.bound, len(rows))
        numbers |= tests
        groups, rates = (
            None
            if nominal or values is None
            else group_table(values, s, curves[name], weight=weight)
            for name, values in (("gdp", f), ("selected", chosen))
        )
        if chosen is not None:
            selected = curves["selected"]
            along, most = impact_ratio(selected)
            numbers["impact_ratio"] = Measure(along, len(rows), high=most)
            low, share, high = (selected.low, selected.mean, selected.high)
            if rates is not None:
                low, share, high = rates.low, rates.means, rates.high
            # The lowest rate over the highest: as estimated, and the least and the most that the intervals allow.
            ends = ((share, share), (low, high), (high, low))
            ratio, least, most = (
                float(np.clip(a.min() / b.max(), 0, 1)) if b.max() > 0 else 1.0 for a, b in ends
            )
            numbers["impact_ratio_groups"] = Measure(ratio, len(rows), least, most)
            numbers["impact_gap"] = Measure(1.0 - ratio, len(rows), 1.0 - most, 1.0 - least)
        return AttributeAudit(
            name=column.name,
            categories=column.categories,
            rows=len(rows),
            curves=curves,
            numbers=numbers
            | effect_sizes(f, attribute, weight=weight, random_state=self.random_state),
            groups=groups,
            selected_groups=rates,
            bound=bound,
            unbounded=unbounded,
            spread=spread,
        )

    def performance(self) -> dict[str, float]:
        """Return how good the scores are: means, and with labels of two values AUC, and accuracy at the threshold."""
        rows = np.flatnonzero(self.columns.usable)
        f, weight = self.columns.score.values[rows], self._weight(rows)
        found = {"mean_score": float(np.average(f, weights=weight))}
        chosen = None if self.threshold is None else f >= self.threshold
        if chosen is not None:
            found["selection_rate"] = float(np.average(chosen, weights=weight))
        if (label := self.columns.label) is not None and label.categories:
            told = label.known[rows]
            y, part = label.values[rows][told], None if weight is None else weight[told]
            found["mean_label"] = float(np.average(y, weights=part))
            if 0.0 < found["mean_label"] < 1.0:
                found["auc"] = float(roc_auc_score(y, f[told], sample_weight=part))
            if chosen is not None:
                found["accuracy"] = float(np.average(chosen[told] == y, weights=part))
        return found

    def joint(self) -> AttributeAudit:
        """Return the test and the effect sizes of all attributes together."""
        attributes = self.columns.sensitive
        rows = self._rows(*attributes)
        s = _scaled([column.at(rows) for column in attributes])
        f = self.columns.score.values[rows]
        numbers = {"pvalue": self._test(f, s, rows)}
        numbers |= effect_sizes(f, s, weight=self._weight(rows), random_state=self.random_state)
        return AttributeAudit(
            " and ".join(column.name for column in attributes), rows=len(rows), numbers=numbers
        )

    def _rows(self, *columns: Column) -> NDArray[np.intp]:
        """Return the usable rows in which all columns are known."""
        rows = np.flatnonzero(
            np.logical_and.reduce([self.columns.usable, *(column.known for column in columns)])
        )
        if len(rows) < MIN_ROWS:
            names = " and ".join(repr(column.name) for column in columns)
            known = f"Number of rows in which {names} and the score are known: {len(rows)}."
            raise ValueError(
                f"{known} Add rows, or check the columns: an audit needs at least {MIN_ROWS}."
            )
        return rows

    def _weight(self, rows: NDArray[np.intp]) -> Array | None:
        return None if self.columns.weight is None else self.columns.weight.values[rows]

    def _test(self, f: Array, s: Array, rows: NDArray[np.intp], given: Any = None) -> Measure:
        """Return the p-value of a test whether ``f`` and ``s (n, p)`` are independent, or so given a third variable."""
        most = len(f) if s.shape[1] == 1 and (given is None or given.shape[1] == 1) else TEST_ROWS
        kept = sample_rows(len(f), most, weight=self._weight(rows), random_state=self.random_state)
        if len(kept) < 4:  # weights can leave hardly any row
            return Measure(1.0, len(kept))
        options: dict[str, Any] = {
            "n_permutations": PERMUTATIONS,
            "random_state": self.random_state,
        }
        given = None if given is None else _with_labels(given[kept])
        found = hsic_test(f[kept], s[kept], given=given, method="aggregated", **options)
        return Measure(float(found.pvalue), len(kept))


def _unbounded(f: Array, column: Column, weight: Array | None) -> str:
    """Return why GDP has no guaranteed bound; an empty text if it has one."""
    if weight is not None:
        return "the rows have weights"
    if column.categories and all(
        re.fullmatch(r"[\[(][^,]+, [^,]+[\])]", name) for name in column.categories
    ):
        return "the rows may have chosen the edges of the bins; gdp_bound takes edges that were fixed in advance"
    low, high = f.min(), f.max()
    if low >= 0.0 and high <= 1.0:
        return ""
    percent = ": if they are percent, divide them by 100" if low >= 0.0 and high <= 100.0 else ""
    return f"it needs scores from 0 to 1, and these are from {low:.3g} to {high:.3g}{percent}"


def _matrix(column: Column) -> Array:
    """Return a numeric attribute as one column, and categories as indicators."""
    values = column.values[:, None]
    return (values == np.unique(values)).astype(np.float64) if column.categories else values


def _scaled(columns: Iterable[Column]) -> Array:
    return StandardScaler(with_mean=False).fit_transform(
        np.hstack([_matrix(column) for column in columns])
    )


def _with_labels(controls: Array) -> pd.DataFrame:
    """Return controls with few values as labels: like an attribute with few, they are not smoothed."""
    table = pd.DataFrame(controls)
    for name in table:
        values = table[name].nunique()
        if values <= LEVELS and len(table) >= ROWS_PER_LEVEL * values:
            table[name] = table[name].astype("category")
    return table


def gdp_score(
    y_true: Any, y_pred: Any, *, sensitive_features: Any, sample_weight: Any = None
) -> float:
    """Return GDP, the mean distance between E[prediction | S] and the overall mean.

    The same number as :func:`frhsic_core.gdp`, with the arguments of a metric; categories and missing values are
    allowed, as in :func:`frhsic_core.audit`.

    Parameters
    ----------
    y_true, y_pred : array_like
        Labels, which are ignored as in fairlearn's demographic parity, and predictions.
    sensitive_features : array_like
        One attribute, numbers or categories.
    sample_weight : array_like, optional
        Weights of the rows.

    Examples
    --------
    >>> gdp_score(None, [0.0] * 20 + [1.0] * 20, sensitive_features=[30] * 20 + [50] * 20)
    0.5
    """
    columns = read_columns(y_pred, sensitive_features, sample_weight=sample_weight)
    if len(columns.sensitive) > 1:
        raise ValueError("a metric takes one sensitive attribute: pass one column.")
    attribute = columns.sensitive[0]
    rows = columns.usable & attribute.known
    if not rows.any():
        raise ValueError(f"no row has a prediction and a value of {attribute.name!r}.")
    weight = None if columns.weight is None else columns.weight.values[rows]
    smoother = Smoother(attribute.values[rows], weight=weight, nominal=bool(attribute.categories))
    return smoother.gdp(columns.score.values[rows])[0]


# The parts of an audit beside its curves ------------------------------------------------------------------------------
#
# With many rows every dependence is significant, so an audit reports a test *and* effect sizes. Tests of one column use
# all rows. Everything else is measured on at most the number of rows that its cost allows. These rows are a random
# sample, and the report names their number.


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
    inner = np.linspace(0.0, 1.0, GROUPS + 1)[1:-1]
    if weight is None:
        edges = np.quantile(s, inner)
    else:
        order = np.argsort(s)
        below = np.cumsum(weight[order])
        edges = s[order][np.searchsorted(below, inner * below[-1])]
    edges = np.unique(edges[edges > s.min()])
    _, group = np.unique(np.searchsorted(edges, s, side="left"), return_inverse=True)
    levels = Smoother(group.astype(np.float64), weight=weight, nominal=True)
    means, spread = levels.means(f)
    tail, size = 0.5 * curve.alpha, levels.effective
    if np.isin(
        f, (0.0, 1.0)
    ).all():  # Clopper-Pearson: a group in which nobody is selected has a variance of zero
        hits = means * size
        low = np.nan_to_num(stats.beta.ppf(tail, hits, size - hits + 1.0), nan=0.0)
        high = np.nan_to_num(stats.beta.ppf(1.0 - tail, hits + 1.0, size - hits), nan=1.0)
    else:  # Student's t because the variance of a group is estimated
        freedom = np.maximum(size - 1.0, 1.0)
        half = stats.t.ppf(1.0 - tail, freedom) * np.sqrt(spread / levels.share / freedom)
        low, high = means - half, means + half
    start, end = pd.Series(s).groupby(group).agg(["min", "max"]).to_numpy().T
    part = np.clip(np.searchsorted(end, curve.s, side="left"), 0, len(end) - 1)
    inside = [certain_difference(curve, part == k) for k in range(len(end))]
    table = {"start": start, "end": end, "rows": np.bincount(group), "means": means}
    return pd.DataFrame(table | {"low": low, "high": high, "inside": inside})


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


def sample_rows(n: int, rows: int, *, weight: Array | None, random_state: int) -> NDArray[np.intp]:
    """Return the numbers of at most ``rows`` rows, drawn without replacement.

    With weights a row is kept with a probability that is proportional to its weight. The rows kept are then independent
    draws from the weighted population, and no row occurs twice, so the tests keep their level.

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


def effect_sizes(
    z: Array, s: Array, *, weight: Array | None, random_state: int
) -> dict[str, Measure]:
    """Return normalized HSIC, distance correlation, kernel HGR and the R² of two probes, each with its floor.

    The floor is the mean of the same number if the rows of S are shuffled.
    """
    rows = sample_rows(len(z), PROBE_ROWS, weight=weight, random_state=random_state)
    z, s = z[rows], s[rows]
    s = s[:, np.ptp(s, axis=0) > 0] if len(s) else s[:, :0]
    if s.shape[1] == 0 or len(s) < 10:  # a rare value can be absent from the sample
        return {}
    audited = audit_representation(z, s, random_state=random_state)
    generator = np.random.default_rng(random_state)

    def shuffled(statistic: Callable[..., Any], most: int) -> Measure:
        """Return a statistic of evenly spaced rows and a stack of S, with its mean over a few orders of S."""
        kept = spaced_rows(len(z), most).numpy()
        orders = [
            np.arange(len(kept)),
            *(generator.permutation(len(kept)) for _ in range(_SHUFFLES)),
        ]
        value, *others = map(float, statistic(z[kept], s[kept][np.stack(orders)]))
        return Measure(value, len(kept), floor=float(np.mean(others)))

    canonical = shuffled(partial(khgr, ridge=KHGR_RIDGE), KHGR_ROWS)  # Z is decomposed once
    found = audited.as_dict()
    return {
        "normalized_hsic": Measure(
            found["normalized_hsic_1"], audited.rows, floor=found["floor_1"]
        ),
        "distance_correlation": shuffled(
            lambda z, s: [distance_correlation(z, one) for one in s], audited.rows
        ),
        "khgr": canonical,
        **{name: Measure(found[name], len(z), floor=0.0) for name in ("linear_r2", "nonlinear_r2")},
    }


def residuals(
    f: Array, controls: list[Column], *, weight: Array | None = None, random_state: int = 0
) -> Array:
    """Return f − E[f | controls], cross-fitted: each row is predicted by a fit that did not see it.

    The fit is additive: cubic splines with 6 knots for a number, indicators for categories, and a small ridge. It uses
    at most 100,000 rows.

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
    parts = []
    for control in controls:
        values, levels = control.values[:, None], np.unique(control.values)
        knots = np.unique(np.quantile(values, np.linspace(0, 1, _KNOTS)))[:, None]
        spline = SplineTransformer(
            knots=knots, degree=3 if len(knots) > 2 else 1, extrapolation="constant"
        )
        few = control.categories or len(levels) <= 2 * _KNOTS
        parts.append(values == levels if few else spline.fit_transform(values))
    design = np.hstack(parts).astype(np.float64)
    folds = KFold(FOLDS, shuffle=True, random_state=random_state).split(design)
    cuts = [(train[:: -(-len(train) // FIT_ROWS)], test) for train, test in folds]
    weights = {} if weight is None else {"sample_weight": weight}
    # Collinear columns are what the ridge is for. A user's routing of metadata is not meant for it.
    with warnings.catch_warnings(action="ignore"), config_context(enable_metadata_routing=False):
        fitted = cross_val_predict(
            RidgeCV(alphas=(1e-3, 1e-1, 10.0)), design, f, cv=cuts, params=weights
        )
    return f - fitted
