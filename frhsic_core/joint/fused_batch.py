"""HSIC of a batch of small samples on a GPU, as a training step needs it: a few Triton kernels, no n × n matrix.

The dense computation writes and reads about twenty matrices of n × n entries for each model of a stack. Here each tile
of both Gram matrices is computed in registers three times: for the row means, for the products of the centered
matrices, and for the gradient. Centering comes before multiplying, as in the dense form, so that nothing cancels and
the penalty of a constant sample is zero.

Rows are stored in units of the bandwidth as two halves of float16, as in :mod:`frhsic_core.joint.fused`, and three
products of the halves round as float32 does. Three columns of half norms and three of a constant stand beside the rows,
so that a product of the rows is the exponent of the kernel. A row may be up to a thousand bandwidths from the mean.
"""

from __future__ import annotations

import functools
import math

import torch
from torch import Tensor

from frhsic_core.joint.contraction import Frame, GradientTerm, smallest_own

try:
    import triton
    import triton.language as tl
except ImportError:  # no Triton: the dense computation is used instead
    triton = None

LARGEST_DIMENSION = 122
LARGEST_SAMPLE = 1024
_TILE = 64
_ROOT_LOG2_E = math.sqrt(math.log2(math.e))

if triton is not None:

    @triton.jit
    def _split_kernel(u, sigma, high, low, n, stored, d, D: tl.constexpr, B: tl.constexpr):
        """Write the halves of the rows in units of the bandwidth; rows beyond n are far from everything."""
        model = tl.program_id(0)
        rows = tl.program_id(1) * B + tl.arange(0, B)
        width = tl.arange(0, D)
        inside = (rows < n)[:, None] & (width < d)[None, :]
        tile = tl.load(u + (model * n + rows)[:, None] * d + width[None, :], mask=inside, other=0.0).to(tl.float32)
        tile = tile * (1.2011224087864498 / tl.load(sigma + model))
        tile = tl.minimum(tl.maximum(tile, -60000.0), 60000.0)
        first = tile.to(tl.float16)
        second = (tile - first.to(tl.float32)).to(tl.float16)
        kept = first.to(tl.float32) + second.to(tl.float32)
        # A constant 8 keeps half norms up to half a million in the range of float16.
        norm = tl.minimum(tl.sum(kept * kept, 1) * 0.0625, 60000.0)
        norm = tl.where(rows < n, norm, 60000.0)
        for piece in tl.static_range(3):
            part = norm.to(tl.float16)
            norm -= part.to(tl.float32)
            first = tl.where((width == d + piece)[None, :], -part[:, None], first)
        constant = (width >= d + 3) & (width < d + 6)
        first = tl.where(constant[None, :], tl.full([B, D], 8.0, tl.float16), first)
        at = (model * stored + rows)[:, None] * D + width[None, :]
        tl.store(high + at, first)
        tl.store(low + at, second)

    @triton.jit
    def _load_rows(high, low, model, rows, stored, d, D: tl.constexpr, LEFT: tl.constexpr):
        """Return both halves of some rows; in the left factor half norms and constants change places."""
        width = tl.arange(0, D)
        if LEFT:
            first = (width >= d) & (width < d + 3)
            second = (width >= d + 3) & (width < d + 6)
            width = tl.where(first, width + 3, tl.where(second, width - 3, width))
        at = (model * stored + rows)[:, None] * D + width[None, :]
        return tl.load(high + at), tl.load(low + at)

    @triton.jit
    def _attribute_gram(t, stride, model, rows, cols, n, P: tl.constexpr, squared):
        """Return a tile of L = 2^(−|t − t'|²/2), zero beyond n; ``squared`` is a tile of zeros."""
        for c in tl.static_range(P):
            left = tl.load(t + (model * n + rows) * stride + c, mask=rows < n, other=0.0)
            right = tl.load(t + (model * n + cols) * stride + c, mask=cols < n, other=1e18)
            difference = left[:, None] - right[None, :]
            squared += difference * difference
        return tl.exp2(-0.5 * squared)

    @triton.jit
    def _grams(i_high, i_low, j_high, j_low, t, stride, model, rows, cols, n, P: tl.constexpr):
        """Return the tiles of K and L."""
        x = tl.dot(i_high, tl.trans(j_high))
        x = tl.dot(i_high, tl.trans(j_low), x)
        x = tl.dot(i_low, tl.trans(j_high), x)
        k = tl.exp2(tl.minimum(x, 0.0))
        return k, _attribute_gram(t, stride, model, rows, cols, n, P, tl.zeros_like(k))

    @triton.jit
    def _means_kernel(
        high, low, t, means, n, stored, d, stride, D: tl.constexpr, P: tl.constexpr, B: tl.constexpr,
    ):  # fmt: skip
        """Write the row means of K and L, ``(models, 2, n)``."""
        model = tl.program_id(0)
        rows = tl.program_id(1) * B + tl.arange(0, B)
        i_high, i_low = _load_rows(high, low, model, rows, stored, d, D, True)
        k_sum = tl.zeros([B, B], dtype=tl.float32)
        both = tl.zeros([B, B], dtype=tl.float32)
        for start in range(0, n, B):
            cols = start + tl.arange(0, B)
            j_high, j_low = _load_rows(high, low, model, cols, stored, d, D, False)
            k, l = _grams(i_high, i_low, j_high, j_low, t, stride, model, rows, cols, n, P)
            k_sum += k
            both += k + l  # see `_sums_kernel` of the module for large samples
        at = means + model * 2 * n + rows
        tl.store(at, tl.sum(k_sum, 1) / n, mask=rows < n)
        tl.store(at + n, tl.sum(both - k_sum, 1) / n, mask=rows < n)

    @triton.jit
    def _grand_means(means, model, n, N: tl.constexpr):
        every = tl.arange(0, N)
        k = tl.load(means + model * 2 * n + every, mask=every < n, other=0.0)
        l = tl.load(means + model * 2 * n + n + every, mask=every < n, other=0.0)
        return tl.sum(k, 0) / n, tl.sum(l, 0) / n

    @triton.jit
    def _centered(k, l, means, model, rows, cols, n, k_mean, l_mean):
        """Return tiles of HKH and HLH, zero beyond n."""
        at = means + model * 2 * n
        i_k = tl.load(at + rows, mask=rows < n, other=0.0) - k_mean
        j_k = tl.load(at + cols, mask=cols < n, other=0.0)
        i_l = tl.load(at + n + rows, mask=rows < n, other=0.0) - l_mean
        j_l = tl.load(at + n + cols, mask=cols < n, other=0.0)
        inside = (cols < n)[None, :]
        k = tl.where(inside, k - i_k[:, None] - j_k[None, :], 0.0)
        return k, tl.where(inside, l - i_l[:, None] - j_l[None, :], 0.0)

    @triton.jit
    def _products_kernel(
        high, low, t, means, products, n, stored, d, stride,
        D: tl.constexpr, P: tl.constexpr, B: tl.constexpr, N: tl.constexpr,
    ):  # fmt: skip
        """Write, for each row, the sums of HKH∘HLH, HKH∘HKH and HLH∘HLH, ``(models, 3, n)``."""
        model = tl.program_id(0)
        rows = tl.program_id(1) * B + tl.arange(0, B)
        k_mean, l_mean = _grand_means(means, model, n, N)
        i_high, i_low = _load_rows(high, low, model, rows, stored, d, D, True)
        cross = tl.zeros([B, B], dtype=tl.float32)
        own_z = tl.zeros([B, B], dtype=tl.float32)
        own_s = tl.zeros([B, B], dtype=tl.float32)
        for start in range(0, n, B):
            cols = start + tl.arange(0, B)
            j_high, j_low = _load_rows(high, low, model, cols, stored, d, D, False)
            k, l = _grams(i_high, i_low, j_high, j_low, t, stride, model, rows, cols, n, P)
            k, l = _centered(k, l, means, model, rows, cols, n, k_mean, l_mean)
            cross += k * l
            own_z += k * k
            own_s += l * l
        at = products + model * 3 * n + rows
        tl.store(at, tl.sum(cross, 1), mask=rows < n)
        tl.store(at + n, tl.sum(own_z, 1), mask=rows < n)
        tl.store(at + 2 * n, tl.sum(own_s, 1), mask=rows < n)

    @triton.jit
    def _total(products, model, which, n, N: tl.constexpr):
        every = tl.arange(0, N)
        part = tl.load(products + model * 3 * n + which * n + every, mask=every < n, other=0.0)
        return tl.sum(part.to(tl.float64), 0)

    @triton.jit
    def _gradient_kernel(
        high, low, t, means, products, value, own, direction, n, stored, d, stride, smallest,
        NORMALIZED: tl.constexpr, D: tl.constexpr, P: tl.constexpr, B: tl.constexpr, N: tl.constexpr,
    ):  # fmt: skip
        """Write ⟨HKH, HLH⟩ or its normalized form, and Σ_j W_ij (u_j − u_i) with W = K ∘ ∂value/∂K for each row."""
        model = tl.program_id(0)
        rows = tl.program_id(1) * B + tl.arange(0, B)
        cross = _total(products, model, 0, n, N)
        own_s = _total(products, model, 2, n, N)
        if NORMALIZED:
            own_z = _total(products, model, 1, n, N)
            varies = (own_z > smallest) & (own_s > smallest)
            own_z = tl.maximum(own_z, smallest)
            root = tl.where(varies, 1.0 / tl.sqrt(own_z * tl.maximum(own_s, smallest)), 0.0)
            # The gradient in K is root·(HLH − share·HKH); both terms are of size one, as float16 needs it.
            share = (cross / own_z).to(tl.float32)
            result = cross * root
            outer = root.to(tl.float32)
        else:
            result = cross
            outer = 1.0
        if tl.program_id(1) == 0:
            tl.store(value + model, result.to(tl.float32))
            tl.store(own + model, own_s.to(tl.float32))
        k_mean, l_mean = _grand_means(means, model, n, N)
        i_high, i_low = _load_rows(high, low, model, rows, stored, d, D, True)
        pulled = tl.zeros([B, D], dtype=tl.float32)
        mass = tl.zeros([B, B], dtype=tl.float32)
        for start in range(0, n, B):
            cols = start + tl.arange(0, B)
            j_high, j_low = _load_rows(high, low, model, cols, stored, d, D, False)
            k, l = _grams(i_high, i_low, j_high, j_low, t, stride, model, rows, cols, n, P)
            k_centered, w = _centered(k, l, means, model, rows, cols, n, k_mean, l_mean)
            if NORMALIZED:
                w -= k_centered * share
            w *= k
            mass += w
            w_high = w.to(tl.float16)
            w_low = (w - w_high.to(tl.float32)).to(tl.float16)
            pulled = tl.dot(w_high, j_high, pulled)
            pulled = tl.dot(w_high, j_low, pulled)
            pulled = tl.dot(w_low, j_high, pulled)
        i_high, i_low = _load_rows(high, low, model, rows, stored, d, D, False)
        pulled -= tl.sum(mass, 1)[:, None] * (i_high.to(tl.float32) + i_low.to(tl.float32))
        columns = tl.arange(0, D)
        inside = (rows < n)[:, None] & (columns < d)[None, :]
        tl.store(direction + (model * n + rows)[:, None] * d + columns[None, :], pulled * outer, mask=inside)

    @triton.jit
    def _output_kernel(
        t, output, own, value, direction, n, stride, smallest, smallest_variance, factor,
        NORMALIZED: tl.constexpr, P: tl.constexpr, N: tl.constexpr, B: tl.constexpr,
    ):  # fmt: skip
        """Write fᵀHLHf of one score f times ``factor``, or its normalized form, and half its gradient."""
        model = tl.program_id(0)
        rows = tl.arange(0, N)
        f = tl.load(output + model * n + rows, mask=rows < n, other=0.0)
        mean = tl.sum(f, 0) / n
        f = tl.where(rows < n, f - mean, 0.0)
        smooth = tl.zeros([N], dtype=tl.float32)
        for start in range(0, n, B):
            cols = start + tl.arange(0, B)
            other = tl.load(output + model * n + cols, mask=cols < n, other=0.0) - mean
            l = _attribute_gram(t, stride, model, rows, cols, n, P, tl.zeros([N, B], dtype=tl.float32))
            smooth += tl.sum(l * other[None, :], 1)
        smooth = tl.where(rows < n, smooth - tl.sum(tl.where(rows < n, smooth, 0.0), 0) / n, 0.0)
        cross = tl.sum(f * smooth, 0)
        if NORMALIZED:
            own_s = tl.load(own + model)
            variance = tl.sum(f * f, 0)
            varies = (variance > smallest_variance) & (own_s > smallest)
            variance = tl.maximum(variance, smallest_variance)
            unit = tl.where(varies, 1.0 / (variance * tl.sqrt(tl.maximum(own_s, smallest))), 0.0)
            smooth -= f * (cross / variance)
        else:
            unit = factor
        tl.store(value + model, cross * unit)
        tl.store(direction + model * n + rows, smooth * unit, mask=rows < n)

    @triton.jit
    def _median_kernel(u, out, n, d, place, tiny, half, D: tl.constexpr, B: tl.constexpr):
        """Write the ``place``-th smallest distance between the first ``half`` rows and the next ones, or a stand-in."""
        model = tl.program_id(0)
        rows = tl.arange(0, B)
        width = tl.arange(0, D)
        kept = (rows < half)[:, None] & (width < d)[None, :]
        at = u + model * n * d + rows[:, None] * d + width[None, :]
        left = tl.load(at, mask=kept, other=0.0)
        right = tl.load(at + half * d, mask=kept, other=0.0)
        # From the mean of all these rows, because the expansion of the squared distance loses digits far from it.
        mean = (tl.sum(left, 0) + tl.sum(right, 0)) / (2 * half)
        left = tl.where(kept, left - mean[None, :], 0.0)
        right = tl.where(kept, right - mean[None, :], 0.0)
        product = tl.dot(left, tl.trans(right), input_precision="ieee")
        squared = tl.sum(left * left, 1)[:, None] + tl.sum(right * right, 1)[None, :] - 2.0 * product
        squared = tl.maximum(squared, 0.0)
        inside = (rows < half)[:, None] & (rows < half)[None, :]
        # The order of positive floats is that of their bits: find the bits of the median from the first to the last.
        bits = tl.where(inside, squared.to(tl.int32, bitcast=True), 0x7F800000)
        found = tl.full([], 0, tl.int32)
        for step in range(31):
            candidate = found | (1 << (30 - step))
            below = tl.sum(tl.sum((bits < candidate).to(tl.int32), 1), 0)
            found = tl.where(below < place, candidate, found)
        median = tl.sqrt(found.to(tl.float32, bitcast=True))
        mean = tl.sum(tl.sum(tl.where(inside, tl.sqrt(squared), 0.0), 1), 0) / (half * half)
        bandwidth = tl.where(median > tiny, median, mean)
        tl.store(out + model, tl.where(bandwidth > tiny, bandwidth, 1.0))


