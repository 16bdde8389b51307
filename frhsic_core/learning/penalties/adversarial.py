"""Penalties with an adversary: ADV reads S from Z, LAFTR reads the bin of S."""

from __future__ import annotations

from typing import cast

import torch
from torch import Tensor

from frhsic_core._choices import one_of
from frhsic_core.joint.contraction import weighted_mean
from frhsic_core.learning.data import Batch
from frhsic_core.learning.penalties.base import Penalty, Setup
from frhsic_core.learning.penalties.mmd_binned import bin_rows
from frhsic_core.learning.stack import StackedLinear, StackedMLP


class ADV(Penalty):
    r"""Adversarial penalty: on every batch one step of the adversary, then one of the encoder.

    ``"mse"`` (the released code): the adversary a minimizes E|a(Z) − S|², and the penalty is
    −E|a(Z) − S|². It is unbounded below in a and depends on conditional means only.

    ``"hgr"`` (Grari et al., 2020): two networks f on Z and g on S, standardized in the batch,
    maximize their correlation, which estimates the Hirschfeld–Gebelein–Rényi coefficient from
    below; the penalty is that correlation. Both networks use double precision, whatever the models
    use: they are small, and many digits would be lost.

    Parameters
    ----------
    adversary : {"hgr", "mse"}
        See above.
    hidden : int
        Width of the adversary's hidden layer.
    """

    key = "adv"

    def __init__(
        self,
        *,
        adversary: str = "hgr",
        hidden: int = 50,
        condition: str | None = None,
        minimum_rows: int = 4,
    ) -> None:
        super().__init__(condition=condition, minimum_rows=minimum_rows)
        one_of("adversary", adversary, ("hgr", "mse"))
        self.adversary = adversary
        self.hidden = hidden

    def prepare(self, setup: Setup) -> None:
        attributes = setup.data.attributes
        if self.adversary == "mse":
            self.reader = _network(setup, (setup.representation, self.hidden, attributes))
        else:
            self.reader = _network(setup, (setup.representation, self.hidden, 1))
            self.witness = _network(setup, (attributes, self.hidden, 1))
            for network in (self.reader, self.witness):
                # Standardizing leaves some directions without a gradient (a shift of the output) or
                # almost so (a bias whose unit is linear on all rows). In single precision rounding
                # fills them, and Adam, which divides by the size of a gradient, turns that into
                # full steps: a stack would drift from separate runs.
                network.double()
                cast(StackedLinear, network.layers[-1]).bias.requires_grad_(False)

    def forward(self, batch: Batch, *, refresh: bool = False) -> Tensor:
        weights, enough = self.row_weights(batch)
        if self.adversary == "mse":
            error = (self.reader(batch.z) - batch.s).square().mean(-1)
            value = -weighted_mean(error, weights)
        else:
            f = _standardized(self.reader(batch.z.double()).squeeze(-1), weights)
            g = _standardized(self.witness(batch.s.double()).squeeze(-1), weights)
            value = weighted_mean(f * g, weights).to(batch.z.dtype)
        return _where_enough(value, enough)


class LAFTR(Penalty):
    """Minus the cross-entropy of an adversary that predicts the bin of S (Madras et al., 2018).

    On every batch there is one step of the adversary, then one of the encoder. Bins of equal count,
    quartiles by default, are cut on the training data. With several attributes the terms are added.

    Parameters
    ----------
    bins : int
        Number of bins.
    hidden : int
        Width of the adversary's hidden layer.
    """

    key = "laftr"
    labels: Tensor

    def __init__(
        self,
        *,
        bins: int = 4,
        hidden: int = 50,
        condition: str | None = None,
        minimum_rows: int = 4,
    ) -> None:
        super().__init__(condition=condition, minimum_rows=minimum_rows)
        self.bins = bins
        self.hidden = hidden

    def prepare(self, setup: Setup) -> None:
        labels = bin_rows(setup.s, bins=self.bins)
        self.register_buffer("labels", labels.flatten(0, 1), persistent=False)
        outputs = self.bins * setup.data.attributes
        self.reader = _network(setup, (setup.representation, self.hidden, outputs))

    def forward(self, batch: Batch, *, refresh: bool = False) -> Tensor:
        weights, enough = self.row_weights(batch)
        logits = self.reader(batch.z).unflatten(-1, (-1, self.bins))
        labels = self.labels[batch.rows].unsqueeze(-1)
        of_each_attribute = logits.log_softmax(-1).gather(-1, labels).squeeze(-1)
        value = weighted_mean(of_each_attribute.sum(-1), weights)
        return _where_enough(value, enough)


def _where_enough(value: Tensor, enough: Tensor | None) -> Tensor:
    """Set the penalty to zero for the models in whose batch too few rows count."""
    if enough is None:
        return value
    return value * enough


def _standardized(value: Tensor, weights: Tensor | None) -> Tensor:
    centered = value - weighted_mean(value, weights).unsqueeze(-1)
    variance = weighted_mean(centered * centered, weights).unsqueeze(-1)
    # The constant keeps the gradient finite when a network's output is constant.
    return centered * torch.rsqrt(variance + 1e-8)


def _network(setup: Setup, widths: tuple[int, int, int]) -> StackedMLP:
    """Return one small network for each model, drawn from the model's own generator."""
    network = StackedMLP(setup.models, widths, dtype=setup.data.x.dtype)
    network.initialize(setup.generators)
    return network
