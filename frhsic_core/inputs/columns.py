"""Read columns that a user passes: their names, numbers, categories and missing values.

Everything that the library computes reads a column here, so the same column is the same numbers,
or the same error, in a statistic, a test, an audit, an adjustment and a model:

* Numbers are numbers, whatever holds them: whole numbers, Decimals, Fractions, truth values, text
  such as ``"62"``, categories such as ``62``. Dates become years and durations days.
* Words are categories, of which a column has at most 50.
* What could be either is an error: numbers mixed with words, or written with units or separators.
* NaN, None, NaT, NA and masked values are missing. An audit counts them, a statistic refuses them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from numbers import Complex, Real
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from frhsic_core.inputs.arrays import as_array, complex_numbers, is_plain, require_exact
from frhsic_core.inputs.rows import require_same_rows
from frhsic_core.inputs.tables import as_table, computed, is_table, plain_numbers

Array = NDArray[np.float64]
CATEGORIES = 50  # more distinct words than this are an identifier, not an attribute
SINGLE = 5  # of more categories than this, not nearly all may have a single row
MIN_ROWS = 20
_SCALE = 10  # fewer distinct numbers may be levels at any distance
LARGEST = 1e150  # squares of larger numbers leave the range; they are codes, not measurements
SMALLEST = 1e-150  # squares of smaller numbers are zero
_YEAR = 365.2425  # days
_WRITTEN_NUMBER = r"[-+$€£(='\"\s]*(0[xX][\da-fA-F]+|\d[\d.,'\s]*)[%$€£)'\"\s]*"
_WRITTEN_DATE = r"\s*(\d{4}-\d{1,2}-\d{1,2}([T\s].*)?|\d{1,2}([./-])\d{1,2}\3(\d{4}|\d{2}))\s*"
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
    labels : bool
        Whether the user passed categories, truth values or text, perhaps of numbers, so that
        nothing lies between two values.
    """

    name: str
    values: Array
    categories: tuple[str, ...] = ()
    labels: bool = False

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


# One column ---------------------------------------------------------------------------------------


def read_column(series: pd.Series, *, name: str) -> Column:
    """Return one column of a table as numbers or categories; missing values stay.

    Examples
    --------
    >>> from fractions import Fraction
    >>> read_column(pd.Series([Fraction(1, 4), 2, None]), name="s").values.tolist()
    [0.25, 2.0, nan]
    >>> read_column(pd.Series(["f", "m", "f"]), name="sex").categories
    ('f', 'm')
    """
    if isinstance(series.dtype, pd.SparseDtype):
        series = series.sparse.to_dense()
    if pd.api.types.is_complex_dtype(series):
        raise TypeError(complex_numbers(repr(name)))
    if isinstance(series.dtype, pd.CategoricalDtype):
        return _read_categories(series.cat, name)
    if pd.api.types.is_bool_dtype(series.dtype):
        return Column(name, _floats(series), labels=True)
    if pd.api.types.is_numeric_dtype(series.dtype):
        require_exact(series.dropna().to_numpy(), repr(name))
        return Column(name, _finite(_floats(series)))
    if isinstance(series.dtype, pd.PeriodDtype):
        series = series.dt.to_timestamp()
    if isinstance(series.dtype, pd.DatetimeTZDtype):
        series = series.dt.tz_convert("UTC").dt.tz_localize(None)
    if isinstance(series.dtype, np.dtype) and series.dtype.kind == "M":
        return Column(name, _years(series.to_numpy()))
    if isinstance(series.dtype, np.dtype) and series.dtype.kind == "m":
        return Column(name, _days(series.to_numpy()))
    return _read_objects(series, name)


def _floats(series: pd.Series) -> Array:
    return series.to_numpy(dtype=np.float64, na_value=np.nan)


def _finite(values: Array) -> Array:
    return np.where(np.isfinite(values), values, np.nan)


def _years(dates: np.ndarray) -> Array:
    """Return dates as years, such as 1980.5."""
    return 1970.0 + _days(dates - np.datetime64(0, "s")) / _YEAR


def _days(durations: np.ndarray) -> Array:
    """Return durations as days."""
    days = durations.astype("timedelta64[us]") / np.timedelta64(1, "D")
    return np.where(np.isnat(durations), np.nan, days)


