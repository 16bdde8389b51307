"""Define a dataset: features, sensitive attribute, target, and the provenance of its rows."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Literal

import numpy as np

Task = Literal["classification", "regression"]


@dataclass(frozen=True)
class FileRecord:
    """A verified raw file: its name, its sha256, a description of where it was found, and its path."""

    name: str
    sha256: str
    origin: str
    path: Path


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
        Each filter in order with the number of rows left after it; the first entry is the raw count.
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

    The arrays are float64, finite and read-only. ``s`` is ``(n,)`` for one sensitive attribute and ``(n, p)`` for
    several; nothing is scaled (scaling belongs to a split, see `stack_splits`).

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
            array = np.array(given, dtype=np.float64)  # a copy: freezing it must not freeze the caller's array
            if not np.isfinite(array).all():
                raise ValueError(f"{self.name}: {key} contains NaN or infinite values. Remove them in the recipe.")
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
            raise ValueError(f"{self.name}: s has {columns} columns but {len(self.sensitive_names)} names were given.")
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
        return replace(self, X=self.X[rows], s=self.s[rows], y=self.y[rows], weights=weights, provenance=provenance)

    def __repr__(self) -> str:
        return (
            f"Dataset({self.name!r}, n={self.n:,}, d={self.d}, {self.task}, "
            f"S={self.sensitive_name!r}, source={self.provenance.source!r})"
        )
