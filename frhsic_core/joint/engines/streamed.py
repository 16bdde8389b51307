"""Blocks of the Gram matrices, one after another: exact for every kernel, in little memory.

With row weights p (1/n each unless given), k_i = Σ_j p_j K_ij and l_i alike,

    HSIC_b = Σ_ij p_i p_j K_ij L_ij + (Σ_i p_i k_i)(Σ_i p_i l_i) − 2 Σ_i p_i k_i l_i.

The three sums cancel, so they are accumulated in float64 whatever the dtype of the data. Both
matrices are symmetric: only blocks on and above the diagonal are computed. O(n²(d + p)) time and
O(n(d + p) + CHUNK²) memory. Differentiable in samples, not in bandwidths: with a gradient each
block is computed again in the backward pass.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

from frhsic_core._arrays import recomputed
from frhsic_core.backend import xp
from frhsic_core.joint.contraction import from_sums
from frhsic_core.joint.engines import fused
from frhsic_core.joint.problem import Problem, over_pairs

if TYPE_CHECKING:
    from torch import Tensor

CHUNK = 2048  # rows of a block


def serves(problem: Problem) -> bool:
    """Return whether no kernel is learned."""
    return not problem.is_learned


def value(problem: Problem) -> Tensor:
    """Return HSIC of each batch element."""
    if fused.serves(problem):
        # The fused kernels were asked first and refused: a kernel far from the scale of the
        # sample needs more digits than they have.
        problem = problem.in_float64()
    found = over_pairs(problem, of_pair)
    assert found is not None
    return found


def of_pair(pair: Problem) -> Tensor:
    """Return HSIC of one pair of samples in float64.

    Examples
    --------
    >>> import torch
    >>> from frhsic_core import Gaussian, hsic
    >>> z = torch.linspace(0, 1, 50, dtype=torch.float64)[:, None]
    >>> kernel = Gaussian(0.3)
    >>> streamed = of_pair(Problem(z, z**2, kernel, kernel))
    >>> bool((streamed - hsic(z, z**2, kernel_z=kernel, kernel_s=kernel)).abs() < 1e-15)
    True
    """
    p = _probabilities(pair)
    sums_of_block = _sums_of_blocks(pair)
    # In float64, so that the gradients of the blocks add up in it as well.
    parts_z = pair.z.double().split(CHUNK)
    parts_s = pair.s.double().split(CHUNK)
    parts_p = p.split(CHUNK)
    product = p.new_zeros(())
    sums = [xp.zeros_like(part).expand(2, -1) for part in parts_p]
    for i, j in itertools.combinations_with_replacement(range(len(parts_p)), 2):
        samples = [parts_z[i], parts_s[i]]
        if j > i:
            samples += [parts_z[j], parts_s[j]]
        weighted = partial(sums_of_block, parts_p[i], parts_p[j])
        more, right, left = recomputed(weighted, *samples)
        product = product + more
        sums[i] = sums[i] + right
        if j > i:
            sums[j] = sums[j] + left
    k, l = xp.cat(sums, -1).unbind()
    return from_sums(product, k, l, p, estimator=pair.estimator)


def _probabilities(pair: Problem) -> Tensor:
    """Return the weights of the rows in float64: probabilities, or ones for the unbiased form."""
    if pair.weights is not None:
        return pair.weights.double()
    weight = 1.0 if pair.estimator == "unbiased" else 1.0 / pair.rows
    return xp.full_like(pair.z[:, 0].detach().double(), weight)


def _sums_of_blocks(pair: Problem) -> Callable[..., tuple[Tensor, Tensor, Tensor]]:
    """Return the function of the rows of a block that gives its sums.

    It takes the weights of the rows on the left and on the right, then their Z and S; a block on
    the diagonal has one Z and one S. A block is computed in the dtype of the data and summed in
    float64.
    """
    dtype = pair.z.dtype
    # HSIC does not depend on an offset. With one of the kernel's values all blocks of a constant
    # sample are zero.
    offset_z = pair.kernel_z(pair.z[:1], pair.z[-1:]).detach().double()
    offset_s = pair.kernel_s(pair.s[:1], pair.s[-1:]).detach().double()

    def sums(p_left: Tensor, p_right: Tensor, *samples: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        rows_z = [x.to(dtype) for x in samples[0::2]]
        rows_s = [x.to(dtype) for x in samples[1::2]]
        k = pair.kernel_z(*rows_z).double() - offset_z
        l = pair.kernel_s(*rows_s).double() - offset_s
        on_the_diagonal = len(samples) == 2
        if on_the_diagonal and pair.estimator == "unbiased":
            own = xp.own_entries(len(k), like=k)
            k = k.masked_fill(own, 0.0)
            l = l.masked_fill(own, 0.0)
        times = 1.0 if on_the_diagonal else 2.0
        product = p_left @ (k * l) @ p_right * times
        right = xp.stack([k @ p_right, l @ p_right])
        left = xp.stack([p_left @ k, p_left @ l])
        return product, right, left

    return sums
