"""Ctrl-C between steps, not in the middle of one."""

from __future__ import annotations

import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

__all__ = ["deferred_interrupt", "inside_a_search"]

_SEARCHES = ("sklearn.model_selection", "joblib")


@contextmanager
def deferred_interrupt() -> Iterator[list[int]]:
    """Collect Ctrl-C in a list instead of raising in the middle of a step; a second one raises.

    Signals belong to the main thread: elsewhere the list stays empty.
    """
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


def inside_a_search() -> bool:
    """Say whether a caller fits many models, one after the other: scikit-learn's searches and cross-validation, joblib.

    Such a caller takes a fit that returns for a finished one and begins the next: there Ctrl-C has to raise.
    """
    frame = sys._getframe(1)
    while frame is not None:
        if frame.f_globals.get("__name__", "").startswith(_SEARCHES):
            return True
        frame = frame.f_back  # type: ignore[assignment]
    return False
