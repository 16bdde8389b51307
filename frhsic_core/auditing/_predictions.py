"""Audit predictions: how much they depend on each attribute, for whom, and beyond chance."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from frhsic_core._arrays import RandomState, as_seed, warn_caller
from frhsic_core.auditing._measuring import Measuring, outside
from frhsic_core.auditing._report import Audit
from frhsic_core.auditing._results import AttributeAudit, Missing
from frhsic_core.auditing._rows import effective_rows, find_copies, left_out
from frhsic_core.conditional.neighbors import SIZE
from frhsic_core.inputs.columns import CATEGORIES, Array, Column, Columns, far_codes, read_columns

_NEARLY_ALL = 0.95  # of the rows: weights that differ so little need no note
_CLASSES = 20  # at most so many different whole numbers are classes


def audit(
    y_pred: Any,
    *misplaced: Any,
    sensitive_features: Any = None,
    y_true: Any = None,
    control_features: Any = None,
    sample_weight: Any = None,
    positive_class: Any = None,
    threshold: float | None = None,
    min_group: int = SIZE,
    counts: bool = False,
    alpha: float = 0.05,
    unit: str = "people",
    model: str = "",
    random_state: RandomState = 0,
) -> Audit:
    """Measure how much predictions depend on sensitive attributes, without cutting into groups.

    The curve E[prediction | S = s] has a band that covers the whole curve with probability about 1
    − ``alpha``. GDP, the mean distance of this curve from the overall mean, has an interval. A test
    shows whether the dependence is more than chance, and effect sizes show how strong it is. The
    curve, GDP and the tests of one column use all rows. The probes and the tests of several columns
    use a random sample of at most 20,000 rows, the kernel statistics at most 2,000; each number is
    reported with its rows.

    Rows without a score or a weight are left out everywhere, and rows without an attribute are left
    out of the audit of this attribute. All of them are counted and compared with the others in a
    test: a verdict says so if they differ.

    O(n log n) time and O(n) memory for n rows: a million rows take less than a minute.

    Parameters
    ----------
    y_pred : array_like
        ``(n,)``: probabilities, hard labels or real predictions.
    sensitive_features : array_like
        ``(n,)`` or ``(n, p)``: numbers, or words with at most 50 categories. A DataFrame names the
        attributes.
    y_true : array_like, optional
        ``(n,)``: labels. Two values give equal opportunity, equalized odds and calibration; real
        numbers give the curve of the error.
    control_features : array_like, optional
        Legitimate factors. The audit is then repeated on what they leave of the predictions.
    sample_weight : array_like, optional
        ``(n,)``: weights of the rows, such as exposure or survey weights.
    positive_class : object, optional
        The value of ``y_true`` (or of hard labels) that counts as 1, if it is a word.
    threshold : float, optional
        People with a score of at least this number are selected. The audit then has selection rates
        and impact ratios by groups and along the attribute (the four-fifths rule), and with labels
        true and false positive rates.
    min_group : int
        Number of people in the smallest group of neighbors that is compared with everybody, for
        ``max_gap``.
    counts : bool
        Whether the labels are counts, such as claims, and the scores their expected numbers.
        Otherwise a few whole numbers are taken for classes.
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
        ``.gdp``, ``.interval``, ``.pvalue`` and the other main numbers (of several attributes
        ``result["age"].gdp``). It prints as sentences; ``.table()``, ``.as_dict()``, ``.to_html()``
        and ``.save(path)``.

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
    if min_group < 2:
        raise ValueError(f"min_group is {min_group}: a group has at least 2 people.")
    columns = read_columns(
        y_pred, sensitive_features, y_true, control_features, sample_weight, positive_class
    )
    score = columns.score.values
    used = score[columns.usable]
    task = _task(used)
    _check(columns, task, threshold, counts)
    seed = as_seed(random_state)
    copies = find_copies(columns)
    measuring = Measuring(columns, threshold, alpha, min_group, copies, seed)
    crossed = _crossed(columns.sensitive)
    attributes = tuple(measuring.attribute(column) for column in (*columns.sensitive, *crossed))
    joint = None
    if len(attributes) > 1 and not crossed:
        joint = measuring.joint()
    far = _far(columns)
    doubts = [*_swapped(columns), *far]
    for doubt in doubts:
        warn_caller(doubt)
    return Audit(
        attributes=attributes,
        joint=joint,
        rows=len(score),
        missing=tuple(_missing(columns)),
        score=columns.score.name,
        label=_name(columns.label),
        weight=_name(columns.weight),
        controls=tuple(column.name for column in columns.controls),
        task=task,
        alpha=alpha,
        random_state=seed,
        notes=(*doubts, *_about_weights(columns), *_notes(measuring, attributes)),
        unit=unit,
        threshold=threshold,
        performance=measuring.performance(),
        provenance={"model": model} if model else {},
        range=_range(used, task),
        left_out=left_out(columns, alpha, seed),
        copies=copies,
        effective=_effective(columns),
        far=tuple(far),
    )


