r"""Bounds for every stretch of time at once: from the first row on, and from each later period on.

A *window* begins with a period and ends now. If all rows of a window are draws from one distribution, GDP of this
distribution lies between ``lower`` and ``upper``, and the mean score within ``error`` of that of the rows. All of these
statements, for all windows and at every look, hold together with probability 1 − δ, because they share δ:

- the upper bounds have 8/10 of it, of which the window that begins with the first row has 3/4;
- the lower bounds have 1/10, and the bounds on the mean score 1/10;
- the window that begins with period j ≥ 2 has the part 1/((j − 1)j) of what is left, and these parts add up to one.

**From above.** :func:`frhsic_core.bounds.gdp.always_slack`, which holds at every number of rows.

**From below.** GDP ≥ Cov(f, w(S)) for every function w with values at most 2 apart. The rows come in *batches*, and for
each batch w is fixed by earlier rows: w(s) = ε(s) − ν, where ε is the sign of the gap of the group s among these rows
and ν the mean of ε. Then (f − μ)w(S) has the mean Cov(f, w(S)) and a second moment of at most (1 + \|ν\|)² Var f, so
with :func:`~frhsic_core.bounds.inequalities.bernstein_radius`, for all sizes at once,

.. math:: \mathrm{GDP}\ge\tfrac1n\sum_i(f_i-\bar f)w_i-|\bar f-\mu||\bar w|-t .
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from frhsic_core.bounds.gdp import always_slack, largest_square
from frhsic_core.bounds.inequalities import bernstein_radius, mixture_radius, variance_always

Array = NDArray[np.float64]

UPPER, LOWER, MEAN = 0.8, 0.1, 0.1  # parts of δ
FIRST = 0.75  # of a part: for the window that begins with the first row
# The three errors of a lower bound: the mean of the product, the variance, and the mean score.
SHARES = (0.8, 0.1, 0.1)
ALARM = 10  # lower bounds are tuned to the planned number of rows divided by this


@dataclass(frozen=True)
class Batch:
    """What the bounds use of some rows: sums over the groups, of scores in [0, 1].

    Attributes
    ----------
    period : str
        The period to which the rows belong.
    rows : int
        Their number.
    squares : float
        The sum of the squared scores.
    counts, sums : dict
        For each group the number of its rows and the sum of their scores.
    attribute : float
        The sum of the attribute, if it is a number.
    """

    period: str
    rows: int
    squares: float
    counts: dict[str, int]
    sums: dict[str, float]
    attribute: float = math.nan


@dataclass(frozen=True)
class Windows:
    """Arrays ``[start, end]`` over periods; what begins after its end is NaN."""

    rows: Array
    mean: Array
    gap: Array
    upper: Array
    lower: Array
    error: Array


@dataclass
class _Sums:
    """Batches as arrays over batches and groups."""

    counts: Array
    scores: Array
    squares: Array
    starts: list[int] = field(default_factory=list)
    ends: list[int] = field(default_factory=list)

    @classmethod
    def of(cls, batches: Sequence[Batch]) -> _Sums:
        groups = sorted({group for batch in batches for group in batch.counts})
        place = {group: k for k, group in enumerate(groups)}
        found = cls(
            np.zeros((len(batches), len(groups))),
            np.zeros((len(batches), len(groups))),
            np.array([batch.squares for batch in batches]),
        )
        for k, batch in enumerate(batches):
            for group, count in batch.counts.items():
                found.counts[k, place[group]] = count
                found.scores[k, place[group]] = batch.sums[group]
            if k == 0 or batch.period != batches[k - 1].period:
                found.starts.append(k)
        found.ends = [*found.starts[1:], len(batches)]
        return found


def part_of(start: int) -> float:
    """Return the share of a part of δ for the window that begins with this period, counted from 0.

    Examples
    --------
    >>> round(sum(part_of(start) for start in range(100_000)), 4)
    1.0
    """
    if start == 0:
        return FIRST
    return (1.0 - FIRST) / (start * (start + 1))


def all_windows(batches: Sequence[Batch], *, delta: float, planned_rows: int) -> Windows:
    """Return the bounds for all windows; O(P²) bounds for P periods."""
    sums = _Sums.of(batches)
    periods = len(sums.starts)
    empty = np.full((periods, periods), np.nan)
    found = Windows(*(empty.copy() for _ in range(6)))
    alarm = max(2, planned_rows // ALARM)
    for start in range(periods):
        part = delta * part_of(start)
        now = slice(start, periods)
        first = sums.starts[start]
        last = np.array(sums.ends[start:]) - 1 - first
        counts = sums.counts[first:].cumsum(0)[last]
        scores = sums.scores[first:].cumsum(0)[last]
        n = counts.sum(1)
        mean = scores.sum(1) / n
        square = sums.squares[first:].cumsum()[last] / n
        variance = np.maximum(square - mean**2, 0.0)
        deviation = np.sqrt(variance * n / np.maximum(n - 1.0, 1.0))
        gap = np.abs(scores - counts * mean[:, None]).sum(1) / n
        slack = always_slack(mean, deviation, n, UPPER * part, rows=planned_rows)
        found.rows[start, now] = n
        found.mean[start, now] = mean
        found.gap[start, now] = gap
        found.upper[start, now] = np.minimum(gap + slack, 0.5)
        level = math.log(1.0 / (MEAN * part))
        found.error[start, now] = mixture_radius(1.0, n, level, rows=alarm)
        weighted, weights, tilt = _with_earlier_signs(sums, start, last)
        seen = weighted - mean * weights
        missed = lower_slack(mean, variance, n, tilt, weights, LOWER * part, rows=alarm)
        found.lower[start, now] = np.maximum(seen - missed, 0.0)
    return found


def lower_slack(
    mean: Array, variance: Array, n: Array, tilt: Array, weights: Array, delta: float, *, rows: int
) -> Array:
    """Return what a lower bound takes off; ``tilt`` is the mean of (1 + |ν|)², ``weights`` that of w."""
    one, two, three = (math.log(1.0 / (share * delta)) for share in SHARES)
    error = mixture_radius(1.0, n, three, rows=rows)
    square = largest_square(mean, error)
    spread = variance_always(variance, error, square, n, two)
    spread = np.minimum(spread, np.minimum(square, 0.25))
    radius = bernstein_radius(spread * tilt, 2.0, n, one, rows=rows)
    return np.asarray(radius + error * np.abs(weights))


def _with_earlier_signs(
    sums: _Sums, start: int, last: NDArray[np.int64]
) -> tuple[Array, Array, Array]:
    """Return the means of f·w, w and (1 + |ν|)² at the end of each period of a window.

    The signs come from the rows of the window before the batch, or of all rows before the window.
    """
    first = sums.starts[start]
    totals = np.zeros((len(sums.counts) - first, 4))
    earlier_counts = sums.counts[:first].sum(0)
    earlier_scores = sums.scores[:first].sum(0)
    for k in range(first, len(sums.counts)):
        counts, scores = sums.counts[k], sums.scores[k]
        sign, mean = _signs(earlier_counts, earlier_scores)
        weight = sign - mean
        rows = counts.sum()
        totals[k - first] = (
            weight @ scores,
            weight @ counts,
            rows * (1.0 + abs(mean)) ** 2,
            rows,
        )
        if k == first:
            earlier_counts, earlier_scores = np.zeros_like(counts), np.zeros_like(scores)
        earlier_counts = earlier_counts + counts
        earlier_scores = earlier_scores + scores
    product, weights, tilt, rows = totals.cumsum(0)[last].T
    return product / rows, weights / rows, tilt / rows


def _signs(counts: Array, scores: Array) -> tuple[Array, float]:
    """Return the sign of the gap of each group, 0 where there are no rows, and the mean of the signs."""
    n = counts.sum()
    if n == 0:
        return np.zeros_like(counts), 0.0
    sign = np.sign(scores - counts * scores.sum() / n)
    return sign, float(sign @ counts / n)
