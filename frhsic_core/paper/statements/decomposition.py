"""Proposition 4.1, Remark 4.2, Lemmas B.1 and B.2: HSIC as a sum of conditional deviations.

    HSIC = E_{S,S'}[⟨Δ(S), Δ(S')⟩ k_S(S, S')]  ≤  κ_S (E_S ‖Δ(S)‖)²

The bound cannot be improved for kernels in general: it is attained, in rational arithmetic, by a
kernel that takes the value −κ. Remark 4.2 orders the criteria; no constant reverses the order,
which is why Theorem 4.5 has a tail.

Lemma B.2 gives HSIC as a double sum for finite S and says that it vanishes together with E[MMD²]:
both true. The sentence that the two formulations then *coincide* is true of their zeros only: for
two groups

    HSIC = (π₀π₁)²·(k₀₀ + k₁₁ − 2k₀₁)·MMD²(P₀, P₁)      while      E[MMD²] = π₀π₁·MMD²(P₀, P₁),

and for more groups they order laws differently. Likewise GDP is demographic parity for binary S up
to the factor 2π₀π₁. All of it is rational arithmetic.
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import torch

from frhsic_core.kernels import Categorical, Gaussian, Kernel
from frhsic_core.laws import FiniteLaw
from frhsic_core.paper.statements import Certificate, check, equality, inequality, strict_inequality
from frhsic_core.paper.statements.disintegration import (
    CONDITIONS,
    conditions,
    exact_hsic,
    joint_laws,
    power_gram,
)
from frhsic_core.paper.statements.smoothing import deviations_of_joint


def hidden_wave(frequency: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Return the law with P(Z=1 | S=s) = (1 + cos(2πks))/2, whose dependence has ``frequency`` k.

    S is uniform on 128 points. The joint law has shape ``(2, 128)``; the values of S come with it.
    E[MMD²] does not depend on k; HSIC depends on k through a smooth kernel and is small for a large
    k.
    """
    s = torch.arange(128, dtype=torch.float64) / 128
    one = 0.5 * (1.0 + torch.cos(2.0 * torch.pi * frequency * s))
    return torch.stack([1.0 - one, one]) / 128, s


@check("Proposition 4.1")
def bound() -> list[Certificate]:
    """Check that the bound of Proposition 4.1 is attained.

    ``search`` checks the bound, and the decomposition, on random laws.
    """
    # S = ±1 with equal chance, and Z has the sign of S with probability 3/4.
    same, other = Fraction(3, 8), Fraction(1, 8)
    joint = np.array([[same, other], [other, same]], dtype=object)
    signed = np.array([[1, -1], [-1, 1]], dtype=object)  # k_S(s, t) = st on {−1, 1}
    gram_z = power_gram(2)
    delta = joint[:, 0] / joint[:, 0].sum() - joint.sum(1)  # the two deviations are ±delta
    attained = exact_hsic(joint, gram_z, signed) - delta @ gram_z @ delta
    return [
        equality(
            "the constant is best possible: equality for k(s, t) = st on {-1, 1}, as fractions",
            left=float(attained),
            right=0.0,
            evidence="exact",
            tolerance=0.0,
        )
    ]


@check("Remark 4.2")
def direction() -> list[Certificate]:
    """Check Remark 4.2: no constant reverses the order of HSIC and E[MMD²].

    ``search`` checks the order itself.
    """
    gram_z = torch.eye(2, dtype=torch.float64)
    kernel_s = Gaussian(0.2)
    ratios = []
    for frequency in (1, 2, 4, 8):
        joint, s = hidden_wave(frequency)
        wave = deviations_of_joint(joint, gram_z, kernel_s(s.unsqueeze(-1)))
        ratios.append((wave.expected_squared_mmd / wave.hsic).item())
    return [
        strict_inequality(
            "no constant reverses the bound: E[MMD²]/HSIC grows with the frequency",
            middle=100.0 * ratios[0],
            upper=ratios[-1],
            evidence="exact",
            margin=0.0,
            details={"frequency 1": ratios[0], "2": ratios[1], "4": ratios[2], "8": ratios[3]},
        ),
    ]


def law_of_counts(*counts: list[int]) -> FiniteLaw:
    """Return the law whose probabilities are proportional to a table of counts, as fractions."""
    table = np.array(counts, dtype=object)
    rows, columns = table.shape
    return FiniteLaw(range(rows), range(columns), table * Fraction(1, table.sum()))


def distance_to_simple_functions(kernel: Kernel, points: int, values: int) -> float:
    """Return E‖k(X, ·) − m(X)‖² for X uniform on a grid of [0, 1] and m with few values.

    The grid is divided into as many neighboring cells as there are values, and m is the mean
    feature of each cell, the best choice for these cells. In a cell of c points with the kernel
    matrix K the sum of squared distances is tr K − ΣK/c.

    Examples
    --------
    >>> distance_to_simple_functions(Categorical(), points=8, values=2)
    0.75
    """
    grid = torch.linspace(0.0, 1.0, points, dtype=torch.float64).unsqueeze(-1)
    total = 0.0
    for cell in grid.chunk(values):
        gram = kernel(cell)
        total += (gram.trace() - gram.sum() / len(cell)).item()
    return total / points


