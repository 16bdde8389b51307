"""The one training loop: a stack of models, one penalty, one Adam."""

from __future__ import annotations

import copy
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F

from frhsic_core.arrays import ArrayLike
from frhsic_core.learning.bandwidth import guard
from frhsic_core.learning.batches import Batch, TrainingData, random_order
from frhsic_core.learning.capture import CapturedSteps
from frhsic_core.learning.checkpoint import read_checkpoint, write_checkpoint
from frhsic_core.learning.history import History, Progress
from frhsic_core.learning.networks import ModelStack
from frhsic_core.learning.penalties import Penalty
from frhsic_core.learning.penalties.gram import Pull
from frhsic_core.learning.protocols import architecture, make_penalty
from frhsic_core.learning.trained import TrainedStack

__all__ = ["Trainer"]

Callback = Callable[[Progress], Any]


class Trainer:
    r"""Trains a stack of models, each minimising task loss + λ · penalty on its own mini-batches.

    .. math:: \min_{h, f}\; \widehat{\mathcal L}(f \circ h) + \lambda\, \widehat{D}(h(X), S)

    Data, λ, seed and dataset may differ from model to model; the result of a model does not depend on its neighbours.
    One step of M models costs O(M(md + m²)) for batches of m rows, and on CUDA one graph launch.

    Parameters
    ----------
    x, y, s : array_like
        ``(n, d)``, ``(n,)``, ``(n,)`` or ``(n, p)``; with a leading dimension, several datasets (splits) of equal size.
        ``s=None`` only without a penalty.
    penalty : str or Penalty
        A method's key (``unfair frhsic frem reg_gdp adv mmd_binned laftr dcor``) in the settings of ``protocol``, or a
        penalty; it is copied.
    lam : float or sequence of float
        λ ≥ 0, for all models or for each.
    seeds : int or sequence of int
        For initialisation (as ``torch.manual_seed``) and order of mini-batches.
    dataset : sequence of int, optional
        Which dataset each model sees; by default model i sees dataset i, or all see the only one.
    task : {"classification", "regression"}
        Binary cross-entropy with logits and y in {0, 1}, or mean squared error.
    sample_weight : array_like, optional
        ``(n,)`` or ``(datasets, n)``; used by task loss and penalty.
    protocol : {"recommended", "text", "reference"}
        Settings of the penalty, and whether the encoder ends in an activation; see
        :mod:`frhsic_core.learning.protocols`.
    epochs, batch_size, learning_rate
        Adam; the last, short batch of an epoch is kept. A batch larger than n is n.
    widths, activation
        Encoder; the last width is the dimension of Z.
    device : {"auto", ...}
        ``"auto"`` is CUDA where there is one.
    dtype : torch.dtype
        float32 or float64.
    capture : bool, optional
        Capture the step in a CUDA graph; by default on CUDA only.

    Examples
    --------
    >>> generator = torch.Generator().manual_seed(0)
    >>> s = torch.rand(300, generator=generator)
    >>> x = torch.stack([s, torch.rand(300, generator=generator)], dim=-1)
    >>> y = (x.sum(-1) > 1).float()
    >>> trainer = Trainer(x, y, s, penalty="frhsic", lam=[0.0, 10.0], seeds=0, epochs=3, device="cpu")
    >>> trained = trainer.fit()
    >>> tuple(trained.encode(x).shape), tuple(trained.history["accuracy"].shape)
    ((2, 300, 50), (3, 2))
    """

    def __init__(
        self,
        x: ArrayLike,
        y: ArrayLike,
        s: ArrayLike | None = None,
        *,
        penalty: str | Penalty = "frhsic",
        lam: float | Sequence[float] | Tensor = 1.0,
        seeds: int | Sequence[int] | Tensor = 0,
        dataset: Sequence[int] | Tensor | None = None,
        task: str = "classification",
        sample_weight: ArrayLike | None = None,
        protocol: str = "recommended",
        epochs: int = 200,
        batch_size: int = 256,
        learning_rate: float = 1e-3,
        widths: Sequence[int] = (50, 50),
        activation: str = "selu",
        device: torch.device | str = "auto",
        dtype: torch.dtype = torch.float32,
        capture: bool | None = None,
    ) -> None:
        if device == "auto":
            device = "cuda" if torch.cuda.is_available() else "cpu"
        self.device = torch.device(device)
        for name, value in (("epochs", epochs), ("batch_size", batch_size)):
            if int(value) != value or value < 1:
                raise ValueError(f"{name} is {value}: it must be a positive whole number.")
        if not learning_rate > 0:
            raise ValueError(f"learning_rate is {learning_rate}: it must be positive.")
        self.data = TrainingData.from_arrays(
            x, y, s, sample_weight=sample_weight, task=task, dtype=dtype, device=self.device
        )
        self.epochs, self.batch_size = int(epochs), min(int(batch_size), self.data.n)
        self.learning_rate = float(learning_rate)
        self.protocol = protocol
        lams, self.seeds, datasets = _stack(lam, seeds, dataset, self.data.datasets)
        self.models = len(lams)
        self.lam = torch.tensor(lams, dtype=dtype, device=self.device)
        self.dataset = torch.tensor(datasets, device=self.device)
        self.penalty = make_penalty(penalty, protocol=protocol) if isinstance(penalty, str) else copy.deepcopy(penalty)
        if s is None and self.penalty.needs_attribute:
            raise ValueError(
                f"penalty {self.penalty.key!r} needs the sensitive attribute: pass s, or penalty='unfair'."
            )
        self.model = ModelStack(
            self.models,
            self.data.x.shape[-1],
            widths=tuple(widths),
            activation=activation,
            dtype=dtype,
            **architecture(protocol),
        )
        generators = self.model.initialise(self.seeds)
        self.model.to(self.device)
        self.penalty.setup(self.data, dataset=self.dataset, generators=generators, representation=widths[-1])
        self.penalty.to(self.device)
        self._parameters = list(self.model.parameters())
        self._adversary = list(self.penalty.parameters())
        self._optimiser = self._adam(self._parameters)
        self._adversary_optimiser = self._adam(self._adversary) if self._adversary else None
        self._flat = [t if t is None else t.flatten(0, 1) for t in (self.data.x, self.data.y, self.data.s)]
        self._weights = None if self.data.sample_weight is None else self.data.sample_weight.flatten(0, 1)
        # What a captured step reads and writes: the epoch's order, where in it the step begins, and the epoch's sums.
        self._order = torch.zeros(self.models, self.data.n, dtype=torch.int64, device=self.device)
        self._start = torch.zeros((), dtype=torch.int64, device=self.device)
        self._sums = torch.zeros(3, self.models, dtype=dtype, device=self.device)
        captured = self.device.type == "cuda" if capture is None else capture
        if captured and self.device.type != "cuda":
            raise ValueError(f"capture=True needs CUDA, but the device is {self.device}: leave it out.")
        self._captured = captured
        self._run: Callable[..., None] = self._runner()
        self.epoch, self.step = 0, 0
        self.history = History(metric_name="accuracy" if task == "classification" else "mse")
        self._escaped = False

    @property
    def steps_per_epoch(self) -> int:
        """Mini-batches in an epoch, the short one included."""
        return -(-self.data.n // self.batch_size)

    def fit(
        self,
        *,
        callback: Callback | None = None,
        checkpoint: str | os.PathLike[str] | None = None,
        checkpoint_every: int = 20,
    ) -> TrainedStack:
        """Train until ``epochs`` epochs are done, from wherever this trainer (or its checkpoint) stands.

        Parameters
        ----------
        callback : callable, optional
            Called with a :class:`Progress` after each epoch; returning ``True`` stops the training.
        checkpoint : path, optional
            Read first if it exists (a mismatch of settings is an error), written every ``checkpoint_every`` epochs, at
            the end and on interruption.

        Returns
        -------
        TrainedStack
            Also after Ctrl-C, which finishes the step under way: then ``.interrupted`` is True and a later call goes on
            with exactly the result of an uninterrupted run. A second Ctrl-C raises ``KeyboardInterrupt`` at once.
        """
        if checkpoint is not None and Path(checkpoint).exists():
            self.load_state(read_checkpoint(checkpoint, map_location=self.device))
        begin, first, stopped = time.perf_counter(), self.epoch, False
        with _deferred_interrupt() as interrupted:
            while self.epoch < self.epochs and not stopped and not interrupted:
                if not self._train_epoch(interrupted):
                    break
                if checkpoint is not None and (self.epoch % checkpoint_every == 0 or self.epoch == self.epochs):
                    write_checkpoint(checkpoint, self.state())
                if callback is not None:
                    spent = time.perf_counter() - begin
                    left = spent / (self.epoch - first) * (self.epochs - self.epoch)
                    stopped = callback(Progress(self.epoch, self.epochs, spent, left, self.history)) is True
            if checkpoint is not None and (interrupted or stopped):
                write_checkpoint(checkpoint, self.state())
        return self.trained(interrupted=bool(interrupted))

    def trained(self, *, interrupted: bool = False) -> TrainedStack:
        """Return the models as they stand, as a copy."""
        return TrainedStack(
            copy.deepcopy(self.model),
            history=copy.deepcopy(self.history),
            lam=self.lam.cpu(),
            seeds=tuple(self.seeds),
            dataset=tuple(self.dataset.tolist()),
            task=self.data.task,
            penalty=copy.deepcopy(self.penalty),
            interrupted=interrupted,
        )

    # One epoch, one step ----------------------------------------------------------------------------------------------

    def _train_epoch(self, interrupted: list[int]) -> bool:
        """Run the rest of the current epoch; False when interrupted before its end."""
        seeds = torch.tensor(self.seeds, device=self.device)
        order = random_order(seeds, epoch=self.epoch, n=self.data.n)
        self._order.copy_(order.add_((self.dataset * self.data.n).unsqueeze(-1)))
        if self.step == 0:
            self._sums.zero_()
        self._start.fill_(self.step * self.batch_size)
        while self.step < self.steps_per_epoch:
            length = min(self.batch_size, self.data.n - self.step * self.batch_size)
            policy = self.penalty.policy
            self._run(length, policy is not None and policy.refreshes(self.epoch, self.step))
            self.step += 1
            if interrupted:
                break
        if self.step < self.steps_per_epoch:
            return False
        self._close_epoch()
        return True

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
        index = rows.reshape(-1)

        def take(values: Tensor) -> Tensor:
            return values.index_select(0, index).view(self.models, length, *values.shape[1:])

        x, y, s = self._flat
        assert x is not None
        assert y is not None
        z, output = self.model(take(x))
        attribute = z.new_zeros(self.models, length, 0) if s is None else take(s)
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

    def _adam(self, parameters: list[torch.nn.Parameter]) -> torch.optim.Adam:
        # Adam is elementwise: one over the stack is one for each model.
        cuda = self.device.type == "cuda"
        return torch.optim.Adam(parameters, lr=self.learning_rate, fused=True, capturable=cuda)

    @torch.no_grad()
    def _close_epoch(self) -> None:
        loss, penalty, metric = self._sums / self.data.n
        rows = torch.linspace(0, self.data.n - 1, min(256, self.data.n), device=self.device).long()
        ratio = self.penalty.ratio(self.model.encoder(self.data.x[:, rows][self.dataset]))
        unknown = torch.full_like(loss, torch.nan)
        sigma = getattr(self.penalty, "sigma_z", unknown)
        values = torch.stack([loss, penalty, unknown if ratio is None else ratio, metric, sigma]).cpu()
        self.epoch, self.step = self.epoch + 1, 0
        self.history.append(dict(zip(("loss", "penalty", "ratio", "metric", "bandwidth"), values, strict=True)))
        if ratio is not None and not self._escaped:
            judged = torch.where(self.lam.cpu() > 0, values[2], torch.ones_like(values[2]))
            self._escaped = guard(judged, epoch=self.epoch)

    # State ------------------------------------------------------------------------------------------------------------

    def settings(self) -> dict[str, Any]:
        """Everything that must agree for a checkpoint to be resumed, as plain values."""
        return {
            "penalty": self.penalty.key,
            "penalty_settings": self.penalty.settings(),
            "lam": self.lam.tolist(),
            "seeds": list(self.seeds),
            "dataset": self.dataset.tolist(),
            "shape": list(self.data.x.shape),
            "batch_size": self.batch_size,
            "learning_rate": self.learning_rate,
            "task": self.data.task,
            "dtype": str(self.data.x.dtype),
            "widths": [list(parameter.shape) for parameter in self._parameters],
        }

    def _runner(self) -> Callable[..., None]:
        return CapturedSteps(self._step, self.device) if self._captured else self._step

    def state(self) -> dict[str, Any]:
        """Return the whole state of the training, for :func:`write_checkpoint`."""
        adversary = self._adversary_optimiser
        return {
            "settings": self.settings(),
            "model": self.model.state_dict(),
            "penalty": self.penalty.state_dict(),
            "optimiser": self._optimiser.state_dict(),
            "adversary": None if adversary is None else adversary.state_dict(),
            "history": self.history.state_dict(),
            "sums": self._sums,
            "epoch": self.epoch,
            "step": self.step,
            "escaped": self._escaped,
        }

    def load_state(self, state: dict[str, Any]) -> None:
        """Go on from ``state``; settings that differ are an error that names them."""
        mine = self.settings()
        differ = [name for name, value in mine.items() if state["settings"].get(name) != value]
        if differ:
            raise ValueError(
                f"the checkpoint was written with other settings ({', '.join(differ)}): use another file, or delete it."
            )
        self.model.load_state_dict(state["model"])
        self.penalty.load_state_dict(state["penalty"])
        self._optimiser.load_state_dict(state["optimiser"])
        if self._adversary_optimiser is not None:
            self._adversary_optimiser.load_state_dict(state["adversary"])
        self.history.load_state_dict(state["history"])
        self._sums.copy_(state["sums"])
        self._run = self._runner()  # the optimiser has new tensors: what was captured updates the old ones
        self.epoch, self.step, self._escaped = state["epoch"], state["step"], state["escaped"]


def _mean(values: Tensor, weights: Tensor | None) -> Tensor:
    if weights is None:
        return values.mean(-1)
    return (values * weights).sum(-1) / weights.sum(-1).clamp_min(1e-30)


def _stack(lam: Any, seeds: Any, dataset: Any, datasets: int) -> tuple[list[float], list[int], list[int]]:
    """Bring λ, seeds and datasets to one length; single values serve every model."""

    def listed(value: Any) -> list[Any]:
        value = value.tolist() if hasattr(value, "tolist") else value
        return list(value) if isinstance(value, Sequence) else [value]

    lams, seed_list = [float(v) for v in listed(lam)], [int(v) for v in listed(seeds)]
    which = listed(dataset) if dataset is not None else ([0] if datasets == 1 else list(range(datasets)))
    if not lams or not seed_list or not which:
        raise ValueError("lam, seeds or dataset is empty: at least one model is needed.")
    models = max(len(lams), len(seed_list), len(which))
    lengths = {"lam": len(lams), "seeds": len(seed_list), "dataset": len(which)}
    for name, length in lengths.items():
        if length not in (1, models):
            raise ValueError(f"{name} has {length} values for {models} models: give one, or one for each model.")
    if any(not value >= 0 or value == float("inf") for value in lams):
        raise ValueError(f"lam is {lam}: every value must be zero or positive, and finite.")
    if any(not 0 <= int(value) < datasets for value in which):
        raise ValueError(f"dataset holds {max(which, key=abs)}: there are {datasets} datasets, numbered from 0.")

    def spread(values: list[Any]) -> list[Any]:
        return values * models if len(values) == 1 else values

    return spread(lams), spread(seed_list), [int(v) for v in spread(which)]


@contextmanager
def _deferred_interrupt() -> Iterator[list[int]]:
    """Collect Ctrl-C in a list instead of raising in the middle of a step; a second one raises."""
    caught: list[int] = []
    if threading.current_thread() is not threading.main_thread():
        yield caught
        return

    def handler(number: int, frame: Any) -> None:
        if caught:
            raise KeyboardInterrupt
        caught.append(number)

    before = signal.signal(signal.SIGINT, handler)
    try:
        yield caught
    finally:
        signal.signal(signal.SIGINT, before)
