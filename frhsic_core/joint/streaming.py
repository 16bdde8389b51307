"""Exact HSIC in O(n) memory: blocks of the two Gram matrices, visited once forward and once backward.

With row weights p (1/n each unless given), k_i = Σ_j p_j K_ij and l_i alike,

    HSIC_b = Σ_ij p_i p_j K_ij L_ij + (Σ_i p_i k_i)(Σ_i p_i l_i) − 2 Σ_i p_i k_i l_i.

The three sums cancel, so they are accumulated in float64 whatever the dtype of the data. Both matrices are symmetric:
only blocks on and above the diagonal are computed. The backward pass recomputes each block instead of storing it.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from frhsic_core.arrays import batch_shape
from frhsic_core.joint.contraction import (
    dependence,
    from_sums,
    inverse_root,
    require_estimator,
    smallest_own,
    sum_factors,
)
from frhsic_core.kernels import Gaussian, Kernel
from frhsic_core.memory import DENSE_ROWS, blocks, fits_memory

DEFAULT_CHUNK = 2048


def gram_block(
    kernel: Kernel, x: Tensor, rows: slice, columns: slice, *, hollow: bool = False, offset: Tensor | float = 0.0
) -> Tensor:
    """Return one block of a Gram matrix in float64, minus ``offset``; ``hollow`` sets its diagonal to zero.

    HSIC does not depend on the offset. With one of the kernel's values all blocks of a constant sample are zero.
    """
    on_diagonal = rows == columns
    gram = (kernel(x[rows]) if on_diagonal else kernel(x[rows], x[columns])).double() - offset
    if hollow and on_diagonal:
        gram = gram.masked_fill(torch.eye(gram.shape[-1], dtype=torch.bool, device=gram.device), 0.0)
    return gram


class _Streamed(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, z: Tensor, s: Tensor, p: Tensor, kernel_z: Kernel, kernel_s: Kernel, estimator: str, size: int
    ) -> Tensor:
        hollow = estimator == "unbiased"
        offsets = [kernel(x[:1], x[-1:]).double() for kernel, x in ((kernel_z, z), (kernel_s, s))]
        k, l = torch.zeros(2, len(z), dtype=torch.float64, device=z.device)
        product = k.new_zeros(())
        for rows, columns, diagonal in blocks(len(z), size):
            gram_z = gram_block(kernel_z, z, rows, columns, hollow=hollow, offset=offsets[0])
            gram_s = gram_block(kernel_s, s, rows, columns, hollow=hollow, offset=offsets[1])
            k[rows] += gram_z @ p[columns]
            l[rows] += gram_s @ p[columns]
            if not diagonal:
                k[columns] += gram_z.mT @ p[rows]
                l[columns] += gram_s.mT @ p[rows]
            product += (1 if diagonal else 2) * (p[rows] @ gram_z.mul_(gram_s) @ p[columns])
        ctx.save_for_backward(z, s, p, k, l)
        ctx.settings = (kernel_z, kernel_s, estimator, size)
        ctx.offsets = offsets
        return from_sums(product, k, l, p, estimator=estimator).to(z.dtype)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        z, s, p, k, l = ctx.saved_tensors
        kernel_z, kernel_s, *settings = ctx.settings
        offset_z, offset_s = ctx.offsets
        sides = ((z, kernel_z, s, kernel_s, l, offset_s), (s, kernel_s, z, kernel_z, k, offset_z))
        found = (
            (grad * _gradient(*side, p, *settings)).to(z.dtype) if needed else None
            for side, needed in zip(sides, ctx.needs_input_grad, strict=False)
        )
        return (*found, *[None] * 5)


def _gradient(
    x: Tensor,
    kernel: Kernel,
    other: Tensor,
    other_kernel: Kernel,
    row: Tensor,
    offset: Tensor,
    p: Tensor,
    estimator: str,
    size: int,
) -> Tensor:
    """Return the gradient in ``x`` of Σ_ij k(x_i, x_j) A_ij, block by block; A comes from the other Gram matrix."""
    hollow = estimator == "unbiased"
    share, both, scale = sum_factors(p.sum(), estimator)
    row, total = share * row, both * (p @ row)
    result = torch.zeros_like(x, dtype=torch.float64)
    for rows, columns, diagonal in blocks(len(x), size):
        gram = gram_block(other_kernel, other, rows, columns, hollow=hollow, offset=offset)
        weights = (gram - row[rows].unsqueeze(-1) - row[columns] + total) * p[rows].unsqueeze(-1) * p[columns]
        weights = (weights * ((1 if diagonal else 2) * scale)).to(x.dtype)
        if hollow and diagonal:
            weights.fill_diagonal_(0.0)
        with torch.enable_grad():
            left = x[rows].detach().requires_grad_()
            right = left if diagonal else x[columns].detach().requires_grad_()
            own = kernel(left) if diagonal else kernel(left, right)
            grads = torch.autograd.grad((own * weights).sum(), (left,) if diagonal else (left, right))
        result[rows] += grads[0]
        if not diagonal:
            result[columns] += grads[1]
    return result


def streaming_hsic(
    z: Tensor,
    s: Tensor,
    *,
    kernel_z: Kernel,
    kernel_s: Kernel,
    estimator: str = "biased",
    row_weights: Tensor | None = None,
    normalized: bool = False,
    chunk_size: int | None = None,
) -> Tensor:
    """Return the exact HSIC of any number of rows in O(n·(d + p) + chunk²) memory and O(n²(d + p)) time.

    The result is differentiable. Blocks are computed in the dtype of the data and summed in float64. Batch elements are
    computed one after another. On a GPU with Triton, Gaussian kernels in float32 use fused kernels
    (:mod:`frhsic_core.joint.fused`), unless ``chunk_size`` is given.

    Parameters
    ----------
    z, s, kernel_z, kernel_s, estimator, row_weights, normalized
        As in :func:`frhsic_core.joint.contraction.dependence`.
    chunk_size : int, optional
        Number of rows in a block; the default is 2,048.

    Examples
    --------
    >>> from frhsic_core import Gaussian, hsic
    >>> z = torch.linspace(0, 1, 50, dtype=torch.float64)[:, None]
    >>> kernel = Gaussian(0.3)
    >>> streamed = streaming_hsic(z, z**2, kernel_z=kernel, kernel_s=kernel, chunk_size=7)
    >>> bool((streamed - hsic(z, z**2, kernel_z=kernel, kernel_s=kernel)).abs() < 1e-15)
    True
    """
    require_estimator(estimator)
    streamed = partial(_one, estimator=estimator, normalized=normalized, size=chunk_size or DEFAULT_CHUNK)

    def fused(a: Tensor, b: Tensor, kernel_a: Gaussian, kernel_b: Gaussian, p: Tensor | None) -> Tensor:
        from frhsic_core.joint.fused import fused_hsic

        options: dict[str, Any] = {"estimator": estimator, "row_weights": p, "normalized": normalized}
        value = fused_hsic(a, b, kernel_z=kernel_a, kernel_s=kernel_b, **options)
        # A kernel far from the scale of the sample needs more digits than the fused kernels have.
        return streamed(a.double(), b.double(), kernel_a, kernel_b, p).to(a.dtype) if value is None else value

    fuses = chunk_size is None and fused_form(z, s, kernel_z, kernel_s)
    found = each_element(fused if fuses else streamed, z, s, kernel_z, kernel_s, row_weights)
    assert found is not None
    return found


def _one(
    z: Tensor,
    s: Tensor,
    kernel_z: Kernel,
    kernel_s: Kernel,
    p: Tensor | None,
    *,
    estimator: str,
    normalized: bool,
    size: int,
) -> Tensor:
    """Return HSIC of one pair of samples; the normalized form takes three passes."""
    n = len(z)
    if p is None:
        p = torch.full((n,), 1.0 if estimator == "unbiased" else 1.0 / n, dtype=torch.float64, device=z.device)
    p = p.to(torch.float64)
    cross: Tensor = _Streamed.apply(z, s, p, kernel_z, kernel_s, estimator, size)
    if not normalized:
        return cross
    own_z, own_s = (
        _Streamed.apply(x, x, p, kernel, kernel, estimator, size) for x, kernel in ((z, kernel_z), (s, kernel_s))
    )
    return cross * inverse_root(own_z, own_s, smallest_own(cross, rows=1))


def all_pairs(z: Tensor, s: Tensor, **options: Any) -> Tensor:
    """Return :func:`frhsic_core.joint.contraction.dependence`, block by block where whole matrices are too large."""
    n = z.shape[-2]
    dense = n <= DENSE_ROWS and fits_memory(z, 6 * n * n * batch_shape(z, s).numel())
    return (dependence if dense else streaming_hsic)(z, s, **options)


def fused_form(z: Tensor, s: Tensor, kernel_z: Kernel, kernel_s: Kernel) -> bool:
    """Return whether the fused kernels compute this; they are imported only where there is a GPU."""
    if not z.is_cuda:
        return False
    from frhsic_core.joint.fused import can_fuse

    return can_fuse(z, s, kernel_z, kernel_s)


OneValue = Callable[[Tensor, Tensor, Any, Any, Tensor | None], Tensor | None]
"""The statistic of one pair of samples with its kernels and row weights; ``None`` if it cannot be computed so."""


def each_element(
    function: OneValue, z: Tensor, s: Tensor, kernel_z: Any, kernel_s: Any, row_weights: Tensor | None = None
) -> Tensor | None:
    """Return a statistic of each batch element, ``(...)``, computed one after another; ``None`` if one of them is."""
    batch = batch_shape(z, s)
    p = None if row_weights is None else row_weights.expand(*batch, z.shape[-2])
    values = []
    for i, sample in elements(z, s, kernel_z, kernel_s):
        value = function(*sample, None if p is None else p[i])
        if value is None:
            return None
        values.append(value)
    return torch.stack(values).reshape(batch) if values else z.new_zeros(batch)


def elements(
    z: Tensor, s: Tensor, kernel_z: Any, kernel_s: Any
) -> Iterator[tuple[Any, tuple[Tensor, Tensor, Any, Any]]]:
    """Yield the index of each batch element, and its samples and kernels."""
    batch = batch_shape(z, s)
    z, s = z.expand(*batch, *z.shape[-2:]), s.expand(*batch, *s.shape[-2:])
    for i in itertools.product(*map(range, batch)):
        yield i, (z[i], s[i], kernel_at(kernel_z, i, batch), kernel_at(kernel_s, i, batch))


def kernel_at(kernel: Kernel, index: tuple[int, ...], batch: torch.Size) -> Kernel:
    """Return the kernel of one batch element: bandwidth tensors are indexed, everything else is shared."""
    factors = getattr(kernel, "factors", None)
    if factors is not None:
        return type(kernel)([kernel_at(factor, index, batch) for factor in factors])  # type: ignore[call-arg]
    bandwidth = getattr(kernel, "bandwidth", None)
    if isinstance(bandwidth, Tensor) and bandwidth.ndim > 0:
        return type(kernel)(bandwidth.expand(batch)[index])  # type: ignore[call-arg]
    return kernel
