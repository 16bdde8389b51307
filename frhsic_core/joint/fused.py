"""Exact HSIC on a GPU without an n × n matrix: fused Triton kernels for large samples, and for stacks of mini-batches.

With row weights p, K' = K − c and L' = L − c' (constants that HSIC does not depend on, chosen near the means so that
little cancels), the value needs the row sums k_i = Σ_j p_j K'_ij and l_i, and the sum of K'∘L'. The gradient needs

    G_i = Σ_j p_j A_ij w(K_ij)(z_i − z_j),   A = αL' + βK' + u1ᵀ + 1uᵀ,

which covers the biased, unbiased and normalized forms. Each kernel computes a tile of both Gram matrices in registers,
uses it and drops it.

Where there is room beside the rows (d + 6 columns or fewer up to the next power of two), three columns of half norms
and three of ones make a product of two rows the exponent itself.

**Precision.** Distances come from a matrix product of the scaled rows, ‖u − v‖²/2 = ‖u‖²/2 + ‖v‖²/2 − u·v. Each row is
split into two halves of 11 significant bits. ``"tf32x3"`` takes three of the four products of the halves, ``"tf32"``
the first one. The halves are stored as float16, which has the significand of TF32 and twice its rate; a common power of
two keeps them in range. ``"float64"`` subtracts the rows directly, without tensor cores. Sums are carried in float64
across tiles in every mode.

**Stacks of mini-batches.** The dense computation of a training step writes and reads about twenty matrices of n × n
entries for each model of a stack. Here each tile of both Gram matrices is computed in registers three times: for the
row means, for the products of the centered matrices, and for the gradient. Centering comes before multiplying, as in
the dense form, so that nothing cancels and the penalty of a constant sample is zero. A row may be up to a thousand
bandwidths from the mean.
"""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from frhsic_core.choices import one_of
from frhsic_core.joint.contraction import Frame, GradientTerm, inverse_root, smallest_own
from frhsic_core.kernels import Gaussian, InverseMultiquadric, Kernel, Laplacian

try:
    import triton
    import triton.language as tl
except ImportError:  # no Triton: the streamed and the dense computation are used instead
    triton = None

FORMS = ("biased", "unbiased", "normalized")
PRECISIONS = ("tf32", "tf32x3", "float64")
LARGEST_DIMENSION = 256
_LOG2_E = math.log2(math.e)
# A kernel of exponents, 2^x, or (1 − 2x)^(−1/2).
_EXPONENTIAL, _MULTIQUADRIC = 0, 1
# Below this largest exponent K − 1 is taken from its series: in float32, 1 − (1 − 1e-8) is 0.
_SERIES_BELOW = 0.03
# The expansion of the squared distance loses 2^-22 of the squared norm; above this mean norm rows are subtracted.
_LARGEST_NORM = 64.0
# Where rows of float16 need no common factor: mean of the half norms, and a bound on the exponents.
_SMALLEST_NORM, _LARGEST_EXPONENT = 0.05, 30_000.0
# The entry of the column that adds up weights: a power of two, small beside the rows.
_ONE = 64.0
# With this many rows rounding averages out, and the sums need no offset.
_MANY_ROWS = 32_768
# Columns that one program adds up in float32, and rows whose gradient is held in float64 at a time.
_CHUNK = 16_384
_ROWS_AT_ONCE = 131_072

# Of stacks of mini-batches: columns, rows, and rows of a tile.
BATCH_DIMENSION = 122
BATCH_ROWS = 1024
_BATCH_TILE = 64
_ROOT_LOG2_E = math.sqrt(_LOG2_E)

