"""The one training loop: a stack of models, one penalty, one Adam."""

from __future__ import annotations

import copy
import os
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, cast

import torch
from torch import Tensor

from frhsic_core.arrays import ArrayLike
from frhsic_core.learning.bandwidth import guard
from frhsic_core.learning.batches import TrainingData, random_order
from frhsic_core.learning.checkpoint import read_checkpoint, write_checkpoint
from frhsic_core.learning.history import History, Progress
from frhsic_core.learning.interrupt import deferred_interrupt
from frhsic_core.learning.networks import ModelStack
from frhsic_core.learning.penalties import Penalty
from frhsic_core.learning.protocols import architecture, make_penalty
from frhsic_core.learning.stacking import stack_settings
from frhsic_core.learning.trained import TrainedStack
from frhsic_core.learning.training_state import ResumableStep

__all__ = ["Trainer"]

Callback = Callable[[Progress], Any]


class Trainer(ResumableStep):
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
        where = torch.device(device)
        for name, value in (("epochs", epochs), ("batch_size", batch_size)):
            if int(value) != value or value < 1:
                raise ValueError(f"{name} is {value}: it must be a positive whole number.")
        if not learning_rate > 0:
            raise ValueError(f"learning_rate is {learning_rate}: it must be positive.")
        data = TrainingData.from_arrays(x, y, s, sample_weight=sample_weight, task=task, dtype=dtype, device=where)
        lams, self.seeds, datasets = stack_settings(lam, seeds, dataset, datasets=data.datasets)
        which = torch.tensor(datasets, device=where)
        penalty = make_penalty(penalty, protocol=protocol) if isinstance(penalty, str) else copy.deepcopy(penalty)
        if s is None and penalty.needs_attribute:
            raise ValueError(f"penalty {penalty.key!r} needs the sensitive attribute: pass s, or penalty='unfair'.")
        if capture and where.type != "cuda":
            raise ValueError(f"capture=True needs CUDA, but the device is {where}: leave it out.")
        model = ModelStack(
            len(lams),
            data.x.shape[-1],
            widths=tuple(widths),
            activation=activation,
            dtype=dtype,
            **architecture(protocol),
        )
        generators = model.initialise(self.seeds)
        model.to(where)
        penalty.setup(data, dataset=which, generators=generators, representation=widths[-1])
        penalty.to(where)
        super().__init__(
            data,
            model,
            penalty,
            lam=torch.tensor(lams, dtype=dtype, device=where),
            dataset=which,
            batch_size=min(int(batch_size), data.n),
            learning_rate=float(learning_rate),
            capture=where.type == "cuda" if capture is None else capture,
        )
        self.epochs, self.epoch, self.protocol = int(epochs), 0, protocol
        self.history = History(metric_name="accuracy" if task == "classification" else "mse")
        self._escaped = False

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
            Called with a ``Progress`` after each epoch; returning ``True`` stops the training.
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
        with deferred_interrupt() as interrupted:
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

    def _train_epoch(self, interrupted: list[int]) -> bool:
        """Run the rest of the current epoch; False when interrupted before its end."""
        seeds = torch.tensor(self.seeds, device=self.device)
        order = random_order(seeds, epoch=self.epoch, n=self.data.n)
        self._order.copy_(order.add_((self.dataset * self.data.n).unsqueeze(-1)))
        if self.step == 0:
            self._sums.zero_()
        self._start.fill_(self.step * self.batch_size)
        policy, full = self.penalty.policy, None
        while self.step < self.steps_per_epoch:
            length = min(self.batch_size, self.data.n - self.step * self.batch_size)
            if length < self.batch_size and policy is not None and policy.refreshes(self.epoch + 1, 0):
                full = cast(Tensor, self.penalty.sigma_z).clone()  # a short batch's own is gone with the next step
            self._run(length, policy is not None and policy.refreshes(self.epoch, self.step))
            self.step += 1
            if interrupted:
                break
        if self.step < self.steps_per_epoch:
            return False
        self._close_epoch(full)
        return True

    @torch.no_grad()
    def _close_epoch(self, sigma: Tensor | None = None) -> None:
        """Record the epoch; the ratio is measured in ``sigma``, by default in the bandwidths in force."""
        loss, penalty, metric = self._sums / self.data.n
        ratio = self._ratio(sigma)
        unknown = torch.full_like(loss, torch.nan)
        bandwidth = getattr(self.penalty, "sigma_z", unknown)
        values = torch.stack([loss, penalty, unknown if ratio is None else ratio, metric, bandwidth]).cpu()
        self.epoch, self.step = self.epoch + 1, 0
        self.history.append(dict(zip(("loss", "penalty", "ratio", "metric", "bandwidth"), values, strict=True)))
        if ratio is not None and not self._escaped:
            judged = torch.where(self.lam.cpu() > 0, values[2], torch.ones_like(values[2]))
            self._escaped = guard(judged, epoch=self.epoch)
