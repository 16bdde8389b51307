"""The five commands and the plain entry, on the smoke preset and on made-up rows."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pandas as pd
import pytest
import typer
from typer.testing import CliRunner

import frhsic_core
from frhsic_core.experiments import presets, run_main
from frhsic_core.experiments.commands import register
from frhsic_core.experiments.plan import Experiment, Task
from frhsic_core.experiments.reference import book_folder

app = typer.Typer()
register(app)
SMALL = Experiment(
    "main_smoke",
    (Task("synthetic", "text", "reference", (("n", 200),)),),
    ("unfair", "frhsic"),
    (1.0,),
    (42,),
    epochs=1,
)


@pytest.fixture
def small(monkeypatch, tmp_path):
    """Shrink the smoke preset to two models and work in an empty folder."""
    monkeypatch.setitem(presets.EXPERIMENTS, "main", lambda preset: SMALL)
    monkeypatch.chdir(tmp_path)
    return CliRunner()


def test_run_tables_status(small, tmp_path) -> None:
    place = ["--store", str(tmp_path / "results")]
    first = small.invoke(app, ["run", "main", "--preset", "smoke", "--device", "cpu", *place])
    assert first.exit_code == 0, first.output
    assert "2 stacks, 2 models" in first.output
    assert (tmp_path / "results" / "main_smoke.parquet").exists()
    again = small.invoke(app, ["run", "main", "--preset", "smoke", "--device", "cpu", *place])
    assert "0 stacks, 0 models to train" in again.output
    status = small.invoke(app, ["status", *place])
    assert status.exit_code == 0
    assert "smoke" in status.output
    written = tmp_path / "table.csv"
    shown = small.invoke(app, ["tables", "main_smoke", "--csv", str(written), *place])
    assert shown.exit_code == 0, shown.output
    assert "frhsic" in shown.output
    assert set(pd.read_csv(written)["method"]) == {"unfair", "frhsic"}
    probes = small.invoke(app, ["tables", "main_smoke", "--dependence", "linear_r2", *place])
    assert "linear probe" in probes.output


def test_reproduce_runs_everything_and_keeps_its_time(small, tmp_path) -> None:
    late = small.invoke(app, ["reproduce", "--preset", "smoke", "--minutes", "0", "--device", "cpu"])
    assert late.exit_code == 3
    assert "no time left" in late.output
    done = small.invoke(app, ["reproduce", "--preset", "smoke", "--device", "cpu"])
    assert done.exit_code == 0, done.output
    assert (tmp_path / "_build" / "results" / "main_smoke.parquet").exists()


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["run", "nothing"], "There is no experiment 'nothing'"),
        (["run", "main", "--preset", "huge"], "choose one of smoke, text, full"),
        (["run", "main", "--preset", "smoke", "--method", "frhisc"], "has no method frhisc"),
        (["tables", "main", "--dependence", "gpd"], "choose one of gdp_reference"),
        (["tables", "main", "--store", "empty"], "no rows of the reference protocol yet"),
    ],
)
def test_mistakes_end_with_status_two_and_a_sentence(small, arguments, words) -> None:
    result = small.invoke(app, arguments)
    assert result.exit_code == 2
    assert words in result.output


def test_a_failed_stack_shows_in_the_exit_status(small, monkeypatch, tmp_path) -> None:
    from frhsic_core.experiments import sweep

    def broken(job, **options):
        raise FileNotFoundError("adult.data is not here: frhsic data fetch adult")

    monkeypatch.setattr(sweep, "run_job", broken)
    result = small.invoke(app, ["run", "main", "--preset", "smoke", "--device", "cpu"])
    assert result.exit_code == 4
    assert "frhsic data fetch adult" in result.output


def test_plain_entry_needs_neither_typer_nor_pyarrow(tmp_path) -> None:
    script = (
        "import sys\n"
        "for name in ('typer', 'rich', 'pyarrow', 'pooch', 'matplotlib'): sys.modules[name] = None\n"
        "from frhsic_core.experiments import presets, run_main\n"
        "from frhsic_core.experiments.plan import Experiment, Task\n"
        "presets.EXPERIMENTS['main'] = lambda preset: Experiment('main_smoke', "
        "(Task('synthetic', 'text', 'text', (('n', 200),)),), ('unfair', 'reg_gdp'), (1.0,), (42,), epochs=1)\n"
        "sys.exit(run_main.main(['main', '--preset', 'smoke', '--device', 'cpu', '--store', sys.argv[1]]))\n"
    )
    done = subprocess.run([sys.executable, "-c", script, str(tmp_path)], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "0 stacks left" in done.stdout
    assert "reg_gdp" in done.stdout
    assert len(list((tmp_path / "main_smoke.parts").glob("*.npz"))) == 2


def test_plain_entry_explains_mistakes(capsys, tmp_path) -> None:
    assert run_main.main(["main", "--splits", "99", "--store", str(tmp_path)]) == 2
    assert "has 1 to 25" in capsys.readouterr().err


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
    monkeypatch.setattr(frhsic_core, "__file__", str(tmp_path / "package" / "frhsic_core" / "__init__.py"))
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
    with pytest.raises(FileNotFoundError, match=r"FRHSIC_BOOK is .*nowhere, which is no folder"):
        book_folder("results")


@pytest.mark.parametrize("arguments", [["status"], ["tables"], ["ledger"], ["run", "main"]])
def test_without_a_book_one_line_names_the_setting(monkeypatch, tmp_path, arguments) -> None:
    monkeypatch.setattr(frhsic_core, "__file__", str(tmp_path / "site" / "frhsic_core" / "__init__.py"))
    monkeypatch.delenv("FRHSIC_BOOK", raising=False)
    monkeypatch.chdir(tmp_path)
    result = CliRunner().invoke(app, arguments)
    assert result.exit_code == 2, result.output
    assert len(result.output.strip().splitlines()) == 1
    assert "set FRHSIC_BOOK to the book folder" in result.output
