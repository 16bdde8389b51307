"""The catalogue: every experiment that can be asked for by name is a module with a plan."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

import frhsic_core.paper as paper
from frhsic_core.paper.experiments import module_of
from frhsic_core.paper.experiments.presets import MODULES

FOLDER = Path(paper.__file__).parent


def functions(path: Path) -> set[str]:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    return {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}


def test_every_plan_of_the_catalogue_has_a_name_and_stands_nowhere_else() -> None:
    planned = {path.stem for path in (FOLDER / "experiments").glob("*.py") if "plan" in functions(path)}
    assert planned == set(MODULES)
    assert not [p.stem for p in FOLDER.rglob("*.py") if "plan" in functions(p) and p.parent.name != "experiments"]


def test_a_name_is_resolved_to_its_module() -> None:
    assert module_of("transfer").__name__ == "frhsic_core.paper.experiments.transfer"
    with pytest.raises(ModuleNotFoundError, match="nothing"):
        module_of("nothing")


def test_tables_and_machinery_do_not_import_the_ledger() -> None:
    """The ledger reads everything; nothing that it reads imports it."""
    for path in [*(FOLDER / "runs").glob("*.py"), *(FOLDER / "experiments").rglob("*.py")]:
        tree = ast.parse(path.read_text(encoding="utf-8"))
        used = {node.module for node in ast.walk(tree) if isinstance(node, ast.ImportFrom) and node.module}
        assert not any(name.startswith("frhsic_core.paper.claims") for name in used), path.name
