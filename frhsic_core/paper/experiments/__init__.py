"""The experiments: one module or folder for each chapter that reports measurements.

A module holds a whole experiment: its plan, what it measures, its tables, and the queries of the
ledger that it answers. A folder is used where one file would be too long: the plan and the
measurement stand in ``__init__``, and calculations in a module named after them. ``comparison`` has
what several experiments need.

``EXPERIMENTS`` lists the experiments and the stored tables of each. An experiment has the name of its
module. ``def plan()`` plans the table that has the same name, ``def plan_NAME()`` the table NAME;
``measure`` and ``measure_unit`` are named in the same way. A module is imported when its plan is
needed. Plans and the keys of stored rows contain the name of a table, and ``module_of`` turns it into
code. ``experiment_for`` gives the plan of a table by name and size: ``full`` (everything) or
``smoke`` (seconds).
"""

from __future__ import annotations

import difflib
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from importlib import import_module
from types import ModuleType, SimpleNamespace
from typing import Any

from frhsic_core.paper.runs.plan import Experiment, Job, Recipe, Settings, Stack, Task, Unit
from frhsic_core.registry import PAPER_METHODS as METHODS
from frhsic_core.registry import SWEEP_DATASETS as DATASETS

__all__ = [
    "DATASETS",
    "EXPERIMENTS",
    "GRIDS",
    "METHODS",
    "PLANS",
    "PRESETS",
    "SPLITS",
    "experiment_for",
    "module_of",
    "modules",
    "plans_for",
    "settings",
    "smoke",
]

#: The stored tables of each experiment. ``frhsic run all`` runs them in this order: others read the
#: tables of the first two, and the remaining ones stand in the order of their names.
EXPERIMENTS: dict[str, tuple[str, ...]] = {
    "main": ("main", "live"),
    "variants": (
        "variants_best",
        "recommended_search",
        "recommended_test",
        "rival_search",
        "rival_test",
    ),
    "audit_examples": ("audit_examples",),
    "bound_tightness": ("bound_tightness", "bandwidth_scaling", "held_out_bounds"),
    "convergence": ("convergence",),
    "cost": ("cost_cpu", "cost_gpu"),
    "equal_opportunity": ("equal_opportunity", "multi_sensitive"),
    "lambda_selection": ("lambda_selection",),
    "levels_and_coverage": ("levels_and_power", "audit_coverage", "bound_coverage"),
    "matched_points": ("simple_remedies",),
    "mutual_information": ("mutual_information",),
    "peers": ("peers",),
    "promises": ("promises", "promises_in_time"),
    "remedies": ("remedies",),
    "running_example": ("running_example",),
    "synthetic_validation": ("synthetic", "ablation"),
    "transfer": ("transfer",),
}
# The experiment of each stored table.
_HOMES = {table: name for name, tables in EXPERIMENTS.items() for table in tables}

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


# Their code by name ---------------------------------------------------------------------------------------------------


def modules() -> list[ModuleType]:
    """Return the modules of all experiments; those that answer queries of the ledger then have done so."""
    return [import_module(f"{__name__}.{name}") for name in EXPERIMENTS]


def module_of(name: str) -> ModuleType | SimpleNamespace:
    """Return ``plan``, ``measure`` and ``measure_unit`` of a table as attributes of one object.

    Examples
    --------
    >>> module_of("transfer").__name__
    'frhsic_core.paper.experiments.transfer'
    >>> module_of("multi_sensitive").plan.__name__
    'plan_multi_sensitive'
    """
    module = import_module(f"{__name__}.{_HOMES.get(name, name)}")
    if not hasattr(module, f"plan_{name}"):
        return module
    parts = ("plan", "measure", "measure_unit")
    return SimpleNamespace(**{part: getattr(module, f"{part}_{name}", None) for part in parts})


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
    options = settings(n=600)
    if "sensitive" in dict(recipe.task.options):  # an attribute of several columns
        options = settings(n=600, sensitive=("s", "x2"))
    return replace(recipe, task=Task("synthetic", "text", recipe.task.protocol, options), epochs=2)


def _small_unit(unit: Unit) -> Unit:
    named = {"n": _AT_MOST["n"], **dict(unit.settings)}
    for name in _AT_MOST.keys() & named.keys():
        named[name] = min(named[name], _AT_MOST[name])
    for name in _INSTEAD.keys() & named.keys():
        named[name] = _INSTEAD[name]
    if named.get("dataset") in DATASETS:
        named["dataset"] = "synthetic"
    return replace(unit, settings=tuple(named.items()))


def _plan_of(table: str) -> Experiment:
    return module_of(table).plan()


#: The plan of each table. Its module is imported when the plan is called.
PLANS: dict[str, Callable[[], Experiment]] = {table: partial(_plan_of, table) for table in _HOMES}


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
    experiment = PLANS[name]()
    if preset == "smoke":
        experiment = smoke(experiment)
    if not (protocols or datasets or methods or splits is not None):
        return experiment
    stacks = [job for job in experiment.jobs if isinstance(job, Stack)]
    chosen = stacks
    for what, asked, label in (
        ("protocol", protocols, _protocol_of),
        ("dataset", datasets, _dataset_of),
        ("method", methods, _method_of),
    ):
        known = {label(stack) for stack in stacks}
        unknown = sorted(set(asked or ()) - known)
        if unknown:
            there = ", ".join(sorted(known)) or "none, since it trains no models"
            raise ValueError(
                f"{name} ({preset}) has no {what} {', '.join(unknown)}: it has {there}."
            )
        if asked:
            chosen = [stack for stack in chosen if label(stack) in asked]
    if splits is not None:
        most = max((len(stack.splits) for stack in stacks), default=0)
        if not 1 <= splits <= most:
            there = f"1 to {most}" if most else "none"
            raise ValueError(f"splits is {splits}: {name} ({preset}) has {there}.")
        chosen = [replace(stack, splits=stack.splits[:splits]) for stack in chosen]
    return replace(experiment, jobs=tuple(chosen))


def _protocol_of(stack: Stack) -> str:
    return stack.recipe.task.protocol


def _dataset_of(stack: Stack) -> str:
    return stack.recipe.task.dataset


def _method_of(stack: Stack) -> str:
    return stack.recipe.method
