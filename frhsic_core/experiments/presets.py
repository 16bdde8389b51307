"""The experiments by name and size: ``smoke`` (seconds), ``text`` (as the paper states), ``full`` (everything)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from frhsic_core.experiments.plan import Experiment, Task

__all__ = ["DATASETS", "EXPERIMENTS", "GRIDS", "METHODS", "PRESETS", "experiment_for"]

PRESETS = ("smoke", "text", "full")
METHODS = ("unfair", "frhsic", "frem", "reg_gdp", "adv", "mmd_binned", "laftr", "dcor")
# Cheap ones first, so that a first sitting brings most of the table.
DATASETS = ("crime", "compas", "meps", "acs_income", "adult")
GRIDS = {
    "text": (0.1, 1.0, 10.0, 100.0, 500.0),
    "full": (0.01, 0.1, 0.5, 1.0, 5.0, 10.0, 50.0, 100.0, 500.0),
}
SPLITS = {"text": tuple(range(42, 47)), "full": tuple(range(42, 67))}


def main_experiment(preset: str) -> Experiment:
    """Main table, Pareto summary and frontiers: eight methods on five datasets.

    ``full`` trains the reference protocol on the reference's data, Crime also with the other attribute in each
    protocol, then the text's protocol on the text's data.
    """
    if preset == "smoke":
        tasks = tuple(Task("synthetic", "text", protocol, (("n", 600),)) for protocol in ("text", "reference"))
        return Experiment("main_smoke", tasks, METHODS, (1.0, 100.0), (42, 43), epochs=3)
    text = tuple(Task(name, "text", "text") for name in DATASETS)
    if preset == "text":
        return Experiment("main", text, METHODS, GRIDS["text"], SPLITS["text"])
    reference = tuple(Task(name, "reference", "reference") for name in DATASETS)
    crossed = (Task("crime", "text", "reference"), Task("crime", "reference", "text"))
    return Experiment("main", (*reference, *crossed, *text), METHODS, GRIDS["full"], SPLITS["full"])


def live_experiment(preset: str) -> Experiment:
    """Two methods on the synthetic law, small enough for a reader's laptop: what the chapters' live cells repeat."""
    task = Task("synthetic", "text", "reference", (("n", 2000),))
    if preset == "smoke":
        return Experiment("live_smoke", (task,), ("unfair", "frhsic"), (10.0,), (42, 43), epochs=2)
    return Experiment("live", (task,), ("unfair", "frhsic"), (1.0, 10.0), SPLITS["full"], epochs=40)


EXPERIMENTS: dict[str, Callable[[str], Experiment]] = {"main": main_experiment, "live": live_experiment}


def experiment_for(
    name: str,
    preset: str = "full",
    *,
    protocols: tuple[str, ...] | None = None,
    datasets: tuple[str, ...] | None = None,
    methods: tuple[str, ...] | None = None,
    splits: int | None = None,
) -> Experiment:
    """Return an experiment in a preset, cut down to some protocols, datasets, methods or the first few splits.

    What a smaller cut trained, a larger one does not train again.

    Examples
    --------
    >>> len(experiment_for("main", "full", protocols=("reference",), splits=5).keys())
    1920
    """
    if name not in EXPERIMENTS:
        raise ValueError(f"There is no experiment {name!r}: choose one of {', '.join(EXPERIMENTS)}.")
    if preset not in PRESETS:
        raise ValueError(f"preset is {preset!r}: choose one of {', '.join(PRESETS)}.")
    experiment = EXPERIMENTS[name](preset)
    tasks = tuple(
        task
        for task in experiment.tasks
        if (not protocols or task.protocol in protocols) and (not datasets or task.dataset in datasets)
    )
    chosen = tuple(method for method in experiment.methods if not methods or method in methods)
    for what, asked, known in (
        ("protocol", protocols, {task.protocol for task in experiment.tasks}),
        ("dataset", datasets, {task.dataset for task in experiment.tasks}),
        ("method", methods, set(experiment.methods)),
    ):
        unknown = sorted(set(asked or ()) - known)
        if unknown:
            raise ValueError(
                f"{name} ({preset}) has no {what} {', '.join(unknown)}: it has {', '.join(sorted(known))}."
            )
    if splits is not None and not 1 <= splits <= len(experiment.splits):
        raise ValueError(f"splits is {splits}: {name} ({preset}) has 1 to {len(experiment.splits)}.")
    return replace(experiment, tasks=tasks, methods=chosen, splits=experiment.splits[:splits])
