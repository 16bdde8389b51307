"""Audit predictions: how much do they depend on each sensitive attribute, for whom, and is it more than chance."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.metrics import roc_auc_score

from frhsic_core.arrays import RandomState, as_seed
from frhsic_core.auditing._input import MIN_ROWS, Column, Columns, read_columns
from frhsic_core.auditing._measures import (
    GROUPS,
    Decisions,
    Effect,
    Test,
    effect_sizes,
    group_table,
    impact_ratio,
    independence_test,
    residuals,
)
from frhsic_core.auditing._results import AttributeAudit, Audit, Given, Joint, Missing
from frhsic_core.bounds import DependenceBound, gdp_bound
from frhsic_core.conditional._curve import Curve, Smoother

Array = NDArray[np.float64]

_CLASSES = 20  # at most so many different whole numbers are classes
_LABEL_ROWS = 50  # fewer people with a label have no curve


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

    The curve E[prediction | S = s] has a band that covers the whole curve with probability 1 − ``alpha``. GDP, the mean
    distance of this curve from the overall mean, has an interval. A test shows whether the dependence is more than
    chance, and effect sizes show how strong it is. The curve, GDP and the tests of one column use all rows. The probes
    and the tests of several columns use a random sample of at most 20,000 rows, the kernel statistics at most 2,000;
    each number is reported with its rows.

    Rows without a score or a weight are left out everywhere, and rows without an attribute are left out of the audit of
    this attribute. All of them are counted, and the mean score of the rows left out is reported.

    O(n log n) time and O(n) memory for n rows: a million rows take less than a minute.

    Parameters
    ----------
    y_pred : array_like
        ``(n,)``: probabilities, hard labels or real predictions; ``(n, k)``: an embedding.
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
        It prints as sentences; ``.table()``, ``.as_dict()``, ``.plot()``, ``.to_html()`` and ``.save(path)``.

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
        raise ValueError(f"alpha is {alpha}: it lies between 0 and 0.5, such as 0.05 for a coverage of 95 %.")
    columns = read_columns(y_pred, sensitive_features, y_true, control_features, sample_weight, positive_class)
    provenance = {"model": model} if model else {}
    return audit_columns(
        columns,
        threshold=threshold,
        alpha=alpha,
        unit=unit,
        random_state=as_seed(random_state),
        provenance=provenance,
    )


def audit_columns(
    columns: Columns,
    *,
    threshold: float | None = None,
    alpha: float = 0.05,
    unit: str = "people",
    random_state: int = 0,
    notes: tuple[str, ...] = (),
    source: str = "",
    provenance: dict[str, str] | None = None,
) -> Audit:
    """Audit columns that were already read; see :func:`audit`."""
    scores = np.column_stack([column.values for column in columns.scores])
    usable = np.asarray(np.isfinite(scores).all(axis=1))
    weight = None
    if columns.weight is not None:
        weight = columns.weight.values
        usable &= np.nan_to_num(weight) > 0
    label, task = _label(columns.label), _task(scores[usable])
    if label is not None and not label.categories and task in ("scores", "hard"):
        y = label.values[label.known]
        kinds = np.unique(y)
        if 2 < len(kinds) <= _CLASSES and (kinds == np.rint(kinds)).all():
            raise ValueError(
                f"{label.name!r} has {len(kinds)} values, but scores from 0 to 1 are for two classes: make a column "
                "that is 1 for the class that the scores are about, and 0 for the others."
            )
    if threshold is not None and task == "embedding":
        raise ValueError("threshold needs one column of scores: name one of them.")
    work = _Work(columns, scores, usable, weight, label, task, threshold, alpha, random_state)
    attributes = tuple(work.attribute(column) for column in columns.sensitive)
    smallest = min(attribute.rows for attribute in attributes)
    if smallest < 200:
        notes = (*notes, f"There are only {smallest} rows: the bands are wide, and their coverage is approximate.")
    return Audit(
        attributes=attributes,
        joint=work.joint() if len(attributes) > 1 else None,
        rows=columns.n,
        missing=tuple(_missing(columns, scores[:, 0])),
        scores=tuple(column.name for column in columns.scores),
        label=columns.label.name if columns.label else "",
        weight=columns.weight.name if columns.weight else "",
        controls=tuple(column.name for column in columns.controls),
        task=task,
        alpha=alpha,
        random_state=random_state,
        notes=notes,
        source=source,
        unit=unit,
        threshold=threshold,
        performance=work.performance(),
        provenance=provenance or {},
    )


def _task(scores: Array) -> str:
    if scores.shape[1] > 1:
        return "embedding"
    distinct = np.unique(scores[:1000])
    if len(distinct) <= 2 and len(np.unique(scores)) <= 2:
        return "hard"
    return "scores" if scores.size and scores.min() >= 0.0 and scores.max() <= 1.0 else "values"


def _label(column: Column | None) -> Column | None:
    """Return the label with the values 0 and 1 if it has two values."""
    if column is None:
        return None
    kinds = np.unique(column.values[column.known])
    if len(kinds) != 2:
        return column
    values = np.where(column.known, (column.values == kinds[1]).astype(np.float64), np.nan)
    return Column(column.name, values, ("0", "1"), column.missing, column.infinite)


def _missing(columns: Columns, score: Array) -> list[Missing]:
    found = []
    for column in columns.every():
        if column.missing + column.infinite == 0:
            continue
        known = column.known
        scored = np.isfinite(score)
        means: list[float | None] = [None, None]
        if column.name != columns.scores[0].name:
            for k, part in enumerate((~known & scored, known & scored)):
                means[k] = float(score[part].mean()) if part.any() else None
        found.append(Missing(column.name, column.missing, column.infinite, *means))
    return found


@dataclass(frozen=True)
class _Work:
    """The checked input of one audit."""

    columns: Columns
    scores: Array
    usable: NDArray[np.bool_]
    weight: Array | None
    label: Column | None
    task: str
    threshold: float | None
    alpha: float
    random_state: int

    def attribute(self, column: Column) -> AttributeAudit:
        """Return the audit of one attribute."""
        rows = np.flatnonzero(self.usable & column.known)
        self._require(rows, column.name)
        s = column.values[rows]
        if np.ptp(s) == 0:
            raise ValueError(
                f"{column.name!r} is constant: nothing can depend on it. Check the column, or leave it out."
            )
        weight = self._weight(rows)
        z = self.scores[rows]
        curve, best, each = self._curves(z, s, weight, nominal=bool(column.categories))
        attribute = _matrix(column, s)
        test, effects = self._strength(z, attribute, weight)
        f = z[:, best]
        labels: dict[str, Curve] = {}
        label_test = None
        if self.label is not None:
            labels = self._labels(rows, s, column, f)
            told = self.label.known[rows]
            if told.sum() >= _LABEL_ROWS and np.ptp(s[told]) > 0:
                part = None if weight is None else weight[told]
                y = self.label.values[rows][told, None]
                options: dict[str, Any] = {"weight": part, "random_state": self.random_state}
                label_test = independence_test(z[told], attribute[told], given=y, **options)
        return AttributeAudit(
            name=column.name,
            categories=column.categories,
            rows=len(rows),
            score=self.columns.scores[best].name,
            curve=curve,
            columns=each,
            test=test,
            effects=effects,
            groups=() if column.categories else tuple(group_table(f, s, curve, k, weight=weight) for k in GROUPS),
            labels=labels,
            label_test=label_test,
            given=self._given(rows, column, best) if self.columns.controls else None,
            bound=self._bound(f, s, weight),
            spread=float(f.std()),
            decisions=None if self.threshold is None else self._decisions(rows, s, column, f),
        )

    def performance(self) -> dict[str, float]:
        """Return how good the scores are: means, and with labels of two values AUC, and accuracy at the threshold."""
        if self.task == "embedding":
            return {}
        rows = np.flatnonzero(self.usable)
        f, weight = self.scores[rows, 0], self._weight(rows)
        found = {"mean_score": float(np.average(f, weights=weight))}
        chosen = None if self.threshold is None else f >= self.threshold
        if chosen is not None:
            found["selection_rate"] = float(np.average(chosen, weights=weight))
        if self.label is not None and self.label.categories:
            told = self.label.known[rows]
            y, part = self.label.values[rows][told], None if weight is None else weight[told]
            found["mean_label"] = float(np.average(y, weights=part))
            if 0.0 < found["mean_label"] < 1.0:
                found["auc"] = float(roc_auc_score(y, f[told], sample_weight=part))
            if chosen is not None:
                found["accuracy"] = float(np.average(chosen[told] == y, weights=part))
        return found

    def _decisions(self, rows: NDArray[np.intp], s: Array, column: Column, f: Array) -> Decisions:
        assert self.threshold is not None
        chosen = (f >= self.threshold).astype(np.float64)
        weight = self._weight(rows)
        selected = self._curve_of(np.ones(len(s), dtype=bool), rows, s, column, chosen)
        assert selected is not None
        rates: list[Curve | None] = [None, None]
        if self.label is not None and self.label.categories:
            y = self.label.values[rows]
            rates = [self._curve_of(y == value, rows, s, column, chosen) for value in (1.0, 0.0)]
        groups = None if column.categories else group_table(chosen, s, selected, GROUPS[1], weight=weight)
        return Decisions(selected, rates[0], rates[1], groups, *impact_ratio(selected))

    def _curve_of(
        self,
        part: NDArray[np.bool_],
        rows: NDArray[np.intp],
        s: Array,
        column: Column,
        values: Array,
        center: float | None = None,
    ) -> Curve | None:
        """Return the curve of values among a part of the rows; None if it has too few."""
        if not part.all() and (part.sum() < _LABEL_ROWS or np.ptp(s[part]) == 0):
            return None
        weight = self._weight(rows)
        smoother = Smoother(s[part], weight=None if weight is None else weight[part], nominal=bool(column.categories))
        return smoother.curve(values[part], center=center, alpha=self.alpha, random_state=self.random_state)

    def _bound(self, f: Array, s: Array, weight: Array | None) -> DependenceBound | None:
        """Return the upper bound on GDP, where the possible values of the scores are known and all rows count alike."""
        if weight is not None or f.min() < 0.0 or f.max() > 1.0:
            return None
        # The column was chosen by the rows if there are several.
        return gdp_bound(f, sensitive_features=s, delta=self.alpha, candidates=self.scores.shape[1])

    def joint(self) -> Joint:
        """Return the audit of all attributes together."""
        known = self.usable.copy()
        for column in self.columns.sensitive:
            known &= column.known
        rows = np.flatnonzero(known)
        names = tuple(column.name for column in self.columns.sensitive)
        self._require(rows, " and ".join(names))
        s = np.concatenate([_matrix(column, column.values[rows]) for column in self.columns.sensitive], axis=1)
        deviation = s.std(0)
        s = s / np.where(deviation > 0, deviation, 1.0)
        test, effects = self._strength(self.scores[rows], s, self._weight(rows))
        return Joint(names, len(rows), test, effects)

    def _require(self, rows: NDArray[np.intp], name: str) -> None:
        if len(rows) < MIN_ROWS:
            raise ValueError(
                f"Number of rows in which {name!r} and the score are both known: {len(rows)}. An audit needs at least "
                f"{MIN_ROWS}. Add rows, or check the columns for missing values."
            )

    def _weight(self, rows: NDArray[np.intp]) -> Array | None:
        return None if self.weight is None else self.weight[rows]

    def _curves(
        self, z: Array, s: Array, weight: Array | None, *, nominal: bool
    ) -> tuple[Curve, int, dict[str, float]]:
        """Return the curve of the score that depends most, its number, and GDP of each score in its own deviation."""
        count = z.shape[1]
        smoother = Smoother(s, weight=weight, nominal=nominal)
        # The largest of several intervals: each at a higher level, so that all of them hold together.
        options: dict[str, Any] = {"alpha": self.alpha / count, "random_state": self.random_state}
        curves = [smoother.curve(z[:, k], **options) for k in range(count)]
        sizes = [curve.gdp / (float(z[:, k].std()) or 1.0) for k, curve in enumerate(curves)]
        best = int(np.argmax(sizes))
        names = [column.name for column in self.columns.scores]
        return curves[best], best, dict(zip(names, sizes, strict=True)) if count > 1 else {}

    def _strength(self, z: Array, s: Array, weight: Array | None) -> tuple[Test, dict[str, Effect]]:
        options: dict[str, Any] = {"weight": weight, "random_state": self.random_state}
        deviation = z.std(0)
        z = z / np.where(deviation > 0, deviation, 1.0) if z.shape[1] > 1 else z
        return independence_test(z, s, **options), effect_sizes(z, s, **options)

    def _labels(self, rows: NDArray[np.intp], s: Array, column: Column, f: Array) -> dict[str, Curve]:
        assert self.label is not None
        y = self.label.values[rows]
        found = {}
        if self.label.categories and self.task != "embedding":
            found["equal_opportunity"] = self._curve_of(y == 1.0, rows, s, column, f)
            found["label_0"] = self._curve_of(y == 0.0, rows, s, column, f)
        if self.task != "embedding" and np.isfinite(y).sum() >= _LABEL_ROWS:
            found["calibration"] = self._curve_of(np.isfinite(y), rows, s, column, np.nan_to_num(y) - f, 0.0)
        return {name: value for name, value in found.items() if value is not None}

    def _given(self, rows: NDArray[np.intp], column: Column, best: int) -> Given:
        controls = self.columns.controls
        known = np.ones(len(rows), dtype=bool)
        for control in controls:
            known &= control.known[rows]
        rows = rows[known]
        names = tuple(control.name for control in controls)
        self._require(rows, f"{', '.join(names)}, {column.name}")
        weight = self._weight(rows)
        s = column.values[rows]
        options: dict[str, Any] = {"weight": weight, "random_state": self.random_state}
        values = [(control.values[rows], bool(control.categories)) for control in controls]
        left = residuals(self.scores[rows, best], values, **options)
        smoother = Smoother(s, weight=weight, nominal=bool(column.categories))
        curve = smoother.curve(left, center=0.0, alpha=self.alpha, random_state=self.random_state)
        given = np.concatenate([_matrix(control, control.values[rows]) for control in controls], axis=1)
        deviation = given.std(0)
        given = given / np.where(deviation > 0, deviation, 1.0)
        test = independence_test(self.scores[rows], _matrix(column, s), given=given, **options)
        return Given(names, curve, test)


def _matrix(column: Column, values: Array) -> Array:
    """Return a numeric attribute as one column, and categories as indicators."""
    if not column.categories:
        return values[:, None]
    present = np.unique(values)
    return (values[:, None] == present).astype(np.float64)
