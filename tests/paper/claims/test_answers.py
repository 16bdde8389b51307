"""The intervals of an answer: exact moments and coverage, on made-up runs."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable
from itertools import product

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from frhsic_core.paper.claims import answers
from frhsic_core.paper.claims import verdicts as module
from frhsic_core.paper.claims.answers import Answer, NotRun, few_runs, one_run, predicted, weights
from frhsic_core.paper.experiments import main, presets
from frhsic_core.paper.experiments.shared.pareto import Frontiers

RUNS = np.array([0.3, 1.1, -0.4, 0.9])


def test_an_interval_is_made_of_quantiles_stretched_about_the_median() -> None:
    """Var(new mean of 2) + Var(our mean of 4) is 3/2 · 4/3 times the variance of the draws: √2 in length."""
    pairs = np.sort([np.mean(pair) for pair in product(RUNS, repeat=2)])
    low, high = predicted(np.tile(pairs, 1000), runs=2, splits=4)
    middle = np.median(pairs)
    assert low == pytest.approx(middle - math.sqrt(2) * (middle - pairs[0]), abs=1e-6)
    assert high == pytest.approx(middle + math.sqrt(2) * (pairs[-1] - middle), abs=1e-6)


def test_a_quantity_that_is_never_negative_has_no_negative_interval() -> None:
    assert predicted(np.array([0.0, 0.1, 5.0] * 10), runs=5, splits=25)[0] == 0.0
    assert few_runs(np.array([0.0, 0.1, 5.0]), runs=1)[1][0] == 0.0
    assert few_runs(np.array([-0.1, 0.1, 5.0]), runs=1)[1][0] < 0.0


@pytest.mark.parametrize(
    "draw",
    [
        lambda rng, n: rng.normal(size=n),
        lambda rng, n: rng.exponential(size=n),
        lambda rng, n: np.exp(0.5 * rng.normal(size=n)),
        # A matched point is a minimum over λ.
        lambda rng, n: rng.normal(3.0, 1.0, size=(n, 4)).min(1),
    ],
    ids=["normal", "exponential", "log-normal", "minimum"],
)
def test_the_level_of_the_interval_on_simulated_splits(draw: Callable[..., np.ndarray]) -> None:
    """Means over five new splits lie outside in about 4.6 % of trials, and not in more than one trial of ten."""
    rng = np.random.default_rng(1)
    shares = weights(25, 5)
    outside = 0
    trials = 1500
    for _ in range(trials):
        low, high = predicted(shares @ draw(rng, 25), runs=5, splits=25)
        outside += not low <= draw(rng, 5).mean() <= high
    assert 0.03 < outside / trials < 0.10


def test_draws_without_a_value_are_left_out() -> None:
    draws = np.array([1.0, np.nan, 3.0])
    assert predicted(draws, runs=1, splits=4) == predicted(draws[[0, 2]], runs=1, splits=4)
    assert all(map(math.isnan, predicted(np.array([1.0, np.nan]), runs=1, splits=4)))


def test_weights_are_means_over_splits_drawn_with_replacement() -> None:
    shares = weights(4, 5)
    assert shares.shape == (answers.DRAWS, 4)
    np.testing.assert_allclose(shares.sum(1), 1.0)
    np.testing.assert_allclose(5 * shares, np.rint(5 * shares))
    assert (shares @ RUNS).var() == pytest.approx(RUNS.var() / 5, rel=0.1)


def test_one_run_covers_the_next_one() -> None:
    """Student's t leaves 4.6 % outside for five normal runs; a range of 25 leaves 2/26 outside whatever the law."""
    rng = np.random.default_rng(0)
    outside = Counter()
    for _ in range(2000):
        values = rng.normal(10.0, 1.0, size=6)
        mean, (low, high), level = one_run(values[:-1])
        assert mean == pytest.approx(values[:-1].mean())
        outside["normal"] += not low <= values[-1] <= high
        skewed = np.exp(3 * rng.normal(size=26))
        _, (low, high), share = one_run(skewed[:-1], skewed=True)
        outside["skewed"] += not low <= skewed[-1] <= high
    assert outside["normal"] / 2000 == pytest.approx(level, abs=0.015)
    assert share == pytest.approx(2 / 26)
    assert outside["skewed"] / 2000 == pytest.approx(share, abs=0.02)


def test_a_few_runs_have_the_interval_of_students_t() -> None:
    values = np.array([1.0, 2.0, 4.0])
    mean, (low, high) = few_runs(values, runs=5)
    t = stats.t(2).isf((1 - math.erf(math.sqrt(2))) / 2)
    assert high - mean == pytest.approx(t * values.std(ddof=1) * math.sqrt(1 / 5 + 1 / 3))
    assert (low + high) / 2 == pytest.approx(mean) or low == 0.0


def test_rows_that_are_not_stored_leave_a_claim_open(monkeypatch) -> None:
    monkeypatch.setattr(answers, "stored_rows", lambda name: pd.DataFrame({"part": ["a"], "value": [1.0]}))
    answers.rows_of.cache_clear()
    try:
        assert len(answers.rows_of("made up", "a")) == 1
        with pytest.raises(NotRun, match="part 'b'"):
            answers.rows_of("made up", "b")
    finally:
        answers.rows_of.cache_clear()


def test_a_wrong_value_of_the_text_is_not_saved_by_an_open_one() -> None:
    """The text's protocol decides alone where it agrees; an open rule wins over a disagreement of the other."""
    ranks = {"text": 3.0, "reference": 4.0}
    intervals = {"text": (1.0, 5.0), "reference": (3.5, 5.0)}
    assert module.judge("result", "1", Answer(ranks, intervals), "rank")[0] == "compatible, not decided"
    assert module.judge("result", "3", Answer(ranks, intervals), "rank")[0] == "compatible, not decided"
    assert module.judge("result", "3", Answer(ranks, {"text": (3.0, 3.0)}), "rank") == ("reproduced", "")
    assert module.judge("result", "2", Answer(ranks, {"reference": (3.5, 5.0)}), "rank") == ("differs", "")
    assert module.judge("result", "1", Answer({"text": None, "reference": 1.0}), "rank")[0].endswith("protocol only")


def normal_sweep(*_: object) -> Frontiers:
    """Return a sweep without structure: 25 independent splits of every method, all within the band."""
    rng = np.random.default_rng(normal_sweep.seed)
    normal_sweep.seed += 1
    methods = main.MAIN_METHODS
    shape = (len(methods), 3, 25)
    dependence = 0.5 + 0.01 * rng.normal(size=shape) + np.array([0.4, 0.2, 0.0])[:, None]
    lams = np.tile([1.0, 10.0, 100.0], (len(methods), 1))
    performance = 0.8 + 0.001 * rng.normal(size=shape)
    return Frontiers(methods, lams, performance, dependence, np.full(25, 0.8), np.full(25, 1.0), True)


def test_the_rule_errs_as_often_as_it_says_on_normal_runs(monkeypatch) -> None:
    normal_sweep.seed = 0
    monkeypatch.setattr(main, "frontiers", normal_sweep)
    monkeypatch.setattr(presets, "DATASETS", ("one", "two", "three"))
    found = module.calibration.__wrapped__()
    methods = len(main.MAIN_METHODS)
    assert set(found["judged"]) == {2 * 3 * 15 * methods}
    for name in ("performance", "GDP"):
        assert module.FALSE_RATE / 2 < found.loc[name, "share"] < 2 * module.FALSE_RATE
