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
BACKEND = {"backend", "gradients"}
FACTS = {"_choices", "registry"}
STATISTICS = {"inputs", "kernels", "_arrays", "_choices", *BACKEND}
# Each top-level module or package, and the others that it may import.
MAY_USE = {
    "_choices": set(),
    "_lazy": set(),
    "registry": set(),
    "_atomic_files": set(),
    "inputs": {"_choices"},
    "backend": set(),
    "gradients": set(),
    "_arrays": {"inputs", "_choices", *BACKEND},
    "kernels": {"inputs", "_arrays", "_choices", *BACKEND},
    "joint": {"_lazy", *STATISTICS},
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


# What still reaches over a wall: a module, and the private module of another package that it imports.
# No line may join. Who opens a module, or moves what is used, takes its lines away.
OVER_THE_WALL = {
    ("auditing/_measuring.py", "conditional._curve"),
    ("auditing/_metric.py", "conditional._curve"),
    ("auditing/_pictures.py", "conditional._curve"),
    ("auditing/_statistics.py", "conditional._curve"),
    ("auditing/changes.py", "conditional._curve"),
    ("cli/paper.py", "data._files"),
    ("cli/paper.py", "data._loading"),
    ("cli/paper.py", "data._recipes"),
    ("cli/practice.py", "data._loading"),
    ("learning/penalties/base.py", "conditional._smoothing"),
    ("learning/penalties/frem.py", "conditional._eipm"),
    ("learning/penalties/frem.py", "conditional._smoothing"),
    ("learning/penalties/reg_gdp.py", "conditional._smoothing"),
    ("paper/claims/settings.py", "data._recipes"),
    ("paper/claims/settings.py", "data._synthetic"),
    ("paper/datasets.py", "data._adult"),
    ("paper/datasets.py", "data._crime"),
    ("paper/datasets.py", "data._files"),
    ("paper/datasets.py", "data._loading"),
    ("paper/datasets.py", "data._meps"),
    ("paper/datasets.py", "data._recipes"),
    ("paper/datasets.py", "data._synthetic"),
    ("paper/experiments/bound_tightness.py", "conditional._curve"),
    ("paper/experiments/cost/__init__.py", "data._recipes"),
    ("paper/experiments/equal_opportunity.py", "data._recipes"),
    ("paper/experiments/lambda_selection.py", "data._recipes"),
    ("paper/experiments/levels_and_coverage.py", "conditional._curve"),
    ("paper/experiments/mutual_information.py", "data._recipes"),
    ("paper/experiments/transfer.py", "data._recipes"),
    ("paper/runs/jobs.py", "data._recipes"),
    ("paper/runs/runner.py", "data._files"),
    ("paper/runs/runner.py", "data._loading"),
    ("paper/statements/disintegration.py", "laws._finite"),
    ("paper/statements/spectral.py", "laws._mercer"),
    ("paper/stored_gdp.py", "conditional._gdp"),
    ("paper/stored_gdp.py", "conditional._smoothing"),
    ("paper/summaries.py", "data._files"),
    ("paper/summaries.py", "data._recipes"),
}


def private_imports(path: Path) -> set[str]:
    """Return the private modules of other packages that a module imports."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if not isinstance(node, ast.ImportFrom) or not node.module:
            continue
        for alias in node.names:
            package, *inside = f"{node.module}.{alias.name}".split(".")
            if package != "frhsic_core" or inside[0] == layer_of(path):
                continue
            # A private module, or a private name; the modules beside the packages belong to all.
            hidden = [name for name in inside[1:] if name.startswith("_")]
            if hidden:
                found.add(".".join(inside[: inside.index(hidden[0]) + 1]))
    return found


def test_packages_import_public_modules_of_each_other() -> None:
    over = set()
    for path in modules():
        name = path.relative_to(PACKAGE).as_posix()
        over |= {(name, module) for module in private_imports(path)}
    assert sorted(over - OVER_THE_WALL) == [], "import what the package offers, or open the module"
    assert sorted(OVER_THE_WALL - over) == [], "this is gone: take its line away"


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
