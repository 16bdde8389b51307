"""Guards the sentences of the chapter on the ledger of claims."""

from __future__ import annotations

import pandas as pd
import pytest

from frhsic_core.paper.claims import heading


@pytest.fixture(scope="module")
def table(full_ledger: pd.DataFrame) -> pd.DataFrame:
    return full_ledger


def test_few_measured_lines_are_contradicted_and_few_confirmed(table) -> None:
    """About one in ten and one in seven; most are compatible and not decided."""
    share = table[table["kind"] == "measured"]["verdict"].value_counts(normalize=True)
    assert share["differs"] + share["fails"] == pytest.approx(0.1, abs=0.02)
    confirmed = share["reproduced"] + share["reproduced by the reference protocol only"]
    assert confirmed == pytest.approx(1 / 7, abs=0.02)
    assert share["compatible, not decided"] > 0.5


def test_most_settings_were_copied_correctly(table) -> None:
    share = table[table["kind"] == "implemented as printed"]["verdict"].value_counts(normalize=True)
    assert share["reproduced"] > 0.9


def test_how_many_would_differ_by_chance(table) -> None:
    """Fifteen to twenty-five."""
    top = heading(table)
    expected = top["differs by chance alone, expected"]
    assert 15 <= expected <= top["the same by the rate measured on our own splits"] <= 25


def test_everything_has_been_run(table) -> None:
    assert not table["note"].str.contains("not run yet|not trained yet").any()
