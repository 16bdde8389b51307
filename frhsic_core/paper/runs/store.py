"""Store the results of an experiment in one folder: whole jobs or nothing.

A finished job (a stack of models, or a unit of a study) is one *part*: a file of two lines, its record and its rows,
that is written in full and then renamed. A reader or a crash therefore finds the whole part or none. A part is named
after its job, so finishing a job twice replaces the part by itself. From time to time the parts are *compacted*:

- rows of models go to ``NAME.parquet`` (in a fixed order, float32 metrics), rows of units to ``NAME.csv``;
- the records go to ``NAME.json`` (recipes or settings, code, libraries, device, seconds).

A store finds out from its files which of the two tables it holds. The json file and the parts say what is done; only
reading and compacting a table of models needs pyarrow.
"""

from __future__ import annotations

import errno
import json
import os
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import pandas as pd

from frhsic_core.atomic_files import claim, lock_folder, remove_leftovers, write_atomically
from frhsic_core.paper.runs.plan import Job, Key, Study, Unit, keys_of

TEXT = ("dataset", "variant", "sensitive", "task", "protocol", "method", "option", "recipe")
NUMBERS = ("lam", "split", "seed")
IDENTITY = (*TEXT, *NUMBERS)
_ORDER = ["dataset", "variant", "protocol", "method", "option", "recipe", "lam", "split", "seed"]
_ADVICE = {
    errno.ENOSPC: "the disk is full. Free some space",
    errno.EDQUOT: "the disk quota is used up. Free some space",
    errno.EROFS: "the folder is read-only. Choose another with --store",
    errno.EACCES: "writing there is not allowed. Choose another folder with --store",
    errno.EPERM: "writing there is not allowed. Choose another folder with --store",
}
Value = TypeVar("Value")


class StoreError(OSError):
    """The store cannot be read or written; the message says why and what to do."""


@dataclass(frozen=True)
class Part:
    """Hold the rows of one finished job.

    Parameters
    ----------
    job : Job or Unit
        What was run.
    rows : DataFrame
        The rows: those of :func:`rows_of_models` for a stack, any columns for a unit.
    provenance : mapping
        Seconds, device, versions and data. They go to the json file, not to the table.
    """

    job: Job | Unit
    rows: pd.DataFrame
    provenance: Mapping[str, Any]

    @property
    def metrics(self) -> dict[str, np.ndarray]:
        """The measured columns, without those that identify a model."""
        return {name: self.rows[name].to_numpy() for name in self.rows.columns if name not in IDENTITY}


def rows_of_models(job: Job, labels: Mapping[str, str], metrics: Mapping[str, Any]) -> pd.DataFrame:
    """Return one row for each model of a stack.

    Parameters
    ----------
    job : Job
        The stack.
    labels : mapping
        The text columns; they are the same for all rows.
    metrics : mapping
        For each metric one value per model, in the order of ``job.models``.
    """
    models = job.models
    for name, values in metrics.items():
        if len(values) != len(models):
            raise ValueError(
                f"{name} has {len(values)} values for {len(models)} models: one value per model is needed."
            )
    columns: dict[str, Any] = {name: [labels[name]] * len(models) for name in TEXT}
    columns |= {name: [model[i] for model in models] for i, name in enumerate(NUMBERS)}
    return _typed(pd.DataFrame({**columns, **{name: np.asarray(values) for name, values in metrics.items()}}))


