"""The experiments by name and size: ``smoke`` (seconds), ``text`` (as the paper states), ``full`` (everything)."""

from __future__ import annotations

import difflib
from collections.abc import Callable
from dataclasses import replace

from frhsic_core.paper.experiments import module_of
from frhsic_core.paper.runs.plan import Experiment, Task
from frhsic_core.paper.runs.study import Study

__all__ = ["DATASETS", "EXPERIMENTS", "GRIDS", "METHODS", "PRESETS", "experiment_for"]

PRESETS = ("smoke", "text", "full")
METHODS = ("unfair", "frhsic", "frem", "reg_gdp", "adv", "mmd_binned", "laftr", "dcor")
# Cheap ones first, so that a first sitting brings most of the table.
DATASETS = ("crime", "compas", "meps", "acs_income", "adult")
GRIDS = {
    "text": (0.1, 1.0, 10.0, 100.0, 500.0),
    "full": (0.01, 0.1, 0.5, 1.0, 5.0, 10.0, 50.0, 100.0, 500.0),
}
MODULES: tuple[str, ...] = (
    "variants",
    "variants_best",
    "variants_live",
    "minority",
    "equal_opportunity",
    "multi_sensitive",
    "lambda_selection",
    "lambda_levels",
    "synthetic",
    "ablation",
    "transfer",
    "mutual_information",
    "runtime",
    "runtime_cpu",
    "convergence",
    "high_dimensional",
    "bound_tightness",
    "bandwidth_scaling",
    "parity_gap_bounds",
    "bandwidth_policies",
    "reference_check",
    "training_step",
)
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


def _from(module: str) -> Callable[[str], Experiment | Study]:
    """Take the experiment of a module, ``plan(preset)``; the module is imported when it is asked for."""

    def build(preset: str) -> Experiment | Study:
        return module_of(module).plan(preset)

    return build


# Every other experiment is a module of the catalogue: its plan, and what it measures.
EXPERIMENTS: dict[str, Callable[[str], Experiment | Study]] = {"main": main_experiment, "live": live_experiment} | {
    name: _from(name) for name in MODULES
}


def experiment_for(
    name: str,
    preset: str = "full",
    *,
    protocols: tuple[str, ...] | None = None,
    datasets: tuple[str, ...] | None = None,
    methods: tuple[str, ...] | None = None,
    splits: int | None = None,
) -> Experiment | Study:
    """Return an experiment in a preset, cut down to some protocols, datasets, methods or the first few splits.

    What a smaller cut trained, a larger one does not train again.

    Examples
    --------
    >>> len(experiment_for("main", "full", protocols=("reference",), splits=5).keys())
    1920
    """
    if name not in EXPERIMENTS:
        close = difflib.get_close_matches(name, EXPERIMENTS, n=1)
        hint = f" Did you mean {close[0]!r}?" if close else ""
        raise ValueError(f"There is no experiment {name!r}.{hint} There are: {', '.join(EXPERIMENTS)}.")
    if preset not in PRESETS:
        raise ValueError(f"preset is {preset!r}: choose one of {', '.join(PRESETS)}.")
    experiment = EXPERIMENTS[name](preset)
    if isinstance(experiment, Study):
        if protocols or datasets or methods or splits is not None:
            raise ValueError(f"{name} is a study of {len(experiment.units)} units: it is run as a whole.")
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
