"""Training the stacks of an experiment one after the other, with resuming, a time limit and the time left."""

from __future__ import annotations

import gc
import math
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import numpy as np

from frhsic_core.paper.experiments import module_of
from frhsic_core.paper.runs.arriving import bring
from frhsic_core.paper.runs.devices import resolved_device
from frhsic_core.paper.runs.plan import Experiment, Job, Task
from frhsic_core.paper.runs.provenance import environment
from frhsic_core.paper.runs.store import Part, ResultStore

if TYPE_CHECKING:
    from frhsic_core.data.dataset import Dataset
    from frhsic_core.data.splits import SplitStack

__all__ = ["OutOfTime", "Report", "Samples", "in_one_line", "run_experiment", "run_job"]

# Rows of each dataset, and what a step of a method costs against one without a penalty: guesses for the time left only.
_ROWS = {"adult": 32561, "acs_income": 20000, "meps": 13707, "crime": 1994, "compas": 6172, "synthetic": 5000}
_COST = {
    "unfair": 1.0,
    "adv": 2.0,
    "laftr": 2.0,
    "frhsic": 4.0,
    "frem": 4.0,
    "reg_gdp": 1.5,
    "mmd_binned": 1.5,
    "dcor": 6.0,
}


class Samples:
    """Loads and splits data, keeping the last task: the stacks of a task come one after the other."""

    def __init__(self, device: str) -> None:
        self.device = device
        self._loaded: tuple[Any, Dataset] | None = None
        self._split: tuple[Any, SplitStack] | None = None

    def dataset(self, task: Task) -> Dataset:
        """Return the data of a task."""
        from frhsic_core.data import load_dataset

        key = (task.dataset, task.variant, task.options)
        if self._loaded is None or self._loaded[0] != key:
            self._loaded = (key, load_dataset(task.dataset, task.variant, **dict(task.options)))
        return self._loaded[1]

    def splits(self, job: Job) -> SplitStack:
        """Return the splits of a stack on the device."""
        from frhsic_core.data.splits import stack_splits

        data = self.dataset(job.recipe.task)
        key = (
            job.recipe.task.dataset,
            job.recipe.task.variant,
            job.recipe.task.options,
            job.splits,
            job.recipe.fractions,
        )
        if self._split is None or self._split[0] != key:
            self._split = None  # free the old ones first
            stack = stack_splits(data, seeds=job.splits, fractions=job.recipe.fractions, device=self.device)
            self._split = (key, stack)
        return self._split[1]


class OutOfTime(Exception):
    """The stack in flight cannot be finished in time and was abandoned."""


