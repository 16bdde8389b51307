"""Read a curve: where its gap is largest, and between which values a difference is certain."""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import ndimage

from frhsic_core.conditional import Curve

_PLACES = 12  # round values that are compared, about


@dataclass(frozen=True)
class Difference:
    """The difference of the mean between two values, with the interval that the band allows.

    The band covers all values at once, so the interval also holds for values that were chosen
    after a look at the curve.

    Attributes
    ----------
    lower, higher : float
        The value with the lower mean, and the value with the higher one.
    size, low, high : float
        How much higher the mean is, and its interval.
    """

    lower: float
    higher: float
    size: float
    low: float
    high: float

    @property
    def certain(self) -> bool:
        """Whether the interval lies above zero."""
        return self.low > 0.0


def largest_gap(curve: Curve) -> tuple[int, slice]:
    """Return the bin with the largest gap, and the bins around it with at least 80 % of this gap.

    The largest gap is the one that is certainly largest, by its band; if no gap is certain, that of
    the curve.
    """
    size = np.where(curve.inside, np.abs(curve.gap), -1.0)
    certain = np.where(curve.inside, np.maximum(curve.gap_low, -curve.gap_high), -1.0)
    top = int(np.argmax(certain))
    if certain[top] <= 0:
        top = int(np.argmax(size))
    if not curve.smooth:  # levels have no neighbors
        return top, slice(top, top + 1)
    same_side = np.sign(curve.gap) == np.sign(curve.gap[top])
    near = curve.inside & same_side & (size >= 0.8 * size[top])
    runs = ndimage.label(near)[0]
    return top, ndimage.find_objects(runs)[runs[top] - 1][0]


def extremes(curve: Curve, where: NDArray[np.bool_] | None = None) -> tuple[int, int]:
    """Return the bins between which the difference is most certain, the lower first.

    These are the least upper end and the largest lower end of the band. The extremes of the curve
    itself are often at the ends of S, where there are few people and the band is wide.
    """
    chosen = curve.inside if where is None else curve.inside & where
    low = np.where(chosen, curve.high, np.inf)
    high = np.where(chosen, curve.low, -np.inf)
    return int(np.argmin(low)), int(np.argmax(high))


def certain_difference(curve: Curve, where: NDArray[np.bool_] | None = None) -> float:
    """Return the difference between the :func:`extremes`; zero if a constant is inside the band."""
    low, high = extremes(curve, where)
    rounding = 1e-12 * float(np.abs(curve.mean).max())
    certain = curve.low[high] > curve.high[low] + rounding
    if not certain:
        return 0.0
    return float(curve.mean[high] - curve.mean[low])


def difference(curve: Curve, first: float, last: float) -> Difference:
    """Return how much the mean differs between two values, from the lower to the higher mean."""
    means = np.interp([first, last], curve.s, curve.mean)
    if means[0] <= means[1]:
        return rise(curve, first, last)
    return rise(curve, last, first)


def rise(curve: Curve, lower: float, higher: float) -> Difference:
    """Return how much higher the mean is at one value than at another; it may be negative."""
    places = [lower, higher]
    low = np.interp(places, curve.s, curve.low)
    mean = np.interp(places, curve.s, curve.mean)
    high = np.interp(places, curve.s, curve.high)
    return Difference(
        lower=lower,
        higher=higher,
        size=float(mean[1] - mean[0]),
        low=float(low[1] - high[0]),
        high=float(high[1] - low[0]),
    )


def telling_pair(curve: Curve) -> Difference | None:
    """Return the two values of the attribute that show the dependence best; None if none does.

    Of all pairs of round values it is the one whose difference is certainly largest, so that a
    valley or a hump shows as well as a slope. Levels are compared as they are.

    Examples
    --------
    >>> from frhsic_core import gdp_curve
    >>> s = np.repeat(np.arange(20.0, 70.0), 20)
    >>> pair = telling_pair(gdp_curve((s - 45.0) ** 2, s))
    >>> pair.lower, abs(pair.higher - 45.0) >= 20.0
    (45.0, True)
    """
    if certain_difference(curve) == 0.0:
        return None
    surest = [float(curve.s[k]) for k in extremes(curve)]
    best = difference(curve, *surest)
    if not curve.smooth:
        return best
    places = _round_values(curve)
    pairs = [difference(curve, a, b) for a, b in itertools.combinations(places, 2)]
    certain = [pair for pair in pairs if pair.certain]
    return max(certain, key=lambda pair: pair.low, default=best)


def _round_values(curve: Curve) -> list[float]:
    """Return about a dozen round values of the attribute inside of the band.

    They are quantiles, rounded to a step of 1, 2 or 5 times a power of ten that fits the distance
    between them: of incomes they are close together where most people are.
    """
    inside = curve.s[curve.inside]
    below = np.cumsum(curve.share) - 0.5 * curve.share
    quantiles = np.interp(np.linspace(0.01, 0.99, _PLACES), below, curve.s)
    steps = np.gradient(quantiles)
    found = set()
    for value, step in zip(quantiles.tolist(), steps.tolist(), strict=True):
        near = _rounded_to(value, step) if step > 0.0 else value
        if inside[0] <= near <= inside[-1]:
            found.add(near)
    return sorted(found)


def _rounded_to(value: float, step: float) -> float:
    """Return the multiple of a round step that is next to a value."""
    power = math.floor(math.log10(step))
    size = next(factor for factor in (1.0, 2.0, 5.0, 10.0) if factor * 10.0**power >= 0.999 * step)
    multiple = round(value / (size * 10.0**power))
    return round(multiple * size * 10.0**power, max(0, -power))
