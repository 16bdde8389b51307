"""One step of a stack: a mini-batch for each model, the adversary (if any), then encoder and head.

The step reads and writes tensors that live as long as the stack, and nothing else: on CUDA it is captured once and
replayed (:mod:`frhsic_core.learning.capture`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch
from torch import Tensor
from torch.nn import functional as F

from frhsic_core.learning.batches import Batch, TrainingData
from frhsic_core.learning.capture import CapturedSteps
from frhsic_core.learning.networks import ModelStack
from frhsic_core.learning.penalties import Penalty
from frhsic_core.learning.penalties.gram import Pull

__all__ = ["StackedStep"]


class StackedStep:
    """What a step needs, and the step; :class:`frhsic_core.learning.Trainer` repeats it.

    Parameters
    ----------
    data : TrainingData
        The datasets.
    model, penalty : ModelStack, Penalty
        On the device, initialised and set up.
    lam, dataset : Tensor
        λ and dataset of each model, ``(models,)``.
    batch_size : int
        Rows of a full mini-batch.
    learning_rate : float
        Of Adam.
    capture : bool
        Capture the step in a CUDA graph.
    """

    def __init__(
        self,
        data: TrainingData,
        model: ModelStack,
        penalty: Penalty,
        *,
        lam: Tensor,
        dataset: Tensor,
        batch_size: int,
        learning_rate: float,
        capture: bool,
    ) -> None:
        self.data, self.model, self.penalty = data, model, penalty
        self.lam, self.dataset = lam, dataset
        self.batch_size, self.learning_rate = batch_size, learning_rate
        self.models, self.device, self.step = len(lam), lam.device, 0
        self._parameters = list(model.parameters())
        self._adversary = [parameter for parameter in penalty.parameters() if parameter.requires_grad]
        self._optimiser = self._adam(self._parameters)
        self._adversary_optimiser = self._adam(self._adversary) if self._adversary else None
        self._flat = [t if t is None else t.flatten(0, 1) for t in (data.x, data.y, data.s)]
        self._weights = None if data.sample_weight is None else data.sample_weight.flatten(0, 1)
        # What a captured step reads and writes: the epoch's order, where in it the step begins, and the epoch's sums.
        self._order = torch.zeros(self.models, data.n, dtype=torch.int64, device=self.device)
        self._start = torch.zeros((), dtype=torch.int64, device=self.device)
        self._sums = torch.zeros(3, self.models, dtype=data.x.dtype, device=self.device)
        self._captured = capture
        self._run: Callable[..., None] = self._runner()

    @property
    def steps_per_epoch(self) -> int:
        """Mini-batches in an epoch, the short one included."""
        return -(-self.data.n // self.batch_size)

    def _runner(self) -> Callable[..., None]:
        return CapturedSteps(self._step, self.device) if self._captured else self._step

    def _adam(self, parameters: list[torch.nn.Parameter]) -> torch.optim.Adam:
        # Adam is elementwise: one over the stack is one for each model.
        cuda = self.device.type == "cuda"
        return torch.optim.Adam(parameters, lr=self.learning_rate, fused=True, capturable=cuda)

    def _step(self, length: int, refresh: bool) -> None:
        """One mini-batch: adversary (if any), then encoder and head. Nothing here waits for the device."""
        batch = self._batch(length)
        if self._adversary_optimiser is not None:
            loss = self.penalty.adversary_loss(batch.detach())
            assert loss is not None
            self._descend(loss.sum(), self._adversary, self._adversary_optimiser)
        task = self._task_loss(batch)
        total, values, pulls = task, list[Tensor](), list[Pull]()
        if self.penalty.key != "unfair":
            for term in self.penalty.terms(batch, refresh=refresh):
                if isinstance(term, Pull):
                    pulls.append(term.times(self.lam))
                    values.append(term.value)
                else:
                    total = torch.addcmul(total, self.lam, term)
                    values.append(term.detach())
        self._descend(total.sum(), self._parameters, self._optimiser, pulls)
        with torch.no_grad():
            penalty = sum(values[1:], values[0]) if values else torch.zeros_like(task)
            self._sums.add_(torch.stack([task, penalty, self._metric(batch)]), alpha=float(length))
            self._start.add_(length)

    def _batch(self, length: int) -> Batch:
        if self.device.type == "cuda":  # the start must be read on the device: a captured step sees no host values
            columns = self._start + torch.arange(length, device=self.device)
            rows = self._order.index_select(1, columns)
        else:
            rows = self._order.narrow(1, self.step * self.batch_size, length)
        return self._rows(rows)

    def _rows(self, rows: Tensor) -> Batch:
        """What the models make of these rows of the flattened datasets, ``(models, m)``."""
        index = rows.reshape(-1)

        def take(values: Tensor) -> Tensor:
            return values.index_select(0, index).view(*rows.shape, *values.shape[1:])

        x, y, s = self._flat
        assert x is not None
        assert y is not None
        z, output = self.model(take(x))
        attribute = z.new_zeros(*rows.shape, 0) if s is None else take(s)
        weights = None if self._weights is None else take(self._weights)
        return Batch(z, output, attribute, take(y), weights, rows)

    def _task_loss(self, batch: Batch) -> Tensor:
        if self.data.task == "classification":
            each = F.binary_cross_entropy_with_logits(batch.output, batch.y, reduction="none")
        else:
            each = (batch.output - batch.y).square()
        return _mean(each, batch.weights)

    @torch.no_grad()
    def _metric(self, batch: Batch) -> Tensor:
        if self.data.task == "classification":
            return _mean(((batch.output > 0) == (batch.y > 0.5)).to(batch.output.dtype), batch.weights)
        return _mean((batch.output - batch.y).square(), batch.weights)

    @torch.no_grad()
    def _ratio(self, sigma: Tensor | None) -> Tensor | None:
        """median(|z − z'|)/σ_Z over 256 rows; NaN where too few of them count, since nothing can be said there."""
        rows = torch.linspace(0, self.data.n - 1, min(256, self.data.n), device=self.device).long()
        batch = self._rows(rows + (self.dataset * self.data.n).unsqueeze(-1))
        weights, enough = self.penalty.row_weights(batch)
        ratio = self.penalty.ratio(batch.z, weights, sigma=sigma)
        return ratio if ratio is None or enough is None else ratio.masked_fill(~enough, torch.nan)

    def _descend(
        self,
        loss: Tensor,
        parameters: list[torch.nn.Parameter],
        optimiser: torch.optim.Adam,
        pulls: Sequence[Pull] = (),
    ) -> None:
        """One step along the gradient of ``loss`` plus the gradients that are known already."""
        gradients = torch.autograd.grad(
            [loss, *(pull.at for pull in pulls)], parameters, [None, *(pull.gradient for pull in pulls)]
        )
        for parameter, gradient in zip(parameters, gradients, strict=True):
            parameter.grad = gradient
        optimiser.step()


def _mean(values: Tensor, weights: Tensor | None) -> Tensor:
    if weights is None:
        return values.mean(-1)
    return (values * weights).sum(-1) / weights.sum(-1).clamp_min(1e-30)
