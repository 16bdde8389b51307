"""The experiments by name and size: ``smoke`` (seconds) or ``full`` (everything)."""

from __future__ import annotations

import difflib
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

from frhsic_core.paper.experiments import homes, module_of, tables_by_experiment
from frhsic_core.paper.runs.plan import Experiment, Settings, Study, Task
from frhsic_core.registry import PAPER_METHODS as METHODS
from frhsic_core.registry import SWEEP_DATASETS as DATASETS

__all__ = [
    "DATASETS", "EXPERIMENTS", "GRIDS", "METHODS", "PLANS", "PRESETS", "SPLITS", "experiment_for", "plans_for",
    "settings", "smoke",
]  # fmt: skip

PRESETS = ("smoke", "full")
#: The λ and the splits that the text of the paper names, and ours.
GRIDS = {"text": (0.1, 1.0, 10.0, 100.0, 500.0), "full": (0.01, 0.1, 0.5, 1.0, 5.0, 10.0, 50.0, 100.0, 500.0)}
SPLITS = {"text": tuple(range(42, 47)), "full": tuple(range(42, 67))}


def settings(**values: object) -> Settings:
    """Return settings of a penalty as they stand in a plan.

    Examples
    --------
    >>> settings(estimator="biased", scale=None)
    (('estimator', 'biased'), ('scale', None))
    """
    return tuple(values.items())


def smoke(
    experiment: Experiment, *, lams: tuple[float, ...] = (1.0, 100.0), epochs: int = 2, n: int = 600, **options: object
) -> Experiment:
    """Return a version of an experiment that trains in seconds, on ``n`` rows of the synthetic law.

    Methods, settings and protocols stay. ``options`` are further arguments of ``load_dataset``. Unfair is added where
    the experiment takes it from the main sweep.
    """
    name = f"{experiment.name}_smoke"
    data = (("n", n), *options.items())
    parts = [replace(experiment, also=()), *experiment.also]
    if not any("unfair" in part.methods for part in parts):
        parts.insert(0, replace(parts[0], methods=("unfair",), options=(("", ()),), network=()))
    small = [
        replace(
            part,
            name=name,
            tasks=tuple(dict.fromkeys(Task("synthetic", "text", task.protocol, data) for task in part.tasks)),
            lams=lams,
            splits=(42, 43),
            epochs=epochs,
        )
        for part in parts
    ]
    return replace(small[0], also=tuple(small[1:]))


def _plan(name: str, preset: str) -> Experiment | Study:
    """Return the plan of a table, whose module is imported now."""
    plan: Experiment | Study = module_of(name).plan(preset)
    return plan


#: The tables of each experiment, and the plan of each table.
EXPERIMENTS: dict[str, tuple[str, ...]] = tables_by_experiment()
PLANS: dict[str, Callable[[str], Experiment | Study]] = {name: partial(_plan, name) for name in homes()}


def plans_for(name: str, preset: str = "full", **restriction: Any) -> list[Experiment | Study]:
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
) -> Experiment | Study:
    """Return the plan of a table in a preset, restricted to some protocols, datasets, methods or splits.

    Models that a smaller selection trained are not trained again by a larger one.

    Examples
    --------
    >>> len(experiment_for("main", "full", protocols=("reference",), splits=5).keys())
    1920
    """
    if name not in PLANS:
        close = difflib.get_close_matches(name, [*EXPERIMENTS, *PLANS], n=1)
        hint = f" Did you mean {close[0]!r}?" if close else ""
        raise ValueError(f"There is no experiment {name!r}.{hint} There are: {', '.join(EXPERIMENTS)}.")
    if preset not in PRESETS:
        raise ValueError(f"preset is {preset!r}: choose one of {', '.join(PRESETS)}.")
    experiment = PLANS[name](preset)
    if isinstance(experiment, Study):
        if protocols or datasets or methods or splits is not None:
            raise ValueError(
                f"{name} has {len(experiment.units)} units that are measured together: it cannot be restricted to some "
                "protocols, datasets, methods or splits."
            )
        return experiment
    parts = (replace(experiment, also=()), *experiment.also)
    for what, asked, known in (
        ("protocol", protocols, {task.protocol for part in parts for task in part.tasks}),
        ("dataset", datasets, {task.dataset for part in parts for task in part.tasks}),
        ("method", methods, {method for part in parts for method in part.methods}),
    ):
        unknown = sorted(set(asked or ()) - known)
        if unknown:
            raise ValueError(
                f"{name} ({preset}) has no {what} {', '.join(unknown)}: it has {', '.join(sorted(known))}."
            )
    most = max(len(part.splits) for part in parts)
    if splits is not None and not 1 <= splits <= most:
        raise ValueError(f"splits is {splits}: {name} ({preset}) has 1 to {most}.")

    def cut(part: Experiment) -> Experiment:
        tasks = tuple(
            task
            for task in part.tasks
            if (not protocols or task.protocol in protocols) and (not datasets or task.dataset in datasets)
        )
        chosen = tuple(method for method in part.methods if not methods or method in methods)
        return replace(part, tasks=tasks, methods=chosen, splits=part.splits[:splits])

    first, *others = map(cut, parts)
    return replace(first, also=tuple(others))