def _read_categories(categories: Any, name: str) -> Column:
    """Read a column of categories; those of numbers are numbers."""
    codes = np.asarray(categories.codes, dtype=np.intp)
    used = np.unique(codes[codes >= 0])
    kinds = [categories.categories[code] for code in used]
    places = np.searchsorted(used, codes)
    places[codes < 0] = -1
    column = _of_kinds(kinds, places, name, keep_order=bool(categories.ordered))
    return replace(column, labels=True)


def _read_objects(series: pd.Series, name: str) -> Column:
    """Read a column of text or of other Python objects by its distinct values."""
    try:
        places, kinds = pd.factorize(series.astype(object))
    except TypeError as error:
        raise TypeError(
            f"{name!r} has lists or other collections: pass a single value in each cell."
        ) from error
    return _of_kinds(list(kinds), places, name)


def _of_kinds(
    kinds: Sequence[Any], places: NDArray[np.intp], name: str, *, keep_order: bool = False
) -> Column:
    """Return the column with the value ``kinds[place]`` in each row, where -1 is a missing value."""
    kinds = [_plain(kind, name) for kind in kinds]
    if _all(kinds, date):
        return Column(name, _at(_years(_moments(kinds)), places))
    if _all(kinds, timedelta):
        return Column(name, _at(_days(np.array(kinds, dtype="timedelta64[us]")), places))
    if any(isinstance(kind, date | timedelta) for kind in kinds):
        raise ValueError(f"{name!r} mixes dates or durations with other values: pass one kind.")
    numbers = _numbers(kinds)
    if not np.isnan(numbers).any():
        labels = len(kinds) > 0 and _all(kinds, str | bool)
        return Column(name, _at(_finite(numbers), places), labels=labels)
    counts = np.bincount(places[places >= 0], minlength=len(kinds))
    _require_words(kinds, numbers, counts, len(places), name)
    words = np.array([str(kind) for kind in kinds], dtype=object)
    if keep_order:
        return Column(name, _at(np.arange(len(words)), places), tuple(words), labels=True)
    sorted_words, codes = np.unique(words, return_inverse=True)
    return Column(name, _at(codes, places), tuple(sorted_words), labels=True)


def _at(values: np.ndarray, places: NDArray[np.intp]) -> Array:
    """Return ``values[place]`` for each row, and NaN where the place is -1."""
    return np.append(values.astype(np.float64), np.nan)[places]


def _all(kinds: Sequence[Any], kind: Any) -> bool:
    return len(kinds) > 0 and all(isinstance(value, kind) for value in kinds)


def _plain(value: Any, name: str) -> Any:
    """Return a cell as one of Python's own types, if it has one."""
    if isinstance(value, np.datetime64 | np.timedelta64):
        value = value.astype("datetime64[us]" if value.dtype.kind == "M" else "timedelta64[us]")
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, bytes):
        value = value.decode("utf-8", "replace")
    if isinstance(value, pd.Period):
        value = value.to_timestamp()
    if isinstance(value, Complex) and not isinstance(value, Real):
        raise TypeError(complex_numbers(repr(name)))
    if isinstance(value, time):
        raise TypeError(f"{name!r} has times of a day: pass hours as numbers, such as 9.5.")
    if isinstance(value, tuple | frozenset):
        raise TypeError(
            f"{name!r} has lists or other collections: pass a single value in each cell."
        )
    return value


def _moments(kinds: Sequence[Any]) -> np.ndarray:
    """Return dates, with or without a time and a zone, as moments in UTC."""
    moments = []
    for kind in kinds:
        if isinstance(kind, datetime) and kind.tzinfo is not None:
            kind = kind.astimezone(UTC).replace(tzinfo=None)
        if isinstance(kind, pd.Timestamp):
            kind = kind.to_datetime64()
        moments.append(np.datetime64(kind, "us"))
    return np.array(moments)


def _numbers(kinds: Sequence[Any]) -> Array:
    """Return the numbers among distinct values; NaN for the others."""
    numbers = np.full(len(kinds), np.nan)
    texts = []
    for place, kind in enumerate(kinds):
        if isinstance(kind, str):
            texts.append(place)
        elif isinstance(kind, Real | Decimal):
            numbers[place] = _float(kind)
    if texts:
        read = pd.to_numeric(pd.Series([kinds[place] for place in texts]), errors="coerce")
        numbers[texts] = read.to_numpy(dtype=np.float64, na_value=np.nan)
    return numbers


def _float(number: Any) -> float:
    try:
        return float(number)
    except OverflowError:
        return float("inf")


