"""The commands, on the smoke preset and on made-up rows."""

from __future__ import annotations

import errno
import os
import sys
from dataclasses import replace
from pathlib import Path

import pandas as pd
import pytest
from typer.testing import CliRunner

import frhsic_core
import frhsic_core.paper.claims as ledger_module
from frhsic_core import _atomic_files as atomic_files
from frhsic_core.cli import command
from frhsic_core.paper import experiments
from frhsic_core.paper.experiments.main import pareto_table
from frhsic_core.paper.runs import store as store_module
from frhsic_core.paper.runs.plan import Experiment, Stack, Task, stacks_of
from frhsic_core.paper.runs.runner import run_experiment
from frhsic_core.paper.runs.store import ResultStore, sha256, write_sidecar
from frhsic_core.paper.stored import book_folder

app = command()
TASK = Task("synthetic", "text", "reference", (("n", 200),))
SMALL = Experiment("main", stacks_of([TASK], ["unfair", "frhsic"], (1.0,), (42,), epochs=1))


@pytest.fixture
def small(monkeypatch, tmp_path):
    """Shrink the smoke preset to two models and work in an empty folder."""
    monkeypatch.setitem(experiments.EXPERIMENTS, "main", ("main",))
    monkeypatch.setitem(experiments.PLANS, "main", lambda: SMALL)
    smoke = experiments.smoke
    monkeypatch.setattr(
        experiments,
        "smoke",
        lambda plan: replace(plan, name="main_smoke") if plan == SMALL else smoke(plan),
    )
    monkeypatch.chdir(tmp_path)
    return CliRunner()


def test_run_tables_status(small, tmp_path) -> None:
    place = ["--store", str(tmp_path / "results")]
    first = small.invoke(app, ["run", "main", "--preset", "smoke", "--device", "cpu", *place])
    assert first.exit_code == 0, first.output
    assert "2 jobs, 2 rows finished" in first.output
    assert (tmp_path / "results" / "main_smoke.parquet").exists()
    again = small.invoke(app, ["run", "main", "--preset", "smoke", "--device", "cpu", *place])
    assert "0 jobs to run" in again.output
    assert (
        small.invoke(
            app, ["run", "all", "--preset", "smoke", "--device", "cpu", "--minutes", "0"]
        ).exit_code
        == 3
    )
    status = small.invoke(app, ["status", *place])
    assert status.exit_code == 0
    assert "smoke" in status.output
    shown = small.invoke(app, ["tables", "--preset", "smoke", *place])
    assert shown.exit_code == 0, shown.output
    table = pareto_table(
        ResultStore(tmp_path / "results", "main_smoke").read(), dependence="gdp_reference"
    )
    for row in table.to_dict("records"):
        line = next(line for line in shown.output.splitlines() if f" {row['method']} " in line)
        assert f" {row['performance']:.4g} " in line
        assert f" {row['dependence']:.4g} " in line


def least(plan: Experiment) -> Experiment:
    """Return a small plan with all its methods, options and protocols, but for one λ, one split and one epoch."""
    jobs = [
        replace(job, lams=job.lams[:1], splits=job.splits[:1], recipe=replace(job.recipe, epochs=1))
        if isinstance(job, Stack) else job
        for job in plan.jobs
    ]  # fmt: skip
    return replace(plan, jobs=tuple(jobs))


