"""Every statement, checked at small size, gives the recorded verdicts and numbers."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from typing import Any

import pytest

from frhsic_core.paper.record import compare, read_recorded, row
from frhsic_core.paper.runs.stored import book_folder
from frhsic_core.paper.statements.registry import checks, run_checks, statements

WORDS = ("label", "relation", "evidence", "assumptions", "module", "check")


def numbers(value: Any) -> Iterator[float]:
    """Yield the numbers in nested lists and dicts."""
    if isinstance(value, dict | list):
        for part in value.values() if isinstance(value, dict) else value:
            yield from numbers(part)
    elif isinstance(value, int | float):
        yield value


@pytest.mark.parametrize("number", list(statements()))
def test_nothing_differs_from_the_record(number: str) -> None:
    """Details of a run that a quick one makes smaller, and those of random draws, have other numbers."""
    results = list(run_checks([number], quick=True))
    recorded = read_recorded(book_folder("claims", "verdicts.json"))
    assert compare(results, recorded, numbers=[number], quick=True) == ([], [])
    sized = {one.__name__ for one in checks()[number] if "quick" in inspect.signature(one).parameters}
    for result in results:
        before, now = recorded[result.key], row(result)
        assert {name: now[name] for name in WORDS} == {name: before[name] for name in WORDS}
        assert now["tolerance"] == pytest.approx(before["tolerance"], rel=1e-5)
        if result.check not in sized and now["evidence"] != "statistical":
            found, known = (list(numbers(one["details"])) for one in (now, before))
            assert found == pytest.approx(known, rel=1e-4, abs=1e-9), result.key
        details = now["details"]
        # A search finds no violation, and reaches the edge of its inequality.
        assert details.get("violations", 0) == 0
        assert details.get("largest left/right", 1.0) > 0.99
        # The chapters say that coverage alone would accept a bound of a tenth of the size.
        assert details.get("fraction of the bound at which coverage breaks", 0.0) < 0.1
