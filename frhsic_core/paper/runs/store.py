"""Store the results of an experiment: finished jobs in a SQLite file, exported to the table that the book reads.

- ``NAME.sqlite`` has the finished jobs (stacks of models, or units of a study) that are not exported yet. A job is
  written in one transaction, so a crash or a full disk leaves the whole job or nothing of it.
- ``NAME.parquet`` has the exported rows of models (in a fixed order, float32 metrics), ``NAME.csv`` those of units.
- ``NAME.json`` has the records of the exported jobs: recipes or settings, code, libraries, device, seconds. It also has
  two checksums, which every reading verifies: ``sha256`` of its own content, and ``table_sha256`` of the table's bytes.

A damaged or lost file is an error that says what to restore or to delete. Several runners of one machine can share a
folder on a local disk. Only exporting and reading a table of models needs pyarrow.
"""

from __future__ import annotations

import hashlib
import json
import os
import sqlite3
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager
from copy import copy
from dataclasses import asdict, dataclass
from io import BytesIO
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from frhsic_core._atomic_files import claim, remove_leftovers, remove_unfinished, write_atomically
from frhsic_core.paper.runs.plan import Experiment, Job, Key, Stack, json_sha256, keys_of

TEXT = ("dataset", "variant", "sensitive", "task", "protocol", "method", "option", "recipe")
NUMBERS = ("lam", "split", "seed")
IDENTITY = (*TEXT, *NUMBERS)
_ORDER = ["dataset", "variant", "protocol", "method", "option", "recipe", "lam", "split", "seed"]
# Without rowid, the rows are in one tree, and none can be hidden by a damaged index.
_SCHEMA = (
    "CREATE TABLE IF NOT EXISTS jobs (key PRIMARY KEY, kind, meta, rows, sha256) WITHOUT ROWID"
)
_WAIT = 60.0  # seconds to wait for another process that writes
# Until version 3.1, pandas read 36 % of all doubles with an error in the last bit unless it was asked not to.
_EXACT: dict[str, Any] = (
    {"float_precision": "round_trip"}
    if tuple(map(int, pd.__version__.split(".")[:2])) < (3, 1)
    else {}
)


class StoreError(OSError):
    """The store cannot be read or written; the message says why and what to do."""


@dataclass(frozen=True)
class Part:
    """Hold the rows of one finished job, and its provenance: seconds, device, versions and data, for the json file."""

    job: Job
    rows: pd.DataFrame
    provenance: Mapping[str, Any]


def rows_of_models(
    job: Stack, labels: Mapping[str, str], metrics: Mapping[str, Any]
) -> pd.DataFrame:
    """Return one row for each model of a stack: the labels, its λ, split and seed, and its value of each metric."""
    columns: dict[str, Any] = {name: [labels[name]] * len(job.models) for name in TEXT}
    columns |= dict(zip(NUMBERS, zip(*job.models, strict=True), strict=True))
    return _typed(
        pd.DataFrame({**columns, **{name: np.asarray(values) for name, values in metrics.items()}})
    )


class _Finished(NamedTuple):
    """A finished job as it is stored: its key, ``"stack"`` or ``"unit"``, its record, its rows and their checksum."""

    key: str
    kind: str
    meta: str
    rows: str
    sha256: str


class _Exported(NamedTuple):
    """The verified files of a store: content of the json file, place of the table, and its bytes if it is there."""

    side: dict[str, Any]
    table: Path
    data: bytes | None

    def rows(self) -> pd.DataFrame | None:
        if self.data is None:
            return None
        if self.table.suffix == ".csv":
            return pd.read_csv(BytesIO(self.data), **_EXACT)
        return _from_parquet(self.data, self.table)


