"""Read what an audit needs: columns with their names, numbers, categories and missing values; CSV and parquet files.

Of a file only the columns that are needed are kept. A file with more rows than the limit is read to its end in parts,
and a uniform random sample of its rows is kept, so the memory is bounded.
"""

from __future__ import annotations

import difflib
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from frhsic_core._arrays import require_same_rows
from frhsic_core.conditional._curve import Array

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
        raise ValueError(f"{argument} has shape {array.shape}: pass one or several columns, (n,) or (n, k).")
    array = array.reshape(len(array), -1)
    count = array.shape[1]
    return pd.DataFrame(array, columns=[default] if count == 1 else [f"{default}_{k}" for k in range(count)])


def as_column(series: pd.Series, *, name: str, categorical: bool, positive_class: Any = None) -> Column:
    """Return one column as numbers; see :func:`as_columns`."""
    if series.isna().all():
        raise ValueError(f"{name!r} has no value in any of its {len(series):,} rows: check the name of the column.")
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
    if text.str.fullmatch(_WRITTEN_NUMBER).all() or (units.notna().all() and units.nunique() == 1 and len(kinds) > 2):
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
    others = {"sensitive_features": sensitive_features, "y_true": y_true, "sample_weight": sample_weight}
    for name, other in others.items():
        require_same_rows(y_pred, other, names=("y_pred", name))

    def read(given: Any, argument: str, default: str, **options: Any) -> tuple[Column, ...]:
        options = {"categorical": False} | options
        return () if given is None else tuple(as_columns(given, argument=argument, default=default, **options))

    score = read(y_pred, "y_pred", "score", positive_class=positive_class)
    label = read(y_true, "y_true", "label", positive_class=positive_class)
    weight = read(sample_weight, "sample_weight", "weight")
    advice = " Of class probabilities pass those of one class, predict_proba(X)[:, 1]; for a representation call "
    advice += "audit_representation."
    for name, found, more in (("y_pred", score, advice), ("y_true", label, ""), ("sample_weight", weight, "")):
        if len(found) > 1:
            raise ValueError(f"{name} has {len(found)} columns: pass one value for each row.{more}")
    for column in label:
        kinds = np.unique(column.values[column.known])
        if len(kinds) == 2:
            values = np.where(column.known, (column.values == kinds[1]).astype(np.float64), np.nan)
            label = (Column(column.name, values, ("0", "1")),)
    for column in weight:
        if np.nanmin(column.values) < 0:
            raise ValueError(f"{column.name!r} has negative weights: weights must be zero or positive.")
        if np.nanmax(column.values) == 0:
            raise ValueError(f"{column.name!r} is zero in every row: some weights must be positive.")
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


# Files ---------------------------------------------------------------------------------------------------------------

_PART = 250_000
_CELLS = 5_000_000  # of a CSV file, in one part
_AS_WRITTEN: dict[str, Any] = {"dtype": str, "keep_default_na": False, "encoding": "utf-8-sig"}
_DELIMITERS = (",", ";", "\t", "|")
_PARQUET = (".parquet", ".pq")
_KEY = "\0"  # the column of random keys
_OTHER = {".xlsx": "Excel", ".xls": "Excel", ".json": "JSON", ".feather": "Feather", ".dta": "Stata", ".sav": "SPSS"}


def read_table(
    path: str | os.PathLike[str],
    columns: Sequence[str],
    *,
    max_rows: int = 5_000_000,
    random_state: int = 0,
) -> tuple[pd.DataFrame, int]:
    """Return the named columns of a file, and the number of its rows.

    Parameters
    ----------
    path : path
        A CSV file (comma, semicolon, tab or bar; also compressed, as in ``.csv.gz``), a parquet file, or a folder of
        parquet files, which are read in the order of their names.
    columns : sequence of str
        Names of the columns to read; without any, the error lists the columns of the file.
    max_rows : int
        Keep a uniform sample of this many rows if the file has more.
    random_state : int
        Seed of the sample.

    Raises
    ------
    ValueError
        If the file cannot be read, or a column is missing or occurs twice.
    """
    path = Path(path)
    if not path.exists():
        raise ValueError(f"{path} does not exist: check the name of the file.")
    suffix = path.suffix.lower()
    if suffix in _OTHER:
        raise ValueError(f"{path.name} has the format of {_OTHER[suffix]}: save it as CSV or parquet first.")
    wanted = list(dict.fromkeys(columns))
    parts = _parquet_parts if _is_parquet(path) else _csv_parts
    try:
        return _collect(parts(path, wanted), max_rows, random_state)
    except UnicodeDecodeError as error:
        raise ValueError(f"{path.name} is not written in UTF-8 (byte {error.start}): save it as UTF-8.") from error
    except PermissionError as error:
        raise ValueError(f"{path} may not be read: ask for the permission, or copy the file.") from error
    except (pd.errors.ParserError, pd.errors.EmptyDataError, EOFError, OSError) as error:
        raise ValueError(f"{path.name} could not be read as a table ({str(error).strip()}): check the file.") from error


