"""The keys of stored rows do not change, and every stored table has an experiment and provenance.

A changed key would train stored models again.
"""

from __future__ import annotations

import ast
import shutil
from dataclasses import replace
from pathlib import Path

import pytest

import frhsic_core
from frhsic_core.paper.experiments import PLANS, experiment_for
from frhsic_core.paper.runs import jobs, plan
from frhsic_core.paper.runs.plan import STORED_SPELLING, Recipe, Task
from frhsic_core.paper.runs.store import ResultStore
from frhsic_core.paper.stored import book_folder

PACKAGE = Path(frhsic_core.__file__).parent
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


@pytest.fixture(scope="module")
def copied_package(tmp_path_factory) -> Path:
    """Return a copy of the package, which a test may change."""
    copy = tmp_path_factory.mktemp("copy") / "frhsic_core"
    no_bytecode = shutil.ignore_patterns("__pycache__")
    return shutil.copytree(PACKAGE, copy, ignore=no_bytecode)


def digest_after_a_change(package: Path, module: Path) -> str:
    """Return the digest of a package in which a line is added to one module, and take it back."""
    original = module.read_bytes()
    module.write_bytes(original + b"# changed\n")
    try:
        return jobs.digest_of_sources(package)
    finally:
        module.write_bytes(original)


def test_a_change_of_any_source_that_decides_numbers_is_a_new_version(copied_package: Path) -> None:
    unchanged = jobs.digest_of_sources(copied_package)
    assert unchanged == jobs.digest_of_sources(PACKAGE), "a copy is no new version"
    sources = jobs.deciding_sources(copied_package)
    names = {source.relative_to(copied_package).as_posix() for source in sources}
    # These three were not hashed by an earlier list, and what they decide is stored.
    assert names >= {"_arrays.py", "paper/datasets.py", "inputs/columns.py"}
    for source in sources:
        assert digest_after_a_change(copied_package, source) != unchanged, source
    assert jobs.digest_of_sources(copied_package) == unchanged


def test_a_change_of_what_is_shown_is_no_new_version(copied_package: Path) -> None:
    unchanged = jobs.digest_of_sources(copied_package)
    others = set(copied_package.rglob("*.py")) - set(jobs.deciding_sources(copied_package))
    assert copied_package / "paper" / "figures" / "plots.py" in others
    for module in sorted(others):
        assert digest_after_a_change(copied_package, module) == unchanged, module


def test_a_name_that_is_no_file_is_an_error(monkeypatch) -> None:
    monkeypatch.setattr(jobs, "_WITHOUT_NUMBERS", ("cli", "paper/drawings.py"))
    with pytest.raises(FileNotFoundError, match=r"paper/drawings\.py in _WITHOUT_NUMBERS"):
        jobs.digest_of_sources(PACKAGE)


def imported_by(module: Path) -> set[Path]:
    """Return the modules of the package that one module imports, also inside of its functions."""
    names = set()
    for node in ast.walk(ast.parse(module.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            names.add(node.module)
            names |= {f"{node.module}.{alias.name}" for alias in node.names}
    places = [PACKAGE.parent.joinpath(*name.split(".")) for name in names]
    files = [place.with_suffix(".py") for place in places]
    files += [place / "__init__.py" for place in places]
    return {file for file in files if file.is_file() and file.is_relative_to(PACKAGE)}


def test_the_version_covers_all_that_a_job_imports() -> None:
    """Walk the imports from the module that runs a job, through the library."""
    start = PACKAGE / "paper" / "runs" / "jobs.py"
    found = {start}
    waiting = [start]
    while waiting:
        new = imported_by(waiting.pop()) - found
        found |= new
        waiting += new
    assert len(found) > 50
    assert PACKAGE / "registry.py" in found
    assert found <= set(jobs.deciding_sources(PACKAGE))
    # A study measures with the functions of its experiment, which is imported by name.
    experiments = set((PACKAGE / "paper" / "experiments").rglob("*.py"))
    assert experiments <= set(jobs.deciding_sources(PACKAGE))


def test_rows_of_an_older_version_stay_valid() -> None:
    """Rows are found by the keys of their settings, and each keeps the version that measured it."""
    store = ResultStore(book_folder("results"), "main")
    versions = {environment["code"] for environment in store.provenance()["environments"]}
    assert jobs.code_version() not in versions
    assert experiment_for("main").missing(store.done()) == []


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
