"""Who may import whom: the layers of the house, read from the imports themselves."""

from __future__ import annotations

import ast
import subprocess
import sys
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

PACKAGE = Path(__file__).resolve().parents[1] / "frhsic_core"
# Each layer and the layers it may use (itself always).
MAY_USE = {
    "arrays": set(),
    "atomic_files": set(),
    "distances": {"arrays"},
    "kernels": {"arrays", "distances"},
    "joint": {"kernels", "arrays"},
    "conditional": {"kernels", "arrays"},
    "laws": {"kernels", "arrays"},
    "learning": {"joint", "conditional", "kernels", "arrays"},
    "data": {"arrays"},
    "paper": {"learning", "joint", "conditional", "kernels", "arrays", "data", "laws", "atomic_files"},
    "cli": {"paper", "data", "learning", "joint", "conditional", "kernels", "arrays"},
}
HEAVY = {"pooch", "rich", "typer", "folktables", "matplotlib", "pyarrow", "plotly", "flint"}


def modules() -> list[Path]:
    return sorted(path for path in PACKAGE.rglob("*.py") if path != PACKAGE / "__init__.py")


def layer_of(path: Path) -> str:
    return path.relative_to(PACKAGE).parts[0].removesuffix(".py")


def imports(tree: ast.AST) -> set[str]:
    found = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            found.add(node.module)
            if node.module == "frhsic_core":
                found |= {f"frhsic_core.{alias.name}" for alias in node.names}
    return found


@pytest.mark.parametrize("path", modules(), ids=lambda path: str(path.relative_to(PACKAGE)))
def test_imports_point_the_right_way(path: Path) -> None:
    layer = layer_of(path)
    for name in imports(ast.parse(path.read_text(encoding="utf-8"))):
        if name.startswith("frhsic_core."):
            used = name.split(".")[1]
            if (PACKAGE / used).exists() or (PACKAGE / f"{used}.py").exists():
                assert used == layer or used in MAY_USE[layer], f"{layer} must not import {used} ({path.name})"


@pytest.mark.parametrize("path", modules(), ids=lambda path: str(path.relative_to(PACKAGE)))
def test_the_core_imports_with_five_packages_alone(path: Path) -> None:
    if layer_of(path) not in {"kernels", "arrays", "distances", "joint", "conditional", "laws", "learning"}:
        return
    body = ast.parse(path.read_text(encoding="utf-8")).body
    top = set().union(*(imports(node) for node in body if isinstance(node, (ast.Import, ast.ImportFrom))), set())
    assert not {name.split(".")[0] for name in top} & HEAVY


def test_no_module_needs_itself() -> None:
    """No circle of imports, those inside functions and for type checkers included."""
    names = {".".join(("frhsic_core", *p.relative_to(PACKAGE).with_suffix("").parts)): p for p in modules()}
    names = {name.removesuffix(".__init__"): path for name, path in names.items()}
    needs: dict[str, set[str]] = {}
    for name, path in names.items():
        needs[name] = set()
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ImportFrom) and node.module:
                for alias in node.names:
                    module = f"{node.module}.{alias.name}"
                    needs[name].add(module if module in names else node.module)
    assert needs["frhsic_core.paper.runs.jobs"] >= {
        "frhsic_core.paper.experiments",
        "frhsic_core.paper.runs.plan",
    }
    TopologicalSorter(needs).prepare()  # raises CycleError, which names the circle


def test_importing_the_package_imports_no_torch() -> None:
    script = "import sys, frhsic_core; assert 'torch' not in sys.modules; assert 'hsic' in dir(frhsic_core)"
    subprocess.run([sys.executable, "-c", script], check=True)


def test_every_exported_name_exists() -> None:
    import frhsic_core

    for name in frhsic_core.__all__:
        assert getattr(frhsic_core, name) is not None
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = frhsic_core.nothing


def test_the_command_line_starts_without_torch() -> None:
    script = (
        "import sys, importlib\n"
        "for name in ('data', 'statements', 'experiments'): importlib.import_module(f'frhsic_core.cli.{name}')\n"
        "assert 'torch' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", script], check=True)
