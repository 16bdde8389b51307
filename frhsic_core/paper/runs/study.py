"""A study: a table measured unit by unit (timings, rates, eigenvalues) where no sweep of models is trained.

A unit is a few settings; measuring it gives rows. Finished units are parts, written whole or not at all; compacted they
are ``NAME.csv`` (the rows, in the order of the units) and ``NAME.json`` (where they come from). A killed run goes on
where it stopped, as with :mod:`frhsic_core.paper.runs.sweep`.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pandas as pd

from frhsic_core.paper.experiments import module_of
from frhsic_core.paper.runs.arriving import bring
from frhsic_core.paper.runs.devices import resolved_device
from frhsic_core.paper.runs.plan import Settings, digest
from frhsic_core.paper.runs.provenance import environment
from frhsic_core.paper.runs.sweep import Report, in_one_line
from frhsic_core.paper.runs.writing import (
    StoreError,
    atomically,
    claimed,
    explained,
    locked,
    require_writable,
    sweep_up,
)

__all__ = ["Study", "StudyStore", "run_study", "units_of"]


def units_of(**values: Any) -> tuple[Settings, ...]:
    """Return the settings of every combination, the last name running fastest.

    Examples
    --------
    >>> units_of(n=(50, 100), method="hsic")
    ((('n', 50), ('method', 'hsic')), (('n', 100), ('method', 'hsic')))
    """
    units: list[Settings] = [()]
    for name, value in values.items():
        choices = value if isinstance(value, tuple) else (value,)
        units = [(*unit, (name, choice)) for unit in units for choice in choices]
    return tuple(units)


@dataclass(frozen=True)
class Study:
    """Units to measure.

    Parameters
    ----------
    name : str
        Name of its table in the store.
    module : str
        A module of the catalogue whose ``measure_unit(unit, device)`` takes a unit as a dict and returns its rows, a
        list of dicts. The columns of the unit are added to each row.
    units : tuple
        Settings of each unit, as :func:`units_of` makes them.
    version : int
        Raised when the same settings would mean another measurement.
    """

    name: str
    module: str
    units: tuple[Settings, ...]
    version: int = 1

    def key(self, unit: Settings) -> str:
        """Twelve hexadecimal digits that stand for a unit."""
        return digest([self.module, self.version, unit])

    def keys(self) -> set[str]:
        """Return the keys of every unit."""
        return {self.key(unit) for unit in self.units}

    def missing(self, done: set[str]) -> list[Settings]:
        """Return the units not yet ``done``."""
        return [unit for unit in self.units if self.key(unit) not in done]


class StudyStore:
    """A folder with the rows of one study: ``NAME.csv``, ``NAME.json`` and ``NAME.parts/``."""

    def __init__(self, root: str | os.PathLike[str], name: str) -> None:
        self.root, self.name = Path(root), name
        self.table = self.root / f"{name}.csv"
        self.sidecar = self.root / f"{name}.json"
        self.parts = self.root / f"{name}.parts"

    def done(self) -> set[str]:
        """Return the keys of the finished units."""
        return {unit["key"] for unit in self.provenance()["units"]}

    def read(self) -> pd.DataFrame:
        """Return all rows, ``unit`` being the key of the unit; empty when nothing was measured."""
        parts = self._parts()
        new = {part["key"] for part in parts}
        frames = [pd.DataFrame(part["rows"]).assign(unit=part["key"]) for part in parts]
        if self.table.exists():
            old = pd.read_csv(self.table)
            frames.insert(0, old[~old["unit"].isin(new)])
        return pd.concat(frames, ignore_index=True) if frames else pd.DataFrame()

    def provenance(self) -> dict[str, Any]:
        """Return environments and, for each unit, settings and seconds."""
        side: dict[str, Any] = {"study": self.name, "environments": [], "units": []}
        if self.sidecar.exists():
            try:
                side = json.loads(self.sidecar.read_text(encoding="utf-8"))
            except ValueError as error:
                raise StoreError(
                    f"{self.sidecar} is not readable ({error}): restore it, or delete it to start anew."
                ) from None
        units = {unit["key"]: unit for unit in side["units"]}
        for part in self._parts():
            if part["environment"] not in side["environments"]:
                side["environments"].append(part["environment"])
            place = side["environments"].index(part["environment"])
            units[part["key"]] = {**part, "environment": place, "rows": len(part["rows"])}
        return {**side, "units": list(units.values())}

    def _parts(self) -> list[dict[str, Any]]:
        return [json.loads(path.read_text(encoding="utf-8")) for path in sorted(self.parts.glob("*.json"))]

    def require_writable(self) -> None:
        """Raise ``StoreError`` where nothing can be written."""
        require_writable(self.parts)

    def write(self, record: Mapping[str, Any]) -> None:
        """Add a finished unit, whole or not at all."""
        path = self.parts / f"{record['key']}.json"
        with explained(path):
            self.parts.mkdir(parents=True, exist_ok=True)
            atomically(path, lambda file: file.write(json.dumps(record).encode()))

    def compact(self, study: Study | None = None) -> Path:
        """Merge the parts into the csv and json files, in the order of the units of ``study``; then remove them."""
        with explained(self.table), locked(self.root):
            files = sorted(self.parts.glob("*.json"))
            if not files and self.table.exists():
                return self.table
            order = {study.key(unit): i for i, unit in enumerate(study.units)} if study else {}
            place = lambda key: order.get(key, len(order))  # noqa: E731
            rows, side = self.read(), self.provenance()
            rows = rows.sort_values("unit", key=lambda keys: keys.map(place), kind="stable", ignore_index=True)
            side["units"].sort(key=lambda unit: place(unit["key"]))
            atomically(self.table, lambda file: file.write(rows.to_csv(index=False).encode()))
            atomically(self.sidecar, lambda file: file.write((json.dumps(side, indent=1) + "\n").encode()))
            for path in files:
                path.unlink(missing_ok=True)
            sweep_up(self.parts)
        return self.table

    @contextmanager
    def claim(self, key: str) -> Iterator[bool]:
        """Give True to the one runner that may measure the unit ``key``."""
        with claimed(self.parts / f"{key}.lock") as mine:
            yield mine


def run_study(
    study: Study,
    store: StudyStore,
    *,
    device: str = "auto",
    minutes: float | None = None,
    say: Callable[[str], None] | None = None,
) -> Report:
    """Measure what ``store`` lacks of ``study``; start no unit after ``minutes``. See ``run_experiment``."""
    say = say or (lambda line: None)
    measure = module_of(study.module).measure_unit
    todo, report, begin = study.missing(store.done()), Report(), time.monotonic()
    say(f"{study.name}: {len(todo)} units to measure")
    if not todo:
        return report
    store.require_writable()
    device = resolved_device(device)
    named_data = [dict(unit) for unit in todo if dict(unit).keys() >= {"dataset", "variant"}]
    bring(((unit["dataset"], unit["variant"]) for unit in named_data), say=say)
    for unit in todo:
        if minutes is not None and time.monotonic() - begin > 60.0 * minutes:
            report.stopped = "time limit"
            break
        named = ", ".join(f"{name} {value}" for name, value in unit)
        key = study.key(unit)
        with store.claim(key) as mine:
            if not mine or key in store.done():
                say(f"{named}: another runner has it")
                continue
            start = time.perf_counter()
            try:
                rows = [{**dict(unit), **row} for row in measure(dict(unit), device)]
            except KeyboardInterrupt:
                report.interrupt("unit")
                break
            except StoreError:
                raise
            except Exception as error:  # one unit whose data is not here must not cost the others
                report.failed.append(f"{named}: {in_one_line(error)}")
                say(f"failed: {report.failed[-1]}")
                continue
            seconds = time.perf_counter() - start
            store.write(
                {
                    "key": key,
                    "unit": dict(unit),
                    "finished": datetime.now(UTC).isoformat(timespec="seconds"),
                    "seconds": round(seconds, 3),
                    "environment": environment(device),
                    "rows": rows,
                }
            )
        report.stacks, report.models = report.stacks + 1, report.models + len(rows)
        report.seconds_training += seconds
        report.slowest.append((seconds, named))
        say(f"[{report.stacks}/{len(todo)}] {named}: {len(rows)} rows, {seconds:.1f} s")
    report.left = len(study.missing(store.done()))
    return report
