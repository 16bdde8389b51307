"""The Mercer system of a Gaussian kernel under S ~ N(0, 1), and the embedding along it.

With ω = √(1 + 4/σ²), the operator (T_S u)(s) = ∫ k(s, t)u(t) dP_S(t) has (Rasmussen & Williams
2006, §4.3.1)

    λ_l = 2/(ω + 1) · ((ω − 1)/(ω + 1))^l,      ψ_l(s) = ω^(1/4)·exp(−(ω − 1)s²/4)·He_l(√ω·s)/√(l!).

Products of Hermite functions with Gaussians integrate through their generating function, so the
coefficients of Δ(s) = μ_{Z|S=s} − μ_Z and of m_f are finite sums. Counting starts at l = 0, the
paper's at one: its λ_m is ``eigenvalues(m)[m - 1]``, its P_m projects onto ψ_0, …, ψ_{m−1}.

For any jointly Gaussian law the coefficients depend on the mean kernel μ and the coupling q alone
(see :mod:`frhsic_core.laws.formulas`): ⟨Δ(s), Δ(t)⟩ is a multiple of a doubly centred Gaussian
kernel on S, of squared bandwidth (1 − 2q)/q.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from frhsic_core.laws.formulas import Function, Number


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
    # (ω − 1)/(ω + 1) without cancellation.
    ratio = 4 / (bandwidth * bandwidth * (omega + 1) * (omega + 1))
    return 2 / (omega + 1) * ratio**l


def delta_coefficient(
    l: int, mean_z: Number, coupling: Number, bandwidth_s: Number, *, sqrt: Function = math.sqrt
) -> Number:
    """Return ‖⟨Δ, ψ_l⟩‖² in F_Z, for any type of number.

    It is a sum of at most l/2 + 1 positive terms, less the part of the mean. Σ_l λ_l‖Δ_l‖² = HSIC
    and Σ_l ‖Δ_l‖² = E[MMD²]; E[MMD²] less the first m is the spectral tail ρ_m² of Theorem 4.5
    (``cor:hsic-mmd-equivalence``). O(l). Floats serve up to l ≈ 500; beyond, and for many at once,
    :func:`delta_coefficients`.

    Examples
    --------
    >>> terms = [delta_coefficient(l, 3**-0.5, 1 / 12, 1.0) for l in range(60)]
    >>> round(sum(terms), 10)
    0.0551052628
    """
    omega = frequency(bandwidth_s, sqrt=sqrt)
    b = bandwidth_s * bandwidth_s
    y = coupling / (1 - 2 * coupling)
    scale = (omega + 1) * (omega + 1 + 4 * y)
    own = 4 * (1 / b - y) / scale
    shared = 4 * omega * y / scale
    paired = 0
    for k in range(l // 2 + 1):
        ways = math.comb(l, 2 * k) * math.comb(2 * k, k)
        paired = paired + ways * (own / 2) ** (2 * k) * shared ** (l - 2 * k)
    result = paired * 2 * sqrt(omega / (scale * (1 - 2 * coupling)))
    if l % 2 == 0:
        x = coupling / (1 - coupling)
        eta = (4 / b) / ((omega + 1) * (omega + 1))
        tilted = (omega - 1 - 2 * x) / (omega + 1 + 2 * x)
        mean = sqrt(omega) * 2 * math.comb(l, l // 2)
        root = sqrt((omega + 1) * (omega + 1 + 2 * x) * (1 - coupling))
        cross = (eta * tilted / 4) ** (l // 2) / root
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
        """Return λ_0 > λ_1 > …, the first m."""
        return np.array([eigenvalue(l, self.bandwidth) for l in range(m)])

    def eigenfunctions(self, s: np.ndarray, m: int) -> np.ndarray:
        """Return ψ_0(s), …, ψ_{m−1}(s), ``(*s.shape, m)``, orthonormal in L²(P_S); O(m) each s."""
        s = np.asarray(s, dtype=np.float64)
        omega = self.omega
        envelope = omega**0.25 * np.exp(-0.25 * (omega - 1.0) * s * s)
        return hermite_series(math.sqrt(omega) * s, -1.0, m) * envelope[..., None]

    def means(self, m: int) -> np.ndarray:
        """Return ∫ψ_l dP_S for l < m, the coefficients of the constant function."""
        omega = self.omega
        ratio = eigenvalue(1, self.bandwidth) / eigenvalue(0, self.bandwidth)
        factor = omega**0.25 * math.sqrt(2.0 / (omega + 1.0))
        return factor * hermite_series(np.array(0.0), ratio, m)


def hermite_series(linear: np.ndarray, quadratic: float, m: int) -> np.ndarray:
    """Return √(l!)·[t^l] exp(quadratic·t²/2 + linear·t) for l < m, along a last axis.

    A three-term recurrence.
    """
    series = np.zeros((*linear.shape, max(m, 2)))
    series[..., 0] = 1.0
    series[..., 1] = linear
    for l in range(1, m - 1):
        following = linear * series[..., l] + quadratic * math.sqrt(l) * series[..., l - 1]
        series[..., l + 1] = following / math.sqrt(l + 1)
    return series[..., :m]


_MOST_TERMS = 200_000


class _Pairing(NamedTuple):
    """The integrals of Δ along products of eigenfunctions, as coefficients of a Gaussian.

    ∬ψ_l(s)ψ_k(t)·exp(−y(s−t)²/2) = factor·√(l!k!)·[t^l u^k] exp(own·(t² + u²)/2 + shared·tu).
    """

    factor: float
    own: float
    shared: float
    mean_factor: float
    tilted: float

    @property
    def rate(self) -> float:
        """Geometric rate at which the coefficients fall."""
        return abs(self.own) + self.shared

    def tilted_means(self, m: int) -> np.ndarray:
        """Return the integrals of ψ_l, l < m, against the tilted law."""
        return self.mean_factor * hermite_series(np.array(0.0), self.tilted, m)


def _pairing(system: MercerSystem, coupling: float) -> _Pairing:
    omega = system.omega
    b = system.bandwidth**2
    y = coupling / (1.0 - 2.0 * coupling)
    x = coupling / (1.0 - coupling)
    scale = (omega + 1.0) * (omega + 1.0 + 4.0 * y)
    tilted_scale = (omega + 1.0 + 2.0 * x) * (1.0 - coupling)
    return _Pairing(
        factor=2.0 * math.sqrt(omega / (scale * (1.0 - 2.0 * coupling))),
        own=4.0 * (1.0 / b - y) / scale,
        shared=4.0 * omega * y / scale,
        mean_factor=omega**0.25 * math.sqrt(2.0 / tilted_scale),
        tilted=(omega - 1.0 - 2.0 * x) / (omega + 1.0 + 2.0 * x),
    )


def delta_coefficients(system: MercerSystem, mean_z: float, coupling: float, m: int) -> np.ndarray:
    """Return ‖⟨Δ, ψ_l⟩‖² for l < m in O(m); :func:`delta_coefficient` gives one.

    The paired part is a Legendre polynomial; its three-term recurrence is stable here because the
    polynomial is the growing solution. Absolute accuracy about 1e-16: at small dependence the even
    coefficients, of order q², lose digits against the odd ones, of order q.
    """
    if coupling == 0.0 or m == 0:
        return np.zeros(m)
    pairing = _pairing(system, coupling)
    legendre = np.zeros(max(m, 2))
    legendre[0] = 1.0
    legendre[1] = pairing.shared
    gap = pairing.shared**2 - pairing.own**2
    for l in range(1, m - 1):
        following = (2 * l + 1) * pairing.shared * legendre[l] - l * gap * legendre[l - 1]
        legendre[l + 1] = following / (l + 1)
    means = system.means(m)
    of_means = means * (means - 2.0 * pairing.tilted_means(m))
    return mean_z * np.maximum(pairing.factor * legendre[:m] + of_means, 0.0)


def spectral_tail(system: MercerSystem, mean_z: float, coupling: float, m: int) -> float:
    """Return ρ_m² = ‖(I − P_m)Δ‖² in L²(P_S; F_Z), the sum of the coefficients from the m-th on."""
    if coupling == 0.0:
        return 0.0
    rate_of_means = (system.omega - 1.0) / (system.omega + 1.0)
    rate = max(_pairing(system, coupling).rate, rate_of_means)
    # After them the coefficients have fallen by a factor of 1e-20: nothing is left.
    terms = m + math.ceil(math.log(1e-20) / math.log(rate)) + 8
    if terms > _MOST_TERMS:
        raise ArithmeticError(
            f"The spectrum falls by a factor {rate:.6f} a step and needs {terms} terms, more than "
            f"{_MOST_TERMS}: use a larger bandwidth on S."
        )
    return float(delta_coefficients(system, mean_z, coupling, terms)[m:].sum())


class CenteredSpectrum(NamedTuple):
    """Eigenvalues of (I − 1⊗1)T_S(I − 1⊗1), and ‖⟨Δ, e_l⟩‖² along its eigenfunctions."""

    eigenvalues: np.ndarray
    coefficients: np.ndarray


def centered_spectrum(
    system: MercerSystem, mean_z: float, coupling: float, m: int
) -> CenteredSpectrum:
    """Return the m leading eigenpairs of the *centred* operator.

    The centred Gram matrix of Theorem 4.7 estimates it. E_S Δ(S) = 0, so HSIC = Σ λ̄_l‖⟨Δ, e_l⟩‖²
    holds here as for T_S, with other λ̄ and e. Odd eigenfunctions are those of T_S; even ones feel
    the constant. A symmetric eigenproblem of the size N at which λ_N falls below 1e-17: O(N³).
    """
    ratio = (system.omega - 1.0) / (system.omega + 1.0)
    size = m + max(32, math.ceil(math.log(1e-17) / math.log(ratio)))
    means = system.means(size)
    centring = np.eye(size) - np.outer(means, means)
    rising, vectors_of_rising = np.linalg.eigh(centring * system.eigenvalues(size) @ centring)
    values = rising[::-1][:m]
    vectors = vectors_of_rising[:, ::-1][:, :m]
    if coupling == 0.0:
        return CenteredSpectrum(values, np.zeros(m))
    pairing = _pairing(system, coupling)
    paired = np.zeros((size, size))
    paired[0] = hermite_series(np.array(0.0), pairing.own, size)
    root = np.sqrt(np.arange(size))
    for l in range(size - 1):
        shifted = np.concatenate([[0.0], paired[l, :-1]])
        following = pairing.shared * root * shifted
        if l > 0:
            following = pairing.own * root[l] * paired[l - 1] + following
        paired[l + 1] = following / root[l + 1]
    # The mean's part only matters along the constant, which joins the list once m passes the
    # numerical rank.
    half = np.outer(means, 0.5 * means - pairing.tilted_means(size))
    inner = pairing.factor * paired + half + half.T
    coefficients = mean_z * np.einsum("ai,ab,bi->i", vectors, inner, vectors)
    return CenteredSpectrum(values, np.maximum(coefficients, 0.0))
