"""Keep the project from growing: each folder has a number of lines, and a feature pays for itself.

A change may raise a number only together with a line beside it that says what a user gets for it. A change that makes
a folder smaller lowers its number. The goal for each folder stands behind its number.
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
TOP = "the modules at the top"
LINES = {
    TOP: 1962,  # goal: 1,500 without bounds.py; 46 lines more for medians of one sample or many in a third of the time
    "joint": 4000,  # goal: 4,000; a million rows by small ranks or sorted columns, tests given C, kernels for a GPU
    "conditional": 965,  # goal: 1,000
    "laws": 905,  # goal: 1,400
    "learning": 4688,  # goal: 4,800; with 4 and 50 dimensions a step costs 1.8 and 2.2 times Unfair, on a GPU too
    "auditing": 2600,  # goal: 2,600
    "remedies": 1600,  # goal: 1,600; adjust_scores from scores and ages alone, raw tables, fit_best
    "data": 1551,  # goal: 1,700
    "cli": 700,  # goal: 700
    "paper": 12700,  # goal: 12,700
}
# One module more for the sentences of a report, so that a reader finds one without reading HTML.
LIBRARY, MODULES, TESTS = 31675, 135, 25000  # goals: 32,000, 155 and 25,000; a GPU computes a penalty beside the task
EXTENSIONS = 1500  # goal: 1,500 lines of the book's own scripts; slides have minutes and notes, a course its book


def lines(folder: Path) -> Counter[str]:
    """Return the number of lines of every Python file below the folder by its path."""
    found: Counter[str] = Counter()
    for path in folder.rglob("*.py"):
        with path.open(encoding="utf-8") as file:
            found[path.relative_to(folder).as_posix()] = sum(1 for _ in file)
    return found


def largest(found: Counter[str]) -> str:
    return ", ".join(f"{path} {count}" for path, count in found.most_common(8))


def test_no_folder_of_the_library_outgrows_its_number() -> None:
    found = lines(ROOT / "frhsic_core")
    parts: dict[str, Counter[str]] = {}
    for path, count in found.items():
        parts.setdefault(path.split("/")[0] if "/" in path else TOP, Counter())[path] = count
    assert set(parts) == set(LINES)
    grown = [
        f"{name}: {part.total()} lines, {LINES[name]} allowed; the largest: {largest(part)}"
        for name, part in parts.items()
        if part.total() > LINES[name]
    ]
    assert not grown, "\n".join(grown)
    assert found.total() <= LIBRARY, largest(found)
    assert len(found) <= MODULES


def test_neither_the_tests_nor_the_extensions_of_the_book_outgrow_theirs() -> None:
    """The explorers do not count: an interactive picture has no standard extension."""
    tests, extensions = lines(ROOT / "tests"), lines(ROOT / "book" / "_ext")
    for name in ("explorers.py", "frontier_data.py", "representation_data.py"):
        extensions.pop(name)
    assert tests.total() <= TESTS, largest(tests)
    assert extensions.total() <= EXTENSIONS, largest(extensions)
