"""Sums of distances over all pairs of rows of two columns, in O(n log n) time (Huo and Székely, 2016).

The rows are sorted by x and halved again and again. For a row i of an upper half the sum over the rows j of the lower
half is a sum over sorted y, because x_i > x_j is known: of |y_i − y_j| times a linear function. The results are exact
up to rounding.
"""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch import Tensor

_DIRECT = 32  # rows of the smallest parts, whose pairs are compared directly


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
    rows, parts = _sorted_rows(x, y)
    total = x.new_zeros(())
    for part in parts:
        weight, left, right = part.unbind()
        products = (left.unsqueeze(-1) - left.unsqueeze(-2)).abs_()
        products *= (right.unsqueeze(-1) - right.unsqueeze(-2)).abs_()
        total += ((products @ weight.unsqueeze(-1)).squeeze(-1) * weight).sum()
    for place, upper in _levels(rows):
        weight, left, right = (row[place] for row in rows)
        lower = torch.where(upper, 0.0, weight)
        below = torch.stack([lower, lower * left, lower * right, lower * left * right]).cumsum(-1)
        one, of_x, of_y, of_both = 2.0 * below - below[..., -1:]  # smaller minus larger y
        inner = left * right * one - right * of_x - left * of_y + of_both
        total += 2.0 * (inner * (weight * upper)).sum()
    return total


def _sorted_rows(x: Tensor, y: Tensor) -> tuple[Tensor, tuple[Tensor, ...]]:
    """Return weights, x and y sorted by x, ``(3, size)``, and the same in small parts; size is 32 times a power of two.

    The rows have weight one, and those that fill the last part weight zero.
    """
    n = len(x)
    order = torch.argsort(x)
    size = _DIRECT
    while size < n:
        size *= 2
    rows = x.new_zeros(3, size)
    for row, values in zip(rows, (torch.ones_like(x), x, y), strict=True):
        row[:n] = values[order]
    rows[1, n:] = rows[1, n - 1]
    return rows, rows.view(3, -1, _DIRECT).split(2**10, dim=1)


def _levels(rows: Tensor) -> Iterator[tuple[Tensor, Tensor]]:
    """Yield, for each level, the places of the rows of each part sorted by y, and whether each is in the upper half.

    Both are ``(parts, width)``. A stable split leads from one level to the next.
    """
    place = torch.argsort(rows[2]).unsqueeze(0)
    while place.shape[1] > _DIRECT:
        half = place.shape[1] // 2
        upper = (place & half) != 0
        yield place, upper
        place = torch.stack([place[~upper].view(-1, half), place[upper].view(-1, half)], 1).view(-1, half)
