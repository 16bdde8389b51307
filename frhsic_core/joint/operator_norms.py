"""COCO and kernel HGR: norms of the empirical cross-covariance operator Σ̂_ZS, as it is and regularized.

HSIC is the sum of the squared singular values of Σ̂_ZS. COCO (constrained covariance; Gretton et al., 2005) is the
largest one, the covariance of the most dependent pair of unit-norm functions f(Z), g(S).

The Hirschfeld–Gebelein–Rényi coefficient is the largest *correlation* of f(Z) and g(S) over all functions. Over two
rich reproducing kernel Hilbert spaces its sample version is one for every sample without ties, so it is regularised, as
in kernel canonical correlation analysis (Fukumizu et al., 2007).
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from frhsic_core._arrays import (
    ArrayLike,
    as_pair,
    batch_shape,
    require_memory,
    require_value,
    same_kind,
)
from frhsic_core.backend import finfo, xp
from frhsic_core.joint.contraction import center
from frhsic_core.kernels import Kernel, needs_torch, resolve_kernel

if TYPE_CHECKING:
    from torch import Tensor


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
    z, s = as_pair(z, s, torch=needs_torch(kernel_z) or needs_torch(kernel_s))
    value, change = _norm(z, s, (kernel_z, kernel_s), [], "coco")
    return (value + change) / z.shape[-2]


@same_kind
def khgr(
    z: ArrayLike,
    s: ArrayLike,
    *,
    ridge: float | tuple[float, float],
    kernel_z: Kernel | str | None = None,
    kernel_s: Kernel | str | None = None,
) -> Tensor:
    """Return the Tikhonov-regularized empirical kernel HGR, in [0, 1).

        kHGR = ‖(Σ̂_ZZ + η_Z I)^(−1/2) Σ̂_ZS (Σ̂_SS + η_S I)^(−1/2)‖_op

    is the square root of the largest eigenvalue of K̃(K̃ + nη_Z I)⁻¹L̃(L̃ + nη_S I)⁻¹. As the ridge grows it tends to
    COCO/√(η_Z η_S); as the ridge goes to zero it tends to one for all samples without ties, dependent or not, so a
    value means something only beside its ridge and n. O(n³) time, O(n²) memory. Differentiable; the gradient is zero
    where the value is zero.

    Parameters
    ----------
    z, s : array_like
        ``(..., n, d)`` and ``(..., n, p)`` or ``(..., n)``.
    ridge : float or (float, float)
        η > 0 for both, or (η_Z, η_S), on the scale of the covariance operators: a kernel bounded by one has Σ̂ of norm
        at most one, whatever n.
    kernel_z, kernel_s : Kernel or str, optional
        A kernel or its name, as in :func:`frhsic_core.hsic`.

    Returns
    -------
    Tensor, array or float
        Batch shape; zero when either argument is constant.

    Notes
    -----
    The paper's Proposition C.1 (``prop:khgr_reg_sandwich``): kHGR² ≤ HSIC_b/(η_Z η_S). It holds for all kernels,
    characteristic or not, and with COCO² ≤ HSIC_b in place of HSIC_b.

    Examples
    --------
    >>> z, s = [0.0, 1.0, 2.0, 3.0], [0.0, 1.0, 4.0, 9.0]
    >>> round(khgr(z, s, ridge=0.1), 3), round(khgr(z, s, ridge=1e-8), 3)
    (0.741, 1.0)
    """
    z, s = as_pair(z, s, torch=needs_torch(kernel_z) or needs_torch(kernel_s))
    pair = ridge if isinstance(ridge, tuple | list) else (ridge, ridge)
    if len(pair) != 2:
        raise ValueError(
            f"ridge has {len(pair)} values: pass one positive number, or two for (eta_Z, eta_S)."
        )
    if not all(math.isfinite(eta) and eta > 0 for eta in pair):
        raise ValueError(
            f"ridge is {ridge}: it must be positive; without regularisation the sample kHGR is one for every sample."
        )
    value, change = _norm(z, s, (kernel_z, kernel_s), [float(eta) for eta in pair], "khgr")
    eps = finfo(value).eps
    # Below one by definition; rounding can reach it when the ridge is tiny.
    return value.clamp_max(1.0 - eps) + xp.where(value > z.shape[-2] * eps, change, 0.0)


def _norm(
    z: Tensor,
    s: Tensor,
    kernels: tuple[Kernel | str | None, Kernel | str | None],
    ridges: list[float],
    name: str,
) -> tuple[Tensor, Tensor]:
    """Return the largest singular value of √f(K̃)√g(L̃), and zero with its gradient; ``(...)`` each.

    f and g are the identity without ridges, and λ -> λ/(λ + nη) with a ridge η each.
    With σ = pᵀFᵀGq, f(K̃) = FFᵀ and g(L̃) = GGᵀ, dσ = (Gq)ᵀdf(K̃)(Gq)/2σ + (Fp)ᵀdg(L̃)(Fp)/2σ, and
    df(K̃) = √f'(K̃) dK̃ √f'(K̃) for these f. No eigenvector is differentiated: that gives NaN on repeated eigenvalues,
    which repeated rows make many of.
    """
    n = z.shape[-2]
    advice = f"{name} needs whole matrices and O(n³) time: pass a random subset of the rows."
    require_memory(z, n, batch=math.prod(batch_shape(z, s)), copies=12, advice=advice)
    sides = []
    for x, kernel, ridge, side in zip((z, s), kernels, ridges or (None, None), "zs", strict=True):
        gram = require_value(resolve_kernel(kernel, x, name=f"kernel_{side}")(x), name)
        centered = center(gram)
        values, vectors = xp.eigh(centered.detach())
        # Eigenvalues below n·eps·max|K| are rounding, of either sign.
        floor = n * finfo(gram).eps * gram.detach().abs().amax((-2, -1))
        value = xp.where(values > floor.unsqueeze(-1), values, xp.zeros_like(values))
        slope = xp.ones_like(value)  # √f'
        if ridge is not None:
            value, slope = value / (value + n * ridge), math.sqrt(n * ridge) / (value + n * ridge)
        kept = max(
            1, int((value > 0).reshape(-1, n).any(0).sum())
        )  # the values ascend: the columns before are zero
        sides.append(
            (
                centered,
                vectors,
                slope.unsqueeze(-1),
                (vectors * value.sqrt().unsqueeze(-2))[..., -kept:],
            )
        )
    f, g = sides[0][-1], sides[1][-1]
    p, singular, q = xp.svd(f.mT @ g)
    sigma = singular[..., 0]
    change = xp.zeros_like(sigma)
    for (centered, vectors, slope, _), direction in zip(
        sides, (g @ q.mT[..., :1], f @ p[..., :1]), strict=True
    ):
        along = vectors @ (slope * (vectors.mT @ direction))
        change = change + ((centered @ along) * along).sum((-2, -1))
    half = xp.where(sigma > 0, 0.5 / xp.where(sigma > 0, sigma, 1.0), 0.0)
    return sigma, half * (change - change.detach())
