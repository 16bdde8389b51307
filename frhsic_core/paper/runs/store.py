"""Store the results of an experiment in one folder: whole jobs or nothing.

A finished job (a stack of models, or a unit of a study) is one *part*: a file that is written in full and then renamed.
A reader or a crash therefore finds the whole part or none. A part is named after its job, so finishing a job twice
replaces the part by itself. From time to time the parts are *compacted*:

- rows of models go to ``NAME.parquet`` (in a fixed order, float32 metrics), rows of units to ``NAME.csv``;
- the records go to ``NAME.json`` (recipes or settings, code, libraries, device, seconds).

All files have checksums (:mod:`~frhsic_core.paper.runs.result_files`). A damaged table or json file is an error. A
damaged part is set aside, and a lost table is computed again; both are reported. A store finds out from its files which
of the two tables it holds. The json file and the parts say what is done; only reading and compacting a table of models
needs pyarrow.
"""

from __future__ import annotations

import errno
import os
import tempfile
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from copy import copy
from dataclasses import asdict, dataclass, replace
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from frhsic_core.atomic_files import claim, lock_folder, remove_leftovers, remove_unfinished, write_atomically
from frhsic_core.paper.runs.plan import Job, Key, Study, Unit, keys_of
from frhsic_core.paper.runs.result_files import (
    DamagedFile,
    Results,
    StoredPart,
    StoreError,
    read_part,
    read_results,
    sha256,
    write_part,
    write_sidecar,
)

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
    say : callable, optional
        Receives one line when a damaged part is set aside or a table is lost. By default the line is a warning.

    Examples
    --------
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     store = ResultStore(folder, "main")
    ...     len(store.done()), len(store.read())
    (0, 0)
    """

    def __init__(
        self, root: str | os.PathLike[str], name: str, *, say: Callable[[str], object] = warnings.warn
    ) -> None:
        self.root = Path(root)
        self.name = name
        self.sidecar = self.root / f"{name}.json"
        self.parts = self.root / f"{name}.parts"
        self._say = say
        self._said: set[str] = set()

    @property
    def holds_units(self) -> bool:
        """Whether the rows are those of a study; an empty store counts as one of models."""
        return self.table.suffix == ".csv"

    @property
    def table(self) -> Path:
        """The file of the compacted rows."""
        return self._load()[1].table

    # Reading ----------------------------------------------------------------------------------------------------------

    def done(self) -> set[Key]:
        """Return the keys of all rows in the store. Rows of a lost table are not done."""
        side = self._provenance(*self._load())
        return set().union(*map(keys_of, [*side.get("stacks", []), *side.get("units", [])]))

    def provenance(self) -> dict[str, Any]:
        """Return the content of the json file, with the records of all parts merged into it."""
        return self._provenance(*self._load())

    def read(self) -> pd.DataFrame:
        """Return all rows; a row that was computed twice is returned once, as it was computed last.

        Rows of models come in a fixed order. Rows of units come in the order of the table, and the column ``unit`` is
        the key of the unit.

        Raises
        ------
        StoreError
            If a file is damaged, or if the table is lost.
        """
        parts, results = self._load()
        return self._rows(parts, results, results.rows())

    # Writing ----------------------------------------------------------------------------------------------------------

    def require_writable(self) -> None:
        """Raise ``StoreError`` if a file of 4 KiB cannot be written, before anything is computed."""
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
        with _explained(path):
            write_part(path, meta, rows)
        return path

    def compact(self, study: Study | None = None) -> Path:
        """Merge the parts into the table and the json file, then remove them.

        After a crash at any moment the files fit each other, the parts are still there, and the next call writes the
        same files.

        Parameters
        ----------
        study : Study, optional
            Its order of units becomes the order of the rows. By default new units come last.
        """
        with _explained(self.root), lock_folder(self.root):
            remove_unfinished(self.root, f".{self.name}.*.*")
            parts, results = self._load()
            if parts:
                self._merge(parts, results, study)
            remove_leftovers(self.parts)
        return results.table

    @contextmanager
    def claim(self, job: Job | Unit) -> Iterator[bool]:
        """Yield True to the one runner that may run ``job``; the claim ends with the process of that runner."""
        with ExitStack() as held:
            with _explained(self.parts):
                mine = held.enter_context(claim(self.parts / f"{job.key}.lock"))
            yield mine

    # Details ----------------------------------------------------------------------------------------------------------

    def _load(self) -> tuple[list[StoredPart], Results]:
        """Return the parts and the compacted files; parts first, since compacting removes them last."""
        parts = self._read_parts()
        results = read_results(self.root, self.name)
        if not results.side and any(part.path.suffix == ".unit" for part in parts):
            results = replace(results, table=results.table.with_suffix(".csv"))
        return parts, results

    def _read_parts(self) -> list[StoredPart]:
        while True:
            parts = []
            try:
                for path in sorted([*self.parts.glob("[!.]*.stack"), *self.parts.glob("[!.]*.unit")]):
                    try:
                        parts.append(read_part(path))
                    except DamagedFile as error:
                        self._set_aside(path, error)
            except FileNotFoundError:  # another process has compacted the store in the meantime
                continue
            return parts

    def _set_aside(self, path: Path, error: DamagedFile) -> None:
        aside = path.with_name(f"{path.name}.damaged")
        try:
            path.replace(aside)
        except OSError:  # a folder that can only be read
            done = "It is left out"
        else:
            done = f"It was renamed to {aside.name}"
        self._report(f"{error} {done}, and frhsic run computes its rows again.")

    def _report(self, line: str) -> None:
        if line not in self._said:
            self._said.add(line)
            self._say(line)

    def _merge(self, parts: Sequence[StoredPart], results: Results, study: Study | None) -> None:
        rows = self._rows(parts, results, None if results.lost else results.rows())
        before = self._provenance([], results)
        after = self._provenance(parts, results)
        if results.table.suffix == ".parquet":
            data = _parquet(rows)
        else:
            order = {unit.key: i for i, unit in enumerate(study.jobs())} if study else {}
            place = {key: order.get(key, len(order)) for key in rows["unit"]}
            rows = rows.sort_values("unit", key=lambda keys: keys.map(place), kind="stable", ignore_index=True)
            after["units"].sort(key=lambda unit: order.get(unit["key"], len(order)))
            data = rows.to_csv(index=False, lineterminator="\n").encode()
        # The old records accept the new table before it is written, so that no crash leaves a table that does not fit
        # its checksum. The new records come after the table, so that no crash leaves records without rows.
        known = [] if results.data is None else [sha256(results.data)]
        write_sidecar(self.sidecar, before, [*known, sha256(data)])
        write_atomically(results.table, lambda file: file.write(data))
        write_sidecar(self.sidecar, after, [sha256(data)])
        for part in parts:
            part.path.unlink(missing_ok=True)

    def _provenance(self, parts: Sequence[StoredPart], results: Results) -> dict[str, Any]:
        if results.table.suffix == ".csv":
            title, listed, name = "study", "units", "key"
            side: dict[str, Any] = {title: self.name, "environments": [], listed: []}
        else:
            title, listed, name = "experiment", "stacks", "job"
            side = {title: self.name, "recipes": {}, "environments": [], "data": {}, listed: []}
        if results.lost:
            self._report(f"{results.table} is missing. Its rows are computed again unless you restore it.")
        else:
            side |= {key: copy(value) for key, value in results.side.items()}
        records = {record[name]: record for record in side[listed]}
        for part in parts:
            meta = part.meta
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

    def _rows(self, parts: Sequence[StoredPart], results: Results, stored: pd.DataFrame | None) -> pd.DataFrame:
        frames = [] if stored is None else [stored]
        new = [part.rows() for part in parts]
        if not frames and not new:
            return _typed(pd.DataFrame({name: [] for name in IDENTITY}))
        if results.table.suffix == ".csv":
            replaced = {key for rows in new for key in rows["unit"]}
            if replaced:
                frames = [frame[~frame["unit"].isin(replaced)] for frame in frames]
            return pd.concat([*frames, *new], ignore_index=True)
        frames += map(_typed, new)
        rows = pd.concat(frames, ignore_index=True, sort=False)
        rows = rows.drop_duplicates(["recipe", *NUMBERS], keep="last").sort_values(_ORDER, ignore_index=True)
        metrics = [name for name in rows.columns if name not in IDENTITY]
        return _typed(rows[[*IDENTITY, *sorted(metrics)]])


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


def _typed(rows: pd.DataFrame) -> pd.DataFrame:
    """Give the columns of models their types: text, λ in double precision, integers, metrics in single precision."""
    kinds: dict[str, Any] = dict.fromkeys(TEXT, object) | {"lam": np.float64, "split": np.int32, "seed": np.int32}
    kinds |= {name: np.float32 for name in rows.columns if name not in kinds}
    return rows.astype({name: kind for name, kind in kinds.items() if name in rows.columns})


def _parquet(rows: pd.DataFrame) -> bytes:
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
    file = BytesIO()
    pyarrow.parquet.write_table(
        pyarrow.table(arrays),
        file,
        compression="zstd",
        compression_level=9,
        use_dictionary=list(IDENTITY),
        use_byte_stream_split=metrics,
    )
    return file.getvalue()
