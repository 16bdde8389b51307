"""Check which package may import which, by reading the imports."""

from __future__ import annotations

import ast
import pkgutil
import re
import subprocess
import sys
import tomllib
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = ROOT / "frhsic_core"
FACTS = {"_choices", "registry"}
STATISTICS = {"inputs", "kernels", "_arrays", "_choices"}
# Each top-level module or package, and the others that it may import.
MAY_USE = {
    "_choices": set(),
    "_lazy": set(),
    "registry": set(),
    "_atomic_files": set(),
    "inputs": {"_choices"},
    "_arrays": {"inputs", "_choices"},
    "kernels": {"inputs", "_arrays", "_choices"},
    "joint": STATISTICS,
    "conditional": STATISTICS,
    "laws": STATISTICS,
    "bounds": {"joint", *STATISTICS},
    "auditing": {"bounds", "joint", "conditional", "_atomic_files", *STATISTICS, *FACTS},
    "monitoring": {"bounds", "inputs", "_atomic_files"},
    "learning": {
        "_lazy",
        "auditing",
        "bounds",
        "joint",
        "conditional",
        "_atomic_files",
        *STATISTICS,
        *FACTS,
    },
    "remedies": {
        "auditing",
        "learning",
        "joint",
        "conditional",
        "_atomic_files",
        *STATISTICS,
        *FACTS,
    },
    "data": {"_arrays", "_atomic_files", *FACTS},
    "paper": {
        "bounds",
        "remedies",
        "auditing",
        "learning",
        "joint",
        "conditional",
        "laws",
        "data",
        "_atomic_files",
        *STATISTICS,
        *FACTS,
    },
    "cli": {
        "paper",
        "monitoring",
        "remedies",
        "auditing",
        "data",
        "conditional",
        "_atomic_files",
        *STATISTICS,
        *FACTS,
    },
}
# What the library imports with. The packages after the first five belong to `load_dataset` and to the command.
FIVE = {"numpy", "scipy", "torch", "sklearn", "pandas"}
CORE = set(MAY_USE) - {"data", "paper", "cli"}


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
            if (PACKAGE / used / "__init__.py").exists() or (PACKAGE / f"{used}.py").exists():
                assert used == layer or used in MAY_USE[layer], (
                    f"{layer} must not import {used} ({path.name})"
                )


def named_modules(tree: ast.AST) -> set[str]:
    """Return the modules of this library that strings name: a string can be imported as well as a name."""
    strings = [
        node.value
        for node in ast.walk(tree)
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
    ]
    return {module for text in strings for module in re.findall(r"frhsic_core\.(\w+)", text)}


@pytest.mark.parametrize("path", modules(), ids=lambda path: str(path.relative_to(PACKAGE)))
def test_no_string_names_the_paper_or_the_command(path: Path) -> None:
    if layer_of(path) not in ("paper", "cli"):
        assert not named_modules(ast.parse(path.read_text(encoding="utf-8"))) & {"paper", "cli"}, (
            path.name
        )


def test_every_package_has_a_rule_and_only_the_command_imports_the_paper() -> None:
    assert {layer_of(path) for path in modules()} <= set(MAY_USE), "add the new package to MAY_USE"
    assert [layer for layer, used in MAY_USE.items() if "paper" in used] == ["cli"]
    assert [layer for layer, used in MAY_USE.items() if "cli" in used] == []
    importing = set()
    for path in modules():
        names = imports(ast.parse(path.read_text(encoding="utf-8")))
        if layer_of(path) != "paper" and any(n.startswith("frhsic_core.paper") for n in names):
            importing.add(path.relative_to(PACKAGE).as_posix())
    assert importing == {"cli/paper.py"}
    TopologicalSorter(MAY_USE).prepare()


def test_one_module_reads_the_book() -> None:
    """What an installed package lacks is behind the functions of one module, which says what to do."""
    callers = set()
    for path in modules():
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ImportFrom | ast.Call) and "book_folder" in ast.unparse(node):
                callers.add(path.relative_to(PACKAGE).as_posix())
    assert callers == {"paper/stored.py"}


def without(packages: set[str], script: str) -> subprocess.CompletedProcess[str]:
    """Run a script in which the packages cannot be imported."""
    script = f"import sys; sys.modules.update(dict.fromkeys({sorted(packages)}))\n{script}"
    return subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)