def _require_words(
    kinds: Sequence[Any], numbers: Array, counts: NDArray[np.intp], rows: int, name: str
) -> None:
    """Raise ``ValueError`` unless the distinct values of a column are categories."""
    number = ~np.isnan(numbers)
    truth = np.array([isinstance(kind, bool) for kind in kinds])
    word = ~number
    example = str(kinds[int(word.argmax())])[:40]
    if (number & ~truth).any():
        raise ValueError(
            f"{name!r} mixes numbers and words: {int(counts[word].sum()):,} of {rows:,} values are "
            f"not numbers, such as {example!r}. Write missing values as empty cells, and numbers "
            "without units or separators."
        )
    _require_no_written_numbers(pd.Series([str(kind) for kind in kinds]), name)
    if len(kinds) > CATEGORIES:
        raise ValueError(
            f"{name!r} has {len(kinds):,} distinct words, such as {example!r}: an attribute has at "
            f"most {CATEGORIES} categories. Is it an identifier? Choose another column, or group "
            "the words."
        )
    single = int((counts == 1).sum())
    if len(kinds) > SINGLE and single >= 0.9 * len(kinds):
        raise ValueError(
            f"{name!r} has {len(kinds)} distinct words, such as {example!r}, and {single} of them "
            "in one row only: nothing can be compared. Is it an identifier? Choose another "
            "column, or group the words."
        )


def _require_no_written_numbers(text: pd.Series, name: str) -> None:
    """Raise ``ValueError`` if most words are numbers or dates that are written as text."""
    written = text.str.fullmatch(_WRITTEN_NUMBER)
    dates = text.str.fullmatch(_WRITTEN_DATE)
    units = text.str.extract(_UNIT, expand=False)
    one_unit = len(text) > 2 and bool(units.notna().all()) and units.nunique() == 1
    if dates.mean() > 0.5:
        raise ValueError(
            f"{name!r} has dates that are written as text, such as {text[dates].iloc[0][:40]!r}: "
            "convert them, in Python by pandas.to_datetime, or write years as numbers."
        )
    if one_unit or written.mean() > 0.5:
        example = text[written | units.notna()].iloc[0][:40]
        raise ValueError(
            f"{name!r} has numbers that are written as text, such as {example!r}: write them with "
            "a decimal point, and without units, percent signs, currencies or separators of "
            "thousands."
        )


# What a statistic reads ---------------------------------------------------------------------------


def read_sample(given: Any, *, name: str, words: bool) -> tuple[Array, tuple[int, ...]]:
    """Return columns beside each other as float64, and the places of the categorical ones.

    Missing numbers are NaN. A missing category is an error, because no code stands for it.

    Parameters
    ----------
    given : array_like
        ``(n,)`` or ``(n, k)``; numbers may have any number of dimensions.
    name : str
        Name of the argument in messages.
    words : bool
        Whether categories are allowed.

    Examples
    --------
    >>> table = pd.DataFrame({"age": [30, 40], "sex": ["f", "m"]})
    >>> read_sample(table, name="s", words=True)
    (array([[30.,  0.],
           [40.,  1.]]), (1,))
    """
    if not is_table(given):
        given = as_array(given, argument=name)
    numbers = given if is_plain(given) else plain_numbers(given)
    if numbers is not None:
        require_exact(numbers, name)
        return np.array(numbers, dtype=np.float64), ()
    table = as_table(given, argument=name, default=name)
    _require_columns(table, name)
    columns = [
        read_column(table.iloc[:, k], name=str(table.columns[k])) for k in range(table.shape[1])
    ]
    places = tuple(k for k, column in enumerate(columns) if column.categories)
    for k in places:
        if not words:
            raise ValueError(words_for_numbers(columns[k]))
        if columns[k].missing:
            raise ValueError(
                f"{columns[k].name!r} has {columns[k].missing} missing values: drop those rows or "
                "name a category."
            )
    values = np.column_stack([column.values for column in columns])
    return values, places


def _require_columns(table: pd.DataFrame, argument: str) -> None:
    if table.shape[1] == 0:
        raise ValueError(f"{argument} has no columns: pass at least one.")


def words_for_numbers(column: Column) -> str:
    """Return the message for a column of words where numbers are needed."""
    return (
        f"{column.name!r} has words, such as {column.categories[0][:40]!r}, where numbers are "
        "needed."
    )