class ResultStore:
    """A folder with the results of one experiment.

    Parameters
    ----------
    root : path
        The folder; it is created when something is written.
    name : str
        Name of the table. The files are ``NAME.sqlite``, ``NAME.json``, and ``NAME.parquet`` or ``NAME.csv``.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     store = ResultStore(folder, "main")
    ...     len(store.done()), len(store.read())
    (0, 0)
    """

    def __init__(self, root: str | os.PathLike[str], name: str) -> None:
        self.root = Path(root)
        self.name = name
        self.sidecar = self.root / f"{name}.json"
        self.database = self.root / f"{name}.sqlite"
        self._locks = self.root / f"{name}.locks"

    @property
    def table(self) -> Path:
        """The file of the exported rows."""
        return self._load()[1].table

    # Reading ----------------------------------------------------------------------------------------------------------

    def done(self) -> set[Key]:
        """Return the keys of all rows in the store."""
        side = self.provenance()
        return set().union(*map(keys_of, [*side.get("stacks", []), *side.get("units", [])]))

    def provenance(self) -> dict[str, Any]:
        """Return the content of the json file, with the records of jobs that are not exported yet."""
        return self._provenance(*self._load())

    def read(self) -> pd.DataFrame:
        """Return all rows; a row that was computed twice is returned once, as it was computed last.

        Rows of models come in a fixed order. Rows of units come in the order of the table, and the column ``unit`` is
        the key of the unit.

        Raises
        ------
        StoreError
            If a file is damaged or lost.
        """
        finished, exported = self._load()
        return self._rows(finished, exported.table, exported.rows())

    # Writing ----------------------------------------------------------------------------------------------------------

    def require_writable(self) -> None:
        """Raise ``StoreError`` if a page of the SQLite file cannot be written, before anything is computed."""
        with self._written() as database:
            version = database.execute("PRAGMA user_version").fetchone()[0]
            database.execute(f"PRAGMA user_version = {(version + 1) % 1000}")

    def write(self, part: Part) -> None:
        """Add a finished job; after an error nothing of it is stored."""
        job = part.job
        meta: dict[str, Any] = {"record": {**job.record(), **part.provenance}}
        kind, rows = "unit", part.rows
        if isinstance(job, Stack):
            kind, meta["recipe"] = "stack", asdict(job.recipe)
        else:
            rows = rows.assign(unit=job.key)
        fields = (job.key, kind, json.dumps(meta), json.dumps(rows.to_dict("list")))
        with self._written() as database:
            database.execute("REPLACE INTO jobs VALUES (?, ?, ?, ?, ?)", (*fields, _seal(*fields)))

    def compact(self, plan: Experiment | None = None) -> None:
        """Merge the finished jobs into the table and the json file, then remove them from the SQLite file.

        After a crash at any moment the files fit each other, no job is lost, and the next call writes the same files.

        Parameters
        ----------
        plan : Experiment, optional
            Its order of units becomes the order of their rows. By default new units come last.
        """
        finished, exported = self._load()
        if finished:
            with _explained(self.root), self._written() as database:
                database.execute(
                    "BEGIN IMMEDIATE"
                )  # other runners wait: nobody adds a job or exports until the end
                finished, exported = self._load()
                if finished:
                    self._merge(finished, exported, plan)
                    database.execute("DELETE FROM jobs")
        remove_unfinished(self.root, f".{self.name}.*.*")
        remove_leftovers(self._locks)

    @contextmanager
    def claim(self, job: Job) -> Iterator[bool]:
        """Yield True to the one runner that may run ``job``; the claim ends with the process of that runner.

        It is a lock of the operating system, since a row of SQLite would outlive a killed process.
        """
        with ExitStack() as held:
            with _explained(self._locks):
                mine = held.enter_context(claim(self._locks / f"{job.key}.lock"))
            yield mine

    # Details ----------------------------------------------------------------------------------------------------------

    @contextmanager
    def _written(self) -> Iterator[sqlite3.Connection]:
        """Yield the SQLite file in a transaction, which is on the disk at the end of the block."""
        with _explained(self.database):
            self.root.mkdir(parents=True, exist_ok=True)
            with closing(sqlite3.connect(self.database, timeout=_WAIT)) as database, database:
                database.execute(_SCHEMA)
                yield database

    def _load(self) -> tuple[list[_Finished], _Exported]:
        """Return the finished jobs and the exported files; jobs first, since an export removes them last."""
        finished = self._finished()
        exported = read_exported(self.root, self.name)
        if not exported.side and any(job.kind == "unit" for job in finished):
            exported = exported._replace(table=exported.table.with_suffix(".csv"))
        return finished, exported

    def _finished(self) -> list[_Finished]:
        """Return the jobs that are not exported yet."""
        if not self.database.exists() or not self.database.stat().st_size:
            return []
        place = f"{self.database.absolute().as_uri()}?mode=rw"
        try:
            with closing(sqlite3.connect(place, uri=True, timeout=_WAIT)) as database:
                found = [
                    _Finished(*row) for row in database.execute("SELECT * FROM jobs ORDER BY key")
                ]
                checked = database.execute("PRAGMA integrity_check").fetchone()[0]
            whole = checked == "ok" and all(_seal(*job[:-1]) == job.sha256 for job in found)
        except sqlite3.Error as error:
            if getattr(error, "sqlite_errorname", "").startswith(
                ("SQLITE_BUSY", "SQLITE_CANTOPEN", "SQLITE_IOERR")
            ):
                raise StoreError(f"{self.database} cannot be read ({error}). Run again.") from error
            whole = False
        if not whole:
            raise StoreError(
                f"{self.database} is damaged. Delete it: frhsic run then runs its jobs again."
            )
        return found

    def _merge(
        self, finished: Sequence[_Finished], exported: _Exported, plan: Experiment | None
    ) -> None:
        rows = self._rows(finished, exported.table, exported.rows())
        before = self._provenance([], exported)
        after = self._provenance(finished, exported)
        if exported.table.suffix == ".parquet":
            data = _to_parquet(rows)
        else:
            order = {unit.key: i for i, unit in enumerate(plan.jobs)} if plan else {}
            place = {key: order.get(key, len(order)) for key in rows["unit"]}
            rows = rows.sort_values(
                "unit", key=lambda keys: keys.map(place), kind="stable", ignore_index=True
            )
            after["units"].sort(key=lambda unit: order.get(unit["key"], len(order)))
            data = rows.to_csv(index=False, lineterminator="\n").encode()
        # The old records accept the new table before it is written, so that no crash leaves a table that does not fit
        # its checksum. The new records come after the table, so that no crash leaves records without rows.
        known = [] if exported.data is None else [sha256(exported.data)]
        write_sidecar(self.sidecar, before, [*known, sha256(data)])
        write_atomically({exported.table: lambda file: file.write(data)})
        write_sidecar(self.sidecar, after, [sha256(data)])

    def _provenance(self, finished: Sequence[_Finished], exported: _Exported) -> dict[str, Any]:
        if exported.table.suffix == ".csv":
            listed, name = "units", "key"
            side: dict[str, Any] = {"study": self.name, "environments": [], listed: []}
        else:
            listed, name = "stacks", "job"
            side = {
                "experiment": self.name,
                "recipes": {},
                "environments": [],
                "data": {},
                listed: [],
            }
        side |= {key: copy(value) for key, value in exported.side.items()}
        records = {record[name]: record for record in side[listed]}
        for job in finished:
            meta = json.loads(job.meta)
            record = meta["record"]
            if record["environment"] not in side["environments"]:
                side["environments"].append(record["environment"])
            record["environment"] = side["environments"].index(record["environment"])
            if "recipe" in meta:
                side["recipes"][record["recipe"]] = meta["recipe"]
                task = meta["recipe"]["task"]
                side["data"]["/".join([task["dataset"], task["variant"]])] = record.pop("data")
            records[record[name]] = record
        side[listed] = list(records.values())
        return side

    def _rows(
        self, finished: Sequence[_Finished], table: Path, stored: pd.DataFrame | None
    ) -> pd.DataFrame:
        frames = [] if stored is None else [stored]
        new = [pd.DataFrame(json.loads(job.rows)) for job in finished]
        if not frames and not new:
            return _typed(pd.DataFrame({name: [] for name in IDENTITY}))
        if table.suffix == ".csv":
            replaced = {key for rows in new for key in rows["unit"]}
            frames = [frame[~frame["unit"].isin(replaced)] for frame in frames]
            return pd.concat([*frames, *new], ignore_index=True)
        rows = pd.concat([*frames, *map(_typed, new)])
        rows = rows.drop_duplicates(["recipe", *NUMBERS], keep="last").sort_values(
            _ORDER, ignore_index=True
        )
        metrics = [name for name in rows.columns if name not in IDENTITY]
        return _typed(rows[[*IDENTITY, *sorted(metrics)]])


