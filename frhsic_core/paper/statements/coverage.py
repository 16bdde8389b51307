"""How sure a frequency is: exact binomial intervals, and slopes of log-log plots with intervals."""

from __future__ import annotations

import math

import numpy as np
from scipy import stats

__all__ = ["clopper_pearson", "loglog_slope"]


def clopper_pearson(hits: int, draws: int, *, confidence: float = 0.95) -> tuple[float, float]:
    """Exact two-sided binomial interval for a probability.

    Examples
    --------
    >>> [round(side, 4) for side in clopper_pearson(200, 200)]
    [0.9817, 1.0]
    """
    if not 0 <= hits <= draws or draws < 1:
        raise ValueError(f"hits is {hits} of {draws} draws: between 0 and the number of draws (at least 1) is needed.")
    tail = (1.0 - confidence) / 2.0
    low = float(stats.beta.ppf(tail, hits, draws - hits + 1)) if hits > 0 else 0.0
    high = float(stats.beta.isf(tail, hits + 1, draws - hits)) if hits < draws else 1.0
    return low, high


def loglog_slope(
    sizes: np.ndarray, errors: np.ndarray, *, confidence: float = 0.95
) -> tuple[float, tuple[float, float]]:
    """Slope of log(mean error) on log n, with an interval from the spread of the replications.

    The mean error at each n has a relative standard error (delta method for its logarithm); the slope is the weighted
    least-squares one, its variance the weighted one, no line being assumed beyond that. Independent replications at
    each n are needed.

    Parameters
    ----------
    sizes : ndarray
        Sample sizes, ``(k,)``.
    errors : ndarray
        Non-negative errors, ``(k, replications)``.
    confidence : float
        Of the normal interval.

    Returns
    -------
    slope : float
    interval : (float, float)

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> sizes = np.array([10.0, 100.0, 1000.0])
    >>> slope, (low, high) = loglog_slope(sizes, np.abs(rng.normal(size=(3, 4000))) / np.sqrt(sizes)[:, None])
    >>> low < -0.5 < high and high - low < 0.05
    True
    """
    means = errors.mean(1)
    variance = (errors.std(1, ddof=1) / means) ** 2 / errors.shape[1]
    weight = 1.0 / variance
    x, y = np.log(sizes), np.log(means)
    centred = x - (weight @ x) / weight.sum()
    spread = float(weight @ centred**2)
    slope = float(weight @ (centred * y)) / spread
    reach = float(stats.norm.isf((1.0 - confidence) / 2.0)) / math.sqrt(spread)
    return slope, (slope - reach, slope + reach)