@pytest.mark.slow  # it runs every experiment
@pytest.mark.timeout(900)
def test_run_all_runs_everything_and_keeps_its_time(small, tmp_path, monkeypatch) -> None:
    late = small.invoke(
        app, ["run", "all", "--preset", "smoke", "--minutes", "0", "--device", "cpu"]
    )
    assert late.exit_code == 3
    monkeypatch.setitem(experiments.EXPERIMENTS, "main", ("main", "live"))
    smoke = experiments.smoke
    monkeypatch.setattr(experiments, "smoke", lambda plan: least(smoke(plan)))
    done = small.invoke(app, ["run", "all", "--preset", "smoke", "--device", "cpu"])
    assert done.exit_code == 0, done.output
    written = {
        path.stem
        for path in (tmp_path / "_build" / "results").glob("*.*")
        if path.suffix in (".parquet", ".csv")
    }
    assert {f"{plan().name}_smoke" for plan in experiments.PLANS.values()} <= written


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["run", "nothing"], "no experiment 'nothing'"),
        (["run", "transfre"], "'transfer'?"),
        (["run", "main", "--minutes", "-1"], "Invalid value for '--minutes'"),
        (["tables", "--protocol", "refrence"], "protocol is 'refrence'"),
        (["status", "--store", "nowhere"], "store is nowhere"),
        (["ledger", "--verdict", "difers"], "verdict is 'difers'"),
        (["run", "main", "--preset", "huge"], "preset is 'huge'"),
        (["run", "main", "--preset", "smoke", "--method", "frhisc"], "has no method frhisc"),
        (["tables", "--store", "empty"], "empty has no whole sweep of the reference protocol"),
    ],
)
def test_mistakes_end_with_status_two_and_a_sentence(small, monkeypatch, arguments, words) -> None:
    monkeypatch.setattr(
        ledger_module, "ledger", lambda **_: pytest.fail("computed before the mistake was seen")
    )
    result = small.invoke(app, arguments, env={"COLUMNS": "200"})
    assert isinstance(result.exception, SystemExit)
    assert result.exit_code == 2
    assert words in result.output


@pytest.mark.parametrize("experiment", ["main", "bandwidth_scaling"])
@pytest.mark.parametrize(
    ("device", "words"),
    [("gpu", "device is 'gpu'"), ("cuda:99", "device is 'cuda:99'")],
)
def test_a_device_is_checked_once_before_any_stack(
    small, tmp_path, experiment, device, words
) -> None:
    arguments = [
        "run",
        experiment,
        "--preset",
        "smoke",
        "--device",
        device,
        "--store",
        str(tmp_path),
    ]
    result = small.invoke(app, arguments)
    assert result.exit_code == 2
    assert result.output.count(words) == 1
    assert "failed" not in result.output
    assert len(result.output.splitlines()) == 2


def test_a_store_that_can_only_be_read_serves_what_only_reads(small, tmp_path, monkeypatch) -> None:
    place = ["--store", str(tmp_path / "results")]
    run = ["run", "main", "--preset", "smoke", "--device", "cpu", *place]
    assert small.invoke(app, run).exit_code == 0

    def refuse(*_: object, **__: object) -> None:
        raise OSError(errno.EROFS, os.strerror(errno.EROFS))

    connect = store_module.sqlite3.connect
    monkeypatch.setattr(atomic_files, "_write_beside", refuse)
    monkeypatch.setattr(  # only a reader opens the file by an address
        store_module.sqlite3,
        "connect",
        lambda *place, **how: connect(*place, **how) if "uri" in how else refuse(),
    )
    for arguments in (["status", *place], ["tables", "--preset", "smoke", *place], run):
        assert small.invoke(app, arguments).exit_code == 0, arguments
    elsewhere = small.invoke(app, [*run[:-1], str(tmp_path / "other")])
    assert elsewhere.exit_code == 2
    assert "Read-only" in elsewhere.output


@pytest.mark.parametrize("file", ["main_smoke.parquet", "main_smoke.sqlite"])
def test_a_damaged_file_is_named_and_can_be_deleted(small, tmp_path, file) -> None:
    place = ["--store", str(tmp_path)]
    run = ["run", "main", "--preset", "smoke", "--device", "cpu", *place]
    assert run_experiment(SMALL, ResultStore(tmp_path, "main_smoke"), device="cpu").left == 0
    if file.endswith("parquet"):
        assert small.invoke(app, run).exit_code == 0
    (tmp_path / file).write_bytes((tmp_path / file).read_bytes()[:5000])
    for arguments in (run, ["status", *place], ["tables", "--preset", "smoke", *place]):
        broken = small.invoke(app, arguments)
        assert broken.exit_code == 2
        assert f"{file} is damaged" in broken.stderr
    for path in (file, "main_smoke.json"):
        (tmp_path / path).unlink(missing_ok=True)
    again = small.invoke(app, run)
    assert again.exit_code == 0
    assert "2 jobs to run" in again.stdout
    assert "0 jobs left" in again.stdout