# Exported files -------------------------------------------------------------------------------------------------------


def read_exported(root: Path, name: str) -> _Exported:
    """Read the json file and the table of a store and verify both. All readings of stored results come here.

    Raises
    ------
    StoreError
        If a checksum does not fit, or one of the two files is missing. The message names the file.
    """
    sidecar = root / f"{name}.json"
    while True:
        raw = _bytes_of(sidecar)
        side = {} if raw is None else _opened(raw, sidecar)
        holds_units = "study" in side if side else (root / f"{name}.csv").exists()
        table = root / f"{name}{'.csv' if holds_units else '.parquet'}"
        data = _bytes_of(table)
        accepted = side.pop("table_sha256", [])
        fits = (
            not (side.get("stacks") or side.get("units"))
            if data is None
            else sha256(data) in accepted
        )
        if fits:
            return _Exported(side, table, data)
        # Between the two readings another process may have exported the store. Then the json file is a new one.
        if _bytes_of(sidecar) == raw:
            break
    if data is None:
        raise StoreError(
            f"{table} is missing. Restore it, or delete {sidecar.name} to compute its rows again."
        )
    if raw is None:
        raise StoreError(
            f"{sidecar} is missing, so {table.name} cannot be verified. Restore it, or delete {table.name} to compute "
            "its rows again."
        )
    raise StoreError(
        f"{table} is damaged: its checksum is not the one in {sidecar.name}. Restore it, for example from the "
        "repository, or delete it to compute its rows again."
    )


