"""Distance covariance and correlation: HSIC with the distance-induced kernel, without a bandwidth to choose.

dCov² = 4·HSIC for the kernel (‖x‖ + ‖y‖ − ‖x − y‖)/2 (Sejdinovic et al., 2013), so this is the joint route again, with
E‖φ(x) − φ(y)‖² replaced by Euclidean distances. The correlation has no units, so rescaling the representation does not
change it.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from frhsic_core.arrays import ArrayLike, as_pair, binary_scale, require_value, same_kind
from frhsic_core.choices import one_of
from frhsic_core.joint.contraction import ESTIMATORS, from_sums, inverse_root, smallest_own
from frhsic_core.joint.sorted_columns import sum_of_products, sums_of_distances
from frhsic_core.joint.streaming import all_pairs, each_element
from frhsic_core.kernels import euclidean_distances

# From this many rows single columns are sorted; below, all pairs are compared.
COLUMN_ROWS = 256


@same_kind
def distance_covariance(
    z: ArrayLike,
    s: ArrayLike,
    *,
    squared: bool = False,
    estimator: str = "biased",
) -> Tensor:
    """Return the distance covariance of ``z`` and ``s`` (Székely, Rizzo and Bakirov, 2007).

    With a_ij = ‖z_i − z_j‖, b_ij = ‖s_i − s_j‖ and A, B their centred forms,

        dCov² = n⁻² Σ_ij A_ij B_ij                       (biased, never negative),
        dCov² = Σ_{i≠j} A_ij B_ij / (n(n − 3))           (unbiased, U-centred; Székely and Rizzo, 2014).

    Two samples of one column take O(n log n) time and O(n) memory, exactly (Huo and Székely, 2016). Others, and samples
    that need a gradient, take O(n²(d + p)) time, with O(n²) memory up to 4,096 rows and O(n) above. Differentiable; the
    root has gradient zero where its value is zero. dCov has the unit √(unit of z · unit of s), and a square that
    overflows is an error.

    Parameters
    ----------
    z, s : array_like
        ``(..., n, d)`` and ``(..., n, p)`` or ``(..., n)``.
    squared : bool
        Return dCov² instead of its root. The unbiased form, which may be negative, exists squared only.
    estimator : {"biased", "unbiased"}
        The unbiased form needs at least four rows.

    Returns
    -------
    Tensor, array or float
        Batch shape; zero when either argument is constant.

    Examples
    --------
    >>> round(distance_covariance([0.0, 1.0, 2.0], [0.0, 1.0, 4.0], squared=True), 4)
    0.9877
    """
    z, s = _read(z, s, squared=squared, estimator=estimator)
    # Powers of four have exact roots, so that only a result that leaves the range is lost.
    unit_z, unit_s = _power_of_four(z), _power_of_four(s)
    pair = (z / unit_z, s / unit_s)
    unit_z, unit_s = unit_z[..., 0, 0], unit_s[..., 0, 0]
    product = _distances(*pair, estimator=estimator)
    if not squared:
        return _root(product) * unit_z.sqrt() * unit_s.sqrt()
    product = (product.clamp_min(0.0) if estimator == "biased" else product) * unit_z * unit_s
    return require_value(product, "dCov²")


@same_kind
def distance_correlation(
    z: ArrayLike,
    s: ArrayLike,
    *,
    squared: bool = False,
    estimator: str = "biased",
) -> Tensor:
    """Return the distance correlation, dCor² = dCov²(z, s) / √(dCov²(z, z)·dCov²(s, s)), in [0, 1].

    ``squared=False`` is the usual, rooted correlation; several libraries call the square by the same name.
    ``squared=True, estimator="unbiased"`` is the bias-corrected form: about zero under independence for any dimension,
    where the biased one tends to one as d grows with n fixed. Cost as :func:`distance_covariance`.

    Parameters
    ----------
    z, s : array_like
        ``(..., n, d)`` and ``(..., n, p)`` or ``(..., n)``.
    squared : bool
        Return dCor². The unbiased form exists squared only.
    estimator : {"biased", "unbiased"}
        The unbiased form needs at least four rows and lies in [−1, 1].

    Returns
    -------
    Tensor, array or float
        Batch shape; zero when either argument is constant.

    Examples
    --------
    >>> round(distance_correlation([0.0, 1.0, 2.0], [0.0, 1.0, 4.0]), 4)
    0.9657
    >>> round(distance_correlation([1, 2, 3, 4], [2, 4, 6, 8]), 4)
    1.0
    """
    z, s = _read(z, s, squared=squared, estimator=estimator)
    # The ratio ignores units; unit scale keeps the squares below from vanishing in float32.
    ratio = _distances(_unit_scale(z), _unit_scale(s), estimator=estimator, normalized=True)
    if estimator == "unbiased":
        return ratio.clamp(-1.0, 1.0)
    ratio = ratio.clamp(0.0, 1.0)
    return ratio if squared else _root(ratio)


def _read(z: ArrayLike, s: ArrayLike, *, squared: bool, estimator: str) -> tuple[Tensor, Tensor]:
    one_of("estimator", estimator, ESTIMATORS)
    if estimator == "unbiased" and not squared:
        raise ValueError(
            "estimator='unbiased' with squared=False: the unbiased estimate may be negative and has no root; "
            "pass squared=True, or estimator='biased'."
        )
    return as_pair(z, s, min_rows=4 if estimator == "unbiased" else 1)


def _distances(z: Tensor, s: Tensor, *, estimator: str, normalized: bool = False) -> Tensor:
    """Return dCov², or dCor², of checked samples: HSIC with distances in place of kernels."""
    gradient = torch.is_grad_enabled() and (z.requires_grad or s.requires_grad)
    if z.shape[-1] == s.shape[-1] == 1 and z.shape[-2] >= COLUMN_ROWS and not gradient:
        return _columns(z, s, estimator=estimator, normalized=normalized)
    distances = {"kernel_z": euclidean_distances, "kernel_s": euclidean_distances}
    return all_pairs(z, s, estimator=estimator, normalized=normalized, **distances)


def _columns(z: Tensor, s: Tensor, *, estimator: str, normalized: bool) -> Tensor:
    """Return dCov² or dCor² of single columns ``(..., n, 1)``."""

    def one(x: Tensor, y: Tensor, *_: Any) -> Tensor:
        x, y = x[:, 0].double(), y[:, 0].double()
        x, y = x - x.mean(), y - y.mean()
        a, b, ones = sums_of_distances(x), sums_of_distances(y), torch.ones_like(x)
        value = from_sums(sum_of_products(x, y), a, b, ones, estimator=estimator)
        if normalized:  # Σ|x_i − x_j|² is known without a sum over pairs
            own_x, own_y = (
                from_sums(2.0 * len(v) * v.square().sum(), c, c, ones, estimator=estimator) for v, c in ((x, a), (y, b))
            )
            value = value * inverse_root(own_x, own_y, smallest_own(value, rows=1))
        return value.to(z.dtype)

    found = each_element(one, z, s, None, None)
    assert found is not None
    return found


def _power_of_four(x: Tensor) -> Tensor:
    unit = binary_scale(x)
    root = binary_scale(unit.sqrt())
    return root * root


def _root(x: Tensor) -> Tensor:
    """Return the root of x, with value and gradient zero where x is not positive; a plain root gives NaN there."""
    positive = x > 0
    return torch.where(positive, torch.where(positive, x, torch.ones_like(x)).sqrt(), torch.zeros_like(x))


def _unit_scale(x: Tensor) -> Tensor:
    """Divide by the largest deviation from the mean, a constant that cancels from every ratio and its gradient."""
    x = x - x.detach().mean(-2, keepdim=True)
    largest = x.detach().abs().amax((-2, -1), keepdim=True)
    return x / torch.where(largest > 0, largest, torch.ones_like(largest))
