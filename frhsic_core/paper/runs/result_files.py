"""Read and write the files of a result store. Each file has a SHA-256 checksum, and every reading verifies it.

- ``NAME.json``, the sidecar, has two checksums: ``sha256`` of its own content, in a form that does not depend on white
  space, and ``table_sha256`` of the bytes of the table. While the table is replaced, the second one lists the old and
  the new checksum, so that a process killed at any moment leaves a pair of files that fit.
- ``NAME.parquet`` or ``NAME.csv``, the table, is verified against its sidecar.
- A part ends with a line that has the checksum of the lines before it.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from typing import Any, NamedTuple

import pandas as pd

from frhsic_core.atomic_files import write_atomically
from frhsic_core.paper.runs.plan import json_sha256

_OWN = "sha256"
_TABLE = "table_sha256"
_SEAL = len(f"sha256 {'0' * 64}\n")


class StoreError(OSError):
    """The store cannot be read or written; the message says why and what to do."""


class DamagedFile(StoreError):
    """A file of the store is not what was written."""


@dataclass(frozen=True)
class Results:
    """Hold the compacted files of a store, verified.

    Parameters
    ----------
    side : dict
        Content of the sidecar without its checksums; empty if there is no sidecar.
    table : Path
        Where the table is, or would be.
    data : bytes, optional
        Content of the table; None if there is none.
    """

    side: dict[str, Any]
    table: Path
    data: bytes | None

    @property
    def lost(self) -> bool:
        """Whether the sidecar lists rows and the table is missing."""
        return self.data is None and bool(self.side.get("stacks") or self.side.get("units"))

    def require_table(self) -> None:
        """Raise :class:`StoreError` if there is no table."""
        if self.data is None:
            raise StoreError(f"{self.table} is missing. Restore it, or compute its rows with frhsic run.")

    def rows(self) -> pd.DataFrame | None:
        """Return the rows of the table; None if there is no table.

        Raises
        ------
        StoreError
            If the table is lost, or if pyarrow is needed and missing.
        """
        if self.lost:
            self.require_table()
        if self.data is None:
            return None
        return pd.read_csv(BytesIO(self.data)) if self.table.suffix == ".csv" else _parquet_rows(self.data, self.table)


class StoredPart(NamedTuple):
    """A verified part: its file, what was run, and its rows as they are stored."""

    path: Path
    meta: dict[str, Any]
    stored_rows: bytes

    def rows(self) -> pd.DataFrame:
        """Return the rows."""
        return pd.DataFrame(json.loads(self.stored_rows))


def read_results(root: Path, name: str) -> Results:
    """Read the sidecar and the table of a store and verify both. All readings of stored results come here.

    Raises
    ------
    DamagedFile
        If a checksum does not fit or the sidecar of a table is missing. The message names the file.
    """
    sidecar = root / f"{name}.json"
    while True:
        raw = _bytes_of(sidecar)
        side = {} if raw is None else _opened(raw, sidecar)
        holds_units = "study" in side if side else (root / f"{name}.csv").exists()
        table = root / f"{name}{'.csv' if holds_units else '.parquet'}"
        data = _bytes_of(table)
        accepted = side.pop(_TABLE, [])
        if data is None or sha256(data) in accepted:
            return Results(side, table, data)
        # Between the two readings another process may have compacted the store. Then the sidecar is a new one.
        if _bytes_of(sidecar) == raw:
            break
    if raw is None:
        raise DamagedFile(
            f"{sidecar} is missing, so {table.name} cannot be verified. Restore it, or delete {table.name} to compute "
            "its rows again."
        )
    raise DamagedFile(
        f"{table} is damaged: its checksum is not the one in {sidecar.name}. Restore it, for example from the "
        "repository, or delete it to compute its rows again."
    )


def write_sidecar(path: Path, side: Mapping[str, Any], accepted: Iterable[str]) -> None:
    """Write a sidecar with its checksums; ``accepted`` are those that its table may have."""
    content = {**side, _TABLE: list(accepted)}
    content[_OWN] = json_sha256(content)
    text = json.dumps(content, indent=1, ensure_ascii=False) + "\n"
    write_atomically(path, lambda file: file.write(text.encode()))


def write_part(path: Path, meta: Mapping[str, Any], rows: pd.DataFrame) -> None:
    """Write what was run and its rows as one file of three lines."""
    body = f"{json.dumps(meta)}\n{json.dumps(rows.to_dict('list'))}\n".encode()
    write_atomically(path, lambda file: file.write(_sealed(body)))


def read_part(path: Path) -> StoredPart:
    """Read a part and verify it.

    Raises
    ------
    DamagedFile
        If its last line is not the checksum of the lines before it.
    FileNotFoundError
        If there is none, as after another process has compacted the store.
    """
    data = path.read_bytes()
    body = data[:-_SEAL]
    if data != _sealed(body):
        raise DamagedFile(f"{path} is damaged: its checksum does not fit.")
    meta, rows = body.splitlines()
    return StoredPart(path, json.loads(meta), rows)


def sha256(data: bytes) -> str:
    """Return the SHA-256 of some bytes in hexadecimal digits."""
    return hashlib.sha256(data).hexdigest()


def _sealed(body: bytes) -> bytes:
    return body + f"sha256 {sha256(body)}\n".encode()


def _bytes_of(path: Path) -> bytes | None:
    try:
        return path.read_bytes()
    except FileNotFoundError:
        return None


def _opened(raw: bytes, path: Path) -> dict[str, Any]:
    """Return the verified content of a sidecar without the checksum of that content."""
    try:
        side = json.loads(raw.decode())
    except ValueError:  # not JSON, or not UTF-8
        side = None
    if not isinstance(side, dict) or side.pop(_OWN, None) != json_sha256(side):
        raise DamagedFile(
            f"{path} is damaged or has no checksum. Restore it, for example from the repository, or delete it together "
            "with its table to compute all rows again."
        )
    return side


def _parquet_rows(data: bytes, path: Path) -> pd.DataFrame:
    try:
        import pyarrow.parquet
    except ImportError:
        raise StoreError(f"Reading {path} needs pyarrow: pip install 'frhsic-core[experiments]'.") from None
    try:
        return pyarrow.parquet.read_table(pyarrow.BufferReader(data)).to_pandas()
    except (OSError, pyarrow.ArrowException) as error:  # an old version of pyarrow
        reason = " ".join(str(error).split())
        raise StoreError(f"{path} is not readable with pyarrow {pyarrow.__version__} ({reason}).") from None
