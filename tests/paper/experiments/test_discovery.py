"""Every plan stands in the list of experiments. ``tests/test_contributing.py`` adds one more."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest
from records import Records

import frhsic_core.paper as paper
from frhsic_core.paper.experiments import (
    EXPERIMENTS,
    PLANS,
    experiment_for,
    module_of,
    modules,
    plans_for,
)
from frhsic_core.paper.runs.plan import Unit, digest

FOLDER = Path(paper.__file__).parent


def test_names_keep_their_order_and_resolve(recorded: Records) -> None:
    assert [table for tables in EXPERIMENTS.values() for table in tables] == list(PLANS)
    assert list(EXPERIMENTS)[:2] == ["main", "variants"]
    assert list(EXPERIMENTS)[2:] == sorted(list(EXPERIMENTS)[2:])
    recorded(planned(), "plans.json")


def plans_in(path: Path) -> set[str]:
    """Return the tables that a module plans: its own name for `plan`, and NAME for `plan_NAME`."""
    name = path.parent.name if path.name == "__init__.py" else path.stem
    tables = set()
    for node in ast.parse(path.read_text(encoding="utf-8")).body:
        if isinstance(node, ast.FunctionDef) and node.name == "plan":
            tables.add(name)
        elif isinstance(node, ast.FunctionDef) and node.name.startswith("plan_"):
            tables.add(node.name.removeprefix("plan_"))
    return tables


def test_every_plan_stands_in_the_list_of_its_experiment() -> None:
    """A module that nobody enters in the list would never run, and one more line there has no plan."""
    listed = {name: set(tables) for name, tables in EXPERIMENTS.items()}
    planned_in = {}
    for module in modules():
        planned_in[module.__name__.rpartition(".")[2]] = plans_in(Path(str(module.__file__)))
    assert planned_in == listed
    others = set((FOLDER / "experiments").rglob("*.py")) - {
        Path(str(m.__file__)) for m in modules()
    }
    others.remove(FOLDER / "experiments" / "__init__.py")
    assert {path.name: plans_in(path) for path in others if plans_in(path)} == {}


def planned() -> dict[str, list[float | str]]:
    """Return of each table and size the number of jobs, their weight, and a digest of the keys of all rows."""
    found: dict[str, list[float | str]] = {}
    for name in PLANS:
        for preset in ("smoke", "full"):
            plan = experiment_for(name, preset)
            keys = digest([plan.name, *sorted(plan.keys(), key=str)])
            found[f"{name} {preset}"] = [len(plan.jobs), sum(job.weight for job in plan.jobs), keys]
    return found


def test_an_experiment_has_its_tables_and_a_table_can_be_named_alone() -> None:
    tables = ["bound_tightness", "bandwidth_scaling", "held_out_bounds"]
    assert [plan.name for plan in plans_for("bound_tightness")] == tables
    assert [plan.name for plan in plans_for("held_out_bounds")] == ["held_out_bounds"]
    # A restriction leaves out the tables that it does not concern, and is refused if it concerns none.
    assert [plan.name for plan in plans_for("bound_tightness", datasets=("crime",))] == [
        "bound_tightness"
    ]
    with pytest.raises(ValueError, match="dataset nowhere"):
        plans_for("bound_tightness", datasets=("nowhere",))


def test_a_name_is_resolved_to_its_code() -> None:
    assert module_of("transfer").__name__ == "frhsic_core.paper.experiments.transfer"
    assert module_of("ablation").measure_unit.__name__ == "measure_unit_ablation"
    with pytest.raises(ModuleNotFoundError, match="nothing"):
        module_of("nothing")


def test_every_measurement_that_a_plan_names_exists() -> None:
    """Stored keys contain these names, so that they must resolve for as long as the rows are kept."""
    for name in PLANS:
        for job in experiment_for(name).jobs:
            if isinstance(job, Unit):
                assert callable(module_of(job.module).measure_unit), name
            else:
                assert not job.recipe.measure or callable(module_of(job.recipe.measure).measure), (
                    name
                )


def test_the_command_line_plans_results_and_figures_import_no_torch() -> None:
    script = (
        "import sys; from frhsic_core.paper.experiments import PLANS\n"
        "assert 'scipy' not in sys.modules\n"
        "import frhsic_core.cli.practice, frhsic_core.cli.paper; assert 'hsic' in dir(frhsic_core)\n"
        "[build() for build in PLANS.values()]\n"
        "from frhsic_core.paper.claims.answers import queries; ask = queries()\n"
        "ask['point'](dataset='compas', method='frhsic', measure='performance', lam=1.0)\n"
        "ask['row_setting'](experiment='main', formula='split.nunique()'); ask['tightness'](what='violations')\n"
        "from frhsic_core.paper.claims.stored import stored_answer; stored_answer('points', 'naup > 0', 'naup')\n"
        "import matplotlib; matplotlib.use('Agg'); from frhsic_core.paper.experiments.main import main_family\n"
        "from frhsic_core.paper.figures.plots import draw_verdicts\n"
        "draw_verdicts({'ours': main_family('text', measure='gdp_reference')})\n"
        "assert not {'torch', 'scipy.stats'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", script], check=True)


def test_experiments_use_the_register_of_queries_and_little_else_of_the_ledger() -> None:
    for path in [*(FOLDER / "runs").glob("*.py"), *(FOLDER / "experiments").rglob("*.py")]:
        tree = ast.parse(path.read_text(encoding="utf-8"))
        used = {
            node.module
            for node in ast.walk(tree)
            if isinstance(node, ast.ImportFrom) and node.module
        }
        ledger = {name for name in used if name.startswith("frhsic_core.paper.claims")}
        # The register of queries, and the table of the differences that matter.
        register = {"frhsic_core.paper.claims.answers", "frhsic_core.paper.claims.rules"}
        allowed = register if path.is_relative_to(FOLDER / "experiments") else set()
        assert ledger <= allowed, path.name
