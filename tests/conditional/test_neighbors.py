"""The scan of all groups of neighbors against brute force, and its intervals against laws with a known answer."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from scipy.stats import binom

from frhsic_core.conditional import neighbors
from frhsic_core.conditional.neighbors import scan_groups


def people(n: int, seed: int, values: int = 40) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    generator = np.random.default_rng(seed)
    s = generator.integers(0, values, n).astype(float)
    f = generator.random(n) + 0.02 * s
    return f, s, generator.uniform(0.1, 2.0, n)


def every_gap(
    f: np.ndarray, s: np.ndarray, weight: np.ndarray, size: int
) -> list[tuple[float, float, float]]:
    """Return the distance from the overall mean, and both ends, of every interval of S with enough people."""
    overall = np.average(f, weights=weight)
    found = []
    for first, last in itertools.combinations_with_replacement(np.unique(s), 2):
        rows = (s >= first) & (s <= last)
        if size <= rows.sum() < len(s):
            gap = np.average(f[rows], weights=weight[rows]) - overall
            found.append((abs(gap), first, last))
    return found


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("size", [5, 17, 60])
@pytest.mark.parametrize("values", [4, 40, 10_000])
def test_the_largest_gap_is_that_of_all_intervals(values: int, size: int, weighted: bool) -> None:
    f, s, weight = people(120, seed=size + values, values=values)
    if not weighted:
        weight = np.ones(len(f))
    expected, first, last = max(every_gap(f, s, weight, size))
    found = scan_groups(f, s, weight=weight if weighted else None, size=size)
    assert found.value == pytest.approx(expected, rel=1e-9)
    assert (found.largest.first, found.largest.last) == (first, last)
    rows = (s >= found.surest.first) & (s <= found.surest.last)
    assert found.surest.rows == rows.sum()
    assert found.surest.mean == pytest.approx(np.average(f[rows], weights=weight[rows]), rel=1e-9)
    assert found.low <= found.value <= found.high


def test_categories_are_groups_without_neighbors() -> None:
    f, s, _ = people(200, seed=3, values=4)
    means = [f[s == k].mean() - f.mean() for k in range(4)]
    found = scan_groups(f, s, size=20, nominal=True)
    assert found.groups == 4
    assert found.value == pytest.approx(np.abs(means).max())
    assert found.largest.first == found.largest.last == np.argmax(np.abs(means))


def test_too_few_people_have_no_group() -> None:
    f, s, _ = people(30, seed=4)
    assert scan_groups(f, s, size=31) is None
    assert scan_groups(f, np.zeros(30), size=5) is None
    with pytest.raises(ValueError, match="give at least 2"):
        scan_groups(f, s, size=1)


def test_merged_neighbors_hardly_change_the_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    f, s, _ = people(3000, seed=5, values=10**6)
    f[s > np.quantile(s, 0.95)] += 0.4
    exact = scan_groups(f, s)
    monkeypatch.setattr(neighbors, "_GROUPS", 3000 * 50 // 16)  # four people in a block
    merged = scan_groups(f, s)
    assert merged.groups < exact.groups / 10
    assert merged.value == pytest.approx(exact.value, rel=0.1)
    assert merged.value <= exact.value + 1e-12


LAWS = {
    "a normal score": lambda rng, s: 0.5 + 0.15 * rng.normal(size=len(s)),
    "a rare selection": lambda rng, s: (rng.random(len(s)) < 0.02).astype(float),
    "scores near zero": lambda rng, s: rng.beta(0.3, 5.0, len(s)),
    "costs": lambda rng, s: np.exp(1.5 * rng.normal(size=len(s))),
    "a spread that depends on S": lambda rng, s: (0.02 + 0.2 * (s > 80)) * rng.normal(size=len(s)),
}


@pytest.mark.parametrize("law", LAWS)
@pytest.mark.parametrize("rounded", [False, True])
def test_of_a_flat_curve_no_gap_is_certain(law: str, rounded: bool) -> None:
    """In 60 tables at the level .05; more than this happens once in 10,000 tries."""
    rng = np.random.default_rng(6)
    wrong = 0
    for _ in range(60):
        s = rng.uniform(20, 90, 1500)
        if rounded:
            s = np.floor(s)
        wrong += scan_groups(LAWS[law](rng, s), s).low > 0.0
    assert wrong <= binom.ppf(1 - 1e-4, 60, 0.05)


def test_the_intervals_hold_for_all_groups_at_once() -> None:
    """With a known curve: every interval of ages contains its gap in about 95 of 100 tables, and is not idle.

    The check can fail: with half of the width more groups lie outside of their intervals.
    """
    rng = np.random.default_rng(7)
    s = np.repeat(np.arange(20.0, 90.0), 20)
    truth = 0.4 + 0.2 * np.sin(s / 12)
    outside = {1.0: 0, 0.5: 0}
    for _ in range(100):
        found = scan_groups(truth + 0.15 * rng.normal(size=len(s)), s)
        for chosen in (found.largest, found.surest):
            rows = (s >= chosen.first) & (s <= chosen.last)
            gap = truth[rows].mean() - truth.mean()
            half = 0.5 * (chosen.high - chosen.low)
            for part in outside:
                outside[part] += abs(gap - chosen.gap) > part * half
        largest = max(every_gap(truth, s, np.ones(len(s)), 50))[0]
        assert found.low - 0.02 <= largest <= found.high + 0.02
    assert outside[1.0] <= 2 * binom.ppf(1 - 1e-4, 100, 0.05)
    assert outside[0.5] > outside[1.0]


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_eighty_people_at_the_end_are_found(seed: int) -> None:
    """Practitioner's table: 8,000 people, and +.40 for everybody from 82 on."""
    rng = np.random.default_rng(seed)
    age = np.clip(rng.normal(50, 13.3, 8000), 18, 99).round()
    score = np.clip(0.2 + 0.15 * rng.normal(size=8000), 0, 1)
    score = np.clip(score + 0.4 * (age >= 82), 0, 1)
    found = scan_groups(score, age)
    assert found.low > 0.25
    assert found.surest.first in (81.0, 82.0, 83.0)
    assert 0.3 < found.surest.gap < 0.45