if triton is not None:

    @triton.jit
    def _shifted(x, KIND: tl.constexpr, SERIES: tl.constexpr, offset, SHIFT: tl.constexpr = True):
        """Return K − offset, or with SERIES K − 1 − offset, from the exponent x ≤ 0."""
        if SERIES:
            if KIND == 0:
                y = x * 0.6931471805599453
                value = y * (1.0 + y * (0.5 + y * (0.16666666666666666 + y * 0.041666666666666664))) - offset
            else:
                value = x * (1.0 + x * (1.5 + x * (2.5 + x * 4.375))) - offset
        else:
            if KIND == 0:
                value = tl.exp2(x)
            else:
                value = tl.rsqrt(1.0 - 2.0 * x)
            if SHIFT:
                value -= offset
        return value

    @triton.jit
    def _direct(columns, stride, dimension, rows, cols, ABSOLUTE: tl.constexpr, total):
        """Return −Σ|u − v| or −Σ(u − v)² from rows stored column by column."""
        for c in range(dimension):
            left = tl.load(columns + c * stride + rows)
            right = tl.load(columns + c * stride + cols)
            difference = left[:, None] - right[None, :]
            if ABSOLUTE:
                total -= tl.abs(difference)
            else:
                total -= difference * difference
        return total

    @triton.jit
    def _one(columns, rows, cols, ABSOLUTE: tl.constexpr):
        left = tl.load(columns + rows)
        right = tl.load(columns + cols)
        difference = left[:, None] - right[None, :]
        if ABSOLUTE:
            return -tl.abs(difference)
        return -difference * difference

    @triton.jit
    def _columns(D: tl.constexpr, AUGMENTED: tl.constexpr, dimension):
        """Return the columns of the left factor: with AUGMENTED, half norms and ones change places."""
        width = tl.arange(0, D)
        if AUGMENTED:
            first = (width >= dimension) & (width < dimension + 3)
            second = (width >= dimension + 3) & (width < dimension + 6)
            width = tl.where(first, width + 3, tl.where(second, width - 3, width))
        return width

    @triton.jit
    def _product(left_high, left_low, right_high, right_low, SPLIT: tl.constexpr):
        x = tl.dot(left_high, tl.trans(right_high))
        if SPLIT:
            x = tl.dot(left_high, tl.trans(right_low), x)
            x = tl.dot(left_low, tl.trans(right_high), x)
        return x

    @triton.jit
    def _grouped(tile, BM: tl.constexpr, BN: tl.constexpr, GROUP: tl.constexpr):
        """Add up columns that one thread holds."""
        if GROUP == 1:
            return tile
        return tl.sum(tl.reshape(tile, [BM, GROUP, BN // GROUP]), 1)

    @triton.jit
    def _sums_kernel(
        z_high, z_low, z_half, z_scale, z_columns, s_columns, weights, k_out, l_out, kl_out, kk_out, ll_out,
        n, stride, chunk, z_dimension, s_dimension, k_offset, l_offset,
        D: tl.constexpr, AUGMENTED: tl.constexpr, SPLIT: tl.constexpr, DIRECT: tl.constexpr, ONE: tl.constexpr,
        KIND_Z: tl.constexpr, KIND_S: tl.constexpr, ABSOLUTE_Z: tl.constexpr, ABSOLUTE_S: tl.constexpr,
        SERIES_Z: tl.constexpr, SERIES_S: tl.constexpr, WEIGHTED: tl.constexpr, SQUARES: tl.constexpr,
        SHIFT_Z: tl.constexpr, SHIFT_S: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr, DOUBLE: tl.constexpr,
        GROUP: tl.constexpr,
    ):  # fmt: skip
        """Add up K', L' and their products along a block of rows, over one chunk of columns.

        No branch and no mask inside the loop: padding has kernel value zero, or weight zero.
        """
        dtype: tl.constexpr = tl.float64 if DOUBLE else tl.float32
        rows = tl.program_id(0) * BM + tl.arange(0, BM)
        if not DIRECT:
            width = tl.arange(0, D)
            columns = _columns(D, AUGMENTED, z_dimension)
            i_high = tl.load(z_high + rows[:, None] * D + columns[None, :])
            i_low = tl.load(z_low + rows[:, None] * D + columns[None, :])
            if not AUGMENTED:
                scale = tl.load(z_scale)
                i_half = tl.load(z_half + rows)
        # Whole tiles are added up and reduced once at the end: a reduction inside the loop costs more than two exps.
        # K' + L' is added up instead of L': a sum of L' alone gets a register layout, and exponentials, of its own.
        sum_k = tl.zeros([BM, BN // GROUP], dtype=dtype)
        sum_both = tl.zeros([BM, BN // GROUP], dtype=dtype)
        sum_kl = tl.zeros([BM, BN // GROUP], dtype=dtype)
        if SQUARES:
            sum_kk = tl.zeros([BM, BN // GROUP], dtype=dtype)
            sum_ll = tl.zeros([BM, BN // GROUP], dtype=dtype)
        begin = tl.program_id(1) * chunk
        end = tl.minimum(begin + chunk, n)
        for start in range(begin, end, BN):
            cols = start + tl.arange(0, BN)
            if DIRECT:
                x = _direct(z_columns, stride, z_dimension, rows, cols, ABSOLUTE_Z, tl.zeros([BM, BN], dtype=dtype))
            else:
                j_high = tl.load(z_high + cols[:, None] * D + width[None, :])
                j_low = tl.load(z_low + cols[:, None] * D + width[None, :])
                # Rounding may leave x a little above zero and K above one; clamping would cost an instruction.
                x = _product(i_high, i_low, j_high, j_low, SPLIT)
                if not AUGMENTED:
                    x = x * scale - i_half[:, None] - tl.load(z_half + cols)[None, :]
            k = _shifted(x, KIND_Z, SERIES_Z, k_offset, SHIFT_Z)
            if ONE:
                y = _one(s_columns, rows, cols, ABSOLUTE_S)
            else:
                y = _direct(s_columns, stride, s_dimension, rows, cols, ABSOLUTE_S, tl.zeros([BM, BN], dtype=dtype))
            l = _shifted(y, KIND_S, SERIES_S, l_offset, SHIFT_S)
            if WEIGHTED:
                weight = tl.load(weights + cols)[None, :]
                left = k * weight
                right = l * weight
            else:
                left = k
                right = l
            sum_k += _grouped(left, BM, BN, GROUP)
            sum_both += _grouped(left + right, BM, BN, GROUP)
            sum_kl += _grouped(left * l, BM, BN, GROUP)
            if SQUARES:
                sum_kk += _grouped(left * k, BM, BN, GROUP)
                sum_ll += _grouped(right * l, BM, BN, GROUP)
        inside = rows < n
        tl.atomic_add(k_out + rows, tl.sum(sum_k, 1).to(tl.float64), mask=inside, sem="relaxed")
        tl.atomic_add(l_out + rows, tl.sum(sum_both - sum_k, 1).to(tl.float64), mask=inside, sem="relaxed")
        tl.atomic_add(kl_out + rows, tl.sum(sum_kl, 1).to(tl.float64), mask=inside, sem="relaxed")
        if SQUARES:
            tl.atomic_add(kk_out + rows, tl.sum(sum_kk, 1).to(tl.float64), mask=inside, sem="relaxed")
            tl.atomic_add(ll_out + rows, tl.sum(sum_ll, 1).to(tl.float64), mask=inside, sem="relaxed")

    @triton.jit
    def _pull(k, l, i_shift, j_shift, k_offset, l_weight, k_weight, KIND: tl.constexpr, SERIES: tl.constexpr,
              BOTH: tl.constexpr):  # fmt: skip
        """Return A_ij w(K_ij), with w = K for exponential kernels and K³ for the inverse multiquadric."""
        a = l * l_weight + i_shift[:, None] + j_shift[None, :]
        if BOTH:
            a += k * k_weight
        whole = k + k_offset
        if SERIES:
            whole += 1.0
        if KIND == 1:
            whole = whole * whole * whole
        return a * whole

    @triton.jit
    def _gradient_kernel(
        z_high, z_low, z_half, z_scale, z_back, s_columns, weights, shift, mix, g_out, w_out,
        n, stride, first_row, last_row, chunk, z_dimension, s_dimension, k_offset, l_offset,
        D: tl.constexpr, AUGMENTED: tl.constexpr, SPLIT: tl.constexpr, ONE: tl.constexpr,
        KIND_Z: tl.constexpr, KIND_S: tl.constexpr,
        ABSOLUTE_S: tl.constexpr, SERIES_Z: tl.constexpr, SERIES_S: tl.constexpr, WEIGHTED: tl.constexpr,
        BOTH: tl.constexpr, SPARE: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr,
    ):  # fmt: skip
        """Σ_j W_ij and Σ_j W_ij u_j for a block of rows i over one chunk of columns j."""
        rows = first_row + tl.program_id(0) * BM + tl.arange(0, BM)
        width = tl.arange(0, D)
        scale = tl.load(z_scale)
        l_weight = tl.load(mix).to(tl.float32)
        k_weight = tl.load(mix + 1).to(tl.float32)
        columns = _columns(D, AUGMENTED, z_dimension)
        i_high = tl.load(z_high + rows[:, None] * D + columns[None, :])
        i_low = tl.load(z_low + rows[:, None] * D + columns[None, :])
        if not AUGMENTED:
            i_half = tl.load(z_half + rows)
        i_shift = tl.load(shift + rows)
        g = tl.zeros([BM, D], dtype=tl.float32)
        w_sum = tl.zeros([BM], dtype=tl.float32)
        back = tl.load(z_back)
        begin = tl.program_id(1) * chunk
        end = tl.minimum(begin + chunk, n)
        for start in range(begin, end, BN):
            cols = start + tl.arange(0, BN)
            j_high = tl.load(z_high + cols[:, None] * D + width[None, :])
            j_low = tl.load(z_low + cols[:, None] * D + width[None, :])
            j_shift = tl.load(shift + cols)
            x = _product(i_high, i_low, j_high, j_low, SPLIT)
            if not AUGMENTED:
                x = x * scale - i_half[:, None] - tl.load(z_half + cols)[None, :]
            k = _shifted(x, KIND_Z, SERIES_Z, k_offset)
            if ONE:
                y = _one(s_columns, rows, cols, ABSOLUTE_S)
            else:
                y = _direct(s_columns, stride, s_dimension, rows, cols, ABSOLUTE_S, tl.zeros([BM, BN], tl.float32))
            l = _shifted(y, KIND_S, SERIES_S, l_offset)
            w = _pull(k, l, i_shift, j_shift, k_offset, l_weight, k_weight, KIND_Z, SERIES_Z, BOTH)
            if WEIGHTED:
                w = w * tl.load(weights + cols)[None, :]
            if not SPARE:
                w_sum += tl.sum(w, 1)
            w_high = w.to(tl.float16)
            part = tl.dot(w_high, j_high)
            if SPLIT:
                w_low = (w - w_high.to(tl.float32)).to(tl.float16)
                part = tl.dot(w_high, j_low, part)
                part = tl.dot(w_low, j_high, part)
            # Tensor cores truncate what they add to: a sum of many tiles is rounded to nearest here instead.
            g += part * back
        place = rows - first_row
        inside = rows < last_row
        if not SPARE:
            tl.atomic_add(w_out + place, w_sum.to(tl.float64), mask=inside, sem="relaxed")
        target = g_out + place[:, None] * D + width[None, :]
        tl.atomic_add(target, g.to(tl.float64), mask=inside[:, None] & (width >= 0)[None, :], sem="relaxed")

    @triton.jit
    def _direct_gradient_kernel(
        z_columns, s_columns, weights, shift, mix, g_out,
        n, stride, chunk, z_dimension, s_dimension, k_offset, l_offset,
        KIND_Z: tl.constexpr, KIND_S: tl.constexpr, ABSOLUTE_Z: tl.constexpr, ABSOLUTE_S: tl.constexpr,
        SERIES_Z: tl.constexpr, SERIES_S: tl.constexpr, BOTH: tl.constexpr,
        BM: tl.constexpr, BN: tl.constexpr, DOUBLE: tl.constexpr,
    ):  # fmt: skip
        """Σ_j W_ij (u_i − u_j), or with absolute distances Σ_j W_ij sign(u_i − u_j), column by column of u."""
        dtype: tl.constexpr = tl.float64 if DOUBLE else tl.float32
        rows = tl.program_id(0) * BM + tl.arange(0, BM)
        l_weight = tl.load(mix).to(dtype)
        k_weight = tl.load(mix + 1).to(dtype)
        i_shift = tl.load(shift + rows)
        begin = tl.program_id(1) * chunk
        end = tl.minimum(begin + chunk, n)
        for start in range(begin, end, BN):
            cols = start + tl.arange(0, BN)
            j_shift = tl.load(shift + cols)
            zero = tl.zeros([BM, BN], dtype=dtype)
            x = _direct(z_columns, stride, z_dimension, rows, cols, ABSOLUTE_Z, zero)
            k = _shifted(x, KIND_Z, SERIES_Z, k_offset)
            y = _direct(s_columns, stride, s_dimension, rows, cols, ABSOLUTE_S, zero)
            l = _shifted(y, KIND_S, SERIES_S, l_offset)
            w = _pull(k, l, i_shift, j_shift, k_offset, l_weight, k_weight, KIND_Z, SERIES_Z, BOTH)
            w = w * tl.load(weights + cols)[None, :]
            for c in range(z_dimension):
                left = tl.load(z_columns + c * stride + rows)
                right = tl.load(z_columns + c * stride + cols)
                difference = left[:, None] - right[None, :]
                if ABSOLUTE_Z:
                    difference = tl.where(difference > 0, 1.0, tl.where(difference < 0, -1.0, 0.0)).to(dtype)
                else:
                    difference = difference * 1.4142135623730951
                part = tl.sum(w * difference, 1).to(tl.float64)
                tl.atomic_add(g_out + c * stride + rows, part, mask=rows < n, sem="relaxed")

    # Stacks of mini-batches

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
    def _batch_gradient_kernel(
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


@dataclass(frozen=True)
class _Rows:
    """A sample as the kernels read it: scaled, padded, and split into halves where tensor cores are used."""

    kind: int
    absolute: bool
    unit: float  # u = unit · (x − mean)/σ
    bandwidth: Tensor
    columns: Tensor
    high: Tensor
    low: Tensor
    half: Tensor
    scale: Tensor
    back: Tensor
    direct: bool
    augmented: bool  # three columns of half norms and three of ones stand beside the rows
    series: bool
    offset: float
    spread: float  # a bound on |K − offset|


@dataclass(frozen=True)
class KernelSums:
    """What every form of HSIC is made of, in float64: sums over all pairs, weighted by p.

    Parameters
    ----------
    kl, kk, ll : Tensor
        Sums of K'∘L', K'∘K', L'∘L'; the last two only if asked for.
    k, l : Tensor
        Row sums of K' and L', ``(n,)``.
    """

    kl: Tensor
    kk: Tensor
    ll: Tensor
    k: Tensor
    l: Tensor


@functools.cache
def _has_triton(device: int) -> bool:
    return triton is not None and torch.cuda.get_device_capability(device) >= (8, 0)


def can_fuse(z: Tensor, s: Tensor, kernel_z: Kernel, kernel_s: Kernel) -> bool:
    """Return whether the fused kernels can compute HSIC of these samples with these kernels."""
    if not z.is_cuda or not _has_triton(z.device.index or 0):
        return False
    # Others have no exponent, several bandwidths, or a bandwidth that needs a gradient.
    simple = (Gaussian, Laplacian, InverseMultiquadric)
    for kernel in (kernel_z, kernel_s):
        bandwidth = getattr(kernel, "bandwidth", None)
        if not isinstance(kernel, simple) or (isinstance(bandwidth, Tensor) and bandwidth.requires_grad):
            return False
    widest = max(z.shape[-1], s.shape[-1])
    # The kernels count entries of a padded sample in 32 bits.
    return widest <= LARGEST_DIMENSION and 2 * widest * (z.shape[-2] + 512) < 2**31


def _padded(n: int, block: int) -> int:
    """Return the number of stored rows: room for one empty tile beyond the last."""
    return block * (-(-n // block) + 1)


def _prepare(x: Tensor, kernel: Kernel, *, precision: str, rows: int, always_direct: bool) -> _Rows:
    double = precision == "float64"
    n, d = x.shape
    absolute = isinstance(kernel, Laplacian)
    kind = _MULTIQUADRIC if isinstance(kernel, InverseMultiquadric) else _EXPONENTIAL
    unit = _LOG2_E if absolute else 1.0 if kind == _MULTIQUADRIC else math.sqrt(_LOG2_E)
    given = kernel.bandwidth  # type: ignore[attr-defined]  # can_fuse has seen that there is one
    bandwidth = torch.as_tensor(given, dtype=torch.float64, device=x.device).reshape(())
    dtype = torch.float64 if double else torch.float32
    mean = x.mean(0, dtype=dtype)
    factor = (unit / bandwidth).to(dtype)

    def scaled(part: Tensor) -> Tensor:
        return (part.to(dtype) - mean).mul_(factor)

    # Block by block: a second sample in float32 would be most of the memory that this needs.
    blocks = range(0, n, _ROWS_AT_ONCE)
    sizes = torch.stack([_sizes(scaled(x[first : first + _ROWS_AT_ONCE]), absolute) for first in blocks])
    exponent = _exponents(scaled(x[:: max(1, n // 512)][:512]).double(), absolute)
    gram = torch.exp2(exponent) if kind == _EXPONENTIAL else torch.rsqrt(1.0 - 2.0 * exponent)
    mean_gap = (gram - 1.0).mean()
    facts = torch.stack([mean_gap, sizes[:, 0].sum() / n, sizes[:, 1].amax(), sizes[:, 2].amax()]).tolist()
    direct = always_direct or absolute or precision == "float64" or facts[1] > _LARGEST_NORM
    series = facts[2] < _SERIES_BELOW and not double
    width = max(16, 1 << (d - 1).bit_length())
    # In these ranges float16 halves of the rows as they are, and three of each half norm, are exact to 2^-25.
    moderate = facts[1] > _SMALLEST_NORM and facts[2] < _LARGEST_EXPONENT
    augmented = kind == _EXPONENTIAL and not direct and not series and moderate and d + 6 <= width
    empty = x.new_empty(0, dtype=dtype)
    columns = high = low = half = back = scale = empty  # what a mode does not read
    if direct:
        # Padding is far away from everything: its kernel value is zero.
        columns = x.new_full((d, rows), 0.0 if series else 1e18, dtype=dtype)
    else:
        high = torch.zeros(rows, width, dtype=torch.float16, device=x.device)
        low = torch.zeros_like(high)
        # A power of two that brings the largest entry to about 2^12: exact, and far from both ends of float16.
        power = 1.0 if augmented else 2.0 ** (12.0 - math.ceil(math.log2(max(facts[3], 1e-30))))
        back = torch.full((1,), 1.0 / power, dtype=dtype, device=x.device)
        scale = back * back
        half = x.new_full((rows,), 0.0 if series else 1e30, dtype=dtype)
        if augmented:
            high[n:, d] = -60_000.0
            high[:, d + 3 : d + 6] = 1.0
    for first in blocks:
        part = slice(first, min(first + _ROWS_AT_ONCE, n))
        u = scaled(x[part])
        if direct:  # squares are summed without the factor ½
            columns[:, part] = u.mT if absolute else u.mT * math.sqrt(0.5)
            continue
        u *= power
        high[part, :d] = u
        represented = high[part, :d].to(dtype)
        if precision == "tf32x3":
            low[part, :d] = u - represented
            represented += low[part, :d]
        norm = represented.square_().sum(-1, dtype=torch.float64).mul_(0.5)
        if augmented:
            for column in range(d, d + 3):
                high[part, column] = -norm
                norm += high[part, column]
            continue
        if d < width:
            # A column of ones beside the rows: the product that adds up W_ij u_j then adds up W_ij as well.
            high[part, d] = _ONE
            norm += 0.5 * _ONE * _ONE
        half[part] = norm.mul_(scale)
    return _Rows(
        kind, absolute, unit, bandwidth, columns, high, low, half, scale, back, direct, augmented, series,
        # Near the mean, so that the sums stay small: where few rows are averaged, rounding does not average out.
        # It is a multiple of 2^-10, so that 1 − offset is exact in float32 too.
        facts[0] if series else round((1.0 + facts[0]) * 1024.0) / 1024.0 if n < _MANY_ROWS else 0.0,
        facts[2] if series else 1.0,
    )  # fmt: skip


def _sizes(u: Tensor, absolute: bool) -> Tensor:
    """Return the sum of the half norms, a bound on the exponents, and the largest entry."""
    norm = u.square().sum(-1) * 0.5
    largest = u.abs().sum(-1).amax() * 2.0 if absolute else norm.amax() * 4.0
    return torch.stack([norm.sum(dtype=torch.float64), largest.double(), u.abs().amax().double()])


def _exponents(u: Tensor, absolute: bool) -> Tensor:
    difference = u.unsqueeze(0) - u.unsqueeze(1)
    return -difference.abs().sum(-1) if absolute else -0.5 * difference.square().sum(-1)


def _tile(precision: str, *, direct: bool, squares: bool) -> tuple[int, int, int]:
    """Return the rows and columns of a tile, and how many columns a thread adds up at once; measured on an H200."""
    if direct:
        return 32, 32, 1
    if squares:
        return 64, 32, 1
    return (64, 128, 16) if precision == "tf32" else (64, 64, 8)


class FusedPair:
    """Two samples prepared for the fused kernels; ``sums`` and ``gradient`` may be called on it.

    Parameters
    ----------
    z, s : Tensor
        ``(n, d)`` and ``(n, p)`` on a GPU.
    kernel_z, kernel_s : Kernel
        Gaussian, Laplacian or inverse multiquadric, with one bandwidth each.
    row_weights : Tensor, optional
        ``(n,)``; None means one for each row.
    hollow : bool
        Leave the diagonal out, as the unbiased form does.
    precision : {"tf32", "tf32x3", "float64"}
        See the module.
    """

    def __init__(
        self,
        z: Tensor,
        s: Tensor,
        *,
        kernel_z: Kernel,
        kernel_s: Kernel,
        row_weights: Tensor | None = None,
        hollow: bool = False,
        precision: str = "tf32x3",
    ) -> None:
        self.n = z.shape[0]
        self.rows = _padded(self.n, 256)
        self.precision = precision
        self.hollow = hollow
        self.z = _prepare(z, kernel_z, precision=precision, rows=self.rows, always_direct=False)
        self.s = _prepare(s, kernel_s, precision=precision, rows=self.rows, always_direct=True)
        self.shape = z.shape
        self.s_dimension = s.shape[1]
        # Weights of mean one: float16 halves of A_ij·p_j would underflow with p_j = 1/n. Padding has weight zero.
        self.weighted = row_weights is not None or self.z.series or self.s.series or precision == "float64"
        dtype = torch.float64 if precision == "float64" else torch.float32
        self.weights = torch.zeros(self.rows, dtype=dtype, device=z.device)
        self.weights[: self.n] = 1.0 if row_weights is None else row_weights * self.n

    def sums(
        self,
        *,
        squares: bool = False,
    ) -> KernelSums:
        """Return the sums over all pairs of rows."""
        z, s = self.z, self.s
        double = self.precision == "float64"
        bm, bn, group = _tile(self.precision, direct=double or z.direct, squares=squares)
        out = torch.zeros(5, self.n, dtype=torch.float64, device=z.bandwidth.device)
        _sums_kernel[(-(-self.n // bm), -(-self.n // _CHUNK))](
            z.high, z.low, z.half, z.scale, z.columns, s.columns, self.weights, *out,
            self.n, self.rows, _CHUNK, self.shape[1], self.s_dimension, z.offset, s.offset,
            D=z.high.shape[-1] if not z.direct else 16, AUGMENTED=z.augmented, DIRECT=z.direct,
            SPLIT=self.precision != "tf32", ONE=self.s_dimension == 1, KIND_Z=z.kind, KIND_S=s.kind,
            ABSOLUTE_Z=z.absolute, ABSOLUTE_S=s.absolute,
            SERIES_Z=z.series, SERIES_S=s.series, WEIGHTED=self.weighted, SQUARES=squares,
            SHIFT_Z=z.offset != 0.0, SHIFT_S=s.offset != 0.0, BM=bm, BN=bn,
            DOUBLE=double, GROUP=group, num_warps=4, num_stages=3,
        )  # fmt: skip
        k, l, kl, kk, ll = out
        if not self.weighted:
            # The kernel value of padding is zero, so each padded column added −offset, and the product of both.
            extra = -self.n % bn  # a chunk is a multiple of every block
            k += extra * z.offset
            l += extra * s.offset
            kl -= extra * z.offset * s.offset
            kk -= extra * z.offset**2
            ll -= extra * s.offset**2
        p = self.weights[: self.n].double()
        if self.hollow:
            # Every kernel here has k(x, x) = 1: take the diagonal out again.
            own_k = (0.0 if z.series else 1.0) - z.offset
            own_l = (0.0 if s.series else 1.0) - s.offset
            k -= p * own_k
            l -= p * own_l
            kl -= p * (own_k * own_l)
        return KernelSums(p @ kl, p @ kk, p @ ll, k, l)

    def gradient(
        self,
        shift: Tensor,
        *,
        k_weight: Tensor | None = None,
    ) -> Tensor:
        """Return Σ_j p_j A_ij ∂K_ij/∂z_i for every row i, ``(n, d)`` in the dtype of the kernels; see the module for A.

        A is the matrix with α = 1 and β = ``k_weight``; ``shift`` is its vector u.
        """
        z, s = self.z, self.s
        double = self.precision == "float64"
        shifts = torch.zeros(self.rows, dtype=torch.float64 if double else torch.float32, device=shift.device)
        options: dict[str, Any] = {
            "KIND_Z": z.kind, "KIND_S": s.kind, "ABSOLUTE_S": s.absolute, "SERIES_Z": z.series, "SERIES_S": s.series,
            "BOTH": k_weight is not None,
        }  # fmt: skip
        outer = -1.0 / z.bandwidth if z.absolute else -1.0 / (z.unit * z.bandwidth)
        own = shift.new_zeros(()) if k_weight is None else k_weight
        mix = torch.stack([torch.ones_like(own), own])
        # A power of two that brings A near 2^4, so that its float16 halves neither overflow nor underflow.
        bound = mix[0].abs() * s.spread + mix[1].abs() * z.spread + 2.0 * shift.abs().amax()
        lift = torch.exp2(4.0 - torch.ceil(torch.log2(bound.clamp_min(1e-300))))
        mix = mix * lift
        outer = outer / lift
        shifts[: self.n] = shift * lift
        if z.direct:
            size = 32
            g = torch.zeros(self.shape[1], self.rows, dtype=torch.float64, device=shift.device)
            _direct_gradient_kernel[(-(-self.n // size), -(-self.n // _CHUNK))](
                z.columns, s.columns, self.weights, shifts, mix, g,
                self.n, self.rows, _CHUNK, self.shape[1], self.s_dimension, z.offset, s.offset,
                ABSOLUTE_Z=z.absolute, BM=size, BN=size, DOUBLE=double, num_warps=4, **options,
            )  # fmt: skip
            return (g[:, : self.n].mT * outer).to(shifts.dtype)
        bm, bn = 128, 64
        width = z.high.shape[-1]
        d = self.shape[1]
        spare = d < width
        result = torch.empty(self.n, d, dtype=z.half.dtype, device=shift.device)
        for first in range(0, self.n, _ROWS_AT_ONCE):
            count = min(_ROWS_AT_ONCE, self.n - first)
            g = torch.zeros(count, width, dtype=torch.float64, device=shift.device)
            w = g.new_zeros(count)
            _gradient_kernel[(-(-count // bm), -(-self.n // _CHUNK))](
                z.high, z.low, z.half, z.scale, z.back, s.columns, self.weights, shifts, mix, g, w,
                self.n, self.rows, first, first + count, _CHUNK, d, self.s_dimension, z.offset, s.offset,
                D=width, AUGMENTED=z.augmented, SPLIT=self.precision != "tf32", ONE=self.s_dimension == 1, BM=bm,
                BN=bn, SPARE=spare,
                WEIGHTED=self.weighted, num_warps=4, num_stages=2, **options,
            )  # fmt: skip
            part = slice(first, first + count)
            u = z.high[part, :d].double()
            if self.precision != "tf32":
                u += z.low[part, :d]
            if spare:
                w = g[:, d + 3] if z.augmented else g[:, d] / (z.back * _ONE)
            result[part] = (u.mul_(w.unsqueeze(-1) * z.back) - g[:, :d]).mul_(outer)
        return result


class _Fused(torch.autograd.Function):
    """HSIC or normalized HSIC of one pair of samples; the backward pass recomputes the tiles."""

    @staticmethod
    def forward(
        ctx: Any,
        z: Tensor,
        s: Tensor,
        p: Tensor | None,
        kernel_z: Kernel,
        kernel_s: Kernel,
        form: str,
        precision: str,
    ) -> Tensor:
        hollow = form == "unbiased"
        n = z.shape[0]
        pair = FusedPair(
            z, s, kernel_z=kernel_z, kernel_s=kernel_s, row_weights=p, hollow=hollow, precision=precision
        )  # fmt: skip
        sums = pair.sums(squares=form == "normalized")
        # Without weights the kernel counts each row once; divide here.
        q = torch.full((n,), 1.0 if hollow else 1.0 / n, dtype=torch.float64, device=z.device) if p is None else p
        unit = 1.0 if hollow and p is None else 1.0 / n  # the kernels count with weights n·p
        k, l = sums.k * unit, sums.l * unit
        pairs = unit * unit
        ctx.form, ctx.kernels, ctx.precision = form, (kernel_z, kernel_s), precision

        def centered(product: Tensor, a: Tensor, b: Tensor) -> Tensor:
            return product * pairs + (q @ a) * (q @ b) - 2.0 * (q @ (a * b))

        if hollow:
            count = q.sum()
            total = (q @ k) * (q @ l) / ((count - 1) * (count - 2))
            value = (sums.kl * pairs + total - 2.0 * (q @ (k * l)) / (count - 2)) / (count * (count - 3))
            ctx.save_for_backward(z, s, p, q, k, l)
            return value.to(z.dtype)
        cross = centered(sums.kl, k, l)
        if form == "biased":
            ctx.save_for_backward(z, s, p, q, k, l)
            return cross.clamp_min(0.0).to(z.dtype)
        own_z = centered(sums.kk, k, k).clamp_min(0.0)
        own_s = centered(sums.ll, l, l).clamp_min(0.0)
        ctx.save_for_backward(z, s, p, q, k, l, cross, own_z, own_s)
        return (cross * inverse_root(own_z, own_s, smallest_own(z, rows=1))).clamp(0.0, 1.0).to(z.dtype)

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        z, s, p, q, k, l, *more = ctx.saved_tensors
        kernel_z, kernel_s = ctx.kernels
        gradients: list[Tensor | None] = []
        for wanted, x, y, kernels, own, other, square in (
            (ctx.needs_input_grad[0], z, s, (kernel_z, kernel_s), k, l, 1),
            (ctx.needs_input_grad[1], s, z, (kernel_s, kernel_z), l, k, 2),
        ):
            if not wanted:
                gradients.append(None)
                continue
            pair = FusedPair(
                x, y, kernel_z=kernels[0], kernel_s=kernels[1], row_weights=p, precision=ctx.precision
            )  # fmt: skip
            if ctx.form == "unbiased":
                count = q.sum()
                shift = (q @ other) / ((count - 1) * (count - 2)) * 0.5 - other / (count - 2)
                result = pair.gradient(shift).mul_(2.0 / (count * (count - 3)))
                if p is not None:
                    result.mul_((p / x.shape[0]).unsqueeze(-1))
            elif ctx.form == "biased":
                result = pair.gradient((q @ other) * 0.5 - other)
            else:
                cross, mine, others = more[0], more[square], more[3 - square]
                smallest = smallest_own(z, rows=1)
                root = inverse_root(mine, others, smallest)  # zero, and so is the gradient, for a constant sample
                ratio = -cross / mine.clamp_min(smallest)
                shift = (q @ other) * 0.5 - other + ratio * ((q @ own) * 0.5 - own)
                result = pair.gradient(shift, k_weight=ratio).mul_(root)
            if ctx.form != "unbiased":
                result.mul_((2.0 * q / x.shape[0]).unsqueeze(-1))
            gradients.append(result.mul_(grad).to(x.dtype))
        return (*gradients, *[None] * 5)


def fused_hsic(
    z: Tensor,
    s: Tensor,
    *,
    kernel_z: Kernel,
    kernel_s: Kernel,
    form: str = "biased",
    row_weights: Tensor | None = None,
    precision: str | None = None,
) -> Tensor:
    """Return exact HSIC of ``(n, d)`` and ``(n, p)`` on a GPU in O(n) memory and O(n²(d + p)) time, differentiable.

    Parameters
    ----------
    z, s : Tensor
        One pair of samples on a GPU.
    kernel_z, kernel_s : Kernel
        Gaussian, Laplacian or inverse multiquadric, with one bandwidth each.
    form : {"biased", "unbiased", "normalized"}
        The normalized form takes its three sums from one pass.
    row_weights : Tensor, optional
        ``(n,)``: probabilities, or a 0/1 mask for the unbiased form.
    precision : {"tf32", "tf32x3", "float64"}, optional
        See the module. The default is ``"float64"`` for samples in float64 and ``"tf32x3"`` otherwise.
    """
    one_of("form", form, FORMS)
    if precision is None:
        precision = "float64" if z.dtype == torch.float64 else "tf32x3"
    one_of("precision", precision, PRECISIONS)
    p = None if row_weights is None else row_weights.to(torch.float64)
    value: Tensor = _Fused.apply(z, s, p, kernel_z, kernel_s, form, precision)
    return value


# Stacks of mini-batches ----------------------------------------------------------------------------------------------


def can_fuse_batch(u: Tensor) -> bool:
    """Return whether the kernels take rows ``(models, n, d)``: float32 on a GPU with Triton, and not too many."""
    if not u.is_cuda or u.dtype != torch.float32 or u.ndim != 3 or not _has_triton(u.device.index or 0):
        return False
    return u.shape[-1] <= BATCH_DIMENSION and u.shape[-2] <= BATCH_ROWS and u.numel() < 2**30


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
    tiles = math.ceil(n / _BATCH_TILE)
    stored = tiles * _BATCH_TILE
    size = {"D": max(16, 1 << (d + 5).bit_length()), "B": _BATCH_TILE}
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
    _batch_gradient_kernel[grid](
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
