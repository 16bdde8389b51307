"""COCO and the singular values of the empirical cross-covariance operator.

HSIC is the sum of the squared singular values of Σ̂_ZS; COCO (constrained covariance; Gretton et al., 2005) is the
largest one, the covariance of the most dependent pair of unit-norm functions f(Z), g(S).
"""

from __future__ import annotations

import torch
from torch import Tensor

from frhsic_core.arrays import ArrayLike, as_pair, require_value, same_kind
from frhsic_core.joint.contraction import center
from frhsic_core.kernels import Kernel, resolve_kernel
from frhsic_core.memory import require_memory


@same_kind
def coco(
    z: ArrayLike,
    s: ArrayLike,
    *,
    kernel_z: Kernel | str | None = None,
    kernel_s: Kernel | str | None = None,
) -> Tensor:
    """Return the constrained covariance, the largest singular value of the cross-covariance operator.

    COCO = max{ cov(f(Z), g(S)) : ‖f‖ = ‖g‖ = 1 } = √λ_max(K̃L̃)/n, with the empirical covariance (divisor n). It obeys
    COCO² ≤ HSIC_b. O(n³) time, O(n²) memory. Differentiable; where the largest singular value is repeated the gradient
    is that of one of its pairs, and it is zero where COCO is zero.

    Parameters
    ----------
    z, s : array_like
        ``(..., n, d)`` and ``(..., n, p)`` or ``(..., n)``.
    kernel_z, kernel_s : Kernel or str, optional
        A kernel or its name, as in :func:`frhsic_core.hsic`.

    Returns
    -------
    Tensor, array or float
        Batch shape; zero when either argument is constant.

    Examples
    --------
    >>> from frhsic_core.kernels import Linear
    >>> round(coco([0.0, 1.0, 2.0], [0.0, 1.0, 4.0], kernel_z=Linear(), kernel_s=Linear()), 4)  # |covariance|
    1.3333
    """
    return _singular_values(z, s, kernel_z, kernel_s, count=1)[..., 0]


@same_kind
def cross_covariance_spectrum(
    z: ArrayLike,
    s: ArrayLike,
    *,
    kernel_z: Kernel | str | None = None,
    kernel_s: Kernel | str | None = None,
) -> Tensor:
    """Return all n singular values of the empirical cross-covariance operator, largest first.

    Their squares are the eigenvalues of K̃L̃/n² and sum to the biased HSIC. O(n³) time, O(n²) memory. Differentiable as
    :func:`coco`; single values of a repeated group have no gradient of their own, symmetric functions of them do.

    Parameters
    ----------
    z, s, kernel_z, kernel_s
        As for :func:`coco`.

    Returns
    -------
    Tensor or array
        ``(..., n)``.

    Examples
    --------
    >>> from frhsic_core.joint.hsic import hsic
    >>> z, s = [0.0, 1.0, 2.0, 5.0], [0.0, 1.0, 4.0, 2.0]
    >>> bool(abs((cross_covariance_spectrum(z, s) ** 2).sum() - hsic(z, s)) < 1e-12)
    True
    """
    return _singular_values(z, s, kernel_z, kernel_s, count=None)


def both_eigensystems(
    z: Tensor, s: Tensor, kernel_z: Kernel | str | None, kernel_s: Kernel | str | None, name: str
) -> tuple[tuple[Tensor, Tensor, Tensor], tuple[Tensor, Tensor, Tensor]]:
    """Return :func:`centered_eigensystem` of both Gram matrices, or say why ``name`` cannot have them."""
    batch = torch.broadcast_shapes(z.shape[:-2], s.shape[:-2]).numel()
    advice = f"{name} needs whole matrices and O(n³) time: pass a random subset of the rows."
    require_memory(z, z.shape[-2], batch=batch, copies=12, advice=advice)
    gram_z = require_value(resolve_kernel(kernel_z, z, name="kernel_z")(z), name)
    gram_s = require_value(resolve_kernel(kernel_s, s, name="kernel_s")(s), name)
    return centered_eigensystem(gram_z), centered_eigensystem(gram_s)


def centered_eigensystem(gram: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Center a Gram matrix; return it with its eigenvalues and eigenvectors, which carry no gradient.

    Eigenvalues below n·eps·max|K| are rounding, of either sign, and become zero. A gradient through an
    eigendecomposition is NaN on repeated eigenvalues (repeated rows make many zeros), so callers differentiate the
    singular values they need by their first-order formula instead.
    """
    centered = center(gram)
    floor = gram.shape[-1] * torch.finfo(gram.dtype).eps * gram.detach().abs().amax((-2, -1), keepdim=False)
    values, vectors = torch.linalg.eigh(centered.detach())
    return centered, torch.where(values > floor.unsqueeze(-1), values, torch.zeros_like(values)), vectors


def first_order(centered: Tensor, directions: Tensor) -> Tensor:
    """Return diag(VᵀK̃V) minus itself: zero, with the gradient of the quadratic forms."""
    quadratic = ((centered @ directions) * directions).sum(-2)
    return quadratic - quadratic.detach()


def _singular_values(
    z: ArrayLike, s: ArrayLike, kernel_z: Kernel | str | None, kernel_s: Kernel | str | None, *, count: int | None
) -> Tensor:
    z, s = as_pair(z, s)
    n = z.shape[-2]
    (k, k_values, k_vectors), (l, l_values, l_vectors) = both_eigensystems(z, s, kernel_z, kernel_s, "coco")
    # K̃ = AAᵀ and L̃ = BBᵀ: in orthonormal coordinates the operator is AᵀB/n.
    a = k_vectors * k_values.sqrt().unsqueeze(-2)
    b = l_vectors * l_values.sqrt().unsqueeze(-2)
    p, values, q_t = torch.linalg.svd(a.mT @ b)
    p, values, q = p[..., :count], values[..., :count], q_t.mT[..., :count]
    # With σ = pᵀAᵀBq, dσ = (Bq)ᵀdK̃(Bq)/2σ + (Ap)ᵀdL̃(Ap)/2σ: no eigenvector is differentiated.
    floor = n * torch.finfo(values.dtype).eps * values[..., :1]
    inverse = torch.where(values > floor, 0.5 / torch.where(values > floor, values, 1.0), 0.0)
    change = first_order(k, b @ q) + first_order(l, a @ p)
    return (values + inverse * change) / n
