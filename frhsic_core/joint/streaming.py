"""Exact HSIC in O(n) memory: blocks of the two Gram matrices, visited once forward and once backward.

With row weights p (1/n each unless given), k_i = Σ_j p_j K_ij and l_i alike,

    HSIC_b = Σ_ij p_i p_j K_ij L_ij + (Σ_i p_i k_i)(Σ_i p_i l_i) − 2 Σ_i p_i k_i l_i.

The three sums cancel, so they are accumulated in float64 whatever the dtype of the data. Both matrices are symmetric:
only blocks on and above the diagonal are computed. The backward pass recomputes each block instead of storing it.
"""

from __future__ import annotations

import itertools
from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from frhsic_core.joint.contraction import inverse_root, require_estimator, smallest_own
from frhsic_core.kernels import Kernel
from frhsic_core.memory import blocks

DEFAULT_CHUNK = 2048


def gram_block(kernel: Kernel, x: Tensor, rows: slice, columns: slice, *, hollow: bool) -> Tensor:
    """Return one block of a Gram matrix; ``hollow`` sets its diagonal to zero, for the unbiased form."""
    on_diagonal = rows == columns
    gram = kernel(x[rows]) if on_diagonal else kernel(x[rows], x[columns])
    if hollow and on_diagonal:
        gram = gram.masked_fill(torch.eye(gram.shape[-1], dtype=torch.bool, device=gram.device), 0.0)
    return gram


class _Streamed(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, z: Tensor, s: Tensor, p: Tensor, kernel_z: Kernel, kernel_s: Kernel, estimator: str, size: int
    ) -> Tensor:
        hollow = estimator == "unbiased"
        n = z.shape[0]
        k = torch.zeros(n, dtype=torch.float64, device=z.device)
        l = torch.zeros_like(k)
        product = k.new_zeros(())
        for rows, columns, diagonal in blocks(n, size):
            gram_z = gram_block(kernel_z, z, rows, columns, hollow=hollow).double()
            gram_s = gram_block(kernel_s, s, rows, columns, hollow=hollow).double()
            k[rows] += gram_z @ p[columns]
            l[rows] += gram_s @ p[columns]
            if not diagonal:
                k[columns] += gram_z.mT @ p[rows]
                l[columns] += gram_s.mT @ p[rows]
            product += (1 if diagonal else 2) * (p[rows] @ gram_z.mul_(gram_s) @ p[columns])
        ctx.save_for_backward(z, s, p, k, l)
        ctx.settings = (kernel_z, kernel_s, estimator, size)
        total_k, total_l, cross = p @ k, p @ l, p @ (k * l)
        if hollow:
            count = p.sum()
            value = product + total_k * total_l / ((count - 1) * (count - 2)) - 2 * cross / (count - 2)
            value = value / (count * (count - 3))
        else:
            value = product + total_k * total_l - 2 * cross
        return value.to(z.dtype)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        z, s, p, k, l = ctx.saved_tensors
        kernel_z, kernel_s, estimator, size = ctx.settings
        grad_z = _gradient(z, kernel_z, s, kernel_s, l, p, estimator, size) if ctx.needs_input_grad[0] else None
        grad_s = _gradient(s, kernel_s, z, kernel_z, k, p, estimator, size) if ctx.needs_input_grad[1] else None
        return (
            None if grad_z is None else (grad * grad_z).to(z.dtype),
            None if grad_s is None else (grad * grad_s).to(s.dtype),
            *[None] * 5,
        )


