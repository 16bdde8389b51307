"""Adjust the whole distribution of scores along S."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from scipy.optimize import brentq

from frhsic_core.remedies.links import FARTHEST, IDENTITY, LOGIT, Link
from frhsic_core.remedies.mean_adjustment import MeanAdjustment
from frhsic_core.remedies.ranks import ConditionalRanks


class RankAdjustment(MeanAdjustment):
    r"""Make the distribution of the scores equal at every S, with S of every person.

    With u = F(f | s) the new score is

    .. math:: E_S[\,Q(u \mid S)\,],

    the averaged conditional quantile. This is the Wasserstein barycenter of the conditional
    distributions (Chzhen and others, 2020). F is that of the flat scores f − (m(s) − m̄) of
    :class:`~frhsic_core.remedies.mean_adjustment.MeanAdjustment`, so a bandwidth of S does not
    leave a part of the mean. Scores on the scale of a link get one more constant, which restores
    their mean. Nobody overtakes a person with the same S.
    """

    @property
    def _flat_on(self) -> Link:
        """Ranks are those of η, whose mean becomes flat first."""
        return IDENTITY

    def _fit_flat(
        self, flat: np.ndarray, eta: np.ndarray, frame: pd.DataFrame, weight: np.ndarray | None
    ) -> np.ndarray:
        self.ranks = ConditionalRanks().fit(flat, frame, self.basis, weight)
        mapped = self.ranks(flat, frame)
        constant = mean_constant(mapped, eta, self.link, weight)
        self.ranks.quantiles = self.ranks.quantiles + constant
        return mapped + constant

    def _of_flat(self, flat: np.ndarray, frame: Any) -> np.ndarray:
        return self.ranks(flat, frame)


ADJUSTMENTS: dict[str, type[MeanAdjustment]] = {"rank": RankAdjustment, "mean": MeanAdjustment}


def mean_constant(
    mapped: np.ndarray, eta: np.ndarray, link: Link, weight: np.ndarray | None
) -> float:
    """Return the constant on the scale of the link that restores the mean of the scores."""
    if link is IDENTITY:
        return 0.0
    mean = np.average(link.inverse(eta), weights=weight)
    if link is not LOGIT:
        return float(np.log(mean / np.average(link.inverse(mapped), weights=weight)))

    def excess(constant: float) -> float:
        return float(np.average(link.inverse(mapped + constant), weights=weight) - mean)

    return float(brentq(excess, -4 * FARTHEST, 4 * FARTHEST))
