"""Read the scores and the attribute of a bound."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import pandas as pd

from frhsic_core._arrays import ArrayLike, as_tensor, require_same_rows


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
            f"y_pred has values from {f.min():g} to {f.max():g}, outside of [{low:g}, {high:g}]: pass bounds=, the "
            "smallest and the largest value that a score can have (not those of this sample)."
        )
    groups_of = read_groups(s, groups)
    if len(groups_of) != len(f):
        raise ValueError(f"sensitive_features has {len(groups_of)} rows but y_pred has {len(f)}.")
    return (f - low) / (high - low), groups_of, high - low


def read_groups(s: ArrayLike, groups: Sequence[float] | None) -> np.ndarray:
    """Return the number of the group of each row: of its value, or of its bin between edges."""
    if groups is None:
        column = np.asarray(s.detach().cpu() if hasattr(s, "detach") else s)
        column = _flat(column, "sensitive_features")
        if pd.api.types.infer_dtype(column) == "interval":
            raise TypeError(
                "sensitive_features holds bins: pass the numbers themselves, and the inner edges as groups=. Edges "
                "that come from these rows, as those of pandas.qcut do, are chosen by them; take them from other rows."
            )
        groups_of = pd.factorize(column)[0]  # −1 stands for a missing value
        if (groups_of < 0).any():
            raise ValueError("sensitive_features contains missing values: remove these rows first.")
    elif isinstance(groups, int | np.integer):
        raise TypeError(
            f"groups is {groups}: bins must be fixed before the rows are seen, so pass their inner edges. Quantiles of "
            "the same rows are chosen by them; take the edges from other rows or round numbers."
        )
    else:
        edges = np.asarray(groups, dtype=np.float64)
        if edges.ndim != 1 or not np.isfinite(edges).all() or (np.diff(edges) <= 0).any():
            raise ValueError(
                "groups must be finite numbers in rising order, the inner edges of the bins."
            )
        groups_of = np.searchsorted(edges, _column(s, "sensitive_features"), side="right")
    return groups_of


def _column(x: ArrayLike, name: str) -> np.ndarray:
    values = _flat(as_tensor(x, name=name).detach().double().cpu().numpy(), name)
    if not np.isfinite(values).all():
        raise ValueError(f"{name} contains NaN or infinite values: remove these rows first.")
    return values


def _flat(values: np.ndarray, name: str) -> np.ndarray:
    if values.ndim != 1 and not (values.ndim == 2 and values.shape[1] == 1):
        raise ValueError(f"{name} has shape {values.shape}: a bound takes one column, (n,).")
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
