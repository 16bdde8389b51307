"""Simulated papers; ``tests/findings/test_ledger.py`` has what the rule says wrongly, and what it notices."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from frhsic_core.paper.claims import simulated as module
from frhsic_core.paper.claims.answers import Spread
from frhsic_core.paper.claims.simulated import best_share, judged


def test_a_swap_exchanges_numbers_of_one_dataset_and_measure() -> None:
    paper = pd.DataFrame({"dataset": list("aaabbb"), "column": list("xxyxxx"), "print": [1.0, 2, 3, 4, 5, 6]})
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


def test_the_best_share_is_the_power_of_the_best_test(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two cells, normal with means three standard deviations apart: the best test has one side and the level 5 %.

    The cut is a quantile of 4,000 draws: its standard error moves the share by .005 at the level 5 % and by .019 at
    1 %. The tolerances are two of these, and .01 for the smoothing and the error of the share itself at 5 %.
    """
    draws = np.random.default_rng(1).normal([[0.0], [3.0]], 1.0, (2, 2000))
    lines = {"column": "x", "measure": "slope", "digits": 6, "draws": list(draws)}
    monkeypatch.setattr(module, "_paper", lambda *given: pd.DataFrame(lines))
    monkeypatch.setattr(module, "DATASETS", ("one",))
    assert best_share(papers=1) == pytest.approx(stats.norm.cdf(3.0 - stats.norm.isf(0.05)), abs=0.02)
    assert best_share(papers=1, level=0.01) == pytest.approx(stats.norm.cdf(3.0 - stats.norm.isf(0.01)), abs=0.04)
