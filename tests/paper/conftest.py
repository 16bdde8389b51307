"""A sweep small enough for a test: four stacks on a synthetic law."""

from __future__ import annotations

import sqlite3
import sys
import textwrap
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest

from frhsic_core.paper.runs.plan import Experiment, Stack, Task, stacks_of
from frhsic_core.paper.runs.store import Part, ResultStore, rows_of_models

TASK = Task("synthetic", "text", "reference", (("n", 300),))
METHODS = ("unfair", "frhsic", "reg_gdp", "mmd_binned")
TINY = Experiment("tiny", stacks_of([TASK], METHODS, (1.0, 100.0), (42, 43), epochs=2))
SCRIPT = textwrap.dedent(
    f"""
    import sys, time
    import torch
    from frhsic_core.paper.runs.runner import run_experiment
    from frhsic_core.paper.runs.plan import Experiment, Recipe, Stack, Task
    from frhsic_core.paper.runs.store import ResultStore
    torch.set_num_threads(1)
    experiment = {TINY!r}
    pause = float(sys.argv[2])
    def log(line):
        print(line, flush=True)
        time.sleep(pause)
    workers = int(sys.argv[3]) if len(sys.argv) > 3 else 1
    store = ResultStore(sys.argv[1], "tiny")
    report = run_experiment(experiment, store, device="cpu", workers=workers, log=log)
    print(report, flush=True)
    sys.exit(130 if report.interrupted else 0)
    """
)


@pytest.fixture(scope="session")
def runner() -> list[str]:
    """Return a command that runs the tiny sweep; append the store, the seconds between stacks, and workers."""
    return [sys.executable, "-c", SCRIPT]


@pytest.fixture
def tiny() -> Experiment:
    """Return the tiny sweep: four stacks, fourteen models."""
    return TINY


@pytest.fixture(scope="session")
def part_of() -> Callable[..., Part]:
    """Return a function that makes the part of a stack without training; ``shift`` is added to its performance."""
    return _part_of


def _part_of(job: Stack, *, shift: float = 0.0) -> Part:
    labels = {
        "dataset": job.recipe.task.dataset,
        "variant": job.recipe.task.variant,
        "sensitive": "s",
        "task": "classification",
        "protocol": job.recipe.task.protocol,
        "method": job.recipe.method,
        "option": job.recipe.option,
        "recipe": job.recipe.key,
    }
    models = np.array(job.models)
    metrics = {
        "performance": models[:, 0] / 1000 + models[:, 1] + shift,
        "gdp_reference": models[:, 2] / 7,
    }
    provenance = {
        "seconds_training": 1.0,
        "environment": {"torch": "2"},
        "data": {"source": "a law"},
    }
    return Part(job, rows_of_models(job, labels, metrics), provenance)


@pytest.fixture(scope="session")
def tiny_store(tmp_path_factory: pytest.TempPathFactory):
    """Return the tiny sweep run once, without interruption, and compacted."""
    from frhsic_core.paper.runs.runner import run_experiment

    store = ResultStore(tmp_path_factory.mktemp("tiny"), "tiny")
    run_experiment(TINY, store, device="cpu")
    store.compact()
    return store


@pytest.fixture
def disk_of(monkeypatch: pytest.MonkeyPatch) -> Callable[[int], None]:
    """Return a function that leaves room for a number of pages; SQLite's error is then that of a full disk."""
    connect = sqlite3.connect

    def limited(pages: int, *args: Any, **options: Any) -> sqlite3.Connection:
        connection = connect(*args, **options)
        connection.execute(f"PRAGMA max_page_count = {pages}")
        return connection

    return lambda pages: monkeypatch.setattr(sqlite3, "connect", partial(limited, pages))


@pytest.fixture(scope="session")
def looped_gdp() -> Callable[..., float]:
    """Return a function that computes GDP in a loop over points, by default the paper's grid of 50."""

    def gdp(f: np.ndarray, s: np.ndarray, points: np.ndarray | None = None) -> float:
        gaps = []
        for at in np.linspace(s.min(), s.max(), 50) if points is None else points:
            weight = np.exp(-((s - at) ** 2) / (2 * 0.1**2))
            gaps.append(abs((weight * f).sum() / weight.sum() - f.mean()))
        return float(np.mean(gaps))

    return gdp
