"""FREM: the conditional route with a kernel, as a penalty (Kong et al., 2025)."""

from __future__ import annotations

import torch
from torch import Tensor

from frhsic_core.conditional._eipm import EPSILON
from frhsic_core.conditional._smoothing import leave_one_out_at
from frhsic_core.joint.contraction import GradientTerm, GramFunction, gram_term
from frhsic_core.kernels import Gaussian
from frhsic_core.learning.data import Batch
from frhsic_core.learning.penalties.base import BandwidthPolicy, KernelPenalty, counted


def _mean_mmd(contrast: Tensor, share: Tensor, *, power: int) -> GramFunction:
    """Return ``K -> Σ_i a_i (v_i'Kv_i)^{power/2}``; its gradient in K is V' diag(c) V."""

    def function(gram: Tensor) -> tuple[Tensor, Tensor]:
        squared = ((contrast @ gram) * contrast).sum(-1).clamp_min(0.0)
        if power == 2:
            value = squared
            slope = torch.ones_like(squared)
        else:
            inverse = torch.rsqrt(squared + EPSILON)
            value = squared * inverse
            slope = inverse - 0.5 * squared * inverse**3
        gradient = contrast.mT @ (contrast * (share * slope).unsqueeze(-1))
        return (share * value).sum(-1), gradient

    return function


class FREM(KernelPenalty):
    r"""Weighted EIPM, the mean over anchors of MMD(P̂(Z | S = s_i), P̂(Z)), without a loop.

    .. math::

        \sum_i a_i\,(v_i^\top K v_i)^{p/2},\qquad
        v_i = \text{leave-one-out weights at } s_i - 1/m .

    O(m²(d + a)) time for a anchors and m rows: with 32 anchors about one HSIC. Rows of a mini-batch
    are in random order, so its first rows are random anchors; with ``condition="positives"`` those
    that do not count get share zero.

    Parameters
    ----------
    smoothing : float
        γ, bandwidth on S.
    anchors : int or None
        Rows at which to condition; None: all.
    power : {1, 2}
        Average of the MMD (the main text and the released code) or of its square (the paper's
        appendix).
    bandwidth, scale, condition, minimum_rows
        As in ``KernelPenalty``; σ_Z = 1 and raw Z in the released code.
    """

    key = "frem"

    def __init__(
        self,
        *,
        smoothing: float = 0.5,
        anchors: int | None = 32,
        power: int = 1,
        bandwidth: BandwidthPolicy | str | float = 1.0,
        scale: str | None = None,
        condition: str | None = None,
        minimum_rows: int = 4,
    ) -> None:
        super().__init__(
            bandwidth=bandwidth, scale=scale, condition=condition, minimum_rows=minimum_rows
        )
        if not smoothing > 0:
            raise ValueError(f"smoothing is {smoothing}: the bandwidth on S must be positive.")
        if anchors is not None and anchors < 1:
            raise ValueError(
                f"anchors is {anchors}: give a positive number, or None for every row."
            )
        if power not in (1, 2):
            raise ValueError(f"power is {power!r}: 1 averages the MMD, 2 its square.")
        self.smoothing = float(smoothing)
        self.anchors = anchors
        self.power = power

    def terms(self, batch: Batch, *, refresh: bool = False) -> list[GradientTerm | Tensor]:
        weights, enough = self.row_weights(batch)
        z = self.scaled(batch.z, weights)
        sigma = self.renew(z, refresh=refresh, enough=enough)
        m = z.shape[-2]
        if m < 2:
            return [0.0 * z.sum((-2, -1))]  # one row has no neighbour to be compared with
        count = m
        rows: Tensor | None = None  # all of them
        if self.anchors is not None and self.anchors < m:
            count = self.anchors
            rows = torch.arange(count, device=z.device)
        local, partner = leave_one_out_at(rows, batch.s, self.smoothing, weights)
        if weights is None:
            marginal = z.new_full((1, 1, m), 1.0 / m)
            share = z.new_full((1, count), 1.0 / count)
        else:
            marginal = weights.unsqueeze(-2)
            of_anchors = weights[..., :count]
            share = of_anchors / of_anchors.sum(-1, keepdim=True).clamp_min(1e-30)
        contrast = (local - marginal) * partner
        function = _mean_mmd(contrast, share, power=self.power)
        return counted([gram_term(z, Gaussian(sigma), function)], enough)
