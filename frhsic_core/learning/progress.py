"""Drawing progress: the only place of this layer that needs rich, imported when drawn."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

from frhsic_core.learning.history import Progress

__all__ = ["late_progress_bar", "progress_bar"]

PATIENCE = 3.0  # seconds without a word


@contextmanager
def progress_bar(description: str = "training") -> Iterator[Callable[[Progress], None]]:
    """Give a callback for ``Trainer.fit`` that draws a bar with the time left; the bar goes with the block.

    ``with progress_bar("adult, frhsic") as callback: Trainer(...).fit(callback=callback)``
    """
    with _bar() as bar:
        task = bar.add_task(description, total=None, note="")
        yield lambda progress: _draw(bar, task, progress)


@contextmanager
def late_progress_bar(description: str = "training") -> Iterator[Callable[[Progress], None] | None]:
    """As :func:`progress_bar`, on a terminal only, and once it is clear that some seconds are left.

    Without a terminal, or without rich, there is no callback and nothing is drawn.
    """
    bar: Any = None
    if sys.stderr.isatty():
        with suppress(ImportError):
            bar = _bar(stderr=True)
    if bar is None:
        yield None
        return
    tasks: list[Any] = []

    def callback(progress: Progress) -> None:
        if not tasks and progress.seconds + progress.seconds_left > PATIENCE and progress.seconds > 0.2 * PATIENCE:
            bar.start()
            tasks.append(bar.add_task(description, total=None, note=""))
        if tasks:
            _draw(bar, tasks[0], progress)

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


def _draw(bar: Any, task: Any, progress: Progress) -> None:
    history = progress.history
    note = f"loss {history['loss'][-1].mean():.4f}  {history.metric_name} {history['metric'][-1].mean():.4f}"
    bar.update(task, completed=progress.epoch, total=progress.epochs, note=note)
