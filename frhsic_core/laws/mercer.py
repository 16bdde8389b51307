"""The Mercer system of a Gaussian kernel under S ~ N(0, 1), and the conditional embedding resolved along it.

With ω = √(1 + 4/σ²), the operator (T_S u)(s) = ∫ k(s, t)u(t) dP_S(t) has (Rasmussen & Williams 2006, §4.3.1)

    λ_l = 2/(ω + 1) · ((ω − 1)/(ω + 1))^l,      ψ_l(s) = ω^(1/4)·exp(−(ω − 1)s²/4)·He_l(√ω·s)/√(l!).

Products of Hermite functions with Gaussians integrate through their generating function, so the coefficients of
Δ(s) = μ_{Z|S=s} − μ_Z and of m_f are finite sums. Counting starts at l = 0, the paper's at one: its λ_m is
``eigenvalues(m)[m - 1]``, its P_m projects onto ψ_0, …, ψ_{m−1}.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from frhsic_core.laws.formulas import Function, Number

__all__ = ["MercerSystem", "delta_coefficient", "eigenvalue", "frequency"]


def frequency(bandwidth: Number, *, sqrt: Function = math.sqrt) -> Number:
    """Return ω = √(1 + 4/σ²); any type of number."""
    return sqrt(1 + 4 / (bandwidth * bandwidth))


def eigenvalue(l: int, bandwidth: Number, *, sqrt: Function = math.sqrt) -> Number:
    """Return λ_l of T_S, l = 0, 1, …; any type of number.

    Examples
    --------
    >>> round(sum(eigenvalue(l, 1.0) for l in range(60)), 12)  # the trace is E k(S, S) = 1
    1.0
    """
    omega = frequency(bandwidth, sqrt=sqrt)
    ratio = 4 / (bandwidth * bandwidth * (omega + 1) * (omega + 1))  # (ω − 1)/(ω + 1) without cancellation
    return 2 / (omega + 1) * ratio**l


def delta_coefficient(
    l: int, mean_z: Number, coupling: Number, bandwidth_s: Number, *, sqrt: Function = math.sqrt
) -> Number:
    """‖⟨Δ, ψ_l⟩‖² in F_Z, for any type of number: a sum of at most l/2 + 1 positive terms, less the mean's part.

    Σ_l λ_l‖Δ_l‖² = HSIC and Σ_l ‖Δ_l‖² = E[MMD²]; E[MMD²] less the first m is the spectral tail ρ_m² of Theorem 4.5
    (``cor:hsic-mmd-equivalence``). O(l). Floats serve up to l ≈ 500; beyond, and for many at once,
    :func:`frhsic_core.laws.spectrum.delta_coefficients`.

    Examples
    --------
    >>> terms = [delta_coefficient(l, 3**-0.5, 1 / 12, 1.0) for l in range(60)]
    >>> round(sum(terms), 10)
    0.0551052628
    """
    omega, b = frequency(bandwidth_s, sqrt=sqrt), bandwidth_s * bandwidth_s
    y = coupling / (1 - 2 * coupling)
    scale = (omega + 1) * (omega + 1 + 4 * y)
    own, shared = 4 * (1 / b - y) / scale, 4 * omega * y / scale
    paired = sum(
        math.comb(l, 2 * k) * math.comb(2 * k, k) * (own / 2) ** (2 * k) * shared ** (l - 2 * k)
        for k in range(l // 2 + 1)
    )
    result = paired * 2 * sqrt(omega / (scale * (1 - 2 * coupling)))
    if l % 2 == 0:
        x = coupling / (1 - coupling)
        eta, tilted = (4 / b) / ((omega + 1) * (omega + 1)), (omega - 1 - 2 * x) / (omega + 1 + 2 * x)
        mean = sqrt(omega) * 2 * math.comb(l, l // 2)
        cross = (eta * tilted / 4) ** (l // 2) / sqrt((omega + 1) * (omega + 1 + 2 * x) * (1 - coupling))
        result += mean * ((eta / 2) ** l / (omega + 1) - 2 * cross)
    return mean_z * result


@dataclass(frozen=True)
class MercerSystem:
    """Eigenvalues and eigenfunctions of T_S for a Gaussian kernel under N(0, 1).

    Parameters
    ----------
    bandwidth : float
        σ of the kernel on S.

    Examples
    --------
    >>> MercerSystem(1.0).eigenvalues(3).round(6)
    array([0.618034, 0.236068, 0.09017 ])
    """

    bandwidth: float

    @property
    def omega(self) -> float:
        """ω = √(1 + 4/σ²)."""
        return frequency(self.bandwidth)

    def eigenvalues(self, m: int) -> np.ndarray:
        """λ_0 > λ_1 > …, the first m."""
        return np.array([eigenvalue(l, self.bandwidth) for l in range(m)])

    def eigenfunctions(self, s: np.ndarray, m: int) -> np.ndarray:
        """ψ_0(s), …, ψ_{m−1}(s), shape ``(*s.shape, m)``, orthonormal in L²(P_S); O(m) for each s."""
        s, omega = np.asarray(s, dtype=np.float64), self.omega
        envelope = omega**0.25 * np.exp(-0.25 * (omega - 1.0) * s * s)
        return hermite_series(math.sqrt(omega) * s, -1.0, m) * envelope[..., None]

    def means(self, m: int) -> np.ndarray:
        """∫ψ_l dP_S for l < m: the constant function's coefficients."""
        omega = self.omega
        ratio = eigenvalue(1, self.bandwidth) / eigenvalue(0, self.bandwidth)
        return omega**0.25 * math.sqrt(2.0 / (omega + 1.0)) * hermite_series(np.array(0.0), ratio, m)


def hermite_series(linear: np.ndarray, quadratic: float, m: int) -> np.ndarray:
    """√(l!)·[t^l] exp(quadratic·t²/2 + linear·t) for l < m, a last axis, by its three-term recurrence."""
    series = np.zeros((*linear.shape, max(m, 2)))
    series[..., 0], series[..., 1] = 1.0, linear
    for l in range(1, m - 1):
        following = linear * series[..., l] + quadratic * math.sqrt(l) * series[..., l - 1]
        series[..., l + 1] = following / math.sqrt(l + 1)
    return series[..., :m]
