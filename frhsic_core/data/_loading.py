"""Load a dataset by its name."""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from pkgutil import resolve_name
from typing import Any

from frhsic_core import registry
from frhsic_core._choices import one_of
from frhsic_core.data._files import Folders, locate
from frhsic_core.data._recipes import Card, Dataset, Recipe, assemble, numpy_generator

RECIPES: dict[str, Recipe] = {
    key: resolve_name(row.recipe) for key, row in registry.DATASETS.items()
}
#: The names of the datasets that are read from files.
REAL = tuple(key for key, recipe in RECIPES.items() if recipe.sources)
CARDS: dict[str, Card] = {key: recipe.card for key, recipe in RECIPES.items()}


def available_datasets() -> tuple[str, ...]:
    """Return the name of every dataset, the real ones first.

    Examples
    --------
    >>> available_datasets()[:5]
    ('adult', 'acs_income', 'meps', 'crime', 'compas')
    """
    return tuple(RECIPES)


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

    A file is searched in the folder ``FRHSIC_DATA``, then in the cache (``FRHSIC_CACHE``), and is
    then downloaded from its official source. The checksum and the resulting numbers of rows and
    columns are checked. Loading takes well under a second once the file is local.

    Parameters
    ----------
    name : str
        One of `available_datasets`.
    n : int, optional
        Number of rows to draw: from the distribution of a synthetic dataset, or without replacement
        from a real one.
    random_state : int, numpy.random.Generator or torch.Generator
        Randomness of these draws. A whole number seeds NumPy's legacy generator.
    sensitive : str or sequence of str, optional
        Sensitive columns other than the default. Several columns give ``s`` the shape (n, p). A
        one-hot encoded variable may be named as a whole (``"sex"``).
    source : {"auto", "official", "extract"}
        Which kind of file to use where a dataset has several (ACS Income, MEPS).
    folders : Folders, optional
        Folders to use instead of ``FRHSIC_DATA`` and ``FRHSIC_CACHE``.
    download : bool
        Whether a missing file may be downloaded.
    **settings
        Settings of a synthetic dataset. ``signal`` is ``"paper"`` (default) or ``"strong"`` for
        ``"synthetic"``; the strong signal makes the label predictable (see ``data._synthetic``).

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
    >>> print(people.provenance)  # doctest: +NORMALIZE_WHITESPACE
    people: a probability law: age ~ U(20, 70), skill ~ N(0, 1), and four columns that depend on
    them
        1,000 rows  rows drawn
      note: NumPy legacy generator, seed 42.
    """
    one_of("dataset", name, available_datasets())
    options = {
        "n": n,
        "random_state": random_state,
        "sensitive": sensitive,
        "source": source,
        "folders": folders,
    }
    return load_recipe(name, RECIPES[name], **options, download=download, **settings)


def load_recipe(
    name: str,
    recipe: Recipe,
    *,
    title: str = "",
    n: int | None = None,
    random_state: Any = 42,
    sensitive: str | Sequence[str] | None = None,
    source: str = "auto",
    folders: Folders | None = None,
    download: bool = True,
    **settings: Any,
) -> Dataset:
    """Load a dataset by its recipe, with the options of :func:`load_dataset`; messages call it ``title``."""
    title = title or name
    if n is not None and n < 1:
        raise ValueError(f"n is {n}: at least one row is needed.")
    known = [] if recipe.draw is None else list(inspect.signature(recipe.draw).parameters)[2:]
    if unknown := sorted(set(settings) - set(known)):
        raise TypeError(
            f"{name} has no setting {', '.join(unknown)}: it takes {', '.join(known) or 'none'}."
        )
    if recipe.draw is not None:
        n = n or registry.DATASETS[name].rows
        table = recipe.draw(n, numpy_generator(random_state), **settings)
        table.steps.append(("rows drawn", n))
        if isinstance(random_state, int):
            table.notes.append(f"NumPy legacy generator, seed {random_state}.")
        return assemble(table, recipe, name=name, sensitive=sensitive)
    one_of(f"source of {title}", source, ["auto", *sorted({item.kind for item in recipe.sources})])
    chosen = [item for item in recipe.sources if source in ("auto", item.kind)]
    found = locate(
        [item.file for item in chosen],
        folders or Folders.from_environment(),
        what=title,
        download=download,
    )
    used = next(item for item in chosen if item.file.name == found.name)
    table = used.read(found.path)
    used.check(table)
    data = assemble(table, recipe, name=name, files=(found,), sensitive=sensitive)
    if n is None:
        return data
    if n > data.n:
        raise ValueError(f"n is {n:,}, but {name} has only {data.n:,} rows.")
    rows = numpy_generator(random_state).choice(data.n, n, replace=False)
    return data.take(rows, why=f"{n:,} drawn without replacement")
