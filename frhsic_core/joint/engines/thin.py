"""Thin matrices: Gram matrices of small rank as products of features (see ``joint.factors``).

O(n r²) time and O(n) memory, in float64. Differentiable in samples of one column, never in a
bandwidth. The relative error is below 1e-10.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from frhsic_core.joint import factors
from frhsic_core.joint.contraction import sum_factors
from frhsic_core.joint.factors import FEW_COLUMNS, ThinPair, thin_pair
from frhsic_core.joint.problem import Problem, over_pairs
from frhsic_core.kernels import Kernel

if TYPE_CHECKING:
    from torch import Tensor


def serves(problem: Problem) -> bool:
    """Return whether the rank may be small: many rows, and few columns for most kernels."""
    if problem.is_learned or problem.rows < factors.THIN_ROWS:
        return False
    is_wide = _is_wide(problem.z, problem.kernel_z) or _is_wide(problem.s, problem.kernel_s)
    return not is_wide


def _is_wide(x: Tensor, kernel: Kernel) -> bool:
    """Return whether a sample has so many columns that no small rank is expected."""
    return hasattr(kernel, "bandwidth") and x.shape[-1] > FEW_COLUMNS


def value(problem: Problem) -> Tensor | None:
    """Return HSIC of each batch element, or ``None`` if a rank is too large."""
    return over_pairs(problem, of_pair)


def of_pair(pair: Problem) -> Tensor | None:
    """Return HSIC of one pair of samples in float64, or ``None`` if a rank is too large.

    Examples
    --------
    >>> import torch
    >>> from frhsic_core import Gaussian
    >>> from frhsic_core.joint.contraction import dependence
    >>> x = torch.linspace(0, 1, 2000, dtype=torch.float64)[:, None]
    >>> kernel = Gaussian(0.3)
    >>> thin = of_pair(Problem(x, x.sin(), kernel, kernel))
    >>> bool((thin / dependence(x, x.sin(), kernel_z=kernel, kernel_s=kernel) - 1).abs() < 1e-12)
    True
    """
    weights = None
    if pair.weights is not None:
        weights = pair.weights.double()
    features = thin_pair(pair.z, pair.s, pair.kernel_z, pair.kernel_s, weights)
    if features is None:
        return None
    if pair.estimator == "unbiased":
        return _unbiased(features)
    # The sums of the centered features are zero, so that the means may be constants of the
    # gradient.
    return (features.product() / features.weights.sum()).square().sum()


def _unbiased(features: ThinPair) -> Tensor:
    """Return the unbiased form.

    It does not change when functions of one argument are added to the kernel, so K may be Φ̃Φ̃ᵀ:
    without its diagonal the sum of row i is φ̃_i·Σφ̃ − |φ̃_i|². Products of two sums that are zero
    are left out.
    """

    def sums(phi: Tensor, psi: Tensor, weights: Tensor) -> tuple[Tensor, ...]:
        d = phi.square().sum(-1, keepdim=True)  # the diagonals of both Gram matrices
        e = psi.square().sum(-1, keepdim=True)
        weighted_phi = phi * weights
        weighted_psi = psi * weights
        weighted_d = d * weights
        return (
            weighted_phi.mT @ psi,
            weighted_phi.sum(0),
            (e * weighted_phi).sum(0),
            weighted_psi.sum(0),
            (d * weighted_psi).sum(0),
            (weighted_d * e).sum(),
            weighted_d.sum(),
            (e * weights).sum(),
        )

    found = features.over_rows(sums)
    cross, sum_phi, sum_e_phi, sum_psi, sum_d_psi, sum_d_e, sum_d, sum_e = found
    share, grand, scale = sum_factors(features.weights.sum(), "unbiased")
    inner = sum_d_e - sum_phi @ sum_e_phi - sum_psi @ sum_d_psi
    return (cross.square().sum() - sum_d_e - 2.0 * share * inner + grand * sum_d * sum_e) * scale
