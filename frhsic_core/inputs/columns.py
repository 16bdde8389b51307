"""Read columns that a user passes: their names, numbers, categories and missing values."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from frhsic_core._arrays import require_same_rows

Array = NDArray[np.float64]
CATEGORIES = 50  # more distinct words than this are an identifier, not an attribute
MIN_ROWS = 20
_SCALE = 10  # fewer distinct numbers may be levels at any distance
LARGEST = 1e150  # squares of larger numbers leave the range; they are codes, not measurements
_WRITTEN_NUMBER = r"[-+$€£\s]*\d[\d.,'\s]*[%$€£]?"
_UNIT = r"^\s*[\d.]+(\s+[^\W\d_]|[^\W\d_]{2})[^\W\d_]*\s*$"  # 53 years, 53yrs; but 27x is a word


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
    """

    name: str
    values: Array
    categories: tuple[str, ...] = ()

    @property
    def known(self) -> NDArray[np.bool_]:
        """Which rows have a finite value."""
        return np.isfinite(self.values)

    @property
    def missing(self) -> int:
        """Number of missing and infinite values."""
        return int((~self.known).sum())

    def at(self, rows: NDArray[np.intp]) -> Column:
        """Return the column with some of its rows."""
        return replace(self, values=self.values[rows])


@dataclass(frozen=True)
class Columns:
    """Everything that an audit reads, with one entry for each row; a label of two values has the categories 0 and 1."""

    score: Column
    sensitive: tuple[Column, ...]
    label: Column | None
    controls: tuple[Column, ...]
    weight: Column | None

    @property
    def usable(self) -> NDArray[np.bool_]:
        """The rows with a score and, if there are weights, a positive one."""
        return self.score.known & (self.weight is None or np.nan_to_num(self.weight.values) > 0)

    def every(self) -> list[Column]:
        """Return all columns in the order of the arguments."""
        chosen = [self.score, *self.sensitive, self.label, *self.controls, self.weight]
        return [column for column in chosen if column is not None]