def run_job(job: Job, *, device: str = "auto", samples: Samples | None = None, deadline: float = math.inf) -> Part:
    """Train and evaluate one stack; raise :class:`OutOfTime` when ``time.monotonic()`` will pass ``deadline``."""
    from frhsic_core.learning import Trainer, make_penalty
    from frhsic_core.paper.runs.metrics import evaluate

    samples = samples or Samples(resolved_device(device))
    device = samples.device
    recipe, task = job.recipe, job.recipe.task
    data, splits = samples.dataset(task), samples.splits(job)
    where = {split: i for i, split in enumerate(job.splits)}
    lams, of_split, seeds = zip(*job.models, strict=True)
    begin = time.perf_counter()

    def watch(progress: Any) -> bool:
        # After a tenth of the epochs the rate is known: give up at once rather than at the end.
        known = progress.epoch >= max(2, progress.epochs // 10)
        return time.monotonic() + (progress.seconds_left if known else 0.0) > deadline

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        trainer = Trainer(
            splits.x_train,
            splits.y_train,
            splits.s_train if recipe.method != "unfair" else None,
            penalty=make_penalty(recipe.method, protocol=task.protocol, **dict(recipe.settings)),
            lam=list(lams),
            seeds=list(seeds),
            dataset=[where[split] for split in of_split],
            task=data.task,
            protocol=task.protocol,
            epochs=recipe.epochs,
            batch_size=recipe.batch_size,
            learning_rate=recipe.learning_rate,
            device=device,
            **dict(recipe.network),
        )
        trained = trainer.fit(callback=watch if deadline < math.inf else None)
    if trained.interrupted:
        raise KeyboardInterrupt
    if trainer.epoch < recipe.epochs:
        raise OutOfTime(f"{job}: no time left after {trainer.epoch} of {recipe.epochs} epochs.")
    training = time.perf_counter() - begin
    metrics = evaluate(trained, splits)
    if recipe.measure:
        more = module_of(recipe.measure).measure(trained, splits, data)
        metrics |= {name: np.asarray(values, dtype=np.float32) for name, values in more.items()}
    labels = {
        "dataset": task.dataset,
        "variant": task.variant,
        "sensitive": data.sensitive_name,
        "task": data.task,
        "protocol": task.protocol,
        "method": recipe.method,
        "option": recipe.option,
        "recipe": recipe.key,
    }
    from frhsic_core.data.dataset import as_dict

    provenance = {
        "finished": datetime.now(UTC).isoformat(timespec="seconds"),
        "seconds_training": round(training, 3),
        "seconds_evaluation": round(time.perf_counter() - begin - training, 3),
        "notes": sorted({f"{w.category.__name__}: {str(w.message)[:300]}" for w in caught}),
        "environment": environment(device),
        "data": as_dict(data.provenance),
        "penalty": trainer.penalty.settings(),
    }
    return Part(job, labels, metrics, provenance)


@dataclass
class Report:
    """What a run did: stacks trained, models in them, seconds, and what is left."""

    stacks: int = 0
    models: int = 0
    seconds_training: float = 0.0
    seconds_evaluation: float = 0.0
    left: int = 0
    stopped: str = ""
    failed: list[str] = field(default_factory=list)
    slowest: list[tuple[float, str]] = field(default_factory=list)
    interrupted: bool = False

    @property
    def exit_status(self) -> int:
        """0 if all is done, 3 if stacks are left, 4 if a stack failed, 130 if interrupted."""
        return 130 if self.interrupted else 4 if self.failed else 3 if self.left else 0

    def interrupt(self, what: str) -> None:
        """Note that Ctrl-C ended the run in the middle of a stack or unit."""
        self.interrupted = True
        self.stopped = f"interrupted; the {what} in flight is lost, finished ones are kept; run again to go on"

    def __str__(self) -> str:
        lines = [
            f"{self.stacks} stacks, {self.models} models: {self.seconds_training:.1f} s training, "
            f"{self.seconds_evaluation:.1f} s evaluation",
            f"{self.left} stacks left" + (f" ({self.stopped})" if self.stopped else ""),
        ]
        lines += [f"  {seconds:7.1f} s  {name}" for seconds, name in sorted(self.slowest, reverse=True)[:5]]
        return "\n".join([*lines, *(f"failed: {line}" for line in self.failed)])


def run_experiment(
    experiment: Experiment,
    store: ResultStore,
    *,
    device: str = "auto",
    minutes: float | None = None,
    say: Callable[[str], None] | None = None,
) -> Report:
    """Train what ``store`` lacks of ``experiment``; stop cleanly before ``minutes`` are over.

    Each stack is stored when it is finished; a run killed at any moment loses the stack in flight. Run again, it goes
    on; run after the end, it changes nothing. A second runner on the same store takes other stacks.

    Parameters
    ----------
    experiment : Experiment
        What to train.
    store : ResultStore
        Where to keep it; checked for writing first.
    device : str
        ``"auto"`` is CUDA where there is one.
    minutes : float, optional
        Wall-clock limit. A stack whose end would lie beyond it is abandoned early, and the run ends.
    say : callable, optional
        Is told a line for each stack.

    Returns
    -------
    Report
        Stacks, models and seconds.
    """
    deadline = math.inf if minutes is None else time.monotonic() + 60.0 * minutes
    say = say or (lambda line: None)
    jobs = experiment.missing(store.done())
    report, clock = Report(), _Clock(jobs)
    say(f"{experiment.name}: {len(jobs)} stacks, {sum(len(job.models) for job in jobs)} models to train")
    if not jobs:
        return report
    # What would fail every stack is said once, now.
    store.require_writable()
    samples = Samples(resolved_device(device))
    bring(((job.recipe.task.dataset, job.recipe.task.variant) for job in jobs), say=say)
    for job in jobs:
        if time.monotonic() + clock.expected(job) > deadline:
            report.stopped = "time limit"
            break
        with store.claim(job) as mine:
            if not mine or not set(job.keys) - store.done():
                say(f"{job}: another runner has it")
                clock.skipped(job)
                continue
            begin = time.monotonic()
            try:
                part = run_job(job, device=samples.device, samples=samples, deadline=deadline)
            except OutOfTime as error:
                report.stopped = "time limit"
                say(str(error))
                break
            except KeyboardInterrupt:
                report.interrupt("stack")
                break
            except Exception as error:  # one broken stack (a file that is not here, memory) must not cost the others
                report.failed.append(f"{job}: {in_one_line(error)}")
                say(f"failed: {report.failed[-1]}")
                clock.skipped(job)
                continue
            finally:
                _free(samples.device)
            store.write(part)
        spent = time.monotonic() - begin
        clock.finished(job, spent)
        report.stacks, report.models = report.stacks + 1, report.models + len(job.models)
        report.seconds_training += part.provenance["seconds_training"]
        report.seconds_evaluation += part.provenance["seconds_evaluation"]
        report.slowest.append((spent, str(job)))
        say(
            f"[{report.stacks}/{len(jobs)}] {job}: {part.provenance['seconds_training']:.1f} s training, "
            f"{part.provenance['seconds_evaluation']:.1f} s evaluation; {clock}"
        )
    report.left = len(experiment.missing(store.done()))
    return report


def in_one_line(error: BaseException, *, most: int = 400) -> str:
    """Return kind and words of an error on one line: what was tried and what to do often stand on later ones."""
    return f"{type(error).__name__}: {' '.join(str(error).split())}"[:most]


def _free(device: str) -> None:
    """Give a trainer's memory back: it and its captured graphs refer to each other, so only a collection frees them."""
    if device.startswith("cuda"):
        import torch

        gc.collect()
        torch.cuda.empty_cache()


class _Clock:
    """Guesses the time left from what finished stacks took and what the others should cost beside them."""

    def __init__(self, jobs: list[Job]) -> None:
        self.left = sum(map(_weight, jobs))
        self.done = 0.0
        self.seconds = 0.0

    def skipped(self, job: Job) -> None:
        self.left -= _weight(job)

    def finished(self, job: Job, seconds: float) -> None:
        self.skipped(job)
        self.done += _weight(job)
        self.seconds += seconds

    def expected(self, job: Job) -> float:
        """Half of the guess, so that a stack which may still fit is tried."""
        return 0.5 * _weight(job) * self.seconds / self.done if self.done else 0.0

    def __str__(self) -> str:
        seconds = self.left * self.seconds / self.done
        return f"about {seconds:.0f} s left" if seconds < 120 else f"about {seconds / 60:.0f} min left"


def _weight(job: Job) -> float:
    recipe = job.recipe
    rows = dict(recipe.task.options).get("n") or _ROWS.get(recipe.task.dataset, 10_000)
    steps = recipe.epochs * max(1.0, rows * recipe.fractions[0] / recipe.batch_size)
    # A step of a small stack costs its launches, of a large one its arithmetic.
    return steps * (40.0 + len(job.models) * _COST.get(recipe.method, 3.0) * recipe.batch_size / 256)
