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

from frhsic_core.arrays import recomputed
from frhsic_core.joint.contraction import from_sums, inverse_root, one_entry, smallest_own
from frhsic_core.kernels import Kernel, with_bandwidths

CHUNK = 2048  # rows of a block


def streamed_hsic(
    z: Tensor,
    s: Tensor,
    kernel_z: Kernel,
    kernel_s: Kernel,
    row_weights: Tensor | None = None,
    *,
    estimator: str = "biased",
) -> Tensor:
    """Return the exact HSIC of one pair of samples in O(n(d + p) + CHUNK²) memory and O(n²(d + p)) time, in float64.

    The result is differentiable in samples, not in bandwidths. Blocks are computed in the dtype of the data and summed
    in float64; with a gradient each block is computed again in the backward pass. The parameters are those of
    :func:`frhsic_core.joint.contraction.dependence`.

    Examples
    --------
    >>> from frhsic_core import Gaussian, hsic
    >>> z = torch.linspace(0, 1, 50, dtype=torch.float64)[:, None]
    >>> kernel = Gaussian(0.3)
    >>> streamed = streamed_hsic(z, z**2, kernel, kernel)
    >>> bool((streamed - hsic(z, z**2, kernel_z=kernel, kernel_s=kernel)).abs() < 1e-15)
    True
    """
    dtype = z.dtype
    weight = 1.0 if estimator == "unbiased" else 1.0 / len(z)
    p = torch.full_like(z[:, 0], weight, dtype=torch.float64) if row_weights is None else row_weights.double()
    kernels = kernel_z, kernel_s
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
    parts = list(zip(p.split(CHUNK), z.double().split(CHUNK), s.double().split(CHUNK), strict=True))
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
    return from_sums(product, torch.cat(k), torch.cat(l), p, estimator=estimator)


OneValue = Callable[[Tensor, Tensor, Any, Any, Tensor | None], Tensor | None]
"""The statistic of one pair of samples with its kernels and row weights; ``None`` if it cannot be computed so."""


def each_element(
    function: OneValue,
    z: Tensor,
    s: Tensor,
    kernel_z: Any,
    kernel_s: Any,
    row_weights: Tensor | None = None,
    *,
    normalized: bool = False,
) -> Tensor | None:
    """Return a statistic of each batch element, ``(...)``, computed one after another; ``None`` if one of them is.

    The normalized form divides by the root of the statistics of each sample with itself, in three times the time.
    """
    batch = one_entry(z, s, kernel_z, kernel_s, row_weights).shape
    p = None if row_weights is None else row_weights.expand(*batch, z.shape[-2])
    found = []
    for i, (a, b, kernel_a, kernel_b) in elements(z, s, kernel_z, kernel_s, batch):
        pairs = [(a, b, kernel_a, kernel_b)]
        if normalized:
            pairs += [(a, a, kernel_a, kernel_a), (b, b, kernel_b, kernel_b)]
        values = []
        for pair in pairs:
            value = function(*pair, None if p is None else p[i])
            if value is None:
                return None
            values.append(value)
        cross, *own = values
        found.append(cross * inverse_root(own[0], own[1], smallest_own(z, rows=1)) if own else cross)
    return torch.stack(found).reshape(batch).to(z.dtype) if found else z.new_zeros(batch)


def elements(
    z: Tensor, s: Tensor, kernel_z: Any, kernel_s: Any, batch: torch.Size
) -> Iterator[tuple[Any, tuple[Tensor, Tensor, Any, Any]]]:
    """Yield the index of each batch element, and its samples and kernels."""
    z, s = z.expand(*batch, *z.shape[-2:]), s.expand(*batch, *s.shape[-2:])

    def own(kernel: Any, i: tuple[int, ...]) -> Any:
        return with_bandwidths(kernel, lambda b: b.expand(batch)[i] if isinstance(b, Tensor) and b.ndim else b)

    for i in itertools.product(*map(range, batch)):
        yield i, (z[i], s[i], own(kernel_z, i), own(kernel_s, i))
