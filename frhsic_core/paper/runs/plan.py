"""What an experiment trains: recipes, jobs (stacks of models) and the experiment as a frozen value."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection, Iterator
from dataclasses import asdict, dataclass, replace
from itertools import product
from typing import Any

__all__ = ["Experiment", "Job", "Key", "Recipe", "Task", "models_of"]

# Part of every recipe's key: raised when the same settings would mean another computation.
FORMAT = 1
# The seed of a model is that of its split, as in the released code; repeats of a split lie this far apart.
REPEAT = 100_000
_LATER = ("network", "measure")

Key = tuple[str, float, int, int]
Settings = tuple[tuple[str, Any], ...]


def digest(value: Any) -> str:
    text = json.dumps(value, sort_keys=True, separators=(",", ":"), default=list)
    return hashlib.sha256(text.encode()).hexdigest()[:12]


def models_of(
    lams: Collection[float], splits: Collection[int], repeats: Collection[int]
) -> list[tuple[float, int, int]]:
    """Return λ, split and seed of each model of a stack, in its order."""
    return [(lam, split, split + REPEAT * repeat) for lam, split, repeat in product(lams, splits, repeats)]


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
        Of the training.
    fractions : tuple of float
        Train and test, or train, validation and test.
    network : tuple of pairs
        Further arguments of the trainer (``widths``, ``activation``).
    measure : str
        A module of the catalogue whose ``measure(trained, splits, data)`` adds columns to those every model gets.

    Examples
    --------
    >>> recipe = Recipe(Task("compas", "text", "text"), "frhsic")
    >>> recipe.key == Recipe(Task("compas", "text", "text"), "frhsic").key, recipe.key == recipe.but(epochs=1).key
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
        """Twelve hexadecimal digits that stand for the recipe."""
        # Fields that came later enter only where they are used: keys of rows stored before them stay.
        said = asdict(self)
        return digest([FORMAT, {name: said[name] for name in said if name not in _LATER or said[name]}])

    def but(self, **changes: Any) -> Recipe:
        """Return the recipe with some fields changed."""
        return replace(self, **changes)

    def __str__(self) -> str:
        name = self.method if not self.option else f"{self.method} ({self.option})"
        return f"{self.task.dataset} ({self.task.variant}), {name}, {self.task.protocol} protocol"


@dataclass(frozen=True)
class Job:
    """One stack: a recipe, and the λ, splits and seeds whose product it trains at once."""

    recipe: Recipe
    lams: tuple[float, ...]
    splits: tuple[int, ...]
    repeats: tuple[int, ...] = (0,)

    @property
    def models(self) -> list[tuple[float, int, int]]:
        """λ, split and seed of each model, in the order of the stack."""
        return models_of(self.lams, self.splits, self.repeats)

    @property
    def keys(self) -> list[Key]:
        """What the rows of this stack are called in a store."""
        recipe = self.recipe.key
        return [(recipe, *model) for model in self.models]

    @property
    def key(self) -> str:
        """Sixteen hexadecimal digits that stand for the stack."""
        return digest([self.recipe.key, self.lams, self.splits, self.repeats]) + self.recipe.key[:4]

    def __str__(self) -> str:
        return f"{self.recipe}, {len(self.models)} models"


@dataclass(frozen=True)
class Experiment:
    """Tasks × methods × options × λ × splits × seeds.

    Parameters
    ----------
    name : str
        Name of its table in the store.
    tasks : tuple of Task
        Data and protocols.
    methods : tuple of str
        Keys; ``"unfair"`` is trained at λ = 0 only, whatever the grid.
    lams, splits, repeats
        λ grid; seeds of the splits; repeats of each split with other initial weights.
    options : tuple of (str, settings)
        Departures from the protocol, by name.
    epochs, batch_size, learning_rate, fractions, network, measure
        As in :class:`Recipe`.
    also : tuple of Experiment
        More of the same table with other methods, grids or settings; their names do not matter.

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
    repeats: tuple[int, ...] = (0,)
    options: tuple[tuple[str, Settings], ...] = (("", ()),)
    epochs: int = 200
    batch_size: int = 256
    learning_rate: float = 1e-3
    fractions: tuple[float, ...] = (0.8, 0.2)
    network: Settings = ()
    measure: str = ""
    also: tuple[Experiment, ...] = ()

    def jobs(self) -> list[Job]:
        """Return the stacks, those of one task together (its data is then loaded once)."""
        own = [
            Job(self._recipe(task, method, option, settings), self._grid(method), self.splits, self.repeats)
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
        """Return the keys of every row the experiment will have."""
        return {key for job in self.jobs() for key in job.keys}

    def _grid(self, method: str) -> tuple[float, ...]:
        return (0.0,) if method == "unfair" else self.lams

    def _recipe(self, task: Task, method: str, option: str, settings: Settings) -> Recipe:
        return Recipe(
            task, method, option, settings, self.epochs, self.batch_size, self.learning_rate, self.fractions,
            self.network, self.measure,
        )  # fmt: skip


def _remainder(job: Job, done: Collection[Key]) -> Iterator[Job]:
    groups: dict[tuple[tuple[float, ...], tuple[int, ...]], list[int]] = {}
    recipe = job.recipe.key
    for split in job.splits:
        pairs = product(job.lams, job.repeats)
        lacking = [(lam, r) for lam, r in pairs if (recipe, lam, split, split + REPEAT * r) not in done]
        if lacking:
            # λ and repeats whose product covers what is lacking: retraining a model twice changes nothing.
            lams = tuple(lam for lam in job.lams if any(lam == other for other, _ in lacking))
            repeats = tuple(r for r in job.repeats if any(r == other for _, other in lacking))
            groups.setdefault((lams, repeats), []).append(split)
    for (lams, repeats), splits in groups.items():
        yield Job(job.recipe, lams, tuple(splits), repeats)
