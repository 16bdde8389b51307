"""Draw the age strip, the motif of the book: people as dots on an axis of ages, and a curve."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from matplotlib.axes import Axes

#: The four colors of the book. Ages have the colors of viridis.
SEEN = "#0072b2"  # what a measure sees
MISSED = "#d55e00"  # what it misses
OURS = "#009e73"  # what this book adds
AGES = "viridis"
_WINDOW = 3.0  # standard deviation, in years, of the weights that smooth the curve


def smoothed_mean(age: np.ndarray, score: np.ndarray, at: np.ndarray) -> np.ndarray:
    """Return the mean score of people near each age, weighted by a Gaussian of three years.

    Examples
    --------
    >>> age = np.array([20.0, 70.0])
    >>> smoothed_mean(age, np.array([0.0, 1.0]), age).round(2).tolist()
    [0.0, 1.0]
    """
    distance = (at[:, None] - age) / _WINDOW
    weight = np.exp(-0.5 * distance**2)
    return weight @ score / weight.sum(axis=1)


def draw_age_strip(
    axis: Axes, age: np.ndarray, score: np.ndarray, *, color: str = SEEN, scatter: float = 0.0
) -> None:
    """Draw each person as a dot at her age and score, and the curve of the mean score.

    Parameters
    ----------
    axis : matplotlib Axes
        Where to draw.
    age, score : ndarray
        ``(n,)`` each; a score may be 0 or 1.
    color : str
        Color of the curve.
    scatter : float
        Height over which dots are scattered, so that those with the score 0 or 1 do not cover each
        other.
    """
    noise = np.random.default_rng(0).uniform(-0.5, 0.5, size=len(score))
    height = score + scatter * noise
    axis.scatter(age, height, c=age, cmap=AGES, s=5, alpha=0.75, linewidths=0)
    grid = np.linspace(age.min(), age.max(), 101)
    axis.plot(grid, smoothed_mean(age, score, grid), color=color, linewidth=2.5)
