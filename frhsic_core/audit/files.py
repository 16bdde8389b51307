"""Read the named columns of a CSV or parquet file in bounded memory.

Only the columns that are needed are kept. A file with more rows than the limit is read to its end in parts, and a
uniform random sample of its rows is kept.
"""

from __future__ import annotations

import difflib
import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd

MAX_ROWS = 5_000_000
_PART = 250_000
_CELLS = 5_000_000  # of a CSV file, in one part
_DELIMITERS = (",", ";", "\t", "|")
_PARQUET = (".parquet", ".pq")
_OTHER = {".xlsx": "Excel", ".xls": "Excel", ".json": "JSON", ".feather": "Feather", ".dta": "Stata", ".sav": "SPSS"}


class FileError(ValueError):
    """A file cannot be audited; the message says what to do."""


@dataclass(frozen=True)
class Table:
    """The columns that were asked for, and the number of rows of the file."""

    data: pd.DataFrame
    rows: int

    @property
    def sampled(self) -> bool:
        """Whether the rows are a sample of the file."""
        return self.rows > len(self.data)


def read_table(
    path: str | os.PathLike[str],
    columns: Sequence[str],
    *,
    max_rows: int = MAX_ROWS,
    seed: int = 0,
) -> Table:
    """Read the named columns of a file.

    Parameters
    ----------
    path : path
        A CSV file (comma, semicolon, tab or bar; also compressed, as in ``.csv.gz``), or a parquet file.
    columns : sequence of str
        Names of the columns to read; without any, the error lists the columns of the file.
    max_rows : int
        Keep a uniform sample of this many rows if the file has more.
    seed : int
        Seed of the sample.

    Raises
    ------
    FileError
        If the file cannot be read, or a column is missing or occurs twice.
    """
    path = Path(path)
    if path.is_dir():
        raise FileError(f"{path} is a folder: pass a CSV or parquet file.")
    if not path.exists():
        raise FileError(f"{path} does not exist: check the name of the file.")
    suffix = path.suffix.lower()
    if suffix in _OTHER:
        raise FileError(f"{path.name} has the format of {_OTHER[suffix]}: save it as CSV or parquet first.")
    wanted = list(dict.fromkeys(columns))
    try:
        if suffix in _PARQUET:
            return _collect(_parquet_parts(path, wanted), max_rows, seed)
        return _collect(_csv_parts(path, wanted), max_rows, seed)
    except UnicodeDecodeError as error:
        raise FileError(f"{path.name} is not written in UTF-8 (byte {error.start}): save it as UTF-8.") from error
    except (pd.errors.ParserError, pd.errors.EmptyDataError, EOFError, OSError) as error:
        if isinstance(error, PermissionError):
            raise FileError(f"{path} may not be read: ask for the permission, or copy the file.") from error
        raise FileError(f"{path.name} could not be read as a table ({str(error).strip()}): check the file.") from error


def _require(names: list[str], wanted: list[str], where: str) -> None:
    shown = ", ".join(repr(name[:60]) for name in names[:40]) + (", …" if len(names) > 40 else "")
    if not wanted:
        raise FileError(
            f"{where} has the columns {shown}: name that of the predictions (--score) and that of the attribute "
            "(--sensitive)."
        )
    for name in wanted:
        count = names.count(name)
        if count > 1:
            raise FileError(f"{where} has {count} columns named {name!r}: rename all but one.")
        if count == 0:
            close = difflib.get_close_matches(name, names, n=1, cutoff=0.5)
            stripped = [known for known in names if known.strip().lower() == name.strip().lower()]
            close = stripped[:1] or close
            hint = f" (did you mean {close[0]!r}?)" if close else ""
            raise FileError(f"{where} has no column {name!r}{hint}: its columns are {shown}.")


def _header(path: Path) -> tuple[list[str], str]:
    """Return the names of the columns of a CSV file and its delimiter, the one that gives most columns."""
    best: tuple[list[str], str] = ([], ",")
    for delimiter in _DELIMITERS:
        options = {"header": None, "nrows": 1, "dtype": str, "keep_default_na": False, "encoding": "utf-8-sig"}
        try:
            names = [str(name) for name in pd.read_csv(path, sep=delimiter, **options).iloc[0]]
        except pd.errors.ParserError:
            continue
        if len(names) > len(best[0]):
            best = (names, delimiter)
    return best


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
                raise FileError(
                    f"{path.name} has more cells in a row than names in its header: put text that contains "
                    f"{delimiter!r} in quotes."
                )
            yield part.reindex(columns=places).set_axis(wanted, axis=1)


def _parquet_parts(path: Path, wanted: list[str]) -> Iterator[pd.DataFrame]:
    try:
        import pyarrow.lib
        import pyarrow.parquet as parquet
    except ImportError:
        raise FileError(f"{path.name} is a parquet file: install pyarrow (pip install pyarrow), or save CSV.") from None
    try:
        with parquet.ParquetFile(path) as file:
            _require(list(file.schema_arrow.names), wanted, path.name)
            for batch in file.iter_batches(batch_size=_PART, columns=wanted):
                yield batch.to_pandas()[wanted]
    except pyarrow.lib.ArrowInvalid as error:
        raise FileError(f"{path.name} could not be read as parquet ({error}): check the file.") from error


def _collect(parts: Iterable[pd.DataFrame], max_rows: int, seed: int) -> Table:
    """Join the parts; of more than ``max_rows`` rows keep those with the smallest random keys, in their order."""
    generator = np.random.default_rng(seed)
    kept: list[pd.DataFrame] = []
    keys: list[np.ndarray] = []
    rows = held = 0
    for part in parts:
        rows += len(part)
        kept.append(part)
        keys.append(generator.random(len(part)))
        held += len(part)
        if held > max_rows + max(max_rows // 4, _PART):
            kept, keys = _smallest(kept, keys, max_rows)
            held = max_rows
    if not kept or rows == 0:
        raise FileError("the file has a header but no rows: check the file.")
    if held > max_rows:
        kept, keys = _smallest(kept, keys, max_rows)
    return Table(pd.concat(kept, ignore_index=True) if len(kept) > 1 else kept[0].reset_index(drop=True), rows)


def _smallest(
    kept: list[pd.DataFrame], keys: list[np.ndarray], rows: int
) -> tuple[list[pd.DataFrame], list[np.ndarray]]:
    data = pd.concat(kept, ignore_index=True)
    key = np.concatenate(keys)
    chosen = np.sort(np.argpartition(key, rows)[:rows])
    return [data.iloc[chosen].reset_index(drop=True)], [key[chosen]]
