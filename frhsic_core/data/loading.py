"""Load a dataset by its name."""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from typing import Any

from frhsic_core import registry
from frhsic_core.choices import one_of
from frhsic_core.data.dataset import Dataset, FileRecord
from frhsic_core.data.files import Folders, locate
from frhsic_core.data.recipes import Card, Law, Recipe, Source, Table, assemble, numpy_generator

REAL: dict[str, Recipe] = {key: registry.resolve(row.recipe) for key, row in registry.DATASETS.items() if row.real}
LAWS: dict[str, Law] = {key: registry.resolve(row.recipe) for key, row in registry.DATASETS.items() if not row.real}
CARDS: dict[str, Card] = {key: recipe.card for key, recipe in (REAL | LAWS).items()}


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
    *,
    n: int | None = None,
    random_state: Any = 42,
    sensitive: str | Sequence[str] | None = None,
    source: str = "auto",
    folders: Folders | None = None,
    download: bool = True,
    **settings: Any,
) -> Dataset:
    """Load a real dataset from verified files, or draw a synthetic one.

    A file is searched in the folder ``FRHSIC_DATA``, then in the cache (``FRHSIC_CACHE``), and is then downloaded from
    its official source. The checksum and the resulting numbers of rows and columns are checked. Loading takes well
    under a second once the file is local.

    Parameters
    ----------
    name : str
        One of `available_datasets`.
    n : int, optional
        Number of rows to draw: from the distribution of a synthetic dataset, or without replacement from a real one.
    random_state : int, numpy.random.Generator or torch.Generator
        Randomness of these draws. A whole number seeds NumPy's legacy generator.
    sensitive : str or sequence of str, optional
        Sensitive columns other than the default. Several columns give ``s`` the shape (n, p). A one-hot encoded
        variable may be named as a whole (``"sex"``).
    source : {"auto", "official", "extract"}
        Which kind of file to use where a dataset has several (ACS Income, MEPS).
    folders : Folders, optional
        Folders to use instead of ``FRHSIC_DATA`` and ``FRHSIC_CACHE``.
    download : bool
        Whether a missing file may be downloaded.
    **settings
        Settings of a synthetic dataset. ``signal`` is ``"paper"`` (default) or ``"strong"`` for ``"synthetic"``; the
        strong signal makes the label predictable (see :mod:`frhsic_core.data.synthetic`).

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
    >>> people = load_dataset("people", n=1000)
    >>> people.X.shape, people.s.shape, people.sensitive_name
    ((1000, 3), (1000,), 'age')
    >>> print(people.provenance)
    people: a probability law: age ~ U(20, 70), skill ~ N(0, 1), and four columns that depend on them
        1,000 rows  rows drawn
      note: NumPy legacy generator, seed 42.
    """
    one_of("dataset", name, available_datasets())
    if n is not None and n < 1:
        raise ValueError(f"n is {n}: at least one row is needed.")
    if name in LAWS:
        table = draw_table(name, LAWS[name], n or registry.DATASETS[name].rows, random_state, settings)
        return assemble(table, LAWS[name], name=name, sensitive=sensitive)
    if settings:
        raise TypeError(f"{name} has no setting {', '.join(sorted(settings))}: it takes none.")
    table, files = read_table(name, REAL[name], source=source, folders=folders, download=download)
    return subsample(assemble(table, REAL[name], name=name, files=files, sensitive=sensitive), n, random_state)


def draw_table(name: str, law: Law, n: int, random_state: Any, settings: dict[str, Any]) -> Table:
    """Draw n rows from a law."""
    known = list(inspect.signature(law.draw).parameters)[2:]
    unknown = sorted(set(settings) - set(known))
    if unknown:
        takes = f"it takes {', '.join(known)}" if known else "it takes none"
        raise TypeError(f"{name} has no setting {', '.join(unknown)}: {takes}.")
    table = law.draw(n, numpy_generator(random_state), **settings)
    table.steps.append(("rows drawn", n))
    if isinstance(random_state, int):
        table.notes.append(f"NumPy legacy generator, seed {random_state}.")
    return table


def read_table(
    name: str,
    recipe: Recipe,
    *,
    source: str = "auto",
    folders: Folders | None = None,
    download: bool = True,
    progress: Any = None,
) -> tuple[Table, tuple[FileRecord, ...]]:
    """Find a file of a recipe, read it and check the result; ``progress`` is a bar as pooch expects it."""
    chosen = sources_of(name, recipe, source)
    found = locate(
        [item.file for item in chosen],
        folders or Folders.from_environment(),
        what=name,
        download=download,
        progress=progress,
    )
    used = next(item for item in chosen if item.file is found.file)
    table = used.read(found.path)
    used.check(table)
    return table, (FileRecord(found.file.name, found.sha256, found.origin, bool(found.file.sha256)),)


def sources_of(name: str, recipe: Recipe, source: str = "auto") -> tuple[Source, ...]:
    """Return the sources of a recipe of one kind (all kinds for ``"auto"``), the preferred one first."""
    one_of(f"source of {name}", source, ["auto", *sorted({item.kind for item in recipe.sources})])
    return recipe.sources if source == "auto" else tuple(item for item in recipe.sources if item.kind == source)


def subsample(dataset: Dataset, n: int | None, random_state: Any) -> Dataset:
    """Return n rows drawn without replacement, or the dataset itself without ``n``."""
    if n is None:
        return dataset
    if n > dataset.n:
        raise ValueError(f"n is {n:,}, but {dataset.name} has only {dataset.n:,} rows.")
    rows = numpy_generator(random_state).choice(dataset.n, n, replace=False)
    return dataset.take(rows, why=f"{n:,} drawn without replacement")
