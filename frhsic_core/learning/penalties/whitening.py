"""Whitening Z in the mini-batch, so that no direction of low variance is out of a kernel's sight."""

from __future__ import annotations

import torch
from torch import Tensor

__all__ = ["whiten"]

RIDGE = 1e-4  # relative to the mean variance: a direction below it has died and is not blown up to noise


def whiten(z: Tensor, weights: Tensor | None = None) -> Tensor:
    r"""Return :math:`L^{-1}(z_i - \bar z)` with :math:`LL^\top` the covariance of the rows, plus a small ridge.

    Standardising coordinate by coordinate leaves an evasion: two coordinates that are nearly equal carry their small
    difference past a kernel whose distances are all about their sum, and a linear head multiplies it back. After
    whitening every direction has variance one. The result does not change under invertible linear maps of Z (up to a
    rotation and the ridge). O(md² + d³) for each model; batches should have several times d rows.

    Parameters
    ----------
    z : Tensor
        ``(models, m, d)``.
    weights : Tensor, optional
        ``(models, m)``, summing to one.

    Examples
    --------
    >>> z = torch.tensor([[[0.0, 0.0], [2.0, 2.0], [0.0, 1.0], [2.0, 3.0]]], dtype=torch.float64)
    >>> white = whiten(z)
    >>> bool((white.mT @ white / 4 - torch.eye(2)).abs().max() < 1e-2)
    True
    """
    p = None if weights is None else weights.unsqueeze(-1)
    centred = z - (z.mean(-2, keepdim=True) if p is None else (p * z).sum(-2, keepdim=True))
    covariance = centred.mT @ centred / z.shape[-2] if p is None else (p * centred).mT @ centred
    size = covariance.diagonal(dim1=-2, dim2=-1).mean(-1)[..., None, None]
    eye = torch.eye(z.shape[-1], dtype=z.dtype, device=z.device)
    # cholesky_ex does not look at its result, so that nothing waits for the device.
    factor, _ = torch.linalg.cholesky_ex(covariance + (RIDGE * size + 1e-8) * eye)
    return torch.linalg.solve_triangular(factor, centred.mT, upper=False).mT
