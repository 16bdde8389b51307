"""The spreads of an answer: exact moments and coverage, on made-up runs."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from frhsic_core.paper.claims import answers
from frhsic_core.paper.claims import simulated as module
from frhsic_core.paper.claims.answers import Spread, mean_of_runs, print_weights, spread, weights
from frhsic_core.paper.claims.simulated import best_share, judged

RUNS = np.array([0.3, 1.1, -0.4, 0.9])


def test_a_spread_is_students_t_on_each_side() -> None:
    one = Spread(-1.0, 0.0, 3.0, dof=4)
    reach = stats.t(4).isf(answers.TAIL)
    assert one.beyond(3.0) == pytest.approx(answers.TAIL)
    assert one.beyond(-2.0) == pytest.approx(stats.t(4).sf(2 * reach))
    assert Spread(0.0, 0.0, 0.0).beyond(1e-9) == 0.0


def test_a_spread_is_made_of_quantiles_moved_from_the_median() -> None:
    """Var(new mean of 2) + Var(our mean of 4) is 3/2 · 4/3 times the variance of the draws, and t has 3 degrees."""
    draws = np.linspace(-1.0, 2.0, 1001)
    found = spread(draws, splits=4, runs=2)
    factor = math.sqrt(2) * stats.t(3).isf(answers.TAIL) / 2
    low, high = np.quantile(draws, [answers.TAIL, 1 - answers.TAIL])
    assert found.low == pytest.approx(0.5 - factor * (0.5 - low))
    assert found.high == pytest.approx(0.5 + factor * (high - 0.5))
    assert spread(np.array([1.0, np.nan, 3.0]), splits=4) == spread(np.array([1.0, 3.0]), splits=4)
    assert math.isnan(spread(np.array([1.0, np.nan]), splits=4).middle)


@pytest.mark.parametrize(
    "draw",
    [
        lambda rng, n: rng.normal(size=n),
        lambda rng, n: rng.exponential(size=n),
        # A matched point is a minimum over λ.
        lambda rng, n: rng.normal(3.0, 1.0, size=(n, 4)).min(1),
    ],
    ids=["normal", "exponential", "minimum"],
)
def test_the_level_of_both_spreads_on_simulated_splits(draw: Callable[..., np.ndarray]) -> None:
    """A mean over five new splits is beyond the ends in about 4.6 % of trials, the expectation in as many."""
    rng = np.random.default_rng(1)
    truth = draw(rng, 200_000).mean()
    outside = np.zeros(2)
    trials = 800
    for _ in range(trials):
        _, prints, means = mean_of_runs(draw(rng, 25), runs=5)
        outside += [
            not prints.low <= draw(rng, 5).mean() <= prints.high,
            not means.low <= truth <= means.high,
        ]
    assert (outside / trials > 0.02).all()
    assert (outside / trials < 0.10).all()


@pytest.mark.parametrize("shared", [0.0, 0.6, 0.95])
def test_shared_noise_makes_the_spread_narrow_and_keeps_its_level(shared: float) -> None:
    """Two runs on one split have the given correlation: the second run's mean over five is outside in 4.6 %."""
    rng = np.random.default_rng(2)
    outside = 0
    for _ in range(800):
        common = rng.normal(size=25)
        ours, theirs = (
            math.sqrt(shared) * common + math.sqrt(1 - shared) * rng.normal(size=25)
            for _ in range(2)
        )
        _, prints, _ = mean_of_runs(ours, runs=5, shared=shared)
        outside += not prints.low <= theirs[:5].mean() <= prints.high
    assert 0.02 < outside / 800 < 0.10
    lengths = [np.ptp(print_weights(25, 5, one) @ np.arange(25.0)) for one in (0.0, shared)]
    assert lengths[1] == pytest.approx(math.sqrt(1 - shared**2) * lengths[0])


def test_weights_are_means_over_splits_drawn_with_replacement() -> None:
    shares = weights(4, 5)
    assert shares.shape == (answers.DRAWS, 4)
    np.testing.assert_allclose(shares.sum(1), 1.0)
    np.testing.assert_allclose(5 * shares, np.rint(5 * shares))
    assert (shares @ RUNS).var() == pytest.approx(RUNS.var() / 5, rel=0.1)
    np.testing.assert_allclose(print_weights(4, 2, 0.8).sum(1), 1.0)
    np.testing.assert_allclose(print_weights(4, 2, 1.0) @ RUNS, RUNS[:2].mean())


def test_a_few_runs_have_the_spread_of_students_t() -> None:
    values = np.array([1.0, 2.0, 4.0])
    mean, prints, means = mean_of_runs(values, runs=5)
    t = stats.t(2).isf(answers.TAIL)
    assert prints.high - mean == pytest.approx(t * values.std(ddof=1) * math.sqrt(1 / 5 + 1 / 3))
    assert mean - means.low == pytest.approx(t * values.std(ddof=1) * math.sqrt(1 / 3))


# Simulated papers -----------------------------------------------------------------------------------------------------
# tests/findings/test_ledger.py has what the rule says wrongly, and what it notices.


def test_a_swap_exchanges_numbers_of_one_dataset_and_measure() -> None:
    paper = pd.DataFrame(
        {"dataset": list("aaabbb"), "column": list("xxyxxx"), "print": [1.0, 2, 3, 4, 5, 6]}
    )
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
    assert best_share(papers=1) == pytest.approx(
        stats.norm.cdf(3.0 - stats.norm.isf(0.05)), abs=0.02
    )
    assert best_share(papers=1, level=0.01) == pytest.approx(
        stats.norm.cdf(3.0 - stats.norm.isf(0.01)), abs=0.04
    )
