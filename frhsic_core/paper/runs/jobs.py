"""Run one job: train and evaluate a stack of models, or measure a unit of a study; say by which code, and where."""

from __future__ import annotations

import hashlib
import importlib.metadata
import math
import platform
import subprocess
import time
import warnings
from datetime import UTC, datetime
from functools import cache, lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

import frhsic_core
from frhsic_core.paper.experiments import module_of
from frhsic_core.paper.runs.plan import Job, Settings, Stack, Unit
from frhsic_core.paper.runs.store import Part, rows_of_models

if TYPE_CHECKING:
    from frhsic_core.data.dataset import Dataset
    from frhsic_core.paper.splits import SplitStack


# The sources that decide the numbers of a trained model. A change of a figure or of a command is not a new version.
_LAYERS = (
    "arrays.py",
    "kernels.py",
    "joint",
    "conditional",
    "auditing",
    "learning",
    "data",
    "paper/runs/metrics.py",
)
_LIBRARIES = ("torch", "numpy", "scipy", "scikit-learn", "pandas")


class OutOfTime(Exception):
    """The job cannot be finished in time and was stopped."""


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


@cache
def code_version() -> str:
    """Return the version, a hash of the sources that decide the numbers and, in a git repository, the commit.

    The hash is that of the source text, so it is the same for an installed package, a clone and a copy.
    """
    root = Path(frhsic_core.__file__).parent
    digest = hashlib.sha256()
    for layer in _LAYERS:
        path = root / layer
        files = [path] if path.is_file() else sorted(path.rglob("*.py"))
        for file in files:
            digest.update(file.relative_to(root).as_posix().encode() + b"\0" + file.read_bytes())
    commit = _commit(root)
    return f"{frhsic_core.__version__}+{digest.hexdigest()[:12]}" + (f" ({commit})" if commit else "")


def _commit(root: Path) -> str:
    command = ["git", "-C", str(root), "describe", "--always", "--dirty", "--abbrev=12"]
    try:
        return subprocess.run(command, capture_output=True, text=True, timeout=10).stdout.strip()
    except (OSError, subprocess.SubprocessError):
        return ""


def environment(device: str) -> dict[str, str]:
    """Return the versions of the code, of Python and of the libraries, and the name of the device."""
    versions = {name: importlib.metadata.version(name) for name in _LIBRARIES}
    return {"code": code_version(), "python": platform.python_version(), **versions, "device": _device_name(device)}


def _device_name(device: str) -> str:
    if device.startswith("cuda"):
        import torch

        return torch.cuda.get_device_name(device)
    return f"{device} ({platform.machine()})"
