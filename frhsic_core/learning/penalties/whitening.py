"""Whitening Z in the mini-batch, so that no direction of low variance is out of a kernel's sight."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

__all__ = ["whiten"]

RIDGE = 2e-6  # relative to the total variance; of 50 columns, 1e-4 of the mean one


def whiten(z: Tensor, weights: Tensor | None = None) -> Tensor:
    r"""Return :math:`W(z_i - \bar z)` with :math:`W^{-1}` the Cholesky factor of the covariance plus a ridge.

    Standardising coordinate by coordinate leaves an evasion: two coordinates that are nearly equal carry their small
    difference past a kernel whose distances are all about their sum, and a linear head multiplies it back. After
    whitening, every direction with more than some hundred-thousandth of the total variance has variance about one.
    Shifting, rotating and rescaling Z change nothing (up to a rotation), other invertible linear maps little.
    O(md² + d³) for each model; batches should have several times d rows.

    The ridge is the one with which ten models out of ten stayed in their kernel's sight and kept the task (Adult,
    λ = 500; the chapter on the bandwidth trap). Its price: the many
    thin directions of an encoder wider than its data can fill are blown up to noise of variance one, all distances are
    then alike, and the penalty hardly falls. Keep Z narrow on small data. Whitening is in double precision whatever Z
    is: rounding is multiplied, once forwards and once backwards, by the root of the condition number, and Adam makes
    steps of what it leaves.

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
    m = z.shape[-2]
    p = z.new_full((1, m, 1), 1.0 / m, dtype=torch.float64) if weights is None else weights.double().unsqueeze(-1)
    return _Whiten.apply(z.double(), p).to(z.dtype)


class _Whiten(torch.autograd.Function):
    r"""U = Z_c Wᵀ with Z_c the centred rows, W = L⁻¹ and LLᵀ = C + r tr(C) I, C = Z_cᵀ diag(p) Z_c.

    For a gradient G in U, dW = −Φ(W dC Wᵀ) W with Φ the lower triangle and half the diagonal, so that with
    S = Wᵀ sym Φ(GᵀU) W the gradient in Z_c is GW − 2 diag(p) Z_c (S + r tr(S) I), four small products where
    autograd through the factorisation would solve two more triangular systems.
    """

    @staticmethod
    def forward(ctx: Any, z: Tensor, p: Tensor) -> Tensor:
        centred = z - (p * z).sum(-2, keepdim=True)
        covariance = (p * centred).mT @ centred
        total = covariance.diagonal(dim1=-2, dim2=-1).sum(-1)[..., None, None]
        eye = torch.eye(z.shape[-1], dtype=z.dtype, device=z.device)
        # cholesky_ex does not look at its result, so that nothing waits for the device; 1e-8 is for a constant Z.
        factor, _ = torch.linalg.cholesky_ex(covariance + (RIDGE * total + 1e-8) * eye)
        inverse = torch.linalg.solve_triangular(factor, eye.expand_as(factor), upper=False)
        white = centred @ inverse.mT
        ctx.save_for_backward(centred, p, inverse, white)
        return white

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None]:
        centred, p, inverse, white = ctx.saved_tensors
        lower = (gradient.mT @ white).tril()
        half = 0.5 * (lower + lower.mT - torch.diag_embed(lower.diagonal(dim1=-2, dim2=-1)))
        inner = inverse.mT @ half @ inverse
        ridge = RIDGE * inner.diagonal(dim1=-2, dim2=-1).sum(-1)[..., None, None]
        slope = gradient @ inverse - 2.0 * p * (centred @ inner + ridge * centred)
        return slope - p * slope.sum(-2, keepdim=True), None
