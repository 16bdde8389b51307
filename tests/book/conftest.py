"""The built book, once for all tests of all workers."""

from __future__ import annotations

import fcntl
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
SOURCES = ("_toc.yml", "_config.yml", "CHANGELOG.md", "book/**/*", "notebooks/*.ipynb", "frhsic_core/**/*.py")


def is_fresh(page: Path) -> bool:
    """Whether a built page is younger than everything the book is made from, and the book has its solutions."""
    solutions = page.with_name("book") / "solutions.html"
    if not page.is_file() or not solutions.is_file() or 'id="solution-' not in solutions.read_text(encoding="utf-8"):
        return False
    files = [path for pattern in SOURCES for path in ROOT.glob(pattern) if path.is_file()]
    return page.stat().st_mtime > max(path.stat().st_mtime for path in files if "__pycache__" not in path.parts)


@pytest.fixture(scope="session")
def built_book(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder of HTML pages: that of ``FRHSIC_HTML``, or ``_build/html`` when it is fresh, or a new one.

    A new build takes warnings as errors.
    """
    if named := os.environ.get("FRHSIC_HTML"):
        return Path(named)
    ready = ROOT / "_build" / "html"
    if is_fresh(ready / "index.html"):
        return ready
    base = tmp_path_factory.getbasetemp()
    shared = base.parent if os.environ.get("PYTEST_XDIST_WORKER") else base
    with (shared / "book.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        html = shared / "book" / "_build" / "html"
        if not (html / "index.html").is_file():
            # Pages of modules that have moved since the last build would be built, and warned about.
            shutil.rmtree(ROOT / "book" / "generated", ignore_errors=True)
            command = [Path(sys.executable).with_name("jupyter-book"), "build", "-W", "-n", "--keep-going"]
            done = subprocess.run(
                [*command, "--path-output", shared / "book", "."], cwd=ROOT, capture_output=True, text=True, check=False
            )
            trouble = [line for line in (done.stdout + done.stderr).splitlines() if "WARNING" in line or "rror" in line]
            assert done.returncode == 0, "the book does not build cleanly:\n" + "\n".join(trouble[-20:])
    return html
