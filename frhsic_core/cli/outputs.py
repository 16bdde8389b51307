"""Know which files a command will write, so that none is lost without a word."""

from __future__ import annotations

import gzip
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from frhsic_core._atomic_files import is_special
from frhsic_core.cli.terminal import echo
from frhsic_core.inputs.files import WholeTable

_PAGES = (".html", ".htm")
_NOT_A_TABLE = (".json", ".md", ".xlsx", ".xls", ".feather", ".bz2", ".xz", ".zip", ".zst")


class Files:
    """The files that a command will write, and which of them exist when it starts."""

    def __init__(self, paths: Sequence[Path], *, overwrite: bool) -> None:
        self.paths = tuple(paths)
        for k, path in enumerate(self.paths):
            for other in self.paths[:k]:
                if _same(path, other):
                    raise ValueError(
                        f"{other} and {path} would be one file: name two different files."
                    )
        self.replaced = [path for path in self.paths if path.exists() and not is_special(path)]
        if not overwrite:
            require_new(self.paths)

    def require_none_of(self, *inputs: Path) -> None:
        """Refuse to replace a file that the command reads."""
        for path in self.paths:
            if any(_same(path, given) for given in inputs):
                raise ValueError(
                    f"{path} would replace a file that this command reads: name another file."
                )

    def say_replaced(self) -> None:
        """Name the files that existed before."""
        if self.replaced:
            echo(f"Replaced: {', '.join(str(path) for path in self.replaced)}")


def require_new(paths: Sequence[Path]) -> None:
    """Refuse to replace any file; a device or a pipe is not replaced."""
    for path in paths:
        if path.exists() and not is_special(path):
            raise ValueError(
                f"{path} exists and --no-overwrite was given: name another file with --out."
            )


def _same(one: Path, other: Path) -> bool:
    """Return whether two paths are one file, also through links."""
    if one.exists() and other.exists():
        return one.samefile(other)
    return one.resolve() == other.resolve()


def report_files(out: Path) -> list[Path]:
    """Return the page of a report, and the JSON and Markdown beside it; only a device itself."""
    if is_special(out):
        return [out]
    page = out / "audit.html" if out.is_dir() else out
    if page.suffix.lower() not in _PAGES:
        page = page.with_name(f"{page.name}.html")
    return [page, page.with_suffix(".md"), page.with_suffix(".json")]


def table_format(out: Path) -> Callable[[WholeTable, str, np.ndarray, Any], None]:
    """Return what writes a table to a file with this ending."""
    suffix = out.suffix.lower()
    if suffix in _PAGES or suffix in _NOT_A_TABLE:
        raise ValueError(
            f"--out {out} has the ending {suffix}: the table is written as CSV (.csv, .csv.gz) or "
            "parquet (.parquet)."
        )
    if out.is_dir():
        raise ValueError(f"--out {out} is a folder: name a file in it, such as adjusted.csv.")
    if suffix in (".parquet", ".pq"):
        return _write_parquet
    if suffix == ".gz":
        return _write_compressed
    return _write_csv


def _write_csv(whole: WholeTable, name: str, values: np.ndarray, file: Any) -> None:
    whole.write_csv(name, values, file)


def _write_parquet(whole: WholeTable, name: str, values: np.ndarray, file: Any) -> None:
    whole.write_parquet(name, values, file)


def _write_compressed(whole: WholeTable, name: str, values: np.ndarray, file: Any) -> None:
    with gzip.GzipFile(filename="", mode="wb", fileobj=file, mtime=0) as compressed:
        whole.write_csv(name, values, compressed)
