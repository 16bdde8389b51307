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

from frhsic_core.arrays import batch_shape, recomputed
from frhsic_core.joint.contraction import from_sums, inverse_root, smallest_own
from frhsic_core.kernels import Gaussian, Kernel

DEFAULT_CHUNK = 2048


def _streamed(z: Tensor, s: Tensor, kernels: list[Kernel], p: Tensor, estimator: str, size: int) -> Tensor:
    """Return HSIC of one pair of samples; with a gradient each block is computed again in the backward pass."""
    dtype = z.dtype
    # HSIC does not depend on an offset. With one of the kernel's values all blocks of a constant sample are zero.
    offsets = [kernel(x[:1], x[-1:]).detach().double() for kernel, x in zip(kernels, (z, s), strict=True)]

    def block(p_left: Tensor, p_right: Tensor, *samples: Tensor) -> tuple[Tensor, ...]:
        diagonal = len(samples) == 2
        grams = []
        for i, (kernel, offset) in enumerate(zip(kernels, offsets, strict=True)):
            gram = kernel(*(x.to(dtype) for x in samples[i::2])).double() - offset
            if diagonal and estimator == "unbiased":
                gram = gram.masked_fill(torch.eye(len(gram), dtype=torch.bool, device=gram.device), 0.0)
            grams.append(gram)
        k, l = grams
        product = p_left @ (k * l) @ p_right
        if diagonal:
            return product, k @ p_right, l @ p_right
        return 2.0 * product, k @ p_right, l @ p_right, p_left @ k, p_left @ l

    # In float64, so that the gradients of the blocks add up in it as well.
    parts = list(zip(p.split(size), z.double().split(size), s.double().split(size), strict=True))
    product = torch.zeros((), dtype=torch.float64, device=z.device)
    k, l = ([torch.zeros_like(part[0]) for part in parts] for _ in range(2))
    for i, j in itertools.combinations_with_replacement(range(len(parts)), 2):
        other = parts[j][1:] if j > i else ()
        found = recomputed(partial(block, parts[i][0], parts[j][0]), *parts[i][1:], *other)
        product = product + found[0]
        k[i] = k[i] + found[1]
        l[i] = l[i] + found[2]
        if j > i:
            k[j] = k[j] + found[3]
            l[j] = l[j] + found[4]
    return from_sums(product, torch.cat(k), torch.cat(l), p, estimator=estimator).to(dtype)


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
    cross = _streamed(z, s, [kernel_z, kernel_s], p, estimator, size)
    if not normalized:
        return cross
    own_z, own_s = (_streamed(x, x, [k] * 2, p, estimator, size) for x, k in ((z, kernel_z), (s, kernel_s)))
    return cross * inverse_root(own_z, own_s, smallest_own(cross, rows=1))


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
