"""Drawing progress: the only place of this layer that needs rich, imported when drawn."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from frhsic_core.learning.history import Progress

__all__ = ["progress_bar"]


@contextmanager
def progress_bar(description: str = "training") -> Iterator[Callable[[Progress], None]]:
    """Give a callback for :meth:`Trainer.fit` that draws a bar with the time left; the bar goes with the block.

    ``with progress_bar("adult, frhsic") as callback: Trainer(...).fit(callback=callback)``
    """
    from rich.progress import BarColumn, TextColumn, TimeRemainingColumn
    from rich.progress import Progress as Bar

    with Bar(
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.completed}/{task.total} epochs"),
        TimeRemainingColumn(),
        TextColumn("{task.fields[note]}"),
    ) as bar:
        task = bar.add_task(description, total=None, note="")

        def callback(progress: Progress) -> None:
            history = progress.history
            note = f"loss {history['loss'][-1].mean():.4f}  {history.metric_name} {history['metric'][-1].mean():.4f}"
            bar.update(task, completed=progress.epoch, total=progress.epochs, note=note)

        yield callback
