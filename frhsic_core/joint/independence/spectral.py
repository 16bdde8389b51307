"""The spectral fit of the null distribution: exact moments over permutations, and the skewness of the limit law."""

from __future__ import annotations

from torch import Tensor

from frhsic_core.joint.independence.gamma import trace


def permutation_moments(k_centered: Tensor, l_centered: Tensor) -> tuple[Tensor, Tensor]:
    """Return the exact mean and variance of n·HSIC_b over all n! permutations (Kazi-Aoual et al., 1995)."""
    n = float(k_centered.shape[-1])

    def sums(a: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        total, squares = trace(a), a.square().sum((-2, -1))
        diagonal = a.diagonal(dim1=-2, dim2=-1).square().sum(-1)
        spread = (n - 1) * squares - total**2
        return total, spread, n * (n + 1) * diagonal - (n - 1) * (total**2 + 2 * squares)

    k_trace, k_spread, k_rest = sums(k_centered)
    l_trace, l_spread, l_rest = sums(l_centered)
    mean = k_trace * l_trace / (n - 1)
    variance = 2.0 * k_spread * l_spread / ((n - 1) ** 2 * (n + 1) * (n - 2))
    variance = variance + k_rest * l_rest / ((n + 1) * n * (n - 1) * (n - 2) * (n - 3))
    return mean / n, variance / n**2


def spectral_shape(centered: Tensor) -> Tensor:
    """Return (Σλ²)³/(Σλ³)², one factor of twice the gamma shape that has the limit law's skewness."""
    second = centered.square().sum((-2, -1))
    third = ((centered @ centered) * centered).sum((-2, -1))
    return second**3 / third**2
