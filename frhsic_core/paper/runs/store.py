"""The result store: one row for each trained model, whole stacks or nothing.

A finished stack is one *part*, an ``.npz`` file written beside its place and renamed, so that a reader or a crash sees
the whole part or none. The name of a part is that of its stack: finishing a stack twice replaces it by itself. Now and
then the parts are *compacted* into ``NAME.parquet`` (rows in a fixed order, float32 metrics) and ``NAME.json`` (where
they come from: recipes, code, libraries, device, seconds). What is done is read from the json file and the parts, which
takes no parquet reader.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import pandas as pd

from frhsic_core.paper.runs.plan import Job, Key, models_of
from frhsic_core.paper.runs.writing import (
    StoreError,
    atomically,
    claimed,
    explained,
    locked,
    require_writable,
    sweep_up,
)

__all__ = ["IDENTITY", "Part", "ResultStore", "StoreError"]

TEXT = ("dataset", "variant", "sensitive", "task", "protocol", "method", "option", "recipe")
NUMBERS = ("lam", "split", "seed")
IDENTITY = (*TEXT, *NUMBERS)
Value = TypeVar("Value")
_ORDER = ["dataset", "variant", "protocol", "method", "option", "recipe", "lam", "split", "seed"]


@dataclass(frozen=True)
class Part:
    """The rows of one finished stack.

    Parameters
    ----------
    job : Job
        The stack.
    labels : mapping
        The text columns that are the same for all rows.
    metrics : mapping
        A float array for each metric, one value for each model in the order of ``job.models``.
    provenance : mapping
        Seconds, device, versions, data; never enters the table.
    """

    job: Job
    labels: Mapping[str, str]
    metrics: Mapping[str, np.ndarray]
    provenance: Mapping[str, Any]

    def frame(self) -> pd.DataFrame:
        """Return the rows as a table."""
        models = self.job.models
        columns: dict[str, Any] = {name: [self.labels[name]] * len(models) for name in TEXT}
        for i, name in enumerate(NUMBERS):
            columns[name] = [model[i] for model in models]
        return _typed(pd.DataFrame({**columns, **{k: np.asarray(v, np.float32) for k, v in self.metrics.items()}}))

    def record(self) -> dict[str, Any]:
        """Return the line of the json file."""
        job = self.job
        return {
            "job": job.key,
            "recipe": job.recipe.key,
            "lams": list(job.lams),
            "splits": list(job.splits),
            "repeats": list(job.repeats),
            **self.provenance,
        }


class ResultStore:
    """A folder with the results of one experiment.

    Parameters
    ----------
    root : path
        The folder; made when first written to.
    name : str
        The experiment: files are ``NAME.parquet``, ``NAME.json`` and ``NAME.parts/``.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     store = ResultStore(folder, "main")
    ...     len(store.done()), len(store.read())
    (0, 0)
    """

    def __init__(self, root: str | os.PathLike[str], name: str) -> None:
        self.root, self.name = Path(root), name
        self.table = self.root / f"{name}.parquet"
        self.sidecar = self.root / f"{name}.json"
        self.parts = self.root / f"{name}.parts"

    # What is there ----------------------------------------------------------------------------------------------------

    def records(self) -> list[dict[str, Any]]:
        """Return one record for each finished stack, compacted or not."""
        parts = self._each_part(lambda path: _read_meta(path)["record"])
        return list({record["job"]: record for record in [*self._side().get("stacks", []), *parts]}.values())

    def done(self) -> set[Key]:
        """Return the keys of all rows in the store."""
        keys: set[Key] = set()
        for record in self.records():
            models = models_of(record["lams"], record["splits"], record["repeats"])
            keys.update((record["recipe"], *model) for model in models)
        return keys

    def provenance(self) -> dict[str, Any]:
        """Return recipes, environments, data and stacks as the json file holds (or will hold) them."""
        metas = self._each_part(_read_meta)
        side = self._side()
        merged: dict[str, Any] = {
            "experiment": self.name,
            "recipes": dict(side.get("recipes", {})),
            "environments": list(side.get("environments", [])),
            "data": dict(side.get("data", {})),
            "stacks": list(side.get("stacks", [])),
        }
        known = {record["job"] for record in merged["stacks"]}
        for meta in metas:
            record = dict(meta["record"])
            environment, data = record.pop("environment", None), record.pop("data", None)
            if environment is not None:
                if environment not in merged["environments"]:
                    merged["environments"].append(environment)
                record["environment"] = merged["environments"].index(environment)
            merged["recipes"][record["recipe"]] = meta["recipe"]
            if data is not None:
                task = meta["recipe"]["task"]
                merged["data"]["/".join([task["dataset"], task["variant"]])] = data
            if record["job"] not in known:
                known.add(record["job"])
                merged["stacks"].append(record)
        return merged

    def read(self, *, parts_only: bool = False) -> pd.DataFrame:
        """Return all rows in the store's order; a row trained twice counts once.

        ``parts_only`` leaves out what is compacted, and so needs no parquet reader.
        """
        parts = self._each_part(_read_rows)
        frames = [*([self._read_table()] if self.table.exists() and not parts_only else []), *parts]
        if not frames:
            return _typed(pd.DataFrame({name: [] for name in IDENTITY}))
        rows = pd.concat(frames, ignore_index=True, sort=False)
        rows = rows.drop_duplicates(["recipe", *NUMBERS], keep="last").sort_values(_ORDER, ignore_index=True)
        metrics = [name for name in rows.columns if name not in IDENTITY]
        return _typed(rows[[*IDENTITY, *sorted(metrics)]])

    # Writing ----------------------------------------------------------------------------------------------------------

    def require_writable(self) -> None:
        """Raise ``StoreError`` now rather than after an hour of training."""
        require_writable(self.parts)

    def write(self, part: Part) -> Path:
        """Add a finished stack; afterwards the part is there whole, or (on an error) not at all."""
        path = self.parts / f"{part.job.key}.npz"
        meta = {"record": part.record(), "recipe": asdict(part.job.recipe), "labels": dict(part.labels)}
        models = part.job.models
        columns = {name: np.array([model[i] for model in models]) for i, name in enumerate(NUMBERS)}
        columns |= {name: np.asarray(values, dtype=np.float32) for name, values in part.metrics.items()}
        for name, values in columns.items():
            if len(values) != len(models):
                raise ValueError(f"{name} has {len(values)} values for {len(models)} models: one for each is needed.")

        def save(file: Any) -> None:
            np.savez_compressed(file, **{"meta": np.array(json.dumps(meta)), **columns})  # type: ignore[arg-type]

        with explained(path):
            self.parts.mkdir(parents=True, exist_ok=True)
            atomically(path, save)
        return path

    def compact(self) -> Path:
        """Merge the parts into the parquet and json files, then remove them.

        A crash in between leaves the parts; the next call then comes to the same files.
        """
        with explained(self.table), locked(self.root):
            files = self._part_files()
            if not files and self.table.exists():
                return self.table
            rows, provenance = self.read(), self.provenance()
            atomically(self.table, lambda file: _write_parquet(rows, file))
            text = json.dumps(provenance, indent=1, ensure_ascii=False) + "\n"
            atomically(self.sidecar, lambda file: file.write(text.encode()))
            for path in files:
                path.unlink(missing_ok=True)
            sweep_up(self.parts)
        return self.table

    @contextmanager
    def claim(self, job: Job) -> Iterator[bool]:
        """Give True to the one runner that may train ``job``; the claim dies with its process, however that ends."""
        with claimed(self.parts / f"{job.key}.lock") as mine:
            yield mine

    # Details ----------------------------------------------------------------------------------------------------------

    def _part_files(self) -> list[Path]:
        return sorted(path for path in self.parts.glob("*.npz") if not path.name.startswith("."))

    def _side(self) -> dict[str, Any]:
        if not self.sidecar.exists():
            return {}
        try:
            return json.loads(self.sidecar.read_text(encoding="utf-8"))
        except ValueError as error:
            raise StoreError(
                f"{self.sidecar} is not readable ({error}): restore it, or delete it to start anew."
            ) from None

    def _read_table(self) -> pd.DataFrame:
        try:
            import pyarrow.parquet
        except ImportError:
            raise StoreError(f"{self.table} is read with pyarrow: pip install 'frhsic-core[experiments]'.") from None
        try:
            return pyarrow.parquet.read_table(self.table).to_pandas()
        except (OSError, pyarrow.ArrowException) as error:
            said = " ".join(str(error).split())
            raise StoreError(f"{self.table} is not readable ({said}): restore it from the repository.") from None

    def _each_part(self, read: Callable[[Path], Value]) -> list[Value]:
        """Read every part; the table is read after them, since compacting writes it before it removes parts."""
        while True:
            try:
                return [read(path) for path in self._part_files()]
            except FileNotFoundError:  # compacted by another process in between
                continue


def _read_meta(path: Path) -> dict[str, Any]:
    with np.load(path, allow_pickle=False) as file:
        return json.loads(str(file["meta"]))


def _read_rows(path: Path) -> pd.DataFrame:
    with np.load(path, allow_pickle=False) as file:
        columns = {name: file[name] for name in file.files if name != "meta"}
        labels = json.loads(str(file["meta"]))["labels"]
    rows = len(columns["lam"])
    return _typed(pd.DataFrame({**{name: [labels[name]] * rows for name in TEXT}, **columns}))


def _typed(rows: pd.DataFrame) -> pd.DataFrame:
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
