"""MMD between bins of S: the continuous attribute made discrete."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from frhsic_core.kernels import Gaussian
from frhsic_core.learning.bandwidth import BandwidthPolicy
from frhsic_core.learning.batches import Batch, TrainingData
from frhsic_core.learning.penalties.base import KernelPenalty, counted
from frhsic_core.learning.penalties.bins import bin_rows
from frhsic_core.learning.penalties.gram import Pull, gram_term, inner_product

__all__ = ["MMDBinned"]


class MMDBinned(KernelPenalty):
    r"""Discrepancies between the laws of Z in bins of S; nothing inside a bin is seen.

    ``"kernel"``: the mean over pairs of bins present in the batch of MMD²(P_b, P_c), O(m²d): one inner product with the
    Gram matrix, since :math:`\sum_{b<c}\|\mu_b-\mu_c\|^2 = B\sum_b\|\mu_b\|^2-\|\sum_b\mu_b\|^2`.
    ``"means"`` (the released code): Σ_b ‖mean(Z_b) − mean(Z)‖², a linear kernel and each bin against all.
    Bins with fewer than two rows in a batch are left out. Several attributes: the terms of each are added.

    Parameters
    ----------
    bins : int
        Number of bins, cut on the training data.
    edges : {"quantile", "width"}
        Equal counts (the main text: quartiles) or equal widths (the appendix: ten).
    discrepancy : {"kernel", "means"}
        See above.
    bandwidth, scale, condition, minimum_rows
        As in ``KernelPenalty``.
    """

    key = "mmd_binned"
    labels: Tensor

    def __init__(
        self,
        *,
        bins: int = 4,
        edges: str = "quantile",
        discrepancy: str = "kernel",
        bandwidth: BandwidthPolicy | str | float = "every_batch",
        scale: str | None = None,
        condition: str | None = None,
        minimum_rows: int = 4,
    ) -> None:
        super().__init__(bandwidth=bandwidth, scale=scale, condition=condition, minimum_rows=minimum_rows)
        if discrepancy not in ("kernel", "means"):
            raise ValueError(f"discrepancy is {discrepancy!r}: choose 'kernel' or 'means'.")
        self.bins, self.edges, self.discrepancy = bins, edges, discrepancy

    def setup(
        self, data: TrainingData, *, dataset: Tensor, generators: Sequence[torch.Generator], representation: int
    ) -> None:
        super().setup(data, dataset=dataset, generators=generators, representation=representation)
        assert data.s is not None
        labels = bin_rows(data.s, bins=self.bins, edges=self.edges)
        self.register_buffer("labels", labels.flatten(0, 1), persistent=False)

    def terms(self, batch: Batch, *, refresh: bool = False) -> list[Pull | Tensor]:
        weights, enough = self.row_weights(batch)
        z = self.scaled(batch.z, weights)
        sigma = self.renew(z, refresh=refresh, enough=enough)
        labels = self.labels[batch.rows]
        terms: list[Pull | Tensor] = []
        for a in range(labels.shape[-1]):
            inside, present = self._membership(labels[..., a], weights, z.dtype)
            if self.discrepancy == "means":
                overall = z.mean(-2, keepdim=True) if weights is None else weights.unsqueeze(-2) @ z
                terms.append(((inside @ (z - overall)).square().sum(-1) * present).sum(-1))
            else:
                terms.append(gram_term(z, Gaussian(sigma), inner_product(_pairs(inside, present))))
        return counted(terms, enough)

    def ratio(self, z: Tensor, weights: Tensor | None = None, *, sigma: Tensor | None = None) -> Tensor | None:
        return super().ratio(z, weights, sigma=sigma) if self.discrepancy == "kernel" else None

    def _membership(self, labels: Tensor, weights: Tensor | None, dtype: torch.dtype) -> tuple[Tensor, Tensor]:
        """Weights of the rows inside each bin, ``(models, bins, m)`` summing to one, and which bins count."""
        number = torch.arange(self.bins, device=labels.device)
        inside = (labels.unsqueeze(-2) == number.unsqueeze(-1)).to(dtype)
        if weights is not None:
            kept = (weights > 0).to(dtype).unsqueeze(-2)
            count = (inside * kept).sum(-1)
            inside = inside * weights.unsqueeze(-2)
        else:
            count = inside.sum(-1)
        present = (count >= 2).to(dtype)
        return inside / inside.sum(-1, keepdim=True).clamp_min(1e-30) * present.unsqueeze(-1), present


def _pairs(inside: Tensor, present: Tensor) -> Tensor:
    """Return A with Σ K_ij A_ij = the mean over pairs of present bins of MMD²; zero when there is no pair."""
    bins = present.sum(-1)
    total = inside.sum(-2, keepdim=True)
    pairs = (0.5 * bins * (bins - 1)).clamp_min(1.0)
    return (bins[:, None, None] * (inside.mT @ inside) - total.mT * total) / pairs[:, None, None]
