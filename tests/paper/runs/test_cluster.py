"""The same sweep on a local cluster of two workers, one of which is killed in the middle."""

from __future__ import annotations

import os
import signal
import time

import pytest

from frhsic_core.paper.runs.plan import Experiment, Study
from frhsic_core.paper.runs.runner import run_experiment
from frhsic_core.paper.runs.store import ResultStore

distributed = pytest.importorskip("distributed")
pytestmark = [
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]


def test_a_killed_worker_costs_no_row(tmp_path, tiny: Experiment, tiny_store: ResultStore) -> None:
    options = {"n_workers": 2, "threads_per_worker": 1, "dashboard_address": None, "silence_logs": "CRITICAL"}
    with distributed.LocalCluster(**options) as cluster:
        with distributed.Client(cluster, set_as_default=False) as client:
            pids = list(client.run(os.getpid).values())
        killed: list[int] = []

        def kill_one(line: str) -> None:
            # After the first stack came back, while others are under way.
            if line.startswith("[1/") and not killed:
                killed.append(pids[0])
                os.kill(pids[0], signal.SIGKILL)
                time.sleep(0.2)

        store = ResultStore(tmp_path, "tiny")
        report = run_experiment(tiny, store, dask=cluster.scheduler_address, device="cpu", say=kill_one)
    assert killed
    assert report.left == 0
    assert not report.failed
    store.compact()
    assert store.table.read_bytes() == tiny_store.table.read_bytes()


def test_what_a_cluster_cannot_do_is_refused(tmp_path, tiny: Experiment) -> None:
    store = ResultStore(tmp_path, "tiny")
    with pytest.raises(ValueError, match="--dask"):
        run_experiment(Study("s", "cost", ()), store, dask="tcp://nowhere:1")
    with pytest.raises(ValueError, match="--minutes"):
        run_experiment(tiny, store, dask="tcp://nowhere:1", minutes=1.0)
