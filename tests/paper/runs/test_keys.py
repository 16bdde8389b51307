"""The keys of stored rows do not change, and every stored table has an experiment and provenance.

A changed key would train stored models again.
"""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path

import pytest

import frhsic_core
from frhsic_core.paper.experiments import PLANS, experiment_for
from frhsic_core.paper.runs import plan
from frhsic_core.paper.runs.jobs import code_version
from frhsic_core.paper.runs.plan import STORED_SPELLING, Recipe, Task
from frhsic_core.paper.runs.store import ResultStore
from frhsic_core.paper.runs.stored import book_folder

TABLES = sorted(
    path.stem for path in book_folder("results").iterdir() if path.suffix in (".csv", ".parquet")
)


@pytest.mark.parametrize("name", PLANS)
def test_every_planned_row_is_stored(name: str) -> None:
    """Another key would compute stored rows again. If a setting was renamed, add it to STORED_SPELLING."""
    found = experiment_for(name)
    assert found.missing(ResultStore(book_folder("results"), found.name).done()) == []


def test_a_new_spelling_is_the_stored_recipe(monkeypatch) -> None:
    recipe = Recipe(Task("compas", "text", "text"), "frhsic")
    monkeypatch.setattr(plan, "STORED_SPELLING", {})
    stored = {new: replace(recipe, settings=old).key for new, old in STORED_SPELLING.items()}
    monkeypatch.undo()
    for new, key in stored.items():
        assert replace(recipe, settings=(new,)).key == key != recipe.key


def test_the_code_version_is_that_of_the_sources_which_decide_the_numbers(
    tmp_path, monkeypatch
) -> None:
    copy = tmp_path / "frhsic_core"
    shutil.copytree(
        Path(frhsic_core.__file__).parent, copy, ignore=shutil.ignore_patterns("__pycache__")
    )
    versions = [code_version.__wrapped__().split()[0]]
    monkeypatch.setattr(frhsic_core, "__file__", str(copy / "__init__.py"))
    for name in ("cli/practice.py", "joint/_hsic.py", "paper/runs/jobs.py"):
        versions.append(code_version.__wrapped__().split()[0])
        with (copy / name).open("a") as file:
            file.write("# changed\n")
    versions.append(code_version.__wrapped__().split()[0])
    assert versions[0] == versions[1] == versions[2], (
        "a copy, or a change of what is printed, is no new version"
    )
    assert len(set(versions)) == 3


def test_every_stored_table_belongs_to_an_experiment() -> None:
    assert set(TABLES) == {plan().name for plan in PLANS.values()}


@pytest.mark.parametrize("name", TABLES)
def test_every_stored_row_has_provenance(name: str) -> None:
    store = ResultStore(book_folder("results"), name)
    side = store.provenance()
    study = "study" in side
    records = side["units" if study else "stacks"]
    for record in records:
        assert {"code", "device"} <= set(side["environments"][record["environment"]])
    if study:
        stored = store.read()["unit"].value_counts().to_dict()
        assert stored == {record["key"]: record["rows"] for record in records}
