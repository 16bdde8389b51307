"""Read a curve: where its gap is largest, and between which values a difference is certain."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy import ndimage

from frhsic_core.conditional import Curve


def largest_gap(curve: Curve) -> tuple[int, slice]:
    """Return the bin with the largest gap, and the bins around it in which the gap is at least 80 % of it.

    The largest gap is the one that is certainly largest, by its band; if no gap is certain, that of the curve.
    """
    size = np.where(curve.inside, np.abs(curve.gap), -1.0)
    certain = np.where(curve.inside, np.maximum(curve.gap_low, -curve.gap_high), -1.0)
    top = int(np.argmax(certain if certain.max() > 0 else size))
    if not curve.smooth:  # levels have no neighbors
        return top, slice(top, top + 1)
    near = (
        curve.inside & (np.sign(curve.gap) == np.sign(curve.gap[top])) & (size >= 0.8 * size[top])
    )
    runs = ndimage.label(near)[0]
    return top, ndimage.find_objects(runs)[runs[top] - 1][0]


def extremes(curve: Curve, where: NDArray[np.bool_] | None = None) -> tuple[int, int]:
    """Return the bins between which the difference is most certain, the lower first.

    These are the least upper end and the largest lower end of the band. The extremes of the curve itself are often at
    the ends of S, where there are few people and the band is wide.
    """
    chosen = curve.inside if where is None else curve.inside & where
    low = np.where(chosen, curve.high, np.inf)
    high = np.where(chosen, curve.low, -np.inf)
    return int(np.argmin(low)), int(np.argmax(high))


def certain_difference(curve: Curve, where: NDArray[np.bool_] | None = None) -> float:
    """Return the difference between the :func:`extremes`; zero if a constant lies inside the band."""
    low, high = extremes(curve, where)
    rounding = 1e-12 * float(np.abs(curve.mean).max())
    certain = curve.low[high] > curve.high[low] + rounding
    return float(curve.mean[high] - curve.mean[low]) if certain else 0.0
