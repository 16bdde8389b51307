"""Read the scores and the attribute of a bound."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import pandas as pd

from frhsic_core.inputs.arrays import ArrayLike
from frhsic_core.inputs.columns import read_sample
from frhsic_core.inputs.rows import require_same_rows
from frhsic_core.inputs.tables import as_table


def read_scores(
    y_pred: ArrayLike, s: ArrayLike, groups: Sequence[float] | None, bounds: tuple[float, float]
) -> tuple[np.ndarray, np.ndarray, float]:
    """Return scores scaled to [0, 1], the number of each row's group, and the unit of the scores."""
    require_same_rows(y_pred, s, names=("y_pred", "sensitive_features"))
    f = _column(y_pred, "y_pred")
    low, high = (float(value) for value in bounds)
    if not (math.isfinite(low) and math.isfinite(high) and low < high):
        raise ValueError(f"bounds is {bounds}: give the smallest and the largest possible score.")
    if len(f) < 2:
        raise ValueError(f"y_pred has {len(f)} rows: a bound needs at least 2.")
    if f.min() < low or f.max() > high:
        raise ValueError(
            f"y_pred has values from {f.min():g} to {f.max():g}, outside of [{low:g}, {high:g}]: pass "
            "bounds=, the smallest and the largest value that a score can have (not those of this "
            "sample)."
        )
    groups_of = read_groups(s, groups)
    if len(groups_of) != len(f):
        raise ValueError(f"sensitive_features has {len(groups_of)} rows but y_pred has {len(f)}.")
    return (f - low) / (high - low), groups_of, high - low


def read_groups(s: ArrayLike, groups: Sequence[float] | None) -> np.ndarray:
    """Return the number of the group of each row: of its value, or of its bin between edges."""
    if groups is None:
        groups_of = _groups(s)
    elif isinstance(groups, int | np.integer):
        raise TypeError(
            f"groups is {groups}: bins must be fixed before the rows are seen, so pass their inner "
            "edges. Quantiles of the same rows are chosen by them; take the edges from other rows or "
            "round numbers."
        )
    else:
        edges = np.asarray(groups, dtype=np.float64)
        if edges.ndim != 1 or not np.isfinite(edges).all() or (np.diff(edges) <= 0).any():
            raise ValueError(
                "groups must be finite numbers in rising order, the inner edges of the bins."
            )
        groups_of = np.searchsorted(edges, _column(s, "sensitive_features"), side="right")
    return groups_of


def _groups(s: ArrayLike) -> np.ndarray:
    """Return the number of each row's group, the rows with one value of the attribute."""
    table = as_table(s, argument="sensitive_features", default="sensitive_features")
    if pd.api.types.infer_dtype(table.to_numpy().reshape(-1)) == "interval":
        raise TypeError(
            "sensitive_features holds bins: pass the numbers themselves, and the inner edges as "
            "groups=. Edges that come from these rows, as those of pandas.qcut do, are chosen by "
            "them; take them from other rows."
        )
    values, _ = read_sample(table, name="sensitive_features", words=True)
    return np.unique(_only(values, "sensitive_features"), return_inverse=True)[1]


def _column(x: ArrayLike, name: str) -> np.ndarray:
    """Return one column of numbers."""
    values, _ = read_sample(x, name=name, words=False)
    return _only(values, name)


def _only(values: np.ndarray, name: str) -> np.ndarray:
    """Return the only column of a sample, of which no value is missing."""
    if values.ndim != 1 and not (values.ndim == 2 and values.shape[1] == 1):
        raise ValueError(f"{name} has shape {values.shape}: a bound takes one column, (n,).")
    bad = int((~np.isfinite(values)).sum())
    if bad:
        raise ValueError(f"{name} has {bad} NaN or infinite values: drop those rows first.")
    return values.reshape(-1)


def labels(y_true: ArrayLike, rows: int) -> np.ndarray:
    """Return which rows have the larger one of two labels."""
    values = _column(y_true, "y_true")
    if len(values) != rows:
        raise ValueError(f"y_true has {len(values)} rows but y_pred has {rows}.")
    kinds = np.unique(values)
    if len(kinds) != 2:
        raise ValueError(
            f"y_true has {len(kinds)} distinct values: a label has two, such as 0 and 1."
        )
    return values == kinds[1]
