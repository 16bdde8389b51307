"""Probes: how well does a cross-fitted ridge regression predict S from Z, for a stack of models at a time."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from frhsic_core.arrays import binary_scale
from frhsic_core.kernels import median_bandwidth

RIDGES = (1e-6, 1e-3, 1e-1)  # relative to the mean of the Gram matrix's diagonal


def linear_features(z: Tensor) -> Tensor:
    """Return Z ``(..., n, d)`` with mean zero and variance one per coordinate; constant coordinates become zero."""
    z = z / binary_scale(z)
    z = z - z.mean(-2, keepdim=True)
    spread = z.square().mean(-2, keepdim=True).sqrt()
    floor = 1e-9 * spread.amax(-1, keepdim=True)
    return torch.where(spread > floor, z / torch.where(spread > floor, spread, 1.0), torch.zeros_like(z))


def random_features(z: Tensor, *, features: int = 300, seed: int = 0) -> Tensor:
    """Return linear features, and random Fourier features cos(w·z/σ + b), of Z; ``(..., n, d + features)``.

    Half of the random features use Z standardized by coordinate. The other half use whitened Z, in which a direction of
    low variance counts as much as any other; a penalized encoder can hide there what a head amplifies later. σ is the
    median distance.
    """
    linear = linear_features(z)
    generator = torch.Generator().manual_seed(seed)
    parts = [linear]
    for view in (linear, _whitened(linear)):
        width = features // 2
        directions = torch.randn(z.shape[-1], width, generator=generator, dtype=torch.float64).to(z)
        phases = (2 * math.pi * torch.rand(width, generator=generator, dtype=torch.float64)).to(z)
        sigma = median_bandwidth(view, check_finite=False)[..., None, None]
        parts.append(torch.cos((view / sigma) @ directions + phases))
    return torch.cat(parts, dim=-1)


def _whitened(z: Tensor) -> Tensor:
    """Return Z with variance one along every principal axis; axes below 1e-6 of the largest are left out.

    The result is rotated back to the coordinates of Z: the sign of an eigenvector is the solver's choice, and the
    random features of a sample should not depend on the machine.
    """
    covariance = z.mT @ z / z.shape[-2]
    values, vectors = torch.linalg.eigh(covariance)
    kept = values > 1e-6 * values[..., -1:].clamp_min(torch.finfo(z.dtype).tiny)
    scale = torch.where(kept, values, torch.ones_like(values)).rsqrt() * kept
    return ((z @ vectors) * scale.unsqueeze(-2)) @ vectors.mT


def probe_r2(features: Tensor, s: Tensor, *, folds: int = 5, seed: int = 0, each: bool = False) -> Tensor:
    r"""Return the cross-fitted R² of a ridge regression of S on the features, the largest over the attributes.

    .. math:: R^2 = 1 - \frac{\sum_i (s_i - \hat s_{-k(i)}(z_i))^2}{\sum_i (s_i - \bar s)^2}

    Each row is predicted by a regression that did not see its fold; the ridge is the best of three. One Gram matrix for
    each fold, the training one by subtraction: O(nF² + folds·F³).

    Parameters
    ----------
    features : Tensor
        ``(models, n, F)``.
    s : Tensor
        ``(models, n, p)``.
    folds : int
        Number of random parts of equal size.
    seed : int
        Seed of the random parts.
    each : bool
        Return the R² of each attribute, ``(models, p)``.

    Returns
    -------
    Tensor
        ``(models,)``, the largest over the attributes; zero where an attribute is constant.

    Examples
    --------
    >>> x = torch.linspace(-1, 1, 100, dtype=torch.float64).reshape(1, 100, 1)
    >>> round(probe_r2(x, 3 * x + 1).item(), 4)
    1.0
    """
    n = features.shape[-2]
    if not 2 <= folds <= n // 2:
        raise ValueError(f"folds is {folds} for {n} rows: use at least 2 folds of at least 2 rows each.")
    order = torch.randperm(n, generator=torch.Generator().manual_seed(seed)).to(features.device)
    design = torch.cat([torch.ones_like(features[..., :1]), features], dim=-1)
    s = s / binary_scale(s, dim=-2)  # R² has no units, but its sums of squares have
    s = s - s.mean(-2, keepdim=True)
    parts = [(design[:, rows], s[:, rows]) for rows in order.chunk(folds)]
    grams = [x.mT @ x for x, _ in parts]
    cross = [x.mT @ target for x, target in parts]
    gram = sum(grams, torch.zeros_like(grams[0]))
    moment = sum(cross, torch.zeros_like(cross[0]))
    size = gram.diagonal(dim1=-2, dim2=-1).mean(-1)[:, None, None]
    ridge = torch.eye(gram.shape[-1], dtype=gram.dtype, device=gram.device)
    ridge[0, 0] = 1e-9  # the mean is not shrunk
    best = None
    for strength in RIDGES:
        residual = torch.zeros_like(s[:, 0])
        for (x, target), own_gram, own_cross in zip(parts, grams, cross, strict=True):
            factor, _ = torch.linalg.cholesky_ex(gram - own_gram + strength * size * ridge)
            coefficients = torch.cholesky_solve(moment - own_cross, factor)
            residual = residual + (target - x @ coefficients).square().sum(-2)
        total = s.square().sum(-2)
        r2 = torch.where(total > 0, 1.0 - residual / torch.where(total > 0, total, 1.0), torch.zeros_like(total))
        best = r2 if best is None else torch.maximum(best, r2)
    assert best is not None
    return best if each else best.amax(-1)
