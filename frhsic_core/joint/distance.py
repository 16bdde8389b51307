"""Distance covariance and correlation: HSIC with the distance-induced kernel, without a bandwidth to choose.

dCov² = 4·HSIC for the kernel (‖x‖ + ‖y‖ − ‖x − y‖)/2 (Sejdinovic et al., 2013), so this is the joint route again, with
E‖φ(x) − φ(y)‖² replaced by Euclidean distances. The correlation has no units, so rescaling the representation does not
change it.
"""

from __future__ import annotations

import torch
from torch import Tensor

from frhsic_core.arrays import ArrayLike, as_pair
from frhsic_core.joint.contraction import dependence, require_estimator
from frhsic_core.kernels import euclidean_distances


def distance_covariance(
    z: ArrayLike,
    s: ArrayLike,
    *,
    squared: bool = False,
    estimator: str = "biased",
    check_finite: bool = True,
) -> Tensor:
    """Return the distance covariance of ``z`` and ``s`` (Székely, Rizzo and Bakirov, 2007).

    With a_ij = ‖z_i − z_j‖, b_ij = ‖s_i − s_j‖ and A, B their centred forms,

        dCov² = n⁻² Σ_ij A_ij B_ij                       (biased, never negative),
        dCov² = Σ_{i≠j} A_ij B_ij / (n(n − 3))           (unbiased, U-centred; Székely and Rizzo, 2014).

    O(n²(d + p)) time, O(n²) memory. Differentiable; the root has gradient zero where its value is zero.

    Parameters
    ----------
    z, s : array_like
        ``(..., n, d)`` and ``(..., n, p)`` or ``(..., n)``.
    squared : bool
        Return dCov² instead of its root. The unbiased form, which may be negative, exists squared only.
    estimator : {"biased", "unbiased"}
        The unbiased form needs at least four rows.
    check_finite : bool
        Switch the NaN check off where a training step must not wait for the GPU.

    Returns
    -------
    Tensor
        Batch shape; zero when either argument is constant.

    Examples
    --------
    >>> round(distance_covariance([0.0, 1.0, 2.0], [0.0, 1.0, 4.0], squared=True).item(), 4)
    0.9877
    """
    z, s = _read(z, s, squared=squared, estimator=estimator, check_finite=check_finite)
    product = dependence(z, s, kernel_z=euclidean_distances, kernel_s=euclidean_distances, estimator=estimator)
    if squared:
        return product.clamp_min(0.0) if estimator == "biased" else product
    return _root(product)


def distance_correlation(
    z: ArrayLike,
    s: ArrayLike,
    *,
    squared: bool = False,
    estimator: str = "biased",
    check_finite: bool = True,
) -> Tensor:
    """Return the distance correlation, dCor² = dCov²(z, s) / √(dCov²(z, z)·dCov²(s, s)), in [0, 1].

    ``squared=False`` is the usual, rooted correlation; several libraries call the square by the same name.
    ``squared=True, estimator="unbiased"`` is the bias-corrected form: about zero under independence for any dimension,
    where the biased one tends to one as d grows with n fixed. O(n²(d + p)) time, O(n²) memory.

    Parameters
    ----------
    z, s : array_like
        ``(..., n, d)`` and ``(..., n, p)`` or ``(..., n)``.
    squared : bool
        Return dCor². The unbiased form exists squared only.
    estimator : {"biased", "unbiased"}
        The unbiased form needs at least four rows and lies in [−1, 1].
    check_finite : bool
        Switch the NaN check off where a training step must not wait for the GPU.

    Returns
    -------
    Tensor
        Batch shape; zero when either argument is constant.

    Examples
    --------
    >>> round(distance_correlation([0.0, 1.0, 2.0], [0.0, 1.0, 4.0]).item(), 4)
    0.9657
    >>> round(distance_correlation([1, 2, 3, 4], [2, 4, 6, 8]).item(), 4)
    1.0
    """
    z, s = _read(z, s, squared=squared, estimator=estimator, check_finite=check_finite)
    # The ratio ignores units; unit scale keeps the squares below from vanishing in float32.
    ratio = dependence(
        _unit_scale(z),
        _unit_scale(s),
        kernel_z=euclidean_distances,
        kernel_s=euclidean_distances,
        estimator=estimator,
        normalized=True,
    )
    if estimator == "unbiased":
        return ratio.clamp(-1.0, 1.0)
    ratio = ratio.clamp(0.0, 1.0)
    return ratio if squared else _root(ratio)


def _read(z: ArrayLike, s: ArrayLike, *, squared: bool, estimator: str, check_finite: bool) -> tuple[Tensor, Tensor]:
    require_estimator(estimator)
    if estimator == "unbiased" and not squared:
        raise ValueError(
            "estimator='unbiased' with squared=False: the unbiased estimate may be negative and has no root; "
            "pass squared=True, or estimator='biased'."
        )
    return as_pair(z, s, min_rows=4 if estimator == "unbiased" else 1, check_finite=check_finite)


def _root(x: Tensor) -> Tensor:
    """Return the root of x, with value and gradient zero where x is not positive; a plain root gives NaN there."""
    positive = x > 0
    return torch.where(positive, torch.where(positive, x, torch.ones_like(x)).sqrt(), torch.zeros_like(x))


def _unit_scale(x: Tensor) -> Tensor:
    """Divide by the largest deviation from the mean, a constant that cancels from every ratio and its gradient."""
    x = x - x.detach().mean(-2, keepdim=True)
    largest = x.detach().abs().amax((-2, -1), keepdim=True)
    return x / torch.where(largest > 0, largest, torch.ones_like(largest))
