"""Read sensitive attributes (numeric, several, categorical) and expand them in a basis φ(S)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd
from sklearn.preprocessing import SplineTransformer
from sklearn.utils.validation import _num_samples, validate_data

from frhsic_core._arrays import ArrayLike, require_same_rows, warn_caller
from frhsic_core.inputs.columns import as_columns, far_codes
from frhsic_core.inputs.fitting import (
    FitWarning,
    MissingAttributeWarning,
    require_features,
    warn_of_attribute,
)

FEW = 30  # samples of the rarer class below which scores and dependence are mostly noise
BASES = ("linear", "spline")
UNNAMED = "sensitive"  # name of an attribute without a name
_FUNCTIONS = 8  # splines of each numeric attribute


def read_attributes(
    s: ArrayLike, other: Any, *, name: str = "X", to_fit: bool = False
) -> pd.DataFrame:
    """Return the attributes as a frame with a float64 column for each number and a text column for each category.

    Numbers, words and dates are read as by :func:`frhsic_core.audit`, but missing values are an error, and so are rows
    that do not belong to those of the ``other`` argument, or another number of rows. With ``to_fit`` an attribute with
    a single value is an error, and numbers far from all others give a warning.
    """
    require_same_rows(other, s, names=(name, "sensitive_features"))
    other = pd.DataFrame(other) if isinstance(other, Mapping) else other
    rows = other if isinstance(other, int) else _num_samples(other)
    columns = as_columns(s, argument="sensitive_features", default=UNNAMED, categorical=True)
    if (count := len(columns[0].values)) != rows:
        raise ValueError(
            f"sensitive_features has {count} rows but {name} has {rows}: both need one row per sample."
        )
    frame = {}
    for column in columns:
        if column.missing:
            many = f"{column.missing} missing or infinite values (column {column.name})"
            raise ValueError(f"sensitive_features has {many}: drop those rows first.")
        words = np.array(column.categories, dtype=object)
        values = words[column.values.astype(int)] if column.categories else column.values
        frame[column.name] = pd.Series(
            values, dtype=values.dtype
        )  # pandas would make text a type of its own
        if to_fit and frame[column.name].nunique() < 2:
            raise ValueError(
                f"sensitive_features is constant (column {column.name}): nothing depends on it. Drop it."
            )
        if to_fit and not column.categories and (said := far_codes(values, repr(column.name))):
            warn_caller(said, FitWarning)
    return pd.DataFrame(frame)


def attributes_to_fit(
    estimator: Any, X: Any, s: ArrayLike | None, *, predicts_without: bool
) -> pd.DataFrame | None:
    """Return the attributes that an estimator is fitted on, or None with a warning that it then changes nothing.

    If it ``predicts_without`` S, a column of X that is S gives a warning. Otherwise a model may use S.
    """
    if s is None:
        what = f"{type(estimator).__name__} changes NOTHING. Pass fit(X, y, sensitive_features=s)."
        warn_caller(f"sensitive_features is missing: {what}", MissingAttributeWarning)
        return None
    frame = read_attributes(s, X, to_fit=True)
    if predicts_without:
        warn_of_attribute(X, frame)
    return frame


def warn_of_few(y: np.ndarray) -> None:
    """Warn if one of two classes is rare."""
    kinds, counts = np.unique(y, return_counts=True)
    if 2 <= counts.min() < FEW:
        rare = f"y has the class {kinds.tolist()[counts.argmin()]!r} only {counts.min()} times"
        warn_caller(
            f"{rare}: with fewer than {FEW}, scores and their dependence on S are mostly noise.",
            FitWarning,
        )


def checked_features(estimator: Any, X: Any, *, reset: bool, **checks: Any) -> Any:
    """Return X after scikit-learn's checks of its columns; a frame may have text, and missing values are allowed."""
    require_features(X)
    if isinstance(X, pd.DataFrame):
        validate_data(estimator, X, skip_check_array=True, reset=reset)
        return X
    return validate_data(estimator, X, reset=reset, **checks)


def standardized(values: np.ndarray, *, constant: float = 1.0) -> tuple[np.ndarray, np.ndarray]:
    """Return mean and standard deviation of each column, with ``constant`` as the deviation of a constant column."""
    mean, spread = values.mean(0), values.std(0)
    # The deviation of a constant such as 0.1 is not zero, but a rounding error of its mean.
    return mean, np.where(spread > 1e-12 * abs(mean), spread, constant)


