"""With several workers the longest files start first, and no worker waits for the book that another one builds."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[1]


@pytest.fixture
def conftest(request: pytest.FixtureRequest) -> Any:
    return request.config.pluginmanager.get_plugin(str(Path(__file__).with_name("conftest.py")))


def test_files_start_in_turn(conftest: Any) -> None:
    files = {
        "tests/book/test_api_page.py": ["", "built_book", ""],
        "tests/test_short.py": ["", ""],
        "notebooks/results.ipynb": [None],
        "tests/test_contributing.py": [""],
        "tests/book/test_browser.py": ["built_book", ""],
    }
    items = [
        SimpleNamespace(path=ROOT / name, number=number, **({} if fixture is None else {"fixturenames": [fixture]}))
        for name, fixtures in files.items()
        for number, fixture in enumerate(fixtures)
    ]
    seen = [(str(item.path.relative_to(ROOT)), item.number) for item in conftest.in_turn(items)]
    names = [*reversed(files)]
    names[2:4] = ["notebooks/results.ipynb", "tests/test_short.py"]
    assert seen == [(name, number) for name in names for number in range(len(files[name]))]


def test_the_longest_files_exist(conftest: Any) -> None:
    assert [name for name in conftest.LONGEST if not (ROOT / name).is_file()] == []


def test_make_keeps_the_turns() -> None:
    """Without the option, workers get the files with the most tests first, whatever the order is."""
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    assert "--dist loadfile --no-loadscope-reorder" in makefile
