"""Penalties given a third variable: equalized odds, and given control features.

The penalty is HSIC(Z, S | C) of ``joint.given`` on the mini-batch. C is the target y (``"labels"``)
or the control features (``"controls"``). Labels and discrete controls form groups, which count by
their share of the batch. For a continuous C (the target of a regression, or a continuous control
feature) features of Z and S are regressed on C within the batch: Z changes with every step, so a
regression on older values would not follow it.

A table of C for all training samples is prepared once. A step looks up its rows, so that it does
not wait for the device and can be captured.
"""

from __future__ import annotations

from collections.abc import Iterable

import torch
from torch import Tensor, nn

from frhsic_core.joint.contraction import (
    GradientTerm,
    Operator,
    gram_term,
    inverse_root,
    smallest_own,
    statistic,
)
from frhsic_core.joint.given import (
    GIVEN_FEATURES,
    Given,
    GivenKernel,
    given_kernel,
    group_operator,
    landmark_features,
    read_given,
    smooth_operator,
)
from frhsic_core.kernels import Gaussian, Kernel
from frhsic_core.learning.data import Batch, TrainingData

CONDITIONS = ("labels", "controls")


def prepare_given(condition: str, data: TrainingData) -> GivenRows:
    """Return C, the target or the control features, for all training samples."""
    if condition == "labels":
        y = data.y.detach().cpu()
        if data.task == "classification":
            y = y.long()
        found = [read_given(values, data.n) for values in y]
    elif data.control is None:
        raise ValueError(
            "condition='controls' needs control features: pass control_features=... to fit."
        )
    else:
        found = [Given.of_rows(rows) for rows in data.control]
    return GivenRows(found).to(dtype=data.x.dtype, device=data.x.device)


class GivenRows(nn.Module):
    """C of the samples of all datasets: the group, or the features of a regression.

    Parameters
    ----------
    datasets : list of Given
        C in each dataset; either all are discrete or none.
    """

    codes: Tensor
    scores: Tensor
    features: Tensor

    def __init__(self, datasets: list[Given]) -> None:
        super().__init__()
        self.discrete = all(given.discrete for given in datasets)
        self.mixed = any(given.mixed for given in datasets)
        codes = [torch.as_tensor(given.codes.numpy()) for given in datasets]
        self.register_buffer("codes", torch.cat(codes), persistent=False)
        if self.discrete:
            return
        scores = []
        features = []
        for given in datasets:
            rows = torch.as_tensor(given.rows.numpy())
            kernel = given_kernel(rows, mixed=given.mixed)
            features.append(landmark_features(kernel, rows, GIVEN_FEATURES)(rows))
            # In units of the bandwidth, so that one kernel serves all datasets.
            scores.append(rows[:, :-1] / kernel.gaussian.bandwidth)
        self.register_buffer("scores", torch.cat(scores), persistent=False)
        self.register_buffer("features", torch.cat(features), persistent=False)

    def forward(self, batch: Batch, weights: Tensor | None, *, minimum_rows: int) -> Operator:
        """Return the operator of the rows of a mini-batch of every model."""
        codes = self.codes[batch.rows]
        if self.discrete:
            return group_operator(codes, weights, minimum_rows=minimum_rows)
        scores = self.scores[batch.rows]
        rows = torch.cat([scores, codes.unsqueeze(-1).to(scores.dtype)], -1)
        local = GivenKernel(Gaussian(1.0), self.mixed)(rows)
        return smooth_operator(self.features[batch.rows], local, weights)


def conditional_terms(
    operator: Operator,
    grams: Iterable[Tensor],
    scaled_z: tuple[Tensor, Kernel] | None,
    output: Tensor | None,
    *,
    normalized: bool,
    output_weight: float = 1.0,
) -> list[GradientTerm | Tensor]:
    """Return the terms for each Gram matrix of S: one on Z and one on the output, where given."""
    terms: list[GradientTerm | Tensor] = []
    for gram in grams:
        function = statistic(gram, normalized=normalized, operator=operator)
        if scaled_z is not None:
            z, kernel_z = scaled_z
            terms.append(gram_term(z, kernel_z, function))
        if output is not None:
            terms.append(output_weight * _on_output(operator, gram, output, normalized=normalized))
    return terms


def _on_output(operator: Operator, gram_s: Tensor, output: Tensor, *, normalized: bool) -> Tensor:
    """Return the criterion of the head's output with a linear kernel."""
    weights = operator(gram_s)
    f = output - output.detach().mean(-1, keepdim=True)
    cross = (f * (weights @ f.unsqueeze(-1)).squeeze(-1)).sum(-1)
    if not normalized:
        return cross
    gram = f.unsqueeze(-1) * f.unsqueeze(-2)
    own_z = (gram * operator(gram)).sum((-2, -1))
    own_s = (gram_s * weights).sum((-2, -1))
    return cross * inverse_root(own_z, own_s, smallest_own(gram, rows=1))