def test_without_pyarrow_a_run_keeps_its_jobs_and_tables_say_what_to_install(
    small, tmp_path, monkeypatch
) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    place = ["--store", str(tmp_path)]
    done = small.invoke(app, ["run", "main", "--preset", "smoke", "--device", "cpu", *place])
    assert done.exit_code == 0, done.output
    assert "pip install 'frhsic-core[paper]'" in done.stdout
    assert len(ResultStore(tmp_path, "main_smoke").provenance()["stacks"]) == 2
    (tmp_path / "main.parquet").write_bytes(b"any")
    write_sidecar(tmp_path / "main.json", {"experiment": "main"}, [sha256(b"any")])
    tables = small.invoke(app, ["tables", *place])
    assert (
        tables.exit_code,
        "needs pyarrow: pip install 'frhsic-core[paper]'" in tables.stderr,
    ) == (2, True)


@pytest.fixture
def judged(monkeypatch):
    """Put three lines in place of the ledger."""
    verdicts = ["agrees", "holds as corrected", "disagrees"]
    columns = ["id", "kind", "claim", "printed", "ours", "by the code", "from stored runs", "note"]
    lines = pd.DataFrame({name: [f"{name} {i}" for i in range(3)] for name in columns})
    lines = lines.assign(verdict=verdicts)
    monkeypatch.setattr(
        ledger_module,
        "ledger",
        lambda verdict=None: lines if verdict is None else lines[lines["verdict"] == verdict],
    )
    monkeypatch.setattr(
        ledger_module, "heading", lambda table: {"verdicts": dict.fromkeys(verdicts, 1)}
    )
    return CliRunner()


def test_the_ledger_is_short_unless_asked(judged) -> None:
    short = judged.invoke(app, ["ledger"])
    assert short.exit_code == 0, short.output
    assert "verdicts: 1 agrees, 1 holds as corrected, 1 disagrees" in short.stdout
    assert "id 0" not in short.stdout
    assert short.stdout.index("id 2") < short.stdout.index("id 1")  # disagrees first
    assert "note 1" not in short.stdout
    assert "frhsic ledger --all" in short.stdout
    assert "Judging" in short.stderr
    everything = judged.invoke(app, ["ledger", "--all"])
    assert all(
        f"id {i}" in everything.stdout and f"note {i}" in everything.stdout for i in range(3)
    )
    one = judged.invoke(app, ["ledger", "--verdict", "holds as corrected"])
    assert "note 1" in one.stdout
    assert "id 2" not in one.stdout


def _book(folder: Path) -> Path:
    for part in ("claims", "results"):
        (folder / "book" / part).mkdir(parents=True)
    return folder / "book"


def test_the_book_is_sought_in_order(monkeypatch, tmp_path) -> None:
    """The environment, then the folder one stands in and its parents, then the source tree of the package."""
    clone, package = _book(tmp_path / "clone"), _book(tmp_path / "package")
    deep = tmp_path / "clone" / "notebooks" / "old"
    deep.mkdir(parents=True)
    (tmp_path / "bare").mkdir()
    monkeypatch.setattr(
        frhsic_core, "__file__", str(tmp_path / "package" / "frhsic_core" / "__init__.py")
    )
    monkeypatch.delenv("FRHSIC_BOOK", raising=False)
    monkeypatch.chdir(deep)
    assert book_folder("results") == clone / "results"
    monkeypatch.chdir(tmp_path / "bare")
    assert book_folder() == package
    (tmp_path / "bare" / "book").mkdir()  # some other book, without claims and results
    assert book_folder() == package
    monkeypatch.setenv("FRHSIC_BOOK", str(tmp_path / "bare"))
    monkeypatch.chdir(deep)
    assert book_folder("results") == tmp_path / "bare" / "results"
    monkeypatch.setenv("FRHSIC_BOOK", str(tmp_path / "nowhere"))
    with pytest.raises(FileNotFoundError, match="FRHSIC_BOOK"):
        book_folder("results")


@pytest.mark.parametrize("arguments", [["status"], ["tables"], ["ledger"], ["run", "main"]])
def test_without_a_book_one_line_names_the_setting(monkeypatch, tmp_path, arguments) -> None:
    monkeypatch.setattr(
        frhsic_core, "__file__", str(tmp_path / "site" / "frhsic_core" / "__init__.py")
    )
    monkeypatch.delenv("FRHSIC_BOOK", raising=False)
    monkeypatch.chdir(tmp_path)
    result = CliRunner().invoke(app, arguments)
    assert result.exit_code == 2, result.output
    assert len(result.output.strip().splitlines()) == 1
    assert "FRHSIC_BOOK" in result.output