# What an audit and a remedy read ------------------------------------------------------------------


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
    >>> p = [1.0, float("nan")]
    >>> as_columns(p, argument="y_pred", default="score", categorical=False)[0].missing
    1
    """
    table = as_table(given, argument=argument, default=default)
    _require_columns(table, argument)
    names = [str(name) for name in table.columns]
    if len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise ValueError(f"{argument} has two columns named {twice!r}: rename one of them.")
    options: dict[str, Any] = {"categorical": categorical, "positive_class": positive_class}
    return [as_column(table.iloc[:, k], name=name, **options) for k, name in enumerate(names)]


def as_column(
    series: pd.Series, *, name: str, categorical: bool, positive_class: Any = None
) -> Column:
    """Return one column that has a value in some row; see :func:`as_columns`."""
    if series.isna().all():
        raise ValueError(
            f"{name!r} has no value in any of its {len(series):,} rows: check the name of the "
            "column."
        )
    if positive_class is not None:
        return _of_class(series, name, positive_class)
    column = read_column(series, name=name)
    if column.categories:
        if not categorical:
            raise ValueError(
                f"{words_for_numbers(column)} If an audit has two values here, name the one that "
                "counts as 1: positive_class= in Python, --positive-class on the command line."
            )
        return column
    if not column.known.any():
        raise ValueError(f"{name!r} has no finite value: check the column.")
    largest = np.nanmax(np.abs(column.values))
    if largest > LARGEST:
        raise ValueError(
            f"{name!r} has the value {largest:.3g}, which is too large: if it is a code for missing "
            "values, write empty cells instead; otherwise choose another unit."
        )
    if 0.0 < largest < SMALLEST:
        raise ValueError(
            f"{name!r} has no value above {largest:.3g}, which is too small: choose another unit."
        )
    return column


def _distinct(series: pd.Series) -> list[Any]:
    """Return the distinct values of a column, without the missing one."""
    return list(series.dropna().unique())


def _is_class(value: Any, positive_class: Any) -> bool:
    """Return whether a value is the positive class, as a word or as a number."""
    as_word = str(value).removesuffix(".0") == str(positive_class).removesuffix(".0")
    return as_word or bool(value == positive_class)


def has_class(series: pd.Series, positive_class: Any) -> bool:
    """Return whether a column has at most two values, one of which is the positive class."""
    if positive_class is None:
        return False
    kinds = _distinct(series)
    return len(kinds) <= 2 and any(_is_class(kind, positive_class) for kind in kinds)


def _of_class(series: pd.Series, name: str, positive_class: Any) -> Column:
    """Return 1 where a column of two values has the positive class."""
    kinds = _distinct(series)
    if not has_class(series, positive_class):
        shown = ", ".join(repr(str(kind)) for kind in kinds[:5])
        raise ValueError(
            f"{name!r} needs at most two values, one of them {str(positive_class)!r}, but it has "
            f"{len(kinds):,}: {shown}. Leave positive_class out for numbers."
        )
    yes = next(kind for kind in kinds if _is_class(kind, positive_class))
    chosen = (series == yes).to_numpy(dtype=np.float64, na_value=np.nan)
    return Column(name, np.where(series.isna(), np.nan, chosen))


def far_codes(values: Array, name: str) -> str:
    """Return a sentence about whole numbers such as -999 and 999 that are far from all others.

    A gap separates them that is more than three times as wide as the range of the other values, of
    which there are at least ten. Without any the sentence is empty. O(n log n).

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
    first = 0
    last = len(distinct)
    said = ""
    for place in np.argsort(-gaps)[:4]:  # the widest gaps first: there may be codes at both ends
        if place < middle:
            first = max(first, place + 1)
        else:
            last = min(last, place + 1)
        others = distinct[first:last]
        if len(others) < _SCALE:
            break
        codes = np.concatenate([distinct[:first], distinct[last:]])
        whole = (codes == np.rint(codes)).all()
        if whole and gaps[place] > 3.0 * np.ptp(others):
            said = (
                f"{name} has values far from all others ({others[0]:g} to {others[-1]:g}), such as "
                f"{codes[0]:g}, in {np.isin(known, codes).sum():,} of {len(known):,} rows: if this "
                "is a code for missing values, leave these cells empty, or drop the rows. "
                "Otherwise these few rows can decide some results, such as R²."
            )
    return said


# The arguments of an audit ------------------------------------------------------------------------


