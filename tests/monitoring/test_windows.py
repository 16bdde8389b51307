"""The bounds of all windows: true for laws with known GDP, together, at every look, and not by being empty."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from frhsic_core.bounds import gdp_bound
from frhsic_core.monitoring.history import History, history_of
from frhsic_core.monitoring.windows import (
    FIRST,
    LOWER,
    MEAN,
    UPPER,
    Batch,
    all_windows,
    lower_slack,
    part_of,
)

MONTHS = 12


def batches_of(
    generator: np.random.Generator, probabilities: np.ndarray, rows: int, months: int = MONTHS
) -> list[Batch]:
    """Draw coins whose probability depends on the group, two batches a month; sums only, so fast."""
    found = []
    groups = len(probabilities)
    for month in range(months):
        for _ in range(2):
            counts = generator.multinomial(rows // 2, np.full(groups, 1 / groups))
            sums = generator.binomial(counts, probabilities)
            names = [str(group) for group in range(groups)]
            found.append(
                Batch(
                    f"{month:02d}",
                    rows // 2,
                    float(sums.sum()),
                    dict(zip(names, counts.tolist(), strict=True)),
                    dict(zip(names, sums.astype(float).tolist(), strict=True)),
                )
            )
    return found


def history(batches: list[Batch], rows: int) -> History:
    return history_of(batches, delta=0.05, planned_rows=MONTHS * rows, low=0.0, unit=1.0)


def test_the_parts_of_delta_add_up_to_one() -> None:
    parts = UPPER + LOWER + MEAN
    assert parts == pytest.approx(1.0)
    assert sum(part_of(start) for start in range(10_000)) == pytest.approx(1.0, abs=1e-4)
    assert part_of(0) == FIRST


def test_the_first_window_is_the_bound_of_the_library() -> None:
    rng = np.random.default_rng(0)
    batches = batches_of(rng, np.array([0.3, 0.5, 0.6]), 1000)
    windows = all_windows(batches, delta=0.05, planned_rows=12_000)
    f, s = [], []
    for batch in batches:
        for group, count in batch.counts.items():
            ones = int(batch.sums[group])
            f += [1.0] * ones + [0.0] * (count - ones)
            s += [int(group)] * count
    found = gdp_bound(
        f,
        sensitive_features=s,
        delta=0.05 * UPPER * FIRST,
        anytime=True,
        planned_rows=12_000,
    )
    assert windows.upper[0, -1] == pytest.approx(found.bound, rel=1e-9)
    assert windows.gap[0, -1] == pytest.approx(found.estimate, rel=1e-9)
    # The price of one promise for the whole life, over a bound that is only looked at once.
    once = gdp_bound(f, sensitive_features=s, delta=0.05, anytime=True, planned_rows=12_000)
    assert 1.0 < found.slack / once.slack < 1.10


def test_a_lower_bound_is_the_formula_for_two_batches() -> None:
    """Signs from the first batch, products from the second, term by term."""
    one = Batch("a", 4, 2.0, {"x": 2, "y": 2}, {"x": 0.5, "y": 1.5})
    two = Batch("a", 4000, 1600.0, {"x": 1000, "y": 3000}, {"x": 100.0, "y": 2100.0})
    windows = all_windows([one, two], delta=0.05, planned_rows=100)
    n, mean = 4004, 2202.0 / 4004
    weighted = (-1.0) * 100.0 + 1.0 * 2100.0  # the mean of the signs is 0 in the first batch
    weights = (-1.0) * 1000 + 1.0 * 3000
    seen = (weighted - mean * weights) / n
    variance = 1602.0 / n - mean**2
    arrays = [np.array([value]) for value in (mean, variance, float(n), 1.0, weights / n)]
    slack = lower_slack(*arrays, LOWER * 0.05 * FIRST, rows=10)
    assert windows.lower[0, 0] == pytest.approx(max(0.0, seen - float(slack[0])), rel=1e-9)
    assert windows.lower[0, 0] > 0.02


@pytest.mark.parametrize("runs", [100, pytest.param(1000, marks=pytest.mark.slow)])
def test_twelve_looks_at_independent_scores_raise_no_alarm_in_95_percent_of_runs(runs: int) -> None:
    """No change, and no lower bound above zero; one look that is valid once would alarm far more often."""
    rng = np.random.default_rng(1)
    alarms, naive = 0, 0
    for _ in range(runs):
        batches = batches_of(rng, np.full(5, 0.4), 400)
        found = history(batches, 400)
        alarms += bool(found.changes) or any(period.at_least > 0.0 for period in found.periods)
        counts = np.array([list(batch.counts.values()) for batch in batches]).cumsum(0)[1::2]
        sums = np.array([list(batch.sums.values()) for batch in batches]).cumsum(0)[1::2]
        p = sums.sum(1) / counts.sum(1)
        squares = ((sums - counts * p[:, None]) ** 2 / counts).sum(1) / (p * (1 - p))
        naive += bool((squares > 9.488).any())  # the 95 % quantile of χ² with four degrees
    assert alarms <= 0.05 * runs
    assert naive > 0.1 * runs


def test_all_bounds_hold_together_where_there_is_a_gap() -> None:
    """GDP is .08. In 60 runs the guarantee, the lower bounds and the interval of every month are true."""
    rng = np.random.default_rng(2)
    probabilities = np.array([0.3, 0.5, 0.4, 0.6, 0.4])
    truth = float(np.abs(probabilities - probabilities.mean()).mean())
    mean = float(probabilities.mean())
    wrong, found_gap = 0, 0
    for _ in range(60):
        found = history(batches_of(rng, probabilities, 600), 600)
        ok = not found.changes
        for period in found.periods:
            ok &= period.at_least <= truth <= period.guarantee
            ok &= period.low <= truth <= period.high
            ok &= abs(period.mean - mean) <= period.mean_error
        wrong += not ok
        found_gap += found.last.at_least > 0.03
    assert wrong <= 3
    assert found_gap > 55


def test_without_signs_from_earlier_rows_the_alarm_would_be_wrong(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """With the signs of the same rows, and no price for them, independent scores raise alarms."""
    from frhsic_core.monitoring import windows

    rng = np.random.default_rng(3)
    batches = [batches_of(rng, np.full(200, 0.5), 400) for _ in range(20)]
    honest = [history(part, 400) for part in batches]
    assert not any(period.at_least > 0.0 for part in honest for period in part.periods)

    def same_rows(sums: Any, start: int, last: np.ndarray) -> tuple[np.ndarray, ...]:
        first = sums.starts[start]
        counts = sums.counts[first:].cumsum(0)[last]
        scores = sums.scores[first:].cumsum(0)[last]
        n = counts.sum(1)
        sign = np.sign(scores - counts * (scores.sum(1) / n)[:, None])
        return (sign * scores).sum(1) / n, (sign * counts).sum(1) / n, np.ones(len(n))

    monkeypatch.setattr(windows, "_with_earlier_signs", same_rows)
    broken = [history(part, 400) for part in batches]
    assert any(period.at_least > 0.0 for part in broken for period in part.periods)


@pytest.mark.parametrize(
    ("after", "word"),
    [(np.array([0.2, 0.3, 0.5, 0.6]), "the gap"), (np.full(4, 0.6), "the mean score")],
)
def test_a_change_is_found_and_the_guarantee_begins_again(after: np.ndarray, word: str) -> None:
    rng = np.random.default_rng(4)
    batches = batches_of(rng, np.full(4, 0.4), 4000, months=8)
    later = batches_of(rng, after, 4000, months=4)
    moved = [
        Batch(str(int(batch.period) + 8).zfill(2), *list(vars(batch).values())[1:])
        for batch in later
    ]
    found = history([*batches, *moved], 4000)
    change = found.changes[0]
    assert len(found.changes) == 1
    assert change.since == "08"
    assert change.noticed in ("08", "09")
    assert change.what.startswith(word)
    truth = float(np.abs(after - after.mean()).mean())
    assert found.last.since == "08"
    assert found.last.at_least <= truth <= found.last.guarantee
    assert found.periods[7].since == "00"
    assert found.periods[7].outcome(0.1) == "below"
