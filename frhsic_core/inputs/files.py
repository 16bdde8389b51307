"""Read tables from files: CSV and parquet.

Of a file only the columns that are needed are kept. A file with more rows than the limit is read to
its end in parts, and a uniform random sample of its rows is kept, so the memory is bounded.
"""

from __future__ import annotations

import csv
import difflib
import hashlib
import os
import shutil
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from frhsic_core.inputs import csv_files, parquet_files
from frhsic_core.inputs.cells import check_thousands, may_have_thousands, read_cells

_KEY = "\0"  # the column of random keys
_SHOWN = 40  # names of columns in a message
_OTHER = {
    ".xlsx": "Excel",
    ".xls": "Excel",
    ".json": "JSON",
    ".feather": "Feather",
    ".dta": "Stata",
    ".sav": "SPSS",
}
_GZIP = b"\x1f\x8b"
_READERS = (csv_files.NotText, pd.errors.ParserError, pd.errors.EmptyDataError, csv.Error)


@dataclass(frozen=True)
class Table:
    """Some columns of a file.

    Attributes
    ----------
    data : DataFrame
        The columns, or a sample of their rows.
    rows : int
        Number of rows of the file.
    notes : tuple of str
        What a reader of a report must know, such as words that were read as missing values.
    """

    data: pd.DataFrame
    rows: int
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class Source:
    """A file or folder that is being read.

    Attributes
    ----------
    path : Path
        Where to read it: of a pipe, a copy.
    name : str
        Its name.
    size : int
        Bytes, of a folder in all of its files.
    sha256 : str
        The hash of its content, of a folder that of its files by their names.
    """

    path: Path
    name: str
    size: int
    sha256: str


@contextmanager
def source(path: str | os.PathLike[str]) -> Iterator[Source]:
    """Yield what is known about a file while it is read; at the end, check that nobody changed it.

    The file is hashed before and after, so the hash is that of the numbers that were read. A pipe
    can be read only once: it is copied to a private temporary file first.
    """
    path = Path(path)
    with _explained(path):
        if not path.exists():
            raise ValueError(f"{path} does not exist: check the name of the file.")
        if path.is_char_device() or path.is_block_device():
            raise ValueError(f"{path} is a device: pass a file, a folder or a pipe.")
        if path.is_file() or path.is_dir():
            before = _described(path, path.name)
            yield before
            if _described(path, path.name) != before:
                raise ValueError(f"{path} changed while it was read: run the command again.")
            return
        with tempfile.TemporaryDirectory() as folder:
            yield _described(_copied(path, Path(folder)), path.name)


def _described(path: Path, name: str) -> Source:
    files = [path]
    if path.is_dir():
        files = sorted(file for file in path.rglob("*") if file.is_file())
    digest = hashlib.sha256()
    size = 0
    for file in files:
        size += file.stat().st_size
        with file.open("rb") as opened:
            hashlib.file_digest(opened, lambda: digest)
    return Source(path, name, size, digest.hexdigest())


def _copied(path: Path, folder: Path) -> Path:
    """Copy a pipe to a file with the ending that its first bytes ask for."""
    copy = folder / "table.csv"
    with path.open("rb") as pipe, copy.open("wb") as file:
        shutil.copyfileobj(pipe, file)
    with copy.open("rb") as file:
        compressed = file.read(len(_GZIP)) == _GZIP
    return copy.rename(folder / "table.csv.gz") if compressed else copy


def read_table(
    path: str | os.PathLike[str],
    columns: Sequence[str],
    *,
    max_rows: int = 5_000_000,
    random_state: int = 0,
    name: str | None = None,
) -> Table:
    """Return the named columns of a file, and the number of its rows.

    Parameters
    ----------
    path : path
        A CSV file (comma, semicolon, tab or bar; also compressed, as in ``.csv.gz``), a parquet
        file, or a folder of parquet files, which are read in the order of their names.
    columns : sequence of str
        Names of the columns to read; without any, the error lists the columns of the file.
    max_rows : int
        Keep a uniform sample of this many rows if the file has more.
    random_state : int
        Seed of the sample.
    name : str, optional
        What messages call the file.

    Raises
    ------
    ValueError
        If the file cannot be read, or a column is missing or occurs twice.
    """
    path = Path(path)
    name = path.name if name is None else name
    wanted = list(dict.fromkeys(columns))
    require = partial(_require, wanted=wanted, where=name)
    with _explained(path, name):
        _require_known_format(path, name)
        if parquet_files.is_parquet(path):
            parts = parquet_files.parts_of(path, wanted, require)
            data, rows = _collect(parts, max_rows, random_state)
            return Table(data, rows)
        parts = csv_files.parts_of(path, wanted, require)
        data, rows = _collect(parts, max_rows, random_state)
        return _interpreted(data, rows, partial(csv_files.distinct_cells, path))


@dataclass(frozen=True)
class WholeTable:
    """A file with all of its columns, to be written again with one more column.

    Attributes
    ----------
    table : Table
        The columns that are used.
    names : tuple of str
        Names of all columns.
    write_csv, write_parquet : callable
        ``write(name, values, file)`` writes all columns and one more.
    """

    table: Table
    names: tuple[str, ...]
    write_csv: Callable[[str, np.ndarray, Any], None]
    write_parquet: Callable[[str, np.ndarray, Any], None]


