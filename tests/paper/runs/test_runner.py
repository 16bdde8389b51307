"""Run a sweep: after a kill it resumes to the same bytes, two runners share a store, time limits are kept."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import pytest
import requests

from frhsic_core.data import _files as files
from frhsic_core.paper.experiments import GRIDS, SPLITS, experiment_for
from frhsic_core.paper.runs import runner as run_module
from frhsic_core.paper.runs.plan import Experiment, Stack, Task, stacks_of
from frhsic_core.paper.runs.store import ResultStore, StoreError


def wait_for_stacks(store: ResultStore, count: int, process: subprocess.Popen) -> None:
    for _ in range(1200):
        if len(store.provenance()["stacks"]) >= count or process.poll() is not None:
            return
        time.sleep(0.05)


@pytest.mark.slow  # a whole sweep; kills at each moment of a write are in test_damage
def test_killed_and_resumed_gives_the_same_table(
    tmp_path, tiny: Experiment, tiny_store: ResultStore, runner
) -> None:
    store = ResultStore(tmp_path, "tiny")
    process = subprocess.Popen([*runner, str(tmp_path), "0.6"], stdout=subprocess.DEVNULL)
    wait_for_stacks(store, 2, process)
    process.send_signal(signal.SIGKILL)
    process.wait()
    kept = len(store.done())
    assert 0 < kept < 14, "the kill came too early or too late to test anything"
    report = run_module.run_experiment(tiny, store, device="cpu")
    assert report.rows == 14 - kept
    assert report.left == 0
    store.compact()
    assert store.table.read_bytes() == tiny_store.table.read_bytes()


def test_running_twice_changes_nothing(tiny: Experiment, tiny_store: ResultStore) -> None:
    before = tiny_store.table.read_bytes(), tiny_store.sidecar.read_bytes()
    lines: list[str] = []
    report = run_module.run_experiment(tiny, tiny_store, device="cpu", log=lines.append)
    tiny_store.compact()
    assert report.jobs == 0
    assert (tiny_store.table.read_bytes(), tiny_store.sidecar.read_bytes()) == before
    assert lines == ["tiny: 0 jobs to run"]


@pytest.mark.slow
def test_two_runners_share_one_store(
    tmp_path, tiny: Experiment, tiny_store: ResultStore, runner
) -> None:
    commands = [
        subprocess.Popen(
            [*runner, str(tmp_path), "0.1"],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for _ in range(2)
    ]
    errors = [process.communicate(timeout=120)[1] for process in commands]
    assert [process.returncode for process in commands] == [0, 0], errors
    store = ResultStore(tmp_path, "tiny")
    assert tiny.missing(store.done()) == []
    store.compact()
    assert store.table.read_bytes() == tiny_store.table.read_bytes()


def test_a_stack_that_another_runner_finished_is_not_trained_again(
    tmp_path, tiny: Experiment, monkeypatch, part_of
):
    store = ResultStore(tmp_path, "tiny")
    trained = []

    def run_job(job, **options):
        if not trained:  # meanwhile another runner finishes the second stack and compacts
            other = ResultStore(tmp_path, "tiny")
            other.write(part_of(tiny.jobs[1]))
            other.compact()
        trained.append(job)
        return part_of(job)

    monkeypatch.setattr(run_module, "run_job", run_job)
    report = run_module.run_experiment(tiny, store, device="cpu")
    assert trained == [tiny.jobs[i] for i in (0, 2, 3)]
    assert (report.jobs, report.left, report.exit_status) == (3, 0, 0)


def test_the_worst_outcome_decides_the_exit_status() -> None:
    given = (
        {},
        {"left": 1},
        {"left": 1, "failed": ["one"]},
        {"left": 1, "failed": ["one"], "interrupted": True},
    )
    assert [run_module.Report(**one).exit_status for one in given] == [0, 3, 4, 130]


def test_a_time_limit_abandons_the_stack_in_flight(tmp_path, tiny: Experiment) -> None:
    store, lines = ResultStore(tmp_path, "tiny"), []
    endless = replace(
        tiny,
        jobs=tuple(
            replace(job, recipe=replace(job.recipe, epochs=10_000)) for job in tiny.jobs[:2]
        ),
    )
    begin = time.monotonic()
    report = run_module.run_experiment(
        endless, store, device="cpu", minutes=0.5 / 60, log=lines.append
    )
    assert time.monotonic() - begin < 20
    assert report.stopped == "time limit"
    assert report.left == 2
    assert "time limit" in lines[-1]
    assert store.done() == set()


def test_a_time_limit_is_in_minutes(tmp_path, tiny: Experiment, monkeypatch, part_of) -> None:
    left = []

    def run_job(job, *, deadline: float, **options):
        left.append(deadline - time.monotonic())
        return part_of(job)

    monkeypatch.setattr(run_module, "run_job", run_job)
    report = run_module.run_experiment(tiny, ResultStore(tmp_path, "tiny"), device="cpu", minutes=2)
    assert (report.left, report.stopped) == (0, "")
    assert all(60 < seconds <= 120 for seconds in left)


def test_a_full_disk_stops_before_training(
    tmp_path, tiny: Experiment, monkeypatch, disk_of
) -> None:
    disk_of(1)
    monkeypatch.setattr(
        run_module, "run_job", lambda *a, **k: pytest.fail("trained although nothing can be stored")
    )
    with pytest.raises(StoreError, match="disk is full"):
        run_module.run_experiment(tiny, ResultStore(tmp_path, "tiny"), device="cpu")


def test_a_row_says_what_was_trained(tiny_store: ResultStore) -> None:
    rows = tiny_store.read()
    assert set(rows["method"]) == {"unfair", "frhsic", "reg_gdp", "mmd_binned"}
    assert set(rows["sensitive"]) == {"s"}
    assert (rows["seed"] == rows["split"]).all()
    assert rows["performance"].between(0, 1).all()
    assert rows["ratio"].isna()[rows["method"] == "unfair"].all()
    stacks = tiny_store.provenance()["stacks"]
    assert {"finished", "seconds_training", "seconds_evaluation", "notes", "penalty"} <= set(
        stacks[0]
    )
    environment = tiny_store.provenance()["environments"][0]
    assert {"code", "torch", "numpy", "python", "device"} <= set(environment)


def test_presets_are_what_their_names_promise() -> None:
    full, smoke = (experiment_for("main", preset) for preset in ("full", "smoke"))
    assert {job.lams for job in full.jobs} == {(0.0,), GRIDS["full"]}
    assert {job.splits for job in full.jobs} == {SPLITS["full"]}
    assert SPLITS["full"][:5] == SPLITS["text"] == (42, 43, 44, 45, 46)
    assert set(GRIDS["text"]) == {0.1, 1, 10, 100, 500} < set(GRIDS["full"])
    recipes = [
        {replace(job.recipe, task=None, epochs=0) for job in plan.jobs} for plan in (full, smoke)
    ]
    assert recipes[0] == recipes[1]
    assert {job.data for job in smoke.jobs} == {("synthetic", "text")}
    assert {job.recipe.task.protocol for job in smoke.jobs} == {"text", "reference"}
    for protocol in ("text", "reference"):
        tasks = {job.recipe.task for job in full.jobs}
        crime = {
            task.variant for task in tasks if task.dataset == "crime" and task.protocol == protocol
        }
        assert crime == {"text", "reference"}
    reference = experiment_for(
        "main", "full", protocols=("reference",), datasets=("adult",), methods=("frem",)
    )
    assert [len(job.models) for job in reference.jobs] == [225]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"preset": "huge"}, "choose one of smoke, full"),
        ({"datasets": ("iris",)}, "has no dataset iris"),
        ({"protocols": ("mine",)}, "has no protocol mine"),
        ({"splits": 26}, "has 1 to 25"),
    ],
)
def test_wrong_arguments_are_explained(arguments, words) -> None:
    with pytest.raises(ValueError, match=words):
        experiment_for(**{"name": "main", **arguments})


def test_the_weight_of_a_stack_is_what_it_trains_on() -> None:
    job, other = stacks_of(
        [Task("compas", "text", "text")], ("unfair", "frhsic"), (1.0, 2.0), (42,)
    )
    assert other.weight == 2 * job.weight > 0
    longer = replace(job, recipe=replace(job.recipe, epochs=400))
    assert longer.weight == 2 * job.weight


def test_the_time_left_is_that_of_the_jobs_left(
    tmp_path, tiny: Experiment, monkeypatch, part_of
) -> None:
    """Each job takes ten minutes; the estimate counts the jobs that are left, weighted by their cost."""
    now, lines = [0.0], []

    def run_job(job, **options):
        now[0] += 600.0
        return part_of(job)

    monkeypatch.setattr(run_module, "run_job", run_job)
    monkeypatch.setattr(Stack, "weight", 1.0)
    monkeypatch.setattr(run_module.time, "monotonic", lambda: now[0])
    run_module.run_experiment(tiny, ResultStore(tmp_path, "tiny"), device="cpu", log=lines.append)
    assert [line.rpartition("; ")[2] for line in lines[1:]] == [
        f"about {n} min left" for n in (30, 20, 10, 0)
    ]
    assert lines[1].startswith("[1/4] ")


BARE = """
import sys
for name in ("typer", "rich", "pyarrow", "pooch", "matplotlib"):
    sys.modules[name] = None
