"""Install the package as a user does and run its command."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tarfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Install a copy of the package, without its dependencies and away from the repository."""
    source, target = tmp_path_factory.mktemp("source"), tmp_path_factory.mktemp("site")
    shutil.copytree(
        ROOT / "frhsic_core", source / "frhsic_core", ignore=shutil.ignore_patterns("__pycache__")
    )
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, source)
    pip = [
        sys.executable,
        "-m",
        "pip",
        "install",
        "--quiet",
        "--no-deps",
        "--no-build-isolation",
        "--no-index",
    ]
    pip += ["--disable-pip-version-check"]
    done = subprocess.run(
        [*pip, "--target", str(target), str(source)], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    return target


def frhsic(
    site: Path, *arguments: str, cwd: Path, **settings: str
) -> subprocess.CompletedProcess[str]:
    """Run the installed command, which must be the one under ``site``."""
    environment = {name: value for name, value in os.environ.items() if name != "FRHSIC_BOOK"}
    environment |= {"PYTHONPATH": str(site), **settings}
    script = (
        f"import sys, frhsic_core; assert frhsic_core.__file__.startswith({str(site)!r}), frhsic_core.__file__\n"
        "from frhsic_core.cli import main; sys.argv[0] = 'frhsic'; main()"
    )
    # -P: the current folder, a clone with the package in it, must not win.
    command = [sys.executable, "-P", "-c", script, *arguments]
    return subprocess.run(command, capture_output=True, text=True, cwd=cwd, env=environment)


@pytest.mark.parametrize("cwd", [ROOT, ROOT / "notebooks"], ids=["clone", "below it"])
def test_in_a_clone_the_installed_command_finds_the_book(site: Path, cwd: Path) -> None:
    status = frhsic(site, "status", cwd=cwd)
    assert status.returncode == 0, status.stderr
    assert "19,200" in status.stdout
    tables = frhsic(site, "tables", cwd=cwd)
    assert tables.returncode == 0, tables.stderr
    assert "mmd_binned" in tables.stdout


def test_elsewhere_it_says_what_to_set_and_takes_it(site: Path, tmp_path: Path) -> None:
    lost = frhsic(site, "tables", cwd=tmp_path)
    assert (
        lost.returncode,
        len(lost.stderr.strip().splitlines()),
        "set FRHSIC_BOOK" in lost.stderr,
    ) == (2, 1, True)
    told = frhsic(site, "tables", cwd=tmp_path, FRHSIC_BOOK=str(ROOT / "book"))
    assert told.returncode == 0, told.stderr


@pytest.mark.parametrize(
    ("words", "shown"),
    [
        ("certify --quick --statement 4.5", "Theorem 4.5 holds"),
        ("run live --preset smoke --device cpu", "6 rows finished"),
    ],
)
def test_elsewhere_statements_are_checked_and_experiments_run(
    site: Path, tmp_path: Path, words: str, shown: str
) -> None:
    done = frhsic(site, *words.split(), cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert shown in done.stdout


@pytest.mark.parametrize("words", ["tables", "status", "ledger", "run main"])
def test_elsewhere_what_needs_stored_results_says_so(
    site: Path, tmp_path: Path, words: str
) -> None:
    done = frhsic(site, *words.split(), cwd=tmp_path)
    assert done.returncode == 2
    assert done.stderr.startswith(f"There is no book folder with stored results in {tmp_path}")


def test_every_module_is_imported_without_an_extra_and_without_the_book(
    site: Path, tmp_path: Path
) -> None:
    script = (
        "import sys; sys.modules.update(dict.fromkeys(['flint', 'matplotlib', 'pyarrow', 'skorch']))\n"
        "import importlib, pkgutil, frhsic_core\n"
        f"assert frhsic_core.__file__.startswith({str(site)!r})\n"
        "found = list(pkgutil.walk_packages(frhsic_core.__path__, 'frhsic_core.'))\n"
        "for module in found: importlib.import_module(module.name)\n"
        "print(len(found) > 150)"
    )
    environment = {name: value for name, value in os.environ.items() if name != "FRHSIC_BOOK"}
    environment["PYTHONPATH"] = str(site)
    command = [sys.executable, "-P", "-c", script]
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, env=environment)
    assert (done.returncode, done.stdout) == (0, "True\n"), done.stderr


def test_the_source_archive_has_every_file(tmp_path: Path) -> None:
    """From it the book is built and the tests are run; only what git itself needs is left out."""
    listed = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True)
    if listed.returncode != 0:
        pytest.skip("not a repository")
    names = [name for name in listed.stdout.splitlines() if (ROOT / name).is_file()]
    for name in names:
        (tmp_path / "copy" / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, tmp_path / "copy" / name)
    build = [sys.executable, "-m", "build", "--sdist", "--no-isolation", "--outdir"]
    done = subprocess.run(
        [*build, str(tmp_path)], cwd=tmp_path / "copy", capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    [archive] = tmp_path.glob("*.tar.gz")
    with tarfile.open(archive) as opened:
        found = {name.partition("/")[2] for name in opened.getnames()}
    assert set(names) - found <= {".gitignore", ".gitattributes"}
