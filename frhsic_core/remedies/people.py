"""The samples of a comparison: a table, a target and attributes, read and checked once."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from scipy import sparse
from sklearn.utils.multiclass import type_of_target
from sklearn.utils.validation import column_or_1d

from frhsic_core._arrays import ArrayLike, require_same_rows
from frhsic_core._choices import one_of
from frhsic_core.inputs.fitting import require_features
from frhsic_core.remedies.attributes import read_attributes
from frhsic_core.remedies.tasks import TASKS, Task

_FEWEST = 4
_CLASSES = 20  # at most so many different whole numbers can be classes


@dataclass(frozen=True)
class People:
    """Samples: features as given, the target as numbers, and the attributes.

    Of two classes the larger one is 1 in ``y``, and ``classes`` has both as they were given.
    """

    x: Any
    y: np.ndarray
    s: pd.DataFrame
    task: Task
    classes: np.ndarray | None = None

    def __len__(self) -> int:
        return len(self.y)

    def take(self, rows: np.ndarray) -> People:
        """Return some of the samples."""
        x = self.x.iloc[rows] if isinstance(self.x, pd.DataFrame) else self.x[rows]
        s = self.s.iloc[rows].reset_index(drop=True)
        return People(x, self.y[rows], s, self.task, self.classes)


def read_people(X: Any, y: Any, s: ArrayLike | None, task: str) -> People:
    """Return the samples of raw data, or raise an error that says what is wrong with them.

    Without attributes the frame of attributes has no columns.
    """
    one_of("task", task, ("auto", *TASKS))
    table = _read_table(X, y)
    target = _read_target(y, len(table))
    frame = pd.DataFrame(index=range(len(table)))
    if s is not None:
        frame = read_attributes(s, X, to_fit=True)
    distinct, counts = np.unique(target, return_counts=True)
    if len(target) == 1:
        raise ValueError("y has one sample: a model needs several.")
    if len(distinct) < 2:
        raise ValueError(
            f"y has one value only {distinct.tolist()}: pass two classes, or numbers that differ."
        )
    if task == "regression" or (task == "auto" and _are_numbers(target, len(distinct))):
        return People(table, _numbers(target), frame, TASKS["regression"])
    _require_two_classes(distinct)
    if s is not None:
        _require_enough(distinct, counts)
    positive = (target == distinct[1]).astype(np.float64)
    return People(table, positive, frame, TASKS["classification"], distinct)


def _read_table(X: Any, y: Any) -> pd.DataFrame:
    if sparse.issparse(X):
        raise ValueError(
            "X is sparse: pass X.toarray() or a DataFrame, since the remedies change all columns."
        )
    require_same_rows(X, y, names=("X", "y"))
    require_features(X)
    return as_frame(X)


def as_frame(X: Any) -> pd.DataFrame:
    """Return a DataFrame as it is, and anything else as one."""
    if isinstance(X, pd.DataFrame):
        return X
    return pd.DataFrame(np.asarray(X))


def _read_target(y: Any, rows: int) -> np.ndarray:
    target = column_or_1d(y)
    if len(target) != rows:
        raise ValueError(
            f"y has {len(target)} rows but X has {rows}: both need one row per sample."
        )
    bad = pd.isna(target)
    if target.dtype.kind == "f":
        bad = ~np.isfinite(target)
    if bad.any():
        raise ValueError(
            f"y has {int(bad.sum())} missing or infinite values: drop those rows first."
        )
    return np.asarray(target)


def _are_numbers(target: np.ndarray, distinct: int) -> bool:
    """Return whether a target is a scale: many different numbers, or a few that are no classes."""
    several = type_of_target(target) == "multiclass" and distinct <= _CLASSES
    return distinct > 2 and not several


def _numbers(target: np.ndarray) -> np.ndarray:
    if target.dtype.kind not in "iuf":
        raise ValueError(
            "y is text: pass numbers for a regression, or two classes for a classification."
        )
    return target.astype(np.float64)


def _require_two_classes(distinct: np.ndarray) -> None:
    if len(distinct) > 2:
        raise ValueError(
            f"y has {len(distinct)} different values: compare each class with the others "
            "(y == value), or pass task='regression' for numbers on a scale."
        )


def _require_enough(distinct: np.ndarray, counts: np.ndarray) -> None:
    # A fold of out-of-fold scores inside of a fold still needs two samples of each class.
    if counts.min() < _FEWEST:
        rare = distinct.tolist()[counts.argmin()]
        raise ValueError(
            f"y has the class {rare!r} only {counts.min()} times: at least {_FEWEST} are needed to "
            "split."
        )
