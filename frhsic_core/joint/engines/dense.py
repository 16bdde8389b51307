"""Whole Gram matrices: the fastest way for small samples and for stacks of them.

The only way for a learned kernel. O(n²(d + p)) time and O(n²) memory for each batch element.
Differentiable in samples and bandwidths.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from frhsic_core._arrays import DENSE_ROWS, fits_memory, require_memory
from frhsic_core.joint.contraction import dependence
from frhsic_core.joint.problem import Problem

if TYPE_CHECKING:
    from torch import Tensor

_MATRICES = 6  # that are held at the same time
_LEARNED_MATRICES = 12  # with those that autograd keeps


def serves(problem: Problem) -> bool:
    """Return whether whole matrices fit; where a kernel is learned, too many rows are an error."""
    n = problem.rows
    batch = math.prod(problem.batch)
    if problem.is_learned:
        advice = "A learned bandwidth needs whole matrices: pass a random subset of the rows."
        require_memory(problem.z, n, batch=batch, copies=_LEARNED_MATRICES, advice=advice)
        return True
    return n <= DENSE_ROWS and fits_memory(problem.z, _MATRICES * n * n * batch)


def value(problem: Problem) -> Tensor:
    """Return HSIC of all batch elements at once."""
    return dependence(
        problem.z,
        problem.s,
        kernel_z=problem.kernel_z,
        kernel_s=problem.kernel_s,
        estimator=problem.estimator,
        row_weights=problem.weights,
        normalized=problem.normalized,
    )
