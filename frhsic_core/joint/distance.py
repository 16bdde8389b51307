"""Distance correlation: normalized HSIC with the distance-induced kernel, without a bandwidth to choose.

The distance covariance of Székely, Rizzo and Bakirov (2007) is dCov² = 4·HSIC for the kernel (‖x‖ + ‖y‖ − ‖x − y‖)/2
(Sejdinovic et al., 2013), so this is the joint route again: ``4 * hsic(z, s, kernel_z="distance",
kernel_s="distance")``. The correlation has no units, so rescaling the representation does not change it.
"""

from __future__ import annotations

import torch
from torch import Tensor

from frhsic_core.arrays import ArrayLike, as_pair, same_kind
from frhsic_core.choices import one_of
from frhsic_core.joint.contraction import ESTIMATORS
from frhsic_core.joint.hsic import criterion
from frhsic_core.kernels import Distance


@same_kind
def distance_correlation(
    z: ArrayLike,
    s: ArrayLike,
    *,
    squared: bool = False,
    estimator: str = "biased",
) -> Tensor:
    """Return the distance correlation, dCor² = dCov²(z, s) / √(dCov²(z, z)·dCov²(s, s)), in [0, 1].

    With a_ij = ‖z_i − z_j‖, b_ij = ‖s_i − s_j‖ and A, B their centred forms, dCov² is n⁻² Σ_ij A_ij B_ij (biased), or
    Σ_{i≠j} A_ij B_ij / (n(n − 3)) with U-centred A and B (unbiased; Székely and Rizzo, 2014).

    ``squared=False`` is the usual, rooted correlation; several libraries call the square by the same name.
    ``squared=True, estimator="unbiased"`` is the bias-corrected form: about zero under independence for any dimension,
    where the biased one tends to one as d grows with n fixed.

    Two samples of one column take O(n log n) time and O(n) memory, exactly (Huo and Székely, 2016). Others, and samples
    that need a gradient, take O(n²(d + p)) time, with O(n²) memory up to 4,096 rows and O(n) above. Differentiable; the
    root has gradient zero where its value is zero.

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
    one_of("estimator", estimator, ESTIMATORS)
    if estimator == "unbiased" and not squared:
        raise ValueError(
            "estimator='unbiased' with squared=False: the unbiased estimate may be negative and has no root; "
            "pass squared=True, or estimator='biased'."
        )
    z, s = as_pair(z, s)  # distances between categories have no meaning
    ratio = criterion(z, s, kernel_z=Distance(), kernel_s=Distance(), estimator=estimator, normalized=True)
    if squared:
        return ratio
    # A plain root has the gradient NaN at zero.
    positive = ratio > 0
    return torch.where(positive, torch.where(positive, ratio, torch.ones_like(ratio)).sqrt(), torch.zeros_like(ratio))