def declared(*extras: str) -> set[str]:
    """Return the import names of the dependencies, or of the extras, without the five packages of the library."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    groups = [project["optional-dependencies"][extra] for extra in extras] or [
        project["dependencies"]
    ]
    names = {line.partition(">")[0].partition("[")[0] for group in groups for line in group} - {
        "frhsic-core"
    }
    imports = {"scikit-learn": "sklearn", "python-flint": "flint", "POT": "ot"}
    with_them = {"joblib", "threadpoolctl", "jinja2"}  # scikit-learn and PyTorch need them
    return {imports.get(name, name.replace("-", "_")) for name in names} - FIVE - with_them


@pytest.mark.slow
def test_the_library_needs_five_packages_alone() -> None:
    blocked = declared() | declared("paper", "test")
    assert {
        "pooch",
        "requests",
        "rich",
        "typer",
        "matplotlib",
        "pyarrow",
        "flint",
        "folktables",
    } <= blocked
    names = [
        ".".join(("frhsic_core", *path.relative_to(PACKAGE).with_suffix("").parts))
        for path in modules()
    ]
    core = [name.removesuffix(".__init__") for name in names if name.split(".")[1] in CORE]
    assert len(core) > 50
    script = (
        f"import importlib\nfor name in {core}: importlib.import_module(name)\n"
        "from frhsic_core import FairClassifier, HSICLoss, hsic_test\n"
        "import numpy as np, warnings\nwarnings.simplefilter('ignore')\n"
        "x = np.random.RandomState(0).normal(size=(200, 2)); s = x[:, 0]\n"
        "FairClassifier(1.0, epochs=1).fit(x, (s > 0).astype(int), sensitive_features=s)\n"
        "print(float(HSICLoss(1.0)(x, s)))"
    )
    done = without(blocked, script)
    assert done.returncode == 0, done.stderr
    # The same with a package that it does need: the blocker works.
    assert without({"scipy"}, script).returncode == 1


def test_the_command_and_the_data_need_no_extra() -> None:
    script = (
        "from frhsic_core.cli import command\n"
        "for line in ('--help', 'run --help', 'certify --help', 'data list', 'data card synthetic'):\n"
        "    command()(line.split(), standalone_mode=False)\n"
        "import frhsic_core; print(frhsic_core.load_dataset('synthetic', n=10))"
    )
    done = without(declared("paper", "test"), script)
    assert done.returncode == 0, done.stderr


def test_the_commands_of_practice_import_nothing_of_the_paper(tmp_path: Path) -> None:
    script = (
        "import sys\n"
        "from frhsic_core.cli import command\n"
        f"for line in ('audit --demo --out {tmp_path}/audit.html', 'adjust --help', 'monitor --help'):\n"
        "    command()(line.split(), standalone_mode=False)\n"
        "assert not [name for name in sys.modules if name.startswith('frhsic_core.paper')]\n"
        "command()(['--help'], standalone_mode=False)\n"
        "assert 'frhsic_core.cli.paper' in sys.modules"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    practice, paper = done.stdout.split("─ Practice ─")[1].split("─ The paper ─")
    assert re.findall(r"(?m)^│ (\w+) ", practice) == ["audit", "adjust", "monitor"]
    assert re.findall(r"(?m)^│ (\w+) ", paper) == [
        "certify",
        "run",
        "tables",
        "status",
        "ledger",
        "data",
    ]


def test_no_module_needs_itself() -> None:
    """No two modules import each other, including imports inside functions and for type checkers."""
    names = {
        ".".join(("frhsic_core", *p.relative_to(PACKAGE).with_suffix("").parts)): p
        for p in modules()
    }
    names = {name.removesuffix(".__init__"): path for name, path in names.items()}
    needs: dict[str, set[str]] = {}
    for name, path in names.items():
        needs[name] = set()
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ImportFrom) and node.module:
                for alias in node.names:
                    module = f"{node.module}.{alias.name}"
                    needs[name].add(module if module in names else node.module)
    assert needs["frhsic_core.data._loading"] >= {"frhsic_core.registry", "frhsic_core.data._files"}
    TopologicalSorter(needs).prepare()  # raises CycleError, which names the modules


def test_every_exported_name_exists() -> None:
    import frhsic_core

    for name in frhsic_core.__all__:
        assert getattr(frhsic_core, name) is not None
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = frhsic_core.nothing


def test_every_name_that_the_books_scripts_import_exists() -> None:
    """A script that measured stored numbers must be able to measure them again; mypy does not read it."""
    for path in (ROOT / "book").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("frhsic_core"):
                for name in node.names:
                    pkgutil.resolve_name(f"{node.module}:{name.name}")


def test_no_extension_of_the_book_needs_itself() -> None:
    folder = ROOT / "book" / "_ext"
    names = {path.stem for path in folder.glob("*.py")}
    needs = {}
    for path in folder.glob("*.py"):
        needs[path.stem] = imports(ast.parse(path.read_text(encoding="utf-8"))) & names
    assert "mathjax" in needs["offline_assets"]
    TopologicalSorter(needs).prepare()
