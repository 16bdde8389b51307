"""The catalogue: every experiment that can be asked for by name is a module with a plan."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

import frhsic_core.experiments as experiments
from frhsic_core.experiments.catalogue import module_of
from frhsic_core.experiments.presets import MODULES

FOLDER = Path(experiments.__file__).parent


def functions(path: Path) -> set[str]:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    return {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}


def test_every_plan_of_the_catalogue_has_a_name_and_stands_nowhere_else() -> None:
    planned = {path.stem for path in (FOLDER / "catalogue").glob("*.py") if "plan" in functions(path)}
    assert planned == set(MODULES)
    assert not [p.stem for p in FOLDER.rglob("*.py") if "plan" in functions(p) and p.parent.name != "catalogue"]


def test_a_name_is_resolved_to_its_module() -> None:
    assert module_of("transfer").__name__ == "frhsic_core.experiments.catalogue.transfer"
    with pytest.raises(ModuleNotFoundError, match="nothing"):
        module_of("nothing")


def test_tables_and_machinery_do_not_import_the_ledger() -> None:
    """The ledger reads everything; only the command that prints it knows it."""
    for path in [*FOLDER.glob("*.py"), *(FOLDER / "tables").glob("*.py"), *(FOLDER / "catalogue").glob("*.py")]:
        tree = ast.parse(path.read_text(encoding="utf-8"))
        used = {node.module for node in ast.walk(tree) if isinstance(node, ast.ImportFrom) and node.module}
        knows = any(name.startswith("frhsic_core.experiments.ledger") for name in used)
        assert knows == (path == FOLDER / "commands.py"), path.name
