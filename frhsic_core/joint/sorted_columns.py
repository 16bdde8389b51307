"""Sums over all pairs of rows of two columns in O(n log n) time: distances, and Laplacian kernels.

The rows are sorted by x and halved again and again. For a row i of an upper half the sum over the rows j of the lower
half is a sum over sorted y, because x_i > x_j is known: of |y_i − y_j| times a linear function (Huo and Székely, 2016),
or of exp(−|y_i − y_j|/τ), which a recursion along y adds up. All results are exact up to rounding.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor
from torch.nn.functional import pad

_DIRECT = 64  # rows of the smallest parts, whose pairs are compared directly


def sums_of_distances(x: Tensor) -> Tensor:
    """Return Σ_j |x_i − x_j| for each i, from sorted numbers and their partial sums."""
    ordered, order = x.sort()
    n = len(x)
    place = torch.arange(n, dtype=x.dtype, device=x.device)
    sums = (2.0 * place - n + 1.0) * ordered + ordered.sum() - 2.0 * ordered.cumsum(0) + ordered
    return torch.empty_like(x).index_copy_(0, order, sums)


def sum_of_products(x: Tensor, y: Tensor) -> Tensor:
    """Return Σ_ij |x_i − x_j||y_i − y_j|.

    For a row of an upper half four partial sums are enough, over the rows of the lower half with smaller y.

    Examples
    --------
    >>> sum_of_products(torch.tensor([0.0, 1.0, 3.0]), torch.tensor([2.0, 1.0, 1.0])).item()
    8.0
    """

    def across(weight: Tensor, left: Tensor, right: Tensor, upper: Tensor) -> Tensor:
        lower = torch.where(upper, 0.0, weight)
        below = torch.stack([lower, lower * left, lower * right, lower * left * right]).cumsum(-1)
        one, of_x, of_y, of_both = 2.0 * below - below[..., -1:]  # smaller minus larger y
        inner = left * right * one - right * of_x - left * of_y + of_both
        return (inner * (weight * upper)).sum()

    return _over_pairs(x, y, torch.ones_like(x), torch.mul, across)


def laplacian_sum(x: Tensor, y: Tensor, weights: Tensor, sigma: float, tau: float) -> Tensor:
    """Return Σ_ij w_i w_j exp(−|x_i − x_j|/σ) exp(−|y_i − y_j|/τ), in O(n log² n) time.

    Examples
    --------
    >>> x = torch.tensor([0.0, 1.0])
    >>> bool((laplacian_sum(x, x, torch.ones(2), 1.0, 1.0) - 2 - 2 * torch.exp(torch.tensor(-2.0))).abs() < 1e-6)
    True
    """

    def across(weight: Tensor, left: Tensor, right: Tensor, upper: Tensor) -> Tensor:
        # From the largest x of the lower half, so that no exponent is positive.
        middle = torch.where(upper, -torch.inf, left).amax(-1, keepdim=True)
        size = weight * torch.exp(-(left - middle).abs() / sigma)
        found = laplacian_times(right, torch.where(upper, 0.0, size), tau)
        return (torch.where(upper, size, 0.0) * found).sum()

    return _over_pairs(x, y, weights, lambda a, b: torch.exp(-(a / sigma + b / tau)), across)


def _over_pairs(
    x: Tensor,
    y: Tensor,
    weights: Tensor,
    direct: Callable[[Tensor, Tensor], Tensor],
    across: Callable[[Tensor, Tensor, Tensor, Tensor], Tensor],
) -> Tensor:
    """Return the weighted sum over all pairs of rows of ``direct``, a function of both distances.

    ``across`` is the sum over the pairs of a lower and an upper half, for parts ``(parts, width)`` sorted by y: their
    weights, x and y, and which rows are in the upper half.
    """
    n = len(x)
    order = torch.argsort(x)
    size = _DIRECT
    while size < n:
        size *= 2
    rows = x.new_zeros(3, size)  # those that fill the last part have weight zero
    for row, values in zip(rows, (weights, x, y), strict=True):
        row[:n] = values[order]
    rows[1, n:] = rows[1, n - 1]
    total = x.new_zeros(())
    for part in rows.view(3, -1, _DIRECT).split(2**8, dim=1):
        weight, *columns = part.unbind()
        values = direct(*((column.unsqueeze(-1) - column.unsqueeze(-2)).abs_() for column in columns))
        total += ((values @ weight.unsqueeze(-1)).squeeze(-1) * weight).sum()
    place = torch.argsort(rows[2]).unsqueeze(0)
    while place.shape[1] > _DIRECT:  # a stable split leads from one level to the next
        half = place.shape[1] // 2
        upper = (place & half) != 0
        weight, left, right = (row[place] for row in rows)
        total += 2.0 * across(weight, left, right, upper)
        place = torch.stack([place[~upper].view(-1, half), place[upper].view(-1, half)], 1).view(-1, half)
    return total


def laplacian_times(x: Tensor, v: Tensor, sigma: float) -> Tensor:
    """Return Σ_j exp(−|x_i − x_j|/σ) v_j for sorted x ``(..., n)`` and v whose last dimensions are those of x.

    The recursion h_i = exp(−(x_i − x_(i−1))/σ) h_(i−1) + v_i runs along the rows in both directions. It is computed by
    doubling: after k steps h_i holds the sum over 2^k rows.
    """
    decay = torch.exp(-x.diff(dim=-1) / sigma)
    start = torch.zeros_like(x[..., :1])
    forward = _recursion(v, torch.cat([start, decay], -1))
    backward = _recursion(v.flip(-1), torch.cat([start, decay.flip(-1)], -1)).flip(-1)
    return forward + backward - v


def _recursion(v: Tensor, decay: Tensor) -> Tensor:
    step = 1
    while step < v.shape[-1] and bool(decay.any()):
        v = v + decay * pad(v[..., :-step], (step, 0))
        decay = decay * pad(decay[..., :-step], (step, 0))
        step *= 2
    return v
