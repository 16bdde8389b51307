r"""Compare every group of people with neighboring values of S with everybody: the scan for the largest gap.

A curve averages over a window, and GDP averages over all people. Both can hide eighty people at one end of S who are
treated differently. The scan looks at *every* interval of S that holds at least k people, and asks how far the mean
score in it is from the overall mean.

**Which groups suffice.** A group that can be cut into two groups of at least k people lies between them: its mean is an
average of theirs. So the largest gap belongs to a group that cannot be cut, and these hold fewer than 2k people unless
many have the same value. There are at most n·k of them.

**An interval for all groups at once.** In a flat curve the standardized gaps of all groups behave like the increments
of a Brownian motion, divided by the root of their length. With :math:`\varphi` the normal density, the largest of them
exceeds b with a probability of about

.. math:: \tfrac12\, b^3 \varphi(b)\, \frac nk

(Siegmund and Venkatraman, 1995; without their correction for discrete time, which makes b smaller). With few distinct
values there are few groups, and the union bound over them is smaller. The smaller of the two gives b. Each group then
has an interval of Student's t at the level of b. It compares the group with all others, since the gap is (1 − π) times
the difference of the two means, for a group with the share π of the people. Each of the two variances is at least the
one that groups of k people have on average: among rare large scores a group without any would look as if it had none.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import stats
from scipy.optimize import brentq

from frhsic_core.conditional._curve import Array

SIZE = 50  # people in the smallest group
_STEPS = 8  # longer groups begin and end at the eighths of their length
_CHUNK = 2**16  # starts at a time: their sums stay in the cache of a processor
_GROUPS = 10_000_000  # with more of them, a few neighbors are merged first
_FREEDOM = 2048  # Student's t with more degrees of freedom is the normal distribution


@dataclass(frozen=True)
class Group:
    """People with neighboring values of S, or of one category.

    Attributes
    ----------
    first, last : float
        Smallest and largest value of S in the group.
    rows : int
        Number of people.
    share : float
        Their share of the total weight.
    mean : float
        Their mean score.
    gap, low, high : float
        Its distance from the overall mean, with an interval that holds for all groups at once.
    """

    first: float
    last: float
    rows: int
    share: float
    mean: float
    gap: float
    low: float
    high: float

    @property
    def is_certain(self) -> bool:
        """Whether the interval of the gap excludes zero."""
        return self.low > 0.0 or self.high < 0.0


@dataclass(frozen=True)
class GroupScan:
    """The gaps of all groups of at least ``size`` people with neighboring values of S.

    Attributes
    ----------
    size : int
        Number of people in the smallest group.
    groups : int
        Number of groups that were compared.
    value, low, high : float
        The largest distance of the mean score of a group from the overall mean, and its interval.
    largest : Group
        The group with the largest gap.
    surest : Group
        The group whose gap is certainly largest: it has the largest lower end.
    """

    size: int
    groups: int
    value: float
    low: float
    high: float
    largest: Group
    surest: Group


@dataclass(frozen=True)
class _Sums:
    """Running sums over the distinct values of S, in rising order, that start with zero."""

    rows: Array
    weight: Array
    squared_weight: Array
    gap: Array
    squared_gap: Array


@dataclass(frozen=True)
class _Gaps:
    """Gaps and their half widths for pairs of a first value and the value after the last."""

    start: NDArray[np.intp]
    end: NDArray[np.intp]
    gap: Array
    half: Array


def scan_groups(
    f: Array,
    s: Array,
    *,
    weight: Array | None = None,
    size: int = SIZE,
    nominal: bool = False,
    alpha: float = 0.05,
) -> GroupScan | None:
    """Return the largest gap of any group of at least ``size`` people with neighboring values of S.

    O(n·size) time and O(n) memory; where n·size is more than ten million, the edges of the groups are √(n·size/10⁷)
    people apart.

    Parameters
    ----------
    f, s : array
        ``(n,)``: scores and attribute.
    weight : array, optional
        ``(n,)``: positive weights of the rows.
    size : int
        Number of people in the smallest group.
    nominal : bool
        The numbers of S are codes of categories. Each category is a group, and they have no neighbors.
    alpha : float
        One minus the probability that the intervals of all groups contain their gaps.

    Returns
    -------
    GroupScan or None
        None if no group is both large enough and not everybody.

    Examples
    --------
    >>> age = np.arange(20.0, 100.0, 0.01)
    >>> score = 0.5 + 0.4 * (age >= 99.2) + 0.1 * np.cos(1e4 * age)
    >>> found = scan_groups(score, age)
    >>> round(found.surest.gap, 1), found.surest.first >= 99.2, found.surest.last >= 99.9
    (0.4, True, True)
    """
    if size < 2:
        raise ValueError(f"The smallest group has {size} people: give at least 2.")
    weight = np.ones(len(f)) if weight is None else weight / weight.max()
    mean = float(np.average(f, weights=weight))
    unit = float(np.abs(f - mean).max()) or 1.0  # squares of large numbers can leave the range
    first, last, sums = _sums((f - mean) / unit, s, weight, size, nominal)
    if nominal:
        windows, count = _categories(sums, size)
        longer: Iterator[_Pairs] = iter(())
    else:
        windows, count = _windows(sums, size)
        longer = _long_windows(sums, size)
    if count == 0:
        return None
    variance = _typical_variance(sums, size)
    level = 2.0 * stats.norm.sf(critical_value(len(f), size, count, alpha))
    quantiles = stats.t.isf(0.5 * level, np.arange(1, _FREEDOM + 1))
    largest: _Chosen | None = None
    surest: _Chosen | None = None
    highest = 0.0
    for start, end in windows:
        found = _gaps(sums, start, end, variance, quantiles)
        distance = np.abs(found.gap)
        highest = max(highest, float((distance + found.half).max()))
        largest = _better(largest, found, distance)
        surest = _better(surest, found, distance - found.half)
    # The gap of a longer group is no larger than those of its parts, but it can be surer.
    for start, end in longer:
        found = _gaps(sums, start, end, variance, quantiles)
        surest = _better(surest, found, np.abs(found.gap) - found.half)
    assert largest is not None
    assert surest is not None

    def group(it: _Chosen) -> Group:
        return Group(
            first=float(first[it.start]),
            last=float(last[it.end - 1]),
            rows=int(sums.rows[it.end] - sums.rows[it.start]),
            share=float((sums.weight[it.end] - sums.weight[it.start]) / sums.weight[-1]),
            mean=mean + unit * it.gap,
            gap=unit * it.gap,
            low=unit * (it.gap - it.half),
            high=unit * (it.gap + it.half),
        )

    return GroupScan(
        size=size,
        groups=count,
        value=unit * abs(largest.gap),
        low=unit * max(0.0, surest.score),
        high=unit * highest,
        largest=group(largest),
        surest=group(surest),
    )


def critical_value(rows: int, size: int, groups: int, alpha: float) -> float:
    """Return the number of standard errors that no gap of a flat curve exceeds with probability 1 − ``alpha``.

    Examples
    --------
    >>> round(critical_value(8000, 50, 400_000, 0.05), 2), round(critical_value(8000, 50, 10, 0.05), 2)
    (4.71, 2.81)
    """
    union = float(stats.norm.isf(0.5 * alpha / groups))

    def excess(b: float) -> float:
        return 0.5 * b**3 * float(stats.norm.pdf(b)) * rows / size - alpha

    # The approximation falls from its largest value, at √3, on.
    if excess(math.sqrt(3.0)) <= 0.0:
        return union
    return min(union, float(brentq(excess, math.sqrt(3.0), 40.0)))


def _sums(
    gap: Array, s: Array, weight: Array, size: int, nominal: bool
) -> tuple[Array, Array, _Sums]:
    """Return the first and the last value of S of each block of people, and the running sums over the blocks.

    A block is one value of S, or a few neighboring values if there would be too many groups.
    """
    values, place, rows = np.unique(s, return_inverse=True, return_counts=True)
    place = place.reshape(-1)
    first = last = values
    merged = math.ceil(math.sqrt(len(values) * min(size, len(values)) / _GROUPS))
    if merged > 1 and not nominal:
        block = np.cumsum(rows) // merged
        place = np.unique(block, return_inverse=True)[1].reshape(-1)[place]
        ends = np.flatnonzero(np.append(np.diff(block) > 0, True))
        first, last = values[np.append(0, ends[:-1] + 1)], values[ends]

    def running(each: Array) -> Array:
        return np.concatenate([[0.0], np.cumsum(np.bincount(place, each, minlength=len(first)))])

    sums = _Sums(
        rows=running(np.ones(len(s))),
        weight=running(weight),
        squared_weight=running(weight * weight),
        gap=running(weight * gap),
        squared_gap=running(weight * gap * gap),
    )
    return first, last, sums


_Pairs = tuple[NDArray[np.intp], NDArray[np.intp]]


def _categories(sums: _Sums, size: int) -> tuple[Iterator[_Pairs], int]:
    """Return the categories that are large enough and not everybody, and their number."""
    rows = np.diff(sums.rows)
    start = np.flatnonzero((rows >= size) & (rows < sums.rows[-1]))
    pairs = [(start, start + 1)] if len(start) else []
    return iter(pairs), len(start)


def _windows(sums: _Sums, size: int) -> tuple[Iterator[_Pairs], int]:
    """Return the groups that cannot be cut into two groups of ``size`` people, and their number.

    The shortest group that begins at a block ends before the block ``shortest``. A group that ends at or after the
    shortest one that begins *there* can be cut.
    """
    count = len(sums.rows) - 1
    shortest = np.searchsorted(sums.rows, sums.rows[:-1] + size)
    too_long = np.full(count, count + 1)
    inside = np.flatnonzero(shortest < count)
    too_long[inside] = np.minimum(shortest[shortest[inside]], count + 1)
    if shortest[0] <= count < too_long[0]:
        too_long[0] = count  # everybody is no group

    def pairs() -> Iterator[_Pairs]:
        for first in range(0, count, _CHUNK):
            start = np.arange(first, min(first + _CHUNK, count))
            end = shortest[start]
            while True:
                kept = end < too_long[start]
                start, end = start[kept], end[kept]
                if len(start) == 0:
                    break
                yield start, end
                end = end + 1

    return pairs(), int(np.maximum(too_long - shortest, 0).sum())


def _long_windows(sums: _Sums, size: int) -> Iterator[_Pairs]:
    """Yield longer groups, of which an eighth more or less does not matter: they are surer than short ones."""
    total = sums.rows[-1]
    length = 2.0 * size
    while length < total:
        step = length / _STEPS
        cuts = np.searchsorted(sums.rows, np.arange(0.0, total + step, step))
        cuts = np.minimum(cuts, len(sums.rows) - 1)
        for steps in range(_STEPS, 2 * _STEPS):
            start, end = cuts[:-steps], cuts[steps:]
            kept = sums.rows[end] - sums.rows[start] >= size
            kept &= sums.rows[end] - sums.rows[start] < total
            if kept.any():
                yield start[kept], end[kept]
        length *= 2.0


def _typical_variance(sums: _Sums, size: int) -> float:
    """Return the mean variance of the scores inside groups of ``size`` people that do not overlap."""
    cuts = np.unique(np.searchsorted(sums.rows, np.arange(0.0, sums.rows[-1], size)))
    cuts = np.append(cuts, len(sums.rows) - 1)
    weight = np.diff(sums.weight[cuts])
    kept = weight > 0
    mean = np.diff(sums.gap[cuts])[kept] / weight[kept]
    square = np.diff(sums.squared_gap[cuts])[kept] / weight[kept]
    return float(np.average(np.maximum(square - mean * mean, 0.0), weights=weight[kept]))


def _gaps(
    sums: _Sums,
    start: NDArray[np.intp],
    end: NDArray[np.intp],
    variance: float,
    quantiles: Array,
) -> _Gaps:
    """Return the gaps of some groups with the half widths of their intervals."""
    weight = sums.weight[end] - sums.weight[start]
    squared_weight = sums.squared_weight[end] - sums.squared_weight[start]
    total = sums.gap[end] - sums.gap[start]
    square = sums.squared_gap[end] - sums.squared_gap[start]
    gap = total / weight
    own, freedom = _error(weight, squared_weight, gap, square, variance)
    rest = np.maximum(sums.weight[-1] - weight, 0.0)
    rest_squared = np.maximum(sums.squared_weight[-1] - squared_weight, 0.0)
    tiny = np.finfo(np.float64).tiny
    rest_mean = (sums.gap[-1] - total) / np.maximum(rest, tiny)
    others, rest_freedom = _error(
        rest, rest_squared, rest_mean, sums.squared_gap[-1] - square, variance
    )
    freedom = np.minimum(np.minimum(freedom, rest_freedom), _FREEDOM)
    quantile = quantiles[np.maximum(freedom, 1.0).astype(np.intp) - 1]
    half = quantile * rest / sums.weight[-1] * np.sqrt(own + others)
    return _Gaps(start, end, gap, half)


def _error(
    weight: Array, squared_weight: Array, mean: Array, square: Array, variance: float
) -> tuple[Array, Array]:
    """Return the squared standard errors of means, and their degrees of freedom.

    The variance inside a group is at least the typical one. The people of a group count as many as Kish's effective
    number of them.
    """
    tiny = np.finfo(np.float64).tiny
    effective = np.maximum(weight * weight / np.maximum(squared_weight, tiny), 1.0)
    freedom = np.maximum(effective - 1.0, 1.0)
    inside = (square / np.maximum(weight, tiny) - mean * mean) * effective / freedom
    return np.maximum(inside, variance) / effective, freedom


@dataclass(frozen=True)
class _Chosen:
    """A group that was chosen for its score: from which block to which, its gap and its half width."""

    score: float
    start: int
    end: int
    gap: float
    half: float


def _better(best: _Chosen | None, found: _Gaps, score: Array) -> _Chosen:
    """Return the group with the highest score of those found, unless the best one so far is better."""
    place = int(np.argmax(score))
    if best is not None and best.score >= score[place]:
        return best
    return _Chosen(
        score=float(score[place]),
        start=int(found.start[place]),
        end=int(found.end[place]),
        gap=float(found.gap[place]),
        half=float(found.half[place]),
    )
