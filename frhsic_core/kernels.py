"""Kernels, distances between samples, and the bandwidth that is used when none is given.

Every kernel is a small immutable object, and calling it gives the Gram matrix. Its docstring states what the theory
needs: a bound ν on k(x, x), and the Lipschitz constant ℓ of the feature map, ‖φ(x) − φ(y)‖ ≤ ℓ·‖x − y‖ (∞ if there is
none). Bandwidths may be tensors with the batch shape: a stack of models, each with a bandwidth of its own, is one call.
"""

from __future__ import annotations

import math
import operator
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Protocol, cast

import numpy as np
from numpy.typing import NDArray

from frhsic_core._arrays import (
    ArrayLike,
    as_sample,
    beside,
    binary_scale,
    recomputed,
    require_memory,
    same_kind,
    spaced_rows,
)
from frhsic_core._choices import one_of
from frhsic_core.backend import finfo, is_tensor, is_torch, xp

if TYPE_CHECKING:
    from torch import Tensor

_MANY_ROWS = 200  # from here on a median of selected pairs takes less time than one of all pairs
# What rounding may do to a squared distance near one; beyond it the expansion is not used.
_ROUNDING = {4: 1e-4, 8: 1e-11}  # by the bytes of a number


def squared_distances(x: Tensor, y: Tensor | None = None) -> Tensor:
    """Return the squared Euclidean distances ``|x_i − y_j|²``, ``(..., n, m)``; ``y=None`` means ``y = x``.

    One matrix product, O(nmd) time and O(nm) memory. The mean is subtracted first and the result
    is clamped at zero, because the expansion |x|² + |y|² − 2x·y loses digits far from the origin.
    Where one row is so far away that the mean does not help (:func:`loses_digits`), the columns
    are subtracted one by one. No root is taken, so the gradient is finite on repeated rows
    (integer ages repeat in every batch), where that of a squared norm is NaN. Scalar rows are
    subtracted directly, which is cheaper and free of cancellation.

    The rows are those of a function of distances near one: divide by its bandwidth first.

    Examples
    --------
    >>> import torch
    >>> squared_distances(torch.tensor([[0.0], [3.0]]))
    tensor([[0., 9.],
            [9., 0.]])
    """
    other = x if y is None else y
    if x.shape[-1] == 1:
        return _squared_differences(x, other)
    if loses_digits(x, y):
        return _sum_over_columns(x, other)
    return _expanded_squares(x, y)


def loses_digits(x: Tensor, y: Tensor | None = None) -> bool:
    """Return whether the expansion |x|² + |y|² − 2x·y is too rough for distances near one.

    Its rounding is that of the largest squared norm, from the mean. One far row, or two clouds far
    apart, make it larger than the distances that matter. On CUDA a sample with a gradient is not
    looked at, and neither is one of a captured step: a training step never waits for the device.
    """
    if x.is_meta:
        return False
    if x.is_cuda and (x.requires_grad or is_captured()):
        return False
    x = x.detach()
    shift = x.mean(-2, keepdim=True)
    rows = (x,) if y is None else (x, y.detach())
    limits = finfo(x)
    for part in rows:
        if part.numel() == 0:
            continue
        squares = (part - shift).square().sum(-1)
        if not float(squares.amax()) * limits.eps <= _ROUNDING[x.element_size()]:
            return True
    return False


def is_captured() -> bool:
    """Return whether a CUDA graph is being captured, in which nothing can wait for the device."""
    import torch

    return torch.cuda.is_current_stream_capturing()


def _squared_differences(x: Tensor, y: Tensor) -> Tensor:
    """Return ``(x_i − y_j)²`` of single columns ``(..., n, 1)`` and ``(..., m, 1)``."""
    difference = x - y.mT
    return difference * difference


def _sum_over_columns(x: Tensor, y: Tensor) -> Tensor:
    """Return squared distances from the differences of each column: exact, at d times the cost.

    With a gradient the differences are computed again in the backward pass, in O(nm) memory.
    """
    total = x.new_zeros(())
    for column, other in zip(x.split(1, dim=-1), y.split(1, dim=-1), strict=True):
        (squares,) = recomputed(lambda a, b: (_squared_differences(a, b),), column, other)
        total = total + squares
    return total


def _expanded_squares(x: Tensor, y: Tensor | None) -> Tensor:
    """Return squared distances from one matrix product."""
    shift = x.detach().mean(-2, keepdim=True)
    x = x - shift
    if y is None:
        return (-2.0 * half_squared_distances(x)).clamp_min(0.0)
    y = y - shift
    norms = (x * x).sum(-1, keepdim=True) + (y * y).sum(-1).unsqueeze(-2)
    return (norms - 2.0 * (x @ y.mT)).clamp_min(0.0)


