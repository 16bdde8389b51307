"""A sweep small enough for a test: four stacks on a synthetic law."""

from __future__ import annotations

import sys
import textwrap
from collections.abc import Callable
from pathlib import Path

import pytest

from frhsic_core.paper.runs import store as store_module
from frhsic_core.paper.runs.plan import Experiment, Task
from frhsic_core.paper.runs.store import ResultStore

TINY = Experiment(
    "tiny",
    (Task("synthetic", "text", "reference", (("n", 300),)),),
    ("unfair", "frhsic", "reg_gdp", "mmd_binned"),
    (1.0, 100.0),
    (42, 43),
    epochs=2,
)
SCRIPT = textwrap.dedent(
    """
    import sys, time
    import torch
    from frhsic_core.paper.runs.runner import run_experiment
    from frhsic_core.paper.runs.plan import Experiment, Task
    from frhsic_core.paper.runs.store import ResultStore
    torch.set_num_threads(1)
    experiment = Experiment(
        "tiny", (Task("synthetic", "text", "reference", (("n", 300),)),),
        ("unfair", "frhsic", "reg_gdp", "mmd_binned"), (1.0, 100.0), (42, 43), epochs=2,
    )
    pause = float(sys.argv[2])
    def say(line):
        print(line, flush=True)
        time.sleep(pause)
    print(run_experiment(experiment, ResultStore(sys.argv[1], "tiny"), device="cpu", say=say), flush=True)
    """
)


@pytest.fixture(scope="session")
def runner() -> list[str]:
    """Return a command that runs the tiny sweep; append the store and the seconds to wait after each stack."""
    return [sys.executable, "-c", SCRIPT]


@pytest.fixture
def tiny() -> Experiment:
    """Return the tiny sweep: four stacks, fourteen models."""
    return TINY


@pytest.fixture
def crash_before_the_record(monkeypatch: pytest.MonkeyPatch) -> Callable[[ResultStore], None]:
    """Return a function that compacts a store and crashes between its table and its json file."""

    def compact(store: ResultStore) -> None:
        write = store_module.write_atomically

        def crash(path: Path, function: Callable) -> None:
            if path == store.sidecar:
                raise KeyboardInterrupt
            write(path, function)

        with monkeypatch.context() as patch:
            patch.setattr(store_module, "write_atomically", crash)
            with pytest.raises(KeyboardInterrupt):
                store.compact()

    return compact


@pytest.fixture(scope="session")
def tiny_store(tmp_path_factory: pytest.TempPathFactory):
    """Return the tiny sweep run once, without interruption, and compacted."""
    from frhsic_core.paper.runs.runner import run_experiment

    store = ResultStore(tmp_path_factory.mktemp("tiny"), "tiny")
    run_experiment(TINY, store, device="cpu")
    store.compact()
    return store
