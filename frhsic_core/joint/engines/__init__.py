"""The ways to compute HSIC, in the order in which they are tried.

========  ========================================  =========================  ======  =============
engine    serves                                    time                       memory  gradient
========  ========================================  =========================  ======  =============
thin      Gram matrices of small rank r: smooth     O(n r²)                    O(n)    in a sample
          kernels of a column, categories, a few                                       of one column
          columns; from 768 rows
columns   two columns with distances, from 256      O(n log n), for Laplacian  O(n)    none
          rows; a column with a Laplacian kernel    kernels O(n log² n)
dense     every kernel, up to 4,096 rows; a kernel  O(n²(d + p))               O(n²)   in samples,
          that is learned, for every n                                                 bandwidths
fused     Gaussian kernels, float32 on a GPU        O(n²(d + p))               O(n)    in Z
streamed  every kernel that is not learned          O(n²(d + p))               O(n)    in samples
========  ========================================  =========================  ======  =============

An engine is a module with two functions. ``serves(problem)`` looks at shapes and kernels and costs
next to nothing. ``value(problem)`` computes the statistic ``(...)``, or returns ``None`` where the
numbers say that it cannot: a rank is too large, or a sample leaves the range of float16. The next
engine is then asked. To add an engine, write its module and put it into the list; the test of
agreement runs over the list.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol

from frhsic_core.joint.engines import columns, dense, fused, streamed, thin
from frhsic_core.joint.problem import Problem

if TYPE_CHECKING:
    from torch import Tensor


class Engine(Protocol):
    """One way to compute HSIC."""

    def serves(self, problem: Problem) -> bool:
        """Return whether the engine may be asked."""
        ...

    def value(self, problem: Problem) -> Tensor | None:
        """Return HSIC, ``(...)``, or ``None`` if the engine cannot compute it."""
        ...


ENGINES: tuple[Engine, ...] = (thin, columns, dense, fused, streamed)
WITHOUT_PAIRS: tuple[Engine, ...] = (thin, columns)  # their time is almost linear in the rows


def solve(problem: Problem, engines: Sequence[Engine] = ENGINES) -> Tensor | None:
    """Return HSIC by the first engine that can compute it, or ``None`` if none of them can."""
    for engine in engines:
        if not engine.serves(problem):
            continue
        value = engine.value(problem)
        if value is not None:
            return value
    return None
