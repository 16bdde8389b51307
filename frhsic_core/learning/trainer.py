"""The training loop: a stack of models, one penalty, one Adam."""

from __future__ import annotations

import copy
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

import torch
from torch import Tensor

from frhsic_core._arrays import ArrayLike
from frhsic_core.learning.data import TrainingData, random_order
from frhsic_core.learning.penalties import Penalty, architecture, make_penalty
from frhsic_core.learning.penalties.base import guard
from frhsic_core.learning.stack import (
    COLUMNS,
    History,
    ModelStack,
    TrainedStack,
    cpu_threads,
    require_count,
    stack_settings,
)
from frhsic_core.learning.step import Step


@dataclass(frozen=True)
class TrainingSettings:
    """How a stack is trained: its length, its networks and where it runs.

    Parameters
    ----------
    epochs : int
        Number of passes over the data.
    batch_size : int
        Number of samples in a mini-batch, at most n. The last mini-batch of an epoch may be
        shorter.
    learning_rate : float
        Learning rate of Adam.
    decay : bool
        Whether the learning rate falls linearly from epoch to epoch, to ``learning_rate / epochs``
        in the last one.
    protocol : {"recommended", "text", "reference"}
        Settings of a penalty that is given by its key, and whether the encoder ends in an
        activation; see ``learning.penalties``.
    widths : sequence of int
        Width of each layer of the encoder. The last width is the dimension of Z.
    activation : {"selu", "relu"}
        Activation between the layers of the encoder.
    dtype : torch.dtype
        float32 or float64.
    device : str or torch.device
        Device of the training; ``"auto"`` is CUDA if it is available.
    capture : bool, optional
        Whether the step is captured in a CUDA graph; by default on CUDA only.
    """

    epochs: int = 200
    batch_size: int = 256
    learning_rate: float = 1e-3
    decay: bool = False
    protocol: str = "recommended"
    widths: Sequence[int] = (50, 50)
    activation: str = "selu"
    dtype: torch.dtype = torch.float32
    device: torch.device | str = "auto"
    capture: bool | None = None

    def __post_init__(self) -> None:
        require_count("epochs", self.epochs)
        require_count("batch_size", self.batch_size)
        if not self.learning_rate > 0:
            raise ValueError(f"learning_rate is {self.learning_rate}: it must be positive.")

    @classmethod
    def of(cls, settings: TrainingSettings | None, **changes: Any) -> TrainingSettings:
        """Return the settings, or the defaults, with some values replaced."""
        known = [each.name for each in fields(cls)]
        if not isinstance(settings, cls | None):
            raise TypeError(
                f"settings is a {type(settings).__name__}: pass TrainingSettings(...) or None."
            )
        unknown = sorted(changes.keys() - set(known))
        if unknown:
            raise TypeError(
                f"there is no setting {', '.join(unknown)}: choose among {', '.join(known)}. Task "
                "and sample weights belong to the data: TrainingData.from_arrays(x, y, s, ...)."
            )
        return replace(settings or cls(), **changes)


@dataclass(frozen=True)
class Progress:
    """The progress of a training, which a callback receives after each epoch.

    ``callback=print`` shows it.

    Parameters
    ----------
    epoch, epochs : int
        Number of finished epochs, and of all epochs.
    seconds, seconds_left : float
        Time spent in this call of ``fit``, and the expected time until its end.
    history : dict of Tensor
        History of the finished epochs.
    """

    epoch: int
    epochs: int
    seconds: float
    seconds_left: float
    history: History

    def __str__(self) -> str:
        loss = self._last_mean("loss")
        penalty = self._last_mean("penalty")
        metric = self._last_mean("metric")
        return (
            f"epoch {self.epoch}/{self.epochs}, loss {loss:.4f}, penalty {penalty:.3g}, "
            f"metric {metric:.4f}, {self.seconds_left:.0f} s left"
        )

    def _last_mean(self, name: str) -> float:
        """Return the mean over the models in the last epoch."""
        return self.history[name][-1].mean().item()


Callback = Callable[[Progress], Any]


