"""Every statement, checked at small size, gives the recorded verdicts and numbers."""

from __future__ import annotations

import pytest

from frhsic_core.paper.record import compare, read_recorded
from frhsic_core.paper.runs.stored import book_folder
from frhsic_core.paper.statements.registry import run_checks, statements


@pytest.mark.parametrize("number", list(statements()))
def test_nothing_differs_from_the_record(number: str) -> None:
    results = list(run_checks([number], quick=True))
    recorded = read_recorded(book_folder("claims", "verdicts.json"))
    assert compare(results, recorded, numbers=[number], quick=True) == ([], [])
    for details in (result.certificate.details for result in results):
        # The chapters say that coverage alone would accept a bound of a tenth of the size.
        assert details.get("fraction of the bound at which coverage breaks", 0.0) < 0.1
