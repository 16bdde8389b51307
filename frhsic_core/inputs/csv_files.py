"""Read CSV files: comma, semicolon, tab or bar, with quotes, compressed or not.

One reader serves the audit, which needs a few columns of a file that may be long, and the
adjustment, which writes the whole table again with one more column.
"""

from __future__ import annotations

import bz2
import csv
import gzip
import io
import lzma
import re
import warnings
import zipfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TextIO

import numpy as np
import pandas as pd

PART = 250_000  # rows of a file that are parsed at once
CELLS = 5_000_000  # and at most so many cells
DELIMITERS = (",", ";", "\t", "|")
_HEADER_LINES = 100  # a name in quotes may contain line breaks
_BEGIN = 1 << 20  # characters from which the spaces after delimiters are judged


class NotText(Exception):
    """A file that should be CSV and is something else."""


@dataclass(frozen=True)
class Dialect:
    """How one CSV file is written.

    Attributes
    ----------
    names : tuple of str
        The header.
    delimiter : str
        What separates cells.
    skip_spaces : bool
        Whether quotes follow spaces, as in ``1, "a, b"``; then spaces before a cell are dropped.
    line_end : str
        The end of the header line.
    encoding : str
        UTF-8 with or without a byte-order mark.
    """

    names: tuple[str, ...]
    delimiter: str
    skip_spaces: bool
    line_end: str
    encoding: str


@contextmanager
def opened(path: Path) -> Iterator[tuple[TextIO, Dialect]]:
    """Yield a CSV file behind its header, and how it is written."""
    with _binary(path) as binary:
        begin = binary.read(3)
        encoding = "utf-8-sig" if begin == b"\xef\xbb\xbf" else "utf-8"
    with _binary(path) as binary, io.TextIOWrapper(binary, encoding, newline="") as file:
        begin = file.read(_BEGIN)
    if "\0" in begin:
        raise NotText("it has null bytes: save it as UTF-8 text")
    with _binary(path) as binary, io.TextIOWrapper(binary, encoding, newline="") as file:
        header = _read_header(file)
        yield file, _dialect_of(header, begin, encoding)


def _binary(path: Path) -> Any:
    suffix = path.suffix.lower()
    if suffix == ".gz":
        return gzip.open(path)
    if suffix == ".bz2":
        return bz2.open(path)
    if suffix == ".xz":
        return lzma.open(path)
    if suffix == ".zip":
        archive = zipfile.ZipFile(path)
        inside = archive.namelist()
        if len(inside) != 1:
            raise NotText(f"the archive has {len(inside)} files instead of one")
        return archive.open(inside[0])
    return path.open("rb")


def _read_header(file: TextIO) -> str:
    """Return the first line that is not blank, with further lines while a quote is open."""
    header = ""
    for line in file:
        header += line
        if not header.strip():
            header = ""
        elif header.count('"') % 2 == 0:
            return header
        elif header.count("\n") >= _HEADER_LINES:
            break
    if header.count('"') % 2:
        raise NotText("a quote in its first line is never closed")
    if not header:
        raise NotText("it is empty")
    return header


def _dialect_of(header: str, begin: str, encoding: str) -> Dialect:
    line = header.rstrip("\r\n")
    delimiter = max(DELIMITERS, key=lambda one: len(_split(line, one)))
    quoted_after_space = re.search(rf"{re.escape(delimiter)} +\"", begin) is not None
    names = _split(line, delimiter)
    line_end = header[len(line) :] or "\n"
    return Dialect(tuple(names), delimiter, quoted_after_space, line_end, encoding)


def _split(line: str, delimiter: str) -> list[str]:
    lines = io.StringIO(line, newline="")
    return next(csv.reader(lines, delimiter=delimiter, skipinitialspace=True))


def parts_of(
    path: Path, wanted: Sequence[str], require: Callable[[Sequence[str]], None]
) -> Iterator[pd.DataFrame]:
    """Yield the wanted columns of one part of the rows after another.

    A column is numeric where each of its cells in a part is a number or empty. Otherwise its cells
    are as they are written.
    """
    with opened(path) as (file, dialect):
        require(dialect.names)
        places = [dialect.names.index(name) for name in wanted]
        for part in _parse(file, dialect):
            yield part[places].set_axis(list(wanted), axis=1)


def all_cells(path: Path) -> tuple[pd.DataFrame, Dialect]:
    """Return every cell of a file as it is written, and how the file is written."""
    with opened(path) as (file, dialect):
        parts = list(_parse(file, dialect, dtype=str, na_values=[]))
    if not parts:
        return pd.DataFrame(columns=range(len(dialect.names)), dtype=str), dialect
    return pd.concat(parts, ignore_index=True), dialect


def distinct_cells(path: Path, name: str) -> pd.Series:
    """Return the cells of one column as they are written, without most of the repetitions."""
    with opened(path) as (file, dialect):
        place = dialect.names.index(name)
        parts = _parse(file, dialect, dtype={place: str})
        distinct = [part[place].drop_duplicates() for part in parts]
    return pd.concat(distinct, ignore_index=True)


def _parse(file: TextIO, dialect: Dialect, **options: Any) -> Iterator[pd.DataFrame]:
    """Parse the rows after the header.

    All columns are parsed: asked for some columns only, pandas accepts lines with too many cells,
    and a comma inside a number would move all cells after it. One column more than the header has
    catches such cells. It may be empty, since some programs end every line with a delimiter.
    """
    width = len(dialect.names)
    settings: dict[str, Any] = {
        "sep": dialect.delimiter,
        "skipinitialspace": dialect.skip_spaces,
        "header": None,
        "names": range(width + 1),
        "index_col": False,
        "chunksize": max(1, min(PART, CELLS // width)),
        "low_memory": False,
        "keep_default_na": False,
        "na_values": [""],
    }
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error", pd.errors.ParserWarning)
            reader = pd.read_csv(file, **(settings | options))
            with reader:
                for part in reader:
                    _require_empty(part[width])
                    yield part[range(width)]
    except pd.errors.EmptyDataError:  # nothing after the header
        return
    except (pd.errors.ParserWarning, _TooManyCells):
        raise NotText(_too_many(dialect)) from None
    except pd.errors.ParserError as error:
        if "Expected" in str(error):
            raise NotText(_too_many(dialect)) from None
        if "EOF inside string" in str(error):
            raise NotText("a quote is opened and never closed") from None
        raise


class _TooManyCells(Exception):
    pass


def _require_empty(extra: pd.Series) -> None:
    if (extra.notna() & (extra != "")).any():
        raise _TooManyCells


def _too_many(dialect: Dialect) -> str:
    return (
        "it has more cells in a row than names in its header: put text that contains "
        f"{dialect.delimiter!r} in quotes"
    )


def write(cells: pd.DataFrame, dialect: Dialect, name: str, values: np.ndarray, file: Any) -> None:
    """Write cells as they were read, and one more column of numbers."""
    text = io.TextIOWrapper(file, dialect.encoding, newline="", write_through=True)
    header = csv.writer(text, delimiter=dialect.delimiter, lineterminator=dialect.line_end)
    header.writerow([*dialect.names, name])
    table = cells.assign(**{name: values})
    table.to_csv(
        text,
        sep=dialect.delimiter,
        lineterminator=dialect.line_end,
        header=False,
        index=False,
    )
    text.detach()
