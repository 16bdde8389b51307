"""Describe what an experiment runs: recipes, stacks of models, units of a study, and the experiment itself.

An :class:`Experiment` trains models, a :class:`Study` measures something else unit by unit (timings, error rates,
eigenvalues). Both have ``name``, ``jobs()``, ``keys()`` and ``missing(done)``; a runner and a store need no more.
Everything here is a frozen value, and nothing imports torch.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection, Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from itertools import product
from typing import Any

# Part of every recipe's key. Raise it when the same settings mean another computation.
FORMAT = 1
# Fields added after rows had been stored. They enter a key only where they are used, so that older keys stay valid.
_ADDED_LATER = ("network", "measure")
# Settings that were renamed after rows had been stored: today's name and value, and those in the stored key. A new
# spelling of the same computation must not retrain the stored models.
STORED_SPELLING: dict[tuple[str, Any], tuple[str, Any]] = {
    ("scale", "standardize"): ("scale", "standardise"),  # the second stays as it is stored
}

# A model is known by its recipe, λ, split and seed; a unit by the key of its settings.
Key = tuple[str, float, int, int] | str
Settings = tuple[tuple[str, Any], ...]


def json_sha256(value: Any) -> str:
    """Return the SHA-256 of a JSON value, whatever the order of its names and the white space of its file."""
    text = json.dumps(value, sort_keys=True, separators=(",", ":"), default=list)
    return hashlib.sha256(text.encode()).hexdigest()


def digest(value: Any) -> str:
    """Return twelve hexadecimal digits that identify a JSON value."""
    return json_sha256(value)[:12]


def keys_of(record: Mapping[str, Any]) -> set[Key]:
    """Return the keys of the rows that a record of the store describes."""
    if "unit" in record:
        return {record["key"]}
    # Some stored models have other initial weights: the seeds of such repeats lie 100,000 apart.
    models = product(record["lams"], record["splits"], record["repeats"])
    return {(record["recipe"], lam, split, split + 100_000 * repeat) for lam, split, repeat in models}


def units_of(**values: Any) -> tuple[Settings, ...]:
    """Return the settings of every combination of the values; the last name varies fastest.

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
class Task:
    """A dataset in one variant, trained by one protocol.

    Parameters
    ----------
    dataset, variant : str
        As in :func:`frhsic_core.load_dataset`.
    protocol : {"text", "reference", "recommended"}
        Settings of methods and encoder.
    options : tuple of pairs
        Further arguments of ``load_dataset`` (``n``, ``sensitive``, ...).
    """

    dataset: str
    variant: str
    protocol: str
    options: Settings = ()


@dataclass(frozen=True)
class Recipe:
    """Everything that decides a trained model except λ, split and seed.

    Parameters
    ----------
    task : Task
        Data and protocol.
    method : str
        A key of ``frhsic_core.learning.protocols.METHODS``.
    option : str
        Name of a departure from the protocol; empty for none.
    settings : tuple of pairs
        The departure: settings of the penalty.
    epochs, batch_size, learning_rate
        Number of epochs, size of a mini-batch, and the learning rate of Adam.
    fractions : tuple of float
        Shares of the train and test parts, or of the train, validation and test parts.
    network : tuple of pairs
        Further arguments of the trainer (``widths``, ``activation``).
    measure : str
        An experiment's module whose ``measure(trained, splits, data)`` adds columns to those that every model gets.

    Examples
    --------
    >>> recipe = Recipe(Task("compas", "text", "text"), "frhsic")
    >>> recipe.key == Recipe(Task("compas", "text", "text"), "frhsic").key, recipe.key == replace(recipe, epochs=1).key
    (True, False)
    """

    task: Task
    method: str
    option: str = ""
    settings: Settings = ()
    epochs: int = 200
    batch_size: int = 256
    learning_rate: float = 1e-3
    fractions: tuple[float, ...] = (0.8, 0.2)
    network: Settings = ()
    measure: str = ""

    @property
    def key(self) -> str:
        """Twelve hexadecimal digits that identify the recipe."""
        settings = tuple(STORED_SPELLING.get(pair, pair) for pair in self.settings)
        fields = asdict(replace(self, settings=settings))
        return digest([FORMAT, {name: fields[name] for name in fields if name not in _ADDED_LATER or fields[name]}])

    def __str__(self) -> str:
        name = self.method if not self.option else f"{self.method} ({self.option})"
        return f"{self.task.dataset} ({self.task.variant}), {name}, {self.task.protocol} protocol"


@dataclass(frozen=True)
class Job:
    """Describe one stack: a recipe, and the λ and splits whose product is trained at once."""

    recipe: Recipe
    lams: tuple[float, ...]
    splits: tuple[int, ...]

    @property
    def models(self) -> list[tuple[float, int, int]]:
        """λ, split and seed of each model, in the order of the stack; the seed is that of the split."""
        return [(lam, split, split) for lam, split in product(self.lams, self.splits)]

    @property
    def keys(self) -> list[Key]:
        """Keys of the rows of this stack in a store."""
        recipe = self.recipe.key
        return [(recipe, *model) for model in self.models]

    @property
    def key(self) -> str:
        """Sixteen hexadecimal digits that identify the stack."""
        return digest([self.recipe.key, self.lams, self.splits, (0,)]) + self.recipe.key[:4]

    @property
    def data(self) -> tuple[str, str] | None:
        """Dataset and variant that the stack needs."""
        return self.recipe.task.dataset, self.recipe.task.variant

    def record(self) -> dict[str, Any]:
        """Return the fields that identify the stack in the json file of a store."""
        return {
            "job": self.key,
            "recipe": self.recipe.key,
            "lams": list(self.lams),
            "splits": list(self.splits),
            "repeats": [0],
        }

    def __str__(self) -> str:
        return f"{self.recipe}, {len(self.models)} models"