def euclidean_distances(x: Tensor, y: Tensor | None = None) -> Tensor:
    """Return the Euclidean distances ``(..., n, m)``; their gradient is zero, not NaN, where two rows coincide."""
    y = x if y is None else y
    if x.shape[-1] == 1:  # one column: a tenth of the time of cdist, on a GPU a fiftieth
        return (x - y.mT).abs()
    unit = xp.maximum(binary_scale(x), binary_scale(y))
    return xp.distances(x / unit, y / unit) * unit


@same_kind
def median_bandwidth(x: ArrayLike, *, max_points: int | None = 1000) -> Tensor:
    """Return the median of the pairwise distances, the usual bandwidth; it is never zero and never NaN.

    σ = median{ ‖x_i − x_j‖ : i < j }, the lower of the two middle values when the number of pairs is even, as in the
    paper's released code. When more than half of the pairs coincide (an attribute with few values) the median is zero,
    and the mean of the distances is used instead. A constant sample gives one (more if its values are above 1e7, or 1e3
    in float32); every kernel matrix is then constant and HSIC is zero. Multiplying ``x`` by a power of two multiplies
    the result by it, at every magnitude. The result carries no gradient. O(min(n, max_points)²·d) time; one column
    takes O(n log n).

    Parameters
    ----------
    x : array_like
        ``(..., n, d)`` or ``(n,)``.
    max_points : int or None
        Number of rows used, evenly spaced; ``None`` uses all of them, with O(n²) memory for several columns.

    Returns
    -------
    Tensor, array or float
        Bandwidths with the batch shape of ``x``.

    Examples
    --------
    >>> median_bandwidth([0.0, 1.0, 3.0])
    2.0
    """
    if max_points is not None and max_points < 2:
        raise ValueError(
            f"max_points is {max_points}: at least 2 rows are needed for one distance."
        )
    return median_distance(as_sample(x, name="x"), max_points=max_points)


def median_distance(x: Tensor, *, max_points: int | None = 1000, power: int = 2) -> Tensor:
    """Return :func:`median_bandwidth` of a checked sample ``(..., n, d)``; ``power=1`` has ℓ₁ distances."""
    x = x.detach()
    if x.shape[-2] < 2:
        return x.new_ones(x.shape[:-2])
    if max_points is not None and x.shape[-2] > max_points:
        x = x.index_select(-2, spaced_rows(x.shape[-2], max_points, like=x))
    if (
        x.ndim > 2 and x.shape[-2] >= _MANY_ROWS and x.device.type == "cpu"
    ):  # each alone has a faster way
        each = [median_distance(part, max_points=None, power=power) for part in x.flatten(0, -3)]
        return xp.stack(each).reshape(x.shape[:-2])
    unit = binary_scale(x)
    x = x / unit
    if x.shape[1:] == (1,) and x.device.type == "cpu":
        middle = _median_of_column(np.sort(x[:, 0].double().numpy()))
        median, mean = x.new_tensor(middle).unbind()
    else:
        batch, copies = math.prod(x.shape[:-2]), 4 if x.ndim > 2 else 2
        advice = "Pass a kernel with a bandwidth, a smaller max_points or fewer batch elements."
        require_memory(x, x.shape[-2], batch=batch, copies=copies, advice=advice)
        quick = (
            _median_of_rows(x.double().numpy())
            if x.ndim == power == 2 and x.device.type == "cpu"
            else None
        )
        if quick is not None:
            median = mean = x.new_tensor(quick)  # far above zero, so that no mean is needed
        elif x.ndim == 2:
            pairs = xp.pair_distances(x.double(), float(power))
            median, mean = pairs.median().to(x.dtype), pairs.mean().to(x.dtype)
        else:
            median, mean = _median_of_pairs(xp.distances(x, x, float(power)), own=True)
    return _usable(median, mean, unit=unit[..., 0, 0], smallest=finfo(x).tiny)


