"""Run one job: train and evaluate a stack of models, or measure a unit of a study."""

from __future__ import annotations

import math
import time
import warnings
from datetime import UTC, datetime
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from frhsic_core.paper.experiments import module_of
from frhsic_core.paper.runs.plan import Job, Settings, Stack, Unit
from frhsic_core.paper.runs.provenance import environment
from frhsic_core.paper.runs.store import Part, rows_of_models

if TYPE_CHECKING:
    from frhsic_core.data.dataset import Dataset
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


# The stacks of a task come one after the other, so a process keeps the data of its last job.
@lru_cache(maxsize=1)
def loaded(dataset: str, variant: str, options: Settings) -> Dataset:
    """Return the data of a task."""
    from frhsic_core.paper.datasets import load_variant

    return load_variant(dataset, variant, **dict(options))


@lru_cache(maxsize=1)
def splits_of(
    dataset: str, variant: str, options: Settings, seeds: tuple[int, ...], fractions: tuple[float, ...], device: str
) -> SplitStack:
    """Return splits of the data of a task, on the device."""
    from frhsic_core.paper.splits import stack_splits

    return stack_splits(loaded(dataset, variant, options), seeds=seeds, fractions=fractions, device=device)


def run_job(job: Job, *, device: str, deadline: float = math.inf) -> Part:
    """Run one job, train a stack or measure a unit, and return its rows with their provenance.

    A stack is stopped with :class:`OutOfTime` when ``time.monotonic()`` will pass ``deadline`` before its end. A unit
    cannot be stopped.
    """
    return _measure(job, device) if isinstance(job, Unit) else _train(job, device, deadline)


def _measure(unit: Unit, device: str) -> Part:
    begin = time.perf_counter()
    settings = dict(unit.settings)
    rows = [{**settings, **row} for row in module_of(unit.module).measure_unit(dict(settings), device)]
    seconds = round(time.perf_counter() - begin, 3)
    provenance = {"finished": _now(), "seconds": seconds, "environment": environment(device), "rows": len(rows)}
    return Part(unit, pd.DataFrame(rows), provenance)


def _train(job: Stack, device: str, deadline: float) -> Part:
    from frhsic_core.learning import Trainer, make_penalty
    from frhsic_core.paper.datasets import as_dict
    from frhsic_core.paper.runs.metrics import evaluate

    recipe = job.recipe
    task = recipe.task
    source = (task.dataset, task.variant, task.options)
    data = loaded(*source)
    splits = splits_of(*source, job.splits, recipe.fractions, device)
    lams, seeds_of_splits, seeds = zip(*job.models, strict=True)
    begin = time.perf_counter()

    def is_late(progress: Any) -> bool:
        # After a tenth of the epochs their rate is known, so a stack that will be late is stopped early.
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
            dataset=[job.splits.index(seed) for seed in seeds_of_splits],
            task=splits.task,
            protocol=task.protocol,
            epochs=recipe.epochs,
            batch_size=recipe.batch_size,
            learning_rate=recipe.learning_rate,
            device=device,
            **dict(recipe.network),
        )
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
        "environment": environment(device),
        "data": as_dict(data.provenance),
        "penalty": trainer.penalty.settings(),
    }
    return Part(job, rows_of_models(job, labels, metrics), provenance)


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")
