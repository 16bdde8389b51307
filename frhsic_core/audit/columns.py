"""Read the columns of an audit: names, numbers, categories, and how many values are missing."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from frhsic_core.arrays import require_same_rows

Array = NDArray[np.float64]

CATEGORIES = 50  # more distinct words than this are an identifier, not an attribute
MIN_ROWS = 20
LARGEST = 1e150  # squares of larger numbers leave the range; they are codes, not measurements
_WRITTEN_NUMBER = r"[-+$€£\s]*\d[\d.,'\s]*[%$€£]?"


@dataclass(frozen=True)
class Column:
    """One column as numbers, with NaN where the value is missing or infinite.

    Attributes
    ----------
    name : str
        Name of the column.
    values : array
        ``(n,)``; the number of the category where there are categories.
    categories : tuple of str
        Names of the categories; empty for a numeric column.
    missing, infinite : int
        Number of missing and of infinite values.
    """

    name: str
    values: Array
    categories: tuple[str, ...] = ()
    missing: int = 0
    infinite: int = 0

    @property
    def known(self) -> NDArray[np.bool_]:
        """Which rows have a finite value."""
        return np.isfinite(self.values)


@dataclass(frozen=True)
class Columns:
    """Everything that an audit reads, with one entry for each row."""

    scores: tuple[Column, ...]
    sensitive: tuple[Column, ...]
    label: Column | None
    controls: tuple[Column, ...]
    weight: Column | None

    @property
    def n(self) -> int:
        """Number of rows, with and without missing values."""
        return len(self.scores[0].values)

    def every(self) -> list[Column]:
        """Return all columns in the order of the arguments."""
        others = [column for column in (self.label, self.weight) if column is not None]
        return [*self.scores, *self.sensitive, *others[: self.label is not None], *self.controls, *others[1:]]


def as_columns(given: Any, *, argument: str, default: str, categorical: bool, positive: Any = None) -> list[Column]:
    """Return the columns of an array, a Series, a DataFrame, a mapping or a tensor.

    Parameters
    ----------
    given : array_like
        One or several columns.
    argument : str
        Name of the argument in messages.
    default : str
        Name of a column that has none.
    categorical : bool
        Whether words are allowed.
    positive : object, optional
        The value of a two-valued column that counts as 1.

    Examples
    --------
    >>> as_columns([1.0, float("nan")], argument="y_pred", default="score", categorical=False)[0].missing
    1
    """
    if isinstance(given, Mapping):
        given = pd.DataFrame(dict(given))
    if hasattr(given, "detach"):
        given = given.detach().cpu().numpy()
    if isinstance(given, pd.DataFrame):
        names = [str(name) for name in given.columns]
        twice = sorted({name for name in names if names.count(name) > 1})
        if twice:
            raise ValueError(f"{argument} has two columns named {twice[0]!r}: rename one of them.")
        series = [given.iloc[:, k] for k in range(given.shape[1])]
    elif isinstance(given, pd.Series | pd.Index):
        names = [default if given.name is None else str(given.name)]
        series = [pd.Series(given)]
    else:
        array = np.asarray(given)
        if array.ndim == 0:
            raise ValueError(f"{argument} is a single value: pass one value for each row.")
        if array.ndim > 2:
            raise ValueError(f"{argument} has shape {array.shape}: pass one or several columns, (n,) or (n, k).")
        array = array[:, None] if array.ndim == 1 else array
        names = [default] if array.shape[1] == 1 else [f"{default}_{k}" for k in range(array.shape[1])]
        series = [pd.Series(array[:, k]) for k in range(array.shape[1])]
    if not series:
        raise ValueError(f"{argument} has no columns: pass at least one.")
    return [
        as_column(one, name=name, categorical=categorical, positive=positive)
        for one, name in zip(series, names, strict=True)
    ]


def as_column(series: pd.Series, *, name: str, categorical: bool, positive: Any = None) -> Column:
    """Return one column as numbers; see :func:`as_columns`."""
    if series.isna().all():
        raise ValueError(f"{name!r} has no value in any of its {len(series):,} rows: check the name of the column.")
    if positive is not None:
        return _two_valued(series, name, positive)
    if pd.api.types.is_datetime64_any_dtype(series):
        days = (series - pd.Timestamp(0, tz=series.dt.tz)) / pd.Timedelta(days=1)
        return _numeric(1970.0 + days.to_numpy(np.float64) / 365.2425, name)
    if isinstance(series.dtype, pd.CategoricalDtype) and not series.cat.ordered:
        series = series.astype(object)
    if pd.api.types.is_complex_dtype(series):
        raise TypeError(f"{name!r} has complex numbers: pass real numbers.")
    numbers = pd.to_numeric(series, errors="coerce") if not isinstance(series.dtype, pd.CategoricalDtype) else None
    if numbers is None:  # an ordered categorical has its order
        codes = series.cat.codes.to_numpy(np.float64)
        return _categories(codes, tuple(map(str, series.cat.categories)), name)
    words = numbers.isna() & series.notna()
    if not words.any():
        return _numeric(numbers.to_numpy(dtype=np.float64, na_value=np.nan), name)
    example = str(series[words].iloc[0])[:40]
    if numbers.notna().any():
        raise ValueError(
            f"{name!r} mixes numbers and words: {int(words.sum()):,} of {len(series):,} values are not numbers, such "
            f"as {example!r}. Write missing values as empty cells, and numbers without units or separators."
        )
    if series[words].astype(str).str.fullmatch(_WRITTEN_NUMBER).all():
        raise ValueError(
            f"{name!r} has numbers that are written as text, such as {example!r}: write them with a decimal point, and "
            "without percent signs, currencies or separators of thousands."
        )
    if not categorical:
        raise ValueError(
            f"{name!r} has words, such as {example!r}, where numbers are needed. If it has two values, name the one "
            "that counts as 1: positive= in Python, --positive on the command line."
        )
    text = series.astype("string")
    kinds = sorted(text.dropna().unique())
    if len(kinds) > CATEGORIES:
        raise ValueError(
            f"{name!r} has {len(kinds):,} distinct words, such as {example!r}: an attribute has at most {CATEGORIES} "
            "categories. Is it an identifier? Choose another column, or group the words."
        )
    codes = pd.Categorical(text, categories=kinds).codes.astype(np.float64)
    return _categories(codes, tuple(map(str, kinds)), name)


def _numeric(values: Array, name: str) -> Column:
    infinite = np.isinf(values)
    missing = np.isnan(values)
    if (infinite | missing).all():
        raise ValueError(f"{name!r} has no finite value: check the column.")
    largest = np.abs(values[~(infinite | missing)]).max()
    if largest > LARGEST:
        raise ValueError(
            f"{name!r} has the value {largest:.3g}, which is too large: if it is a code for missing values, write "
            "empty cells instead; otherwise choose another unit."
        )
    return Column(name, np.where(infinite, np.nan, values), (), int(missing.sum()), int(infinite.sum()))


def _categories(codes: Array, names: tuple[str, ...], name: str) -> Column:
    return Column(name, np.where(codes < 0, np.nan, codes), names, int((codes < 0).sum()))


def _two_valued(series: pd.Series, name: str, positive: Any) -> Column:
    kinds = series.dropna().unique()
    yes = np.array([str(kind) == str(positive) for kind in kinds])
    if not yes.any() or len(kinds) > 2:
        shown = ", ".join(repr(str(kind)) for kind in kinds[:5])
        raise ValueError(
            f"{name!r} needs at most two values, one of them {str(positive)!r}, but it has {len(kinds):,}: {shown}. "
            "Leave positive out for numbers."
        )
    values = (series == kinds[yes][0]).to_numpy(np.float64)
    return _numeric(np.where(series.isna(), np.nan, values), name)


def read_columns(
    y_pred: Any,
    sensitive_features: Any,
    y_true: Any = None,
    control_features: Any = None,
    sample_weight: Any = None,
    positive: Any = None,
) -> Columns:
    """Check the arguments of :func:`frhsic_core.audit.audit` and return them as columns of one length."""
    for other, name in ((sensitive_features, "sensitive_features"), (y_true, "y_true"), (sample_weight, "weights")):
        require_same_rows(y_pred, other, names=("y_pred", name), stacklevel=4)
    words = _has_words(y_pred)
    scores = as_columns(
        y_pred, argument="y_pred", default="score", categorical=False, positive=positive if words else None
    )
    sensitive = as_columns(sensitive_features, argument="sensitive_features", default="sensitive", categorical=True)
    label = controls = weight = None
    if y_true is not None:
        marked = positive if _has_words(y_true) else None
        label = as_columns(y_true, argument="y_true", default="label", categorical=False, positive=marked)
        if len(label) > 1:
            raise ValueError(f"y_true has {len(label)} columns: pass one label for each row.")
    if control_features is not None:
        controls = as_columns(control_features, argument="control_features", default="control", categorical=True)
    if sample_weight is not None:
        weight = as_columns(sample_weight, argument="sample_weight", default="weight", categorical=False)
        if len(weight) > 1:
            raise ValueError(f"sample_weight has {len(weight)} columns: pass one weight for each row.")
        if np.nanmin(weight[0].values) < 0:
            raise ValueError(f"{weight[0].name!r} has negative weights: weights must be zero or positive.")
        if np.nanmax(weight[0].values) == 0:
            raise ValueError(f"{weight[0].name!r} is zero in every row: some weights must be positive.")
    columns = Columns(
        scores=tuple(scores),
        sensitive=tuple(sensitive),
        label=label[0] if label else None,
        controls=tuple(controls or ()),
        weight=weight[0] if weight else None,
    )
    for column in columns.every():
        if len(column.values) != columns.n:
            raise ValueError(
                f"{column.name!r} has {len(column.values):,} rows but {columns.scores[0].name!r} has {columns.n:,}: "
                "both need one row for each person."
            )
    return columns


def _has_words(given: Any) -> bool:
    if isinstance(given, pd.DataFrame):
        return any(_has_words(given.iloc[:, k]) for k in range(given.shape[1]))
    if hasattr(given, "detach"):
        return False
    series = given if isinstance(given, pd.Series) else pd.Series(np.asarray(given).ravel())
    if pd.api.types.is_numeric_dtype(series) or pd.api.types.is_bool_dtype(series):
        return False
    return bool(pd.to_numeric(series.astype(object), errors="coerce").isna().sum() > series.isna().sum())