@functools.cache
def _has_triton(device: int) -> bool:
    return triton is not None and torch.cuda.get_device_capability(device) >= (8, 0)


def can_fuse_batch(u: Tensor) -> bool:
    """Return whether the kernels take rows ``(models, n, d)``: float32 on a GPU with Triton, and not too many."""
    if not u.is_cuda or u.dtype != torch.float32 or u.ndim != 3 or not _has_triton(u.device.index or 0):
        return False
    return u.shape[-1] <= LARGEST_DIMENSION and u.shape[-2] <= LARGEST_SAMPLE and u.numel() < 2**30


def fused_batch_term(
    frame: Frame, t: Tensor, sigma: Tensor, *, normalized: bool, factor: float
) -> tuple[GradientTerm, Tensor]:
    """Return HSIC of each model as a term of a loss, and ⟨HLH, HLH⟩; O(n²(d + p)) time, O(nd) memory.

    Both kernels are Gaussian.

    Parameters
    ----------
    frame : Frame
        Rows of Z, ``(models, n, d)``.
    t : Tensor
        Rows of S, ``(models, n, p)``, in units in which its kernel is 2^(−|t − t'|²/2).
    sigma : Tensor
        Bandwidth on Z, ``(models,)``.
    normalized : bool
        The normalized form; else ⟨HKH, HLH⟩ times ``factor``.
    factor : float
        See ``normalized``; 1/n² gives the biased form.
    """
    u = frame.u if frame.back is not None else frame.u - frame.u.mean(-2, keepdim=True)
    u = u.contiguous()
    models, n, d = u.shape
    tiles = math.ceil(n / _TILE)
    stored = tiles * _TILE
    size = {"D": max(16, 1 << (d + 5).bit_length()), "B": _TILE}
    every = 1 << (n - 1).bit_length()
    halves = torch.empty(2, models, stored, size["D"], dtype=torch.float16, device=u.device)
    means = u.new_empty(models, 2, n)
    products = u.new_empty(models, 3, n)
    value = u.new_empty(models)
    own = u.new_empty(models)
    direction = torch.empty_like(u)
    grid = (models, tiles)
    rows = (n, stored, d, t.stride(-2))
    p = t.shape[-1]
    _split_kernel[grid](u, sigma, *halves, n, stored, d, **size)
    _means_kernel[grid](*halves, t, means, *rows, P=p, **size)
    _products_kernel[grid](*halves, t, means, products, *rows, P=p, N=every, **size)
    _gradient_kernel[grid](
        *halves, t, means, products, value, own, direction, *rows, smallest_own(u, rows=n),
        NORMALIZED=normalized, P=p, N=every, **size,
    )  # fmt: skip
    if factor != 1.0:
        value = value * factor
    direction = direction if frame.back is None else frame.back(direction)
    return GradientTerm(value, frame.at, direction, ((2.0 * factor / _ROOT_LOG2_E) / sigma)[:, None, None]), own