class AttributeBasis:
    """Expand attributes S in functions φ(S), with scales and knots from the training samples.

    A categorical attribute becomes one indicator for each of its values. The functions of several attributes stand
    beside each other (an additive model).

    Parameters
    ----------
    kind : {"linear", "spline"}
        S itself, or eight cubic B-splines with knots at quantiles.

    Examples
    --------
    >>> s = read_attributes(pd.DataFrame({"age": np.arange(20.0, 70.0), "sex": ["f", "m"] * 25}), 50)
    >>> AttributeBasis("linear").fit(s).transform(s).shape, AttributeBasis("spline").fit(s).transform(s).shape
    ((50, 3), (50, 9))
    """

    def __init__(self, kind: str = "spline") -> None:
        self.kind = kind

    def fit(self, frame: pd.DataFrame) -> AttributeBasis:
        """Read scales, levels and knots from the training samples."""
        self.names = list(frame)
        self.levels = {
            name: sorted(set(frame[name])) for name in frame if frame[name].dtype == object
        }
        self.numeric = [name for name in frame if name not in self.levels]
        values = frame[self.numeric].to_numpy(np.float64)
        self.mean, self.scale = standardized(values)
        self.range = (values.min(0), values.max(0))
        self.splines = [_spline(column) if self.kind == "spline" else None for column in values.T]
        return self

    def transform(self, frame: pd.DataFrame) -> np.ndarray:
        """Return φ(S) ``(n, k)``. Numbers outside the range of the training samples count as its ends."""
        frame = self.in_order(frame)
        for name in frame:
            if (frame[name].dtype == object) != (name in self.levels):
                was = "text" if name in self.levels else "numeric"
                raise ValueError(
                    f"sensitive_features has a column that was {was} in fit ({name}): pass the same kind."
                )
        values = frame[self.numeric].to_numpy(np.float64)
        for name, column, low, high in zip(self.numeric, values.T, *self.range, strict=True):
            far = column[np.maximum(low - column, column - high) > 0.1 * (high - low)]
            if len(far):
                warn_caller(
                    f"sensitive_features has {name!r} far outside of {low:g} to {high:g}, its range in fit, such as "
                    f"{far[0]:g}, in {len(far):,} of {len(column):,} rows: they count as the nearer end of this range."
                )
        values = np.clip(values, *self.range)
        parts = [
            (column[:, None] - mean) / scale
            if spline is None
            else _transformer(*spline).transform(column[:, None])
            for spline, column, mean, scale in zip(
                self.splines, values.T, self.mean, self.scale, strict=True
            )
        ]
        for name, levels in self.levels.items():
            equal = frame[name].to_numpy(object)[:, None] == np.array(levels, dtype=object)
            parts.append(equal.astype(np.float64))
        return np.hstack(parts)

    def in_order(self, frame: pd.DataFrame) -> pd.DataFrame:
        """Return the attributes as fit had them, by their names where both have names, and else by position."""
        names, fitted = list(frame), list(self.names)
        if len(names) != len(fitted):
            raise ValueError(
                f"sensitive_features has {len(names)} columns, but fit had {len(fitted)}."
            )
        if set(names) == set(fitted):
            return frame[fitted]
        if not any(name.startswith(UNNAMED) for name in (names[0], fitted[0])):
            raise ValueError(
                f"sensitive_features has the columns {', '.join(map(repr, names))}, but fit had "
                f"{', '.join(map(repr, fitted))}: pass the same attributes under the same names."
            )
        return frame.set_axis(fitted, axis=1)


def _spline(column: np.ndarray) -> tuple[int, np.ndarray] | None:
    """Return degree and distinct knots of cubic B-splines, or None for two values, where a line is exact."""
    distinct = np.unique(column)
    degree = min(3, len(distinct) - 1)
    knots = np.unique(np.quantile(column, np.linspace(0, 1, _FUNCTIONS - degree + 1)))
    # Many ties can leave a single knot at one end: the ends of the range are always knots.
    return None if len(distinct) <= 2 else (degree, np.unique([distinct[0], *knots, distinct[-1]]))


def _transformer(degree: int, knots: np.ndarray) -> SplineTransformer:
    options: dict[str, Any] = {"extrapolation": "constant", "include_bias": False}
    return SplineTransformer(degree=degree, knots=knots[:, None], **options).fit(knots[:, None])


def attribute_matrix(frame: pd.DataFrame) -> np.ndarray:
    """Return numbers as they are and categories as indicators (one of two is enough), for measures of S."""
    parts = [
        pd.get_dummies(frame[[name]], drop_first=frame[name].nunique() == 2, dtype=np.float64)
        for name in frame
    ]
    return pd.concat(parts, axis=1).to_numpy()
