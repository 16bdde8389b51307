"""The history of a training run, and its progress."""

from __future__ import annotations

from dataclasses import dataclass, field

import torch
from torch import Tensor

COLUMNS = ("loss", "penalty", "ratio", "metric", "bandwidth")


@dataclass
class History:
    """The course of a training: one row for each epoch, one column for each model.

    ``loss`` (task loss), ``penalty`` (without λ) and ``metric`` (accuracy, or mean squared error) are means over the
    epoch's mini-batches. ``ratio`` = median(|z − z'|)/σ_Z and ``bandwidth`` = σ_Z are measured at the end of the epoch;
    they are NaN without a kernel on Z.

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
        """Number of recorded epochs."""
        return len(self.rows["loss"])

    def append(self, row: dict[str, Tensor]) -> None:
        """Add an epoch: a ``(models,)`` tensor for each of the columns."""
        for name in COLUMNS:
            self.rows[name].append(row[name].detach().to(device="cpu", dtype=torch.float64))

    def __getitem__(self, name: str) -> Tensor:
        """Return one column as ``(epochs, models)``; the metric is also available under its own name."""
        name = "metric" if name == self.metric_name else name
        if name not in self.rows:
            raise KeyError(f"{name!r} is not in the history: choose one of {', '.join(COLUMNS)} or {self.metric_name}.")
        return torch.stack(self.rows[name]) if self.rows[name] else torch.zeros(0, 0, dtype=torch.float64)


@dataclass(frozen=True)
class Progress:
    """The progress of a training, which a callback receives after each epoch; ``callback=print`` shows it.

    Parameters
    ----------
    epoch, epochs : int
        Number of finished epochs, and of all epochs.
    seconds, seconds_left : float
        Time spent in this call of ``fit``, and the expected time until its end.
    history : History
        History of the finished epochs.
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
