"""The scalar formulas of the Gaussian pair, written for any type of number.

Z and S are standard normal with correlation ρ, and the kernel on Z is Gaussian of bandwidth σ. All
that such a kernel can see of the pair goes through two numbers:

* the *mean kernel* μ = E k(Z, Z') = σ/√(σ² + 2), with Z' an independent copy;
* the *coupling* q = ρ²/(σ² + 2), in [0, 1/2), zero exactly when Z and S are independent.

Each function uses integers, plain arithmetic and the functions it is handed (``sqrt``, ``expm1``),
so that floats, NumPy arrays, mpmath numbers and balls of python-flint (``sqrt=arb.sqrt``) all go in
and come out. Differences that vanish with q are factored by hand: at small dependence nothing
cancels, and at q = 0 the answers are exact zeros. Each costs O(1).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

Number = Any  # float, numpy array, mpmath.mpf, flint.arb: whatever has + − × ÷ and the functions
Function = Callable[[Number], Number]


def _excess(x: Number, sqrt: Function) -> Number:
    """Return (1 − x)^(−1/2) − 1, without cancellation at x = 0."""
    root = sqrt(1 - x)
    return x / (root * (1 + root))


def mean_kernel(bandwidth: Number, *, sqrt: Function = math.sqrt) -> Number:
    """Return E k(X, X') of one Gaussian coordinate: σ/√(σ² + 2).

    Examples
    --------
    >>> round(mean_kernel(1.0), 6)
    0.57735
    """
    return bandwidth / sqrt(bandwidth * bandwidth + 2)


def pair_coupling(rho: Number, bandwidth: Number) -> Number:
    """Return the coupling q = ρ²/(σ² + 2) of the standard bivariate pair.

    Examples
    --------
    >>> from fractions import Fraction
    >>> pair_coupling(Fraction(1, 2), 1)
    Fraction(1, 12)
    """
    return rho * rho / (bandwidth * bandwidth + 2)


def hsic(
    mean_z: Number, coupling: Number, bandwidth_s: Number, *, sqrt: Function = math.sqrt
) -> Number:
    """Return HSIC(Z, S) = μ_Z·μ_S·[(1 − 4r)^(−1/2) − 2(1 − r)^(−1/2) + 1], r = q/(σ_S² + 2).

    The three terms are E[k·l] under the joint law, under the half-paired law, and the product of
    the means (Definition 2.1, ``def:hsic``).

    Examples
    --------
    >>> round(hsic(mean_kernel(1.0), pair_coupling(0.5, 1.0), 1.0), 15)
    0.010763320143794
    """
    r = coupling / (bandwidth_s * bandwidth_s + 2)
    mean_s = mean_kernel(bandwidth_s, sqrt=sqrt)
    return mean_z * mean_s * (_excess(4 * r, sqrt) - 2 * _excess(r, sqrt))


def expected_squared_mmd(mean_z: Number, coupling: Number, *, sqrt: Function = math.sqrt) -> Number:
    """Return E_S[MMD²(P_{Z|S}, P_Z)] = μ_Z·[(1 − 2q)^(−1/2) − 1].

    Examples
    --------
    >>> round(expected_squared_mmd(mean_kernel(1.0), pair_coupling(0.5, 1.0)), 10)
    0.0551052628
    """
    return mean_z * _excess(2 * coupling, sqrt)


def conditional_squared_mmd(
    mean_z: Number,
    coupling: Number,
    s: Number,
    *,
    shrinkage: Number = 1,
    sqrt: Function = math.sqrt,
    expm1: Function = math.expm1,
) -> Number:
    """Return MMD²(P_{Z|S=s}, P_Z).

    It is μ_Z·[(1 − 2q)^(−1/2) − 2(1 − q)^(−1/2)·exp(−q·s²/(2(1 − q))) + 1]. ``shrinkage`` κ = 1/(1
    + γ²) gives the law of Z under Nadaraya–Watson weights of bandwidth γ around s instead of the
    law given S = s: the same formula at κq and √κ·s.

    Examples
    --------
    >>> round(conditional_squared_mmd(mean_kernel(1.0), pair_coupling(0.5, 1.0), 1.0), 6)
    0.057353
    """
    x = shrinkage * coupling
    q = sqrt(1 - x)
    p = sqrt(1 - 2 * x)
    # 1/p − 2/q + 1 is of order x² while its terms are of order one; this is the same number without
    # cancellation.
    at_zero = 2 * x * x * (1 + p + q) / (p * q * (1 + p) * (1 + q) * (p + q))
    fallen = expm1(-x * shrinkage * s * s / (2 * (1 - x)))
    return mean_z * (at_zero - 2 * fallen / q)
