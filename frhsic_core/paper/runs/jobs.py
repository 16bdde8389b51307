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
import torch
from torch import Tensor

import frhsic_core
from frhsic_core.auditing import audit_representation
from frhsic_core.learning.data import TrainingData
from frhsic_core.learning.penalties import make_penalty
from frhsic_core.learning.stack import TrainedStack
from frhsic_core.learning.trainer import Trainer
from frhsic_core.paper.datasets import SplitStack, as_dict, load_variant, stack_splits
from frhsic_core.paper.experiments import module_of
from frhsic_core.paper.runs.plan import Job, Settings, Stack, Unit
from frhsic_core.paper.runs.store import Part, rows_of_models
from frhsic_core.paper.stored_gdp import authors_gdp, smoothed_gdp

if TYPE_CHECKING:
    from frhsic_core.data._recipes import Dataset

# What only commands, pages and verdicts use. Every other module of the package may decide a number, so
# a new or a renamed module counts from its first day. A change of a figure is not a new version.
_WITHOUT_NUMBERS = (
    "cli",
    "paper/claims",
    "paper/figures",
    "paper/display.py",
    "paper/page_values.py",
    "paper/record.py",
    "paper/summaries.py",
)
_LIBRARIES = ("torch", "numpy", "scipy", "scikit-learn", "pandas")
AUDIT_ROWS = 1000  # rows of the test part behind HSIC and distance correlation
# What every sweep stores of an audit of the representation.
AUDITED = ("normalized_hsic_1", "distance_correlation", "linear_r2", "nonlinear_r2")


class OutOfTime(Exception):
    """The job cannot be finished in time and was stopped."""


# The stacks of a task come one after the other, so a process keeps the data of its last job.
@lru_cache(maxsize=1)
def loaded(dataset: str, variant: str, options: Settings) -> Dataset:
    """Return the data of a task."""
    return load_variant(dataset, variant, **dict(options))


@lru_cache(maxsize=1)
def splits_of(
    dataset: str,
    variant: str,
    options: Settings,
    seeds: tuple[int, ...],
    fractions: tuple[float, ...],
    device: str,
) -> SplitStack:
    """Return splits of the data of a task, on the device."""
    return stack_splits(
        loaded(dataset, variant, options), seeds=seeds, fractions=fractions, device=device
    )


def run_job(job: Job, *, device: str, deadline: float = math.inf) -> Part:
    """Run one job, train a stack or measure a unit, and return its rows with their provenance.

    A stack is stopped with :class:`OutOfTime` when ``time.monotonic()`` will pass ``deadline`` before its end. A unit
    cannot be stopped.
    """
    return _measure(job, device) if isinstance(job, Unit) else _train(job, device, deadline)


def _measure(unit: Unit, device: str) -> Part:
    begin = time.perf_counter()
    settings = dict(unit.settings)
    rows = [
        {**settings, **row} for row in module_of(unit.module).measure_unit(dict(settings), device)
    ]
    seconds = round(time.perf_counter() - begin, 3)
    provenance = {
        "finished": _now(),
        "seconds": seconds,
        "environment": environment(device),
        "rows": len(rows),
    }
    return Part(unit, pd.DataFrame(rows), provenance)


def _train(job: Stack, device: str, deadline: float) -> Part:
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
            TrainingData.from_arrays(
                splits.x_train,
                splits.y_train,
                splits.s_train if recipe.method != "unfair" else None,
                task=splits.task,
            ),
            penalty=make_penalty(recipe.method, protocol=task.protocol, **dict(recipe.settings)),
            lam=list(lams),
            seeds=list(seeds),
            dataset=[job.splits.index(seed) for seed in seeds_of_splits],
            protocol=task.protocol,
            epochs=recipe.epochs,
            batch_size=recipe.batch_size,
            learning_rate=recipe.learning_rate,
            device=device,
            **dict(recipe.network),
        )
        trained = trainer.fit(callback=is_late if deadline < math.inf else None)
    if trainer.epoch < recipe.epochs:
        raise OutOfTime(
            f"{job}: stopped at the time limit after {trainer.epoch} of {recipe.epochs} epochs."
        )
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


# What is measured on the trained models, for the whole stack at once and on its device --------------------------------


def prediction_metrics(
    output: Tensor, y: Tensor, attributes: Tensor, *, task: str
) -> dict[str, Tensor]:
    """Return what is measured on predictions: those columns of :func:`evaluate`."""
    y = y.double()
    f = output
    if task == "classification":
        f = torch.sigmoid(output)
        performance = ((output > 0) == (y > 0.5)).double().mean(-1)
        share = y.mean(-1)
        constant = torch.maximum(share, 1.0 - share)
    else:
        performance = (output - y).square().mean(-1)
        constant = y.var(-1, correction=0)
    each = attributes.double().unbind(-1)
    as_the_authors = [authors_gdp(output, s, check_finite=False) for s in each]
    as_defined = [smoothed_gdp(f, s) for s in each]
    return {
        "performance": performance,
        "constant": constant,
        "positive": (output > 0).double().mean(-1),
        "gdp_reference": torch.stack(as_the_authors).amax(0),
        "gdp_sample": torch.stack(as_defined).amax(0),
    }


