"""Read sensitive attributes: numeric, several, categorical."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd
from sklearn.utils.validation import _num_samples, validate_data

from frhsic_core._arrays import ArrayLike, require_same_rows, warn_caller
from frhsic_core.inputs.columns import Column, as_columns, far_codes
from frhsic_core.inputs.fitting import (
    FitWarning,
    MissingAttributeWarning,
    require_features,
    warn_of_attribute,
)

FEW = 30  # samples of the rarer class below which scores and dependence are mostly noise
UNNAMED = "sensitive"  # name of an attribute without a name


def read_attributes(
    s: ArrayLike, other: Any, *, name: str = "X", to_fit: bool = False
) -> pd.DataFrame:
    """Return the attributes as a frame of float64 columns for numbers and text for categories.

    Numbers, words and dates are read as by :func:`frhsic_core.audit`. Missing values are an error,
    and so are rows that do not belong to those of the ``other`` argument, or another number of
    rows. With ``to_fit`` an attribute with a single value is an error, and numbers far from all
    others give a warning.
    """
    require_same_rows(other, s, names=(name, "sensitive_features"))
    columns = as_columns(s, argument="sensitive_features", default=UNNAMED, categorical=True)
    rows = _rows_of(other)
    count = len(columns[0].values)
    if count != rows:
        raise ValueError(
            f"sensitive_features has {count} rows but {name} has {rows}: "
            "both need one row per sample."
        )
    frame = {}
    for column in columns:
        if column.missing:
            raise ValueError(
                f"sensitive_features has {column.missing} missing or infinite values "
                f"(column {column.name}): drop those rows first."
            )
        if to_fit:
            _check_to_fit(column)
        frame[column.name] = _series(column)
    return pd.DataFrame(frame)


def _rows_of(other: Any) -> int:
    if isinstance(other, int):
        return other
    if isinstance(other, Mapping):
        other = pd.DataFrame(other)
    return int(_num_samples(other))


def _series(column: Column) -> pd.Series:
    """Return a column of numbers, or of text for categories."""
    if not column.categories:
        return pd.Series(column.values)
    words = np.array(column.categories, dtype=object)
    # With the type said, pandas does not make text a type of its own.
    return pd.Series(words[column.values.astype(int)], dtype=object)


def _check_to_fit(column: Column) -> None:
    """Raise an error for a constant attribute, and warn of numbers that may be codes."""
    if len(np.unique(column.values)) < 2:
        raise ValueError(
            f"sensitive_features is constant (column {column.name}): nothing depends on it. Drop it."
        )
    if column.categories:
        return
    said = far_codes(column.values, repr(column.name))
    if said:
        warn_caller(said, FitWarning)


def attributes_to_fit(
    estimator: Any, X: Any, s: ArrayLike | None, *, predicts_without: bool
) -> pd.DataFrame | None:
    """Return the attributes that an estimator is fitted on, or None with a warning without any.

    If it ``predicts_without`` S, a column of X that is S gives a warning. Otherwise a model may
    use S.
    """
    if s is None:
        warn_of_no_attribute(estimator, "fit(X, y, sensitive_features=s)")
        return None
    frame = read_attributes(s, X, to_fit=True)
    if predicts_without:
        warn_of_attribute(X, frame)
    return frame


def warn_of_no_attribute(estimator: Any, call: str) -> None:
    """Warn that an estimator that was fitted without attributes changes nothing."""
    warn_caller(
        f"sensitive_features is missing: {type(estimator).__name__} changes NOTHING. Pass {call}.",
        MissingAttributeWarning,
    )


def warn_of_few(y: np.ndarray) -> None:
    """Warn if one of two classes is rare."""
    kinds, counts = np.unique(y, return_counts=True)
    fewest = int(counts.min())
    if not 2 <= fewest < FEW:
        return
    rare = kinds.tolist()[counts.argmin()]
    warn_caller(
        f"y has the class {rare!r} only {fewest} times: with fewer than {FEW}, scores and their "
        "dependence on S are mostly noise.",
        FitWarning,
    )


def checked_features(estimator: Any, X: Any, *, reset: bool, **checks: Any) -> Any:
    """Return X after scikit-learn's checks of its columns.

    A frame may have text, and missing values are allowed.
    """
    require_features(X)
    if isinstance(X, pd.DataFrame):
        validate_data(estimator, X, skip_check_array=True, reset=reset)
        return X
    return validate_data(estimator, X, reset=reset, **checks)


def attribute_matrix(frame: pd.DataFrame) -> np.ndarray:
    """Return numbers as they are and categories as indicators, for measures of S.

    Of two categories one indicator is enough.
    """
    parts = []
    for name in frame:
        two = frame[name].nunique() == 2
        parts.append(pd.get_dummies(frame[[name]], drop_first=two, dtype=np.float64))
    return pd.concat(parts, axis=1).to_numpy()
