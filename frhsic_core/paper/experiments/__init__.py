"""The experiments: one module or folder for each chapter that reports measurements.

A module holds a whole experiment: its plan, what it measures, its tables, and the queries of the ledger that it
answers. A folder is used where one file would be too long: the plan and the measurement stand in ``__init__``, the
tables and queries in ``tables``, calculations with torch in a module named after them. ``comparison`` has what several
experiments need.

The experiment has the name of its module. It has one stored table or several: ``def plan()`` plans the table of the
same name, ``def plan_NAME()`` the table NAME. ``measure`` and ``measure_unit`` are named in the same way.
Experiments are found by these lines of their source: there is no list to extend, and nothing is imported before it is
needed. Plans and the keys of stored rows contain the name of a table, and ``module_of`` turns it into code.
``experiment_for`` gives the plan of a table by name and size: ``full`` (everything) or ``smoke`` (seconds).
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable
from dataclasses import replace
from functools import cache, partial
from importlib import import_module
from itertools import groupby
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

from frhsic_core.paper.runs.plan import Experiment, Job, Recipe, Settings, Stack, Task, Unit
from frhsic_core.registry import PAPER_METHODS as METHODS
from frhsic_core.registry import SWEEP_DATASETS as DATASETS

__all__ = [
    "DATASETS", "EXPERIMENTS", "GRIDS", "METHODS", "PLANS", "PRESETS", "SPLITS", "experiment_for", "homes", "module_of",
    "plans_for", "query_modules", "settings", "smoke",
]  # fmt: skip

_PLAN = re.compile(r"^def plan(?:_(\w+))?\(", re.MULTILINE)
# ``frhsic run all`` runs these first, since others read their tables. The remaining modules follow by name.
_FIRST = ("main", "variants")
_QUERY = re.compile(r"^@query\b", re.MULTILINE)

PRESETS = ("smoke", "full")
#: The λ and the splits that the text of the paper names, and ours.
GRIDS = {
    "text": (0.1, 1.0, 10.0, 100.0, 500.0),
    "full": (0.01, 0.1, 0.5, 1.0, 5.0, 10.0, 50.0, 100.0, 500.0),
}
SPLITS = {"text": tuple(range(42, 47)), "full": tuple(range(42, 67))}
# The largest values of the settings of a unit in the preset ``smoke``, and the settings that are replaced.
_AT_MOST = {"n": 60, "draws": 4, "epochs": 60, "permutations": 19, "replications": 3, "studies": 1}
_INSTEAD = {"device": "cpu", "mode": "eager"}
# Values that make a unit read real data; units with S of several dimensions read Adult.
_REAL = {*DATASETS, "dimension"}


# Which experiments there are -----------------------------------------------------------------------------------------


@cache
def _sources() -> dict[str, str]:
    """Return the source text of every module of this folder by its dotted name."""
    root = Path(__file__).parent
    found = {}
    for path in sorted(root.rglob("*.py")):
        parts = path.relative_to(root).with_suffix("").parts
        text = path.read_text(encoding="utf-8")
        found[".".join((__name__, *parts)).removesuffix(".__init__")] = text
    return found


@cache
def homes() -> dict[str, str]:
    """Return the dotted module of every stored table by name, in the order in which ``frhsic run all`` runs them.

    Examples
    --------
    >>> homes()["multi_sensitive"]
    'frhsic_core.paper.experiments.equal_opportunity'
    """
    found = {}
    for module in sorted(_sources(), key=_rank):
        for name in _PLAN.findall(_sources()[module]):
            found[name or _short(module)] = module
    return found


def _short(module: str) -> str:
    return module.rpartition(".")[2]


def _rank(module: str) -> tuple[int, str]:
    name = _short(module)
    return (_FIRST.index(name) if name in _FIRST else len(_FIRST), name)


def query_modules() -> list[str]:
    """Return the dotted names of the modules that answer queries of the ledger."""
    return [module for module, text in _sources().items() if _QUERY.search(text)]


def module_of(name: str) -> ModuleType | SimpleNamespace:
    """Return ``plan``, ``measure`` and ``measure_unit`` of a table as attributes of one object.

    Examples
    --------
    >>> module_of("transfer").__name__
    'frhsic_core.paper.experiments.transfer'
    >>> module_of("multi_sensitive").plan.__name__
    'plan_multi_sensitive'
    """
    module = import_module(homes().get(name, f"{__name__}.{name}"))
    parts = {
        part: getattr(module, f"{part}_{name}", None)
        for part in ("plan", "measure", "measure_unit")
    }
    return SimpleNamespace(**parts) if parts["plan"] else module


# Their plans by name and size -----------------------------------------------------------------------------------------


def settings(**values: object) -> Settings:
    """Return settings of a penalty as they stand in a plan.

    Examples
    --------
    >>> settings(estimator="biased", scale=None)
    (('estimator', 'biased'), ('scale', None))
    """
    return tuple(values.items())


def smoke(experiment: Experiment) -> Experiment:
    """Return a version of an experiment that runs in seconds and needs no data.

    Methods, options and protocols of stacks stay, on 600 rows of the synthetic law; Unfair is added where the
    experiment takes it from the main sweep. Units have small numbers, and one is kept where it has a text that none
    before it has.
    """
    jobs: dict[Job, None] = {}
    seen: set[Any] = set()
    for job in experiment.jobs:
        if isinstance(job, Stack):
            small = _small_recipe(job.recipe)
            unfair = replace(small, method="unfair", option="", settings=(), network=())
            jobs[Stack(unfair, (0.0,), (42, 43))] = None
            if small.method != "unfair":
                jobs[Stack(small, (1.0, 100.0), (42, 43))] = None
        else:
            unit = _small_unit(job)
            texts = {value for _, value in unit.settings if isinstance(value, str)}
            if texts - seen and not texts & _REAL:
                jobs[unit] = None
                seen |= texts
    return Experiment(f"{experiment.name}_smoke", tuple(jobs))


def _small_recipe(recipe: Recipe) -> Recipe:
    several = "sensitive" in dict(recipe.task.options)
    options = settings(n=600, sensitive=("s", "x2")) if several else settings(n=600)
    return replace(recipe, task=Task("synthetic", "text", recipe.task.protocol, options), epochs=2)


def _small_unit(unit: Unit) -> Unit:
    named = {"n": _AT_MOST["n"], **dict(unit.settings)}
    named |= {name: min(named[name], most) for name, most in _AT_MOST.items() if name in named}
    named |= {name: value for name, value in _INSTEAD.items() if name in named}
    if named.get("dataset") in DATASETS:
        named["dataset"] = "synthetic"
    return replace(unit, settings=tuple(named.items()))


#: The tables of each experiment, and the plan of each table, imported when it is called.
EXPERIMENTS: dict[str, tuple[str, ...]] = {
    name: tuple(tables)
    for name, tables in groupby(homes(), key=lambda table: _short(homes()[table]))
}
PLANS: dict[str, Callable[[], Experiment]] = {
    name: partial(lambda key: module_of(key).plan(), name) for name in homes()
}


def plans_for(name: str, preset: str = "full", **restriction: Any) -> list[Experiment]:
    """Return the plans of all tables of an experiment, or the plan of the one table that is named.

    ``restriction`` is passed to :func:`experiment_for`. Tables that cannot be restricted in this way are left out, as
    long as one table can.

    Examples
    --------
    >>> [plan.name for plan in plans_for("main")], [plan.name for plan in plans_for("main", datasets=("compas",))]
    (['main', 'live'], ['main'])
    """
    plans = []
    errors = []
    for table in EXPERIMENTS.get(name, (name,)):
        try:
            plans.append(experiment_for(table, preset, **restriction))
        except ValueError as error:
            errors.append(error)
    if not plans:
        raise errors[0]
    return plans


def experiment_for(
    name: str,
    preset: str = "full",
    *,
    protocols: tuple[str, ...] | None = None,
    datasets: tuple[str, ...] | None = None,
    methods: tuple[str, ...] | None = None,
    splits: int | None = None,
) -> Experiment:
    """Return the plan of a table in a preset, restricted to the stacks of some protocols, datasets, methods or splits.

    Models that a smaller selection trained are not trained again by a larger one.

    Examples
    --------
    >>> len(experiment_for("main", "full", protocols=("reference",), splits=5).keys())
    1920
    """
    if name not in PLANS:
        close = difflib.get_close_matches(name, [*EXPERIMENTS, *PLANS], n=1)
        hint = f" Did you mean {close[0]!r}?" if close else ""
        raise ValueError(
            f"There is no experiment {name!r}.{hint} There are: {', '.join(EXPERIMENTS)}."
        )
    if preset not in PRESETS:
        raise ValueError(f"preset is {preset!r}: choose one of {', '.join(PRESETS)}.")
    experiment = smoke(PLANS[name]()) if preset == "smoke" else PLANS[name]()
    if not (protocols or datasets or methods or splits is not None):
        return experiment
    stacks = [job for job in experiment.jobs if isinstance(job, Stack)]
    chosen = stacks
    for what, asked, label in (
        ("protocol", protocols, lambda stack: stack.recipe.task.protocol),
        ("dataset", datasets, lambda stack: stack.recipe.task.dataset),
        ("method", methods, lambda stack: stack.recipe.method),
    ):
        known = {label(stack) for stack in stacks}
        unknown = sorted(set(asked or ()) - known)
        if unknown:
            there = ", ".join(sorted(known)) or "none, since it trains no models"
            raise ValueError(
                f"{name} ({preset}) has no {what} {', '.join(unknown)}: it has {there}."
            )
        chosen = [stack for stack in chosen if not asked or label(stack) in asked]
    most = max((len(stack.splits) for stack in stacks), default=0)
    if splits is not None and not 1 <= splits <= most:
        raise ValueError(
            f"splits is {splits}: {name} ({preset}) has {f'1 to {most}' if most else 'none'}."
        )
    return replace(
        experiment, jobs=tuple(replace(stack, splits=stack.splits[:splits]) for stack in chosen)
    )
