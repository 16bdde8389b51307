"""Run one job: train and evaluate a stack of models, or measure a unit of a study."""

from __future__ import annotations

import math
import time
import warnings
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from frhsic_core.paper.experiments import module_of
from frhsic_core.paper.runs.plan import Job, Task, Unit
from frhsic_core.paper.runs.provenance import environment
from frhsic_core.paper.runs.store import Part, rows_of_models

if TYPE_CHECKING:
    from frhsic_core.data.dataset import Dataset
    from frhsic_core.learning import Trainer
    from frhsic_core.paper.splits import SplitStack


class OutOfTime(Exception):
    """The job cannot be finished in time and was stopped."""


def resolved_device(device: str) -> str:
    """Return the device to train on; ``"auto"`` is CUDA if there is a GPU.

    Raises
    ------
    ValueError
        If torch cannot use the device on this machine.

    Examples
    --------
    >>> resolved_device("cpu")
    'cpu'
    """
    import torch

    if device == "auto":
        return "cuda" if torch.cuda.is_available() else "cpu"
    try:
        torch.empty(1, device=device)
    except Exception as error:  # each kind of device raises its own error
        first = (str(error).splitlines() or [type(error).__name__])[0]
        raise ValueError(
            f"device is {device!r}, which cannot be used on this machine ({first}): choose auto, cpu or cuda, or for "
            "one GPU of several cuda:0, cuda:1 and so on."
        ) from None
    return device


def set_threads(threads: int) -> None:
    """Set the number of CPU threads of torch."""
    if threads < 1:
        raise ValueError(f"threads is {threads}: at least one is needed.")
    import torch

    torch.set_num_threads(threads)


class Samples:
    """Load and split data, and keep the last task, since the stacks of a task come one after the other."""

    def __init__(self, device: str) -> None:
        self.device = device
        self._loaded: tuple[Any, Dataset] | None = None
        self._split: tuple[Any, SplitStack] | None = None

    def dataset(self, task: Task) -> Dataset:
        """Return the data of a task."""
        from frhsic_core.paper.datasets import load_variant

        key = (task.dataset, task.variant, task.options)
        if self._loaded is None or self._loaded[0] != key:
            self._loaded = (key, load_variant(task.dataset, task.variant, **dict(task.options)))
        return self._loaded[1]

    def splits(self, job: Job) -> SplitStack:
        """Return the splits of a stack, on the device."""
        from frhsic_core.paper.splits import stack_splits

        task = job.recipe.task
        data = self.dataset(task)
        key = (task.dataset, task.variant, task.options, job.splits, job.recipe.fractions)
        if self._split is None or self._split[0] != key:
            self._split = None  # frees the memory of the old splits first
            stack = stack_splits(data, seeds=job.splits, fractions=job.recipe.fractions, device=self.device)
            self._split = (key, stack)
        return self._split[1]


def run_job(
    job: Job | Unit, *, device: str = "auto", samples: Samples | None = None, deadline: float = math.inf
) -> Part:
    """Run one job and return its rows with their provenance.

    Parameters
    ----------
    job : Job or Unit
        A stack to train, or a unit to measure.
    device : str
        Device to use if ``samples`` is not given; ``"auto"`` is CUDA if there is a GPU.
    samples : Samples, optional
        Keeps the data of the last task between jobs.
    deadline : float
        A stack is stopped with :class:`OutOfTime` when ``time.monotonic()`` will pass this value before its end. A unit
        cannot be stopped.
    """
    samples = samples or Samples(resolved_device(device))
    return _measure(job, samples.device) if isinstance(job, Unit) else _train(job, samples, deadline)


def _measure(unit: Unit, device: str) -> Part:
    begin = time.perf_counter()
    settings = dict(unit.settings)
    rows = [{**settings, **row} for row in module_of(unit.module).measure_unit(dict(settings), device)]
    seconds = round(time.perf_counter() - begin, 3)
    provenance = {"finished": _now(), "seconds": seconds, "environment": environment(device), "rows": len(rows)}
    return Part(unit, pd.DataFrame(rows), provenance)


def trainer_of(job: Job, splits: SplitStack, *, device: str) -> Trainer:
    """Return the trainer of a stack; the splits are those of the job, in its order."""
    from frhsic_core.learning import Trainer, make_penalty

    recipe = job.recipe
    index_of = {split: i for i, split in enumerate(job.splits)}
    lams, split_of, seeds = zip(*job.models, strict=True)
    return Trainer(
        splits.x_train,
        splits.y_train,
        splits.s_train if recipe.method != "unfair" else None,
        penalty=make_penalty(recipe.method, protocol=recipe.task.protocol, **dict(recipe.settings)),
        lam=list(lams),
        seeds=list(seeds),
        dataset=[index_of[split] for split in split_of],
        task=splits.task,
        protocol=recipe.task.protocol,
        epochs=recipe.epochs,
        batch_size=recipe.batch_size,
        learning_rate=recipe.learning_rate,
        device=device,
        **dict(recipe.network),
    )


def _train(job: Job, samples: Samples, deadline: float) -> Part:
    from frhsic_core.paper.datasets import as_dict
    from frhsic_core.paper.runs.metrics import evaluate

    recipe = job.recipe
    task = recipe.task
    data = samples.dataset(task)
    splits = samples.splits(job)
    begin = time.perf_counter()

    def is_late(progress: Any) -> bool:
        # After a tenth of the epochs their rate is known, so a stack that will be late is stopped early.
        known = progress.epoch >= max(2, progress.epochs // 10)
        return time.monotonic() + (progress.seconds_left if known else 0.0) > deadline

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        trainer = trainer_of(job, splits, device=samples.device)
        trained = trainer.fit(callback=is_late if deadline < math.inf else None)
    if trainer.epoch < recipe.epochs:
        raise OutOfTime(f"{job}: stopped at the time limit after {trainer.epoch} of {recipe.epochs} epochs.")
    training = time.perf_counter() - begin
    metrics: dict[str, Any] = dict(evaluate(trained, splits))
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
    provenance = {
        "finished": _now(),
        "seconds_training": round(training, 3),
        "seconds_evaluation": round(time.perf_counter() - begin - training, 3),
        "notes": sorted({f"{w.category.__name__}: {str(w.message)[:300]}" for w in caught}),
        "environment": environment(samples.device),
        "data": as_dict(data.provenance),
        "penalty": trainer.penalty.settings(),
    }
    return Part(job, rows_of_models(job, labels, metrics), provenance)


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")
