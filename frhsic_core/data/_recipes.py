"""Define a dataset, and what its module contains: how files become a table, what must come out, and a card.

A dataset module such as ``_adult`` or ``_synthetic`` defines one `Recipe`. A file
whose hash is known is verified before it is read, so its reader relies on its format.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from numbers import Integral
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pandas as pd

from frhsic_core._choices import one_of
from frhsic_core.data._files import FileRecord, FormatError, RawFile

Task = Literal["classification", "regression"]
NO_OWNER = "There are no conditions of use, because a probability law has no owner."


@dataclass(frozen=True)
class Provenance:
    """Where a dataset comes from and which filters were applied.

    Parameters
    ----------
    dataset : str
        The key.
    source : str
        A description: the original file, an extract of it, or a probability law.
    files : tuple of FileRecord
        The raw files with their sha256; empty for a synthetic dataset.
    steps : tuple of (str, int)
        Each filter in order with the number of rows left after it; the first entry is the raw
        count.
    notes : tuple of str
        Remarks about the source and the recipe.
    variant : str
        The variant, where a dataset has several; otherwise empty.
    """

    dataset: str
    source: str
    files: tuple[FileRecord, ...] = ()
    steps: tuple[tuple[str, int], ...] = ()
    notes: tuple[str, ...] = ()
    variant: str = ""

    def __str__(self) -> str:
        lines = [f"{self.dataset}{self.variant and f' ({self.variant})'}: {self.source}"]
        lines += [f"  file {f.name}, sha256 {f.sha256[:12]}…, from {f.origin}" for f in self.files]
        lines += [f"  {rows:>7,} rows  {what}" for what, rows in self.steps]
        lines += [f"  note: {note}" for note in self.notes]
        return "\n".join(lines)


@dataclass(frozen=True, eq=False)
class Dataset:
    """An immutable sample (X, S, Y) with its provenance.

    The arrays are float64, finite and read-only. ``s`` is ``(n,)`` for one sensitive attribute and
    ``(n, p)`` for several; nothing is scaled (scaling belongs to a split, see `stack_splits`).

    Parameters
    ----------
    name : str
        Key of the dataset.
    X, s, y : numpy.ndarray
        Features (n, d), sensitive attribute (n,) or (n, p), target (n,); classes are 0 and 1.
    task : {"classification", "regression"}
        What ``y`` is.
    feature_names, sensitive_names : tuple of str
        One name per column of ``X`` and of ``s``.
    provenance : Provenance
        Source, sha256, rows before and after each filter.
    weights : numpy.ndarray, optional
        Survey weights (n,) where the source has them. Nothing in the paper uses them.

    Examples
    --------
    >>> from frhsic_core.data import load_dataset
    >>> sample = load_dataset("synthetic")
    >>> sample.n, sample.d, sample.task, sample.sensitive_name
    (5000, 2, 'classification', 's')
    >>> sample.X[0, 0] = 1.0
    Traceback (most recent call last):
    ...
    ValueError: assignment destination is read-only
    """

    name: str
    X: np.ndarray
    s: np.ndarray
    y: np.ndarray
    task: Task
    feature_names: tuple[str, ...]
    sensitive_names: tuple[str, ...]
    provenance: Provenance
    weights: np.ndarray | None = field(default=None)

    def __post_init__(self) -> None:
        arrays: dict[str, np.ndarray] = {"X": self.X, "s": self.s, "y": self.y}
        if self.weights is not None:
            arrays["weights"] = self.weights
        for key, given in arrays.items():
            array = np.array(
                given, dtype=np.float64
            )  # a copy: freezing it must not freeze the caller's array
            if not np.isfinite(array).all():
                raise ValueError(
                    f"{self.name}: {key} contains NaN or infinite values. Remove them in the recipe."
                )
            if len(array) != len(self.X):
                raise ValueError(
                    f"{self.name}: {key} has {len(array)} rows but X has {len(self.X)}: all need one row per sample."
                )
            array.setflags(write=False)
            object.__setattr__(self, key, array)
        if self.X.ndim != 2 or self.X.shape[1] != len(self.feature_names):
            raise ValueError(
                f"{self.name}: X has shape {self.X.shape} but {len(self.feature_names)} feature names were given."
            )
        columns = 1 if self.s.ndim == 1 else self.s.shape[1]
        if columns != len(self.sensitive_names):
            raise ValueError(
                f"{self.name}: s has {columns} columns but {len(self.sensitive_names)} names were given."
            )
        if self.task == "classification" and not np.isin(self.y, (0.0, 1.0)).all():
            raise ValueError(f"{self.name}: a classification target must be 0 or 1.")

    @property
    def n(self) -> int:
        """Return the number of rows."""
        return int(self.X.shape[0])

    @property
    def d(self) -> int:
        """Return the number of features."""
        return int(self.X.shape[1])

    @property
    def sensitive_name(self) -> str:
        """Return the name of the sensitive attribute; several names are joined by " + "."""
        return " + ".join(self.sensitive_names)

    def take(self, rows: np.ndarray, *, why: str = "rows chosen") -> Dataset:
        """Return the dataset restricted to ``rows`` (indices), and record the step in the provenance."""
        rows = np.asarray(rows)
        provenance = replace(self.provenance, steps=(*self.provenance.steps, (why, len(rows))))
        weights = None if self.weights is None else self.weights[rows]
        return replace(
            self,
            X=self.X[rows],
            s=self.s[rows],
            y=self.y[rows],
            weights=weights,
            provenance=provenance,
        )

    def __repr__(self) -> str:
        return (
            f"Dataset({self.name!r}, n={self.n:,}, d={self.d}, {self.task}, "
            f"S={self.sensitive_name!r}, source={self.provenance.source!r})"
        )


@dataclass(frozen=True)
class Card:
    """A short description of a dataset for its users. Each entry is one or more whole sentences.

    Parameters
    ----------
    measured, by, sensitive, target : str
        What a row is, who collected it, and what S and Y are.
    problems : tuple of str
        Known problems of the data or of the recipe.
    terms : str
        License and conditions of use.
    not_for : tuple of str
        What does not follow from the data.
    facts : mapping
        Numbers of the texts above that other code reads: the year of a survey, the cut that defines
        the target.
    """

    measured: str
    by: str
    sensitive: str
    target: str
    problems: tuple[str, ...]
    terms: str
    not_for: tuple[str, ...]
    facts: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True)
class Source:
    """A file that gives a dataset, how to read it, and what must come out.

    Parameters
    ----------
    kind : {"official", "extract"}
        Whether the file is the publisher's own or an extract of it.
    file : RawFile
        The file.
    read : callable
        ``read(path)`` returns a `Table`.
    counts : tuple of int
        Numbers of rows that the steps of the table must pass through, in order. The last one is n.
    d : int
        Number of features without the default sensitive attribute.
    """

    kind: str
    file: RawFile
    read: Callable[[Path], Table]
    counts: tuple[int, ...]
    d: int

    def check(self, table: Table) -> None:
        """Raise `FormatError` unless the table has the expected rows and columns."""
        reached = iter(rows for _, rows in table.steps)
        ordered = all(count in reached for count in self.counts)
        d = table.columns.shape[1] - 1
        if not ordered or len(table.columns) != self.counts[-1] or d != self.d:
            steps = "; ".join(f"{what}: {rows:,}" for what, rows in table.steps)
            expected = " then ".join(f"{count:,}" for count in self.counts)
            raise FormatError(
                f"{self.file.name}: expected {expected} rows and d = {self.d}, but the file gave d = {d} and {steps}. "
                "It is not the file that this recipe was written for."
            )


@dataclass(frozen=True)
class Recipe:
    """A dataset that is read from files or drawn from a distribution.

    Parameters
    ----------
    task : {"classification", "regression"}
        What the target is.
    sensitive : str
        The default sensitive attribute.
    card : Card
        The description of the dataset.
    sources : tuple of Source
        Files that give the dataset, the preferred one first; empty for a distribution.
    draw : callable, optional
        Of a distribution: ``draw(n, generator, **settings)`` returns a `Table`; the generator is
        one of NumPy.
    """

    task: Task
    sensitive: str
    card: Card
    sources: tuple[Source, ...] = ()
    draw: Callable[..., Table] | None = None


def numpy_generator(random_state: Any) -> Any:
    """Return the generator of NumPy that ``random_state`` stands for.

    A whole number seeds the legacy generator, as in the authors' code. A torch generator gives the
    seed by a draw.
    """
    if hasattr(random_state, "device"):
        from frhsic_core._arrays import as_seed

        random_state = as_seed(random_state)
    return (
        np.random.RandomState(int(random_state))
        if isinstance(random_state, Integral)
        else random_state
    )


@dataclass
class Table:
    """A dataset before its sensitive attribute is separated from its features.

    Parameters
    ----------
    columns : pandas.DataFrame
        All numeric columns, including the default sensitive attribute.
    y : numpy.ndarray
        Target; the dataset has it as float64.
    source : str
        Where the data come from, for the provenance.
    groups : mapping
        The columns of each one-hot encoded variable.
    steps, notes : list
        Filters with the rows left after each, and remarks, for the provenance.
    weights : numpy.ndarray, optional
        Survey weights.
    """

    columns: pd.DataFrame
    y: np.ndarray
    source: str
    groups: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    steps: list[tuple[str, int]] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    weights: np.ndarray | None = None


def filtered(keep: Mapping[str, pd.Series], steps: list[tuple[str, int]]) -> pd.Series:
    """Return which rows meet all conditions, and append the number of rows that is left after each one."""
    left = pd.Series(True, index=next(iter(keep.values())).index)
    for what, condition in keep.items():
        left &= condition
        steps.append((what, int(left.sum())))
    return left


def require_columns(found: Iterable[str], needed: Iterable[str], *, file: str) -> None:
    """Raise `FormatError` naming the columns of ``needed`` that ``found`` lacks."""
    found = list(found)
    missing = [name for name in needed if name not in set(found)]
    if missing:
        raise FormatError(
            f"{file} lacks the columns {', '.join(missing)}. It has {len(found)} columns: {', '.join(found[:8])}, … "
            "Check that it is the complete and unchanged file."
        )


def numeric(frame: pd.DataFrame, *, file: str) -> pd.DataFrame:
    """Return ``frame`` as float64 with NaN where a value is missing; raise `FormatError` for text."""
    values = frame.apply(pd.to_numeric, errors="coerce").astype("float64")
    for name, unreadable in (values.isna() & frame.notna()).items():
        if unreadable.any():
            example = frame[name][unreadable].iloc[0]
            raise FormatError(
                f"{file}: column {name} contains {example!r} in {int(unreadable.sum())} rows where numbers are needed."
            )
    return values


def one_hot(
    frame: pd.DataFrame, names: Sequence[str]
) -> tuple[pd.DataFrame, dict[str, tuple[str, ...]]]:
    """Return 0/1 columns ``name_level`` (levels sorted) for each of ``names``, and the columns of each name."""
    dummies = pd.get_dummies(frame[list(names)], columns=list(names), dtype=np.float64)
    return dummies, {
        name: tuple(f"{name}_{level}" for level in sorted(frame[name].unique())) for name in names
    }


def _sensitive_columns(table: Table, names: Sequence[str]) -> tuple[list[str], list[str]]:
    """Return the columns of S and the columns that leave X; see `assemble`."""
    if not names or len(set(names)) != len(names):
        raise ValueError(
            f"sensitive is {names!r}: name at least one column, and each column only once."
        )
    chosen: list[str] = []
    leaving: list[str] = []
    for name in names:
        if name in table.groups:
            group = table.groups[name]
            chosen += group[1:] if len(group) == 2 else group  # two levels are one 0/1 column
            leaving += group
        elif name in table.columns:
            chosen.append(name)
            leaving.append(name)
        else:
            encoded = {column for group in table.groups.values() for column in group}
            one_of(
                "sensitive",
                name,
                [*(column for column in table.columns if column not in encoded), *table.groups],
            )
    return chosen, leaving


def assemble(
    table: Table,
    recipe: Recipe,
    *,
    name: str,
    files: Sequence[FileRecord] = (),
    sensitive: str | Sequence[str] | None = None,
) -> Dataset:
    """Build a `Dataset` from a table.

    The sensitive columns leave ``X`` and become ``s``. A one-hot encoded variable may be named as a
    whole (``"sex"``): all its columns leave ``X``. In ``s`` a variable with two levels is one 0/1
    column, and a variable with more levels is all its columns.
    """
    names = recipe.sensitive if sensitive is None else sensitive
    chosen, leaving = _sensitive_columns(
        table, (names,) if isinstance(names, str) else tuple(names)
    )
    kept = [column for column in table.columns if column not in leaving]
    s = table.columns[chosen].to_numpy()
    return Dataset(
        name=name,
        X=table.columns[kept].to_numpy(),
        s=s[:, 0] if len(chosen) == 1 else s,
        y=table.y,
        task=recipe.task,
        feature_names=tuple(kept),
        sensitive_names=tuple(chosen),
        provenance=Provenance(
            name, table.source, tuple(files), tuple(table.steps), tuple(table.notes)
        ),
        weights=table.weights,
    )
