"""Regularized kernel HGR, the largest canonical correlation between functions of Z and functions of S.

The Hirschfeld–Gebelein–Rényi coefficient is the largest correlation of f(Z) and g(S) over all functions. Over two
rich reproducing kernel Hilbert spaces its sample version is one for every sample without ties, so it is regularised, as
in kernel canonical correlation analysis (Fukumizu et al., 2007).
"""

from __future__ import annotations

import math

import torch
from torch import Tensor

from frhsic_core.arrays import ArrayLike, as_pair, same_kind
from frhsic_core.joint.coco import both_eigensystems, first_order
from frhsic_core.kernels import Kernel


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
    ridge_z, ridge_s = _ridges(ridge)
    z, s = as_pair(z, s)
    n = z.shape[-2]
    (k, k_values, k_vectors), (l, l_values, l_vectors) = both_eigensystems(z, s, kernel_z, kernel_s, "khgr")
    # K̃(K̃ + nηI)⁻¹ = FFᵀ and the same for S = GGᵀ: the operator is FᵀG in orthonormal coordinates.
    f = k_vectors * (k_values / (k_values + n * ridge_z)).sqrt().unsqueeze(-2)
    g = l_vectors * (l_values / (l_values + n * ridge_s)).sqrt().unsqueeze(-2)
    p, values, q_t = torch.linalg.svd(f.mT @ g)
    p, value, q = p[..., :1], values[..., :1], q_t.mT[..., :1]
    # d(K̃(K̃ + nη)⁻¹) = nη(K̃ + nη)⁻¹ dK̃ (K̃ + nη)⁻¹, then the first-order formula of a simple singular value.
    change = n * ridge_z * first_order(k, _solve(k_values, k_vectors, n * ridge_z, g @ q))
    change = change + n * ridge_s * first_order(l, _solve(l_values, l_vectors, n * ridge_s, f @ p))
    eps = torch.finfo(value.dtype).eps
    inverse = torch.where(value > n * eps, 0.5 / torch.where(value > n * eps, value, 1.0), 0.0)
    # Below one by definition; rounding can reach it when the ridge is tiny.
    return (value.clamp_max(1.0 - eps) + inverse * change)[..., 0]


def _ridges(ridge: float | tuple[float, float]) -> tuple[float, float]:
    pair = ridge if isinstance(ridge, tuple | list) else (ridge, ridge)
    if len(pair) != 2:
        raise ValueError(f"ridge has {len(pair)} values: pass one positive number, or two for (eta_Z, eta_S).")
    first, second = float(pair[0]), float(pair[1])
    if not all(math.isfinite(eta) and eta > 0 for eta in (first, second)):
        raise ValueError(
            f"ridge is {ridge}: it must be positive; without regularisation the sample kHGR is one for every sample."
        )
    return first, second


def _solve(values: Tensor, vectors: Tensor, shift: float, right: Tensor) -> Tensor:
    """Return (K̃ + shift·I)⁻¹ right, from the eigensystem of K̃."""
    return vectors @ ((vectors.mT @ right) / (values + shift).unsqueeze(-1))
