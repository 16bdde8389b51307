"""Exact HSIC on a GPU without an n × n matrix: fused Triton kernels for large samples, and for stacks of mini-batches.

Both kernels are Gaussian and the samples are in float32. With weights w of the rows, K' = K − c and L' = L − c'
(constants that HSIC does not depend on, chosen near the means so that little cancels), the value needs the row sums
k_i = Σ_j w_j K'_ij and l_i, and the sum of K'∘L'. The gradient needs

    G_i = Σ_j w_j A_ij K_ij (z_i − z_j),   A = L' + u1ᵀ + 1uᵀ,

which covers the biased and the unbiased form. Each kernel computes a tile of both Gram matrices in registers,
uses it and drops it.

**Precision.** Distances come from a matrix product of the scaled rows, ‖u − v‖²/2 = ‖u‖²/2 + ‖v‖²/2 − u·v. Each row is
split into two halves of 11 significant bits, and three of the four products of the halves are taken. The halves are
stored as float16, which has the significand of TF32 and twice its rate. Three columns of half norms and three of ones
beside the rows make a product of two rows the exponent itself. Sums are carried in float64 across tiles. Samples that
are too close or too far for this, in units of the bandwidth, are left to the streamed computation.

**Stacks of mini-batches.** The dense computation of a training step writes and reads about twenty matrices of n × n
entries for each model of a stack. Here each tile of both Gram matrices is computed in registers twice, for the row
means and for the gradient; the normalized form first needs the products of the centered matrices. Centering comes
before multiplying, as in the dense form, so that nothing cancels and the penalty of a constant sample is zero. A row
may be up to a thousand bandwidths from the mean.
"""

from __future__ import annotations

import functools
import math

import torch
from torch import Tensor

from frhsic_core.joint.contraction import Frame, GradientTerm, from_sums, smallest_own, sum_factors
from frhsic_core.kernels import Gaussian, Kernel

try:
    import triton
    import triton.language as tl
except ImportError:  # no Triton: the streamed and the dense computation are used instead
    triton = None

LARGEST_DIMENSION = 250
_ROOT_LOG2_E = math.sqrt(math.log2(math.e))
# Ranges in which float16 halves of the rows, and three of each half norm, are exact to 2^-25: mean of the half norms
# of Z, and a bound on its exponents.
_NORMS, _LARGEST_EXPONENT = (0.05, 64.0), 30_000.0
# Below this largest exponent of S too few digits of K − 1 are left in float32.
_SMALLEST_EXPONENT = 0.03
# With this many rows rounding averages out, and the sums need no offset.
_MANY_ROWS = 32_768
# Columns that one program adds up in float32, and rows whose gradient is held in float64 at a time.
_CHUNK = 16_384
_ROWS_AT_ONCE = 131_072

# Of stacks of mini-batches: columns, rows, and rows of a tile.
BATCH_DIMENSION = 122
BATCH_ROWS = 1024
_BATCH_TILE = 64

