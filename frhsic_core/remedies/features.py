"""The numbers that a learner gets from a raw table, with S beside them if a model may use it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from scipy import sparse
from sklearn.pipeline import Pipeline

from frhsic_core.inputs.features import columns_of, fit_columns
from frhsic_core.remedies.basis import AttributeBasis
from frhsic_core.remedies.people import People


class Columns:
    """Every column of the table: text as indicators, missing numbers as medians."""

    def fit_transform(self, x: Any, y: np.ndarray) -> np.ndarray:
        """Read levels and medians, and return the numbers of the training samples."""
        self.plan = fit_columns(x)
        return self.transform(x)

    def transform(self, x: Any) -> np.ndarray:
        """Return the numbers of new samples."""
        return columns_of(x, self.plan)


class Steps:
    """What the first steps of a pipeline make of the table; they stay in front of any remedy."""

    def __init__(self, steps: Pipeline) -> None:
        self.steps = steps

    def fit_transform(self, x: Any, y: np.ndarray) -> np.ndarray:
        """Fit the steps, and return the numbers of the training samples."""
        return dense(self.steps.fit_transform(x, y))

    def transform(self, x: Any) -> np.ndarray:
        """Return the numbers of new samples."""
        return dense(self.steps.transform(x))


def dense(x: Any) -> np.ndarray:
    """Return numbers as an array."""
    if sparse.issparse(x):
        return np.asarray(x.toarray())
    return np.asarray(x)


class Features:
    """Read a raw table for a learner; with ``sees_s`` the attributes are features, too."""

    def __init__(self, steps: Pipeline | None, *, sees_s: bool) -> None:
        self.reader: Columns | Steps = Columns()
        if steps is not None:
            self.reader = Steps(steps)
        self.seen: AttributeBasis | None = None
        if sees_s:
            self.seen = AttributeBasis("linear")

    def fit_transform(self, people: People) -> np.ndarray:
        """Fit on training samples, and return their numbers."""
        x = self.reader.fit_transform(people.x, people.y)
        if self.seen is not None:
            self.seen.fit(people.s)
        return self._with_s(x, people.s)

    def transform(self, x: Any, s: pd.DataFrame | None) -> np.ndarray:
        """Return the numbers of new samples."""
        return self._with_s(self.reader.transform(x), s)

    def _with_s(self, x: np.ndarray, s: pd.DataFrame | None) -> np.ndarray:
        if self.seen is None or s is None:
            return x
        return np.hstack([x, self.seen.transform(s)])