def as_columns(
    given: Any, *, argument: str, default: str, categorical: bool, positive_class: Any = None
) -> list[Column]:
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
    positive_class : object, optional
        The value of a two-valued column that counts as 1.

    Examples
    --------
    >>> as_columns([1.0, float("nan")], argument="y_pred", default="score", categorical=False)[0].missing
    1
    """
    frame = as_frame(given, argument, default)
    names = [str(name) for name in frame.columns]
    if not names:
        raise ValueError(f"{argument} has no columns: pass at least one.")
    if len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise ValueError(f"{argument} has two columns named {twice!r}: rename one of them.")
    options: dict[str, Any] = {"categorical": categorical, "positive_class": positive_class}
    return [as_column(frame.iloc[:, k], name=name, **options) for k, name in enumerate(names)]


def as_frame(given: Any, argument: str, default: str) -> pd.DataFrame:
    """Return columns of any kind as a table; columns without a name are called by the ``default``."""
    if hasattr(given, "to_pandas"):  # polars, pyarrow
        given = given.to_pandas()
    if isinstance(given, pd.DataFrame | Mapping):
        return pd.DataFrame(given)
    if isinstance(given, pd.Series | pd.Index):
        return pd.DataFrame({default if given.name is None else given.name: given})
    array = np.asarray(given.detach().cpu() if hasattr(given, "detach") else given)
    if array.ndim not in (1, 2):
        raise ValueError(
            f"{argument} has shape {array.shape}: pass one or several columns, (n,) or (n, k)."
        )
    array = array.reshape(len(array), -1)
    count = array.shape[1]
    return pd.DataFrame(
        array, columns=[default] if count == 1 else [f"{default}_{k}" for k in range(count)]
    )


def as_column(
    series: pd.Series, *, name: str, categorical: bool, positive_class: Any = None
) -> Column:
    """Return one column as numbers; see :func:`as_columns`."""
    if series.isna().all():
        raise ValueError(
            f"{name!r} has no value in any of its {len(series):,} rows: check the name of the column."
        )
    if pd.api.types.is_complex_dtype(series):
        raise TypeError(f"{name!r} has complex numbers: pass real numbers.")
    if pd.api.types.is_datetime64_any_dtype(series):
        days = (series - pd.Timestamp(0, tz=series.dt.tz)) / pd.Timedelta(days=1)
        return _numeric(1970.0 + days.to_numpy(np.float64) / 365.2425, name)
    if isinstance(series.dtype, pd.CategoricalDtype):
        if series.cat.ordered:
            return _categories(series.cat.codes.to_numpy(np.float64), series.cat.categories, name)
        series = series.astype(object)
    kinds = series.dropna().unique()
    if positive_class is not None and len(kinds) <= 2:
        wanted = str(positive_class).removesuffix(".0")  # as a word or as a number
        yes = [kind for kind in kinds if str(kind).removesuffix(".0") == wanted]
        if yes:
            return _numeric(np.where(series.isna(), np.nan, series == yes[0]), name)
    numbers = pd.to_numeric(series, errors="coerce")
    words = numbers.isna() & series.notna()
    if not words.any():
        return _numeric(numbers.to_numpy(dtype=np.float64, na_value=np.nan), name)
    example = str(series[words].iloc[0])[:40]
    if positive_class is not None:
        shown = ", ".join(repr(str(kind)) for kind in kinds[:5])
        raise ValueError(
            f"{name!r} needs at most two values, one of them {str(positive_class)!r}, but it has {len(kinds):,}: "
            f"{shown}. Leave positive_class out for numbers."
        )
    if numbers.notna().any():
        raise ValueError(
            f"{name!r} mixes numbers and words: {int(words.sum()):,} of {len(series):,} values are not numbers, such "
            f"as {example!r}. Write missing values as empty cells, and numbers without units or separators."
        )
    text = series[words].astype(str)
    units = text.str.extract(_UNIT, expand=False)
    if text.str.fullmatch(_WRITTEN_NUMBER).all() or (
        units.notna().all() and units.nunique() == 1 and len(kinds) > 2
    ):
        raise ValueError(
            f"{name!r} has numbers that are written as text, such as {example!r}: write them with a decimal point, and "
            "without units, percent signs, currencies or separators of thousands."
        )
    if not categorical:
        raise ValueError(
            f"{name!r} has words, such as {example!r}, where numbers are needed. If an audit has two values here, name "
            "the one that counts as 1: positive_class= in Python, --positive-class on the command line."
        )
    if len(kinds) > CATEGORIES:
        raise ValueError(
            f"{name!r} has {len(kinds):,} distinct words, such as {example!r}: an attribute has at most {CATEGORIES} "
            "categories. Is it an identifier? Choose another column, or group the words."
        )
    coded = pd.Categorical(series.astype("string"))
    return _categories(coded.codes.astype(np.float64), coded.categories, name)


def _numeric(values: Array, name: str) -> Column:
    known = np.isfinite(values)
    if not known.any():
        raise ValueError(f"{name!r} has no finite value: check the column.")
    largest = np.abs(values[known]).max()
    if largest > LARGEST:
        raise ValueError(
            f"{name!r} has the value {largest:.3g}, which is too large: if it is a code for missing values, write "
            "empty cells instead; otherwise choose another unit."
        )
    return Column(name, np.where(known, values, np.nan))


def far_codes(values: Array, name: str) -> str:
    """Return a sentence about whole numbers such as -999 and 999 that are far from all others; empty without any.

    A gap separates them that is more than three times as wide as the range of the other values, of which there are at
    least ten. O(n log n).

    Examples
    --------
    >>> far_codes(np.array([*range(18, 91), -999.0, 998.0, 999.0]), "age").partition(":")[0]
    'age has values far from all others (18 to 90), such as -999, in 3 of 76 rows'
    >>> far_codes(np.array([*range(18, 91), 150.0]), "age")
    ''
    """
    known = values[np.isfinite(values)]
    distinct = np.unique(known)
    gaps = np.diff(distinct)
    middle = np.searchsorted(distinct, np.median(known))
    first, last, said = 0, len(distinct), ""
    for place in np.argsort(-gaps)[:4]:  # the widest gaps first: there may be codes at both ends
        if place < middle:
            first = max(first, place + 1)
        else:
            last = min(last, place + 1)
        others = distinct[first:last]
        if len(others) < _SCALE:
            break
        codes = np.concatenate([distinct[:first], distinct[last:]])
        if gaps[place] > 3.0 * np.ptp(others) and (codes == np.rint(codes)).all():
            said = (
                f"{name} has values far from all others ({others[0]:g} to {others[-1]:g}), such as {codes[0]:g}, in "
                f"{np.isin(known, codes).sum():,} of {len(known):,} rows: if this is a code for missing values, leave "
                "these cells empty, or drop the rows. Otherwise these few rows can decide some results, such as R²."
            )
    return said


def _categories(codes: Array, names: Iterable[Any], name: str) -> Column:
    return Column(name, np.where(codes < 0, np.nan, codes), tuple(map(str, names)))


def read_columns(
    y_pred: Any,
    sensitive_features: Any,
    y_true: Any = None,
    control_features: Any = None,
    sample_weight: Any = None,
    positive_class: Any = None,
) -> Columns:
    """Check the arguments of :func:`frhsic_core.audit` and return them as columns of one length."""
    # Of a Dask collection the workers compute the few columns of the audit, which fit into memory.
    y_pred, sensitive_features, y_true, control_features, sample_weight = (
        given.compute() if hasattr(given, "compute") else given
        for given in (y_pred, sensitive_features, y_true, control_features, sample_weight)
    )
    others = {
        "sensitive_features": sensitive_features,
        "y_true": y_true,
        "sample_weight": sample_weight,
    }
    for name, other in others.items():
        require_same_rows(y_pred, other, names=("y_pred", name))

    def read(given: Any, argument: str, default: str, **options: Any) -> tuple[Column, ...]:
        options = {"categorical": False} | options
        return (
            ()
            if given is None
            else tuple(as_columns(given, argument=argument, default=default, **options))
        )

    score = read(y_pred, "y_pred", "score", positive_class=positive_class)
    label = read(y_true, "y_true", "label", positive_class=positive_class)
    weight = read(sample_weight, "sample_weight", "weight")
    advice = " Of class probabilities pass those of one class, predict_proba(X)[:, 1]; for a representation call "
    advice += "audit_representation."
    for name, found, more in (
        ("y_pred", score, advice),
        ("y_true", label, ""),
        ("sample_weight", weight, ""),
    ):
        if len(found) > 1:
            raise ValueError(f"{name} has {len(found)} columns: pass one value for each row.{more}")
    for column in label:
        kinds = np.unique(column.values[column.known])
        if len(kinds) == 2:
            values = np.where(column.known, (column.values == kinds[1]).astype(np.float64), np.nan)
            label = (Column(column.name, values, ("0", "1")),)
    for column in weight:
        if np.nanmin(column.values) < 0:
            raise ValueError(
                f"{column.name!r} has negative weights: weights must be zero or positive."
            )
        if np.nanmax(column.values) == 0:
            raise ValueError(
                f"{column.name!r} is zero in every row: some weights must be positive."
            )
    columns = Columns(
        score=score[0],
        sensitive=read(sensitive_features, "sensitive_features", "sensitive", categorical=True),
        label=label[0] if label else None,
        controls=read(control_features, "control_features", "control", categorical=True),
        weight=weight[0] if weight else None,
    )
    rows = len(score[0].values)
    for column in columns.every():
        if len(column.values) != rows:
            raise ValueError(
                f"{column.name!r} has {len(column.values):,} rows but {columns.score.name!r} has {rows:,}: "
                "both need one row for each person."
            )
    return columns
