"""Z scaled in the batch, and the gradient through the scaling: whitened or standardized rows.

The written-out gradients are those of functions of the distances between the scaled rows, which the
penalties are. A step of one model on a CPU takes :func:`lone_whitening`, the same formulas in
NumPy: there a step consists of many calls on small arrays, and a call of NumPy takes a fraction of
the time of one of torch.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.linalg import lapack
from torch import Tensor

from frhsic_core.joint.contraction import Frame, weighted_mean

# Of whitening, relative to the total variance; for 50 columns, 1e-4 of the mean variance.
RIDGE = 2e-6
# Part of the identity that is added to a covariance, for a constant Z.
LEAST_VARIANCE = 1e-8


def whiten(z: Tensor, weights: Tensor | None = None) -> Tensor:
    r"""Return whitened rows, :math:`W(z_i - \bar z)`.

    :math:`W^{-1}` is the Cholesky factor of the covariance plus a ridge. Standardizing each
    coordinate leaves an evasion: two coordinates that are nearly equal carry their small difference
    past a kernel whose distances are all about their sum, and a linear head can scale it up again.
    After whitening, every direction with more than about 1e-5 of the total variance has variance
    close to one. Shifting, rotating and rescaling Z change nothing (up to a rotation); other
    invertible linear maps change little. O(md² + d³) for each model; a batch should have several
    times d rows.

    If the encoder has more dimensions than the data can fill, the many thin directions are scaled
    up to noise of variance one, all distances become similar, and the penalty hardly falls: use a
    low-dimensional Z on small data (see the chapter on the bandwidth trap). Whitening is computed
    in double precision: rounding is multiplied by the root of the condition number, once forwards
    and once backwards, and Adam turns it into steps.

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
    return _Whitening.of(z.double(), weights).white.to(z.dtype)


def whitened_frame(z: Tensor, weights: Tensor | None = None, *, eye: Tensor | None = None) -> Frame:
    """Return the rows of :func:`whiten` for functions of distances, with a written-out gradient.

    ``eye`` is the identity in float64. A GPU makes it by two operations, for which all that follows
    would wait.
    """
    done = _Whitening.of(z.detach(), weights, eye)

    def back(gradient: Tensor) -> Tensor:
        return done.gradient_in_z(gradient).to(gradient.dtype)

    return Frame(z, done.white.to(z.dtype), back)


def standardized_frame(z: Tensor, weights: Tensor | None = None) -> Frame:
    """Return the rows of :func:`standardized` for functions of distances, with their gradient."""
    with torch.no_grad():
        u, unit = standardized(z, weights)

    share: float | Tensor = 1.0 / z.shape[-2]
    if weights is not None:
        share = weights.unsqueeze(-1)

    def back(gradient: Tensor) -> Tensor:
        along = (gradient * u).sum(-2, keepdim=True)
        return torch.addcmul(gradient, u, along * share, value=-1.0) * unit

    return Frame(z, u, back)


def standardized(z: Tensor, weights: Tensor | None = None) -> tuple[Tensor, Tensor]:
    """Return the columns of Z ``(..., m, d)`` with mean zero and variance one, and their factors.

    The weights sum to one.
    """
    p = None if weights is None else weights.unsqueeze(-2)
    centered = z - weighted_mean(z.mT, p).unsqueeze(-2)
    variance = weighted_mean((centered * centered).mT, p).unsqueeze(-2)
    # The constant keeps a coordinate that is constant from being scaled up to noise of variance
    # one.
    unit = torch.rsqrt(variance + 1e-6)
    return centered * unit, unit


