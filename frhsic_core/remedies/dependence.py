"""Measure how strongly predictions depend on the attributes."""

from __future__ import annotations

import math

import numpy as np

from frhsic_core.conditional import gdp
from frhsic_core.joint import distance_correlation

_MOST_ROWS = 2000  # for the distance correlation, so that its cost is bounded


def dependence_of(predicted: np.ndarray, s: np.ndarray, *, scale: float = 1.0) -> dict[str, float]:
    """Return how strongly predictions ``(n,)`` depend on ``s (n, p)``.

    ``dcor`` is the root of the bias-corrected squared distance correlation with the standardized
    attributes, of at most 2,000 evenly spaced samples, and zero where that is negative. ``gdp`` is
    that of ``predicted / scale``, the largest of all attributes.

    Examples
    --------
    >>> s = np.linspace(0, 1, 200)[:, None]
    >>> round(dependence_of(s[:, 0], s)["dcor"], 3)
    1.0
    """
    if is_constant(predicted):
        return {"dcor": 0.0, "gdp": 0.0}
    varying = s[:, np.ptp(s, axis=0) > 0]
    gaps = [gdp(predicted / scale, column) for column in varying.T]
    return {"dcor": distance_correlation_of(predicted, s), "gdp": max(gaps)}


def distance_correlation_of(predicted: np.ndarray, s: np.ndarray) -> float:
    """Return the distance correlation of predictions with all attributes together."""
    if is_constant(predicted):
        return 0.0
    s = s[:, np.ptp(s, axis=0) > 0]
    count = min(len(s), _MOST_ROWS)
    rows = np.linspace(0, len(s) - 1, count).round().astype(int)
    standardized = s[rows] / s.std(0)
    squared = distance_correlation(
        predicted[rows], standardized, squared=True, estimator="unbiased"
    )
    return math.sqrt(max(float(squared), 0.0))


def is_constant(predicted: np.ndarray) -> bool:
    """Return whether predictions differ by rounding errors alone."""
    rounding = 1e-12 * max(1.0, float(np.abs(predicted).max()))
    return bool(predicted.std() <= rounding)
