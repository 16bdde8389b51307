"""The number of CPU threads for a computation, chosen by its size and restored afterwards."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

import torch

# On two cores that other programs used too, two threads were slower than one for every step with fewer than two million
# elements. On idle cores a second thread may pay earlier.
ELEMENTS_PER_THREAD = 1 << 20

_lock = threading.Lock()
_inside = threading.local()
_running = 0  # threads of this process that are inside of a block
_outside = 1  # the setting before the first of them entered


@contextmanager
def cpu_threads(elements: int) -> Iterator[int]:
    """Let torch use one CPU thread inside the block, or more if the work is large; restore the number afterwards.

    Torch divides every operation among its threads, and they wait for each other at its end. For the small tensors of
    a training step the waiting takes longer than the work, by far if another program uses one of the cores.

    The number never rises above the one in force, so ``torch.set_num_threads`` and ``OMP_NUM_THREADS`` are still upper
    limits. Blocks may be nested, may run in several Python threads at a time, and may be left by any exception.

    Parameters
    ----------
    elements : int
        Number of elements of the largest tensor that one operation of the block computes.

    Examples
    --------
    >>> before = torch.get_num_threads()
    >>> with cpu_threads(1000) as count:
    ...     count, torch.get_num_threads()
    (1, 1)
    >>> torch.get_num_threads() == before
    True
    """
    global _running, _outside
    before = torch.get_num_threads()
    depth = getattr(_inside, "depth", 0)
    with _lock:
        if _running == 0:
            _outside = before
        if depth == 0:
            _running += 1
            # A new Python thread starts with the number that another one has set for its own block: look past it.
            before = max(before, _outside)
    count = min(before, max(1, elements // ELEMENTS_PER_THREAD))
    _inside.depth = depth + 1
    torch.set_num_threads(count)
    try:
        yield count
    finally:
        torch.set_num_threads(before)
        _inside.depth = depth
        if depth == 0:
            with _lock:
                _running -= 1
