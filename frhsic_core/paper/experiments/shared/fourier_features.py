"""Gaussian kernels of one variable as exact features, so that HSIC and EIPM cost O(n) and not O(n²) or O(n³).

A Gaussian is the transform of a Gaussian, and the trapezoidal rule is exponentially accurate for it:

    exp(−d²/(2σ²)) = Σ_k c_k cos(k·h·d),   c_k ∝ h·exp(−(k·h·σ)²/2),

up to an error of about exp(−(2π/h − |d|)²/(2σ²)) (the next period) and exp(−(k_max·h·σ)²/2) (the frequencies left out).
Both are set below 10⁻¹⁵ here, so the features are the kernel, to rounding; r ≈ 2.6·(8.3 + range/σ) of them.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor

REACH = 8.3  # exp(−REACH²/2) is 10⁻¹⁵


def gaussian_features(x: Tensor, bandwidth: float, *, spread: float | None = None) -> Tensor:
    """Return features ``(..., n, r)`` whose inner products are the Gaussian kernel of ``x (..., n)``, float64; O(nr).

    ``spread`` is an upper bound of the largest difference of two values; computed if not given.

    Examples
    --------
    >>> x = torch.tensor([0.0, 1.0, -3.0], dtype=torch.float64)
    >>> phi = gaussian_features(x, 0.7)
    >>> bool(((phi @ phi.mT) - torch.exp(-((x[:, None] - x) ** 2) / (2 * 0.7**2))).abs().max() < 1e-13)
    True
    """
    if spread is None:
        spread = float((x.amax(-1) - x.amin(-1)).max())
    step = 2.0 * math.pi / (spread + REACH * bandwidth)
    count = math.ceil(REACH / (bandwidth * step))
    k = torch.arange(count + 1, dtype=x.dtype, device=x.device)
    coefficient = step * bandwidth / math.sqrt(2.0 * math.pi) * torch.exp(-0.5 * (k * step * bandwidth) ** 2)
    coefficient[1:] *= 2.0  # k and −k
    # cos and sin of multiples of one angle: powers of one complex number, by doubling.
    powers = torch.polar(torch.ones_like(x), step * x).unsqueeze(-1)
    while powers.shape[-1] < count:
        powers = torch.cat([powers, powers * powers[..., -1:]], dim=-1)
    powers = powers[..., :count]
    root = coefficient.sqrt()
    return torch.cat([root[0].expand(*x.shape, 1), powers.real * root[1:], powers.imag * root[1:]], dim=-1)


def v_statistic_hsic(phi: Tensor, psi: Tensor) -> tuple[Tensor, Tensor]:
    """Return biased and unbiased HSIC from features of Z and S of unit kernels, ``(..., n, r)``; O(n·r_z·r_s).

    The biased one is ‖Φ'HΨ‖²/n²; the unbiased one is that of Song et al. (2012), its sums over distinct rows.
    """
    n = phi.shape[-2]
    sums = phi.sum(-2, keepdim=True), psi.sum(-2, keepdim=True)
    cross = phi.mT @ psi
    biased = (cross - sums[0].mT @ sums[1] / n).square().sum((-2, -1)) / n**2
    degree_z, degree_s = (f @ total.mT - 1.0 for f, total in zip((phi, psi), sums, strict=True))
    trace = cross.square().sum((-2, -1)) - n
    total_z = degree_z.sum((-2, -1))
    total_s = degree_s.sum((-2, -1))
    mixed = (degree_z * degree_s).sum((-2, -1))
    unbiased = (trace + total_z * total_s / ((n - 1) * (n - 2)) - 2.0 * mixed / (n - 2)) / (n * (n - 3))
    return biased, unbiased


def squared_mmd_at_rows(phi: Tensor, s: Tensor, bandwidth: float, *, spread: float | None = None) -> Tensor:
    """Return MMD² between the leave-one-out smoothed law at each S_i and the marginal, ``(..., n)``; O(n·r_z·r_s).

    ``phi`` are features of Z ``(..., n, r)``, ``s (..., n)``. Rows so far out that the features cannot resolve the sum
    of their weights are computed from their distances.
    """
    psi = gaussian_features(s, bandwidth, spread=spread)
    # The row itself is left out: its own kernel value is one.
    total = (psi @ psi.sum(-2, keepdim=True).mT).squeeze(-1) - 1.0
    local = (psi @ (psi.mT @ phi) - phi) / total.clamp_min(1e-300).unsqueeze(-1)
    alone = total < 1e-6
    if bool(alone.any()):
        for place in alone.nonzero().tolist():
            *batch, i = place
            row = s[tuple(batch)]
            z = phi[tuple(batch)]
            logits = -((row - row[i]) ** 2) / (2.0 * bandwidth**2)
            logits[i] = -torch.inf
            local[tuple(place)] = torch.softmax(logits, dim=-1) @ z
    return (local - phi.mean(-2, keepdim=True)).square().sum(-1)


def mean_mmd(squared: Tensor, *, epsilon: float = 1e-10) -> Tensor:
    """Return the mean over anchors of the root, as in :func:`frhsic_core.eipm`."""
    return (squared * torch.rsqrt(squared + epsilon)).mean(-1)
