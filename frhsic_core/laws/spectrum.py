"""The conditional embedding Δ and the head gap m_f in the eigenbasis of T_S: coefficients, tails, the centred system.

For any jointly Gaussian law these depend on the mean kernel μ and the coupling q alone (see
:mod:`frhsic_core.laws.formulas`): ⟨Δ(s), Δ(t)⟩ is a multiple of a doubly centred Gaussian kernel on S, of squared
bandwidth (1 − 2q)/q.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from frhsic_core.laws.mercer import MercerSystem, hermite_series

__all__ = ["CentredSpectrum", "centred_spectrum", "delta_coefficients", "head_coefficients", "spectral_tail"]

_MOST_TERMS = 200_000


class _Pairing(NamedTuple):
    """∬ψ_l(s)ψ_k(t)·exp(−y(s−t)²/2) = factor·√(l!k!)·[t^l u^k] exp(own·(t² + u²)/2 + shared·tu)."""

    factor: float
    own: float
    shared: float
    mean_factor: float
    tilted: float

    @property
    def rate(self) -> float:
        """Geometric rate at which the coefficients fall."""
        return abs(self.own) + self.shared


def _pairing(system: MercerSystem, coupling: float) -> _Pairing:
    omega, b = system.omega, system.bandwidth**2
    y, x = coupling / (1.0 - 2.0 * coupling), coupling / (1.0 - coupling)
    scale = (omega + 1.0) * (omega + 1.0 + 4.0 * y)
    return _Pairing(
        factor=2.0 * math.sqrt(omega / (scale * (1.0 - 2.0 * coupling))),
        own=4.0 * (1.0 / b - y) / scale,
        shared=4.0 * omega * y / scale,
        mean_factor=omega**0.25 * math.sqrt(2.0 / ((omega + 1.0 + 2.0 * x) * (1.0 - coupling))),
        tilted=(omega - 1.0 - 2.0 * x) / (omega + 1.0 + 2.0 * x),
    )


def delta_coefficients(system: MercerSystem, mean_z: float, coupling: float, m: int) -> np.ndarray:
    """‖⟨Δ, ψ_l⟩‖² for l < m in O(m), as :func:`frhsic_core.laws.mercer.delta_coefficient` gives one at a time.

    The paired part is a Legendre polynomial; its three-term recurrence is stable here because the polynomial is the
    growing solution. Absolute accuracy about 1e-16: at small dependence the even coefficients, of order q², lose
    digits against the odd ones, of order q.
    """
    if coupling == 0.0 or m == 0:
        return np.zeros(m)
    pairing = _pairing(system, coupling)
    legendre = np.zeros(max(m, 2))
    legendre[:2] = 1.0, pairing.shared
    gap = pairing.shared**2 - pairing.own**2
    for l in range(1, m - 1):
        following = (2 * l + 1) * pairing.shared * legendre[l] - l * gap * legendre[l - 1]
        legendre[l + 1] = following / (l + 1)
    means = system.means(m)
    tilted = pairing.mean_factor * hermite_series(np.array(0.0), pairing.tilted, m)
    return mean_z * np.maximum(pairing.factor * legendre[:m] + means * (means - 2.0 * tilted), 0.0)


def spectral_tail(system: MercerSystem, mean_z: float, coupling: float, m: int) -> float:
    """ρ_m² = ‖(I − P_m)Δ‖² in L²(P_S; F_Z), summed from the m-th coefficient on until nothing is left in float64."""
    if coupling == 0.0:
        return 0.0
    rate = max(_pairing(system, coupling).rate, (system.omega - 1.0) / (system.omega + 1.0))
    terms = m + math.ceil(math.log(1e-20) / math.log(rate)) + 8
    if terms > _MOST_TERMS:
        raise ArithmeticError(
            f"the spectrum falls by a factor {rate:.6f} a step, {terms} terms are needed and {_MOST_TERMS} allowed: "
            "use a larger bandwidth on S."
        )
    return float(delta_coefficients(system, mean_z, coupling, terms)[m:].sum())


def head_coefficients(
    system: MercerSystem, means: np.ndarray, tilts: np.ndarray, coupling: float, m: int
) -> np.ndarray:
    """⟨m_f, ψ_l⟩ for l < m of a kernel head with the given terms (Corollary 4.6, ``cor:spectral_gdp_control``)."""
    omega = system.omega
    precision = 0.5 * (omega - 1.0) + 1.0 / (1.0 - coupling)
    shift = tilts / ((1.0 - coupling) * precision)
    exponent = 0.5 * (shift * tilts - tilts * tilts) / (1.0 - coupling)
    factor = omega**0.25 / math.sqrt(precision * (1.0 - coupling)) * np.exp(exponent)
    conditional = factor[:, None] * hermite_series(math.sqrt(omega) * shift, omega / precision - 1.0, m)
    return means @ (conditional - system.means(m))


class CentredSpectrum(NamedTuple):
    """Eigenvalues of the centred operator (I − 1⊗1)T_S(I − 1⊗1) and ‖⟨Δ, e_l⟩‖² along its eigenfunctions."""

    eigenvalues: np.ndarray
    coefficients: np.ndarray


def centred_spectrum(system: MercerSystem, mean_z: float, coupling: float, m: int) -> CentredSpectrum:
    """Return the m leading eigenpairs of the *centred* operator, which Theorem 4.7's centred Gram matrix estimates.

    E_S Δ(S) = 0, so HSIC = Σ λ̄_l‖⟨Δ, e_l⟩‖² holds here as for T_S, with other λ̄ and e. Odd eigenfunctions are those of
    T_S; even ones feel the constant. A symmetric eigenproblem of the size N at which λ_N falls below 1e-17: O(N³).
    """
    ratio = (system.omega - 1.0) / (system.omega + 1.0)
    size = m + max(32, math.ceil(math.log(1e-17) / math.log(ratio)))
    pairing, means = _pairing(system, coupling), system.means(size)
    centring = np.eye(size) - np.outer(means, means)
    values, vectors = np.linalg.eigh(centring * system.eigenvalues(size) @ centring)
    values, vectors = values[::-1][:m], vectors[:, ::-1][:, :m]
    if coupling == 0.0:
        return CentredSpectrum(values, np.zeros(m))
    paired = np.zeros((size, size))
    paired[0] = hermite_series(np.array(0.0), pairing.own, size)
    root = np.sqrt(np.arange(size))
    for l in range(size - 1):
        shifted = np.concatenate([[0.0], paired[l, :-1]])
        above = pairing.own * root[l] * paired[l - 1] if l > 0 else 0.0
        paired[l + 1] = (above + pairing.shared * root * shifted) / root[l + 1]
    # The mean's part only matters along the constant, which joins the list once m passes the numerical rank.
    half = np.outer(means, 0.5 * means - pairing.mean_factor * hermite_series(np.array(0.0), pairing.tilted, size))
    inner = pairing.factor * paired + half + half.T
    coefficients = mean_z * np.einsum("ai,ab,bi->i", vectors, inner, vectors)
    return CentredSpectrum(values, np.maximum(coefficients, 0.0))
