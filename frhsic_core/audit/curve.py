r"""Estimate the curve E[f | S = s] with a simultaneous band, and its mean distance from the overall mean (GDP).

The rows are first summed into at most 256 bins of S, so that everything after one pass over the rows costs the same for
a thousand rows and for a million. Three ideas make the band and the interval honest:

* **Bias.** The bandwidth is the one that is best for a local *linear* fit (generalized cross-validation), but the curve
  is a local *quadratic* fit at that bandwidth. Its bias is of a smaller order than its standard error (robust bias
  correction; Calonico, Cattaneo and Farrell, 2018). An attribute with few distinct values is not smoothed at all.
* **All values at once.** The band is m(s) ± c·se(s), where c is the quantile of the largest standardized error over s,
  from draws of the error process e. It covers the whole curve with the stated probability, not each point.
* **GDP near zero.** The estimate of E|m(S) − E f| is biased upwards, because |x| is convex. For every s

      sign(m)·e  ≤  |m + e| − |m|  ≤  sign(m)·e  where the gap is clear, and  ≤  |e|  where it is not.

  The upper end of the interval uses the quantile of the left side, the lower end that of the right side.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

BINS = 256
LEVELS = 20  # an attribute with at most this many distinct values is not smoothed
TRIM = 0.01  # the band covers the values of S between the quantiles TRIM and 1 − TRIM
DRAWS = 2000
# Bandwidths in units of the central part of S, from its quantile .05 to .95.
_BANDWIDTHS = (0.03, 0.05, 0.075, 0.11, 0.17, 0.25, 0.4, 0.6, 1.0, 1.6, 3.0)
# The curve is fitted at this multiple of the best bandwidth: the score is flat, and its minimum is often far to the
# right of the bandwidth at which the bias stops to matter.
_UNDERSMOOTH = 0.5


def _widest(rows: float) -> float:
    """Return the widest window. A curve that is too weak for cross-validation must not be smoothed away."""
    return 0.45 * (2000.0 / rows) ** (1.0 / 6.0)


_WINDOW_ROWS = 30
_WINDOW_SHARE = 0.02
_PSEUDO_ROWS = 2.0  # rows with the overall residual variance, added to each window: a window of equal scores has some


@dataclass(frozen=True)
class Bins:
    """One attribute cut into bins: their positions, and which bin each row is in.

    Attributes
    ----------
    index : array of int
        ``(n,)``: the bin of each row.
    values : array
        ``(m,)``: the value of S that stands for each bin.
    positions : array
        ``(m,)``: the same on the scale on which the curve is smoothed.
    counts : array
        ``(m,)``: number of rows.
    smooth : bool
        Whether neighboring values are smoothed; not for an attribute with few distinct values.
    """

    index: NDArray[np.intp]
    values: Array
    positions: Array
    counts: Array
    smooth: bool


@dataclass(frozen=True)
class Region:
    """The values of S around the largest gap, and the people there."""

    low: float
    high: float
    rows: int
    share: float
    at: float
    gap: float
    gap_low: float
    gap_high: float


@dataclass(frozen=True)
class Curve:
    """E[f | S = s] with its band and GDP with its interval; arrays have one entry for each bin of S.

    Attributes
    ----------
    s, mean, low, high : array
        Value of S, estimate, and simultaneous band.
    gap, gap_low, gap_high : array
        The distance from ``center`` with its own simultaneous band.
    rows, share : array
        Number of rows in each bin, and their share of the total weight.
    inside : array of bool
        The bins that the bands cover, from the quantile .01 of S to .99.
    smooth : bool
        Whether the curve is smoothed over S.
    bandwidth : float
        Half width of a window in units of the central 90 % of S; zero without smoothing.
    center : float
        What the gap is measured from: the overall mean, or zero for residuals.
    gdp, gdp_low, gdp_high : float
        E_S|E[f | S] − center| and its interval.
    floor : float
        The mean of the GDP estimate if the curve were flat: what chance alone gives.
    explained : float
        Share of the variance of f that the curve explains.
    level : float
        Nominal coverage of the bands and of the interval.
    n : int
        Number of rows.
    """

    s: Array
    mean: Array
    low: Array
    high: Array
    gap: Array
    gap_low: Array
    gap_high: Array
    rows: Array
    share: Array
    inside: NDArray[np.bool_]
    smooth: bool
    bandwidth: float
    center: float
    gdp: float
    gdp_low: float
    gdp_high: float
    floor: float
    explained: float
    level: float
    n: int

    def gap_below(self, share: float) -> float:
        """Return the number that the gap does not exceed for the given share of people."""
        size = np.abs(self.gap)
        order = np.argsort(size)
        ordered: Array = size[order]
        reached = np.searchsorted(np.cumsum(self.share[order]), share - 1e-12)
        return float(ordered[min(int(reached), len(size) - 1)])

    def extremes(self, where: NDArray[np.bool_] | None = None) -> tuple[int, int]:
        """Return the bins between which the difference is most certain, the lower first.

        These are the least upper end and the largest lower end of the band. The extremes of the curve itself are often
        at the ends of S, where there are few people and the band is wide.
        """
        chosen = self.inside if where is None else self.inside & where
        low = np.where(chosen, self.high, np.inf)
        high = np.where(chosen, self.low, -np.inf)
        return int(np.argmin(low)), int(np.argmax(high))

    def certain_difference(self, where: NDArray[np.bool_] | None = None) -> float:
        """Return the difference between the :meth:`extremes`; zero if a constant lies inside the band."""
        low, high = self.extremes(where)
        rounding = 1e-12 * float(np.abs(self.mean).max())
        certain = self.low[high] > self.high[low] + rounding
        return float(self.mean[high] - self.mean[low]) if certain else 0.0

    def largest(self) -> Region:
        """Return the values of S around the largest gap, where the gap is at least 80 % of it.

        The largest gap is the one that is certainly largest, by its band; if no gap is certain, that of the curve.
        """
        size = np.where(self.inside, np.abs(self.gap), -1.0)
        certain = np.where(self.inside, np.maximum(self.gap_low, -self.gap_high), -1.0)
        top = int(np.argmax(certain if certain.max() > 0 else size))
        first = last = top
        same_side = np.sign(self.gap) == np.sign(self.gap[top])
        near = self.inside & same_side & (size >= 0.8 * size[top])
        if self.smooth:  # levels have no neighbors
            while first > 0 and near[first - 1]:
                first -= 1
            while last < len(size) - 1 and near[last + 1]:
                last += 1
        there = slice(first, last + 1)
        return Region(
            low=float(self.s[first]),
            high=float(self.s[last]),
            rows=int(self.rows[there].sum()),
            share=float(self.share[there].sum()),
            at=float(self.s[top]),
            gap=float(self.gap[top]),
            gap_low=float(self.gap_low[top]),
            gap_high=float(self.gap_high[top]),
        )


def cut(s: Array, *, nominal: bool = False) -> Bins:
    """Cut an attribute into bins for :func:`fit_curve`. O(n log n) time, O(n) memory.

    Up to 256 distinct values each get a bin of their own; otherwise the bins have about equal numbers of rows. Heavy
    tails are drawn in by asinh, which is linear over the central part of the distribution.

    Parameters
    ----------
    s : array
        ``(n,)``, finite.
    nominal : bool
        The numbers are codes of categories, which have no order.

    Examples
    --------
    >>> cut(np.array([1.0, 3.0, 1.0])).counts
    array([2., 1.])
    """
    distinct, index, counts = np.unique(s, return_inverse=True, return_counts=True)
    low, median, high = np.quantile(s, [0.1, 0.5, 0.9])
    spread = (high - low) or float(np.subtract(*np.quantile(s, [0.99, 0.01]))) or float(np.ptp(distinct)) or 1.0
    if len(distinct) <= BINS:
        values = distinct
        positions = np.arcsinh((values - median) / spread)
    else:
        edges = np.unique(np.quantile(s, np.linspace(0.0, 1.0, BINS + 1)[1:-1]))
        index = np.searchsorted(edges, s, side="left")
        _, index, counts = np.unique(index, return_inverse=True, return_counts=True)
        positions = np.bincount(index, np.arcsinh((s - median) / spread)) / counts
        values = np.sinh(positions) * spread + median
    smooth = not nominal and len(values) > LEVELS
    return Bins(index.reshape(-1), values, positions, counts.astype(np.float64), smooth)


def smoother(positions: Array, mass: Array, bandwidth: Array, degree: int) -> Array:
    """Return the matrix that maps means of bins to a local polynomial fit at every bin, ``(m, m)``.

    Examples
    --------
    >>> t = np.linspace(0, 1, 30)
    >>> fit = smoother(t, np.ones(30), np.full(30, 0.3), 2)
    >>> bool(np.allclose(fit @ (t**2 - t), t**2 - t))
    True
    """
    distance = (positions - positions[:, None]) / bandwidth[:, None]
    kernel = np.maximum(0.0, 1.0 - distance * distance) * mass
    powers = [kernel]
    for _ in range(2 * degree):
        powers.append(powers[-1] * distance)
    moments = np.stack([power.sum(1) for power in powers], axis=1)
    places = np.arange(degree + 1)
    normal = moments[:, places[:, None] + places]
    # Windows with hardly more values than coefficients stay solvable.
    normal = normal + 1e-9 * moments[:, :1, None] * np.eye(degree + 1)
    first = np.linalg.solve(normal, np.broadcast_to(np.eye(degree + 1)[:, :1], (*normal.shape[:2], 1)))[..., 0]
    fit = np.zeros_like(kernel)
    for p in range(degree + 1):
        fit += first[:, p : p + 1] * powers[p]
    return fit / fit.sum(1, keepdims=True)  # a constant stays the constant


def _reach(positions: Array, counts: Array) -> Array:
    """Return for every bin the least half width of a window with enough rows and enough distinct values."""
    rows = min(max(_WINDOW_ROWS, _WINDOW_SHARE * counts.sum()), 0.5 * counts.sum())
    distance = np.abs(positions - positions[:, None])
    order = np.argsort(distance, axis=1)
    inside = np.cumsum(counts[order], axis=1)
    enough = np.maximum((inside < rows).sum(1), 6)
    nearest = np.take_along_axis(distance, order, axis=1)
    return 1.1 * nearest[np.arange(len(positions)), np.minimum(enough, len(positions) - 1)]


def _central_range(positions: Array, mass: Array) -> float:
    low, high = np.interp([0.05, 0.95], np.cumsum(mass) - 0.5 * mass, positions)
    return float(high - low) or float(np.ptp(positions))


def _choose(positions: Array, mass: Array, effective: Array, means: Array, within: float, reach: Array) -> float:
    """Return the bandwidth, in central ranges, with the least cross-validation score of a local linear fit."""
    rows = effective.sum()
    unit = _central_range(positions, mass)
    best = (np.inf, _BANDWIDTHS[-1])
    for bandwidth in _BANDWIDTHS:
        fit = smoother(positions, mass, np.maximum(bandwidth * unit, reach), 1)
        residual = within + float(mass @ (means - fit @ means) ** 2)
        score = residual / max(1.0 - float(np.trace(fit)) / rows, 1e-3) ** 2
        best = min(best, (score, bandwidth))
    return best[1]


def fit_curve(
    f: Array,
    bins: Bins,
    *,
    weight: Array | None = None,
    center: float | None = None,
    level: float = 0.95,
    draws: int = DRAWS,
    seed: int = 0,
) -> Curve:
    """Estimate E[f | S = s], its simultaneous band, and GDP with an interval.

    O(n) for the sums of the bins, then O(m²·draws) for m bins, at most 256, whatever n.

    Parameters
    ----------
    f : array
        ``(n,)``: scores, hard labels, real predictions or residuals.
    bins : Bins
        The attribute, from :func:`cut`.
    weight : array, optional
        ``(n,)``: weights of the rows, not negative.
    center : float, optional
        Measure the gap from this number; by default from the mean of f.
    level : float
        Coverage of the bands and of the interval.
    draws : int
        Draws of the error process.
    seed : int
        Seed of the draws.

    Returns
    -------
    Curve
        All arrays have one entry for each bin.

    Examples
    --------
    >>> s = np.linspace(0, 1, 500)
    >>> curve = fit_curve(s**2, cut(s))
    >>> round(curve.gdp, 3), curve.gdp_low <= curve.gdp <= curve.gdp_high
    (0.257, True)
    """
    m = len(bins.values)
    unit = float(np.abs(f).max()) or 1.0
    f = f / unit  # squares of predictions can leave the range
    w = np.ones(len(f)) if weight is None else weight
    mass = np.bincount(bins.index, w, minlength=m)
    squares = np.bincount(bins.index, w * w, minlength=m)
    means = np.bincount(bins.index, w * f, minlength=m) / np.where(mass > 0, mass, 1.0)
    spread = np.bincount(bins.index, w * (f - means[bins.index]) ** 2, minlength=m) / mass.sum()
    # Kish's effective number of rows; without weights the number of rows.
    effective = np.where(mass > 0, mass * mass / np.where(squares > 0, squares, 1.0), 0.0)
    share = mass / mass.sum()
    within = float(spread.sum())
    mean_of_all = float(share @ means)
    bandwidth = 0.0
    if bins.smooth:
        reach = _reach(bins.positions, effective)
        bandwidth = _choose(bins.positions, share, effective, means, within, reach)
        bandwidth = min(_UNDERSMOOTH * bandwidth, _widest(effective.sum()))
        width = np.maximum(bandwidth * _central_range(bins.positions, share), reach)
        fit = smoother(bins.positions, share, width, 2)
        window = np.maximum(0.0, 1.0 - ((bins.positions - bins.positions[:, None]) / width[:, None]) ** 2)
    else:
        fit = window = np.eye(m)
    fitted = fit @ means
    variance, freedom = _variance(means, fitted, fit, window, share, spread, effective)
    error = np.sqrt(np.where(effective > 0, variance / np.where(effective > 0, effective, 1.0), 0.0))
    inside = _inside(share, bins.smooth) & (mass > 0)
    gap = fitted - (mean_of_all if center is None else center / unit)

    generator = np.random.default_rng(seed)
    # The variance of a window is an estimate as well: Student's t in place of the normal distribution.
    scale = np.sqrt(freedom / generator.chisquare(freedom, size=(draws, 1)))
    noise = generator.standard_normal((draws, m)) * error * scale
    masses = generator.standard_normal((draws, m)) * share / np.sqrt(np.where(effective > 0, effective, np.inf))
    process = noise @ fit.T
    if center is None:
        process_gap = process - (noise @ share + masses @ (means - mean_of_all))[:, None]
    else:
        process_gap = process
    half = _half_width(process, inside, level)
    half_gap = _half_width(process_gap, inside, level)

    size = np.abs(gap)
    gdp = float(share @ size)
    shift = masses @ (size - gdp)
    signed = process_gap * np.sign(gap)
    tail = 0.5 * (1.0 - level)
    above = np.where(size > half_gap, signed, np.abs(process_gap)) @ share + shift
    below = signed @ share + shift
    total = within + float(share @ (means - mean_of_all) ** 2)
    return Curve(
        s=bins.values,
        mean=fitted * unit,
        low=(fitted - half) * unit,
        high=(fitted + half) * unit,
        gap=gap * unit,
        gap_low=(gap - half_gap) * unit,
        gap_high=(gap + half_gap) * unit,
        rows=bins.counts,
        share=share,
        inside=inside,
        smooth=bins.smooth,
        bandwidth=bandwidth,
        center=mean_of_all * unit if center is None else center,
        gdp=gdp * unit,
        gdp_low=max(0.0, gdp - float(np.quantile(above, 1.0 - tail))) * unit,
        gdp_high=max(gdp, gdp - float(np.quantile(below, tail))) * unit,
        floor=float((np.abs(process_gap) @ share).mean()) * unit,
        explained=float(share @ (fitted - mean_of_all) ** 2) / total if total > 0 else 0.0,
        level=level,
        n=len(f),
    )


def _variance(
    means: Array, fitted: Array, fit: Array, window: Array, share: Array, spread: Array, effective: Array
) -> tuple[Array, float]:
    """Return the residual variance at every bin, and the typical number of rows behind it.

    A fit follows its own data, so squared residuals are too small: their sum over a bin of c rows has the mean
    σ²(c − 2·L_kk + c·Σ_j L_kj²/c_j).
    """
    inverse = 1.0 / np.where(effective > 0, effective, np.inf)
    squares = (spread / np.where(share > 0, share, 1.0) + (means - fitted) ** 2) * effective
    freedom = np.maximum(effective - 2.0 * np.diag(fit) + effective * ((fit * fit) @ inverse), 0.0)
    overall = squares.sum() / max(freedom.sum(), 1.0)
    local = window @ freedom
    variance = (window @ squares + _PSEUDO_ROWS * overall) / (local + _PSEUDO_ROWS)
    typical = float(np.median(local[effective > 0]))
    return variance, max(typical, 3.0)


def _inside(share: Array, smooth: bool) -> NDArray[np.bool_]:
    """Return the bins between the quantiles TRIM and 1 − TRIM of S; all of them where nothing is smoothed."""
    below = np.cumsum(share)
    inside = (below > TRIM) & (below - share < 1.0 - TRIM)
    return inside if smooth and inside.sum() > 1 else np.ones_like(inside)


def _half_width(process: Array, inside: NDArray[np.bool_], level: float) -> Array:
    """Return the half width of the band from draws of its error process ``(draws, m)``."""
    deviation = process.std(0)
    safe = np.where(deviation > 0, deviation, 1.0)
    largest = np.abs(process[:, inside] / safe[inside]).max(1)
    return float(np.quantile(largest, level)) * deviation
