"""Mutual information by nearest neighbors, where the two routes meet.

I(Z; S) is the Kullback–Leibler divergence of the joint law from the product law, and also the average over S of the
divergence of the conditional law from the marginal one: the one discrepancy that is an instance of both routes.

The estimator is that of Kraskov, Stögbauer and Grassberger.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray
from scipy.spatial import cKDTree
from scipy.special import digamma

from frhsic_core._arrays import ArrayLike, as_pair, batch_shape, binary_scale, same_kind
from frhsic_core.backend import Draws, xp

if TYPE_CHECKING:
    from torch import Tensor

_JITTER = 1e-10  # of a column's standard deviation: far below any spacing that carries information


@same_kind
def mutual_information(
    z: ArrayLike,
    s: ArrayLike,
    *,
    k: int = 5,
    standardize: bool = True,
    closed: bool = False,
) -> Tensor:
    """Estimate the mutual information I(Z; S) in nats from k nearest neighbors (Kraskov et al., 2004).

    With the maximum norm, ε_i the distance from (z_i, s_i) to its k-th neighbor, n_z(i) and n_s(i) the number of other
    points closer than ε_i in z and in s alone,

        I = ψ(k) + ψ(n) − mean_i[ ψ(n_z(i) + 1) + ψ(n_s(i) + 1) ].

    The estimate may be slightly negative; its error at independence is of order 1/√n. It is not differentiable. About
    O(n log n) time for few columns, O(n²) for many; O(n) memory; runs on the CPU.

    Parameters
    ----------
    z, s : array_like
        ``(..., n, d)`` and ``(..., n, p)`` or ``(..., n)``; batch elements are taken one by one.
    k : int
        Number of neighbors, from 1 to n − 1. A larger k has less variance and more bias.
    standardize : bool
        Divide each column by its standard deviation first, so that the answer does not depend on units, and separate
        ties, see Notes.
    closed : bool
        Count the points at distance *at most* ε_i instead of those closer than ε_i, as the released code of the paper
        does. The k-th neighbor itself is then counted in the coordinate where it lies furthest away, which is a bias of
        −1/(n_z + 1) or −1/(n_s + 1) at every point.

    Returns
    -------
    Tensor, array or float
        Batch shape; exactly zero when either argument is constant.

    Notes
    -----
    Ties. Integer ages repeat in every sample. Gaussian noise of 1e-10 standard deviations, the same in each call, is
    added to each column that repeats a value. Independent noise below every spacing leaves I(Z; S) as it is. If only S
    has ties, ε_i stays above the noise, n_s(i) counts the points that share s_i, and the formula becomes that of Ross
    (2014) for a discrete and a continuous variable. If rows (z_i, s_i) repeat, neighbors within one atom are those of
    the noise, which is independent by construction.

    Examples
    --------
    >>> import torch
    >>> generator = torch.Generator().manual_seed(0)
    >>> s = torch.randn(2000, generator=generator, dtype=torch.float64)
    >>> z = 0.8 * s + 0.6 * torch.randn(2000, generator=generator, dtype=torch.float64)
    >>> exact = -0.5 * np.log(1 - 0.8**2)
    >>> bool(abs(mutual_information(z, s) - exact) < 0.05)
    True
    """
    z, s = as_pair(z, s, min_rows=2)
    n = z.shape[-2]
    if not 1 <= k < n:
        raise ValueError(f"k is {k} but there are {n} rows: k must lie between 1 and {n - 1}.")
    batch = batch_shape(z, s)
    samples = []
    for seed, x in enumerate((z, s)):
        rows = standardized(x.detach(), seed=seed) if standardize else x.detach().double()
        samples.append(rows.expand(*batch, *x.shape[-2:]).reshape(-1, *x.shape[-2:]).cpu().numpy())
    values = [_estimate(x, y, k, closed=closed) for x, y in zip(*samples, strict=True)]
    return z.new_tensor(values).reshape(batch)


def _estimate(z: NDArray[np.float64], s: NDArray[np.float64], k: int, *, closed: bool) -> float:
    """Return the estimate from points strictly closer than the k-th neighbor, or ``closed``, at most as far."""
    if not (np.ptp(z, axis=0).any() and np.ptp(s, axis=0).any()):
        return 0.0  # a constant
    joint = np.hstack([z, s])
    distance = cKDTree(joint).query(joint, k=k + 1, p=np.inf)[0][:, -1]
    radius = distance if closed else np.nextafter(distance, 0.0)
    counts = np.stack([_neighbors(x, radius) for x in (z, s)])
    if not closed:  # nothing is strictly closer than zero
        counts[:, distance == 0] = 1
    # Each count holds the point itself, hence ψ(count) = ψ(n_z + 1).
    return float(digamma(k) + digamma(len(z)) - digamma(counts).sum(0).mean())


def _neighbors(x: NDArray[np.float64], radius: NDArray[np.float64]) -> NDArray[np.int64]:
    """Return the number of rows at most ``radius[i]`` from row i in the maximum norm, itself included."""
    if x.shape[1] > 1:
        return cKDTree(x).query_ball_point(x, radius, p=np.inf, return_length=True)
    order = np.argsort(x[:, 0])
    values, radius = x[order, 0], radius[order]
    counts = np.empty(len(x), dtype=np.int64)
    counts[order] = 1 + _following(values, radius) + _following(-values[::-1], radius[::-1])[::-1]
    return counts


def _following(values: NDArray[np.float64], radius: NDArray[np.float64]) -> NDArray[np.int64]:
    """Return how many of the sorted values after the i-th are at most ``radius[i]`` larger, by bisection."""
    start = np.arange(len(values))
    last, beyond = start, np.full(len(values), len(values))
    while (beyond - last > 1).any():
        middle = (last + beyond) // 2
        # The distance decides, not a rounded end of the interval: the k-th neighbor of a row lies exactly on it.
        inside = values[middle] - values <= radius
        last, beyond = np.where(inside, middle, last), np.where(inside, beyond, middle)
    return last - start


def standardized(x: Tensor, *, seed: int = 0) -> Tensor:
    """Return columns ``(..., n, d)`` with mean 0 and variance 1; constants become zero.

    Noise of 1e-10 standard deviations separates the ties of a column. Independent noise below every spacing leaves
    mutual information as it is, and the published estimator assumes that no two points coincide.
    """
    x = x.double()
    # From the first row: a constant column is then exactly zero, which its mean would not give.
    x = x - x[..., :1, :]
    x = x / binary_scale(x, dim=-2)
    x = x - x.mean(-2, keepdim=True)
    spread = x.square().mean(-2, keepdim=True).sqrt()
    alive = spread > 0
    x = xp.where(alive, x / xp.where(alive, spread, 1.0), 0.0)
    tied = (x.sort(-2).values.diff(dim=-2) == 0).any(-2, keepdim=True)
    noise = xp.as_tensor(np.asarray(Draws(seed).normal(*x.shape[-2:])), like=x)
    return x + _JITTER * (alive & tied) * noise
