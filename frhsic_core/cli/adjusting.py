"""Adjust the scores of a table, and describe the scores before and after."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd

from frhsic_core.auditing.changes import change_report
from frhsic_core.inputs.columns import as_columns
from frhsic_core.remedies.scores import ScoreAdjuster, other_half


@dataclass(frozen=True)
class Adjusted:
    """Adjusted scores and what is said about them.

    Attributes
    ----------
    adjuster : ScoreAdjuster
        The adjustment.
    scores : array
        One for each row; NaN where the score or an attribute is missing.
    sentences : list of str
        The gap before and after.
    page : str
        A page with the curves before and after; empty if the rows are too few.
    """

    adjuster: ScoreAdjuster
    scores: np.ndarray
    sentences: list[str]
    page: str


def adjusted(
    data: pd.DataFrame,
    score: str,
    sensitive: Sequence[str],
    *,
    use: Path | None,
    missing: str = "empty",
) -> Adjusted:
    """Fit an adjustment, or load one, and apply it to the rows that have a score and attributes.

    ``missing`` says what people with a score but without an attribute get: no score (``"empty"``),
    their own (``"leave"``), the ``"expected"`` one, or an error (``"refuse"``).
    """
    before = as_columns(data[[score]], argument="scores", default="score", categorical=False)[0]
    columns = as_columns(
        data[list(sensitive)], argument="sensitive", default="sensitive", categorical=True
    )
    known = np.logical_and.reduce([column.known for column in (before, *columns)])
    others = before.known & ~known
    about_others = _about_others(missing, int(others.sum()))
    scores = before.values[known]
    frame = data.loc[known, list(sensitive)].reset_index(drop=True)
    half = None
    if use is not None:
        adjuster = ScoreAdjuster.load(use)
        fitted_on = "others"
    else:
        adjuster = ScoreAdjuster().fit(scores, sensitive_features=frame)
        half = other_half(adjuster, scores, frame)
        fitted_on = "itself" if half is None else "half"
    new = np.full(len(data), np.nan)
    new[known] = adjuster.transform(scores, sensitive_features=frame)
    if missing in ("leave", "expected") and others.any():
        adjuster.set_params(missing=missing)
        new[others] = adjuster.without_attribute(before.values[others])
        adjuster.set_params(missing="refuse")
    shown = new
    if half is not None:
        rows, values = half
        shown = np.full(len(data), np.nan)
        shown[np.flatnonzero(known)[rows]] = values
    sentences, page = change_report(before, shown, columns, known, fitted_on=fitted_on)
    return Adjusted(adjuster, new, [*sentences, *about_others], page)


_GET = {
    "empty": "get no adjusted score (--missing leave or expected gives them one)",
    "leave": "keep their score as it is",
    "expected": "get the adjusted score that is expected of people with their score",
}


def _about_others(missing: str, people: int) -> list[str]:
    """Return what happens to people with a score but without an attribute, as a sentence."""
    if people == 0:
        return []
    if missing == "refuse":
        raise ValueError(
            f"{people:,} people have a score but not every attribute: fill these cells, remove the "
            "rows, or choose --missing empty, leave or expected."
        )
    return [f"{people:,} people have a score but not every attribute: they {_GET[missing]}."]