def fused_output_term(output: Tensor, t: Tensor, own: Tensor, *, normalized: bool, factor: float) -> GradientTerm:
    """Return HSIC of a score ``(models, n)`` with a linear kernel, fᵀHLHf times ``factor``, as a term of a loss.

    The normalized form divides by |Hf|²·√own, where ``own`` is ⟨HLH, HLH⟩; see :func:`fused_batch_term` for ``t``.
    """
    models, n = output.shape
    given = output.detach().contiguous()
    value = torch.empty_like(own)
    direction = torch.empty_like(given)
    smallest = smallest_own(given, rows=n)
    _output_kernel[(models,)](
        t, given, own, value, direction, n, t.stride(-2), smallest, smallest**0.5, factor,
        NORMALIZED=normalized, P=t.shape[-1], N=max(16, 1 << (n - 1).bit_length()), B=16, num_warps=8,
    )  # fmt: skip
    return GradientTerm(
        value, output.unsqueeze(-1), direction.unsqueeze(-1), torch.full_like(value, 2.0)[:, None, None]
    )


def fused_batch_median(u: Tensor, *, max_points: int) -> Tensor:
    """Return ``median_bandwidth(u, max_points=max_points, method="batch")`` of rows ``(models, n, d)``."""
    u = u.contiguous()
    models, n, d = u.shape
    half = min(max_points, n) // 2
    out = u.new_empty(models)
    _median_kernel[(models,)](
        u, out, n, d, (half * half + 1) // 2, torch.finfo(u.dtype).tiny ** 0.25, half,
        D=max(16, 1 << (d - 1).bit_length()), B=max(16, 1 << (half - 1).bit_length()), num_warps=8,
    )  # fmt: skip
    return out
