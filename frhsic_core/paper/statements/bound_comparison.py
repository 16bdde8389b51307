"""Theorem 4.7 as printed beside its sharper forms, on any sample: one row of a table.

The tightness figure of the paper averages over heads f = k(z0, ·) with z0 from the sample, keeps the eigenvalues above
a relative cut-off and takes m as large as possible. The same sample and heads with the best m, with COCO and with the
whole weighted spectrum say how much was lost.
"""

from __future__ import annotations

import torch

from frhsic_core.arrays import ArrayLike, as_pair
from frhsic_core.joint.coco import coco
from frhsic_core.joint.gram import resolve_kernel
from frhsic_core.kernels import Kernel
from frhsic_core.paper.statements.gap_spectrum import gap_spectrum

__all__ = ["compare_bounds"]

CUTOFF = 1e-6  # relative to the largest eigenvalue, as the paper's appendix has it


def compare_bounds(
    z: ArrayLike,
    s: ArrayLike,
    *,
    anchors: ArrayLike | None = None,
    kernel_z: Kernel | None = None,
    kernel_s: Kernel | None = None,
    cutoff: float = CUTOFF,
) -> dict[str, float]:
    """Average the bounds of Theorem 4.7 over the heads f = k(z0, ·), for one sample; O(n³) time, O(n²) memory.

    Parameters
    ----------
    z, s : array_like
        ``(n, d)`` and ``(n,)`` or ``(n, p)``.
    anchors : array_like, optional
        The z0, ``(a, d)``; the first twenty rows by default.
    kernel_z, kernel_s : Kernel, optional
        Default: Gaussian at the median bandwidth.
    cutoff : float
        Eigenvalues below this share of the largest are dropped, as in the paper's figure.

    Returns
    -------
    dict
        ``kept`` eigenvalues; ``hsic``, ``coco_squared``; ``left`` (the mean square of δ_f), ``projected`` (of P_m δ_f
        at m = kept); ``printed`` (HSIC/λ̂ at m = kept); ``best_hsic`` and ``best_coco`` (bound plus unresolved rest at
        the best m, both at least ``left``); ``weighted`` (Σλ̂_j(ê_j·δ_f)²/n, at most ``coco_squared``).

    Examples
    --------
    >>> from frhsic_core.laws import GaussianPair
    >>> row = compare_bounds(*GaussianPair(0.5).sample(200, generator=torch.Generator().manual_seed(0)))
    >>> row["left"] <= row["best_coco"] <= row["best_hsic"] <= 0.25 < row["printed"]
    True
    """
    z, s = as_pair(z, s)
    n = z.shape[-2]
    kernel_z, kernel_s = resolve_kernel(kernel_z, z), resolve_kernel(kernel_s, s)
    points = z[:20] if anchors is None else torch.as_tensor(anchors, dtype=z.dtype, device=z.device)
    found = gap_spectrum(z, s, anchors=points[:1], coefficients=[1.0], kernel_z=kernel_z, kernel_s=kernel_s)
    values = kernel_z(z, points)
    deltas = values - values.mean(0)
    norms = kernel_z(points).diagonal()
    scores = found.vectors.mT @ deltas
    kept = int((found.eigenvalues > cutoff * found.eigenvalues[0]).sum())
    eigenvalues = found.eigenvalues[:kept].unsqueeze(-1)
    squares = scores.square().cumsum(0)[:kept] / n
    left = deltas.square().mean(0)
    squared = coco(z, s, kernel_z=kernel_z, kernel_s=kernel_s).square()
    return {
        "rows": float(n),
        "kept": float(kept),
        "hsic": found.hsic.item(),
        "coco_squared": squared.item(),
        "left": left.mean().item(),
        "projected": squares[-1].mean().item(),
        "printed": (norms * found.hsic / eigenvalues[-1]).mean().item(),
        "best_hsic": (norms * found.hsic / eigenvalues + left - squares).amin(0).mean().item(),
        "best_coco": (norms * squared / eigenvalues + left - squares).amin(0).mean().item(),
        "weighted": ((found.eigenvalues.unsqueeze(-1) * scores.square()).sum(0) / n).mean().item(),
    }
