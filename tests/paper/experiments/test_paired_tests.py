"""Paired tests over splits: against SciPy, enumeration and closed testing; then what the stored sweep says."""

from __future__ import annotations

from itertools import combinations, product

import numpy as np
import pytest
from scipy import stats

from frhsic_core.paper.experiments.comparison import (
    compare_all,
    corrected_t,
    holm,
    signed_rank,
    t_interval,
)


@pytest.mark.parametrize("n", [2, 5, 12, 25])
def test_signed_rank_is_scipys_where_that_is_exact(n: int) -> None:
    """No ties, no zeros."""
    d = np.random.default_rng(n).normal(0.4, 1.0, n)
    assert signed_rank(d) == pytest.approx(stats.wilcoxon(d, method="exact").pvalue, rel=1e-12)


@pytest.mark.parametrize(
    "d", [[1, 1, -1, 2, 2], [0, 0, 3, -1, 1, 2], [2, 2, 2, 2], [-1, 1], [0, 0], [5]]
)
def test_signed_rank_with_ties_and_zeros_by_enumeration(d: list[float]) -> None:
    """Every assignment of signs to the non-zero differences."""
    values = np.array([v for v in d if v != 0], float)
    if not len(values):
        assert signed_rank(np.array(d, float)) == 1.0
        return
    ranks = stats.rankdata(np.abs(values))
    sums = np.array(
        [ranks[np.array(signs)].sum() for signs in product([False, True], repeat=len(values))]
    )
    observed = ranks[values > 0].sum()
    expected = min(1.0, 2 * min((sums <= observed).mean(), (sums >= observed).mean()))
    assert signed_rank(np.array(d, float)) == pytest.approx(expected)


def test_level_and_power() -> None:
    """At most 5 % under the null, and far more off it."""
    rng = np.random.default_rng(3)
    null = np.mean([signed_rank(d) < 0.05 for d in rng.normal(size=(1000, 25))])
    shifted = np.mean([signed_rank(d) < 0.05 for d in rng.normal(0.6, 1.0, size=(300, 25))])
    assert 0.03 < null < 0.07
    assert shifted > 0.75


def test_holm_is_closed_testing_with_bonferroni() -> None:
    """The adjusted value is the largest Bonferroni value of any set of hypotheses that holds this one."""
    p = np.array([0.012, 0.2, 0.001, 0.04, 0.012, 0.9])
    subsets = [s for k in range(1, 7) for s in combinations(range(6), k)]
    closed = [max(min(1.0, len(s) * p[list(s)].min()) for s in subsets if i in s) for i in range(6)]
    assert holm(p) == pytest.approx(closed)


def test_corrected_t_is_the_paired_t_with_another_variance() -> None:
    """With no test rows it is the paired t-test; with a fifth, t shrinks by √(1 + J/4)."""
    a, b = np.random.default_rng(1).normal(size=(2, 25))
    plain = stats.ttest_rel(a, b)
    t, p = corrected_t(a - b, test_share=0.0)
    assert (t, p) == pytest.approx((plain.statistic, plain.pvalue))
    assert corrected_t(a - b)[0] == pytest.approx(plain.statistic / np.sqrt(1 + 25 / 4))
    assert [corrected_t(np.full(5, value)) for value in (0.0, -2.0)] == [
        (0.0, 1.0),
        (-np.inf, 0.0),
    ]  # no variance


def test_the_interval_contains_zero_where_the_corrected_test_is_not_significant() -> None:
    base = np.random.default_rng(1).normal(size=25)
    for shift in np.linspace(-2.0, 2.0, 41):
        d = base + shift
        outside = abs(d.mean()) > t_interval(d, test_share=0.2)[1]
        assert outside == (corrected_t(d)[1] < 0.05)


def test_corrected_t_holds_its_level_where_splits_overlap() -> None:
    """Two methods without a true difference: the plain test errs far too often over re-splits, the corrected not.

    Re-splitting one sample makes the differences agree with each other, not with the truth.
    """
    rng = np.random.default_rng(5)
    plain, corrected = [], []
    for _ in range(300):
        gap = rng.normal(size=100)  # of the two methods' losses, row by row
        d = np.array([gap[rng.permutation(100)[80:]].mean() for _ in range(25)])
        plain.append(signed_rank(d) < 0.05)
        corrected.append(corrected_t(d)[1] < 0.05)
    assert np.mean(plain) > 0.2
    assert np.mean(corrected) < 0.08


def test_a_table_of_comparisons_against_plain_statistics() -> None:
    """Every column of three differences: one clear, one clear the other way, one of noise."""
    noise = np.random.default_rng(7).normal(size=(3, 15))
    differences = noise + np.array([[4.0], [-4.0], [0.0]])
    table = compare_all([({"name": name}, d) for name, d in zip("abc", differences, strict=True)])
    for line, d in zip(table.to_dict("records"), differences, strict=True):
        assert (line["splits"], line["wins"], line["losses"]) == (15, sum(d > 0), sum(d < 0))
        assert line["mean"] == pytest.approx(d.mean())
        assert (line["p"], line["p_corrected"]) == (signed_rank(d), corrected_t(d)[1])
    assert table["p_holm"].tolist() == holm(table["p"]).tolist()
    assert table["p_corrected_holm"].tolist() == holm(table["p_corrected"]).tolist()
    assert table["verdict_corrected"].tolist() == ["better", "worse", "not_significant"]
    with pytest.raises(ValueError, match="NaN"):
        compare_all([({}, np.array([0.0, np.nan]))])


def test_a_t_interval_is_scipys() -> None:
    d = np.random.default_rng(4).normal(size=12)
    mean, half = t_interval(d)
    expected = stats.ttest_1samp(d, 0.0).confidence_interval(0.95)
    assert (mean - half, mean + half) == pytest.approx(tuple(expected))
    assert np.isnan(t_interval(np.array([1.0]))[1])
