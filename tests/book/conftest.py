"""The built book and its written pages, each once for all tests of all workers."""

from __future__ import annotations

import os
import pickle
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).resolve().parents[2]
SOURCES = ("_toc.yml", "_config.yml", "book/**/*", "notebooks/*.ipynb", "frhsic_core/**/*.py")


def is_fresh(page: Path) -> bool:
    """Whether a built page is younger than everything the book is made from, and the book has its solutions."""
    solutions = page.with_name("book") / "solutions.html"
    if (
        not page.is_file()
        or not solutions.is_file()
        or 'id="solution-' not in solutions.read_text(encoding="utf-8")
    ):
        return False
    files = [path for pattern in SOURCES for path in ROOT.glob(pattern) if path.is_file()]
    return page.stat().st_mtime > max(
        path.stat().st_mtime for path in files if "__pycache__" not in path.parts
    )


def ready_book() -> Path | None:
    """Return the folder of ``FRHSIC_HTML``, or ``_build/html`` when it is fresh."""
    if named := os.environ.get("FRHSIC_HTML"):
        return Path(named)
    ready = ROOT / "_build" / "html"
    return ready if is_fresh(ready / "index.html") else None


def build(target: Path, *options: str | Path, **settings: str) -> Path:
    """Build the book, with warnings as errors; return its folder of HTML pages."""
    # Pages of modules that have moved since the last build would be built, and warned about.
    shutil.rmtree(ROOT / "book" / "generated", ignore_errors=True)
    command = [
        Path(sys.executable).with_name("jupyter-book"),
        "build",
        "-W",
        "-n",
        "--keep-going",
        *options,
    ]
    done = subprocess.run(
        [*command, "--path-output", target, "."],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
        env=os.environ | settings,
    )
    trouble = [
        line
        for line in (done.stdout + done.stderr).splitlines()
        if "WARNING" in line or "rror" in line
    ]
    assert done.returncode == 0, "the book does not build cleanly:\n" + "\n".join(trouble[-20:])
    return target / "_build" / "html"


@pytest.fixture(scope="session")
def built_book(once: Callable[..., Any], shared_folder: Path) -> Path:
    """Return the folder of HTML pages of the whole book: one that is ready, or a new one. It takes minutes."""
    return ready_book() or once("book", lambda: build(shared_folder / "book"))


@pytest.fixture(scope="session")
def written_pages(
    once: Callable[..., Any], shared_folder: Path, request: pytest.FixtureRequest
) -> Path:
    """Return the folder of HTML pages without the pages of modules and the listings of their sources.

    They are three quarters of the time of a build. References to Python objects are checked in the whole book alone.
    """
    if ready := ready_book():
        return ready

    def written() -> Path:
        book = yaml.safe_load((ROOT / "_config.yml").read_text(encoding="utf-8"))
        book["exclude_patterns"].append("book/generated")
        sphinx = book["sphinx"]
        sphinx["extra_extensions"].remove("sphinx.ext.viewcode")
        extensions = {"without_modules": "tests/book", **sphinx["local_extensions"]}
        sphinx["local_extensions"] = {
            name: str(ROOT / folder) for name, folder in extensions.items()
        }
        sphinx["config"]["autosummary_generate"] = False
        del sphinx["config"]["viewcode_follow_imported_members"]
        sphinx["config"]["nitpick_ignore_regex"].append(["py:.*", ".*"])
        config, values = shared_folder / "written.yml", shared_folder / "values.pickle"
        config.write_text(yaml.safe_dump(book, sort_keys=False), encoding="utf-8")
        values.write_bytes(pickle.dumps(request.getfixturevalue("values_of_pages")))
        return build(shared_folder / "written", "--config", config, FRHSIC_PAGE_VALUES=str(values))

    return once("written_pages", written)


@pytest.fixture(scope="session")
def values_of_pages(once: Callable[..., Any], full_ledger: Any) -> dict[str, Any]:
    """Return the numbers that the pages of the book show."""
    from frhsic_core.paper import page_values

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(
            page_values, "ledger", lambda: full_ledger
        )  # another worker may have computed it
        return once("page_values", page_values.page_values)


@pytest.fixture(scope="session", params=["written", pytest.param("whole", marks=pytest.mark.slow)])
def book(request: pytest.FixtureRequest) -> Path:
    """Return the folder of HTML pages: the written ones and, in the tests that take long, the whole book."""
    return request.getfixturevalue(
        {"written": "written_pages", "whole": "built_book"}[request.param]
    )