def _is_parquet(path: Path) -> bool:
    return path.suffix.lower() in _PARQUET or path.is_dir()


def read_text(path: Path) -> pd.DataFrame:
    """Return the whole table with every cell of a CSV file as it is written, to write it again with more columns."""
    if _is_parquet(path):
        return pd.read_parquet(path)
    return pd.read_csv(path, sep=_header(path)[1], skipinitialspace=True, **_AS_WRITTEN)


def _require(names: list[str], wanted: list[str], where: str) -> None:
    shown = ", ".join(repr(name[:60]) for name in names[:40]) + (", …" if len(names) > 40 else "")
    if not wanted:
        raise ValueError(
            f"{where} has the columns {shown}: name those of the predictions (--score) and attribute (--sensitive)."
        )
    for name in wanted:
        count = names.count(name)
        if count > 1:
            raise ValueError(f"{where} has {count} columns named {name!r}: rename all but one.")
        if count == 0:
            lower = {other.lower(): other for other in names}
            close = difflib.get_close_matches(name.lower(), lower, n=1, cutoff=0.5)
            hint = f" (did you mean {lower[close[0]]!r}?)" if close else ""
            raise ValueError(f"{where} has no column {name!r}{hint}: its columns are {shown}.")


def _header(path: Path) -> tuple[list[str], str]:
    """Return the names of the columns of a CSV file and its delimiter, the one that gives most columns."""
    found: list[tuple[list[str], str]] = [([], ",")]
    for delimiter in _DELIMITERS:
        with suppress(pd.errors.ParserError):
            first = pd.read_csv(path, sep=delimiter, header=None, nrows=1, **_AS_WRITTEN).iloc[0]
            found.append((list(map(str, first)), delimiter))
    return max(found, key=lambda one: len(one[0]))


def _csv_parts(path: Path, wanted: list[str]) -> Iterator[pd.DataFrame]:
    names, delimiter = _header(path)
    _require(names, wanted, path.name)
    places = [names.index(name) for name in wanted]
    # All columns are parsed, in parts of bounded size: asked for some columns only, the reader accepts lines with too
    # many cells, and a comma inside a number would move all cells after it.
    rows = max(1, min(_PART, _CELLS // len(names)))
    options = {"sep": delimiter, "header": None, "skiprows": 1, "chunksize": rows, "encoding": "utf-8-sig"}
    try:
        reader = pd.read_csv(path, low_memory=False, skipinitialspace=True, **options)
    except pd.errors.EmptyDataError:  # nothing after the header
        return
    with reader:
        for part in reader:
            if part.iloc[:, len(names) :].notna().any(axis=None):
                advice = f"put text that contains {delimiter!r} in quotes."
                raise ValueError(f"{path.name} has more cells in a row than names in its header: {advice}")
            yield part.reindex(columns=places).set_axis(wanted, axis=1)


def _parquet_parts(path: Path, wanted: list[str]) -> Iterator[pd.DataFrame]:
    try:
        import pyarrow.dataset
        import pyarrow.lib
    except ImportError as error:
        raise ValueError(f"{path.name} is a parquet file: pip install pyarrow, or save CSV ({error}).") from None
    try:
        table = pyarrow.dataset.dataset(path, format="parquet", partitioning="hive")
        if not table.schema.names:
            raise ValueError(f"{path} is a folder without parquet files: pass a CSV file or a folder of parquet files.")
        _require(list(table.schema.names), wanted, path.name)
        for batch in table.to_batches(columns=wanted):
            yield batch.to_pandas()[wanted]
    except pyarrow.lib.ArrowInvalid as error:
        raise ValueError(f"{path.name} could not be read as parquet ({error}): check the file.") from error


def _collect(parts: Iterable[pd.DataFrame], max_rows: int, random_state: int) -> tuple[pd.DataFrame, int]:
    """Join the parts; of more than ``max_rows`` rows keep those with the smallest random keys, in their order."""
    generator = np.random.default_rng(random_state)
    kept: list[pd.DataFrame] = []
    rows = 0
    for part in parts:
        rows += len(part)
        kept.append(part.assign(**{_KEY: generator.random(len(part))}))
        if sum(map(len, kept)) > max_rows + max(max_rows // 4, _PART):
            kept = [_smallest(kept, max_rows)]
    if rows == 0:
        raise ValueError("the file has a header but no rows: check the file.")
    return _smallest(kept, max_rows).drop(columns=_KEY), rows


def _smallest(kept: list[pd.DataFrame], rows: int) -> pd.DataFrame:
    data = pd.concat(kept, ignore_index=True)
    return data if len(data) <= rows else data.nsmallest(rows, _KEY).sort_index().reset_index(drop=True)