@dataclass(frozen=True)
class _Whitening:
    r"""U = Z_c Wᵀ with Z_c the centered rows, W = L⁻¹ and LLᵀ = C + r tr(C) I.

    The covariance is C = Z_cᵀ diag(p) Z_c, and p = None means 1/m. For a gradient G in U, dW = −Φ(W
    dC Wᵀ) W with Φ the lower triangle and half the diagonal, so that with N = 2 sym Φ(GᵀU) the
    gradient in Z_c is GW − diag(p) U (NW + r tr(WᵀNW) Lᵀ): three products where autograd through
    the factorization solves two more triangular systems. A function of the distances between the
    rows of U does not change when U is rotated: GᵀU is then symmetric, and N equals it. It does not
    change when U is shifted either, and G has mean zero; what rounding left of the mean is taken
    out before W multiplies it and Adam makes steps of it.
    """

    factor: Tensor
    p: Tensor | None
    inverse: Tensor
    white: Tensor

    @classmethod
    def of(cls, z: Tensor, weights: Tensor | None, eye: Tensor | None = None) -> _Whitening:
        """Whiten Z ``(models, m, d)`` in double precision."""
        m, d = z.shape[-2:]
        if eye is None:
            eye = torch.eye(d, dtype=torch.float64, device=z.device)
        if weights is None:
            p = None
            centered = _less_sum(z, 1.0 / m)  # float64 from here on
            weighted = centered
            share = 1.0 / m
        else:
            p = weights.double().unsqueeze(-1)
            centered = z - (p * z).sum(-2, keepdim=True)
            weighted = p * centered
            share = 1.0
        # cholesky_ex does not look at its result: nothing waits for it.
        covariance = torch.baddbmm(eye, weighted.mT, centered, beta=LEAST_VARIANCE, alpha=share)
        diagonal = covariance.diagonal(dim1=-2, dim2=-1)
        diagonal.add_(diagonal.sum(-1, keepdim=True), alpha=RIDGE)
        factor, _ = torch.linalg.cholesky_ex(covariance)
        inverse = torch.linalg.solve_triangular(factor, eye, upper=False)
        return cls(factor, p, inverse, torch.bmm(centered, inverse.mT))

    def gradient_in_z(self, gradient: Tensor) -> Tensor:
        """Return the gradient in Z from that in U, in double precision."""
        if self.p is None:
            share = 1.0 / gradient.shape[-2]
            weighted = self.white
            gradient = _less_sum(gradient, share)
        else:
            share = 1.0
            weighted = self.p * self.white
            gradient = gradient - self.p * gradient.sum(-2, keepdim=True, dtype=torch.float64)
        turned = torch.bmm(torch.bmm(gradient.mT, self.white), self.inverse)
        trace = (turned * self.inverse).sum((-2, -1), keepdim=True)
        turned.addcmul_(self.factor.mT, trace, value=RIDGE)
        return torch.baddbmm(torch.bmm(gradient, self.inverse), weighted, turned, alpha=-share)


def _less_sum(rows: Tensor, share: float) -> Tensor:
    """Return the rows less a share of their sum, in double precision."""
    total = rows.sum(-2, keepdim=True, dtype=torch.float64)
    return torch.sub(rows, total, alpha=share)


# One model on a CPU -------------------------------------------------------------------------------


def lone_whitening(z: NDArray[Any]) -> tuple[NDArray[Any], Callable[[NDArray[Any]], NDArray[Any]]]:
    """Return the whitened rows of Z ``(m, d)`` as columns, and a function from gradients to Z.

    As in the whitening of a stack with LU = Z_c, for columns: Wᵀ(G − NU/m) − (r/m) tr(WᵀNW) Z_c.
    Whitening is computed in float64, because the covariance has the square of the condition number
    of Z. A gradient comes in the dtype of Z, and products with more digits would gain nothing.
    """
    m, d = z.shape
    x = z.T.astype(np.float64, order="C")
    x -= np.add.reduce(x, 1, keepdims=True) / m
    covariance = x @ x.T / m
    diagonal = covariance.reshape(-1)[:: d + 1]
    diagonal += LEAST_VARIANCE
    diagonal += RIDGE * np.add.reduce(diagonal)
    # LAPACK takes half of torch's time here.
    factor, _ = lapack.dpotrf(covariance.T, lower=True, overwrite_a=True)
    inverse, _ = lapack.dtrtri(factor, lower=True, overwrite_c=True)
    white = (inverse @ x).astype(z.dtype)
    w = inverse.astype(z.dtype)
    centered = x.astype(z.dtype)

    def back(gradient: NDArray[Any]) -> NDArray[Any]:
        gradient = gradient - np.add.reduce(gradient, 1, keepdims=True) / m
        product = gradient @ white.T / m
        trace = np.vdot(product @ w, w)
        return w.T @ (gradient - product @ white) - (RIDGE * trace) * centered

    return white, back
