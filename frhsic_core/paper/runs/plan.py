"""Describe what an experiment runs: a name and its jobs.

A job is a :class:`Stack` of models that are trained at once, or a :class:`Unit` that measures something else (timings,
error rates, eigenvalues). Both have ``key``, ``keys``, ``data``, ``weight``, ``record()`` and ``missing(done)``; a
runner and a store need no more. Everything here is a frozen value, and nothing imports torch.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection, Iterable, Mapping
from dataclasses import asdict, dataclass, replace
from itertools import product
from typing import Any

from frhsic_core.registry import DATASETS

# Part of every recipe's key. Raise it when the same settings mean another computation.
FORMAT = 1
# Fields added after rows had been stored. They enter a key only where they are used, so that older keys stay valid.
_ADDED_LATER = ("network", "measure")
# Settings that were renamed or dropped after rows had been stored: today's name and value, and what the stored key has
# in its place. A new spelling of the same computation must not retrain the stored models.
STORED_SPELLING: dict[tuple[str, Any], tuple[tuple[str, Any], ...]] = {
    ("scale", "standardize"): (("scale", "standardise"),),  # the second stays as it is stored
    # The kernel on S was stored after a setting that had one value everywhere.
    ("kernel_s", "gaussian"): (("reference", "product"), ("kernel_s", "gaussian")),
    ("kernel_s", "multi_scale"): (("reference", "product"), ("kernel_s", "multi_scale")),
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
    return {
        (record["recipe"], lam, split, split + 100_000 * repeat) for lam, split, repeat in models
    }


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
        A key of ``frhsic_core.learning.penalties.METHODS``.
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
        settings = tuple(
            old for pair in self.settings for old in STORED_SPELLING.get(pair, (pair,))
        )
        fields = asdict(replace(self, settings=settings))
        return digest(
            [
                FORMAT,
                {name: fields[name] for name in fields if name not in _ADDED_LATER or fields[name]},
            ]
        )

    def __str__(self) -> str:
        name = self.method if not self.option else f"{self.method} ({self.option})"
        return f"{self.task.dataset} ({self.task.variant}), {name}, {self.task.protocol} protocol"


@dataclass(frozen=True)
class Stack:
    """Describe a recipe, and the λ and splits whose product is trained at once."""

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

    @property
    def weight(self) -> float:
        """Return the relative cost, the number of samples that the models see."""
        task = self.recipe.task
        rows = dict(task.options).get("n") or DATASETS[task.dataset].rows
        return self.recipe.epochs * rows * len(self.models)

    def record(self) -> dict[str, Any]:
        """Return the fields that identify the stack in the json file of a store."""
        grid = {"lams": list(self.lams), "splits": list(self.splits), "repeats": [0]}
        return {"job": self.key, "recipe": self.recipe.key, **grid}

    def missing(self, done: Collection[Key]) -> list[Stack]:
        """Return the stacks that train exactly the models not yet ``done``; splits that lack the same λ form one."""
        groups: dict[tuple[float, ...], list[int]] = {}
        recipe = self.recipe.key
        for split in self.splits:
            lams = tuple(lam for lam in self.lams if (recipe, lam, split, split) not in done)
            groups.setdefault(lams, []).append(split)
        return [
            replace(self, lams=lams, splits=tuple(splits))
            for lams, splits in groups.items()
            if lams
        ]

    def __str__(self) -> str:
        return f"{self.recipe}, {len(self.models)} models"


@dataclass(frozen=True)
class Unit:
    """Describe one measurement.

    Parameters
    ----------
    module : str
        A table whose ``measure_unit(unit, device)`` takes the settings as a dict and returns rows, a list of dicts. The
        settings are added to each row.
    settings : tuple of pairs
        What is measured.
    """

    module: str
    settings: Settings

    weight = 1.0

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
        return (
            (named["dataset"], named["variant"]) if named.keys() >= {"dataset", "variant"} else None
        )

    def record(self) -> dict[str, Any]:
        """Return the fields that identify the unit in the json file of a store."""
        return {"key": self.key, "unit": dict(self.settings)}

    def missing(self, done: Collection[Key]) -> list[Unit]:
        """Return the unit itself if it is not yet ``done``."""
        return [] if self.key in done else [self]

    def __str__(self) -> str:
        return ", ".join(f"{name} {value}" for name, value in self.settings)


Job = Stack | Unit


@dataclass(frozen=True)
class Experiment:
    """Name a table of the store and the jobs that fill it: those of :func:`stacks_of`, or those of :func:`units_of`."""

    name: str
    jobs: tuple[Job, ...]

    def keys(self) -> set[Key]:
        """Return the keys of all rows of the experiment."""
        return {key for job in self.jobs for key in job.keys}

    def missing(self, done: Collection[Key]) -> list[Job]:
        """Return jobs that compute exactly what is not yet ``done``."""
        return [part for job in self.jobs for part in job.missing(done)]


def stacks_of(
    tasks: Iterable[Task],
    methods: Iterable[str],
    lams: tuple[float, ...],
    splits: tuple[int, ...],
    *,
    options: Mapping[str, Settings] | None = None,
    **recipe: Any,
) -> tuple[Stack, ...]:
    """Return a stack for each task, method and option; those of one task come together.

    Parameters
    ----------
    tasks, methods
        Data with protocols; keys of methods. ``"unfair"`` is trained at λ = 0 only, whatever the grid.
    lams, splits
        λ grid; seeds of the splits.
    options : dict
        Departures from the protocol by name: settings of the penalty. By default there are none.
    **recipe
        ``epochs``, ``fractions``, ``network`` and ``measure`` of :class:`Recipe`.

    Examples
    --------
    >>> stacks = stacks_of([Task("synthetic", "text", "text")], ["unfair", "frhsic"], (1.0, 10.0), (42, 43))
    >>> [len(stack.models) for stack in stacks]
    [2, 4]
    """
    return tuple(
        Stack(
            Recipe(task, method, option, settings, **recipe),
            (0.0,) if method == "unfair" else lams,
            splits,
        )
        for task in tasks
        for method in methods
        for option, settings in (options or {"": ()}).items()
    )


def units_of(module: str, **values: Any) -> tuple[Unit, ...]:
    """Return a unit for every combination of the values; the last name varies fastest.

    Examples
    --------
    >>> [unit.settings for unit in units_of("levels", n=(50, 100), method="hsic")]
    [(('n', 50), ('method', 'hsic')), (('n', 100), ('method', 'hsic'))]
    """
    choices = [value if isinstance(value, tuple) else (value,) for value in values.values()]
    return tuple(
        Unit(module, tuple(zip(values, chosen, strict=True))) for chosen in product(*choices)
    )
