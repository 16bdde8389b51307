"""dCor: distance correlation as a penalty."""

from __future__ import annotations

from torch import Tensor

from frhsic_core._choices import one_of
from frhsic_core.joint.contraction import (
    ExpandedDistance,
    GradientTerm,
    gram_term,
    statistic,
    unit_factor,
)
from frhsic_core.kernels import euclidean_distances
from frhsic_core.learning.data import Batch
from frhsic_core.learning.penalties.base import Penalty, Setup, counted


class DCor(Penalty):
    """Squared distance correlation or covariance between Z and S; there is no bandwidth to choose.

    ``"correlation"``: the bias-corrected squared correlation of Székely and Rizzo (2013); may be
    negative; a scale-free number. ``"covariance"`` (the released code): the biased squared distance
    covariance, which shrinks with Z. O(m²d). Sample weights exist for ``"covariance"`` only.

    Parameters
    ----------
    form : {"correlation", "covariance"}
        See above.
    """

    key = "dcor"

    def __init__(
        self, *, form: str = "correlation", condition: str | None = None, minimum_rows: int = 4
    ) -> None:
        super().__init__(condition=condition, minimum_rows=minimum_rows)
        one_of("form", form, ("correlation", "covariance"))
        self.form = form

    def prepare(self, setup: Setup) -> None:
        super().prepare(setup)
        if self.form == "correlation" and self.weighted:
            raise ValueError("form='correlation' has no sample weights: use 'covariance'.")

    def terms(self, batch: Batch, *, refresh: bool = False) -> list[GradientTerm | Tensor]:
        weights, enough = self.row_weights(batch)
        distances = euclidean_distances(batch.s)
        factor = 1.0
        if self.form == "covariance":
            function = statistic(distances, normalized=False, row_weights=weights)
            factor = unit_factor(distances.shape[-1], "biased", weights)
        elif batch.z.shape[-2] < 4:
            return [0.0 * batch.z.sum((-2, -1))]  # fewer than four rows define no unbiased estimate
        else:
            mask: Tensor | None = None
            if weights is not None:
                mask = (weights > 0).to(batch.z.dtype)
            function = statistic(distances, normalized=True, estimator="unbiased", row_weights=mask)
        return counted([gram_term(batch.z, ExpandedDistance(), function, factor=factor)], enough)
