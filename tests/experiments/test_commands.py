"""The four commands and the plain entry, on the smoke preset and on made-up rows."""

from __future__ import annotations

import subprocess
import sys

import pandas as pd
import pytest
import typer
from typer.testing import CliRunner

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


def test_results_belong_to_a_checkout(monkeypatch, tmp_path) -> None:
    monkeypatch.setenv("FRHSIC_BOOK", str(tmp_path))
    assert book_folder("results") == tmp_path / "results"
    monkeypatch.setenv("FRHSIC_BOOK", str(tmp_path / "nowhere"))
    with pytest.raises(FileNotFoundError, match="set FRHSIC_BOOK"):
        book_folder("results")
