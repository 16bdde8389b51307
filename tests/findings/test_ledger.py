"""Guards the sentences of the chapter on the ledger of claims."""

from __future__ import annotations

import pandas as pd
import pytest

from frhsic_core.paper.claims import heading, ledger


@pytest.fixture(scope="module")
def table() -> pd.DataFrame:
    return ledger()


def test_most_numbers_are_reproduced_by_one_protocol_or_the_other(table) -> None:
    share = table["verdict"].value_counts(normalize=True)
    assert share["reproduced"] > 0.5
    assert share["reproduced"] + share["reproduced by the reference protocol only"] > 0.85


def test_few_differ_and_fewer_fail(table) -> None:
    share = table["verdict"].value_counts(normalize=True)
    assert share["differs"] < 0.1
    assert share["fails"] < 0.03


def test_how_many_would_differ_by_chance(table) -> None:
    top = heading(table)
    expected = top["differs by chance alone, expected"]
    assert 12 <= expected <= top["the same by the rate measured on our own splits"] <= 24


def test_everything_has_been_run(table) -> None:
    assert not table["note"].str.contains("not run yet|not trained yet").any()