class Trainer:
    r"""Trains a stack of models; each minimizes task loss + λ · penalty on its own mini-batches.

    .. math:: \min_{h, f}\; \widehat{\mathcal L}(f \circ h) + \lambda\, \widehat{D}(h(X), S)

    Data, λ, seed and dataset may differ from model to model. The result of a model does not depend
    on the other models of the stack. One step of M models costs O(M(md + m²)) for mini-batches of m
    samples, and on CUDA one graph launch.

    Parameters
    ----------
    x, y, s : array_like
        Features ``(n, d)``, target ``(n,)`` and sensitive attribute ``(n,)`` or ``(n, p)``. A
        leading dimension means several datasets (splits) of equal size. ``s=None`` is possible only
        without a penalty. The task is a classification with y in {0, 1}. For a regression or with
        weights, pass a :class:`~frhsic_core.learning.TrainingData` as ``x``, which also holds y and
        s; it is used without further checks.
    penalty : str or Penalty
        Key of a method, a row of ``frhsic_core.registry.METHODS``, with the settings of the
        protocol; or a penalty, which is copied.
    lam : float or sequence of float
        λ ≥ 0, one value for all models or one for each model.
    seeds : int or sequence of int
        Seed of the initial weights (as with ``torch.manual_seed``) and of the order of the
        mini-batches.
    dataset : sequence of int, optional
        Index of the dataset of each model. By default model i sees dataset i, or all models see the
        only dataset.
    settings : TrainingSettings, optional
        Length of the training, networks and device.
    **changes
        Values of :class:`TrainingSettings` (``epochs``, ``widths``, ...), which replace those of
        ``settings``.

    Attributes
    ----------
    step : Step
        The training step, with model, penalty and optimizers.
    epoch : int
        Number of finished epochs.
    history : dict of Tensor
        ``loss``, ``penalty``, ``ratio``, ``metric`` and ``bandwidth`` of every finished epoch,
        ``(epochs, models)``.

    Examples
    --------
    >>> generator = torch.Generator().manual_seed(0)
    >>> s = torch.rand(300, generator=generator)
    >>> x = torch.stack([s, torch.rand(300, generator=generator)], dim=-1)
    >>> y = (x.sum(-1) > 1).float()
    >>> trainer = Trainer(x, y, s, lam=[0.0, 10.0], seeds=0, epochs=3, device="cpu")
    >>> trained = trainer.fit()
    >>> tuple(trained.encode(x).shape), tuple(trained.history["metric"].shape)
    ((2, 300, 50), (3, 2))
    """

    def __init__(
        self,
        x: ArrayLike | TrainingData,
        y: ArrayLike | None = None,
        s: ArrayLike | None = None,
        *,
        penalty: str | Penalty = "frhsic",
        lam: float | Sequence[float] | Tensor = 1.0,
        seeds: int | Sequence[int] | Tensor = 0,
        dataset: Sequence[int] | Tensor | None = None,
        settings: TrainingSettings | None = None,
        **changes: Any,
    ) -> None:
        settings = TrainingSettings.of(settings, **changes)
        where = resolve_device(settings.device)
        if isinstance(x, TrainingData):
            data = x.to(dtype=settings.dtype, device=where)
        else:
            data = TrainingData.from_arrays(x, y, s, dtype=settings.dtype, device=where)
        lams, self.seeds, datasets = stack_settings(lam, seeds, dataset, datasets=data.datasets)
        protocol = settings.protocol
        if isinstance(penalty, str):
            penalty = make_penalty(penalty, protocol=protocol)
        else:
            penalty = copy.deepcopy(penalty)
        if data.s is None and penalty.needs_attribute:
            raise ValueError(
                f"penalty {penalty.key!r} needs the sensitive attribute: pass s, or "
                "penalty='unfair'."
            )
        capture = settings.capture
        if capture is None:
            capture = where.type == "cuda"
        if capture and where.type != "cuda":
            raise ValueError(f"capture=True needs CUDA, but the device is {where}: leave it out.")
        model = ModelStack(
            len(lams),
            data.x.shape[-1],
            widths=tuple(settings.widths),
            activation=settings.activation,
            dtype=data.x.dtype,
            **architecture(protocol),
        )
        generators = model.initialize(self.seeds)
        model.to(where)
        self.data = data
        self.lam = torch.tensor(lams, dtype=data.x.dtype, device=where)
        self.dataset = torch.tensor(datasets, device=where)
        penalty.setup(
            data, dataset=self.dataset, generators=generators, representation=settings.widths[-1]
        )
        penalty.to(where)
        self.step = Step(
            data,
            model,
            penalty,
            lam=self.lam,
            dataset=self.dataset,
            batch_size=min(int(settings.batch_size), data.n),
            learning_rate=float(settings.learning_rate),
            capture=capture,
        )
        self.epochs = int(settings.epochs)
        self.decay = bool(settings.decay)
        self.epoch = 0
        self.history: History = {
            name: torch.zeros(0, len(lams), dtype=torch.float64) for name in COLUMNS
        }
        self.escaped = False

    @property
    def model(self) -> ModelStack:
        """The networks of the stack."""
        return self.step.model

    @property
    def penalty(self) -> Penalty:
        """The penalty of the stack, with its bandwidths and adversaries."""
        return self.step.penalty

    @property
    def models(self) -> int:
        """Number of models."""
        return len(self.seeds)

    def fit(self, *, callback: Callback | None = None) -> TrainedStack:
        """Train until ``epochs`` epochs are done, starting from the state of this trainer.

        On the CPU the training uses one thread unless the stack is large (``cpu_threads``).

        Parameters
        ----------
        callback : callable, optional
            Function that is called with a ``Progress`` after each epoch. If it returns ``True``,
            training stops; a later call of ``fit`` resumes, with exactly the result of an
            uninterrupted run.

        Returns
        -------
        TrainedStack
            The trained models.
        """
        begin = time.perf_counter()
        first = self.epoch
        with cpu_threads(self._largest_tensor()):
            while self.epoch < self.epochs:
                self._train_epoch()
                if callback is not None:
                    spent = time.perf_counter() - begin
                    seconds_per_epoch = spent / (self.epoch - first)
                    progress = Progress(
                        epoch=self.epoch,
                        epochs=self.epochs,
                        seconds=spent,
                        seconds_left=seconds_per_epoch * (self.epochs - self.epoch),
                        history=self.history,
                    )
                    if callback(progress) is True:
                        break
        return self.trained()

    def _train_epoch(self) -> None:
        # Each model has its own order of the samples. It depends on the model's seed and the epoch
        # alone.
        seeds = torch.tensor(self.seeds, device=self.lam.device)
        self.step.begin_epoch(random_order(seeds, epoch=self.epoch, n=self.data.n))
        if self.decay:
            remaining = max(1.0 - self.epoch / self.epochs, 0.0)
            self.step.set_learning_rate(self.step.learning_rate * remaining)
        for number in range(self.step.steps_per_epoch):
            self.step(number, epoch=self.epoch)
        self._record_epoch()

    @torch.no_grad()
    def _record_epoch(self) -> None:
        """Append the epoch to the history, and warn when Z has left the range of its kernel."""
        loss, penalty, metric = self.step.sums / self.data.n
        unknown = torch.full_like(loss, torch.nan)
        ratio = self.step.ratio()
        has_kernel = ratio is not None
        if ratio is None:
            ratio = unknown
        bandwidth = getattr(self.penalty, "sigma_z", unknown)
        # One copy from the device for all of them, in the order of COLUMNS.
        values = torch.stack([loss, penalty, ratio, metric, bandwidth]).cpu()
        epoch = dict(zip(COLUMNS, values, strict=True))
        self.epoch += 1
        # New tensors: a stack that was returned before keeps its history.
        self.history = {
            name: torch.cat([self.history[name], row.unsqueeze(0).double()])
            for name, row in epoch.items()
        }
        if has_kernel and not self.escaped:
            # Without a penalty (λ = 0) a bandwidth that does not fit Z does no harm.
            judged = torch.where(self.lam.cpu() > 0, epoch["ratio"], 1.0)
            self.escaped = guard(judged, epoch=self.epoch)

    def _largest_tensor(self) -> int:
        """Return the number of elements of a Gram matrix, or of the output of a larger layer."""
        rows = self.step.batch_size
        return self.models * rows * max(rows, *self.model.encoder.widths)

    def trained(self) -> TrainedStack:
        """Return a copy of the models in their current state."""
        return TrainedStack(
            copy.deepcopy(self.model),
            history=self.history,
            lam=self.lam.cpu(),
            seeds=tuple(self.seeds),
            dataset=tuple(self.dataset.tolist()),
            task=self.data.task,
            penalty=copy.deepcopy(self.penalty),
        )


def resolve_device(device: torch.device | str) -> torch.device:
    """Return the device; ``"auto"`` is CUDA if it is available, otherwise the CPU."""
    if device == "auto":
        device = "cuda" if torch.cuda.is_available() else "cpu"
    try:
        found = torch.device(device)
    except RuntimeError:
        raise ValueError(
            f"device is {device!r}: choose 'auto', 'cpu', 'cuda' or 'cuda:0'."
        ) from None
    if found.type == "cuda" and (found.index or 0) >= torch.cuda.device_count():
        raise ValueError(
            f"device is {device!r}, but there is no CUDA device of this name: use 'cpu' or 'auto'."
        )
    return found
