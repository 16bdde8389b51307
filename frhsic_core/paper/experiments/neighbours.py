r"""Mutual information by nearest neighbours for a whole stack of models: all pairs of rows, on the models' device.

With the maximum norm, ε_i the distance from (z_i, s_i) to its k-th neighbour and n_z(i), n_s(i) the other points within
ε_i in z and in s alone (Kraskov, Stögbauer and Grassberger, 2004, their first estimator),

.. math:: \hat I = \psi(k) + \psi(n) - \tfrac1n \sum_i \bigl[\psi(n_z(i) + 1) + \psi(n_s(i) + 1)\bigr].

*Strictly* within is the published estimator. The released code of the paper counts *at most* ε_i, so that the k-th
neighbour itself is counted in the coordinate where it lies furthest away: a bias of −1/(n_z + 1) or −1/(n_s + 1) at
every point. The two forms come from the same distances, and both are returned.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

__all__ = ["Information", "ksg_information", "principal_components", "standardised"]

# Pairs of rows held at a time: a gibibyte in double precision on a GPU, what a CPU's cache can hold elsewhere.
_PAIRS = {"cuda": 1 << 27, "cpu": 1 << 18}
_JITTER = 1e-10  # of a standard deviation, as in frhsic_core.joint.mutual_information


class Information(NamedTuple):
    """Two estimates of I(Z; S) in nats, ``(attributes, models)`` each."""

    strict: Tensor
    closed: Tensor


def principal_components(z: Tensor, *, share: float = 0.95, least: int = 2, most: int = 5) -> tuple[Tensor, Tensor]:
    """Return the first principal components that hold ``share`` of the variance, and how many, between two limits.

    ``(models, n, d) -> (models, n, most)`` in double precision; components beyond a model's number are zero, and a zero
    column changes no distance. Columns are not scaled, as in the released code. O(nd² + d³) for each model.

    Examples
    --------
    >>> z = torch.diag_embed(torch.tensor([[3.0, 0.0, 0.0, 0.0, 0.0, 0.0]])).double()
    >>> components, number = principal_components(z)
    >>> tuple(components.shape), number.tolist()
    ((1, 6, 5), [2])
    """
    z = z.double()
    z = z - z.mean(-2, keepdim=True)
    if z.shape[-1] <= most:
        return z, torch.full(z.shape[:-2], z.shape[-1], device=z.device)
    values, vectors = torch.linalg.eigh(z.mT @ z / z.shape[-2])
    values, vectors = values.flip(-1).clamp_min(0.0), vectors.flip(-1)
    explained = values.cumsum(-1) / values.sum(-1, keepdim=True)
    number = ((explained < share).sum(-1) + 1).clamp(least, most)
    kept = torch.arange(most, device=z.device) < number.unsqueeze(-1)
    return (z @ vectors[..., :most]) * kept.unsqueeze(-2), number


def standardised(x: Tensor, *, seed: int = 0) -> Tensor:
    """Return columns ``(..., n, d)`` with mean 0 and variance 1, ties separated by noise of 1e-10; constants stay zero.

    Independent noise below every spacing leaves mutual information as it is, and the published estimator assumes that
    no two points coincide.
    """
    x = x.double()
    # From the first row: a constant column is then exactly zero, which its mean would not give.
    x = x - x[..., :1, :]
    spread = x.std(-2, correction=0, keepdim=True)
    alive = spread > 0
    x = torch.where(alive, (x - x.mean(-2, keepdim=True)) / torch.where(alive, spread, 1.0), 0.0)
    noise = torch.randn(x.shape[-2:], generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
    return x + _JITTER * alive * noise.to(x.device)


@torch.no_grad()
def ksg_information(z: Tensor, attributes: Tensor, *, k: int = 5, pairs: int | None = None) -> Information:
    """Estimate I(Z; S) of every model against every attribute, from all pairs of rows.

    O(n²d) time for each model and O(``pairs``) memory. Nothing is scaled, no tie is broken and no negative estimate
    raised to zero here.

    Parameters
    ----------
    z : Tensor
        ``(models, n, d)``.
    attributes : Tensor
        ``(attributes, models, n)``; a permuted copy of S beside S gives the value that independence would show, with
        the same Z.
    k : int
        Neighbours.
    pairs : int, optional
        Pairs of rows held at a time.

    Examples
    --------
    >>> generator = torch.Generator().manual_seed(0)
    >>> s = torch.randn(2000, generator=generator, dtype=torch.float64)
    >>> z = 0.8 * s + 0.6 * torch.randn(2000, generator=generator, dtype=torch.float64)
    >>> found = ksg_information(z[None, :, None], s[None, None]).strict.item()
    >>> bool(abs(found + 0.5 * torch.log(torch.tensor(1 - 0.8**2))) < 0.05)
    True
    """
    models, n, _ = z.shape
    if attributes.shape[1:] != (models, n):
        raise ValueError(
            f"attributes have shape {tuple(attributes.shape)}: one value for each of the {models} models and {n} rows "
            "is needed, (attributes, models, n)."
        )
    if not 1 <= k < n:
        raise ValueError(f"k is {k} but there are {n} rows: k must lie between 1 and {n - 1}.")
    z, attributes = z.double(), attributes.double()
    limit = pairs or _PAIRS.get(z.device.type, _PAIRS["cpu"])
    at_once = max(1, min(models, limit // (n * n)))
    rows = max(1, min(n, limit // (n * at_once)))
    sums = torch.zeros(2, len(attributes), models, dtype=torch.float64, device=z.device)
    for first in range(0, models, at_once):
        part = slice(first, first + at_once)
        for start in range(0, n, rows):
            sums[..., part] += _digammas(z[part], attributes[:, part], slice(start, start + rows), k)
    constant = torch.digamma(torch.tensor([float(k), float(n)], dtype=torch.float64)).sum().to(z.device)
    return Information(*(constant - sums / n))


def _digammas(z: Tensor, attributes: Tensor, rows: slice, k: int) -> Tensor:
    """Sums over a block of rows of ψ(n_z + 1) + ψ(n_s + 1): strict and closed, ``(2, attributes, models)``."""
    distance = _coordinate(z[..., 0], rows)
    for c in range(1, z.shape[-1]):
        torch.maximum(distance, _coordinate(z[..., c], rows), out=distance)
    found = []
    for s in attributes:
        distance_s = _coordinate(s, rows)
        joint = torch.maximum(distance, distance_s)
        # The point itself is the first of k + 1.
        radius = joint.topk(k + 1, dim=-1, largest=False).values[..., -1:]
        # Each count holds the point itself, hence ψ(count) = ψ(n_z + 1); at ε = 0 the strict one does not.
        strict = torch.stack([(d < radius).sum(-1).clamp_min(1) for d in (distance, distance_s)])
        closed = torch.stack([(d <= radius).sum(-1) for d in (distance, distance_s)])
        found.append(torch.digamma(torch.stack([strict, closed]).double()).sum((1, -1)))
    return torch.stack(found, dim=1)


def _coordinate(x: Tensor, rows: slice) -> Tensor:
    return (x[..., rows, None] - x[..., None, :]).abs_()
