"""Bounded memory: when a statistic goes block by block, and whether its matrices fit at all.

Statistics that need whole n × n matrices ask here first, because the alternative is the message of an allocator, or a
process that the system ends without one.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import torch
from torch import Tensor

# Above this many rows two dense float64 Gram matrices pass a quarter of a gigabyte: go block by block instead.
DENSE_ROWS = 4096
# Up to this many numbers (half a gigabyte in float64) nothing is asked: small calls stay as fast as they are.
_SMALL = 2**26


def blocks(n: int, size: int) -> Iterator[tuple[slice, slice, bool]]:
    """Yield rows and columns of the blocks on and above the diagonal of an n × n matrix, and whether one is on it.

    Examples
    --------
    >>> [(rows.start, columns.start, diagonal) for rows, columns, diagonal in blocks(3, 2)]
    [(0, 0, True), (0, 2, False), (2, 2, True)]
    """
    for start in range(0, n, size):
        rows = slice(start, min(start + size, n))
        for other in range(start, n, size):
            yield rows, slice(other, min(other + size, n)), other == start


def free_memory(device: torch.device) -> float:
    """Return the number of bytes that can still be allocated on ``device``; infinity where nothing is known."""
    if device.type == "cuda":
        cached = torch.cuda.memory_reserved(device) - torch.cuda.memory_allocated(device)
        return float(torch.cuda.mem_get_info(device)[0] + cached)
    found = [math.inf]
    # Each source may be missing: the system's own number, and the limit of a container.
    with suppress(OSError, ValueError, StopIteration):
        lines = Path("/proc/meminfo").read_text(encoding="ascii").splitlines()
        available = next(line for line in lines if line.startswith("MemAvailable"))
        found.append(float(available.split()[1]) * 1024)
    with suppress(OSError, ValueError):
        group = Path("/sys/fs/cgroup")
        found.append(float((group / "memory.max").read_text()) - float((group / "memory.current").read_text()))
    return max(0.0, min(found))


def fits_memory(like: Tensor, numbers: int) -> bool:
    """Return whether this many numbers of the dtype and device of ``like`` fit into memory."""
    return numbers <= _SMALL or numbers * like.element_size() <= free_memory(like.device)


def require_memory(
    like: Tensor, rows: int, *, width: int | None = None, batch: int = 1, copies: int, advice: str
) -> None:
    """Raise a MemoryError with advice if ``copies`` matrices ``(batch, rows, width)`` do not fit into memory.

    Parameters
    ----------
    like : Tensor
        Gives the dtype and the device of the matrices.
    rows : int
        Number of rows of the sample.
    width : int, optional
        Number of columns of each matrix; ``None`` stands for ``rows``.
    batch : int
        Number of batch elements.
    copies : int
        Number of matrices that are held at the same time.
    advice : str
        What to do instead, as a sentence.

    Examples
    --------
    >>> require_memory(torch.zeros(3), 10**9, copies=2, advice="Pass fewer rows.")  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    MemoryError: 1,000,000,000 rows need ... GiB, but ... GiB are free: about ... rows fit. Pass fewer rows.
    """
    across = rows if width is None else width
    numbers = copies * batch * rows * across
    if fits_memory(like, numbers):
        return
    size = like.element_size()
    free = free_memory(like.device)
    fit = free / (size * copies * batch)
    most = int(math.sqrt(fit)) if width is None else int(fit / width)
    raise MemoryError(
        f"{rows:,} rows need {numbers * size / 2**30:,.0f} GiB, but {free / 2**30:,.1f} GiB are free: about {most:,} "
        f"rows fit. {advice}"
    )
