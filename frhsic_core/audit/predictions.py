"""Audit predictions: how much do they depend on each sensitive attribute, for whom, and is it more than chance."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from frhsic_core.audit.adjust import design, residuals
from frhsic_core.audit.binning import GROUPS, group_means
from frhsic_core.audit.columns import MIN_ROWS, Column, Columns, read_columns
from frhsic_core.audit.curve import Bins, Curve, cut, fit_curve
from frhsic_core.audit.measures import Effect, Test, conditional_test, effect_sizes, independence_test
from frhsic_core.audit.results import AttributeAudit, Audit, Given, Joint, Missing
from frhsic_core.conditional.gdp import gdp

Array = NDArray[np.float64]

_LABEL_ROWS = 50  # fewer people with a label have no curve


def audit(
    y_pred: Any,
    *,
    sensitive_features: Any,
    y_true: Any = None,
    control_features: Any = None,
    sample_weight: Any = None,
    positive: Any = None,
    level: float = 0.95,
    unit: str = "people",
    random_state: int = 0,
) -> Audit:
    """Measure how much predictions depend on sensitive attributes, without cutting the attributes into groups.

    The curve E[prediction | S = s] has a band that covers the whole curve with probability ``level``, and GDP, the mean
    distance of this curve from the overall mean, has an interval. A test says whether the dependence is more than
    chance, and effect sizes say how strong it is. The curve and GDP use all rows. The test, the probes and the kernel
    statistics use random samples of at most 2,000, 20,000 and 2,000 rows; each number is reported with its rows.

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
    positive : object, optional
        The value of ``y_true`` (or of hard labels) that counts as 1, if it is a word.
    level : float
        Coverage of bands and intervals.
    unit : str
        What a row is, for the sentences: people, communities, contracts.
    random_state : int
        Seed of everything random.

    Returns
    -------
    Audit
        Prints as sentences; ``.table()``, ``.as_dict()``, ``.plot()``, ``.to_html()`` and ``.save(path)``.

    Examples
    --------
    >>> import pandas as pd
    >>> generator = np.random.default_rng(0)
    >>> age = generator.uniform(20, 70, 400)
    >>> score = 0.3 + 0.2 * (age > 45) + 0.1 * generator.random(400)
    >>> result = audit(score, sensitive_features=pd.Series(age, name="age"))
    >>> result["age"].curve.gdp > 0.08, result["age"].test.pvalue <= 0.05
    (True, True)
    """
    if not 0.5 <= level < 1.0:
        raise ValueError(f"level is {level}: coverage lies between 0.5 and 1, such as 0.95.")
    columns = read_columns(y_pred, sensitive_features, y_true, control_features, sample_weight, positive)
    return audit_columns(columns, level=level, unit=unit, random_state=random_state)


def audit_columns(
    columns: Columns,
    *,
    level: float = 0.95,
    unit: str = "people",
    random_state: int = 0,
    notes: tuple[str, ...] = (),
    source: str = "",
) -> Audit:
    """Audit columns that were already read; see :func:`audit`."""
    scores = np.column_stack([column.values for column in columns.scores])
    usable = np.asarray(np.isfinite(scores).all(axis=1))
    weight = None
    if columns.weight is not None:
        weight = columns.weight.values
        usable &= np.nan_to_num(weight) > 0
    label, task = _label(columns.label), _task(scores[usable])
    work = _Work(columns, scores, usable, weight, label, task, level, random_state)
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
        level=level,
        seed=random_state,
        notes=notes,
        source=source,
        unit=unit,
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
    level: float
    seed: int

    def attribute(self, column: Column) -> AttributeAudit:
        """Return the audit of one attribute."""
        rows = np.flatnonzero(self.usable & column.known)
        self._require(rows, column.name)
        s = column.values[rows]
        if np.ptp(s) == 0:
            raise ValueError(
                f"{column.name!r} is constant: nothing can depend on it. Check the column, or leave it out."
            )
        bins = cut(s, nominal=bool(column.categories))
        weight = self._weight(rows)
        z = self.scores[rows]
        curve, best, each = self._curves(z, bins, weight)
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
                label_test = conditional_test(z[told], attribute[told], y, weight=part, seed=self.seed)
        return AttributeAudit(
            name=column.name,
            categories=column.categories,
            rows=len(rows),
            score=self.columns.scores[best].name,
            curve=curve,
            columns=each,
            test=test,
            effects=effects,
            groups=() if column.categories else tuple(group_means(curve, groups) for groups in GROUPS),
            conventions={} if column.categories else _conventions(f, bins, weight),
            labels=labels,
            label_test=label_test,
            given=self._given(rows, column, best) if self.columns.controls else None,
        )

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

    def _curves(self, z: Array, bins: Bins, weight: Array | None) -> tuple[Curve, int, dict[str, float]]:
        """Return the curve of the score that depends most, its number, and GDP of each score in its own deviation."""
        count = z.shape[1]
        # The largest of several intervals: each at a higher level, so that all of them hold together.
        level = 1.0 - (1.0 - self.level) / count
        curves = [fit_curve(z[:, k], bins, weight=weight, level=level, seed=self.seed) for k in range(count)]
        sizes = [curve.gdp / (float(z[:, k].std()) or 1.0) for k, curve in enumerate(curves)]
        best = int(np.argmax(sizes))
        names = [column.name for column in self.columns.scores]
        return curves[best], best, dict(zip(names, sizes, strict=True)) if count > 1 else {}

    def _strength(self, z: Array, s: Array, weight: Array | None) -> tuple[Test, dict[str, Effect]]:
        options: dict[str, Any] = {"weight": weight, "seed": self.seed}
        deviation = z.std(0)
        z = z / np.where(deviation > 0, deviation, 1.0) if z.shape[1] > 1 else z
        return independence_test(z, s, **options), effect_sizes(z, s, **options)

    def _labels(self, rows: NDArray[np.intp], s: Array, column: Column, f: Array) -> dict[str, Curve]:
        assert self.label is not None
        y = self.label.values[rows]
        nominal = bool(column.categories)
        found = {}

        def curve(part: NDArray[np.bool_], values: Array, center: float | None) -> Curve | None:
            if part.sum() < _LABEL_ROWS or np.ptp(s[part]) == 0:
                return None
            weight = self._weight(rows)
            return fit_curve(
                values[part],
                cut(s[part], nominal=nominal),
                weight=None if weight is None else weight[part],
                center=center,
                level=self.level,
                seed=self.seed,
            )

        if self.label.categories and self.task != "embedding":
            found["equal_opportunity"] = curve(y == 1.0, f, None)
            found["label_0"] = curve(y == 0.0, f, None)
        if self.task != "embedding":
            found["calibration"] = curve(np.isfinite(y), np.nan_to_num(y) - f, 0.0)
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
        left = residuals(self.scores[rows, best], design(controls, rows), weight=weight, seed=self.seed)
        curve = fit_curve(
            left,
            cut(s, nominal=bool(column.categories)),
            weight=weight,
            center=0.0,
            level=self.level,
            seed=self.seed,
        )
        given = np.concatenate([_matrix(control, control.values[rows]) for control in controls], axis=1)
        deviation = given.std(0)
        given = given / np.where(deviation > 0, deviation, 1.0)
        test = conditional_test(self.scores[rows], _matrix(column, s), given, weight=weight, seed=self.seed)
        return Given(names, curve, test)


def _matrix(column: Column, values: Array) -> Array:
    """Return a numeric attribute as one column, and categories as indicators."""
    if not column.categories:
        return values[:, None]
    present = np.unique(values)
    return (values[:, None] == present).astype(np.float64)


def _conventions(f: Array, bins: Bins, weight: Array | None) -> dict[str, float]:
    """Return GDP by the smoothing of :func:`frhsic_core.gdp`, from the bins and the bandwidth of all rows."""
    w = np.ones(len(f)) if weight is None else weight
    mass = np.bincount(bins.index, w)
    means = np.bincount(bins.index, w * f) / np.where(mass > 0, mass, 1.0)
    at = bins.values
    rows = w.sum() ** 2 / (w * w).sum()
    center = float(mass @ at / mass.sum())
    deviation = float(np.sqrt(mass @ (at - center) ** 2 / mass.sum() * rows / max(rows - 1.0, 1.0)))
    silverman = deviation * (rows * 0.75) ** -0.2 or 1.0
    low, high = at[0], at[-1]
    found: Mapping[str, Any] = {
        "sample": gdp(means, at, sample_weight=mass, bandwidth=silverman),
        "density": gdp(means, at, sample_weight=mass, bandwidth=silverman, weights="density"),
        "uniform": gdp(means, at, sample_weight=mass, bandwidth=silverman, weights="uniform"),
        "reference": gdp(means, (at - low) / (high - low), sample_weight=mass, reference=True),
    }
    return {name: float(value) for name, value in found.items()}