@dataclass(frozen=True)
class Unit:
    """Describe one measurement of a study.

    Parameters
    ----------
    module : str
        An experiment's module whose ``measure_unit(unit, device)`` takes the settings as a dict and returns rows.
    settings : tuple of pairs
        What is measured, as :func:`units_of` makes it.
    """

    module: str
    settings: Settings

    @property
    def key(self) -> str:
        """Twelve hexadecimal digits that identify the unit."""
        return digest([self.module, 1, self.settings])  # the number is part of stored keys

    @property
    def keys(self) -> list[Key]:
        """The key of the unit; its rows are stored together under it."""
        return [self.key]

    @property
    def data(self) -> tuple[str, str] | None:
        """Dataset and variant if the settings name them."""
        named = dict(self.settings)
        return (named["dataset"], named["variant"]) if named.keys() >= {"dataset", "variant"} else None

    def record(self) -> dict[str, Any]:
        """Return the fields that identify the unit in the json file of a store."""
        return {"key": self.key, "unit": dict(self.settings)}

    def __str__(self) -> str:
        return ", ".join(f"{name} {value}" for name, value in self.settings)


@dataclass(frozen=True)
class Experiment:
    """Describe a sweep: tasks × methods × options × λ × splits.

    Parameters
    ----------
    name : str
        Name of its table in the store.
    tasks : tuple of Task
        Data and protocols.
    methods : tuple of str
        Keys of the methods; ``"unfair"`` is trained at λ = 0 only, whatever the grid.
    lams, splits
        λ grid; seeds of the splits.
    options : tuple of (str, settings)
        Departures from the protocol, by name.
    epochs, fractions, network, measure
        As in :class:`Recipe`.
    also : tuple of Experiment
        More rows of the same table with other methods, grids or settings; their names do not matter.

    Examples
    --------
    >>> tiny = Experiment("tiny", (Task("synthetic", "text", "text"),), ("unfair", "frhsic"), (1.0, 10.0), (42, 43))
    >>> [len(job.models) for job in tiny.jobs()]
    [2, 4]
    """

    name: str
    tasks: tuple[Task, ...]
    methods: tuple[str, ...]
    lams: tuple[float, ...]
    splits: tuple[int, ...]
    options: tuple[tuple[str, Settings], ...] = (("", ()),)
    epochs: int = 200
    fractions: tuple[float, ...] = (0.8, 0.2)
    network: Settings = ()
    measure: str = ""
    also: tuple[Experiment, ...] = ()

    def jobs(self) -> list[Job]:
        """Return the stacks; those of one task come together, so that its data is loaded once."""
        own = [
            Job(self._recipe(task, method, option, settings), self._grid(method), self.splits)
            for task in self.tasks
            for method in self.methods
            for option, settings in self.options
        ]
        jobs = [*own, *(job for part in self.also for job in part.jobs())]
        order = {task: i for i, task in reversed(list(enumerate(job.recipe.task for job in jobs)))}
        return sorted(jobs, key=lambda job: order[job.recipe.task])

    def missing(self, done: Collection[Key]) -> list[Job]:
        """Return the stacks that train exactly the models not yet ``done``.

        A stack is a product of λ and splits. Where some of it is done, splits that lack the same λ form one stack.
        """
        return [part for job in self.jobs() for part in _remainder(job, done)]

    def keys(self) -> set[Key]:
        """Return the keys of all rows of the experiment."""
        return {key for job in self.jobs() for key in job.keys}

    def _grid(self, method: str) -> tuple[float, ...]:
        return (0.0,) if method == "unfair" else self.lams

    def _recipe(self, task: Task, method: str, option: str, settings: Settings) -> Recipe:
        options: dict[str, Any] = {"epochs": self.epochs, "fractions": self.fractions, "network": self.network}
        return Recipe(task, method, option, settings, measure=self.measure, **options)


@dataclass(frozen=True)
class Study:
    """Describe a table that is measured unit by unit, where no sweep of models is trained.

    Parameters
    ----------
    name : str
        Name of its table in the store.
    module : str
        An experiment's module whose ``measure_unit(unit, device)`` takes a unit as a dict and returns its rows, a list
        of dicts. The settings of the unit are added to each row.
    units : tuple
        Settings of each unit, as :func:`units_of` makes them.
    """

    name: str
    module: str
    units: tuple[Settings, ...]

    def jobs(self) -> list[Unit]:
        """Return the units to measure."""
        return [Unit(self.module, settings) for settings in self.units]

    def missing(self, done: Collection[Key]) -> list[Unit]:
        """Return the units that are not yet ``done``."""
        return [unit for unit in self.jobs() if unit.key not in done]

    def keys(self) -> set[Key]:
        """Return the keys of all units."""
        return {unit.key for unit in self.jobs()}


def _remainder(job: Job, done: Collection[Key]) -> Iterator[Job]:
    """Yield the stacks that cover the models of ``job`` that are not yet done."""
    groups: dict[tuple[float, ...], list[int]] = {}
    recipe = job.recipe.key
    for split in job.splits:
        lams = tuple(lam for lam in job.lams if (recipe, lam, split, split) not in done)
        if lams:
            groups.setdefault(lams, []).append(split)
    for lams, splits in groups.items():
        yield Job(job.recipe, lams, tuple(splits))
