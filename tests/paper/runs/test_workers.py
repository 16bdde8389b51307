"""Several processes on one machine: the same table, a killed process loses nothing, Ctrl-C keeps what is finished."""

from __future__ import annotations

import multiprocessing
import os
import signal
import subprocess
import threading
import time

import pytest

from frhsic_core.paper.experiments.presets import experiment_for
from frhsic_core.paper.runs import workers as workers_module
from frhsic_core.paper.runs.plan import Experiment
from frhsic_core.paper.runs.runner import run_experiment
from frhsic_core.paper.runs.store import ResultStore
from frhsic_core.paper.runs.workers import chosen_workers


def test_a_killed_process_costs_no_row(tmp_path, tiny: Experiment, tiny_store: ResultStore) -> None:
    store = ResultStore(tmp_path, "tiny")
    lines: list[str] = []

    def kill_one() -> None:
        while len(children := multiprocessing.active_children()) < 2:
            time.sleep(0.01)
        os.kill(children[0].pid, signal.SIGKILL)

    killer = threading.Thread(target=kill_one)
    killer.start()
    report = run_experiment(tiny, store, device="cpu", threads=1, workers=2, say=lines.append)
    killer.join()
    assert report.exit_status == 0
    assert (report.workers, report.left, report.rows) == (2, 0, 14)
    assert any("is replaced" in line for line in lines)
    assert any(line.startswith("[4/4]") for line in lines)
    store.compact()
    assert store.table.read_bytes() == tiny_store.table.read_bytes()
    assert not multiprocessing.active_children()


def test_a_job_that_kills_its_process_is_given_up(tmp_path, tiny: Experiment, monkeypatch) -> None:
    monkeypatch.setattr(workers_module, "_work", os._exit)  # called with a connection: the process ends at once
    report = run_experiment(tiny, ResultStore(tmp_path, "tiny"), device="cpu", workers=2)
    assert report.exit_status == 4
    assert len(report.failed) == report.left == 4
    assert "WorkerDied" in report.failed[0]


def test_ctrl_c_keeps_what_is_finished(tmp_path, runner) -> None:
    store = ResultStore(tmp_path, "tiny")
    process = subprocess.Popen([*runner, str(tmp_path), "0.0", "2"], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    for line in process.stdout:
        if line.startswith("["):
            break
    process.send_signal(signal.SIGINT)
    rest = process.communicate(timeout=60)[0]
    assert process.returncode in (0, 130)
    assert "interrupted" in rest or process.returncode == 0
    assert len(store.done()) > 0


def test_how_many_processes(tiny: Experiment, monkeypatch) -> None:
    monkeypatch.setattr(os, "cpu_count", lambda: 16)
    assert chosen_workers(None, tiny, "cpu", jobs=40) == 1
    assert chosen_workers(None, tiny, "cuda", jobs=40) == workers_module.ON_ONE_GPU
    assert chosen_workers(None, tiny, "cuda:1", jobs=2) == 2
    assert chosen_workers(3, tiny, "cpu", jobs=40) == 3
    study = experiment_for("convergence", "smoke")
    assert chosen_workers(None, study, "cuda", jobs=40) == 1
    with pytest.raises(ValueError, match="workers is 2"):
        chosen_workers(2, study, "cpu", jobs=4)
    monkeypatch.setattr(os, "cpu_count", lambda: 2)
    assert chosen_workers(None, tiny, "cuda", jobs=40) == 1


def test_a_cluster_has_its_own_workers(tmp_path, tiny: Experiment) -> None:
    with pytest.raises(ValueError, match="--workers"):
        run_experiment(tiny, ResultStore(tmp_path, "tiny"), workers=2, dask="tcp://nowhere:1")