def _gradient(
    x: Tensor, kernel: Kernel, other: Tensor, other_kernel: Kernel, row: Tensor, p: Tensor, estimator: str, size: int
) -> Tensor:
    """Return the gradient in ``x`` of Σ_ij k(x_i, x_j) A_ij, block by block; A comes from the other Gram matrix."""
    hollow = estimator == "unbiased"
    total = p @ row
    if hollow:
        count = p.sum()
        row, total = row / (count - 2), total / ((count - 1) * (count - 2))
        scale = 1.0 / (count * (count - 3))
    else:
        scale = torch.ones_like(total)
    result = torch.zeros_like(x, dtype=torch.float64)
    for rows, columns, diagonal in blocks(x.shape[0], size):
        gram = gram_block(other_kernel, other, rows, columns, hollow=hollow).double()
        weights = (gram - row[rows].unsqueeze(-1) - row[columns] + total) * p[rows].unsqueeze(-1) * p[columns]
        weights = (weights * ((1 if diagonal else 2) * scale)).to(x.dtype)
        with torch.enable_grad():
            left = x[rows].detach().requires_grad_()
            right = left if diagonal else x[columns].detach().requires_grad_()
            own = kernel(left) if diagonal else kernel(left, right)
            if hollow and diagonal:
                own = own.masked_fill(torch.eye(own.shape[-1], dtype=torch.bool, device=own.device), 0.0)
            inputs = (left,) if diagonal else (left, right)
            grads = torch.autograd.grad((own * weights).sum(), inputs)
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
    chunk_size: int | None = None,
) -> Tensor:
    """Return the exact HSIC of any number of rows in O(n·(d + p) + chunk²) memory and O(n²(d + p)) time.

    The result is differentiable. Blocks are computed in the dtype of the data and summed in float64.
    :func:`frhsic_core.hsic` calls this for more than 4,096 rows. Batch elements are computed one after another.

    On a GPU with Triton, Gaussian, Laplacian and inverse multiquadric kernels on up to 256 columns use fused kernels
    (:mod:`frhsic_core.joint.fused`), unless ``chunk_size`` is given.

    Parameters
    ----------
    z, s : Tensor
        ``(..., n, d)`` and ``(..., n, p)``.
    kernel_z, kernel_s : Kernel
        Kernels with one bandwidth, or with one per batch element; with two distances the result is dCov².
    estimator : {"biased", "unbiased", "normalized"}
        As in :func:`frhsic_core.hsic`; the normalized form exists in the fused kernels only.
    row_weights : Tensor, optional
        ``(..., n)``: probabilities for the biased form, a 0/1 mask for the unbiased one.
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
    size = DEFAULT_CHUNK if chunk_size is None else int(chunk_size)
    if size < 1:
        raise ValueError(f"chunk_size is {chunk_size}: a block needs at least one row.")
    batch = torch.broadcast_shapes(z.shape[:-2], s.shape[:-2])
    n = z.shape[-2]
    if chunk_size is None and fused_form(z, s, kernel_z, kernel_s):
        return _fused(z, s, batch, kernel_z, kernel_s, estimator, row_weights)
    require_estimator(estimator)
    if row_weights is None:
        uniform = 1.0 if estimator == "unbiased" else 1.0 / n
        row_weights = torch.full((n,), uniform, dtype=torch.float64, device=z.device)
    p = row_weights.to(torch.float64).expand(*batch, n)
    if not batch:
        return _Streamed.apply(z, s, p, kernel_z, kernel_s, estimator, size)
    z, s = z.expand(*batch, *z.shape[-2:]), s.expand(*batch, *s.shape[-2:])
    values = [
        _Streamed.apply(z[i], s[i], p[i], kernel_at(kernel_z, i, batch), kernel_at(kernel_s, i, batch), estimator, size)
        for i in itertools.product(*map(range, batch))
    ]
    return torch.stack(values).reshape(batch) if values else z.new_zeros(batch)


def streaming_correlation(
    z: Tensor,
    s: Tensor,
    *,
    kernel_z: Kernel,
    kernel_s: Kernel,
    estimator: str = "biased",
    row_weights: Tensor | None = None,
    chunk_size: int | None = None,
) -> Tensor:
    """Return the normalized form from three passes of :func:`streaming_hsic`; zero if either sample is constant."""

    def streamed(a: Tensor, b: Tensor, kernel_a: Kernel, kernel_b: Kernel) -> Tensor:
        return streaming_hsic(
            a, b, kernel_z=kernel_a, kernel_s=kernel_b, estimator=estimator, row_weights=row_weights,
            chunk_size=chunk_size,
        )  # fmt: skip

    cross = streamed(z, s, kernel_z, kernel_s)
    own_z = streamed(z, z, kernel_z, kernel_z)
    own_s = streamed(s, s, kernel_s, kernel_s)
    return cross * inverse_root(own_z, own_s, smallest_own(cross, rows=1))


def fused_form(z: Tensor, s: Tensor, kernel_z: Kernel, kernel_s: Kernel) -> bool:
    """Return whether the fused kernels compute this; they are imported only where there is a GPU."""
    if not z.is_cuda:
        return False
    from frhsic_core.joint.fused import can_fuse

    return can_fuse(z, s, kernel_z, kernel_s)


def _fused(
    z: Tensor,
    s: Tensor,
    batch: torch.Size,
    kernel_z: Kernel,
    kernel_s: Kernel,
    form: str,
    row_weights: Tensor | None,
) -> Tensor:
    from frhsic_core.joint.fused import fused_hsic

    z = z.expand(*batch, *z.shape[-2:])
    s = s.expand(*batch, *s.shape[-2:])
    p = None if row_weights is None else row_weights.expand(*batch, z.shape[-2])
    values = [
        fused_hsic(
            z[i], s[i], kernel_z=kernel_at(kernel_z, i, batch), kernel_s=kernel_at(kernel_s, i, batch), form=form,
            row_weights=None if p is None else p[i],
        )
        for i in itertools.product(*map(range, batch))
    ]  # fmt: skip
    return torch.stack(values).reshape(batch) if values else z.new_zeros(batch)


def kernel_at(kernel: Kernel, index: tuple[int, ...], batch: torch.Size) -> Kernel:
    """Return the kernel of one batch element: bandwidth tensors are indexed, everything else is shared."""
    factors = getattr(kernel, "factors", None)
    if factors is not None:
        return type(kernel)([kernel_at(factor, index, batch) for factor in factors])  # type: ignore[call-arg]
    bandwidth = getattr(kernel, "bandwidth", None)
    if isinstance(bandwidth, Tensor) and bandwidth.ndim > 0:
        return type(kernel)(bandwidth.expand(batch)[index])  # type: ignore[call-arg]
    return kernel
