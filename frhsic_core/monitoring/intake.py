"""Read files into a monitor, so that each row counts once and in one period."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pandas as pd

from frhsic_core.inputs.columns import read_column
from frhsic_core.inputs.files import Source, read_table, source
from frhsic_core.monitoring.monitor import Monitor, row_hashes
from frhsic_core.monitoring.periods import period_names

ENDINGS = (".csv", ".csv.gz", ".tsv", ".txt", ".parquet", ".pq")


@dataclass
class Intake:
    """What happened to the rows of some files.

    Attributes
    ----------
    counted, known, missing, late : int
        Rows that were counted; that had been counted before; without a score or an attribute; and
        counted, but of a period that was over.
    skipped : list of str
        Files that had been counted before as they are.
    """

    counted: int = 0
    known: int = 0
    missing: int = 0
    late: int = 0
    skipped: list[str] = field(default_factory=list)

    def sentences(self) -> list[str]:
        """Return what a reader of the numbers must know."""
        said = []
        if self.skipped:
            shown = ", ".join(self.skipped[:3]) + ", …" * (len(self.skipped) > 3)
            said.append(
                f"{len(self.skipped)} files were counted before, and are not counted again: {shown}."
            )
        if self.known:
            said.append(f"{self.known:,} rows had been counted before, and are not counted again.")
        if self.missing:
            said.append(f"{self.missing:,} rows have no score or no attribute, and do not count.")
        if self.late:
            said.append(
                f"{self.late:,} rows came late, after their period was over, and count in the "
                "period in which they came."
            )
        return said


def files_of(path: Path) -> list[Path]:
    """Return the tables of a folder in the order of their names, or the file itself."""
    if not path.is_dir():
        return [path]
    found = [file for file in path.iterdir() if file.name.lower().endswith(ENDINGS)]
    found = sorted(file for file in found if not file.name.startswith("."))
    if not found:
        raise ValueError(f"{path} has no table: put CSV or parquet files there.")
    return found


def take_in(
    monitor: Monitor, paths: list[Path], *, date: str | None, disjoint: bool = False
) -> Intake:
    """Count the new rows of all files; see :class:`Intake`.

    A row is recognized by the column ``row_id`` of the settings. Without one it is recognized by its
    score, attribute and date, which works if these differ between any two rows of a file. If they do
    not, and files seem to overlap, the error asks for a column. ``disjoint`` is the promise that no
    row is in two files.
    """
    done = Intake()
    parts = []
    for path in paths:
        with source(path) as found:
            if any(found.sha256 == file["sha256"] for file in monitor.files):
                done.skipped.append(found.name)
                continue
            parts.append(_new_part(monitor, found, done, date=date, disjoint=disjoint))
    rows = pd.concat(parts, ignore_index=True) if parts else pd.DataFrame({"period": []})
    for period in _in_order(rows["period"], by_name=date is not None):
        part = rows[rows["period"] == period]
        now = period
        if monitor.batches and date is not None and period < monitor.batches[-1].period:
            now = monitor.batches[-1].period
            done.late += len(part)
        monitor.add(part["score"].to_list(), part["attribute"].to_list(), period=now)
        done.counted += len(part)
    return done


def _in_order(periods: pd.Series, *, by_name: bool) -> list[str]:
    found = list(dict.fromkeys(periods))
    return sorted(found) if by_name else found


def _new_part(
    monitor: Monitor, found: Source, done: Intake, *, date: str | None, disjoint: bool
) -> pd.DataFrame:
    """Return the score, attribute and period of the rows of one file that were not counted before."""
    settings = monitor.settings
    columns = [settings.score, settings.sensitive]
    columns += [name for name in (date, settings.row_id) if name]
    table = read_table(found.path, columns, max_rows=2**31, name=found.name).data
    kept = _complete(table[settings.score]) & _complete(table[settings.sensitive])
    done.missing += int((~kept).sum())
    table = table[kept]
    if settings.row_id:
        keys = [table[settings.row_id]]
        if keys[0].isna().any():
            raise ValueError(f"{settings.row_id} is missing in some rows: each row needs a name.")
    else:
        keys = [table[name] for name in columns]
    hashes = row_hashes(keys)
    fresh = _fresh(monitor, hashes, found.name, disjoint=disjoint)
    done.known += int((~fresh).sum())
    monitor.remember(hashes)
    monitor.files.append(
        {"name": found.name, "sha256": found.sha256, "rows": len(kept), "counted": int(fresh.sum())}
    )
    table = table[fresh]
    period = np.full(len(table), Path(found.name).name.partition(".")[0])
    if date:
        period = period_names(table[date], settings.every, name=date)
    return pd.DataFrame(
        {
            "score": table[settings.score].to_numpy(),
            "attribute": table[settings.sensitive].to_numpy(),
            "period": period,
        }
    )


def _complete(column: pd.Series) -> np.ndarray:
    """Return which rows have a value; an infinite number is none."""
    read = read_column(column, name=str(column.name))
    return np.asarray(read.known if not read.categories else read.values >= 0)


def _fresh(monitor: Monitor, hashes: np.ndarray, name: str, *, disjoint: bool) -> np.ndarray:
    """Return which rows of a file were not counted before."""
    if monitor.settings.row_id:
        return monitor.new_rows(hashes)
    if disjoint:
        return np.ones(len(hashes), dtype=bool)
    known = np.isin(hashes, monitor.seen)
    repeated = len(hashes) - len(np.unique(hashes))
    if known.any() and repeated:
        raise ValueError(
            f"{name} has {int(known.sum()):,} rows like rows that were counted before, and "
            f"{repeated:,} rows like others of its own, so equal rows may be different people: pass "
            "--id with a column that names each row, or --disjoint if no row is in two files."
        )
    return ~known
