"""Stacked models whose scores get one distribution at every S."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from frhsic_core.remedies.convex_path import ConvexPath, FittedPath
from frhsic_core.remedies.cross_fits import CrossFits
from frhsic_core.remedies.mean_adjustment import MeanAdjustment
from frhsic_core.remedies.people import People
from frhsic_core.remedies.remedy import Path, Predictor, blended


class StackedRanks(ConvexPath):
    r"""Combine models for the least loss, then adjust the ranks of their scores.

    For a square loss the best f without any dependence on S is the barycenter of the conditional
    distributions of the best score f₀ (Chzhen and others, 2020), and the best for a given distance
    from that is the blend

    .. math:: (1 - t)\, f_0 + t\,R(f_0),\qquad R(f_0) = E_S[Q(u \mid S)],\; u = F(f_0 \mid s).

    So two things are to be estimated well: the best score, by the combination of
    :class:`~frhsic_core.remedies.convex_path.ConvexPath` without its penalty, and its conditional
    ranks (:class:`~frhsic_core.remedies.rank_adjustment.RankAdjustment`). Where the convex path makes
    the mean flat along S, this makes the whole distribution equal.
    """

    strengths = (0.0, 0.25, 0.5, 0.75, 1.0)

    def fit_path(
        self,
        people: People,
        name: Any,
        strengths: Sequence[float],
        *,
        plain: Predictor | None,
        seed: int = 0,
    ) -> Path:
        """Fit the models and their weights, and the ranks of scores of folds without each sample."""
        fits = CrossFits(people, {}, seed=seed)
        stack, unseen = self.fit_on_unseen(fits, [0.0])
        ranks = people.task.adjustment("rank").fit(unseen[0], people.s, target=people.y)
        return RankedPath(stack, ranks, strengths)

    def cross_fit(
        self,
        fits: CrossFits,
        learner: str,
        strengths: Sequence[float],
        *,
        plain: np.ndarray | None,
    ) -> list[np.ndarray]:
        """Return predictions of all samples, from weights and ranks that other folds decided."""
        (scores,) = super().cross_fit(fits, learner, [0.0], plain=None)
        ranked = np.empty(len(scores))
        for (train, test), (known, new) in zip(fits.folds, fits.parts, strict=True):
            ranks = known.task.adjustment("rank").fit(scores[train], known.s, target=known.y)
            ranked[test] = ranks(scores[test], new.s)
        return blended(scores, ranked, strengths)


class RankedPath:
    """Scores and their ranks' scores, in shares of a list."""

    def __init__(
        self, stack: FittedPath, ranks: MeanAdjustment, strengths: Sequence[float]
    ) -> None:
        self.stack = stack
        self.ranks = ranks
        self.strengths = list(strengths)

    def __call__(self, x: Any, s: pd.DataFrame | None) -> list[np.ndarray]:
        (scores,) = self.stack(x, s)
        return blended(scores, self.ranks(scores, s), self.strengths)