def _median_of_column(x: NDArray[np.float64]) -> tuple[float, float]:
    """Return the lower median and the mean of the distances between sorted numbers; O(n log n) time, O(n) memory.

    The number of distances up to t is a sum of places in the sorted numbers. An interval that holds the median is
    halved until it holds few distances, and one of them is selected.
    """
    n = len(x)
    pairs = n * (n - 1) // 2
    wanted = (pairs + 1) // 2
    mean = float((2 * np.arange(n) - (n - 1)) @ (x - x[0])) / pairs
    after = np.arange(1, n + 1)
    low, high = 0.0, float(x[-1] - x[0])
    low_place, high_place = np.searchsorted(x, x, side="right"), np.full(n, n)
    low_count, high_count = int((low_place - after).sum()), pairs
    if low_count >= wanted:
        return 0.0, mean
    while high_count - low_count > max(8 * n, 2**14):
        middle = 0.5 * (low + high)
        if not low < middle < high:  # all that is left is one number
            row = int((high_place - low_place).argmax())
            return float(x[high_place[row] - 1] - x[row]), mean
        place = np.searchsorted(x, x + middle, side="right")
        count = int((place - after).sum())
        if count >= wanted:
            high, high_place, high_count = middle, place, count
        else:
            low, low_place, low_count = middle, place, count
    many = high_place - low_place
    first = np.repeat(np.arange(n), many)
    second = (
        np.arange(many.sum()) - np.repeat(np.cumsum(many) - many, many) + np.repeat(low_place, many)
    )
    distances = x[second] - x[first]
    rank = wanted - low_count - 1
    return float(np.partition(distances, rank)[rank]), mean


