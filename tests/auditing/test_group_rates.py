"""The mean of each group and the ratio of rates, at the ends where their formulas change."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest
from scipy import stats

from frhsic_core import audit, gdp_curve
from frhsic_core.auditing._statistics import group_table, impact_ratio


def test_the_interval_of_a_group_of_two_has_one_degree_of_freedom() -> None:
    """Student's t from its definition, for groups of two people and of one."""
    s = np.array([20.0, 21.0, 40.0, 41.0, 60.0, 61.0, 80.0, 81.0])
    scores = np.array([0.1, 0.3, 0.2, 0.6, 0.5, 0.4, 0.7, 0.9])
    curve = gdp_curve(scores, s)
    table = group_table(scores, s, curve)
    pairs = scores.reshape(4, 2)
    half = stats.t.ppf(0.975, 1) * pairs.std(axis=1, ddof=1) / np.sqrt(2.0)
    assert table["rows"].tolist() == [2, 2, 2, 2]
    np.testing.assert_allclose(table["means"], pairs.mean(axis=1), rtol=1e-12)
    np.testing.assert_allclose(table["low"], pairs.mean(axis=1) - half, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(table["high"], pairs.mean(axis=1) + half, rtol=1e-9)


# Rates at two ages with the band around each: lowest rate, highest rate.
RATES = {
    "both rates are certain": ([0.2, 0.8], [0.1, 0.6], [0.3, 0.9], (0.25, 0.5)),
    "the bands overlap": ([0.4, 0.5], [0.2, 0.25], [0.55, 0.75], (0.8, 1.0)),
    "the highest rate may be zero": ([0.1, 0.2], [-0.2, 0.0], [0.3, 0.4], (0.5, 1.0)),
    "the lowest rate is below zero": ([-0.1, 0.5], [-0.3, 0.4], [0.2, 0.6], (0.0, 0.5)),
    "nobody is selected": ([0.0, 0.0], [0.0, 0.0], [0.1, 0.1], (1.0, 1.0)),
}


@pytest.mark.parametrize("case", RATES)
def test_the_ratio_of_rates_and_the_largest_that_the_band_allows(case: str) -> None:
    mean, low, high, expected = RATES[case]
    inside = np.array([True, True])
    curve = SimpleNamespace(
        mean=np.array(mean), low=np.array(low), high=np.array(high), inside=inside
    )
    assert impact_ratio(curve) == pytest.approx(expected)


FEW_VALUES = {
    "two values": np.repeat([0.0, 1.0], [150, 150]),
    "two values, one rare": np.repeat([0.0, 1.0], [285, 15]),
    "three values": np.repeat([0.0, 1.0, 2.0], [100, 100, 100]),
    "mostly the smallest": np.repeat([0.0, 1.0, 2.0, 3.0, 4.0], [250, 10, 10, 15, 15]),
    "mostly the largest": np.repeat([0.0, 1.0, 2.0, 3.0, 4.0], [10, 10, 15, 15, 250]),
    "the smallest and the largest": np.repeat([0.0, 1.0, 2.0, 3.0, 4.0], [140, 5, 5, 5, 145]),
}


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("name", FEW_VALUES)
def test_few_values_are_never_one_group(name: str, weighted: bool) -> None:
    """One group alone would have an impact ratio of one, and pass every gate."""
    s = FEW_VALUES[name]
    chosen = (np.arange(len(s)) % 10 < np.where(s == s.min(), 1, 8)).astype(float)
    weight = np.ones(len(s)) if weighted else None
    table = group_table(chosen, s, gdp_curve(chosen, s), weight=weight)
    assert len(table) >= 2
    assert table.rows.sum() == len(s)
    assert table.means.min() < 0.9 * table.means.max()


def test_a_gate_fails_for_an_attribute_of_zeros_and_ones() -> None:
    """A gender as 0 and 1: 3 % and 48 % are selected, so the ratio is far below four fifths."""
    rng = np.random.default_rng(0)
    gender = rng.integers(0, 2, 300)
    score = 0.4 + 0.1 * gender + rng.normal(0, 0.05, 300)
    chosen = score >= 0.5
    ratio = chosen[gender == 0].mean() / chosen[gender == 1].mean()
    found = audit(score, sensitive_features=gender, threshold=0.5)
    numbers = found.attributes[0].numbers
    assert numbers["impact_ratio_groups"].value == pytest.approx(ratio)
    assert "of the people with sensitive 0 are selected" in str(found)
    assert found.check("impact_gap=0.2")[0].outcome == "above"
