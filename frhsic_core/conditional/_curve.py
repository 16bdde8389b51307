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

Where there are few people, beyond the first and the last percent of S, a curve would be a guess. These people are two
groups, each with a mean and an interval of its own.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import stats

Array = NDArray[np.float64]

BINS = 256
LEVELS = 20  # an attribute with at most this many distinct values is not smoothed
TRIM = 0.01  # the band covers the values of S between the quantiles TRIM and 1 − TRIM
END_ROWS = 20  # people in the group at an end of S, at least
DRAWS = 2000
_CHANCE = 200  # draws of a flat curve
# Bandwidths in units of the central part of S, from its quantile .05 to .95.
_BANDWIDTHS = (0.03, 0.05, 0.075, 0.11, 0.17, 0.25, 0.4, 0.6, 1.0, 1.6, 3.0)
# The curve is fitted at this multiple of the best bandwidth: the score is flat, and its minimum is often far to the
# right of the bandwidth at which the bias stops to matter.
_UNDERSMOOTH = 0.5
_WINDOW_ROWS = 30
_WINDOW_SHARE = 0.02
_WINDOW_VALUES = 6  # a window with fewer distinct values has no quadratic fit
_PSEUDO_ROWS = 2.0  # rows with the overall residual variance, added to each window: a window of equal scores has some


def _widest(rows: float) -> float:
    """Return the widest window. A curve that is too weak for cross-validation must not be smoothed away."""
    return 0.45 * (2000.0 / rows) ** (1.0 / 6.0)


@dataclass(frozen=True)
class EndGroup:
    """The people with the lowest or the highest values of S, whom the band of a curve leaves out.

    Attributes
    ----------
    first, last : float
        Smallest and largest value of S in the group.
    rows : int
        Number of people.
    share : float
        Their share of the total weight.
    mean, low, high : float
        Their mean, with an interval. Those of both ends hold together.
    gap, gap_low, gap_high : float
        The distance of the mean from the center of the curve, with its interval.
    """

    first: float
    last: float
    rows: int
    share: float
    mean: float
    low: float
    high: float
    gap: float
    gap_low: float
    gap_high: float

    @property
    def is_certain(self) -> bool:
        """Whether the interval of the gap excludes zero."""
        return self.gap_low > 0.0 or self.gap_high < 0.0


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
        The mean of the GDP estimate if the curve were flat, which chooses its bandwidth too: what chance alone gives.
    explained : float
        Share of the variance of f that the curve explains.
    alpha : float
        One minus the nominal coverage of the bands and of the interval.
    n : int
        Number of rows.
    ends : tuple of EndGroup
        The people beyond the bands, with the lowest values of S first; empty without smoothing.
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
    alpha: float
    n: int
    ends: tuple[EndGroup, ...] = ()

    @property
    def is_flat(self) -> bool:
        """Whether the band of the gap contains zero everywhere, so that chance explains the curve."""
        rounding = 1e-12 * float(np.abs(self.mean).max() or 1.0)
        outside = (self.gap_low > rounding) | (self.gap_high < -rounding)
        return not bool(outside[self.inside].any())