@torch.no_grad()
def evaluate(
    trained: TrainedStack, splits: SplitStack, *, rows: int = AUDIT_ROWS
) -> dict[str, np.ndarray]:
    """Measure every model of a stack on the test part of its own split.

    Predictions: ``performance`` is the accuracy or the mean squared error, ``constant`` that of the best constant
    predictor (the majority rate, or the variance of y), and ``positive`` the share predicted positive.
    ``gdp_reference`` is GDP as the paper computes it: of logits, averaged over 50 equally spaced values of S.
    ``gdp_sample`` is GDP as it is defined: of probabilities, averaged over the observed values, at the same bandwidth.
    For a regression both are of the outputs. With several attributes, GDP is that of the attribute for which it is
    largest.

    Representation: ``normalized_hsic_1`` is at the median bandwidths, ``distance_correlation`` is squared and
    bias-corrected; these use ``rows`` evenly spaced test samples. ``linear_r2`` and ``nonlinear_r2`` are the
    cross-fitted R² of predicting S from Z; they use all test samples. ``ratio`` is the median distance of Z in
    bandwidths at the end of training.

    If there is a validation part, ``validation_performance`` and ``validation_gdp_reference`` are added. A model that
    diverged to NaN has NaN in every column. O(rows²) memory for each of the models that are audited at a time.
    """
    z, output, alive = _forward(trained, splits.x_test)
    which = torch.tensor(trained.dataset, device=z.device)
    attributes = _columns(splits.s_test)[which]
    metrics = prediction_metrics(output, splits.y_test[which], attributes, task=trained.task)
    audit = audit_representation(z, attributes, max_rows=rows, chunk_size=64 if z.is_cuda else 8)
    values = audit.as_dict()
    metrics |= {name: torch.tensor(values[name]) for name in AUDITED}
    if (
        splits.x_validation is not None
        and splits.y_validation is not None
        and splits.s_validation is not None
    ):
        _, output, _ = _forward(trained, splits.x_validation)
        found = prediction_metrics(
            output,
            splits.y_validation[which],
            _columns(splits.s_validation)[which],
            task=trained.task,
        )
        metrics |= {f"validation_{name}": found[name] for name in ("performance", "gdp_reference")}
    measured = {
        name: torch.where(alive.cpu(), value.double().cpu(), torch.nan)
        for name, value in metrics.items()
    }
    history = trained.history["ratio"]
    measured["ratio"] = history[-1] if len(history) else torch.full((trained.models,), torch.nan)
    return {name: value.float().numpy() for name, value in measured.items()}


def _forward(trained: TrainedStack, x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Return Z and the output, set to zero for models that diverged, and which models did not diverge."""
    z, output = trained.forward(x)
    alive = torch.isfinite(z).all(-1).all(-1) & torch.isfinite(output).all(-1)
    return (
        torch.where(alive[:, None, None], z, 0.0),
        torch.where(alive[:, None], output, 0.0).double(),
        alive,
    )


def _columns(s: Tensor) -> Tensor:
    return s.unsqueeze(-1) if s.ndim == 2 else s


# By which code, and where ---------------------------------------------------------------------------------------------


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")


def deciding_sources(root: Path) -> list[Path]:
    """Return the modules of a package folder on which stored numbers may depend.

    Raises
    ------
    FileNotFoundError
        If a module or folder that is to be left out does not exist: it was renamed, and the list of
        what has no influence on the numbers is no longer true.
    """
    left_out = [root / name for name in _WITHOUT_NUMBERS]
    missing = [path.relative_to(root).as_posix() for path in left_out if not path.exists()]
    if missing:
        raise FileNotFoundError(
            f"{', '.join(missing)} in _WITHOUT_NUMBERS of paper/runs/jobs.py is no file or folder "
            f"of {root}: write its new name there."
        )
    modules = sorted(root.rglob("*.py"))
    return [module for module in modules if not any(map(module.is_relative_to, left_out))]


def digest_of_sources(root: Path) -> str:
    """Return twelve hexadecimal digits of the sources of a package folder that decide numbers."""
    digest = hashlib.sha256()
    for module in deciding_sources(root):
        name = module.relative_to(root).as_posix()
        digest.update(name.encode() + b"\0" + module.read_bytes())
    return digest.hexdigest()[:12]


@cache
def code_version() -> str:
    """Return the version, a hash of the sources that decide the numbers and, in git, the commit.

    The hash is that of the source text, so it is the same for an installed package, a clone and a
    copy. It is written beside stored rows and says by which code they were measured. Rows are found
    by the key of their settings, never by this version: rows of an older version stay valid and
    keep the version that measured them.
    """
    root = Path(frhsic_core.__file__).parent
    version = f"{frhsic_core.__version__}+{digest_of_sources(root)}"
    commit = _commit(root)
    return f"{version} ({commit})" if commit else version


def _commit(root: Path) -> str:
    command = ["git", "-C", str(root), "describe", "--always", "--dirty", "--abbrev=12"]
    try:
        return subprocess.run(command, capture_output=True, text=True, timeout=10).stdout.strip()
    except (OSError, subprocess.SubprocessError):
        return ""


def environment(device: str) -> dict[str, str]:
    """Return the versions of the code, of Python and of the libraries, and the name of the device."""
    versions = {name: importlib.metadata.version(name) for name in _LIBRARIES}
    return {
        "code": code_version(),
        "python": platform.python_version(),
        **versions,
        "device": _device_name(device),
    }


def _device_name(device: str) -> str:
    if device.startswith("cuda"):
        return torch.cuda.get_device_name(device)
    return f"{device} ({platform.machine()})"