if triton is not None:

    @triton.jit
    def _load_rows(high, low, rows, d, D: tl.constexpr, LEFT: tl.constexpr):
        """Return both halves of some rows; in the left factor half norms and constants change places."""
        width = tl.arange(0, D)
        if LEFT:
            first = (width >= d) & (width < d + 3)
            second = (width >= d + 3) & (width < d + 6)
            width = tl.where(first, width + 3, tl.where(second, width - 3, width))
        at = rows[:, None] * D + width[None, :]
        return tl.load(high + at), tl.load(low + at)

    @triton.jit
    def _product(left_high, left_low, right_high, right_low):
        """Return the exponents of a tile of K."""
        x = tl.dot(left_high, tl.trans(right_high))
        x = tl.dot(left_high, tl.trans(right_low), x)
        return tl.dot(left_low, tl.trans(right_high), x)

    # Rows of both

    @triton.jit
    def _split_kernel(
        u, sigma, high, low, n, stored, d, UNIT: tl.constexpr, D: tl.constexpr, B: tl.constexpr
    ):
        """Write the halves of the rows in units of the bandwidth; rows beyond n are far from everything.

        Half norms are stored over UNIT beside a constant UNIT: 8 keeps half a million in the range of float16, and 1
        keeps three more bits.
        """
        model = tl.program_id(0)
        rows = tl.program_id(1) * B + tl.arange(0, B)
        width = tl.arange(0, D)
        inside = (rows < n)[:, None] & (width < d)[None, :]
        tile = tl.load(
            u + (model * n + rows)[:, None] * d + width[None, :], mask=inside, other=0.0
        ).to(tl.float32)
        tile = tile * (1.2011224087864498 / tl.load(sigma + model)).to(tl.float32)
        tile = tl.minimum(tl.maximum(tile, -60000.0), 60000.0)
        first = tile.to(tl.float16)
        second = (tile - first.to(tl.float32)).to(tl.float16)
        kept = first.to(tl.float32) + second.to(tl.float32)
        norm = tl.minimum(tl.sum((kept * kept).to(tl.float64), 1) * (0.5 / UNIT), 60000.0)
        norm = tl.where(rows < n, norm, 60000.0)
        for piece in tl.static_range(3):
            part = norm.to(tl.float32).to(tl.float16)
            norm -= part.to(tl.float64)
            first = tl.where((width == d + piece)[None, :], -part[:, None], first)
        constant = (width >= d + 3) & (width < d + 6)
        first = tl.where(constant[None, :], tl.full([B, D], UNIT, tl.float16), first)
        at = (model * stored + rows)[:, None] * D + width[None, :]
        tl.store(high + at, first)
        tl.store(low + at, second)

    # Large samples

    @triton.jit
    def _attribute(columns, stride, rows, cols, P: tl.constexpr):
        """Return a tile of L = 2^(−Σ(t − t')²) from rows stored column by column."""
        difference = tl.load(columns + rows)[:, None] - tl.load(columns + cols)[None, :]
        total = -difference * difference
        for c in range(1, P):
            difference = (
                tl.load(columns + c * stride + rows)[:, None]
                - tl.load(columns + c * stride + cols)[None, :]
            )
            total -= difference * difference
        return tl.exp2(total)

    @triton.jit
    def _grouped(tile, BM: tl.constexpr, BN: tl.constexpr, GROUP: tl.constexpr):
        """Add up columns that one thread holds."""
        return tl.sum(tl.reshape(tile, [BM, GROUP, BN // GROUP]), 1)

    @triton.jit
    def _sums_kernel(
        high, low, columns, weights, k_out, l_out, kl_out, n, stride, chunk, d, k_offset, l_offset,
        D: tl.constexpr, P: tl.constexpr, WEIGHTED: tl.constexpr,
        BM: tl.constexpr, BN: tl.constexpr, GROUP: tl.constexpr,
    ):  # fmt: skip
        """Add up K', L' and their product along a block of rows, over one chunk of columns.

        No branch and no mask inside the loop: padding has kernel value zero, or weight zero.
        """
        rows = tl.program_id(0) * BM + tl.arange(0, BM)
        i_high, i_low = _load_rows(high, low, rows, d, D, True)
        # Whole tiles are added up and reduced once at the end: a reduction inside the loop costs more than two exps.
        # K' + L' is added up instead of L': a sum of L' alone gets a register layout, and exponentials, of its own.
        sum_k = tl.zeros([BM, BN // GROUP], dtype=tl.float32)
        sum_both = tl.zeros([BM, BN // GROUP], dtype=tl.float32)
        sum_kl = tl.zeros([BM, BN // GROUP], dtype=tl.float32)
        begin = tl.program_id(1) * chunk
        end = tl.minimum(begin + chunk, n)
        for start in range(begin, end, BN):
            cols = start + tl.arange(0, BN)
            j_high, j_low = _load_rows(high, low, cols, d, D, False)
            # Rounding may leave the exponent a little above zero and K above one; clamping would cost an instruction.
            k = tl.exp2(_product(i_high, i_low, j_high, j_low))
            l = _attribute(columns, stride, rows, cols, P)
            if WEIGHTED:
                k -= k_offset
                l -= l_offset
                weight = tl.load(weights + cols)[None, :]
                left = k * weight
                right = l * weight
            else:
                left = k
                right = l
            sum_k += _grouped(left, BM, BN, GROUP)
            sum_both += _grouped(left + right, BM, BN, GROUP)
            sum_kl += _grouped(left * l, BM, BN, GROUP)
        inside = rows < n
        tl.atomic_add(k_out + rows, tl.sum(sum_k, 1).to(tl.float64), mask=inside, sem="relaxed")
        tl.atomic_add(
            l_out + rows, tl.sum(sum_both - sum_k, 1).to(tl.float64), mask=inside, sem="relaxed"
        )
        tl.atomic_add(kl_out + rows, tl.sum(sum_kl, 1).to(tl.float64), mask=inside, sem="relaxed")

    @triton.jit
    def _gradient_kernel(
        high, low, columns, weights, shift, lift, g_out, n, stride, first_row, last_row, chunk, d, l_offset,
        D: tl.constexpr, P: tl.constexpr, WEIGHTED: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr,
    ):  # fmt: skip
        """Σ_j W_ij u_j for a block of rows i over one chunk of columns j; a column of ones beside u gives Σ_j W_ij."""
        rows = first_row + tl.program_id(0) * BM + tl.arange(0, BM)
        l_weight = tl.load(lift).to(tl.float32)
        i_high, i_low = _load_rows(high, low, rows, d, D, True)
        i_shift = tl.load(shift + rows)
        g = tl.zeros([BM, D], dtype=tl.float32)
        begin = tl.program_id(1) * chunk
        end = tl.minimum(begin + chunk, n)
        for start in range(begin, end, BN):
            cols = start + tl.arange(0, BN)
            j_high, j_low = _load_rows(high, low, cols, d, D, False)
            j_shift = tl.load(shift + cols)
            k = tl.exp2(_product(i_high, i_low, j_high, j_low))
            l = _attribute(columns, stride, rows, cols, P)
            if WEIGHTED:
                l -= l_offset
            w = l * l_weight + i_shift[:, None] + j_shift[None, :]
            w *= k
            if WEIGHTED:
                w = w * tl.load(weights + cols)[None, :]
            w_high = w.to(tl.float16)
            w_low = (w - w_high.to(tl.float32)).to(tl.float16)
            part = tl.dot(w_high, j_high)
            part = tl.dot(w_high, j_low, part)
            # Tensor cores truncate what they add to: a sum of many tiles is rounded to nearest here instead.
            g += tl.dot(w_low, j_high, part)
        inside = rows < last_row
        width = tl.arange(0, D)
        target = g_out + (rows - first_row)[:, None] * D + width[None, :]
        tl.atomic_add(
            target, g.to(tl.float64), mask=inside[:, None] & (width >= 0)[None, :], sem="relaxed"
        )

    # Stacks of mini-batches

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
        k = tl.exp2(tl.minimum(_product(i_high, i_low, j_high, j_low), 0.0))
        return k, _attribute_gram(t, stride, model, rows, cols, n, P, tl.zeros_like(k))

    @triton.jit
    def _means_kernel(
        high, low, t, means, n, stored, d, stride, D: tl.constexpr, P: tl.constexpr, B: tl.constexpr,
    ):  # fmt: skip
        """Write the row means of K and L, ``(models, 2, n)``."""
        model = tl.program_id(0)
        rows = tl.program_id(1) * B + tl.arange(0, B)
        i_high, i_low = _load_rows(high, low, model * stored + rows, d, D, True)
        k_sum = tl.zeros([B, B], dtype=tl.float32)
        both = tl.zeros([B, B], dtype=tl.float32)
        for start in range(0, n, B):
            cols = start + tl.arange(0, B)
            j_high, j_low = _load_rows(high, low, model * stored + cols, d, D, False)
            k, l = _grams(i_high, i_low, j_high, j_low, t, stride, model, rows, cols, n, P)
            k_sum += k
            both += k + l  # see `_sums_kernel`
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
    def _total(products, model, which, n, N: tl.constexpr):
        every = tl.arange(0, N)
        part = tl.load(products + model * 3 * n + which * n + every, mask=every < n, other=0.0)
        return tl.sum(part.to(tl.float64), 0)

    @triton.jit
    def _batch_kernel(
        high, low, t, sigma, means, products, value, own, direction, n, stored, d, stride, smallest,
        NORMALIZED: tl.constexpr, GRADIENT: tl.constexpr,
        D: tl.constexpr, P: tl.constexpr, B: tl.constexpr, N: tl.constexpr,
    ):  # fmt: skip
        """Write Σ_j W_ij (u_j − u_i)/σ with W = K ∘ ∂value/∂K for each row; HKH∘HLH by rows, or the normalized form.

        The normalized form takes two passes. The first one, without GRADIENT, writes the sums over each row of HKH∘HLH,
        HKH∘HKH and HLH∘HLH, ``(models, 3, n)``.
        """
        model = tl.program_id(0)
        rows = tl.program_id(1) * B + tl.arange(0, B)
        outer = 1.0 / tl.load(sigma + model)
        if NORMALIZED and GRADIENT:
            cross = _total(products, model, 0, n, N)
            own_s = _total(products, model, 2, n, N)
            own_z = _total(products, model, 1, n, N)
            varies = (own_z > smallest) & (own_s > smallest)
            own_z = tl.maximum(own_z, smallest)
            root = tl.where(varies, 1.0 / tl.sqrt(own_z * tl.maximum(own_s, smallest)), 0.0)
            # The gradient in K is root·(HLH − share·HKH); both terms are of size one, as float16 needs it.
            share = (cross / own_z).to(tl.float32)
            outer *= root.to(tl.float32)
            if tl.program_id(1) == 0:
                tl.store(value + model, (cross * root).to(tl.float32))
                tl.store(own + model, own_s.to(tl.float32))
        k_mean, l_mean = _grand_means(means, model, n, N)
        i_high, i_low = _load_rows(high, low, model * stored + rows, d, D, True)
        pulled = tl.zeros([B, D], dtype=tl.float32)
        mass = tl.zeros([B, B], dtype=tl.float32)
        product = tl.zeros([B, B], dtype=tl.float32)
        squares_k = tl.zeros([B, B], dtype=tl.float32)
        squares_l = tl.zeros([B, B], dtype=tl.float32)
        for start in range(0, n, B):
            cols = start + tl.arange(0, B)
            j_high, j_low = _load_rows(high, low, model * stored + cols, d, D, False)
            k, l = _grams(i_high, i_low, j_high, j_low, t, stride, model, rows, cols, n, P)
            k_centered, w = _centered(k, l, means, model, rows, cols, n, k_mean, l_mean)
            if NORMALIZED and GRADIENT:
                w -= k_centered * share
            else:
                product += k_centered * w
            if GRADIENT:
                w *= k
                mass += w
                w_high = w.to(tl.float16)
                w_low = (w - w_high.to(tl.float32)).to(tl.float16)
                pulled = tl.dot(w_high, j_high, pulled)
                pulled = tl.dot(w_high, j_low, pulled)
                pulled = tl.dot(w_low, j_high, pulled)
            else:
                squares_k += k_centered * k_centered
                squares_l += w * w
        at = products + model * 3 * n + rows
        if not (NORMALIZED and GRADIENT):
            tl.store(at, tl.sum(product, 1), mask=rows < n)
        if GRADIENT:
            i_high, i_low = _load_rows(high, low, model * stored + rows, d, D, False)
            pulled -= tl.sum(mass, 1)[:, None] * (i_high.to(tl.float32) + i_low.to(tl.float32))
            columns = tl.arange(0, D)
            inside = (rows < n)[:, None] & (columns < d)[None, :]
            tl.store(
                direction + (model * n + rows)[:, None] * d + columns[None, :],
                pulled * outer,
                mask=inside,
            )
        else:
            tl.store(at + n, tl.sum(squares_k, 1), mask=rows < n)
            tl.store(at + 2 * n, tl.sum(squares_l, 1), mask=rows < n)

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
            l = _attribute_gram(
                t, stride, model, rows, cols, n, P, tl.zeros([N, B], dtype=tl.float32)
            )
            smooth += tl.sum(l * other[None, :], 1)
        smooth = tl.where(rows < n, smooth - tl.sum(tl.where(rows < n, smooth, 0.0), 0) / n, 0.0)
        cross = tl.sum(f * smooth, 0)
        unit = factor
        if NORMALIZED:
            own_s = tl.load(own + model)
            variance = tl.sum(f * f, 0)
            varies = (variance > smallest_variance) & (own_s > smallest)
            variance = tl.maximum(variance, smallest_variance)
            unit = tl.where(varies, factor / (variance * tl.sqrt(tl.maximum(own_s, smallest))), 0.0)
            smooth -= f * (cross / variance)
        tl.store(value + model, cross * unit)
        tl.store(direction + model * n + rows, smooth * unit, mask=rows < n)

    @triton.jit
    def _median_kernel(
        u, old, out, n, d, place, tiny, half, rate, D: tl.constexpr, B: tl.constexpr
    ):
        """Write the ``place``-th smallest distance between ``half`` rows and the next ones, mixed with ``old``."""
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
        product = tl.dot(left, tl.trans(right), input_precision="tf32x3")
        squared = (
            tl.sum(left * left, 1)[:, None] + tl.sum(right * right, 1)[None, :] - 2.0 * product
        )
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
        bandwidth = tl.where(bandwidth > tiny, bandwidth, 1.0)
        before = tl.load(old + model)
        mixed = (before > 0) & (rate < 1)
        tl.store(out + model, tl.where(mixed, before + rate * (bandwidth - before), bandwidth))


@functools.cache
def _has_triton(device: int) -> bool:
    return triton is not None and torch.cuda.get_device_capability(device) >= (8, 0)


def can_fuse(z: Tensor, s: Tensor, kernel_z: Kernel, kernel_s: Kernel) -> bool:
    """Return whether the fused kernels can compute HSIC of these samples with these kernels."""
    if (
        not z.is_cuda
        or z.dtype != torch.float32
        or s.requires_grad
        or not _has_triton(z.device.index or 0)
    ):
        return False
    for kernel in (kernel_z, kernel_s):
        if not isinstance(kernel, Gaussian) or (
            isinstance(kernel.bandwidth, Tensor) and kernel.bandwidth.requires_grad
        ):
            return False
    widest = max(z.shape[-1], s.shape[-1])
    # The kernels count entries of a padded sample in 32 bits.
    return widest <= LARGEST_DIMENSION and 2 * (widest + 6) * (z.shape[-2] + 512) < 2**31


def _width(d: int) -> int:
    """Return how many numbers a row of d columns takes, with three half norms and three constants beside it."""
    return max(16, 1 << (d + 5).bit_length())


def fused_hsic(
    z: Tensor,
    s: Tensor,
    kernel_z: Gaussian,
    kernel_s: Gaussian,
    row_weights: Tensor | None = None,
    *,
    estimator: str = "biased",
) -> Tensor | None:
    """Return exact HSIC of ``(n, d)`` and ``(n, p)`` on a GPU in O(n) memory and O(n²(d + p)) time.

    The result is differentiable in ``z``. It is ``None`` where the samples leave the range of the kernels.

    Parameters
    ----------
    z, s, kernel_z, kernel_s, estimator, row_weights
        As in ``joint.contraction.dependence``, for one pair of samples in float32.
    """
    n, d = z.shape
    x, y = z.detach(), s.detach()
    sigma_z, sigma_s = (
        torch.as_tensor(k.bandwidth, dtype=torch.float64, device=z.device)
        for k in (kernel_z, kernel_s)
    )
    # Both samples as the kernels read them: scaled and padded, Z split into halves and S column by column.
    stored = 256 * (-(-n // 256) + 1)  # room for one empty tile beyond the last
    width = _width(d)
    high, low = torch.empty(2, stored, width, dtype=torch.float16, device=z.device)
    _split_kernel[(1, stored // _BATCH_TILE)](
        (x - x.mean(0)).contiguous(),
        sigma_z,
        high,
        low,
        n,
        stored,
        d,
        UNIT=1.0,
        D=width,
        B=_BATCH_TILE,
    )
    columns = s.new_full((s.shape[1], stored), 1e18)
    # Squares are summed without the factor ½.
    columns[:, :n] = ((y - y.mean(0)) * (_ROOT_LOG2_E / sigma_s).to(s.dtype)).mT * math.sqrt(0.5)
    # The mean of the half norms of Z, bounds on the exponents of Z and S, and the means of some kernel values.
    norms = high[:n, d : d + 3].sum(-1, dtype=torch.float64).neg_()
    step = max(1, n // 512)
    means = [
        kernel(some[: 512 * step : step].double()).mean()
        for kernel, some in ((kernel_z, x), (kernel_s, y))
    ]
    largest_s = columns[:, :n].square().sum(0).amax().double()
    sizes = [norms.mean(), 4.0 * norms.amax(), 4.0 * largest_s, *means]
    norm, exponent, exponent_s, mean_z, mean_s = torch.stack(sizes).tolist()
    near = _NORMS[0] < norm <= _NORMS[1] and exponent < _LARGEST_EXPONENT
    if not near or exponent_s < _SMALLEST_EXPONENT:
        return None
    # Weights of size one: float16 halves of A_ij·w_j would underflow with 1/n. Padding has weight zero.
    weights = torch.zeros(stored, device=z.device)
    weights[:n] = 1.0 if row_weights is None else row_weights * (n if estimator == "biased" else 1)
    # Offsets near the mean, so that the sums stay small: where few rows are averaged, rounding does not average out.
    # They are multiples of 2^-10, so that 1 − offset is exact in float32 too.
    few = n < _MANY_ROWS
    offset_z, offset_s = (
        round(mean * 1024.0) / 1024.0 if few else 0.0 for mean in (mean_z, mean_s)
    )
    options = {
        "D": width,
        "P": len(columns),
        "WEIGHTED": few or row_weights is not None,
        "num_warps": 4,
    }
    sums = torch.zeros(3, n, dtype=torch.float64, device=z.device)
    bm, bn, group = 64, 64, 8  # measured on an H200
    # Three tiles of wide rows in flight do not fit into the shared memory of a multiprocessor: 227 KiB on an H200.
    stages = 3 if width <= 128 else 2
    _sums_kernel[(-(-n // bm), -(-n // _CHUNK))](
        high, low, columns, weights, *sums, n, stored, _CHUNK, d, offset_z, offset_s,
        BM=bm, BN=bn, GROUP=group, num_stages=stages, **options,
    )  # fmt: skip
    w = weights[:n].double()
    k, l, product = sums
    cross = w @ product
    if estimator == "unbiased":  # take out the diagonal, where both kernels are one
        own_k, own_l = 1.0 - offset_z, 1.0 - offset_s
        k, l, cross = k - w * own_k, l - w * own_l, cross - w @ w * (own_k * own_l)
    value = from_sums(cross, k, l, w, estimator=estimator).to(z.dtype)
    if not (torch.is_grad_enabled() and z.requires_grad):
        return value
    # Σ_j w_j A_ij ∂K_ij/∂z_i, with u = `shift` in A.
    share, both, scale = sum_factors(w.sum(), estimator)
    shift = 0.5 * both * (w @ l) - share * l
    # A power of two that brings A near 2^4, so that its float16 halves neither overflow nor underflow.
    lift = torch.exp2(4.0 - torch.ceil(torch.log2(1.0 + 2.0 * shift.abs().amax())))
    outer = -1.0 / (_ROOT_LOG2_E * sigma_z) / lift
    shifts = torch.zeros(stored, device=z.device)
    shifts[:n] = shift * lift
    # Tiles of wide rows must fit into the shared memory too.
    bm, bn = (128, 64) if width <= 128 else (64, 32)
    direction = torch.empty(n, d, device=z.device)
    for first in range(0, n, _ROWS_AT_ONCE):
        last = min(first + _ROWS_AT_ONCE, n)
        g = torch.zeros(last - first, width, dtype=torch.float64, device=z.device)
        _gradient_kernel[(-(-len(g) // bm), -(-n // _CHUNK))](
            high, low, columns, weights, shifts, lift, g, n, stored, first, last, _CHUNK, d, offset_s,
            BM=bm, BN=bn, num_stages=2, **options,
        )  # fmt: skip
        u = high[first:last, :d].double() + low[first:last, :d]
        direction[first:last] = (u.mul_(g[:, d + 3 : d + 4]) - g[:, :d]).mul_(outer)
    direction.mul_(w.unsqueeze(-1))
    return GradientTerm(value, z, direction, (2.0 * scale).to(z.dtype)[None, None]).differentiable()


# Stacks of mini-batches ----------------------------------------------------------------------------------------------


def can_fuse_batch(u: Tensor) -> bool:
    """Return whether the kernels take rows ``(models, n, d)``: float32 on a GPU with Triton, and not too many."""
    if (
        not u.is_cuda
        or u.dtype != torch.float32
        or u.ndim != 3
        or not _has_triton(u.device.index or 0)
    ):
        return False
    return u.shape[-1] <= BATCH_DIMENSION and u.shape[-2] <= BATCH_ROWS and u.numel() < 2**30


def fused_batch_term(
    frame: Frame, t: Tensor, sigma: Tensor, *, normalized: bool, factor: float
) -> tuple[GradientTerm, Tensor]:
    """Return HSIC of each model as a term of a loss, and ⟨HLH, HLH⟩ for the normalized form, else empty memory.

    Both kernels are Gaussian. O(n²(d + p)) time, O(nd) memory.

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
    tiles = math.ceil(n / _BATCH_TILE)
    stored = tiles * _BATCH_TILE
    size = {"D": _width(d), "B": _BATCH_TILE}
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
    _split_kernel[grid](u, sigma, *halves, n, stored, d, UNIT=8.0, **size)
    _means_kernel[grid](*halves, t, means, *rows, P=p, **size)
    for gradient in (False, True) if normalized else (True,):
        _batch_kernel[grid](
            *halves, t, sigma, means, products, value, own, direction, *rows, smallest_own(u, rows=n),
            NORMALIZED=normalized, GRADIENT=gradient, P=p, N=every, **size,
        )  # fmt: skip
    if not normalized:
        value = products[:, 0].sum(-1) * factor
    direction = direction if frame.back is None else frame.back(direction)
    return GradientTerm(value, frame.at, direction, 2.0 * factor / _ROOT_LOG2_E), own


def fused_output_term(
    output: Tensor, t: Tensor, own: Tensor, *, normalized: bool, factor: float
) -> GradientTerm:
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
        NORMALIZED=normalized, P=t.shape[-1], N=max(16, 1 << (n - 1).bit_length()), B=32, num_warps=8,
    )  # fmt: skip
    return GradientTerm(value, output, direction, 2.0)


def fused_batch_median(u: Tensor, old: Tensor, *, max_points: int, rate: float) -> Tensor:
    """Return ``old + rate * (batch_median(u, max_points) - old)`` of rows ``(models, n, d)``; old = 0 is left out."""
    u = u.contiguous()
    models, n, d = u.shape
    half = min(max_points, n) // 2
    out = u.new_empty(models)
    _median_kernel[(models,)](
        u, old, out, n, d, (half * half + 1) // 2, torch.finfo(u.dtype).tiny ** 0.25, half, float(rate),
        D=max(16, 1 << (d - 1).bit_length()), B=max(16, 1 << (half - 1).bit_length()), num_warps=4,
    )  # fmt: skip
    return out
