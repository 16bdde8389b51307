"""From a raw table to named numeric columns, and from those to a `Dataset`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import pandas as pd

from frhsic_core.data.dataset import Dataset, FileRecord, Provenance, Task
from frhsic_core.data.files import FormatError


@dataclass
class Table:
    """A recipe's output before the sensitive attribute is taken out.

    Parameters
    ----------
    columns : pandas.DataFrame
        Every numeric column, the default sensitive attribute among them.
    y : numpy.ndarray
        Target.
    task : {"classification", "regression"}
        What ``y`` is.
    sensitive : str
        The recipe's sensitive attribute.
    source : str
        In words, for the provenance.
    groups : mapping
        For each one-hot encoded variable, its columns.
    steps, notes : list
        For the provenance.
    weights : numpy.ndarray, optional
        Survey weights.
    """

    columns: pd.DataFrame
    y: np.ndarray
    task: Task
    sensitive: str
    source: str
    groups: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    steps: list[tuple[str, int]] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    weights: np.ndarray | None = None


def require_columns(found: Iterable[str], needed: Iterable[str], *, file: str) -> None:
    """Raise `FormatError` naming the columns of ``needed`` that ``found`` lacks."""
    found = list(found)
    missing = [name for name in needed if name not in set(found)]
    if missing:
        raise FormatError(
            f"{file} lacks the columns {', '.join(missing)}; it has {len(found)}: {', '.join(found[:8])}, … "
            "Is it the right file, whole and unchanged?"
        )


def numeric(frame: pd.DataFrame, *, file: str, missing: Sequence[str] = ()) -> pd.DataFrame:
    """Return ``frame`` as float64; ``missing`` marks become NaN, any other text raises `FormatError`."""
    result = {}
    for name in frame.columns:
        column = frame[name]
        if not pd.api.types.is_numeric_dtype(column):
            column = column.astype("str").str.strip()
            column = column.mask(column.isin(missing))
        values = pd.to_numeric(column, errors="coerce").astype("float64")
        unreadable = values.isna() & frame[name].notna() & column.notna()
        if unreadable.any():
            example = frame[name][unreadable].iloc[0]
            raise FormatError(
                f"{file}: column {name} holds {example!r} in {int(unreadable.sum())} rows; numbers needed"
            )
        result[name] = values
    return pd.DataFrame(result, index=frame.index)


def one_hot(frame: pd.DataFrame, names: Sequence[str]) -> tuple[pd.DataFrame, dict[str, tuple[str, ...]]]:
    """Return 0/1 columns ``name_level`` (levels sorted) for each of ``names``, and which columns are whose."""
    parts, groups = [], {}
    for name in names:
        levels = sorted(frame[name].unique())
        part = pd.DataFrame(
            {f"{name}_{level}": (frame[name] == level).astype("float64") for level in levels}, index=frame.index
        )
        parts.append(part)
        groups[name] = tuple(part.columns)
    return pd.concat(parts, axis=1), groups


def resolve(table: Table, sensitive: str | Sequence[str] | None) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return (columns of S, columns that leave X) for the names asked for; see `assemble`."""
    wanted = (
        (table.sensitive,) if sensitive is None else (sensitive,) if isinstance(sensitive, str) else tuple(sensitive)
    )
    if not wanted or len(set(wanted)) != len(wanted):
        raise ValueError(f"sensitive={sensitive!r}: name at least one column, each once.")
    chosen: list[str] = []
    leaving: list[str] = []
    for name in wanted:
        if name in table.groups:
            group = table.groups[name]
            chosen += group[1:] if len(group) == 2 else group  # two levels are one 0/1 column
            leaving += group
        elif name in table.columns:
            chosen.append(name)
            leaving.append(name)
        else:
            plain = [column for column in table.columns if not any(column in group for group in table.groups.values())]
            raise ValueError(
                f"sensitive={name!r} is no column of this dataset: choose among {', '.join([*plain, *table.groups])}."
            )
    return tuple(chosen), tuple(leaving)


def assemble(
    table: Table,
    *,
    name: str,
    variant: str,
    files: Sequence[FileRecord] = (),
    sensitive: str | Sequence[str] | None = None,
    keep_sensitive: bool = False,
    drop: Sequence[str] = (),
) -> Dataset:
    """Build a `Dataset` from a table: the sensitive columns become ``s`` and leave ``X`` unless told to stay.

    A one-hot encoded variable may be named as a whole (``"sex"``): all its columns leave ``X``; in ``s`` a variable
    of two levels is one 0/1 column, one of more levels is all its columns.
    """
    chosen, leaving = resolve(table, sensitive)
    require_columns(table.columns.columns, drop, file=name)
    gone = {*drop} if keep_sensitive else {*leaving, *drop}
    kept = [column for column in table.columns if column not in gone]
    s = table.columns[list(chosen)].to_numpy()
    provenance = Provenance(name, variant, table.source, tuple(files), tuple(table.steps), tuple(table.notes))
    return Dataset(
        name=name,
        X=table.columns[kept].to_numpy(),
        s=s[:, 0] if len(chosen) == 1 else s,
        y=table.y,
        task=table.task,
        feature_names=tuple(kept),
        sensitive_names=chosen,
        provenance=provenance,
        weights=table.weights,
    )
