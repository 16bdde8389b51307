"""Lemmas B.1 and B.2, and two sentences about finite S that do not hold as printed.

Lemma B.2 gives HSIC as a double sum and says that it vanishes together with E[MMD²]: both true. The sentence that the
two formulations then *coincide* is true of their zeros only: for two groups

    HSIC = (π₀π₁)²·(k₀₀ + k₁₁ − 2k₀₁)·MMD²(P₀, P₁)      while      E[MMD²] = π₀π₁·MMD²(P₀, P₁),

and for more groups they order laws differently. Likewise GDP is demographic parity for binary S up to the factor
2π₀π₁. All of it is rational arithmetic.
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from frhsic_core.kernels import Gaussian
from frhsic_core.laws import GaussianPair, KernelHead
from frhsic_core.paper.statements.certificate import Certificate, equality, inequality, strict_inequality
from frhsic_core.paper.statements.decomposition import decomposed_hsic
from frhsic_core.paper.statements.disintegration import example_law
from frhsic_core.paper.statements.zero_level import Exact, exact_hsic, joint_laws, power_gram

__all__ = ["demographic_parity", "exact_gdp", "exact_squared_integral", "two_group_hsic"]


def exact_squared_integral(joint: Exact, gram_z: Exact) -> Fraction:
    """E_S[MMD²(P_{Z|S}, P_Z)] of a finite law, in the arithmetic of its entries.

    Examples
    --------
    >>> half = Fraction(1, 2)
    >>> exact_squared_integral(np.array([[half, 0], [0, half]], dtype=object), power_gram(2))
    Fraction(1, 4)
    """
    p_z, p_s = joint.sum(1), joint.sum(0)
    deviations = [(p, column / p - p_z) for p, column in zip(p_s, joint.T, strict=True) if p > 0]
    return sum((p * (delta @ gram_z @ delta) for p, delta in deviations), Fraction(0))


def two_group_hsic(joint: Exact, gram_z: Exact, gram_s: Exact) -> Fraction:
    """(π₀π₁)²(k₀₀ + k₁₁ − 2k₀₁)·MMD²(P₀, P₁): what HSIC is when S takes two values.

    Examples
    --------
    >>> half = Fraction(1, 2)
    >>> two_group_hsic(np.array([[half, 0], [0, half]], dtype=object), power_gram(2), power_gram(2))
    Fraction(1, 16)
    """
    p = joint.sum(0)
    contrast = joint[:, 0] / p[0] - joint[:, 1] / p[1]
    distance = gram_s[0, 0] + gram_s[1, 1] - 2 * gram_s[0, 1]
    return (p[0] * p[1]) ** 2 * distance * (contrast @ gram_z @ contrast)


def exact_gdp(joint: Exact, head: Exact) -> Fraction:
    """E_S|E[f(Z)|S] − E f(Z)| of a finite law for the head values ``head``."""
    p_z, p_s = joint.sum(1), joint.sum(0)
    return sum(
        (p * abs(head @ (column / p) - head @ p_z) for p, column in zip(p_s, joint.T, strict=True) if p > 0),
        Fraction(0),
    )


def demographic_parity(joint: Exact, head: Exact) -> Fraction:
    """|E[f(Z)|S = 0] − E[f(Z)|S = 1]| for binary S, the demographic-parity difference."""
    p = joint.sum(0)
    return abs(head @ joint[:, 0] / p[0] - head @ joint[:, 1] / p[1])


def _two_groups() -> Exact:
    counts = [[3, 4], [2, 1], [5, 9]]
    return np.array([[Fraction(count, 24) for count in row] for row in counts], dtype=object)


def fubini(*, quick: bool) -> list[Certificate]:
    """Lemma B.1: expectation and inner product commute, in fractions and on a Gaussian law."""
    number, label = "Lemma B.1", "lem:fubini"
    joint, gram = example_law(), power_gram(4)
    p_z, p_s = joint.sum(1), joint.sum(0)
    head = np.array([Fraction(2), Fraction(-1), Fraction(1, 3), Fraction(5)], dtype=object)
    # U = μ_{Z|S}: its Bochner integral is μ_Z; ⟨μ_Z, f⟩ against E⟨μ_{Z|S}, f⟩ with f = Σ a_i k(z_i, ·).
    inner = p_z @ gram @ head
    averaged = sum(p_s[j] * ((joint[:, j] / p_s[j]) @ gram @ head) for j in range(3))
    # ⟨μ_X, k(c, ·)⟩ is the embedding's value at c; the law gives it in closed form, a quadrature gives E k(c, X).
    nodes, weights = np.polynomial.hermite_e.hermegauss(120)
    sigma, centre = 0.7, 0.4
    integral = float((weights * np.exp(-((nodes - centre) ** 2) / (2 * sigma**2))).sum() / weights.sum())
    closed = sigma / np.sqrt(sigma**2 + 1.0) * np.exp(-(centre**2) / (2.0 * (sigma**2 + 1.0)))
    law = GaussianPair(0.6)
    gaps = law.conditional_gap(KernelHead([centre], [1.0], kernel=Gaussian(sigma)), nodes)
    return [
        equality(number, label, "⟨E U, f⟩ = E⟨U, f⟩ for U = μ_{Z|S}, as fractions", left=float(inner - averaged),
                 right=0.0, evidence="exact", tolerance=0.0),
        equality(number, label, "⟨μ_X, k(c, ·)⟩ = E k(c, X) for X ~ N(0, 1)", left=integral, right=float(closed),
                 evidence="exact", tolerance=1e-12),
        inequality(number, label, "conditional gaps of a head average to zero on a Gaussian pair",
                   middle=abs(float((weights * gaps).sum() / weights.sum())), upper=0.0, evidence="exact",
                   tolerance=1e-12),
    ]  # fmt: skip


def discrete_lemma(*, quick: bool) -> list[Certificate]:
    """Lemma B.2: the double sum and the common zeros; then "coincide", refuted and corrected."""
    number, label = "Lemma B.2", "lem:discrete-coincidence"
    joint, gram_z, gram_s = example_law(), power_gram(4), power_gram(3)
    laws = list(joint_laws(2, 3, 6 if quick else 8))
    small_z, small_s = power_gram(2), power_gram(3, ratio=Fraction(1, 3))
    disagree = sum(
        (exact_hsic(law, small_z, small_s) == 0) != (exact_squared_integral(law, small_z) == 0) for law in laws
    )
    pair, pair_z, pair_s = _two_groups(), power_gram(3), power_gram(2)
    hsic, integral = exact_hsic(pair, pair_z, pair_s), exact_squared_integral(pair, pair_z)
    p = pair.sum(0)
    factor = p[0] * p[1] * (pair_s[0, 0] + pair_s[1, 1] - 2 * pair_s[0, 1])
    # Three groups: a law whose outer groups differ has the larger HSIC, one whose neighbours differ the larger E[MMD²].
    far, near = (
        np.array([[Fraction(count, 48) for count in row] for row in rows], dtype=object)
        for rows in ([[12, 8, 4], [4, 8, 12]], [[13, 3, 8], [3, 13, 8]])
    )
    slow = power_gram(3, ratio=Fraction(9, 10))
    swap = (
        exact_hsic(near, small_z, slow) / exact_hsic(far, small_z, slow),
        exact_squared_integral(near, small_z) / exact_squared_integral(far, small_z),
    )
    return [
        equality(number, label, "the double sum over groups is HSIC, as fractions",
                 left=float(exact_hsic(joint, gram_z, gram_s) - decomposed_hsic(joint, gram_z, gram_s)), right=0.0,
                 evidence="exact", tolerance=0.0),
        equality(number, label, "HSIC and E[MMD²] have the same zeros on every law of a rational grid",
                 left=float(disagree), right=0.0, evidence="exact", tolerance=0.0, details={"laws": len(laws)}),
        equality(number, label, "'the two formulations coincide' for finite S: HSIC = E[MMD²]", left=float(hsic),
                 right=float(integral), evidence="exact", tolerance=0.0,
                 details={"HSIC": str(hsic), "E[MMD²]": str(integral)}),
        equality(number, label, "two groups: HSIC = π₀π₁(k₀₀ + k₁₁ − 2k₀₁)·E[MMD²], as fractions",
                 left=float(hsic - factor * integral) + float(hsic - two_group_hsic(pair, pair_z, pair_s)), right=0.0,
                 evidence="exact", tolerance=0.0, corrected=True, details={"factor": str(factor)}),
        strict_inequality(number, label, "from three groups on no factor will do: they order two laws differently",
                          middle=max(float(swap[0]) - 1.0, 1.0 - float(swap[1])), upper=0.0, evidence="exact",
                          margin=1e-2,
                          details={"HSIC ratio": str(swap[0]), "E[MMD²] ratio": str(swap[1])}),
    ]  # fmt: skip


def binary_parity(*, quick: bool) -> list[Certificate]:
    """Section 2's "GDP reduces to DP when S is binary": true of the zero, off by 2π₀π₁ in value."""
    number, label = "Lemma B.2", "lem:discrete-coincidence"
    joint = _two_groups()
    head = np.array([Fraction(1), Fraction(1, 4), Fraction(-2, 3)], dtype=object)
    gdp, parity, p = exact_gdp(joint, head), demographic_parity(joint, head), joint.sum(0)
    return [
        equality(number, label, "'GDP reduces to DP when S is binary': GDP is the difference of the two group means",
                 left=float(gdp), right=float(parity), evidence="exact", tolerance=0.0,
                 details={"GDP": str(gdp), "DP": str(parity)}),
        equality(number, label, "GDP = 2π₀π₁·DP for binary S, as fractions",
                 left=float(gdp - 2 * p[0] * p[1] * parity), right=0.0, evidence="exact", tolerance=0.0,
                 corrected=True),
    ]  # fmt: skip


CHECKS = {"Lemma B.1": [fubini], "Lemma B.2": [discrete_lemma, binary_parity]}
