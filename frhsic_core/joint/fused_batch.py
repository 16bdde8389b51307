"""HSIC of a batch of small samples on a GPU, as a training step needs it: three Triton kernels, no n × n matrix.

The dense computation writes and reads about twenty matrices of n × n entries for each model of a stack. Here each tile
of both Gram matrices is computed in registers three times: for the row means, for the products of the centered
matrices, and for the gradient. Centering comes before multiplying, as in the dense form, so that nothing cancels and
the penalty of a constant sample is zero. Distances come from three-pass TF32 products, which round as float32 does.
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

LARGEST_DIMENSION = 128
LARGEST_SAMPLE = 2048
_TILE = 64

if triton is not None:

    @triton.jit
    def _load_rows(u, model, rows, n, d, D: tl.constexpr):
        """Return rows of one model, zero beyond n and d, and half their squared norms."""
        width = tl.arange(0, D)
        inside = (rows < n)[:, None] & (width < d)[None, :]
        tile = tl.load(u + (model * n + rows)[:, None] * d + width[None, :], mask=inside, other=0.0)
        return tile, tl.sum(tile * tile, 1) * 0.5

    @triton.jit
    def _attribute_gram(t, model, rows, cols, n, p, squared):
        """Return a tile of L = 2^(−|t − t'|²/2); ``squared`` is a tile of zeros."""
        for c in range(p):
            left = tl.load(t + (model * n + rows) * p + c, mask=rows < n, other=0.0)
            right = tl.load(t + (model * n + cols) * p + c, mask=cols < n, other=0.0)
            difference = left[:, None] - right[None, :]
            squared += difference * difference
        return tl.exp2(-0.5 * squared)

    @triton.jit
    def _grams(i_rows, i_half, j_rows, j_half, t, model, rows, cols, n, p, scale):
        """Return the tiles of K and L."""
        product = tl.dot(i_rows, tl.trans(j_rows), input_precision="tf32x3")
        k = tl.exp2(tl.minimum((product - i_half[:, None] - j_half[None, :]) * scale, 0.0))
        return k, _attribute_gram(t, model, rows, cols, n, p, tl.zeros_like(k))

    @triton.jit
    def _means_kernel(u, t, sigma, means, n, d, p, D: tl.constexpr, B: tl.constexpr):
        """Write the row means of K and L, ``(models, 2, n)``."""
        model = tl.program_id(0)
        rows = tl.program_id(1) * B + tl.arange(0, B)
        width = tl.load(sigma + model)
        scale = 1.4426950408889634 / (width * width)
        i_rows, i_half = _load_rows(u, model, rows, n, d, D)
        k_sum = tl.zeros([B, B], dtype=tl.float32)
        l_sum = tl.zeros([B, B], dtype=tl.float32)
        for start in range(0, n, B):
            cols = start + tl.arange(0, B)
            j_rows, j_half = _load_rows(u, model, cols, n, d, D)
            k, l = _grams(i_rows, i_half, j_rows, j_half, t, model, rows, cols, n, p, scale)
            inside = (cols < n)[None, :]
            k_sum += tl.where(inside, k, 0.0)
            l_sum += tl.where(inside, l, 0.0)
        at = means + model * 2 * n + rows
        tl.store(at, tl.sum(k_sum, 1) / n, mask=rows < n)
        tl.store(at + n, tl.sum(l_sum, 1) / n, mask=rows < n)

    @triton.jit
    def _grand_means(means, model, n, N: tl.constexpr):
        every = tl.arange(0, N)
        k = tl.load(means + model * 2 * n + every, mask=every < n, other=0.0)
        l = tl.load(means + model * 2 * n + n + every, mask=every < n, other=0.0)
        return tl.sum(k, 0) / n, tl.sum(l, 0) / n

    @triton.jit
    def _centered(k, l, means, model, rows, cols, n, k_mean, l_mean):
        """Return tiles of HKH and HLH."""
        at = means + model * 2 * n
        i_k = tl.load(at + rows, mask=rows < n, other=0.0) - k_mean
        j_k = tl.load(at + cols, mask=cols < n, other=0.0)
        i_l = tl.load(at + n + rows, mask=rows < n, other=0.0) - l_mean
        j_l = tl.load(at + n + cols, mask=cols < n, other=0.0)
        return k - i_k[:, None] - j_k[None, :], l - i_l[:, None] - j_l[None, :]

    @triton.jit
    def _products_kernel(
        u, t, sigma, means, products, n, d, p, D: tl.constexpr, B: tl.constexpr, N: tl.constexpr,
    ):  # fmt: skip
        """Write, for each row, the sums of HKH∘HLH, HKH∘HKH and HLH∘HLH, ``(models, 3, n)``."""
        model = tl.program_id(0)
        rows = tl.program_id(1) * B + tl.arange(0, B)
        width = tl.load(sigma + model)
        scale = 1.4426950408889634 / (width * width)
        k_mean, l_mean = _grand_means(means, model, n, N)
        i_rows, i_half = _load_rows(u, model, rows, n, d, D)
        cross = tl.zeros([B, B], dtype=tl.float32)
        own_z = tl.zeros([B, B], dtype=tl.float32)
        own_s = tl.zeros([B, B], dtype=tl.float32)
        for start in range(0, n, B):
            cols = start + tl.arange(0, B)
            j_rows, j_half = _load_rows(u, model, cols, n, d, D)
            k, l = _grams(i_rows, i_half, j_rows, j_half, t, model, rows, cols, n, p, scale)
            k, l = _centered(k, l, means, model, rows, cols, n, k_mean, l_mean)
            inside = (cols < n)[None, :]
            k = tl.where(inside, k, 0.0)
            l = tl.where(inside, l, 0.0)
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
        u, t, sigma, means, products, value, direction, n, d, p, smallest,
        NORMALIZED: tl.constexpr, D: tl.constexpr, B: tl.constexpr, N: tl.constexpr,
    ):  # fmt: skip
        """Write the value of each model, and Σ_j W_ij (u_j − u_i) with W = K ∘ ∂value/∂K for each row."""
        model = tl.program_id(0)
        rows = tl.program_id(1) * B + tl.arange(0, B)
        cross = _total(products, model, 0, n, N)
        if NORMALIZED:
            own_z = _total(products, model, 1, n, N)
            own_s = _total(products, model, 2, n, N)
            varies = (own_z > smallest) & (own_s > smallest)
            bounded = tl.maximum(own_z, smallest) * tl.maximum(own_s, smallest)
            root = tl.where(varies, 1.0 / tl.sqrt(bounded), 0.0)
            result = cross * root
            k_share = (-result / tl.maximum(own_z, smallest)).to(tl.float32)
            l_share = root.to(tl.float32)
        else:
            result = cross
            k_share = 0.0
            l_share = 1.0
        if tl.program_id(1) == 0:
            tl.store(value + model, result.to(tl.float32))
        width = tl.load(sigma + model)
        scale = 1.4426950408889634 / (width * width)
        k_mean, l_mean = _grand_means(means, model, n, N)
        i_rows, i_half = _load_rows(u, model, rows, n, d, D)
        pulled = tl.zeros([B, D], dtype=tl.float32)
        mass = tl.zeros([B, B], dtype=tl.float32)
        for start in range(0, n, B):
            cols = start + tl.arange(0, B)
            j_rows, j_half = _load_rows(u, model, cols, n, d, D)
            k, l = _grams(i_rows, i_half, j_rows, j_half, t, model, rows, cols, n, p, scale)
            k_centered, l_centered = _centered(k, l, means, model, rows, cols, n, k_mean, l_mean)
            slope = l_centered * l_share
            if NORMALIZED:
                slope += k_centered * k_share
            w = tl.where((cols < n)[None, :], slope * k, 0.0)
            mass += w
            pulled += tl.dot(w, j_rows, input_precision="tf32x3")
        pulled -= tl.sum(mass, 1)[:, None] * i_rows
        columns = tl.arange(0, D)
        inside = (rows < n)[:, None] & (columns < d)[None, :]
        tl.store(direction + (model * n + rows)[:, None] * d + columns[None, :], pulled, mask=inside)

    @triton.jit
    def _smooth_kernel(t, f, out, n, p, B: tl.constexpr):
        """Write Σ_j L_ij f_j for each row."""
        model = tl.program_id(0)
        rows = tl.program_id(1) * B + tl.arange(0, B)
        total = tl.zeros([B, B], dtype=tl.float32)
        for start in range(0, n, B):
            cols = start + tl.arange(0, B)
            weight = tl.load(f + model * n + cols, mask=cols < n, other=0.0)
            total += _attribute_gram(t, model, rows, cols, n, p, tl.zeros([B, B], dtype=tl.float32)) * weight[None, :]
        tl.store(out + model * n + rows, tl.sum(total, 1), mask=rows < n)