@dataclass(frozen=True)
class Columns:
    """Everything that an audit reads, with one entry for each row.

    A label of two values has the categories 0 and 1.
    """

    score: Column
    sensitive: tuple[Column, ...]
    label: Column | None
    controls: tuple[Column, ...]
    weight: Column | None

    @property
    def usable(self) -> NDArray[np.bool_]:
        """The rows with a score and, if there are weights, a positive one."""
        if self.weight is None:
            return self.score.known
        return self.score.known & (np.nan_to_num(self.weight.values) > 0)

    def every(self) -> list[Column]:
        """Return all columns in the order of the arguments."""
        chosen = [self.score, *self.sensitive, self.label, *self.controls, self.weight]
        return [column for column in chosen if column is not None]


def read_columns(
    y_pred: Any,
    sensitive_features: Any,
    y_true: Any = None,
    control_features: Any = None,
    sample_weight: Any = None,
    positive_class: Any = None,
) -> Columns:
    """Check the arguments of :func:`frhsic_core.audit` and return them as columns of one length."""
    y_pred = computed(y_pred)
    sensitive_features = computed(sensitive_features)
    y_true = computed(y_true)
    sample_weight = computed(sample_weight)
    others = {
        "sensitive_features": sensitive_features,
        "y_true": y_true,
        "sample_weight": sample_weight,
    }
    for name, other in others.items():
        require_same_rows(y_pred, other, names=("y_pred", name))
    label = None
    if y_true is not None:
        label = _read_one(y_true, "y_true", "label", positive_class=positive_class)
        label = _two_valued(label)
    score = _read_score(y_pred, positive_class, labelled=label is not None)
    weight = None
    if sample_weight is not None:
        weight = _read_one(sample_weight, "sample_weight", "weight")
        _require_weights(weight)
    columns = Columns(
        score=score,
        sensitive=_read_all(sensitive_features, "sensitive_features", "sensitive"),
        label=label,
        controls=_read_all(control_features, "control_features", "control"),
        weight=weight,
    )
    rows = len(score.values)
    for column in columns.every():
        if len(column.values) != rows:
            raise ValueError(
                f"{column.name!r} has {len(column.values):,} rows but {score.name!r} has {rows:,}: "
                "both need one row for each person."
            )
    return columns


def _read_all(given: Any, argument: str, default: str) -> tuple[Column, ...]:
    """Return attributes or controls, which may have words."""
    if given is None:
        return ()
    return tuple(as_columns(given, argument=argument, default=default, categorical=True))


def _read_one(
    given: Any, argument: str, default: str, *, positive_class: Any = None, advice: str = ""
) -> Column:
    """Return an argument that is a single column of numbers, or of two values."""
    options: dict[str, Any] = {"categorical": False, "positive_class": positive_class}
    found = as_columns(given, argument=argument, default=default, **options)
    if len(found) > 1:
        raise ValueError(
            f"{argument} has {len(found)} columns: pass one value for each row.{advice}"
        )
    return found[0]


def _read_score(y_pred: Any, positive_class: Any, *, labelled: bool) -> Column:
    """Return the scores; where a label has the positive class they may be numbers without it."""
    table = as_table(y_pred, argument="y_pred", default="score")
    in_score = table.shape[1] == 1 and has_class(table.iloc[:, 0], positive_class)
    wanted = positive_class if in_score or not labelled else None
    score = _read_one(
        table,
        "y_pred",
        "score",
        positive_class=wanted,
        advice=" Of class probabilities pass those of one class, predict_proba(X)[:, 1]; for a "
        "representation call audit_representation.",
    )
    known = score.values[score.known]
    two_codes = len(np.unique(known)) <= 2 and (known.min() < 0.0 or known.max() > 1.0)
    if positive_class is not None and wanted is None and two_codes:
        _of_class(table.iloc[:, 0], score.name, positive_class)
    return score


def _two_valued(label: Column) -> Column:
    """Return a label of two values as 0 and 1; others stay as they are."""
    kinds = np.unique(label.values[label.known])
    if len(kinds) != 2:
        return label
    larger = (label.values == kinds[1]).astype(np.float64)
    return Column(label.name, np.where(label.known, larger, np.nan), ("0", "1"), labels=True)


def _require_weights(weight: Column) -> None:
    """Raise ``ValueError`` for negative weights, and for weights that are all zero."""
    if np.nanmin(weight.values) < 0:
        raise ValueError(f"{weight.name!r} has negative weights: weights must be zero or positive.")
    if np.nanmax(weight.values) == 0:
        raise ValueError(f"{weight.name!r} is zero in every row: some weights must be positive.")
