"""The rule of the ledger on simulated papers: what it says wrongly, and what it notices."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from frhsic_core.paper.claims import simulated as module
from frhsic_core.paper.claims.answers import Spread
from frhsic_core.paper.claims.simulated import CHANGES, judged, shares, simulated


@pytest.fixture(scope="module", params=["text", "reference"])
def lines(request: pytest.FixtureRequest) -> pd.DataFrame:
    return simulated(request.param, papers=6)


def test_true_numbers_are_rarely_called_wrong(lines: pd.DataFrame) -> None:
    """At most 5 % of the cells of papers in which every number is true, and wrong numbers are rarely confirmed."""
    table = shares(lines)
    assert table.loc["true", "disagrees"] <= 0.05
    assert (table.loc[list(CHANGES[1:]), "agrees"] <= 0.05).all()


def test_larger_errors_are_noticed_more_often(lines: pd.DataFrame) -> None:
    table = shares(lines)
    noticed = table.loc[["true", "shifted by 10 %", "shifted by 20 %", "shifted by 50 %"], "disagrees"]
    assert noticed.is_monotonic_increasing
    assert noticed.iloc[-1] > 0.8
    assert table.loc["swapped", "disagrees"] > 0.5
    assert (table[["disagrees", "open", "agrees"]].sum(axis=1).round(9) == 1).all()


def test_a_swap_exchanges_numbers_of_one_dataset_and_measure() -> None:
    paper = pd.DataFrame({"dataset": list("aaabbb"), "measure": list("xxyxxx"), "print": [1.0, 2, 3, 4, 5, 6]})
    moved = module._changed(paper, "swapped", np.random.default_rng(0))
    assert sorted(moved[:2]) == [1.0, 2.0]
    assert moved[0] == 2.0
    assert moved[2] == 3.0
    assert sorted(moved[3:]) == [4.0, 5.0, 6.0]
    assert (moved[3:] != [4.0, 5.0, 6.0]).all()
    shifted = module._changed(paper, "shifted by 20 %", np.random.default_rng(0))
    assert np.abs(shifted / paper["print"] - 1).to_numpy() == pytest.approx(0.2)


def test_a_paper_is_judged_with_its_own_rate() -> None:
    """One p-value of .02 is a discovery alone, and none among fifty true lines."""
    away, at, narrow = Spread(0.3, 0.5, 0.7), Spread(0.65, 0.75, 0.85), Spread(0.4, 0.74, 0.8)
    assert judged([".75"], ["gdp"], [away], [narrow]) == ["disagrees"]
    many = judged([".75"] * 51, ["gdp"] * 51, [away, *[at] * 50], [narrow] * 51)
    assert set(many) == {"open"}
