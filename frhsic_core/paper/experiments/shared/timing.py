"""Time the epochs of a training, step by step or with its steps captured in a CUDA graph."""

from __future__ import annotations

import time
import warnings
from itertools import pairwise
from typing import Any

import torch

# A captured step runs eagerly first, is captured at the second call and replayed from the third; a last, smaller batch
# has a graph of its own.
WARM_UP = {"eager": 1, "captured": 3}


def wait(device: str) -> None:
    """Wait until a GPU has finished what it was given."""
    if device.startswith("cuda"):
        torch.cuda.synchronize()


def timed_epochs(*data: Any, epochs: int, mode: str, device: str, **settings: Any) -> list[float]:
    """Return the seconds of each of ``epochs`` epochs after the warm-up, waiting for the device at both ends.

    ``data`` and ``settings`` are arguments of :class:`frhsic_core.learning.Trainer`, ``mode`` a key of ``WARM_UP``.
    """
    from frhsic_core.learning import Trainer

    stamps: list[float] = []

    def stamp(progress: Any) -> None:
        wait(device)
        stamps.append(time.perf_counter())

    before = WARM_UP[mode]
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        trainer = Trainer(*data, epochs=before + epochs, device=device, capture=mode == "captured", **settings)
        trainer.fit(callback=stamp)
    if any("could not be captured" in str(w.message) for w in caught):
        raise RuntimeError("The step could not be captured, so that this case has no captured time.")
    return [end - begin for begin, end in pairwise(stamps[before - 1 :])]
