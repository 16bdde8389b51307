"""LAFTR: an adversary reads the quartile of S from Z (Madras et al., 2018)."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from frhsic_core.learning.batches import Batch, TrainingData
from frhsic_core.learning.networks import StackedMLP
from frhsic_core.learning.penalties.base import Penalty
from frhsic_core.learning.penalties.bins import bin_rows

__all__ = ["LAFTR"]


class LAFTR(Penalty):
    """Minus the cross-entropy of an adversary that tells the bins of S apart; one adversary step per encoder step.

    Bins, quartiles by default, are cut on the training data. Several attributes: the terms of each are added.

    Parameters
    ----------
    bins : int
        Number of bins.
    edges : {"quantile", "width"}
        Bins of equal count or of equal width.
    hidden : int
        Width of the adversary's hidden layer.
    """

    key = "laftr"
    labels: Tensor

    def __init__(
        self,
        *,
        bins: int = 4,
        edges: str = "quantile",
        hidden: int = 50,
        condition: str | None = None,
        minimum_rows: int = 4,
    ) -> None:
        super().__init__(condition=condition, minimum_rows=minimum_rows)
        self.bins, self.edges, self.hidden = bins, edges, hidden

    def setup(
        self, data: TrainingData, *, dataset: Tensor, generators: Sequence[torch.Generator], representation: int
    ) -> None:
        super().setup(data, dataset=dataset, generators=generators, representation=representation)
        assert data.s is not None
        labels = bin_rows(data.s, bins=self.bins, edges=self.edges)
        self.register_buffer("labels", labels.flatten(0, 1), persistent=False)
        self.reader = StackedMLP(
            len(dataset), (representation, self.hidden, self.bins * data.attributes), dtype=data.x.dtype
        )
        self.reader.initialise(generators)

    def forward(self, batch: Batch, *, refresh: bool = False) -> Tensor:
        weights, enough = self.row_weights(batch)
        logits = self.reader(batch.z).unflatten(-1, (-1, self.bins)).log_softmax(-1)
        score = logits.gather(-1, self.labels[batch.rows].unsqueeze(-1)).squeeze(-1).sum(-1)
        value = score.mean(-1) if weights is None else (weights * score).sum(-1)
        return value if enough is None else value * enough

    def adversary_loss(self, batch: Batch) -> Tensor:
        return -self(batch)