class Smoother:
    """The curve of any number of scores along one attribute, from sums over at most 256 bins of it.

    Up to 256 distinct values each get a bin of their own; otherwise the bins have about equal numbers of rows. Heavy
    tails are drawn in by asinh, which is linear over the central part of the distribution. O(n log n) time and O(n)
    memory, then O(n) for each curve.

    Parameters
    ----------
    s : array
        ``(n,)``, finite.
    weight : array, optional
        ``(n,)``: positive weights of the rows.
    nominal : bool
        The numbers are codes of categories, which have no order.
    """

    def __init__(self, s: Array, *, weight: Array | None = None, nominal: bool = False) -> None:
        distinct, index, counts = np.unique(s, return_inverse=True, return_counts=True)
        low, median, high = np.quantile(s, [0.1, 0.5, 0.9])
        spread = (
            (high - low)
            or float(np.subtract(*np.quantile(s, [0.99, 0.01])))
            or float(np.ptp(distinct))
            or 1.0
        )
        if len(distinct) <= BINS:
            self.values = distinct
            self.positions = np.arcsinh((distinct - median) / spread)
        else:
            edges = np.unique(np.quantile(s, np.linspace(0.0, 1.0, BINS + 1)[1:-1]))
            _, index, counts = np.unique(
                np.searchsorted(edges, s, side="left"), return_inverse=True, return_counts=True
            )
            self.positions = np.bincount(index, np.arcsinh((s - median) / spread)) / counts
            self.values = np.sinh(self.positions) * spread + median
        # A few people with different values each have no mean of their own: they are smoothed as well.
        sparse = len(distinct) > max(_WINDOW_VALUES, len(s) / 3)
        self.smooth = not nominal and (len(distinct) > LEVELS or sparse)
        self.index = index.reshape(-1)
        self.counts = counts.astype(np.float64)
        self.weight = np.ones(len(s)) if weight is None else weight / weight.max()
        mass = self._sum(self.weight)
        self.mass = mass
        self.share = mass / mass.sum()
        self.effective = mass * mass / self._sum(self.weight**2)  # Kish's number of rows
        self._matrices: dict[tuple[float, int], Array] = {}
        if self.smooth:
            last = np.cumsum(counts)
            ordered = np.sort(s)
            self.lowest, self.highest = ordered[last - counts], ordered[last - 1]
            self._reach = self._least_width()
            ends = np.interp([0.05, 0.95], np.cumsum(self.share) - 0.5 * self.share, self.positions)
            self._unit = float(np.diff(ends)[0]) or float(np.ptp(self.positions))

    def _sum(self, values: Array) -> Array:
        return np.asarray(
            np.bincount(self.index, values, minlength=len(self.values)), dtype=np.float64
        )

    def _least_width(self) -> Array:
        """Return for every bin the least half width of a window with enough rows and enough distinct values."""
        rows = self.effective.sum()
        needed = min(max(_WINDOW_ROWS, _WINDOW_SHARE * rows), 0.5 * rows)
        distance = np.abs(self.positions - self.positions[:, None])
        # Ages at equal distances are common, and an unstable sort depends on the processor.
        order = np.argsort(distance, axis=1, kind="stable")
        inside = np.cumsum(self.effective[order], axis=1)
        enough = np.maximum((inside < needed).sum(1), _WINDOW_VALUES)
        nearest = np.take_along_axis(distance, order, axis=1)
        return (
            1.1
            * nearest[np.arange(len(self.positions)), np.minimum(enough, len(self.positions) - 1)]
        )

    def _width(self, bandwidth: float) -> Array:
        return np.maximum(bandwidth * self._unit, self._reach)

    def _matrix(self, bandwidth: float, degree: int) -> Array:
        key = bandwidth, degree
        if key not in self._matrices:
            self._matrices[key] = local_polynomial(
                self.positions, self.share, self._width(bandwidth), degree
            )
        return self._matrices[key]

    def means(self, f: Array) -> tuple[Array, Array]:
        """Return the mean of each bin, and its part of the variance within bins."""
        means = self._sum(self.weight * f) / self.mass
        return means, self._sum(self.weight * (f - means[self.index]) ** 2) / self.mass.sum()

    def _bandwidth(self, means: Array, within: float) -> Array:
        """Return half of the bandwidth with the least cross-validation score of a local linear fit, of ``(..., m)``."""
        rows = self.effective.sum()
        scores = []
        for bandwidth in _BANDWIDTHS:
            fit = self._matrix(bandwidth, 1)
            residual = within + (means - means @ fit.T) ** 2 @ self.share
            scores.append(residual / max(1.0 - float(np.trace(fit)) / rows, 1e-3) ** 2)
        best = np.array(_BANDWIDTHS)[np.argmin(scores, axis=0)]
        return np.minimum(_UNDERSMOOTH * best, _widest(rows))

    def _fit(self, means: Array, within: float) -> tuple[float, Array]:
        """Return the bandwidth, and the matrix that maps the means of the bins to the curve."""
        if not self.smooth:
            return 0.0, np.eye(len(means))
        bandwidth = float(self._bandwidth(means, within))
        return bandwidth, self._matrix(bandwidth, 2)

    def _by_chance(
        self, error: Array, within: float, center: float | None, generator: np.random.Generator
    ) -> float:
        """Return the mean GDP of flat curves with these standard errors of the bins, each with its own bandwidth."""
        noise = generator.standard_normal((_CHANCE, len(error))) * error
        fitted = noise.copy()
        if self.smooth:
            chosen = self._bandwidth(noise, within)
            for bandwidth in np.unique(chosen):
                fitted[chosen == bandwidth] = (
                    noise[chosen == bandwidth] @ self._matrix(float(bandwidth), 2).T
                )
        middle = (noise @ self.share)[:, None] if center is None else 0.0
        return float((np.abs(fitted - middle) @ self.share).mean())

    def gdp(self, f: Array, *, center: float | None = None) -> tuple[float, Array]:
        """Return GDP of one column of scores, and its gradient in the scores at a fixed bandwidth."""
        unit = float(np.abs(f).max()) or 1.0
        means, spread = self.means(f / unit)
        _, fit = self._fit(means, float(spread.sum()))
        gap = fit @ means - (self.share @ means if center is None else center / unit)
        side = self.share * np.sign(np.where(np.abs(gap) > 1e-15, gap, 0.0))
        slope = fit.T @ side - (side.sum() if center is None else 0.0) * self.share
        return float(self.share @ np.abs(gap)) * unit, self.weight * (slope / self.mass)[self.index]

    def curve(
        self,
        f: Array,
        *,
        center: float | None = None,
        alpha: float = 0.05,
        draws: int = DRAWS,
        random_state: int = 0,
    ) -> Curve:
        """Estimate E[f | S = s], its simultaneous band, and GDP with an interval.

        Parameters
        ----------
        f : array
            ``(n,)``: scores, hard labels, real predictions or residuals.
        center : float, optional
            Measure the gap from this number; by default from the mean of f.
        alpha : float
            One minus the coverage of the bands and of the interval.
        draws : int
            Draws of the error process.
        random_state : int
            Seed of the draws.
        """
        unit = float(np.abs(f).max()) or 1.0
        means, spread = self.means(f / unit)  # squares of predictions can leave the range
        share = self.share
        within = float(spread.sum())
        overall = float(share @ means)
        bandwidth, fit = self._fit(means, within)
        window = np.eye(len(means))
        if self.smooth:
            distance = (self.positions - self.positions[:, None]) / self._width(bandwidth)[:, None]
            window = np.maximum(0.0, 1.0 - distance * distance)
        fitted = fit @ means
        variance, freedom = self._variance(means, fitted, fit, window, spread)
        error = np.sqrt(variance / self.effective)
        inside = self._inside()
        gap = fitted - (overall if center is None else center / unit)

        generator = np.random.default_rng(random_state)
        # The variance of a window is an estimate as well: Student's t in place of the normal distribution.
        scale = np.sqrt(freedom / generator.chisquare(freedom, size=(draws, 1)))
        noise = generator.standard_normal((draws, len(means))) * error * scale
        masses = generator.standard_normal((draws, len(means))) * share / np.sqrt(self.effective)
        process = noise @ fit.T
        process_gap = process
        if center is None:
            process_gap = process - (noise @ share + masses @ (means - overall))[:, None]
        half = _half_width(process, inside, alpha)
        half_gap = _half_width(process_gap, inside, alpha)

        size = np.abs(gap)
        gdp = float(share @ size)
        shift = masses @ (size - gdp)
        signed = process_gap * np.sign(gap)
        above = np.where(size > half_gap, signed, np.abs(process_gap)) @ share + shift
        below = signed @ share + shift
        total = within + float(share @ (means - overall) ** 2)
        return Curve(
            s=self.values,
            mean=fitted * unit,
            low=(fitted - half) * unit,
            high=(fitted + half) * unit,
            gap=gap * unit,
            gap_low=(gap - half_gap) * unit,
            gap_high=(gap + half_gap) * unit,
            rows=self.counts,
            share=share,
            inside=inside,
            smooth=self.smooth,
            bandwidth=bandwidth,
            center=overall * unit if center is None else center,
            gdp=gdp * unit,
            gdp_low=max(0.0, gdp - float(np.quantile(above, 1.0 - 0.5 * alpha))) * unit,
            gdp_high=max(gdp, gdp - float(np.quantile(below, 0.5 * alpha))) * unit,
            floor=self._by_chance(error, within, center, generator) * unit,
            explained=float(share @ (fitted - overall) ** 2) / total if total > 0 else 0.0,
            alpha=alpha,
            n=len(f),
            ends=tuple(self._end_groups(f, inside, center, alpha)),
        )

    def _end_groups(
        self, f: Array, inside: NDArray[np.bool_], center: float | None, alpha: float
    ) -> list[EndGroup]:
        """Return the people below and above the bins ``inside`` as groups, each with enough people for a mean."""
        if not self.smooth:
            return []
        bins = np.flatnonzero(inside)
        places = np.arange(len(inside))
        found = []
        enough = np.cumsum(self.counts) - self.counts < END_ROWS
        if bins[0] > 0:
            found.append((places < bins[0]) | enough)
        enough = np.cumsum(self.counts[::-1])[::-1] - self.counts < END_ROWS
        if bins[-1] < len(inside) - 1:
            found.append((places > bins[-1]) | enough)
        level = alpha / max(len(found), 1)
        return [self._end_group(f, held, center, level) for held in found]

    def _end_group(
        self, f: Array, held: NDArray[np.bool_], center: float | None, alpha: float
    ) -> EndGroup:
        """Return the people of some bins as one group; its interval is Student's t."""
        rows = held[self.index]
        own, weight = f[rows], self.weight[rows]
        share = float(weight.sum() / self.weight.sum())
        mean = float(np.average(own, weights=weight))
        effective = float(weight.sum() ** 2 / (weight**2).sum())
        freedom = max(effective - 1.0, 1.0)
        # Rows with the variance of all: a group of equal scores has some, as in a window of the curve.
        overall = float(np.average(f, weights=self.weight))
        variance = float(np.average((f - overall) ** 2, weights=self.weight))
        squares = effective * float(np.average((own - mean) ** 2, weights=weight))
        variance = (squares + _PSEUDO_ROWS * variance) / (freedom + _PSEUDO_ROWS)
        half = float(stats.t.isf(0.5 * alpha, freedom)) * float(np.sqrt(variance / effective))
        gap = mean - (overall if center is None else center)
        # The overall mean contains the group itself.
        half_gap = half if center is not None else (1.0 - share) * half
        return EndGroup(
            first=float(self.lowest[held].min()),
            last=float(self.highest[held].max()),
            rows=int(rows.sum()),
            share=share,
            mean=mean,
            low=mean - half,
            high=mean + half,
            gap=gap,
            gap_low=gap - half_gap,
            gap_high=gap + half_gap,
        )

    def _variance(
        self, means: Array, fitted: Array, fit: Array, window: Array, spread: Array
    ) -> tuple[Array, float]:
        """Return the residual variance at every bin, and the typical number of rows behind it.

        A fit follows its own data, so squared residuals are too small: their sum over a bin of c rows has the mean
        σ²(c − 2·L_kk + c·Σ_j L_kj²/c_j).
        """
        rows = self.effective
        squares = (spread / self.share + (means - fitted) ** 2) * rows
        freedom = np.maximum(rows - 2.0 * np.diag(fit) + rows * ((fit * fit) @ (1.0 / rows)), 0.0)
        overall = squares.sum() / max(freedom.sum(), 1.0)
        local = window @ freedom
        variance = (window @ squares + _PSEUDO_ROWS * overall) / (local + _PSEUDO_ROWS)
        return variance, max(float(np.median(local)), 3.0)

    def _inside(self) -> NDArray[np.bool_]:
        """Return the bins between the quantiles TRIM and 1 − TRIM of S; all of them where nothing is smoothed."""
        below = np.cumsum(self.share)
        inside = (below > TRIM) & (below - self.share < 1.0 - TRIM)
        return inside if self.smooth and inside.sum() > 1 else np.ones_like(inside)


def local_polynomial(positions: Array, mass: Array, bandwidth: Array, degree: int) -> Array:
    """Return the matrix that maps means of bins to a local polynomial fit at every bin, ``(m, m)``.

    Examples
    --------
    >>> t = np.linspace(0, 1, 30)
    >>> fit = local_polynomial(t, np.ones(30), np.full(30, 0.3), 2)
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
    first = np.linalg.solve(
        normal, np.broadcast_to(np.eye(degree + 1)[:, :1], (*normal.shape[:2], 1))
    )[..., 0]
    fit = np.zeros_like(kernel)
    for p in range(degree + 1):
        fit += first[:, p : p + 1] * powers[p]
    return fit / fit.sum(1, keepdims=True)  # a constant stays the constant


def _half_width(process: Array, inside: NDArray[np.bool_], alpha: float) -> Array:
    """Return the half width of the band from draws of its error process ``(draws, m)``."""
    deviation = process.std(0)
    safe = np.where(deviation > 0, deviation, 1.0)
    largest = np.abs(process[:, inside] / safe[inside]).max(1)
    return float(np.quantile(largest, 1.0 - alpha)) * deviation
