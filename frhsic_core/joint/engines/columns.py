r"""Sorted columns: sums over all pairs of rows of distances and Laplacian kernels in O(n log² n).

A Laplacian kernel and a distance are not smooth, so that their Gram matrices have no small rank.
But a sum over all pairs of rows of two columns takes O(n log² n) time. The rows are sorted by x and
halved again and again. For a row i of an upper half the sum over the rows j of the lower half is a
sum over sorted y, because x_i > x_j is known: of |y_i − y_j| times a linear function (Huo and
Székely, 2016), or of exp(−|y_i − y_j|/τ), which a recursion along y adds up. All results are exact
up to rounding, in float64. They have no gradient.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING

from frhsic_core.backend import xp
from frhsic_core.joint.contraction import from_sums
from frhsic_core.joint.engines import thin
from frhsic_core.joint.factors import THIN_ROWS, factor
from frhsic_core.joint.problem import Problem, over_pairs
from frhsic_core.kernels import Distance, Laplacian

if TYPE_CHECKING:
    from torch import Tensor

# From this many rows sorted columns are faster than two matrices of distances.
SORTED_ROWS = 256
_DIRECT = 32  # rows of the smallest parts of a sorted column, whose pairs are compared directly


def serves(problem: Problem) -> bool:
    """Return whether these are two columns with distances, or a column with a Laplacian kernel."""
    if problem.is_learned or problem.needs_gradient or problem.z.shape[-1] > 1:
        return False
    if _are_distances(problem):
        return problem.rows >= SORTED_ROWS
    return problem.rows >= THIN_ROWS and _has_laplacian_column(problem)


def value(problem: Problem) -> Tensor | None:
    """Return HSIC of each batch element, or ``None`` if the rank of the other kernel is too large."""
    return over_pairs(problem, of_pair)


def of_pair(pair: Problem) -> Tensor | None:
    """Return HSIC of one pair of samples, ``None`` as in :func:`value`.

    A sample beside itself, or a column of few values, may have thin matrices although the pair of
    both samples has none.
    """
    found = None
    if thin.serves(pair):
        found = thin.of_pair(pair)
    if found is not None:
        return found
    if _are_distances(pair):
        return _of_distances(pair)
    return _of_laplacians(pair)


def _are_distances(problem: Problem) -> bool:
    """Return whether both kernels are distances of single columns whose rows count alike."""
    if not isinstance(problem.kernel_z, Distance) or not isinstance(problem.kernel_s, Distance):
        return False
    return problem.z.shape[-1] == problem.s.shape[-1] == 1 and problem.weights is None


def _has_laplacian_column(problem: Problem) -> bool:
    """Return whether a sample is a column with a Laplacian kernel."""
    on_z = isinstance(problem.kernel_z, Laplacian) and problem.z.shape[-1] == 1
    on_s = isinstance(problem.kernel_s, Laplacian) and problem.s.shape[-1] == 1
    return on_z or on_s


def _of_distances(pair: Problem) -> Tensor:
    """Return HSIC with two distances, a quarter of the distance covariance."""
    z, s = pair.z.double(), pair.s.double()
    x = pair.z[:, 0].double() - z.mean()
    y = pair.s[:, 0].double() - s.mean()
    rows_x = sums_of_distances(x)
    if pair.s is pair.z:
        # A column with itself: Σ_ij (x_i − x_j)² = 2n Σ_i x_i² of the centered column.
        product = 2.0 * len(x) * x.square().sum()
        rows_y = rows_x
    else:
        product = sum_of_products(x, y)
        rows_y = sums_of_distances(y)
    ones = xp.ones_like(x)
    return 0.25 * from_sums(product, rows_x, rows_y, ones, estimator=pair.estimator)


def _of_laplacians(pair: Problem) -> Tensor | None:
    """Return HSIC with a Laplacian kernel on a column; the other kernel is one too, or has a rank."""
    unbiased = pair.estimator == "unbiased"
    if not isinstance(pair.kernel_z, Laplacian):
        pair = Problem(pair.s, pair.z, pair.kernel_s, pair.kernel_z, pair.weights, pair.estimator)
    order = pair.z[:, 0].argsort()
    x = pair.z[order, 0].double()
    y = pair.s[order].double()
    if pair.weights is None:
        p = xp.full_like(x, 1.0 if unbiased else 1.0 / len(x))
    else:
        p = pair.weights.double()[order]
    sigma = float(pair.kernel_z.bandwidth)
    rows_x = laplacian_times(x, p, sigma)
    if isinstance(pair.kernel_s, Laplacian) and y.shape[1] == 1:
        tau = float(pair.kernel_s.bandwidth)
        product = laplacian_sum(x, y[:, 0], p, sigma, tau)
        sorted_y, place = y[:, 0].sort()
        rows_y = xp.empty_like(p).index_copy_(0, place, laplacian_times(sorted_y, p[place], tau))
        diagonal_y = xp.ones_like(p)
    else:
        features = factor(pair.kernel_s, y)
        if features is None:
            return None
        psi = features(y)
        psi = psi - (p @ psi) / p.sum()
        product = _sum_over_features(x, psi.mT, p, sigma)
        rows_y = xp.zeros_like(p)  # the weighted features sum to zero
        diagonal_y = psi.square().sum(-1)
    if unbiased:
        product = product - p @ diagonal_y
        rows_x = rows_x - 1.0
        rows_y = rows_y - diagonal_y
    return from_sums(product, rows_x, rows_y, p, estimator=pair.estimator)


def _sum_over_features(x: Tensor, psi: Tensor, p: Tensor, sigma: float) -> Tensor:
    """Return Σ_ij p_i p_j exp(−|x_i − x_j|/σ) ψ_i·ψ_j for sorted x and features ``(rank, n)``."""
    sums = [(part * laplacian_times(x, part, sigma)).sum() for part in (psi * p).split(8)]
    return xp.stack(sums).sum()


# Sums over all pairs of rows of two columns -------------------------------------------------------


def sums_of_distances(x: Tensor) -> Tensor:
    """Return Σ_j |x_i − x_j| for each i, from sorted numbers and their partial sums."""
    ordered, order = x.sort()
    n = len(x)
    place = xp.arange(n, like=x).to(x)
    sums = (2.0 * place - n + 1.0) * ordered + ordered.sum() - 2.0 * ordered.cumsum(0) + ordered
    return xp.empty_like(x).index_copy_(0, order, sums)


def sum_of_products(x: Tensor, y: Tensor) -> Tensor:
    """Return Σ_ij |x_i − x_j||y_i − y_j|.

    For a row of an upper half four partial sums are enough, over the rows of the lower half with
    smaller y.

    Examples
    --------
    >>> import torch
    >>> sum_of_products(torch.tensor([0.0, 1.0, 3.0]), torch.tensor([2.0, 1.0, 1.0])).item()
    8.0
    """

    def across(weight: Tensor, left: Tensor, right: Tensor, upper: Tensor) -> Tensor:
        lower = xp.where(upper, 0.0, weight)
        below = xp.stack([lower, lower * left, lower * right, lower * left * right]).cumsum(-1)
        one, of_x, of_y, of_both = 2.0 * below - below[..., -1:]  # smaller minus larger y
        inner = left * right * one - right * of_x - left * of_y + of_both
        return (inner * (weight * upper)).sum()

    return _over_pairs(x, y, xp.ones_like(x), xp.mul, across)


def laplacian_sum(x: Tensor, y: Tensor, weights: Tensor, sigma: float, tau: float) -> Tensor:
    """Return Σ_ij w_i w_j exp(−|x_i − x_j|/σ) exp(−|y_i − y_j|/τ), in O(n log² n) time.

    Examples
    --------
    >>> import torch
    >>> x = torch.tensor([0.0, 1.0])
    >>> bool((laplacian_sum(x, x, torch.ones(2), 1.0, 1.0) - 2 - 2 * torch.exp(torch.tensor(-2.0))).abs() < 1e-6)
    True
    """

    def across(weight: Tensor, left: Tensor, right: Tensor, upper: Tensor) -> Tensor:
        # From the largest x of the lower half, so that no exponent is positive.
        middle = xp.where(upper, -math.inf, left).amax(-1, keepdim=True)
        size = weight * xp.exp(-(left - middle).abs() / sigma)
        found = laplacian_times(right, xp.where(upper, 0.0, size), tau)
        return (xp.where(upper, size, 0.0) * found).sum()

    return _over_pairs(x, y, weights, lambda a, b: xp.exp(-(a / sigma + b / tau)), across)


def _over_pairs(
    x: Tensor,
    y: Tensor,
    weights: Tensor,
    direct: Callable[[Tensor, Tensor], Tensor],
    across: Callable[[Tensor, Tensor, Tensor, Tensor], Tensor],
) -> Tensor:
    """Return the weighted sum over all pairs of rows of ``direct``, a function of both distances.

    ``across`` is the sum over the pairs of a lower and an upper half, for parts ``(parts, width)``
    sorted by y: their weights, x and y, and which rows are in the upper half.
    """
    n = len(x)
    order = x.argsort()
    size = _DIRECT
    while size < n:
        size *= 2
    rows = x.new_zeros(3, size)  # those that fill the last part have weight zero
    for row, values in zip(rows, (weights, x, y), strict=True):
        row[:n] = values[order]
    rows[1, n:] = rows[1, n - 1]
    total = x.new_zeros(())
    for part in rows.reshape(3, -1, _DIRECT).split(2**8, dim=1):
        weight, *columns = part.unbind()
        distances = [(column.unsqueeze(-1) - column.unsqueeze(-2)).abs_() for column in columns]
        values = direct(*distances)
        total += ((values @ weight.unsqueeze(-1)).squeeze(-1) * weight).sum()
    place = rows[2].argsort().unsqueeze(0)
    while place.shape[1] > _DIRECT:  # a stable split leads from one level to the next
        half = place.shape[1] // 2
        upper = (place & half) != 0
        weight, left, right = rows[:, place].unbind()
        total += 2.0 * across(weight, left, right, upper)
        lower_half = place[~upper].reshape(-1, half)
        upper_half = place[upper].reshape(-1, half)
        place = xp.stack([lower_half, upper_half], 1).reshape(-1, half)
    return total


def laplacian_times(x: Tensor, v: Tensor, sigma: float) -> Tensor:
    """Return Σ_j exp(−|x_i − x_j|/σ) v_j for sorted x ``(..., n)`` and v ``(..., n)``.

    The recursion h_i = exp(−(x_i − x_(i−1))/σ) h_(i−1) + v_i runs along the rows in both
    directions. It is computed by doubling: after k steps h_i holds the sum over 2^k rows.
    """
    decay = xp.exp(-x.diff(dim=-1) / sigma)
    start = xp.zeros_like(x[..., :1])
    forward = _recursion(v, xp.cat([start, decay], -1))
    backward = _recursion(v.flip(-1), xp.cat([start, decay.flip(-1)], -1)).flip(-1)
    return forward + backward - v


def _recursion(v: Tensor, decay: Tensor) -> Tensor:
    step = 1
    while step < v.shape[-1] and bool(decay.any()):
        v = v + decay * _shifted(v, step)
        decay = decay * _shifted(decay, step)
        step *= 2
    return v


def _shifted(v: Tensor, step: int) -> Tensor:
    """Return the entries moved to the right, with zeros at the left."""
    return xp.cat([xp.zeros_like(v[..., :step]), v[..., :-step]], -1)
