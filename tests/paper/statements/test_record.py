"""Every statement gives the recorded verdicts, sides and details: at small size, and slowly at the size of the book.

If a change is meant, run this file with Python: it writes the record of the small size again. Then read the difference.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from frhsic_core.paper.record import compare, read_recorded, record, row
from frhsic_core.paper.runs.stored import book_folder
from frhsic_core.paper.statements.registry import checks, run_checks, statements

RECORD = Path(__file__).with_name("quick.json")
SIZED = [n for n in statements() if any("quick" in inspect.signature(one).parameters for one in checks()[n])]
SHOWN = {"/middle", "/upper", "/details/family of the worst"}


def leaves(value: Any, name: str = "") -> Iterator[tuple[str, Any]]:
    """Yield what nested lists and dicts hold, with its place."""
    if isinstance(value, dict | list):
        for key, part in value.items() if isinstance(value, dict) else enumerate(value):
            yield from leaves(part, f"{name}/{key}")
    else:
        yield name, value


def agree(now: Any, before: Any, *, rounding: float = 1e-9) -> bool:
    """Whether two words are equal, or two numbers up to four of the six recorded digits; what is rounding is zero."""
    numbers = isinstance(now, int | float) and isinstance(before, int | float)
    return now == before or (numbers and math.isclose(now, before, rel_tol=1e-4, abs_tol=rounding))


@pytest.mark.parametrize(
    ("number", "quick"),
    [*((n, True) for n in statements())]
    + [pytest.param(n, False, marks=[pytest.mark.slow, pytest.mark.recorded]) for n in SIZED],
)
def test_nothing_differs_from_the_record(number: str, quick: bool, tmp_path: Path) -> None:
    results, written = list(run_checks([number], quick=quick)), tmp_path / "new" / "record.json"
    for _ in range(2):  # a record can be written again
        record(results, written, quick=results)
    assert compare(results, read_recorded(written), numbers=[number], quick=quick) == ([], [])
    book = read_recorded(book_folder("claims", "verdicts.json"))
    assert compare(results, book, numbers=[number], quick=quick) == ([], [])
    recorded = read_recorded(RECORD) if quick else book
    for result in results:
        now, before = (dict(leaves({**one, "quick": None})) for one in (row(result), recorded[result.key]))
        # Rounding chooses which of several laws at the edge of an inequality is shown.
        free = SHOWN if now.keys() >= SHOWN and abs(result.certificate.slack) < 1e-9 else set()
        assert now.keys() == before.keys()
        assert agree(now["/tolerance"], before["/tolerance"], rounding=0.0)
        assert not [(name, now[name], before[name]) for name in now.keys() - free if not agree(now[name], before[name])]
        # A search finds no violation, and reaches the edge of its inequality.
        assert now.get("/details/violations", 0) == 0
        assert now.get("/details/largest left/right", 1.0) > 0.99
        # The chapters say that coverage alone would accept a bound of a tenth of the size.
        assert now.get("/details/fraction of the bound at which coverage breaks", 0.0) < 0.1


if __name__ == "__main__":
    record(run_checks(quick=True), RECORD, quick=())