def _name(column: Column | None) -> str:
    """Return the name of a column; an empty text if it was not given."""
    return "" if column is None else column.name


def _range(score: Array, task: str) -> tuple[float, float]:
    """Return the smallest and largest possible score: 0 and 1, or those of these rows."""
    low, high = float(score.min()), float(score.max())
    if low >= 0.0 and high <= 1.0:
        return 0.0, 1.0
    return low, high


def _effective(columns: Columns) -> float | None:
    """Return how many people of equal weight would be as sure; None without weights."""
    if columns.weight is None:
        return None
    return effective_rows(columns.weight.values[columns.usable])


def _about_weights(columns: Columns) -> list[str]:
    """Return a note if weights leave clearly fewer people than rows."""
    effective = _effective(columns)
    rows = int(columns.usable.sum())
    if effective is None or effective > _NEARLY_ALL * rows:
        return []
    return [
        f"With these weights the {rows:,} rows count like {effective:,.0f} rows of equal weight: "
        "intervals are as wide as for so few."
    ]


def _far(columns: Columns) -> list[str]:
    """Return notes on values far from all others, which may be codes for missing ones."""
    notes = [
        far_codes(column.values, repr(column.name))
        for column in (columns.score, *columns.sensitive)
    ]
    return [note for note in notes if note]


def _notes(measuring: Measuring, attributes: tuple[AttributeAudit, ...]) -> list[str]:
    """Return what a reader must know about the size of the table and what is not measured."""
    notes = []
    if not measuring.one_scale:
        notes.append(
            "Calibration is not measured: it needs predictions between 0 and 1, and many lie "
            "outside."
        )
    smallest = min(attribute.rows for attribute in attributes)
    if smallest < 200:
        notes.append(
            f"There are only {smallest} rows: the bands are wide, and their coverage is "
            "approximate."
        )
    return notes


def _check(columns: Columns, task: str, threshold: float | None, counts: bool) -> None:
    """Raise an error for scores, labels and thresholds that do not belong together."""
    score = columns.score.values[columns.usable]
    label = columns.label
    if label is not None and not label.categories and not counts and task in ("scores", "hard"):
        kinds = np.unique(label.values[label.known])
        if 2 < len(kinds) <= _CLASSES and (kinds == np.rint(kinds)).all():
            raise ValueError(
                f"{label.name!r} has {len(kinds)} values, but scores from 0 to 1 are for two "
                "classes. If they are classes, make a column that is 1 for the class that the "
                "scores are about, and 0 for the others. If they count something, such as claims, "
                "and the scores are expected numbers, pass counts=True."
            )
    if threshold is not None:
        low = float(score.min(initial=np.inf))
        high = float(score.max(initial=-np.inf))
        if not low < threshold <= high:
            who = "everybody" if threshold <= low else "nobody"
            raise ValueError(
                f"threshold is {threshold:g}, but the scores are from {low:.3g} to {high:.3g}, so "
                f"{who} would be selected: give the threshold in the unit of the scores."
            )


def _swapped(columns: Columns) -> list[str]:
    """Return notes on attributes that look like the probabilities that the scores should be."""
    score = columns.score.values[columns.score.known]
    # Predictions of a share may leave its range a little, and beside real labels no score is a
    # probability.
    real_label = columns.label is not None and not columns.label.categories
    if real_label or not outside(score):
        return []
    notes = []
    for column in columns.sensitive:
        s = column.values[column.known]
        if s.min() >= 0.0 and s.max() <= 1.0 and len(np.unique(s)) > _CLASSES:
            a, b = columns.score.name, column.name
            notes.append(
                f"Are the columns swapped? The scores {a!r} are no probabilities, but the "
                f"attribute {b!r} has many values from 0 to 1. If {b!r} is the score, call "
                f"audit({b}, sensitive_features={a}), or write --score {b} --sensitive {a}."
            )
    return notes


def _crossed(attributes: tuple[Column, ...]) -> list[Column]:
    """Return the intersections of categorical attributes as one more, unless they are too many."""
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


def _task(score: Array) -> str:
    if len(np.unique(score)) <= 2:
        return "hard"
    return "scores" if score.min() >= 0.0 and score.max() <= 1.0 else "values"


def _missing(columns: Columns) -> list[Missing]:
    """Return the columns with missing values, and the mean scores without and with a value."""
    found = []
    for column in columns.every():
        if not column.missing:
            continue
        if column is columns.score:
            means: tuple[float | None, float | None] = (None, None)
        else:
            means = (_mean_score(columns, ~column.known), _mean_score(columns, column.known))
        found.append(Missing(column.name, column.missing, *means))
    return found


def _mean_score(columns: Columns, rows: NDArray[np.bool_]) -> float | None:
    """Return the mean score of some rows; None if none of them has a score."""
    score = columns.score.values[rows & columns.score.known]
    return float(score.mean()) if len(score) else None
