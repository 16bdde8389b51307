"""Binomial intervals and log-log slopes."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from frhsic_core.paper.statements.coverage import clopper_pearson, loglog_slope


@pytest.mark.parametrize(("hits", "draws"), [(0, 10), (3, 10), (10, 10), (195, 200)])
def test_clopper_pearson_against_scipy(hits: int, draws: int) -> None:
    expected = stats.binomtest(hits, draws).proportion_ci(0.95, method="exact")
    assert clopper_pearson(hits, draws) == pytest.approx((expected.low, expected.high), abs=1e-12)


def test_impossible_counts_are_refused() -> None:
    with pytest.raises(ValueError, match="hits is 11 of 10 draws"):
        clopper_pearson(11, 10)


def test_slope_of_an_exact_power_and_coverage_of_the_interval() -> None:
    rng = np.random.default_rng(0)
    sizes = np.array([50.0, 100.0, 200.0, 400.0])
    noise = np.abs(rng.normal(size=(400, 4, 60)))
    hits = 0
    for errors in noise / np.sqrt(sizes)[None, :, None]:
        slope, (low, high) = loglog_slope(sizes, errors)
        assert low < slope < high
        hits += low <= -0.5 <= high
    assert 0.92 <= hits / 400 <= 0.98


def test_weights_follow_the_spread() -> None:
    sizes = np.array([1.0, np.e, np.e**2])
    errors = np.array([[1.0, 1.0001], [np.exp(-1.0), np.exp(-1.0) * 1.0001], [0.01, 5.0]])
    assert loglog_slope(sizes, errors)[0] == pytest.approx(-1.0, abs=0.01)
