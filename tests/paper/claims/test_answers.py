"""The intervals of an answer: exact moments and coverage, on made-up runs."""

from __future__ import annotations

import math
from itertools import product

import numpy as np
import pandas as pd
import pytest

from frhsic_core.paper.claims import answers
from frhsic_core.paper.claims import verdicts as module
from frhsic_core.paper.claims.answers import Answer, NotRun, one_run, predicted, weights
from frhsic_core.paper.experiments import main_table, presets
from frhsic_core.paper.experiments.shared.pareto import Frontiers

RUNS = np.array([0.3, 1.1, -0.4, 0.9])


def test_an_interval_is_two_standard_deviations_of_a_new_mean_from_ours() -> None:
    """Var(new mean of 2) + Var(our mean of 4) with the unbiased variance; the draws are all 16 pairs, many times."""
    pairs = np.array([np.mean(pair) for pair in product(RUNS, repeat=2)])
    low, high = predicted(np.tile(pairs, 10_000), runs=2, splits=4)
    assert (low + high) / 2 == pytest.approx(RUNS.mean())
    assert (high - low) / 2 == pytest.approx(2 * RUNS.std(ddof=1) * math.sqrt(1 / 2 + 1 / 4), rel=1e-4)


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
    """Five of 25 normal runs in a hundred lie outside; on a log scale the same for log-normal runs."""
    rng = np.random.default_rng(0)
    outside = 0
    for _ in range(400):
        values = rng.normal(size=26)
        mean, (low, high) = one_run(values[:-1])
        assert mean == pytest.approx(values[:-1].mean())
        outside += not low <= values[-1] <= high
    assert 8 <= outside <= 40
    mean, (low, high) = one_run(np.exp(RUNS), logarithm=True)
    plain, interval = one_run(RUNS)
    assert (mean, low, high) == pytest.approx(tuple(np.exp([plain, *interval])))


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
    assert module.judge("result", "1", Answer(ranks, intervals), "rank")[0] == "cannot be judged"
    assert module.judge("result", "3", Answer(ranks, intervals), "rank") == ("reproduced", "")
    assert module.judge("result", "2", Answer(ranks, {"reference": (3.5, 5.0)}), "rank") == ("differs", "")
    assert module.judge("result", "1", Answer({"text": None, "reference": 1.0}), "rank")[0].endswith("protocol only")


def normal_sweep(*_: object) -> Frontiers:
    """Return a sweep without structure: 25 independent splits of every method, all within the band."""
    rng = np.random.default_rng(normal_sweep.seed)
    normal_sweep.seed += 1
    methods = main_table.MAIN_METHODS
    shape = (len(methods), 3, 25)
    dependence = 0.5 + 0.01 * rng.normal(size=shape) + np.array([0.4, 0.2, 0.0])[:, None]
    lams = np.tile([1.0, 10.0, 100.0], (len(methods), 1))
    performance = 0.8 + 0.001 * rng.normal(size=shape)
    return Frontiers(methods, lams, performance, dependence, np.full(25, 0.8), np.full(25, 1.0), True)


def test_the_rule_errs_as_often_as_it_says_on_normal_runs(monkeypatch) -> None:
    normal_sweep.seed = 0
    monkeypatch.setattr(main_table, "frontiers", normal_sweep)
    monkeypatch.setattr(presets, "DATASETS", ("one", "two", "three"))
    found = module.calibration.__wrapped__()
    methods = len(main_table.MAIN_METHODS)
    assert set(found["judged"]) == {2 * 3 * 5 * methods}
    for name in ("performance", "GDP"):
        assert module.FALSE_RATE / 2 < found.loc[name, "share"] < 2 * module.FALSE_RATE
