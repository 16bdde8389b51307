"""The spectral fit of the null distribution: exact moments over permutations, and the skewness of the limit law."""

from __future__ import annotations

from torch import Tensor

from frhsic_core.joint.independence.sums import GramSums


def permutation_moments(k: GramSums, l: GramSums) -> tuple[Tensor, Tensor]:
    """Return the exact mean and variance of n·HSIC_b over all n! permutations (Kazi-Aoual et al., 1995)."""
    n = float(k.n)

    def sums(a: GramSums) -> tuple[Tensor, Tensor, Tensor]:
        spread = (n - 1) * a.squares - a.trace**2
        return a.trace, spread, n * (n + 1) * a.diagonal_squares - (n - 1) * (a.trace**2 + 2 * a.squares)

    k_trace, k_spread, k_rest = sums(k)
    l_trace, l_spread, l_rest = sums(l)
    mean = k_trace * l_trace / (n - 1)
    variance = 2.0 * k_spread * l_spread / ((n - 1) ** 2 * (n + 1) * (n - 2))
    variance = variance + k_rest * l_rest / ((n + 1) * n * (n - 1) * (n - 2) * (n - 3))
    return mean / n, variance / n**2


def spectral_shape(k: GramSums, l: GramSums) -> Tensor:
    """Return the shape of the gamma distribution that has the skewness of the limit law Σ λ_i μ_j χ²_ij.

    The r-th cumulant of the limit law is 2^(r−1) (r − 1)! Σλ^r Σμ^r, so its skewness is √8 Σλ³Σμ³/(Σλ²Σμ²)^(3/2). A
    gamma distribution with shape a has skewness 2/√a.
    """
    return _shape(k) * _shape(l) / 2.0


def _shape(gram: GramSums) -> Tensor:
    """Return (Σλ²)³/(Σλ³)², one factor of twice the shape."""
    return gram.squares**3 / gram.cubes**2
