"""The limits of all bounds: against brute force over samples and mixtures, and below what the library gives."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from scipy.stats import binom

from frhsic_core.bounds import gdp_bound
from frhsic_core.paper.statements.limits import (
    former_slack,
    least_constant,
    least_median,
    least_of_groups,
    power_at_half,
    slacks,
)


@pytest.mark.parametrize("n", [9, 10, 25])
def test_the_smallest_power_is_that_of_the_best_order_of_all_samples(n: int) -> None:
    """Neyman and Pearson: fill up the sets of samples in the order of the ratio of both probabilities."""
    gap = 0.15
    k = np.arange(n + 1)
    null = binom.pmf(k, n, 0.5)
    mixed = 0.5 * (binom.pmf(k, n, 0.5 + gap) + binom.pmf(k, n, 0.5 - gap))
    left, power = 0.5, 0.0
    for place in np.argsort(mixed / null, kind="stable"):
        part = min(1.0, left / null[place])
        left -= part * null[place]
        power += part * mixed[place]
    assert power_at_half(n, gap) == pytest.approx(power, rel=1e-9)


def test_the_limit_of_two_groups_tends_to_its_constant() -> None:
    assert least_median(10**6) * 1e3 == pytest.approx(least_constant(), rel=1e-3)
    # A larger delta makes the limit smaller; with delta = 1/2 there is none.
    assert least_constant(delta=0.2) < least_constant(delta=0.05) < least_constant(delta=0.01)
    assert least_constant(delta=0.4999) < 0.02


@pytest.mark.parametrize("groups", [2, 4, 6])
def test_the_distance_of_the_mixture_is_at_most_the_formula(groups: int) -> None:
    """All pairs of signs: E(1 + 4g²ρ)ⁿ, where half of the groups have the opposite sign of the other half."""
    n, gap = 40, 0.06
    signs = list(itertools.product((-1, 1), repeat=groups // 2))
    total = 0.0
    for one, other in itertools.product(signs, repeat=2):
        agreement = 2 * np.dot(one, other) / groups
        total += (1 + 4 * gap**2 * agreement) ** n / len(signs) ** 2
    assert 1.0 < total <= math.exp(16 * n**2 * gap**4 / groups)


def test_the_median_of_our_bound_is_above_the_limit_and_within_one_and_a_half_times() -> None:
    rng = np.random.default_rng(0)
    n = 2000
    found = []
    for _ in range(101):
        f, s = rng.integers(0, 2, (2, n))
        found.append(gdp_bound(f, sensitive_features=s).bound)
    ratio = float(np.median(found)) / least_median(n)
    assert 1.2 < ratio < 1.6


def test_the_slack_at_the_fair_coin_is_at_most_1_75() -> None:
    """From 400 rows on; last year 2.72, and the limit of the whole bound 1.15."""
    for n in (400, 1000, 10_000, 10**6):
        found = slacks(n, 0.25)
        assert found["now"] <= 1.75
        assert found["last year"] == pytest.approx(2.716, abs=0.01)
        assert found["now"] < found["McDiarmid"] < found["last year"]


def test_the_former_slack_is_what_the_former_version_returned() -> None:
    """The doctest of that version: 2,000 rows, GDP .1, bound .127 (rounded)."""
    f = np.repeat([0.4, 0.6], [1040, 960])
    assert round(0.1 + former_slack(2000, float(f.var())), 3) == 0.127


def test_more_groups_have_a_larger_limit() -> None:
    assert least_of_groups(2) == least_of_groups(40) == least_constant()
    assert least_of_groups(16_000) == pytest.approx(2 * least_of_groups(1000), rel=1e-9)