@check("Lemma B.1")
def not_strongly_measurable() -> list[Certificate]:
    """Break Lemma B.1 with a bounded kernel whose RKHS is not separable.

    The kernel is k(x, y) = 1[x = y] on [0, 1], and X is uniform. A Bochner integral is a limit of
    integrals of functions with finitely many values. No such function comes nearer to k(X, ·) than
    1: its values are countable sums of embeddings k(x_j, ·), and X almost surely differs from all
    x_j. For X uniform on p points the embeddings are orthonormal, so the best function of v values
    has the mean squared distance 1 − v/p, however the points are divided. Both distances are
    computed from kernel matrices.
    """
    values = 4
    sizes = [2**power for power in range(3, 11)]
    discrete = [distance_to_simple_functions(Categorical(), n, values) for n in sizes]
    smooth = [distance_to_simple_functions(Gaussian(1.0), n, values) for n in sizes]
    return [
        inequality(
            "every bounded kernel has a Bochner mean embedding: "
            "distance of k(X, ·) to functions with finitely many values, "
            "discrete kernel on the unit interval",
            middle=max(discrete),
            upper=0.0,
            evidence="exact",
            details={"values": values, "points": sizes, "distances": discrete},
        ),
        inequality(
            "a bounded kernel with a separable RKHS: "
            "distance of k(X, ·) to functions with finitely many values, "
            "Gaussian kernel on the unit interval, against the width of a cell",
            middle=max(smooth),
            upper=1.0 / values**2,
            evidence="exact",
            corrected=True,
            details={"values": values, "points": sizes, "distances": smooth},
        ),
    ]


@check("Lemma B.2")
def discrete_lemma(*, quick: bool) -> list[Certificate]:
    """Check the common zeros of Lemma B.2; then "coincide", refuted and corrected.

    The double sum of the lemma is Proposition 4.1.
    """
    denominator = 6 if quick else 8
    laws = list(joint_laws(2, 3, denominator))
    two_values = power_gram(2)
    three_values = power_gram(3, ratio=Fraction(1, 3))
    disagree = 0
    for law in laws:
        found = conditions(law, two_values, three_values)
        truth = dict(zip(CONDITIONS, found, strict=True))
        disagree += truth["joint IPM"] != truth["EIPM"]

    # Two groups: HSIC is the integral times a factor.
    pair = law_of_counts([3, 4], [2, 1], [5, 9])
    pair_z = power_gram(3)
    pair_s = power_gram(2)
    hsic = pair.hsic(pair_z, pair_s)
    integral = pair.expected_squared_mmd(pair_z)
    factor = pair.p_s.prod() * (pair_s[0, 0] + pair_s[1, 1] - 2 * pair_s[0, 1])

    # Three groups: a law whose outer groups differ has the larger HSIC, one whose neighbors differ
    # the larger E[MMD²].
    far = law_of_counts([12, 8, 4], [4, 8, 12])
    near = law_of_counts([13, 3, 8], [3, 13, 8])
    slow = power_gram(3, ratio=Fraction(9, 10))
    hsic_ratio = near.hsic(two_values, slow) / far.hsic(two_values, slow)
    integral_ratio = near.expected_squared_mmd(two_values) / far.expected_squared_mmd(two_values)
    return [
        equality(
            "HSIC and E[MMD²] have the same zeros on every law of a rational grid",
            left=float(disagree),
            right=0.0,
            evidence="exact",
            tolerance=0.0,
            details={"laws": len(laws)},
        ),
        equality(
            "'the two formulations coincide' for finite S: HSIC = E[MMD²]",
            left=float(hsic),
            right=float(integral),
            evidence="exact",
            tolerance=0.0,
            details={"HSIC": str(hsic), "E[MMD²]": str(integral)},
        ),
        equality(
            "two groups: HSIC = π₀π₁(k₀₀ + k₁₁ − 2k₀₁)·E[MMD²], as fractions",
            left=float(hsic - factor * integral),
            right=0.0,
            evidence="exact",
            tolerance=0.0,
            corrected=True,
            details={"factor": str(factor)},
        ),
        strict_inequality(
            "from three groups on no factor will do: they order two laws differently",
            middle=max(float(hsic_ratio) - 1.0, 1.0 - float(integral_ratio)),
            upper=0.0,
            evidence="exact",
            margin=1e-2,
            details={"HSIC ratio": str(hsic_ratio), "E[MMD²] ratio": str(integral_ratio)},
        ),
    ]


@check("Lemma B.2")
def binary_parity() -> list[Certificate]:
    """Check "GDP reduces to DP when S is binary" in section 2: off by 2π₀π₁, with the same zero."""
    law = law_of_counts([3, 4], [2, 1], [5, 9])
    head = [Fraction(1), Fraction(1, 4), Fraction(-2, 3)]
    gdp = law.gdp(head)
    first, second = law.conditional_gap(head)
    parity = abs(second - first)
    return [
        equality(
            "'GDP reduces to DP when S is binary': GDP is the difference of the two group means",
            left=float(gdp),
            right=float(parity),
            evidence="exact",
            tolerance=0.0,
            details={"GDP": str(gdp), "DP": str(parity)},
        ),
        equality(
            "GDP = 2π₀π₁·DP for binary S, as fractions",
            left=float(gdp - 2 * law.p_s.prod() * parity),
            right=0.0,
            evidence="exact",
            tolerance=0.0,
            corrected=True,
        ),
    ]
