"""Notice when a package grows: each has a recorded size, and 10 % above the record fails.

The record is no budget, and nobody should press a line to stay below it. A change that needs more lines writes the new
size here, with a comment that says what a user gets for them.
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
AIR = 1.10
TOP = "the modules at the top"
RECORDED = {
    # Bounds that hold for all numbers of rows, for every head, for bounded kernels and for one
    # label, a sharper one for GDP, and the rows that a smaller bound needs.
    "bounds": 1568,
    # Users get the largest gap of any group, what was left out, copies, and verdicts that say so.
    # A report that begins with the decision, from templates, with pictures on one scale.
    "auditing": 4160,
    # A card, a map of the site, links to edit and report, and the picture of the README.
    "book/_ext": 2560,
    # A command that loses no file, follows links, writes devices, and says what a CSV cell means.
    # And a command that watches a model over months.
    "cli": 1420,
    # The scan of all groups of neighbors, and the people beyond the first and last percent.
    "conditional": 1500,
    "data": 1675,
    # With the checks of fit and the encoding of columns, so that remedies need no PyTorch for them.
    # Every kind of column is read once, in one way, and what could be misread is refused.
    # One rule for the cells of a CSV file, parquet folders, pipes, and tables written again.
    "inputs": 2160,
    # Each way to compute HSIC is a file of its own, and a list says when it serves and what it costs.
    "joint": 4900,
    # A step a line; a contributor checks a formula against the line that computes it.
    "laws": 1071,
    # A step a line, and messages within 100 columns: what a reader of the training loop sees.
    "learning": 5537,
    # A guarantee over the whole life of a model, pictures over time, and a state that resumes.
    "monitoring": 1240,
    # Statements with their steps named, one module that reads the book, and formulas that run no code.
    "paper": 15800,
    # An adjustment keeps the range and mean of scores, has links, weights and a sealed file. Each
    # remedy is a file with its mathematics; remedied models are classifiers or regressors. A
    # comparison predicts all samples, says its noise, and has convex paths and stacked models.
    "remedies": 4700,
    # One case a line, with names; the tricks to pass a gate, and brute force for every group.
    # Columns of every kind drawn for every call, and the textbook's formulas to compare with.
    "tests": 37000,
    # An audit, an adjustment, statistics, tests and bounds without PyTorch: the words of torch for
    # NumPy arrays, and the random numbers of its generator.
    TOP: 3150,
}


def lines_of(path: Path) -> int:
    """Return the number of lines of a file."""
    with path.open(encoding="utf-8") as file:
        return sum(1 for _ in file)


def package_of(path: Path) -> str:
    """Return the package of a module, or a word for the modules beside the packages."""
    parts = path.relative_to(ROOT / "frhsic_core").parts
    if len(parts) == 1:
        return TOP
    return parts[0]


def sizes() -> Counter[str]:
    """Return the lines of each package, of the tests, and of the extensions of the book."""
    found: Counter[str] = Counter()
    for path in (ROOT / "frhsic_core").rglob("*.py"):
        found[package_of(path)] += lines_of(path)
    for folder in ("tests", "book/_ext"):
        for path in (ROOT / folder).rglob("*.py"):
            found[folder] += lines_of(path)
    return found


def test_every_package_has_a_record() -> None:
    assert set(sizes()) == set(RECORDED)


@pytest.mark.parametrize("name", sorted(RECORDED))
def test_no_package_outgrows_its_record(name: str) -> None:
    size = sizes()[name]
    allowed = AIR * RECORDED[name]
    assert size <= allowed, (
        f"{name} has {size} lines, its record is {RECORDED[name]}: say in the record what users get."
    )
