"""What differs on Windows and macOS, tried here as far as one system can act as another."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from frhsic_core import _atomic_files

ROOT = Path(__file__).resolve().parents[1]
# Every module of the package is imported while it can import none of what Windows lacks.
WITHOUT_POSIX = """
import builtins, importlib, pkgutil
import frhsic_core

missing = {"fcntl", "resource", "pwd", "grp", "termios", "pty", "tty"}
original = builtins.__import__

def as_on_windows(name, globals=None, locals=None, fromlist=(), level=0):
    importer = (globals or {}).get("__name__", "")
    if name in missing and importer.startswith("frhsic_core"):
        raise ModuleNotFoundError(f"No module named {name!r}", name=name)
    return original(name, globals, locals, fromlist, level)

builtins.__import__ = as_on_windows
for module in pkgutil.walk_packages(frhsic_core.__path__, "frhsic_core."):
    if not module.name.endswith("__main__"):
        importlib.import_module(module.name)
print("all modules")
"""


def test_every_module_imports_without_what_windows_lacks() -> None:
    done = subprocess.run(
        [sys.executable, "-c", WITHOUT_POSIX], capture_output=True, text=True, cwd=ROOT
    )
    assert done.stdout == "all modules\n", done.stderr[-2000:]


def is_open(path: Path) -> bool:
    """Whether this process has a file open."""
    handles = Path("/proc/self/fd").iterdir()
    return any(os.path.realpath(handle) == str(path.resolve()) for handle in handles)


@pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="needs the list of open files")
def test_a_lock_is_removed_where_an_open_file_cannot_be(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As on Windows: there is no fcntl, and removing an open file is an error."""
    unlink = Path.unlink

    def unlink_closed(path: Path, missing_ok: bool = False) -> None:
        if is_open(path):
            raise PermissionError(32, "The file is used by another process", str(path))
        unlink(path, missing_ok=missing_ok)

    monkeypatch.setattr(Path, "unlink", unlink_closed)
    monkeypatch.setattr(_atomic_files, "os", WindowsLike())
    monkeypatch.setitem(sys.modules, "fcntl", None)
    lock = tmp_path / "run.lock"
    with _atomic_files.claim(lock) as held:
        assert held
        assert lock.is_file()
    assert not lock.exists()


class WindowsLike:
    """The module ``os`` under the name of Windows."""

    name = "nt"

    def __getattr__(self, name: str) -> object:
        return getattr(os, name)


def test_no_two_files_differ_by_case_alone() -> None:
    """Windows and macOS take them for one file."""
    done = subprocess.run(["git", "ls-files"], capture_output=True, text=True, cwd=ROOT)
    if done.returncode != 0:
        pytest.skip("not a repository")
    names = done.stdout.splitlines()
    assert len({name.lower() for name in names}) == len(names)
    reserved = {"con", "prn", "aux", "nul", "com1", "lpt1"}
    for name in names:
        assert not set('<>:"|?*') & set(name), name
        assert Path(name).stem.lower() not in reserved, name
        assert len(name) < 160, name


def test_a_folder_may_have_spaces_and_umlauts(tmp_path: Path) -> None:
    """And a console that knows neither λ nor ≥, as Windows has, ends no command."""
    room = tmp_path / "Größe der Prüfung"
    room.mkdir()
    environment = {**os.environ, "PYTHONIOENCODING": "cp1252", "PYTHONPATH": str(ROOT)}
    script = "from frhsic_core.cli import main; import sys; sys.argv[0] = 'frhsic'; main()"
    for words in (
        ["audit", "--demo", "--out", "Prüfung.html"],
        ["audit", "--help"],
        ["data", "list"],
    ):
        done = subprocess.run(
            [sys.executable, "-c", script, *words], capture_output=True, cwd=room, env=environment
        )
        assert done.returncode == 0, done.stderr.decode("cp1252")
    assert (room / "Prüfung.html").is_file()