@functools.cache
def _has_triton(device: int) -> bool:
    return triton is not None and torch.cuda.get_device_capability(device) >= (8, 0)


def can_fuse_batch(u: Tensor) -> bool:
    """Return whether the kernels take rows ``(models, n, d)``: float32 on a GPU with Triton, and not too many."""
    if not u.is_cuda or u.dtype != torch.float32 or u.ndim != 3 or not _has_triton(u.device.index or 0):
        return False
    return u.shape[-1] <= LARGEST_DIMENSION and u.shape[-2] <= LARGEST_SAMPLE and u.numel() < 2**31


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
    u = frame.u
    if frame.back is None:  # rows of any size: in units of the bandwidth nothing leaves the range
        u = (u - u.mean(-2, keepdim=True)) / sigma[:, None, None]
        width = torch.ones_like(sigma)
        coefficient = 2.0 * factor / sigma[:, None, None]
    else:
        width = sigma
        coefficient = 2.0 * factor / sigma.square()[:, None, None]
    u, t = u.contiguous(), t.contiguous()
    models, n, d = u.shape
    means = u.new_empty(models, 2, n)
    products = u.new_empty(models, 3, n)
    value = u.new_empty(models)
    direction = torch.empty_like(u)
    size = {"D": max(16, 1 << (d - 1).bit_length()), "B": _TILE}
    every = 1 << (n - 1).bit_length()
    grid = (models, math.ceil(n / _TILE))
    _means_kernel[grid](u, t, width, means, n, d, t.shape[-1], **size)
    _products_kernel[grid](u, t, width, means, products, n, d, t.shape[-1], N=every, **size)
    _gradient_kernel[grid](
        u, t, width, means, products, value, direction, n, d, t.shape[-1], smallest_own(u, rows=n),
        NORMALIZED=normalized, N=every, **size,
    )  # fmt: skip
    if factor != 1.0:
        value = value * factor
    direction = direction if frame.back is None else frame.back(direction)
    return GradientTerm(value, frame.at, direction, coefficient), products[:, 2].sum(-1)