class ResultStore:
    """A folder with the results of one experiment.

    Parameters
    ----------
    root : path
        The folder; it is created when something is written.
    name : str
        Name of the table. The files are ``NAME.parquet`` or ``NAME.csv``, ``NAME.json`` and ``NAME.parts/``.

    Examples
    --------
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     store = ResultStore(folder, "main")
    ...     len(store.done()), len(store.read())
    (0, 0)
    """

    def __init__(self, root: str | os.PathLike[str], name: str) -> None:
        self.root = Path(root)
        self.name = name
        self.sidecar = self.root / f"{name}.json"
        self.parts = self.root / f"{name}.parts"

    @property
    def holds_units(self) -> bool:
        """Whether the rows are those of a study; an empty store counts as one of models."""
        # Parts first: compacting writes the table before it removes them.
        return any(self.parts.glob("[!.]*.unit")) or (self.root / f"{self.name}.csv").exists()

    @property
    def table(self) -> Path:
        """The file of the compacted rows."""
        return self.root / f"{self.name}{'.csv' if self.holds_units else '.parquet'}"

    # Reading ----------------------------------------------------------------------------------------------------------

    def done(self) -> set[Key]:
        """Return the keys of all rows in the store."""
        # Parts first, for the reason above.
        records = [meta["record"] for meta in self._each_part(_read_meta)]
        side = self._read_sidecar()
        return set().union(*map(keys_of, [*side.get("stacks", []), *side.get("units", []), *records]))

    def provenance(self) -> dict[str, Any]:
        """Return the content of the json file, with the records of all parts merged into it."""
        metas = self._each_part(_read_meta)
        if self.holds_units:
            title, listed, name = "study", "units", "key"
            side: dict[str, Any] = {title: self.name, "environments": [], listed: []}
        else:
            title, listed, name = "experiment", "stacks", "job"
            side = {title: self.name, "recipes": {}, "environments": [], "data": {}, listed: []}
        side |= self._read_sidecar()
        records = {record[name]: record for record in side[listed]}
        for meta in metas:
            record = dict(meta["record"])
            if "environment" in record:
                if record["environment"] not in side["environments"]:
                    side["environments"].append(record["environment"])
                record["environment"] = side["environments"].index(record["environment"])
            if "recipe" in meta:
                side["recipes"][record["recipe"]] = meta["recipe"]
                task = meta["recipe"]["task"]
                if "data" in record:
                    side["data"]["/".join([task["dataset"], task["variant"]])] = record.pop("data")
            records[record[name]] = record
        side[listed] = list(records.values())
        return side

    def read(self) -> pd.DataFrame:
        """Return all rows; a row that was computed twice is returned once, as it was computed last.

        Rows of models come in a fixed order. Rows of units come in the order of the table, and the column ``unit`` is
        the key of the unit.
        """
        parts = self._each_part(_read_rows)
        if self.holds_units:
            frames = parts
            if self.table.exists():
                stored = pd.read_csv(self.table)
                replaced = {key for part in parts for key in part["unit"]}
                frames = [stored[~stored["unit"].isin(replaced)] if replaced else stored, *parts]
            return pd.concat(frames, ignore_index=True)
        frames = [*([self._read_parquet()] if self.table.exists() else []), *map(_typed, parts)]
        if not frames:
            return _typed(pd.DataFrame({name: [] for name in IDENTITY}))
        rows = pd.concat(frames, ignore_index=True, sort=False)
        rows = rows.drop_duplicates(["recipe", *NUMBERS], keep="last").sort_values(_ORDER, ignore_index=True)
        metrics = [name for name in rows.columns if name not in IDENTITY]
        return _typed(rows[[*IDENTITY, *sorted(metrics)]])

    # Writing ----------------------------------------------------------------------------------------------------------

    def require_writable(self) -> None:
        """Raise :class:`StoreError` if a file of 4 KiB cannot be written, before anything is computed."""
        with _explained(self.parts):
            self.parts.mkdir(parents=True, exist_ok=True)
            handle, name = tempfile.mkstemp(prefix=".probe.", dir=self.parts)
            try:
                os.write(handle, b"\0" * 4096)
            finally:
                os.close(handle)
                os.unlink(name)

    def write(self, part: Part) -> Path:
        """Add a finished job; after an error nothing of it is stored."""
        job = part.job
        meta: dict[str, Any] = {"record": {**job.record(), **part.provenance}}
        rows = part.rows
        if isinstance(job, Job):
            meta["recipe"] = asdict(job.recipe)
        else:
            rows = rows.assign(unit=job.key)
        path = self.parts / f"{job.key}.{'stack' if isinstance(job, Job) else 'unit'}"
        lines = f"{json.dumps(meta)}\n{json.dumps(rows.to_dict('list'))}\n"
        with _explained(path):
            write_atomically(path, lambda file: file.write(lines.encode()))
        return path

    def compact(self, study: Study | None = None) -> Path:
        """Merge the parts into the table and the json file, then remove them.

        After a crash in between the parts are still there, and the next call writes the same files.

        Parameters
        ----------
        study : Study, optional
            Its order of units becomes the order of the rows. By default new units come last.
        """
        with _explained(self.root), lock_folder(self.root):
            files = self._part_files()
            table = self.table
            if not files:
                return table
            rows = self.read()
            side = self.provenance()
            if not self.holds_units:
                write_atomically(table, lambda file: _write_parquet(rows, file))
            else:
                order = {unit.key: i for i, unit in enumerate(study.jobs())} if study else {}
                place = {key: order.get(key, len(order)) for key in rows["unit"]}
                rows = rows.sort_values("unit", key=lambda keys: keys.map(place), kind="stable", ignore_index=True)
                side["units"].sort(key=lambda unit: order.get(unit["key"], len(order)))
                write_atomically(table, lambda file: file.write(rows.to_csv(index=False).encode()))
            text = json.dumps(side, indent=1, ensure_ascii=False) + "\n"
            write_atomically(self.sidecar, lambda file: file.write(text.encode()))
            for path in files:
                path.unlink(missing_ok=True)
            remove_leftovers(self.parts)
        return table

    @contextmanager
    def claim(self, job: Job | Unit) -> Iterator[bool]:
        """Yield True to the one runner that may run ``job``; the claim ends with the process of that runner."""
        with _explained(self.parts):
            self.parts.mkdir(parents=True, exist_ok=True)
        with claim(self.parts / f"{job.key}.lock") as mine:
            yield mine

    # Details ----------------------------------------------------------------------------------------------------------

    def _part_files(self) -> list[Path]:
        return sorted([*self.parts.glob("[!.]*.stack"), *self.parts.glob("[!.]*.unit")])

    def _each_part(self, read: Callable[[Path], Value]) -> list[Value]:
        """Apply ``read`` to every part. Read the table afterwards: compacting writes it before it removes parts."""
        while True:
            try:
                return [read(path) for path in self._part_files()]
            except FileNotFoundError:  # another process has compacted the store in the meantime
                continue

    def _read_sidecar(self) -> dict[str, Any]:
        if not self.sidecar.exists():
            return {}
        try:
            return json.loads(self.sidecar.read_text(encoding="utf-8"))
        except ValueError as error:
            raise StoreError(
                f"{self.sidecar} is not readable ({error}). Restore it, or delete it to start again."
            ) from None

    def _read_parquet(self) -> pd.DataFrame:
        try:
            import pyarrow.parquet
        except ImportError:
            raise StoreError(f"Reading {self.table} needs pyarrow: pip install 'frhsic-core[experiments]'.") from None
        try:
            return pyarrow.parquet.read_table(self.table).to_pandas()
        except (OSError, pyarrow.ArrowException) as error:
            reason = " ".join(str(error).split())
            raise StoreError(f"{self.table} is not readable ({reason}). Restore it from the repository.") from None


