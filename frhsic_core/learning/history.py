"""The history of a training run, and its progress."""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor

# The course of a training, one row for each epoch and one column for each model, float64. `loss` (task loss), `penalty`
# (without λ) and `metric` (accuracy, or mean squared error) are means over the epoch's mini-batches. `ratio` =
# median(|z − z'|)/σ_Z and `bandwidth` = σ_Z are measured at the end of the epoch; they are NaN without a kernel on Z.
History = dict[str, Tensor]
COLUMNS = ("loss", "penalty", "ratio", "metric", "bandwidth")


@dataclass(frozen=True)
class Progress:
    """The progress of a training, which a callback receives after each epoch; ``callback=print`` shows it.

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
        row = {name: self.history[name][-1].mean().item() for name in ("loss", "penalty", "metric")}
        return (
            f"epoch {self.epoch}/{self.epochs}, loss {row['loss']:.4f}, penalty {row['penalty']:.3g}, "
            f"metric {row['metric']:.4f}, {self.seconds_left:.0f} s left"
        )
