"""The history of a training run, and progress bars.

Progress bars need rich, which is imported when a bar is drawn.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor

COLUMNS = ("loss", "penalty", "ratio", "metric", "bandwidth")
PATIENCE = 3.0  # seconds before a late progress bar appears


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
    """The progress of a training, which a callback receives after each epoch.

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


# Progress bars --------------------------------------------------------------------------------------------------------


@contextmanager
def progress_bar(description: str = "training", *, late: bool = False) -> Iterator[Callable[[Progress], None] | None]:
    """Return a callback for ``Trainer.fit`` that draws a progress bar with the time left.

    Use it as ``with progress_bar("adult, frhsic") as callback: Trainer(...).fit(callback=callback)``. The bar stops at
    the end of the block. With ``late=True`` it appears on a terminal as soon as the training will take some seconds;
    without a terminal, or without rich, there is no callback (None) then, and nothing is drawn.
    """
    bar: Any = None
    if not late:
        bar = _bar()
    elif sys.stderr.isatty():
        with suppress(ImportError):
            bar = _bar(stderr=True)
    if bar is None:
        yield None
        return
    tasks: list[Any] = []

    def callback(progress: Progress) -> None:
        known = progress.seconds + progress.seconds_left > PATIENCE and progress.seconds > 0.2 * PATIENCE
        if not tasks and (known or not late):
            bar.start()
            tasks.append(bar.add_task(description, total=None, note=""))
        if tasks:
            history = progress.history
            note = f"loss {history['loss'][-1].mean():.4f}  {history.metric_name} {history['metric'][-1].mean():.4f}"
            bar.update(tasks[0], completed=progress.epoch, total=progress.epochs, note=note)

    try:
        yield callback
    finally:
        if tasks:
            bar.stop()


def _bar(*, stderr: bool = False) -> Any:
    from rich.console import Console
    from rich.progress import BarColumn, TextColumn, TimeRemainingColumn
    from rich.progress import Progress as Bar

    return Bar(
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.completed}/{task.total} epochs"),
        TimeRemainingColumn(),
        TextColumn("{task.fields[note]}"),
        console=Console(stderr=True) if stderr else None,
    )