def read_whole_table(
    path: str | os.PathLike[str], columns: Sequence[str], *, name: str | None = None
) -> WholeTable:
    """Return a file with all of its columns; see :func:`read_table`.

    The cells of a CSV file stay as they are written, and a parquet file keeps its index.
    """
    path = Path(path)
    name = path.name if name is None else name
    wanted = list(dict.fromkeys(columns))
    require = partial(_require, wanted=wanted, where=name)
    with _explained(path, name):
        _require_known_format(path, name)
        if parquet_files.is_parquet(path):
            return _whole_parquet(path, wanted, require)
        return _whole_csv(path, wanted, require)


def _whole_parquet(
    path: Path, wanted: Sequence[str], require: Callable[[Sequence[str]], None]
) -> WholeTable:
    table = parquet_files.whole_table(path, wanted, require)
    data = parquet_files.columns_of(table, wanted)
    _require_rows(len(data))
    return WholeTable(
        Table(data, len(data)),
        tuple(table.schema.names),
        partial(parquet_files.write_csv, table),
        partial(parquet_files.write, table),
    )


def _whole_csv(
    path: Path, wanted: Sequence[str], require: Callable[[Sequence[str]], None]
) -> WholeTable:
    cells, dialect = csv_files.all_cells(path)
    require(dialect.names)
    _require_rows(len(cells))
    places = [dialect.names.index(name) for name in wanted]
    data = cells[places].set_axis(wanted, axis=1)
    return WholeTable(
        _interpreted(data, len(data), data.__getitem__),
        dialect.names,
        partial(csv_files.write, cells, dialect),
        partial(_csv_as_parquet, cells, dialect.names),
    )


def _csv_as_parquet(
    cells: pd.DataFrame, names: Sequence[str], added: str, values: np.ndarray, file: Any
) -> None:
    """Write the cells of a CSV file as words, and the empty ones as missing."""
    if len(set(names)) < len(names):
        raise ValueError("two columns have one name, which parquet does not allow: write CSV.")
    words = cells.mask(cells == "").set_axis(list(names), axis=1)
    words.assign(**{added: values}).to_parquet(file, index=False)


def _interpreted(data: pd.DataFrame, rows: int, as_written: Callable[[str], pd.Series]) -> Table:
    """Return what the cells of each column mean."""
    read: dict[str, pd.Series] = {}
    notes: list[str] = []
    for name in data:
        read[name], note = read_cells(data[name], name)
        notes.append(note)
        if may_have_thousands(read[name]):
            notes.append(check_thousands(as_written(name), name))
    kept = tuple(note for note in notes if note)
    return Table(pd.DataFrame(read), rows, kept)


@contextmanager
def _explained(path: Path, name: str | None = None) -> Iterator[None]:
    """Turn the errors of a reader into sentences about the file."""
    name = path.name if name is None else name
    try:
        yield
    except UnicodeDecodeError as error:
        raise ValueError(f"{name} is not written in UTF-8: save it as UTF-8.") from error
    except FileNotFoundError as error:
        raise ValueError(f"{path} does not exist: check the name of the file.") from error
    except PermissionError as error:
        raise ValueError(
            f"{path} may not be read: ask for the permission, or copy the file."
        ) from error
    except (*_READERS, EOFError, OSError) as error:
        reason = str(error).strip()
        raise ValueError(
            f"{name} could not be read as a table ({reason}): check the file."
        ) from error


def _require_known_format(path: Path, name: str) -> None:
    suffix = Path(name).suffix.lower()
    if suffix in _OTHER:
        raise ValueError(f"{name} has the format of {_OTHER[suffix]}: save it as CSV or parquet.")


def _require(names: Sequence[str], *, wanted: Sequence[str], where: str) -> None:
    """Refuse names of columns that a table lacks or has more than once."""
    shown = ", ".join(repr(name[:60]) for name in names[:_SHOWN])
    if len(names) > _SHOWN:
        shown += ", …"
    if not wanted:
        raise ValueError(
            f"{where} has the columns {shown}: name those of the predictions (--score) and "
            "attribute (--sensitive)."
        )
    for name in wanted:
        count = list(names).count(name)
        if count > 1:
            raise ValueError(f"{where} has {count} columns named {name!r}: rename all but one.")
        if count == 0:
            hint = _similar(name, names)
            raise ValueError(f"{where} has no column {name!r}{hint}: its columns are {shown}.")


def _similar(name: str, names: Sequence[str]) -> str:
    lower = {other.lower(): other for other in names}
    close = difflib.get_close_matches(name.lower(), lower, n=1, cutoff=0.5)
    return f" (did you mean {lower[close[0]]!r}?)" if close else ""


def _require_rows(rows: int) -> None:
    if rows == 0:
        raise ValueError("the file has a header but no rows: check the file.")


def _collect(
    parts: Iterable[pd.DataFrame], max_rows: int, random_state: int
) -> tuple[pd.DataFrame, int]:
    """Join the parts; of more than ``max_rows`` rows keep those with the smallest random keys."""
    generator = np.random.default_rng(random_state)
    kept: list[pd.DataFrame] = []
    rows = 0
    for part in parts:
        rows += len(part)
        kept.append(part.assign(**{_KEY: generator.random(len(part))}))
        held = sum(len(one) for one in kept)
        if held > max_rows + max(max_rows // 4, csv_files.PART):
            kept = [_smallest(kept, max_rows)]
    _require_rows(rows)
    return _smallest(kept, max_rows).drop(columns=_KEY), rows


def _smallest(kept: list[pd.DataFrame], rows: int) -> pd.DataFrame:
    """Return the rows with the smallest keys, in the order of the file."""
    data = pd.concat(kept, ignore_index=True)
    if len(data) <= rows:
        return data
    return data.nsmallest(rows, _KEY).sort_index().reset_index(drop=True)