from frhsic_core.paper.experiments import experiment_for
from frhsic_core.paper.runs.runner import run_experiment
from frhsic_core.paper.runs.store import ResultStore
sweep = experiment_for("main", "smoke", methods=("unfair", "reg_gdp"), protocols=("text",), splits=1)
study = experiment_for("audit_coverage", "smoke")
for experiment in (sweep, study):
    print(run_experiment(experiment, ResultStore(sys.argv[1], experiment.name), device="cpu"))
"""


@pytest.mark.slow
def test_a_run_needs_numpy_scipy_pandas_sklearn_and_torch_alone(tmp_path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", BARE, str(tmp_path)], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    assert "2 jobs, 3 rows finished" in done.stdout
    assert "9 jobs, 9 rows finished" in done.stdout
    sweep = ResultStore(tmp_path, "main_smoke")
    assert len(sweep.provenance()["stacks"]) == 2
    sweep.compact()
    assert len(sweep.read()) == 3
    assert len(ResultStore(tmp_path, "audit_coverage_smoke").read()) == 9


# Processes ------------------------------------------------------------------------------------------------------------


def workers_of(process: int) -> list[int]:
    """Return the children of a process that run loky's workers."""
    found = []
    for entry in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            parent = int((entry / "stat").read_text().rpartition(")")[2].split()[1])
            if parent == process and b"--process-name" in (entry / "cmdline").read_bytes():
                found.append(int(entry.name))
    return found


