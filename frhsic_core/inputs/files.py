"""Read tables from files: CSV and parquet.

Of a file only the columns that are needed are kept. A file with more rows than the limit is read to its end in parts,
and a uniform random sample of its rows is kept, so the memory is bounded.
"""

from __future__ import annotations

import difflib
import os
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

_PART = 250_000
_CELLS = 5_000_000  # of a CSV file, in one part
_AS_WRITTEN: dict[str, Any] = {"dtype": str, "keep_default_na": False, "encoding": "utf-8-sig"}
_DELIMITERS = (",", ";", "\t", "|")
_PARQUET = (".parquet", ".pq")
_KEY = "\0"  # the column of random keys
_OTHER = {
    ".xlsx": "Excel",
    ".xls": "Excel",
    ".json": "JSON",
    ".feather": "Feather",
    ".dta": "Stata",
    ".sav": "SPSS",
}


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
        raise ValueError(
            f"{path.name} has the format of {_OTHER[suffix]}: save it as CSV or parquet first."
        )
    wanted = list(dict.fromkeys(columns))
    parts = _parquet_parts if _is_parquet(path) else _csv_parts
    try:
        return _collect(parts(path, wanted), max_rows, random_state)
    except UnicodeDecodeError as error:
        raise ValueError(
            f"{path.name} is not written in UTF-8 (byte {error.start}): save it as UTF-8."
        ) from error
    except PermissionError as error:
        raise ValueError(
            f"{path} may not be read: ask for the permission, or copy the file."
        ) from error
    except (pd.errors.ParserError, pd.errors.EmptyDataError, EOFError, OSError) as error:
        raise ValueError(
            f"{path.name} could not be read as a table ({str(error).strip()}): check the file."
        ) from error


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
    options = {
        "sep": delimiter,
        "header": None,
        "skiprows": 1,
        "chunksize": rows,
        "encoding": "utf-8-sig",
    }
    try:
        reader = pd.read_csv(path, low_memory=False, skipinitialspace=True, **options)
    except pd.errors.EmptyDataError:  # nothing after the header
        return
    with reader:
        for part in reader:
            if part.iloc[:, len(names) :].notna().any(axis=None):
                advice = f"put text that contains {delimiter!r} in quotes."
                raise ValueError(
                    f"{path.name} has more cells in a row than names in its header: {advice}"
                )
            yield part.reindex(columns=places).set_axis(wanted, axis=1)


def _parquet_parts(path: Path, wanted: list[str]) -> Iterator[pd.DataFrame]:
    try:
        import pyarrow.dataset
        import pyarrow.lib
    except ImportError as error:
        raise ValueError(
            f"{path.name} is a parquet file: pip install pyarrow, or save CSV ({error})."
        ) from None
    try:
        table = pyarrow.dataset.dataset(path, format="parquet", partitioning="hive")
        if not table.schema.names:
            raise ValueError(
                f"{path} is a folder without parquet files: pass a CSV file or a folder of parquet files."
            )
        _require(list(table.schema.names), wanted, path.name)
        for batch in table.to_batches(columns=wanted):
            yield batch.to_pandas()[wanted]
    except pyarrow.lib.ArrowInvalid as error:
        raise ValueError(
            f"{path.name} could not be read as parquet ({error}): check the file."
        ) from error


def _collect(
    parts: Iterable[pd.DataFrame], max_rows: int, random_state: int
) -> tuple[pd.DataFrame, int]:
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
    return (
        data
        if len(data) <= rows
        else data.nsmallest(rows, _KEY).sort_index().reset_index(drop=True)
    )