def write_sidecar(path: Path, side: Mapping[str, Any], accepted: Iterable[str]) -> None:
    """Write a json file with its checksums; ``accepted`` are those that its table may have."""
    content = {**side, "table_sha256": list(accepted)}
    content["sha256"] = json_sha256(content)
    text = json.dumps(content, indent=1, ensure_ascii=False) + "\n"
    write_atomically({path: lambda file: file.write(text.encode())})


def sha256(data: bytes) -> str:
    """Return the SHA-256 of some bytes in hexadecimal digits."""
    return hashlib.sha256(data).hexdigest()


def _seal(*fields: str) -> str:
    return sha256(json.dumps(fields, default=repr).encode())


def _bytes_of(path: Path) -> bytes | None:
    try:
        return path.read_bytes()
    except FileNotFoundError:
        return None


def _opened(raw: bytes, path: Path) -> dict[str, Any]:
    """Return the verified content of a json file without the checksum of that content."""
    try:
        side = json.loads(raw.decode())
    except ValueError:  # not JSON, or not UTF-8
        side = None
    if not isinstance(side, dict) or side.pop("sha256", None) != json_sha256(side):
        raise StoreError(
            f"{path} is damaged or has no checksum. Restore it, for example from the repository, or delete it together "
            "with its table to compute all rows again."
        )
    return side


@contextmanager
def _explained(path: Path) -> Iterator[None]:
    """Turn an error of the operating system or of SQLite into a :class:`StoreError` that says what to do."""
    try:
        yield
    except StoreError:
        raise
    except (OSError, sqlite3.Error) as error:
        reason = getattr(error, "strerror", None) or error
        message = (
            f"Results cannot be written to {path} ({reason}): free some space or choose another folder with --store, "
            "then run again. Finished results are kept."
        )
        raise StoreError(getattr(error, "errno", 0), message) from error


def _typed(rows: pd.DataFrame) -> pd.DataFrame:
    """Give the columns of models their types: text, λ in double precision, integers, metrics in single precision."""
    kinds: dict[str, Any] = dict.fromkeys(TEXT, object) | {
        "lam": np.float64,
        "split": np.int32,
        "seed": np.int32,
    }
    kinds |= {name: np.float32 for name in rows.columns if name not in kinds}
    return rows.astype({name: kind for name, kind in kinds.items() if name in rows.columns})


def _to_parquet(rows: pd.DataFrame) -> bytes:
    import pyarrow.parquet

    # Without the metadata, which would leave library versions in the file, so that bytes would differ.
    table = pyarrow.Table.from_pandas(rows, preserve_index=False).replace_schema_metadata(None)
    # Metrics never repeat: their bytes, sorted by significance, compress better than a dictionary of them.
    metrics = [name for name in rows.columns if name not in IDENTITY]
    file = BytesIO()
    pyarrow.parquet.write_table(
        table,
        file,
        compression="zstd",
        use_dictionary=list(IDENTITY),
        use_byte_stream_split=metrics,
    )
    return file.getvalue()


def _from_parquet(data: bytes, path: Path) -> pd.DataFrame:
    try:
        import pyarrow.parquet
    except ImportError as error:  # missing, or made for another NumPy
        raise StoreError(
            f"Reading {path.name} needs pyarrow: pip install 'frhsic-core[paper]' ({error})."
        ) from None
    return pyarrow.parquet.read_table(pyarrow.BufferReader(data)).to_pandas()