@pytest.mark.slow
@pytest.mark.skipif(not os.path.exists("/proc"), reason="needs /proc")
def test_a_killed_process_costs_no_row(tmp_path, tiny: Experiment, tiny_store: ResultStore) -> None:
    store = ResultStore(tmp_path, "tiny")

    def kill_one() -> None:
        while len(children := workers_of(os.getpid())) < 2:
            time.sleep(0.01)
        os.kill(children[0], signal.SIGKILL)

    killer = threading.Thread(target=kill_one)
    killer.start()
    report = run_module.run_experiment(tiny, store, device="cpu", workers=2)
    killer.join()
    assert report.exit_status == 3
    assert "was killed" in report.stopped
    kept = report.rows
    report = run_module.run_experiment(tiny, store, device="cpu", workers=2)
    assert (report.exit_status, report.rows) == (0, 14 - kept)
    store.compact()
    assert store.table.read_bytes() == tiny_store.table.read_bytes()
    assert workers_of(os.getpid()) == []


@pytest.mark.slow
def test_ctrl_c_keeps_what_is_finished(tmp_path, runner) -> None:
    store = ResultStore(tmp_path, "tiny")
    process = subprocess.Popen(
        [*runner, str(tmp_path), "0.0", "2"], stdout=subprocess.PIPE, text=True
    )
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
    chosen_workers = run_module.chosen_workers
    monkeypatch.setattr(os, "cpu_count", lambda: 16)
    many = tiny.jobs * 10
    assert chosen_workers(None, many, "cpu") == 1
    assert chosen_workers(None, many, "cuda") == run_module.ON_ONE_GPU
    assert chosen_workers(None, many[:2], "cuda:1") == 2
    assert chosen_workers(3, many, "cpu") == 3
    units = experiment_for("convergence").jobs
    assert chosen_workers(None, units, "cuda") == chosen_workers(2, units, "cpu") == 1
    monkeypatch.setattr(os, "cpu_count", lambda: 2)
    assert chosen_workers(None, many, "cuda") == 1


# Missing data ---------------------------------------------------------------------------------------------------------


def test_a_missing_dataset_is_announced_and_its_jobs_fail(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    lines: list[str] = []

    def refuse(*_: object) -> None:
        assert len(lines) == 2, "a download started before it was announced"
        raise requests.ConnectionError("no network in this test")

    monkeypatch.setenv("FRHSIC_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(files, "_download", refuse)
    monkeypatch.delenv("FRHSIC_DATA", raising=False)
    tasks = Task("synthetic", "text", "text", (("n", 100),)), Task("crime", "text", "text")
    sweep = Experiment("crime", stacks_of(tasks, ["unfair"], (1.0,), (42,), epochs=1))
    report = run_module.run_experiment(
        sweep, ResultStore(tmp_path, "crime"), device="cpu", log=lines.append
    )
    assert (report.jobs, len(report.failed)) == (1, 1)
    assert lines[1] == f"crime (text) is missing and is downloaded to {tmp_path / 'cache'} now"


@pytest.mark.data
def test_a_download_is_made_once(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    source = Path(os.environ["FRHSIC_DATA"]) / "compas" / "compas-scores-two-years.csv"
    monkeypatch.delenv("FRHSIC_DATA")
    monkeypatch.setenv("FRHSIC_CACHE", str(tmp_path))

    def serve(link: object, path: Path) -> None:
        shutil.copy(source, path)

    monkeypatch.setattr(files, "_download", serve)
    said: list[str] = []
    for _ in range(2):
        run_module.fetch_missing_data(
            [("compas", "text"), ("compas", "reference")], log=said.append
        )
        assert len(said) == 1  # and not again
