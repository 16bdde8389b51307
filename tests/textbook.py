"""Measures of dependence as textbooks write them: NumPy in float64, differences, sums over all pairs."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray
from scipy.special import digamma

Array = NDArray[np.float64]
Gram = Callable[[Array], Array]


def differences(x: Array) -> Array:
    return np.abs(x[:, None] - x[None, :])


def gaussian(x: Array, width: float) -> Array:
    return np.exp(-0.5 * (differences(x) / width) ** 2)


def laplacian(x: Array, width: float) -> Array:
    return np.exp(-differences(x) / width)


def equal(x: Array) -> Array:
    return (x[:, None] == x[None, :]).astype(np.float64)


def linear(x: Array) -> Array:
    moved = x - x.mean()
    return np.outer(moved, moved)


def median_distance(x: Array) -> float:
    """Return the lower median of the distances of pairs, or their mean if it is zero; 1 of a constant."""
    pairs = np.sort(differences(x)[np.triu_indices(len(x), 1)])
    if len(pairs) == 0 or pairs[-1] == 0.0:
        return 1.0
    middle = float(pairs[(len(pairs) - 1) // 2])
    return middle if middle > 0.0 else float(pairs.mean())


def centered(k: Array) -> Array:
    return k - k.mean(0) - k.mean(1)[:, None] + k.mean()


def hsic(k: Array, l: Array) -> float:
    return float((centered(k) * centered(l)).sum()) / len(k) ** 2


def unbiased(k: Array, l: Array) -> float:
    """Return the U-statistic of Song and others (2012)."""
    n = len(k)
    k = k - np.diag(np.diag(k))
    l = l - np.diag(np.diag(l))
    first = (k * l).sum() + k.sum() * l.sum() / ((n - 1) * (n - 2))
    return float(first - 2.0 * (k.sum(0) @ l.sum(0)) / (n - 2)) / (n * (n - 3))


def normalized(k: Array, l: Array) -> float:
    below = hsic(k, k) * hsic(l, l)
    return hsic(k, l) / np.sqrt(below) if below > 0.0 else 0.0


def distance_correlation(z: Array, s: Array) -> float:
    ratio = normalized(differences(z), differences(s))
    return float(np.sqrt(max(ratio, 0.0)))


def coco(k: Array, l: Array) -> float:
    values = np.linalg.eigvals(centered(k) @ centered(l)).real
    return float(np.sqrt(max(values.max(), 0.0))) / len(k)


def khgr(k: Array, l: Array, ridge: float) -> float:
    n = len(k)
    whole = n * ridge * np.eye(n)
    left = np.linalg.solve(centered(k) + whole, centered(k))
    right = np.linalg.solve(centered(l) + whole, centered(l))
    return float(np.sqrt(max(np.linalg.eigvals(left @ right).real.max(), 0.0)))


def eipm(k: Array, s: Array, width: float) -> float:
    """Return the mean MMD of the rows near one row, without it, and all rows."""
    n = len(s)
    total = 0.0
    for row in range(n):
        others = np.arange(n) != row
        exponent = -0.5 * ((s - s[row]) / width) ** 2
        weight = np.exp(exponent - exponent[others].max())
        weight[row] = 0.0
        contrast = weight / weight.sum() - 1.0 / n
        squared = max(float(contrast @ k @ contrast), 0.0)
        total += squared / np.sqrt(squared + 1e-10)
    return total / n


def mutual_information(z: Array, s: Array, k: int) -> float:
    n = len(z)
    to_z = differences(z)
    to_s = differences(s)
    total = digamma(k) + digamma(n)
    for row in range(n):
        others = np.arange(n) != row
        radius = np.sort(np.maximum(to_z[row], to_s[row])[others])[k - 1]
        near_z = (to_z[row][others] < radius).sum()
        near_s = (to_s[row][others] < radius).sum()
        total -= (digamma(near_z + 1) + digamma(near_s + 1)) / n
    return float(total)


def gdp(f: Array, s: Array) -> float:
    """Return the mean distance of the mean score of the own group from the overall mean."""
    total = 0.0
    for value in np.unique(s):
        own = f[s == value]
        total += len(own) * abs(own.mean() - f.mean())
    return total / len(f)
