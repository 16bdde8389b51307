"""MMD between bins of S, and how a continuous attribute is cut into bins."""

from __future__ import annotations

import torch
from torch import Tensor

from frhsic_core._choices import one_of
from frhsic_core.joint.contraction import GradientTerm, gram_term, inner_product
from frhsic_core.kernels import Gaussian
from frhsic_core.learning.data import Batch
from frhsic_core.learning.penalties.base import BandwidthPolicy, KernelPenalty, Setup, counted


class MMDBinned(KernelPenalty):
    r"""Discrepancies between the distributions of Z in bins of S.

    Dependence inside a bin is not measured. ``"kernel"``: the mean over pairs of bins present in
    the batch of MMD²(P_b, P_c), O(m²d): one inner product with the Gram matrix, since
    :math:`\sum_{b<c}\|\mu_b-\mu_c\|^2 = B\sum_b\|\mu_b\|^2-\|\sum_b\mu_b\|^2`. ``"means"`` (the
    released code): Σ_b ‖mean(Z_b) − mean(Z)‖², a linear kernel and each bin against all. Bins with
    fewer than two rows in a batch are left out. Several attributes: the terms of each are added.

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
        super().__init__(
            bandwidth=bandwidth, scale=scale, condition=condition, minimum_rows=minimum_rows
        )
        one_of("discrepancy", discrepancy, ("kernel", "means"))
        self.bins = bins
        self.edges = edges
        self.discrepancy = discrepancy

    def prepare(self, setup: Setup) -> None:
        super().prepare(setup)
        labels = bin_rows(setup.s, bins=self.bins, edges=self.edges)
        self.register_buffer("labels", labels.flatten(0, 1), persistent=False)

    def terms(self, batch: Batch, *, refresh: bool = False) -> list[GradientTerm | Tensor]:
        weights, enough = self.row_weights(batch)
        z = self.scaled(batch.z, weights)
        sigma = self.renew(z, refresh=refresh, enough=enough)
        labels = self.labels[batch.rows]
        terms: list[GradientTerm | Tensor] = []
        for a in range(labels.shape[-1]):
            inside, present = self._membership(labels[..., a], weights, z.dtype)
            if self.discrepancy == "means":
                terms.append(self._distances_of_means(z, inside, present, weights))
            else:
                function = inner_product(_pairs(inside, present))
                terms.append(gram_term(z, Gaussian(sigma), function))
        return counted(terms, enough)

    def _distances_of_means(
        self, z: Tensor, inside: Tensor, present: Tensor, weights: Tensor | None
    ) -> Tensor:
        """Return Σ_b ‖mean(Z_b) − mean(Z)‖² over the bins that count."""
        if weights is None:
            overall = z.mean(-2, keepdim=True)
        else:
            overall = weights.unsqueeze(-2) @ z
        squares = (inside @ (z - overall)).square().sum(-1)
        return (squares * present).sum(-1)

    def ratio(
        self, z: Tensor, weights: Tensor | None = None, *, sigma: Tensor | None = None
    ) -> Tensor | None:
        if self.discrepancy != "kernel":
            return None
        return super().ratio(z, weights, sigma=sigma)

    def _membership(
        self, labels: Tensor, weights: Tensor | None, dtype: torch.dtype
    ) -> tuple[Tensor, Tensor]:
        """Return the weights of the rows of each bin, ``(models, bins, m)``, and which bins count.

        The weights of a bin that counts sum to one, and are zero otherwise.
        """
        number = torch.arange(self.bins, device=labels.device)
        inside = (labels.unsqueeze(-2) == number.unsqueeze(-1)).to(dtype)
        if weights is None:
            count = inside.sum(-1)
        else:
            kept = (weights > 0).to(dtype).unsqueeze(-2)
            count = (inside * kept).sum(-1)
            inside = inside * weights.unsqueeze(-2)
        present = (count >= 2).to(dtype)
        of_one_bin = inside / inside.sum(-1, keepdim=True).clamp_min(1e-30)
        return of_one_bin * present.unsqueeze(-1), present


def _pairs(inside: Tensor, present: Tensor) -> Tensor:
    """Return A with Σ K_ij A_ij = the mean MMD² of pairs of present bins; zero without a pair."""
    bins = present.sum(-1)
    total = inside.sum(-2, keepdim=True)
    pairs = (0.5 * bins * (bins - 1)).clamp_min(1.0)
    sums = bins[:, None, None] * (inside.mT @ inside) - total.mT * total
    return sums / pairs[:, None, None]


def bin_rows(s: Tensor, *, bins: int, edges: str = "quantile") -> Tensor:
    """Return the number of the bin of every value, ``(datasets, n, p) -> (datasets, n, p)``.

    ``"quantile"``: edges at the k/bins quantiles; equal values share a bin, so ties can leave bins
    empty. ``"width"``: equally wide bins between the smallest and the largest value. O(n log n).

    Examples
    --------
    >>> bin_rows(torch.tensor([[[0.0], [1.0], [2.0], [9.0]]]), bins=2)[0, :, 0]
    tensor([0, 0, 1, 1])
    >>> bin_rows(torch.tensor([[[0.0], [1.0], [2.0], [9.0]]]), bins=2, edges="width")[0, :, 0]
    tensor([0, 0, 0, 1])
    """
    if bins < 2:
        raise ValueError(f"bins is {bins}: use at least two.")
    one_of("edges", edges, ("quantile", "width"))
    inner = torch.arange(1, bins, dtype=s.dtype, device=s.device) / bins
    columns = s.mT.contiguous()  # (datasets, p, n)
    if edges == "width":
        low = columns.amin(-1, keepdim=True)
        high = columns.amax(-1, keepdim=True)
        cuts = low + (high - low) * inner
    else:
        # torch.quantile refuses more than 2**24 values; a sort and an interpolation do not.
        ordered = columns.sort(-1).values
        position = inner * (s.shape[1] - 1)
        below = position.floor().long()
        above = (below + 1).clamp_max(s.shape[1] - 1)
        cuts = torch.lerp(ordered[..., below], ordered[..., above], position - below)
    return torch.searchsorted(cuts.contiguous(), columns).mT.contiguous()
