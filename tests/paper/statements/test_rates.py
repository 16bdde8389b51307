"""Rates against exact truths."""

from __future__ import annotations

import numpy as np
import pytest

from frhsic_core.paper.statements import rates
from frhsic_core.paper.statements.rates import (
    GRAM_S,
    GRAM_Z,
    projection_variance,
    rmse_slope,
)


def test_projection_variance_by_numerical_differentiation() -> None:
    table, k, l = (array.astype(float) for array in (rates.DEPENDENT, GRAM_Z, GRAM_S))

    def value(p: np.ndarray) -> float:
        d = p - np.outer(p.sum(1), p.sum(0))
        return float(((k @ d @ l) * d).sum())

    slopes = np.zeros((2, 2))
    for cell in np.ndindex(2, 2):
        point = np.zeros((2, 2))
        point[cell] = 1.0
        step = 1e-6
        slopes[cell] = (
            value((1 - step) * table + step * point) - value((1 + step) * table - step * point)
        ) / (2 * step)
    expected = (table * slopes**2).sum() - (table * slopes).sum() ** 2
    assert float(projection_variance(rates.DEPENDENT, GRAM_Z, GRAM_S)) == pytest.approx(
        expected, rel=1e-6
    )


def test_there_are_no_rates_without_stored_samples(monkeypatch: pytest.MonkeyPatch) -> None:
    def no_book(_name: str) -> None:
        raise FileNotFoundError

    monkeypatch.setattr(rates, "stored_rows", no_book)
    assert rates.stored_samples() == []


def test_slope_of_an_exact_power_and_coverage_of_the_interval(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(rates, "CONFIDENCE", 0.95)
    rng = np.random.default_rng(0)
    sizes = np.array([50.0, 100.0, 200.0, 400.0])
    hits = 0
    for errors in rng.normal(size=(400, 4, 60)) / np.sqrt(sizes)[None, :, None]:
        slope, (low, high) = rmse_slope(sizes, errors)
        assert low < slope < high
        hits += low <= -0.5 <= high
    assert 0.92 <= hits / 400 <= 0.98
    exact = np.array([[1.0, -1.0, 1.1], [0.1, -0.1, 0.11]])
    assert rmse_slope(np.array([1.0, 10.0]), exact)[0] == pytest.approx(-1.0, rel=1e-12)
    # A size with a large spread has little weight.
    noisy = np.array([[1.0, 1.0001], [np.exp(-1.0), np.exp(-1.0) * 1.0001], [0.01, 5.0]])
    assert rmse_slope(np.array([1.0, np.e, np.e**2]), noisy)[0] == pytest.approx(-1.0, abs=0.01)


def test_a_wrong_limit_of_eipm_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    right = rates.LAW.eipm_limit

    def wrong(_law: object, kernel: object, *, bandwidth: float) -> float:
        return (1.03 if bandwidth else 1.0) * right(
            kernel, bandwidth=bandwidth
        )  # zero is the truth

    assert {c.details["replications"] for c in rates.stored_samples() if "sizes" in c.details} == {
        500
    }
    monkeypatch.setattr(type(rates.LAW), "eipm_limit", wrong)
    verdicts = {c.claim: c.verdict for c in rates.stored_samples()}
    assert "fails as stated" in {
        verdict for claim, verdict in verdicts.items() if "mean of the smoothed" in claim
    }
    assert rates.smoothing_bias()[0].verdict == "fails as stated"
