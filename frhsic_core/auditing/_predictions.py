"""Audit predictions: how much do they depend on each sensitive attribute, for whom, and is it more than chance."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.metrics import roc_auc_score

from frhsic_core.arrays import RandomState, as_seed
from frhsic_core.auditing._input import CATEGORIES, MIN_ROWS, Column, Columns, read_columns
from frhsic_core.auditing._measures import (
    Effect,
    Test,
    decisions,
    effect_sizes,
    group_table,
    independence_test,
    residuals,
)
from frhsic_core.auditing._results import AttributeAudit, Audit, Missing
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
    return audit_columns(
        columns,
        threshold=threshold,
        alpha=alpha,
        unit=unit,
        random_state=as_seed(random_state),
        provenance={"model": model} if model else {},
    )


def audit_columns(
    columns: Columns,
    *,
    threshold: float | None = None,
    alpha: float = 0.05,
    unit: str = "people",
    random_state: int = 0,
    notes: tuple[str, ...] = (),
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
    _check(columns, scores[usable], label, task, threshold)
    work = _Work(columns, scores, usable, weight, label, task, threshold, alpha, random_state)
    crossed = _crossed(columns.sensitive)
    attributes = tuple(work.attribute(column) for column in (*columns.sensitive, *crossed))
    smallest = min(attribute.rows for attribute in attributes)
    if smallest < 200:
        notes = (*notes, f"There are only {smallest} rows: the bands are wide, and their coverage is approximate.")
    return Audit(
        attributes=attributes,
        joint=work.joint() if len(attributes) > 1 and not crossed else None,
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
        unit=unit,
        threshold=threshold,
        performance=work.performance(),
        provenance=provenance or {},
    )


def _check(columns: Columns, scores: Array, label: Column | None, task: str, threshold: float | None) -> None:
    """Raise an error for scores, labels and thresholds that do not belong together."""
    if scores.shape[1] == 2 and scores.size and (np.abs(scores.sum(1) - 1.0) < 1e-6).all():
        raise ValueError(
            "y_pred has two columns that sum to 1, the probabilities of both classes: pass the second alone, "
            "predict_proba(X)[:, 1]."
        )
    if label is not None and not label.categories and task in ("scores", "hard"):
        kinds = np.unique(label.values[label.known])
        if 2 < len(kinds) <= _CLASSES and (kinds == np.rint(kinds)).all():
            raise ValueError(
                f"{label.name!r} has {len(kinds)} values, but scores from 0 to 1 are for two classes: make a column "
                "that is 1 for the class that the scores are about, and 0 for the others."
            )
    if threshold is not None:
        if task == "embedding":
            raise ValueError("threshold needs one column of scores: name one of them.")
        low, high = float(scores.min(initial=np.inf)), float(scores.max(initial=-np.inf))
        if not low < threshold <= high:
            who = "everybody" if threshold <= low else "nobody"
            raise ValueError(
                f"threshold is {threshold:g}, but the scores are from {low:.3g} to {high:.3g}, so {who} would be "
                "selected: give the threshold in the unit of the scores."
            )


def _crossed(attributes: tuple[Column, ...]) -> list[Column]:
    """Return the intersections of several categorical attributes as one more attribute, if they are not too many."""
    if len(attributes) < 2 or not all(column.categories for column in attributes):
        return []
    known = np.logical_and.reduce([column.known for column in attributes])
    codes = np.column_stack([column.values[known].astype(int) for column in attributes])
    present, place = np.unique(codes, axis=0, return_inverse=True)
    if len(present) > CATEGORIES:
        return []
    names = [" × ".join(c.categories[k] for c, k in zip(attributes, row, strict=True)) for row in present]
    values = np.full(len(known), np.nan)
    values[known] = place.ravel()
    return [Column(" × ".join(column.name for column in attributes), values, tuple(names))]


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
        rows = self._rows(column)
        s, z, weight = column.values[rows], self.scores[rows], self._weight(rows)
        if np.ptp(s) == 0:
            raise ValueError(
                f"{column.name!r} is constant: nothing can depend on it. Check the column, or leave it out."
            )
        nominal = bool(column.categories)
        whole = Smoother(s, weight=weight, nominal=nominal)

        def curve_of(
            values: Array, part: NDArray[np.bool_], center: float | None = None, least: int = _LABEL_ROWS
        ) -> Curve | None:
            """Return the curve of values among a part of the rows; None if it has too few."""
            smoother = whole
            if not part.all():
                if part.sum() < least or np.ptp(s[part]) == 0:
                    return None
                smoother = Smoother(s[part], weight=None if weight is None else weight[part], nominal=nominal)
            return smoother.curve(values[part], center=center, alpha=self.alpha, random_state=self.random_state)

        # The largest of several intervals: each at a higher level, so that all of them hold together.
        count = z.shape[1]
        options: dict[str, Any] = {"alpha": self.alpha / count, "random_state": self.random_state}
        each = [whole.curve(z[:, k], **options) for k in range(count)]
        names = [score.name for score in self.columns.scores]
        sizes = {
            name: one.gdp / (float(z[:, k].std()) or 1.0) for k, (name, one) in enumerate(zip(names, each, strict=True))
        }
        best = int(np.argmax(list(sizes.values())))
        f = z[:, best]
        curves: dict[str, Curve | None] = {"gdp": each[best]}
        attribute = _matrix(column, s)
        test, effects = self._strength(z, attribute, weight)
        tests = {"pvalue": test}
        # What the threshold selects, and the people with each label.
        everyone = np.ones(len(rows), dtype=bool)
        chosen = None if self.threshold is None else (f >= self.threshold).astype(np.float64)
        if chosen is not None:
            curves["selected"] = curve_of(chosen, everyone)
        if self.label is not None:
            y = self.label.values[rows]
            told = np.isfinite(y)
            if self.label.categories and self.task != "embedding":
                for value, name, rate in (
                    (1, "equal_opportunity", "true_positives"),
                    (0, "label_0", "false_positives"),
                ):
                    curves[name] = curve_of(f, y == value)
                    curves[rate] = None if chosen is None else curve_of(chosen, y == value)
            if told.sum() >= _LABEL_ROWS and np.ptp(s[told]) > 0:
                if self.task != "embedding":
                    curves["calibration"] = curve_of(np.nan_to_num(y) - f, told, 0.0)
                tests["pvalue_given_label"] = self._test(z[told], attribute[told], rows[told], y[told, None])
        if self.columns.controls:
            kept = np.isin(rows, self._rows(column, *self.columns.controls))
            controls = [(control, control.values[rows[kept]]) for control in self.columns.controls]
            left = np.zeros(len(rows))
            left[kept] = residuals(
                f[kept],
                [(values, bool(control.categories)) for control, values in controls],
                weight=self._weight(rows[kept]),
                random_state=self.random_state,
            )
            given = _scaled(np.concatenate([_matrix(*control) for control in controls], axis=1))
            curves["gdp_given"] = curve_of(left, kept, 0.0, least=MIN_ROWS)
            tests["pvalue_given"] = self._test(z[kept], attribute[kept], rows[kept], given)
        found = {name: one for name, one in curves.items() if one is not None}
        groups = decided = None
        if not nominal:
            groups = group_table(f, s, each[best], weight=weight)
        if chosen is not None:
            rates = None if nominal else group_table(chosen, s, found["selected"], weight=weight)
            decided = decisions(found["selected"], rates)
        return AttributeAudit(
            name=column.name,
            categories=column.categories,
            rows=len(rows),
            score=names[best],
            curves=found,
            columns=sizes if count > 1 else {},
            tests=tests,
            effects=effects,
            groups=groups,
            bound=self._bound(f, s, weight),
            spread=float(f.std()),
            decisions=decided,
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

    def _bound(self, f: Array, s: Array, weight: Array | None) -> DependenceBound | None:
        """Return the upper bound on GDP, where the possible values of the scores are known and all rows count alike."""
        if weight is not None or f.min() < 0.0 or f.max() > 1.0:
            return None
        # The column was chosen by the rows if there are several.
        return gdp_bound(f, sensitive_features=s, delta=self.alpha, candidates=self.scores.shape[1])

    def joint(self) -> AttributeAudit:
        """Return the test and the effect sizes of all attributes together."""
        attributes = self.columns.sensitive
        rows = self._rows(*attributes)
        s = _scaled(np.concatenate([_matrix(column, column.values[rows]) for column in attributes], axis=1))
        test, effects = self._strength(self.scores[rows], s, self._weight(rows))
        name = " and ".join(column.name for column in attributes)
        return AttributeAudit(name, rows=len(rows), tests={"pvalue": test}, effects=effects)

    def _rows(self, *columns: Column) -> NDArray[np.intp]:
        """Return the usable rows in which all columns are known."""
        rows = np.flatnonzero(np.logical_and.reduce([self.usable, *(column.known for column in columns)]))
        if len(rows) < MIN_ROWS:
            names = " and ".join(repr(column.name) for column in columns)
            raise ValueError(
                f"Number of rows in which {names} and the score are known: {len(rows)}. An audit needs at least "
                f"{MIN_ROWS}. Add rows, or check the columns for missing values."
            )
        return rows

    def _weight(self, rows: NDArray[np.intp]) -> Array | None:
        return None if self.weight is None else self.weight[rows]

    def _test(self, z: Array, s: Array, rows: NDArray[np.intp], given: Array) -> Test:
        return independence_test(z, s, given=given, weight=self._weight(rows), random_state=self.random_state)

    def _strength(self, z: Array, s: Array, weight: Array | None) -> tuple[Test, dict[str, Effect]]:
        options: dict[str, Any] = {"weight": weight, "random_state": self.random_state}
        z = _scaled(z) if z.shape[1] > 1 else z
        return independence_test(z, s, **options), effect_sizes(z, s, **options)


def _matrix(column: Column, values: Array) -> Array:
    """Return a numeric attribute as one column, and categories as indicators."""
    if not column.categories:
        return values[:, None]
    present = np.unique(values)
    return (values[:, None] == present).astype(np.float64)


def _scaled(values: Array) -> Array:
    deviation = values.std(0)
    return values / np.where(deviation > 0, deviation, 1.0)