def fused_output_term(output: Tensor, t: Tensor, own: Tensor, *, normalized: bool, factor: float) -> GradientTerm:
    """Return HSIC of a score ``(models, n)`` with a linear kernel, fᵀHLHf times ``factor``, as a term of a loss.

    The normalized form divides by |Hf|²·√own, where ``own`` is ⟨HLH, HLH⟩; see :func:`fused_batch_term` for ``t``.
    """
    models, n = output.shape
    with torch.no_grad():
        f = output - output.mean(-1, keepdim=True)
        smooth = torch.empty_like(f)
        _smooth_kernel[(models, math.ceil(n / _TILE))](t.contiguous(), f, smooth, n, t.shape[-1], B=_TILE)
        smooth -= smooth.mean(-1, keepdim=True)
        cross = (f * smooth).sum(-1)
        if normalized:
            smallest = smallest_own(f, rows=n)
            variance = (f * f).sum(-1)
            varies = ((variance > smallest**0.5) & (own > smallest)).to(f.dtype)
            variance = variance.clamp_min(smallest**0.5)
            unit = varies / (variance * own.clamp_min(smallest).sqrt())
            smooth -= (cross / variance).unsqueeze(-1) * f
        else:
            unit = torch.full_like(cross, factor)
    return GradientTerm(cross * unit, output.unsqueeze(-1), smooth.unsqueeze(-1), (2.0 * unit)[:, None, None])
