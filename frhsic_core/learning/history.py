"""What a training run remembers of every epoch."""

from __future__ import annotations

from dataclasses import dataclass, field

import torch
from torch import Tensor

__all__ = ["History", "Progress"]

COLUMNS = ("loss", "penalty", "ratio", "metric", "bandwidth")


@dataclass
class History:
    """One row for each epoch, one column for each model.

    ``loss`` (task loss), ``penalty`` (without λ) and ``metric`` (accuracy, or mean squared error) are means over the
    epoch's mini-batches; ``ratio`` = median(|z − z'|)/σ_Z and ``bandwidth`` = σ_Z at its end, NaN without a
    kernel on Z.

    Examples
    --------
    >>> history = History(metric_name="accuracy")
    >>> history.append({name: torch.ones(2) for name in COLUMNS})
    >>> tuple(history["loss"].shape), history.epochs
    ((1, 2), 1)
    """

    metric_name: str = "accuracy"
    rows: dict[str, list[Tensor]] = field(default_factory=lambda: {name: [] for name in COLUMNS})

    @property
    def epochs(self) -> int:
        """Number of epochs recorded."""
        return len(self.rows["loss"])

    def append(self, row: dict[str, Tensor]) -> None:
        """Add an epoch: a ``(models,)`` tensor for each of the columns."""
        for name in COLUMNS:
            self.rows[name].append(row[name].detach().to(device="cpu", dtype=torch.float64))

    def __getitem__(self, name: str) -> Tensor:
        """Return ``(epochs, models)`` of one column; the metric also under its own name."""
        name = "metric" if name == self.metric_name else name
        if name not in self.rows:
            raise KeyError(f"{name!r} is not in the history: choose one of {', '.join(COLUMNS)} or {self.metric_name}.")
        return torch.stack(self.rows[name]) if self.rows[name] else torch.zeros(0, 0, dtype=torch.float64)

    def state_dict(self) -> dict[str, Tensor]:
        """Return the columns as tensors, for a checkpoint."""
        return {name: self[name] for name in COLUMNS}

    def load_state_dict(self, state: dict[str, Tensor]) -> None:
        """Take the columns of a checkpoint."""
        self.rows = {name: list(state[name].to("cpu").unbind(0)) for name in COLUMNS}


@dataclass(frozen=True)
class Progress:
    """What a callback is told after each epoch.

    Parameters
    ----------
    epoch, epochs : int
        Epochs done, and how many there will be.
    seconds, seconds_left : float
        Spent in this call of ``fit``, and expected until its end.
    history : History
        So far.
    """

    epoch: int
    epochs: int
    seconds: float
    seconds_left: float
    history: History

    def __str__(self) -> str:
        row = {name: self.history[name][-1].mean().item() for name in ("loss", "penalty", "metric")}
        return (
            f"epoch {self.epoch}/{self.epochs}, loss {row['loss']:.4f}, penalty {row['penalty']:.3g}, "
            f"{self.history.metric_name} {row['metric']:.4f}, {self.seconds_left:.0f} s left"
        )
