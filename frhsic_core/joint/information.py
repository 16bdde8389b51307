"""Mutual information by nearest neighbours: where the two routes meet.

I(Z; S) is the Kullback–Leibler divergence of the joint law from the product law, and also the average over S of the
divergence of the conditional law from the marginal one: the one discrepancy that is an instance of both routes.
"""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.spatial import cKDTree
from scipy.special import digamma
from torch import Tensor

from frhsic_core.arrays import ArrayLike, as_pair

__all__ = ["mutual_information"]

_VARIANTS = ("ksg1", "ksg2")
_JITTER = 1e-10  # of a column's standard deviation: far below any spacing that carries information


def mutual_information(
    z: ArrayLike,
    s: ArrayLike,
    *,
    k: int = 5,
    variant: str = "ksg1",
    clip: bool = False,
    standardize: bool = True,
    generator: torch.Generator | None = None,
) -> Tensor:
    """Mutual information I(Z; S) in nats, by k nearest neighbours (Kraskov, Stögbauer and Grassberger, 2004).

    With the maximum norm, ε_i the distance from (z_i, s_i) to its k-th neighbour, n_z(i) and n_s(i) the number of other
    points closer than ε_i in z and in s alone,

        I = ψ(k) + ψ(n) − mean_i[ ψ(n_z(i) + 1) + ψ(n_s(i) + 1) ]                                    (``"ksg1"``).

    The estimate may be slightly negative; its error at independence is of order 1/√n. It is not differentiable. About
    O(n log n) time for few columns, O(n²) for many; O(n) memory; runs on the CPU.

    Parameters
    ----------
    z, s : array_like
        ``(..., n, d)`` and ``(..., n, p)`` or ``(..., n)``; batch elements are taken one by one.
    k : int
        Neighbours, from 1 to n − 1. Larger k: less variance, more bias.
    variant : {"ksg1", "ksg2"}
        The two estimators of the paper above: cubes with strict counts, or the rectangle around the k neighbours, with
        closed counts and −1/k: less bias for strong dependence, more variance.
    clip : bool
        Return zero for a negative estimate.
    standardize : bool
        Divide each column by its standard deviation first, so that the answer does not depend on units.
    generator : torch.Generator, optional
        Source of the jitter that separates ties, see Notes; without one a fixed seed, so that the answer repeats.

    Returns
    -------
    Tensor
        Batch shape; exactly zero when either argument is constant.

    Notes
    -----
    Ties. Integer ages repeat in every sample. Gaussian noise of 1e-10 standard deviations is added to each column that
    repeats a value. Independent noise below every spacing leaves I(Z; S) as it is. If only S has ties, ε_i stays above
    the noise, n_s(i) counts the points that share s_i, and the formula becomes that of Ross (2014) for a discrete and a
    continuous variable. If rows (z_i, s_i) repeat, neighbours within one atom are those of the noise, which is
    independent by construction; the answer then varies a little with the generator.

    Examples
    --------
    >>> generator = torch.Generator().manual_seed(0)
    >>> s = torch.randn(2000, generator=generator, dtype=torch.float64)
    >>> z = 0.8 * s + 0.6 * torch.randn(2000, generator=generator, dtype=torch.float64)
    >>> exact = -0.5 * np.log(1 - 0.8**2)
    >>> bool(abs(mutual_information(z, s) - exact) < 0.05)
    True
    """
    if variant not in _VARIANTS:
        raise ValueError(f"variant is {variant!r}: choose 'ksg1' or 'ksg2'.")
    z, s = as_pair(z, s, min_rows=2)
    n = z.shape[-2]
    if not 1 <= k < n:
        raise ValueError(f"k is {k} but there are {n} rows: k must lie between 1 and {n - 1}.")
    rng = np.random.default_rng(_seed(generator))
    batch = torch.broadcast_shapes(z.shape[:-2], s.shape[:-2])
    z_rows = z.detach().expand(*batch, *z.shape[-2:]).reshape(-1, n, z.shape[-1]).double().cpu().numpy()
    s_rows = s.detach().expand(*batch, *s.shape[-2:]).reshape(-1, n, s.shape[-1]).double().cpu().numpy()
    values = [
        _estimate(_prepare(x, standardize, rng), _prepare(y, standardize, rng), k, variant)
        for x, y in zip(z_rows, s_rows, strict=True)
    ]
    result = torch.tensor(values, dtype=z.dtype, device=z.device).reshape(batch)
    return result.clamp_min(0.0) if clip else result


def _seed(generator: torch.Generator | None) -> int:
    if generator is None:
        return 0
    return int(torch.randint(2**62, (), generator=generator, device=generator.device))


def _prepare(x: NDArray[np.float64], standardize: bool, rng: np.random.Generator) -> NDArray[np.float64]:
    """Centre, scale, and separate the ties of one sample; constant columns become zero."""
    x = x - x[:1]  # exact zeros for a constant column, which its mean would not give
    x = x - x.mean(0) * (x != 0).any(0)
    deviation = x.std(0)
    if standardize:
        x = x / np.where(deviation > 0, deviation, 1.0)
        deviation = (deviation > 0).astype(np.float64)
    ordered = np.sort(x, 0)
    tied = (ordered[1:] == ordered[:-1]).any(0)
    return x + _JITTER * deviation * tied * rng.standard_normal(x.shape)


def _estimate(z: NDArray[np.float64], s: NDArray[np.float64], k: int, variant: str) -> float:
    n = len(z)
    if not z.any() or not s.any():
        return 0.0
    joint = np.hstack([z, s])
    distance, neighbour = cKDTree(joint).query(joint, k=k + 1, p=np.inf)
    radius = distance[:, -1]
    if variant == "ksg1":
        # Strictly closer than the k-th neighbour; each count holds the point itself, hence ψ(count) = ψ(n_z + 1).
        inside = np.nextafter(radius, 0.0)
        return float(digamma(k) + digamma(n) - np.mean(digamma(_count(z, inside)) + digamma(_count(s, inside))))
    extent_z = np.abs(z[neighbour] - z[:, None]).max((1, 2))
    extent_s = np.abs(s[neighbour] - s[:, None]).max((1, 2))
    near_z, near_s = _count(z, extent_z) - 1, _count(s, extent_s) - 1
    return float(digamma(k) - 1.0 / k + digamma(n) - np.mean(digamma(near_z) + digamma(near_s)))


def _count(x: NDArray[np.float64], radius: NDArray[np.float64]) -> NDArray[np.intp]:
    """Points within ``radius`` of each point, itself included."""
    return cKDTree(x).query_ball_point(x, radius, p=np.inf, return_length=True)
