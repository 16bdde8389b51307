"""Fused Triton kernels on a GPU (``joint.fused``): exact HSIC of large samples without a matrix.

O(n²(d + p)) time and O(n) memory. Differentiable in Z. Both kernels are Gaussian and the samples
are in float32.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from frhsic_core.joint.problem import Problem, over_pairs

if TYPE_CHECKING:
    from torch import Tensor


def serves(problem: Problem) -> bool:
    """Return whether the fused kernels take these samples; they have no normalized form."""
    if not problem.z.is_cuda or problem.normalized or problem.is_learned:
        return False
    from frhsic_core.joint.fused import can_fuse  # imports Triton

    return can_fuse(problem.z, problem.s, problem.kernel_z, problem.kernel_s)


def value(problem: Problem) -> Tensor | None:
    """Return HSIC, or ``None`` where a sample leaves the range of the kernels."""
    return over_pairs(problem, _of_pair)


def _of_pair(pair: Problem) -> Tensor | None:
    from frhsic_core.joint.fused import fused_hsic

    return fused_hsic(
        pair.z, pair.s, pair.kernel_z, pair.kernel_s, pair.weights, estimator=pair.estimator
    )
