"""ADV: an adversary reads S from Z, and the encoder works against it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

import torch
from torch import Tensor

from frhsic_core.learning.batches import Batch, TrainingData
from frhsic_core.learning.networks import StackedLinear, StackedMLP
from frhsic_core.learning.penalties.base import Penalty

__all__ = ["ADV"]


class ADV(Penalty):
    r"""Adversarial penalty; one step of the adversary, then one of the encoder, on every batch.

    ``"mse"`` (the released code): the adversary a minimises E|a(Z) − S|², the penalty is −E|a(Z) − S|². It is unbounded
    below in a and sees conditional means only.

    ``"hgr"`` (Grari et al., 2020): two networks f on Z and g on S, standardised in the batch, maximise their
    correlation, which estimates the Hirschfeld–Gebelein–Rényi coefficient from below; the penalty is that correlation.
    Both networks are in double precision whatever the models are: two narrow networks, against a great loss of digits.

    Parameters
    ----------
    adversary : {"hgr", "mse"}
        See above.
    hidden : int
        Width of the adversary's hidden layer.
    """

    key = "adv"

    def __init__(
        self, *, adversary: str = "hgr", hidden: int = 50, condition: str | None = None, minimum_rows: int = 4
    ) -> None:
        super().__init__(condition=condition, minimum_rows=minimum_rows)
        if adversary not in ("hgr", "mse"):
            raise ValueError(f"adversary is {adversary!r}: choose 'hgr' or 'mse'.")
        self.adversary, self.hidden = adversary, hidden

    def setup(
        self, data: TrainingData, *, dataset: Tensor, generators: Sequence[torch.Generator], representation: int
    ) -> None:
        super().setup(data, dataset=dataset, generators=generators, representation=representation)
        out = data.attributes if self.adversary == "mse" else 1
        self.reader = StackedMLP(len(dataset), (representation, self.hidden, out), dtype=data.x.dtype)
        self.reader.initialise(generators)
        if self.adversary == "hgr":
            self.witness = StackedMLP(len(dataset), (data.attributes, self.hidden, 1), dtype=data.x.dtype)
            self.witness.initialise(generators)
            for network in (self.reader, self.witness):
                # Standardising leaves some directions without a gradient (a shift of the output) or almost so (a bias
                # whose unit is linear on all rows). In single precision rounding fills them, and Adam, which divides by
                # the size of a gradient, turns that into full steps: a stack would drift from its lone runs.
                network.double()
                cast(StackedLinear, network.layers[-1]).bias.requires_grad_(False)

    def forward(self, batch: Batch, *, refresh: bool = False) -> Tensor:
        weights, enough = self.row_weights(batch)
        value = self._hgr(batch, weights) if self.adversary == "hgr" else -self._mse(batch, weights)
        return value if enough is None else value * enough

    def adversary_loss(self, batch: Batch) -> Tensor:
        # Both games are zero-sum: what the encoder pays is what the adversary wants.
        return -self(batch)

    def _mse(self, batch: Batch, weights: Tensor | None) -> Tensor:
        error = (self.reader(batch.z) - batch.s).square().mean(-1)
        return error.mean(-1) if weights is None else (weights * error).sum(-1)

    def _hgr(self, batch: Batch, weights: Tensor | None) -> Tensor:
        f = _standardised(self.reader(batch.z.double()).squeeze(-1), weights)
        g = _standardised(self.witness(batch.s.double()).squeeze(-1), weights)
        value = (f * g).mean(-1) if weights is None else (weights * f * g).sum(-1)
        return value.to(batch.z.dtype)


def _standardised(value: Tensor, weights: Tensor | None) -> Tensor:
    p = value.new_full((), 1.0 / value.shape[-1]) if weights is None else weights
    centred = value - (p * value).sum(-1, keepdim=True)
    # The constant keeps the gradient finite when a network's output is constant.
    return centred * torch.rsqrt((p * centred * centred).sum(-1, keepdim=True) + 1e-8)