def _median_of_rows(x: NDArray[np.float64], *, block: int = 128) -> float | None:
    """Return the lower median of the distances between rows ``(n, d)`` in a quarter of the time of all distances.

    Products of matrices in float32 give the squared distances up to an error. An interval around the median, known from
    some pairs, holds few pairs. Of these, the pairs within the error of the median are computed exactly. ``None`` for
    few rows, and where the interval misses the median or is not wider than the error (many equal distances).
    """
    n, d = x.shape
    if n < _MANY_ROWS:
        return None
    rows = (x - x.mean(0)).astype(np.float32)
    squares = np.einsum("ij,ij->i", rows, rows)[:, None]
    ones = np.ones_like(squares)
    left, right = np.hstack([-2.0 * rows, squares, ones]), np.hstack([rows, ones, squares]).T
    # Of d + 2 products of float32 numbers, whose sizes sum to at most 4 max|x|², and of the rows themselves.
    error = 4.0 * (d + 16) * 2.0**-24 * float(squares.max())
    i, j = np.random.default_rng(0).integers(n, size=(2, 4096))
    low, high = np.quantile(
        np.einsum("ij,ij->i", left[i], right.T[j]), (0.47, 0.53)
    )  # four standard errors each way
    below = 0
    parts = []
    for first in range(0, n, block):
        squared = left[first : first + block] @ right[:, first:]
        squared[np.tri(*squared.shape, dtype=np.bool_)] = np.inf  # each pair once
        below += int(np.count_nonzero(squared < low))
        pairs = np.flatnonzero((squared >= low) & (squared <= high))
        i, j = np.divmod(pairs, n - first)
        parts.append((squared.ravel()[pairs], first + i, first + j))
    values, i, j = map(np.concatenate, zip(*parts, strict=True))
    rank = (n * (n - 1) // 2 - 1) // 2  # counted from zero
    if not below <= rank < below + len(values):
        return None
    median = np.partition(values, rank - below)[rank - below]
    if not low <= median - 2.0 * error or not median + 2.0 * error <= high:
        return None
    near = np.abs(values - median) <= 2.0 * error
    below += int(np.count_nonzero(~near & (values < median)))
    return float(np.sort(np.linalg.norm(x[i[near]] - x[j[near]], axis=1))[rank - below])


def batch_median(x: Tensor, max_points: int | None, *, exponents: Tensor | None = None) -> Tensor:
    """Return the median distance in a mini-batch ``(..., n, d)`` at the speed of a training step.

    The rows of a mini-batch are in random order, so the first ``max_points`` are taken and only the pairs between their
    two halves are used: a quarter of the numbers, at almost the same accuracy. ``None`` uses all pairs of rows. The
    distances come from one matrix product, or from ``exponents``, −|x_i − x_j|²/2 of all rows, where these are known.
    Nothing is checked and nothing waits for a GPU.
    """
    x = x.detach()
    half = x.shape[-2] if max_points is None else min(max_points, x.shape[-2]) // 2
    rows, columns = slice(half), slice(None) if max_points is None else slice(half, 2 * half)
    if exponents is not None:
        squared = -2.0 * exponents[..., rows, columns]
    else:
        halves = x[..., rows, :], None if max_points is None else x[..., columns, :]
        squared = _expanded_squares(*halves)
    if x.device.type == "cpu" and max_points is not None and half > 0:
        # Most batches need no mean and the root of one number; this median takes half the time of kthvalue.
        medians = [
            math.sqrt(max(pairs.median().item(), 0.0)) for pairs in squared.reshape(-1, half * half)
        ]
        if min(medians) > 1e-9:
            return x.new_tensor(medians).reshape(x.shape[:-2])
    median, mean = _median_of_pairs(squared.clamp_min_(0.0).sqrt_(), own=max_points is None)
    return _usable(median, mean, unit=xp.ones_like(median), smallest=finfo(x).tiny ** 0.25)


def _median_of_pairs(distances: Tensor, *, own: bool) -> tuple[Tensor, Tensor]:
    """Return the lower median and the mean of a matrix of distances; ``own`` matrices hold each pair twice."""
    n = distances.shape[-1]
    zeros = n if own else 0  # the diagonal comes first in order
    count = n * distances.shape[-2] - zeros
    flat = distances.flatten(-2)
    if count < 1:
        return flat.sum(-1), flat.sum(-1)
    place = zeros + (2 * ((count // 2 - 1) // 2) + 1 if own else (count + 1) // 2)
    return flat.kthvalue(place, -1).values, flat.sum(-1) / count  # a selection, not a sort


def _usable(median: Tensor, mean: Tensor, *, unit: Tensor, smallest: float) -> Tensor:
    """Return the median in units of ``unit``, the mean where it is zero, and the stand-in of a constant sample."""
    bandwidth = xp.where(median > smallest, median, mean)
    # The mean of a constant sample is rounded: the stand-in must be far above that, and far below its square.
    rounding = finfo(median).eps ** 0.5 * unit
    return xp.where(bandwidth > smallest, bandwidth * unit, rounding.clamp_min(1.0))


def exponential(exponent: Tensor) -> Tensor:
    """Return ``exp`` of a kernel's exponents, clamped to [1e-19, 1] (in float32); overwrites what needs no gradient.

    The lower bound is the root of the smallest number, far below the rounding of any sum that it enters. Without it a Z
    that is spread over many bandwidths fills the Gram matrix with subnormal numbers, on which ``exp`` and matrix
    products are a hundred times slower. Exponents above zero are rounding. On a CPU exp2 is faster than exp by a third.
    """
    lowest = 0.5 * math.log(finfo(exponent).tiny)
    if exponent.requires_grad:
        return exponent.clamp(lowest, 0.0).exp()
    exponent.clamp_(lowest, 0.0)
    return exponent.exp_() if exponent.is_cuda else exponent.mul_(math.log2(math.e)).exp2_()


def half_squared_distances(u: Tensor) -> Tensor:
    """Return ``−|u_i − u_j|²/2`` for rows with mean zero, ``(..., n, n)``; exactly zero where two rows coincide."""
    if u.device.type != "cpu" and u.element_size() == 4 and not u.requires_grad:
        # One pass instead of three, a product of [u, |u|², −½] and [u, −½, |u|²]; equal rows are zero up to rounding.
        square = (u * u).sum(-1, keepdim=True)
        constant = xp.full_like(square, -0.5)
        left = xp.cat([u, square, constant], dim=-1)
        return left @ xp.cat([u, constant, square], dim=-1).mT
    inner = u @ u.mT.contiguous()  # on a CPU a copy of the thin matrix pays for itself
    # The diagonal of the product itself, so that u·u − |u|²/2 − |u|²/2 is exactly zero there.
    square = inner.diagonal(dim1=-2, dim2=-1).clone()
    if inner.requires_grad:
        return inner - 0.5 * square.unsqueeze(-1) - 0.5 * square.unsqueeze(-2)
    return inner.sub_(square.unsqueeze(-1), alpha=0.5).sub_(square.unsqueeze(-2), alpha=0.5)


class Kernel(Protocol):
    """A kernel: a function of one or two samples that returns their Gram matrix."""

    def __call__(self, x: Tensor, y: Tensor | None = None) -> Tensor:
        """Return the Gram matrix ``k(x_i, y_j)`` of shape ``(..., n, m)``; ``y=None`` means ``y = x``."""
        ...


@dataclass(frozen=True)
class _BandwidthKernel:
    """What kernels with a bandwidth share: σ > 0."""

    bandwidth: float | Tensor

    def __post_init__(self) -> None:
        # Tensors are trusted: looking at their values would make a training step wait for the GPU.
        sigma = self.bandwidth
        if not is_tensor(sigma) and not (math.isfinite(sigma) and sigma > 0):
            raise ValueError(
                f"bandwidth is {sigma}: it must be a positive number, such as median_bandwidth returns."
            )

    def _scale(self, like: Tensor) -> float | Tensor:
        """Return the bandwidth in a shape that divides a ``(..., n, m)`` matrix."""
        if is_torch(self.bandwidth):
            return self.bandwidth.to(dtype=like.dtype, device=like.device)[..., None, None]
        if is_tensor(self.bandwidth):
            return beside(self.bandwidth, like, name="bandwidth")[..., None, None]
        return self.bandwidth

    def _exponents(self, x: Tensor, y: Tensor | None) -> Tensor:
        """Return ``−|x_i − y_j|²/2σ²``, for rows that may be far from the origin and from each other.

        An offset is subtracted before anything is divided or squared, because it would cost digits:
        the median of a column, which is near most rows whatever a few of them are, or the mean of
        several columns, which is cheaper and serves where no row is far away.
        """
        scale = self._scale(x)
        shift = x.detach().mean(-2, keepdim=True) if x.shape[-1] > 1 else _middle(x)
        u = (x - shift) / scale
        v = None if y is None else (y - shift) / scale
        if x.shape[-1] == 1:
            return -0.5 * _squared_differences(u, u if v is None else v)
        if loses_digits(u, v):
            shift = _middle(x)
            u = (x - shift) / scale
            v = u if y is None else (y - shift) / scale
            return -0.5 * _sum_over_columns(u, v)
        if v is None:
            return half_squared_distances(u)
        return -0.5 * _expanded_squares(u, v)


def _middle(x: Tensor) -> Tensor:
    """Return the lower median of each column, ``(..., 1, d)``, without a gradient."""
    return x.detach().median(-2, keepdim=True).values


@dataclass(frozen=True)
class Gaussian(_BandwidthKernel):
    """Gaussian kernel ``exp(−‖x − y‖² / (2σ²))``: ν = 1, ℓ = 1/σ, characteristic.

    ``2 − 2·exp(−r²/2σ²) ≤ r²/σ²`` gives ℓ. Gram matrix: O(nmd) time, O(nm) memory.

    Parameters
    ----------
    bandwidth : float or Tensor
        σ > 0; a tensor holds one bandwidth for each batch element.

    Examples
    --------
    >>> import torch
    >>> Gaussian(1.0)(torch.tensor([[0.0], [1.0]])).round(decimals=4)
    tensor([[1.0000, 0.6065],
            [0.6065, 1.0000]])
    """

    def __call__(self, x: Tensor, y: Tensor | None = None) -> Tensor:
        return exponential(self._exponents(x, y))


@dataclass(frozen=True)
class MultiScale(_BandwidthKernel):
    r"""Mean of the Gaussian kernels with bandwidths 2σ, σ, σ/2 and σ/4: ν = 1, ℓ = √5.3125/σ, characteristic.

    A Gaussian kernel hardly distinguishes points that are much closer than its bandwidth, so what an attribute does on
    a finer scale escapes it. With t = exp(−‖x − y‖²/8σ²) the kernel is (t + t⁴ + t¹⁶ + t⁶⁴)/4: one exponential and six
    squares, O(nmd) time and O(nm) memory as for :class:`Gaussian`. The mean of ‖φ(x) − φ(y)‖² over the scales gives ℓ.

    Parameters
    ----------
    bandwidth : float or Tensor
        σ > 0; a tensor holds one bandwidth for each batch element.

    Examples
    --------
    >>> import torch
    >>> scales = [Gaussian(factor)(torch.tensor([[0.0], [1.0]])) for factor in (2.0, 1.0, 0.5, 0.25)]
    >>> bool((MultiScale(1.0)(torch.tensor([[0.0], [1.0]])) - sum(scales) / 4).abs().max() < 1e-6)
    True
    """

    def __call__(self, x: Tensor, y: Tensor | None = None) -> Tensor:
        # In units of the narrowest scale, an eighth of the widest one.
        exponents = Gaussian(0.25 * self.bandwidth)._exponents(x, y)
        return multi_scale_grams(exponential(exponents / 64.0))[0]


def needs_differences(kernel: Any, x: Tensor) -> bool:
    """Return whether a kernel needs the differences of rows ``(..., n, d)``, because one is far away.

    Only kernels that :func:`frhsic_core.joint.contraction.gram_term` expands are asked.
    """
    if isinstance(kernel, MultiScale):
        return needs_differences(Gaussian(0.25 * kernel.bandwidth), x)
    if isinstance(kernel, Gaussian | InverseMultiquadric):
        return loses_digits(x.detach() / kernel._scale(x))
    return False


def multi_scale_grams(widest: Tensor, factors: tuple[float, ...] = (1.0,)) -> list[Tensor]:
    """Return the Gram matrix of :class:`MultiScale` from that of its widest Gaussian, which has twice the bandwidth.

    There is one matrix for each factor, in which each scale counts ``factor`` times as much as the next wider one. The
    derivative of a Gaussian with bandwidth fσ is −k/2f²σ², so a factor of 4 gives −2 times the derivative in
    ‖x − y‖²/4σ².

    What lies below the fourth root of twice the smallest number is raised to it, as in :func:`exponential`: its fourth
    power would be a subnormal number, which makes every later operation slow. The factor two is for rounding.
    """
    lowest = (2.0 * finfo(widest).tiny) ** 0.25
    totals = [widest] * len(factors)
    for finer in (1, 2, 3):
        widest = widest.clamp_min(lowest).square().square()
        totals = [
            xp.add(total, widest, alpha=factor**finer)
            for total, factor in zip(totals, factors, strict=True)
        ]
    return [0.25 * total for total in totals]


@dataclass(frozen=True)
class Laplacian(_BandwidthKernel):
    """Laplacian kernel ``exp(−‖x − y‖₁ / σ)``: ν = 1, characteristic, ℓ = ∞.

    The squared feature distance is 2 − 2·exp(−r/σ) ≈ 2r/σ near zero, so the feature map is Hölder of order 1/2 but not
    Lipschitz: Theorem 5.1 (``thm:uniform-hsic-frhsic``) does not apply to it. Gram matrix: O(nmd) time and memory.

    Examples
    --------
    >>> import torch
    >>> Laplacian(1.0)(torch.tensor([[0.0], [1.0]]))[0, 1].item() == torch.exp(torch.tensor(-1.0)).item()
    True
    """

    def __call__(self, x: Tensor, y: Tensor | None = None) -> Tensor:
        # cdist with p=1 has the gradient sign(x − y), zero at repeated rows.
        distance = xp.distances(x, x if y is None else y, 1.0)
        return exponential(-distance / self._scale(distance))


@dataclass(frozen=True)
class InverseMultiquadric(_BandwidthKernel):
    """Inverse multiquadric kernel ``(1 + ‖x − y‖²/σ²)^(−1/2)``: ν = 1, ℓ = 1/σ, characteristic.

    Its tail is polynomial, so two distant clouds still interact where a Gaussian kernel is zero. Cost as
    :class:`Gaussian`.

    Examples
    --------
    >>> import torch
    >>> InverseMultiquadric(1.0)(torch.tensor([[0.0], [1.0]]))[0, 1].round(decimals=4)
    tensor(0.7071)
    """

    def __call__(self, x: Tensor, y: Tensor | None = None) -> Tensor:
        return (1.0 - 2.0 * self._exponents(x, y).clamp_max(0.0)).rsqrt()


@dataclass(frozen=True)
class Linear:
    """Linear kernel ``x·y``: ν = ∞, ℓ = 1, not characteristic. HSIC with it measures covariances only.

    Examples
    --------
    >>> import torch
    >>> Linear()(torch.tensor([[1.0, 2.0]]))
    tensor([[5.]])
    """

    def __call__(self, x: Tensor, y: Tensor | None = None) -> Tensor:
        return x @ (x if y is None else y).mT


@dataclass(frozen=True)
class Distance:
    """Distance-induced kernel ``(‖x‖ + ‖y‖ − ‖x − y‖)/2``: ν = ∞, ℓ = ∞; HSIC with it is dCov²/4.

    ‖φ(x) − φ(y)‖² = ‖x − y‖, Hölder of order 1/2. The choice of origin drops out of every centred statistic
    (Sejdinovic et al., 2013). Distances have gradient zero on repeated rows.

    Examples
    --------
    >>> import torch
    >>> Distance()(torch.tensor([[3.0], [1.0]]))
    tensor([[3., 1.],
            [1., 1.]])
    """

    def __call__(self, x: Tensor, y: Tensor | None = None) -> Tensor:
        y = x if y is None else y
        origin = xp.zeros_like(x[..., :1, :])
        norms = euclidean_distances(x, origin) + euclidean_distances(origin, y)
        return 0.5 * (norms - euclidean_distances(x, y))


@dataclass(frozen=True)
class Product:
    """Product over attributes: ``Π_a k_a(x[:, a], y[:, a])``, one factor for each column.

    ν is the product of the factors' ν. If all of them are one, ``1 − Π(1 − ℓ_a²r_a²/2) ≤ Σ ℓ_a²r_a²/2`` gives
    ℓ = max ℓ_a. Cost: the sum of the factors'.

    Examples
    --------
    >>> import torch
    >>> x = torch.tensor([[0.0, 0.0], [1.0, 2.0]])
    >>> Product([Gaussian(1.0), Gaussian(2.0)])(x)[0, 1].round(decimals=4)
    tensor(0.3679)
    """

    factors: tuple[Kernel, ...]

    def __init__(self, factors: Sequence[Kernel]) -> None:
        if len(factors) == 0:
            raise ValueError("Product has no factors: pass one kernel for each column.")
        object.__setattr__(self, "factors", tuple(factors))

    def __call__(self, x: Tensor, y: Tensor | None = None) -> Tensor:
        if x.shape[-1] != len(self.factors):
            raise ValueError(
                f"x has {x.shape[-1]} columns but Product has {len(self.factors)} factors: pass one for each column."
            )
        grams = [
            factor(x[..., a : a + 1], None if y is None else y[..., a : a + 1])
            for a, factor in enumerate(self.factors)
        ]
        return math.prod(grams[1:], start=grams[0])


def with_bandwidths(kernel: Kernel, change: Callable[[float | Tensor], float | Tensor]) -> Kernel:
    """Return the kernel with each of its bandwidths changed, or the kernel itself if it has no bandwidth.

    Examples
    --------
    >>> with_bandwidths(Gaussian(2.0), lambda bandwidth: 0.5 * bandwidth)
    Gaussian(bandwidth=1.0)
    """
    if isinstance(kernel, Product):
        factors = [with_bandwidths(factor, change) for factor in kernel.factors]
        return kernel if all(map(operator.is_, factors, kernel.factors)) else Product(factors)
    bandwidth, make = getattr(kernel, "bandwidth", None), type(kernel)
    if isinstance(kernel, _BandwidthKernel):
        return replace(kernel, bandwidth=change(kernel.bandwidth))
    return (
        kernel if bandwidth is None else cast(Callable[..., Kernel], make)(change(bandwidth))
    )  # of the user's own


def bandwidths_of(kernel: Kernel) -> list[Tensor] | None:
    """Return the tensors among the bandwidths of a kernel; ``None`` for a kernel of the user's own.

    What shapes the Gram matrix of a kernel of this library, beside the sample, are its bandwidths.
    A kernel of the user's own may have other parameters.

    Examples
    --------
    >>> import torch
    >>> bandwidths_of(Product([Gaussian(torch.tensor(2.0)), Gaussian(1.0), Categorical()]))
    [tensor(2.)]
    """
    kind = type(kernel)
    if isinstance(kernel, Product) and kind is Product:
        every: list[Tensor] = []
        for factor in kernel.factors:
            own = bandwidths_of(factor)
            if own is None:
                return None
            every += own
        return every
    if kind not in KERNELS.values():
        return None
    bandwidth = getattr(kernel, "bandwidth", None)
    if is_tensor(bandwidth):
        return [bandwidth]
    return []


def needs_torch(kernel: Any) -> bool:
    """Return whether a kernel needs tensors: its bandwidth is one, or a user may have written it for them.

    A kernel of the user's own takes arrays if torch has not been imported: it cannot need it then.
    """
    if kernel is None or isinstance(kernel, str):
        return False
    known = bandwidths_of(kernel)
    if known is None:
        return "torch" in sys.modules
    return any(is_torch(bandwidth) for bandwidth in known)


def resolve_kernel(
    kernel: Kernel | str | None,
    x: Tensor,
    *,
    name: str = "kernel",
    categorical: tuple[int, ...] = (),
) -> Kernel:
    """Return the kernel for a checked sample: an object as it is, a name or ``None`` at the median bandwidth.

    Parameters
    ----------
    kernel : Kernel, str or None
        ``None`` is Gaussian. ``"product"``, and ``None`` for a sample with categorical columns, is the product over the
        columns of Gaussians and of :class:`Categorical`, the paper's kernel for several attributes (its appendix on
        multiple sensitive attributes). A product of characteristic kernels is characteristic on the product space, so
        it detects joint dependence on all attributes.
    x : Tensor
        ``(..., n, d)``, for the bandwidth.
    name : str
        Name of the argument in messages.
    categorical : tuple of int
        Places of the columns that are codes of categories.

    Examples
    --------
    >>> import torch
    >>> resolve_kernel("laplacian", torch.tensor([[0.0], [1.0], [3.0]])).bandwidth.item()
    2.0
    """
    if kernel == "product" or (kernel is None and categorical):
        factors = [
            Categorical() if a in categorical else Gaussian(median_distance(column))
            for a, column in enumerate(x.split(1, dim=-1))
        ]
        return factors[0] if len(factors) == 1 else Product(factors)
    if categorical:
        require_kernel_of_codes(kernel, categorical, x.shape[-1], name=name)
    if kernel is None or isinstance(kernel, str):
        kind = KERNELS[
            one_of(name, "gaussian" if kernel is None else kernel, (*KERNELS, "product"))
        ]
        with_bandwidth = issubclass(kind, _BandwidthKernel)
        return (
            kind(median_distance(x, power=1 if kind is Laplacian else 2))
            if with_bandwidth
            else kind()
        )
    if not callable(kernel):
        raise TypeError(
            f"{name} is {kernel!r}: pass a kernel such as Gaussian(1.0), a name such as 'gaussian', or None for the "
            "default."
        )
    return kernel


def require_kernel_of_codes(
    kernel: Any, categorical: tuple[int, ...], columns: int, *, name: str
) -> None:
    """Raise an error if a kernel takes the codes of categories for numbers.

    Codes are numbered in the order of appearance: what such a kernel gives depends on the order of
    the rows. A kernel of the user's own is trusted.
    """
    if not _takes_numbers(kernel, categorical):
        return
    shown = repr(kernel) if isinstance(kernel, str) else type(kernel).__name__
    if columns == 1:
        raise TypeError(
            f"{name} is {shown}, but the column has categories, which have no distance: pass "
            "Categorical() or None, or encode the categories as numbers yourself."
        )
    raise TypeError(
        f"{name} is {shown}, but column {categorical[0]} has categories, which have no distance: "
        "pass None or 'product', or a Product with Categorical() for this column."
    )


def _takes_numbers(kernel: Any, categorical: tuple[int, ...]) -> bool:
    """Return whether a kernel of this library reads one of these columns as numbers."""
    if isinstance(kernel, str):
        return kernel in KERNELS and kernel != "categorical"
    if isinstance(kernel, Product):
        factors = [kernel.factors[a] for a in categorical if a < len(kernel.factors)]
        return any(_takes_numbers(factor, (0,)) for factor in factors)
    return isinstance(kernel, _BandwidthKernel | Linear | Distance)


def from_the_mean(x: Tensor, kernel: Kernel | None) -> Tensor:
    """Subtract the mean of a sample if its kernel measures from the origin.

    The origin drops out of every centered statistic, and one far from the sample would cost digits.
    ``None`` stands for a Gaussian kernel whose bandwidth is found later.
    """
    if isinstance(kernel, Linear | Distance):
        return x - x.detach().mean(-2, keepdim=True)
    return x


def in_own_units(x: Tensor, kernel: Kernel | None) -> tuple[Tensor, Tensor]:
    """Return a sample at size one, and the factor ``(...)`` by which its kernel has become smaller.

    Kernels with a bandwidth have no units: their sample stays as it is, and the factor is one. So
    it is for ``None``, a Gaussian kernel whose bandwidth is found later.
    """
    unit = xp.ones_like(x[..., :1, :1])
    if isinstance(kernel, Linear | Distance):
        unit = binary_scale(x)
    factor = unit * unit if isinstance(kernel, Linear) else unit
    return x / unit, factor[..., 0, 0]


def without_units(x: Tensor, kernel: Kernel) -> Tensor:
    """Divide by a power of two what a kernel without a bandwidth would turn into numbers of any size.

    For a ratio of statistics, which does not depend on units: squares of such numbers can leave the range of a dtype,
    and what counts as rounding is fixed for kernels of size one.
    """
    if isinstance(kernel, Linear | Distance):
        return x / binary_scale(x)
    if isinstance(kernel, Product) and x.shape[-1] == len(kernel.factors):
        columns = zip(x.split(1, dim=-1), kernel.factors, strict=True)
        return xp.cat([without_units(column, factor) for column, factor in columns], dim=-1)
    return x


@dataclass(frozen=True)
class Categorical:
    """Kronecker-delta kernel ``1 if x = y else 0`` for codes of categories: ν = 1, ℓ = ∞, characteristic.

    Rows of several columns are equal if all their columns are. For a mixed attribute, such as age and sex, use it as a
    factor of :class:`Product`: ``Product([Gaussian(10.0), Categorical()])``. Gram matrix: O(nmd) time, O(nm) memory.

    Examples
    --------
    >>> import torch
    >>> Categorical()(torch.tensor([[0.0], [1.0], [1.0]]))
    tensor([[1., 0., 0.],
            [0., 1., 1.],
            [0., 1., 1.]])
    """

    def __call__(self, x: Tensor, y: Tensor | None = None) -> Tensor:
        y = x if y is None else y
        equal = x[..., :1] == y[..., :1].mT
        for c in range(1, x.shape[-1]):
            equal = equal & (x[..., c : c + 1] == y[..., c : c + 1].mT)
        return equal.to(x.dtype)


KERNELS: dict[str, type[Any]] = {
    "gaussian": Gaussian,
    "multi_scale": MultiScale,
    "laplacian": Laplacian,
    "imq": InverseMultiquadric,
    "linear": Linear,
    "distance": Distance,
    "categorical": Categorical,
}
"""The kernels that can be given by name, at the median bandwidth of the sample."""
