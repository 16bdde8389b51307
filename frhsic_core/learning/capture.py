"""A training step captured in a CUDA graph: one launch instead of a few hundred."""

from __future__ import annotations

import gc
import warnings
from collections.abc import Callable, Hashable, Iterator
from contextlib import contextmanager

import torch

__all__ = ["CaptureWarning", "CapturedSteps"]


class CaptureWarning(UserWarning):
    """A step could not be captured; it runs eagerly, with the same result."""


@contextmanager
def _no_collection() -> Iterator[None]:
    """Collect garbage now and not inside.

    A trainer and its graphs refer to each other, so an old one is freed by the collector. Were that to happen while
    another step is being captured, freeing its graph would break the capture.
    """
    gc.collect()
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


class CapturedSteps:
    """Captures ``step(key)`` once for each key and replays it; where that fails, runs it eagerly and warns once.

    The step may read and write tensors that live as long as this object, and nothing else: no host value, no Python
    randomness, no waiting. The first run for a key is a real, eager step on a side stream: it fills the lazily made
    state of optimiser and libraries, and is not repeated.
    """

    def __init__(self, step: Callable[..., None], device: torch.device) -> None:
        self._step = step
        self._device = device
        self._graphs: dict[Hashable, torch.cuda.CUDAGraph] = {}
        self._seen: set[Hashable] = set()
        self.failed = False
        self._pool = torch.cuda.graph_pool_handle()

    def __call__(self, *key: int | bool) -> None:
        if key in self._graphs:
            self._graphs[key].replay()
        elif self.failed or key not in self._seen:
            self._seen.add(key)
            self._aside(key)
        else:
            self._capture(key)

    def _aside(self, key: tuple[int | bool, ...]) -> None:
        stream = torch.cuda.Stream(self._device)
        stream.wait_stream(torch.cuda.current_stream(self._device))
        with torch.cuda.stream(stream):
            self._step(*key)
        torch.cuda.current_stream(self._device).wait_stream(stream)

    def _capture(self, key: tuple[int | bool, ...]) -> None:
        graph = torch.cuda.CUDAGraph()
        try:
            # Capturing records without running, so the replay below is this key's second step.
            with _no_collection(), torch.cuda.graph(graph, pool=self._pool):
                self._step(*key)
        except RuntimeError as error:
            self.failed = True
            torch.cuda.synchronize(self._device)
            warnings.warn(
                f"the training step could not be captured in a CUDA graph ({str(error).splitlines()[0]}): running it "
                "eagerly, which gives the same result more slowly.",
                CaptureWarning,
                stacklevel=3,
            )
            self._aside(key)
            return
        self._graphs[key] = graph
        graph.replay()
