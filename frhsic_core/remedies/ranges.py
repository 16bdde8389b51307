"""Keep adjusted scores in the range of the scores: no negative premium, no probability above one."""

from __future__ import annotations

import numpy as np
from scipy.optimize import brentq

from frhsic_core._arrays import warn_caller


class ScoreRange:
    r"""The range that adjusted scores keep, and the constant that keeps their mean.

    Scores that are all positive or zero, such as premiums, wages and probabilities, have limits:
    the least and the largest score in fit. Scores of both signs have none. With limits a and b the
    adjusted score h becomes

    .. math:: \min\{\max(h + c,\ \min(a, f)),\ \max(b, f)\},

    so it is never farther outside than the score f itself, and people with equal attributes keep
    their order. The constant c restores the mean of the scores in fit, which is a continuous and
    monotone equation in c.
    """

    def __init__(self, limits: tuple[float, float] | None = None, shift: float = 0.0) -> None:
        self.limits = limits
        self.shift = shift

    def fit(
        self,
        score: np.ndarray,
        adjusted: np.ndarray,
        weight: np.ndarray | None = None,
        target: np.ndarray | None = None,
    ) -> ScoreRange:
        """Read the limits, and find the constant.

        With the ``target`` of a model, its sign decides, and not that of the scores: a linear model
        of premiums may have a negative score already.
        """
        kind = score if target is None else target
        if kind.min() < 0.0:
            return self
        most = 1.0 if kind.max() <= 1.0 else np.inf
        low, high = np.clip([score.min(), score.max()], 0.0, most)
        self.limits = (float(low), float(high))
        mean = np.average(score, weights=weight)

        def excess(shift: float) -> float:
            kept = self._kept(adjusted + shift, score)
            return float(np.average(kept, weights=weight) - mean)

        if excess(0.0) != 0.0:
            # At these ends all scores are at their lower limit, or at their upper one.
            least = min(low, score.min()) - adjusted.max()
            greatest = max(high, score.max()) - adjusted.min()
            self.shift = float(brentq(excess, least, greatest, xtol=1e-14 * (high - low)))
        return self

    def __call__(self, adjusted: np.ndarray, score: np.ndarray) -> np.ndarray:
        """Return adjusted scores within the range, and warn if some had to be moved there."""
        if self.limits is None:
            return adjusted
        moved = adjusted + self.shift
        kept = self._kept(moved, score)
        rounding = 1e-9 * self.limits[1]
        outside = np.abs(kept - moved) > rounding
        if outside.any():
            self._warn(moved[outside], len(score))
        return kept

    def _kept(self, moved: np.ndarray, score: np.ndarray) -> np.ndarray:
        assert self.limits is not None
        low = np.minimum(self.limits[0], score)
        high = np.maximum(self.limits[1], score)
        return np.clip(moved, low, high)

    def _warn(self, outside: np.ndarray, rows: int) -> None:
        assert self.limits is not None
        low, high = self.limits
        below = int((outside < low).sum())
        above = len(outside) - below
        warn_caller(
            f"{len(outside):,} of {rows:,} adjusted scores would lie outside of {low:g} to {high:g}, "
            f"the range of the scores in fit ({below:,} below, {above:,} above; the farthest is "
            f"{outside[np.argmax(np.maximum(low - outside, outside - high))]:g}): they were moved to "
            f"its ends, and all scores by {self.shift:+.3g}, which keeps their mean. For positive "
            "scores link='log' multiplies instead. keep_range=False keeps such scores as they are."
        )