@contextmanager
def _explained(path: Path) -> Iterator[None]:
    """Turn an error of the operating system into a :class:`StoreError` that says what to do."""
    try:
        yield
    except StoreError:
        raise
    except OSError as error:
        advice = _ADVICE.get(error.errno or 0, f"{error.strerror or error}. Fix this")
        message = f"Results cannot be written to {path}: {advice} and run again. Finished results are kept."
        raise StoreError(error.errno, message) from error


def _read_meta(path: Path) -> dict[str, Any]:
    with open(path, encoding="utf-8") as file:
        return json.loads(file.readline())


def _read_rows(path: Path) -> pd.DataFrame:
    with open(path, encoding="utf-8") as file:
        file.readline()
        return pd.DataFrame(json.loads(file.readline()))


def _typed(rows: pd.DataFrame) -> pd.DataFrame:
    """Give the columns of models their types: text, λ in double precision, integers, metrics in single precision."""
    kinds: dict[str, Any] = dict.fromkeys(TEXT, object) | {"lam": np.float64, "split": np.int32, "seed": np.int32}
    kinds |= {name: np.float32 for name in rows.columns if name not in kinds}
    return rows.astype({name: kind for name, kind in kinds.items() if name in rows.columns})


def _write_parquet(rows: pd.DataFrame, file: Any) -> None:
    import pyarrow
    import pyarrow.parquet

    # From arrays, not from the frame: a frame would leave its library versions in the file, and bytes would differ.
    arrays = {
        name: pyarrow.array(rows[name].to_numpy(), type=pyarrow.string())
        if name in TEXT
        else pyarrow.array(rows[name].to_numpy())
        for name in rows.columns
    }
    # Metrics never repeat: their bytes, sorted by significance, compress better than a dictionary of them.
    metrics = [name for name in rows.columns if name not in IDENTITY]
    pyarrow.parquet.write_table(
        pyarrow.table(arrays),
        file,
        compression="zstd",
        compression_level=9,
        use_dictionary=list(IDENTITY),
        use_byte_stream_split=metrics,
    )
