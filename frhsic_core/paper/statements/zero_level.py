"""Definition 2.1 and Proposition 3.1: what HSIC is, and the level at which all criteria agree.

On a finite space with rational probabilities and the rational kernel r^|i−j| every quantity here is a fraction, so
"zero" means zero. Proposition 3.1 is an equivalence; it is checked by going through *all* joint laws with a given
common denominator and comparing the truth values of its six conditions on each.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fractions import Fraction
from itertools import product

import numpy as np
import torch

from frhsic_core.joint import hsic
from frhsic_core.kernels import Gaussian, Laplacian, Linear
from frhsic_core.laws import GaussianPair
from frhsic_core.paper.statements import Certificate, check, equality, strict_inequality
from frhsic_core.paper.statements.deviations import deviations_of_pair

Exact = np.ndarray  # of Fractions, dtype object

CONDITIONS = ("joint IPM", "independence", "conditional laws", "every bounded g", "EIPM", "GDP of every head")


def power_gram(size: int, *, ratio: Fraction = Fraction(1, 2)) -> Exact:
    """Return the Gram matrix r^|i−j| on {0, …, size−1}: rational, at most one, positive definite for 0 < r < 1.

    Examples
    --------
    >>> power_gram(2).tolist()
    [[Fraction(1, 1), Fraction(1, 2)], [Fraction(1, 2), Fraction(1, 1)]]
    """
    return np.array([[ratio ** abs(i - j) for j in range(size)] for i in range(size)], dtype=object)


def exact_hsic(joint: Exact, gram_z: Exact, gram_s: Exact) -> Fraction:
    """Return ‖μ_ZS − μ_Z⊗μ_S‖² of a finite law by Definition 2.1 (``def:hsic``), in the arithmetic of its entries.

    With D = P_ZS − P_Z⊗P_S it is Σ D_ij D_kl k_Z(i, k) k_S(j, l). O(a²b + ab²) operations.

    Examples
    --------
    >>> half = Fraction(1, 2)
    >>> exact_hsic(np.array([[half, 0], [0, half]], dtype=object), power_gram(2), power_gram(2))
    Fraction(1, 16)
    """
    difference = joint - np.outer(joint.sum(1), joint.sum(0))
    return (difference * (gram_z @ difference @ gram_s)).sum()


def rational_hsic(
    gram_z: Exact | Sequence[Sequence[Fraction]], gram_s: Exact | Sequence[Sequence[Fraction]]
) -> Fraction:
    """Return biased HSIC of a sample, in rational arithmetic: :func:`exact_hsic` of its empirical law.

    Examples
    --------
    >>> rational_hsic(power_gram(2, ratio=Fraction(0)), power_gram(2, ratio=Fraction(0)))
    Fraction(1, 4)
    """
    n = len(gram_z)
    empirical = np.eye(n, dtype=int) * Fraction(1, n)
    return exact_hsic(empirical, np.array(gram_z, dtype=object), np.array(gram_s, dtype=object))


def joint_laws(rows: int, columns: int, denominator: int) -> Iterator[Exact]:
    """Yield all laws on a rows × columns grid whose probabilities are multiples of 1/denominator, zeros included."""

    def compositions(total: int, parts: int) -> Iterator[tuple[int, ...]]:
        if parts == 1:
            yield (total,)
            return
        for first in range(total + 1):
            for rest in compositions(total - first, parts - 1):
                yield (first, *rest)

    for counts in compositions(denominator, rows * columns):
        yield np.array([Fraction(count, denominator) for count in counts], dtype=object).reshape(rows, columns)


def conditions(joint: Exact, gram_z: Exact, gram_s: Exact) -> tuple[bool, ...]:
    """Return the truth of the conditions of Proposition 3.1 (``prop:equivalence``) for a law, in ``CONDITIONS`` order.

    The four of the proposition, then its EIPM form (the kernel's unit ball) and its GDP form. "P_S-almost every s"
    means every s of positive probability; "every bounded g" is decided by the indicators, which span all g on a finite
    space.
    """
    p_z, p_s = joint.sum(1), joint.sum(0)
    carried = [j for j in range(joint.shape[1]) if p_s[j] > 0]
    conditional = {j: joint[:, j] / p_s[j] - p_z for j in carried}
    indicators = np.eye(len(p_z), dtype=int)
    # The unit ball's IPM is zero exactly when its square is, and the square is rational.
    squared_mmd = sum(p_s[j] * (conditional[j] @ gram_z @ conditional[j]) for j in carried)
    # Heads g over the vertices {−1, 0, 1}^a: GDP is a seminorm in g, so zero on a spanning set is zero on all.
    heads = [np.array(g, dtype=object) for g in product((-1, 0, 1), repeat=len(p_z))]
    gdp = max(sum(p_s[j] * abs(g @ conditional[j]) for j in carried) for g in heads)
    return (
        exact_hsic(joint, gram_z, gram_s) == 0,
        bool((joint == np.outer(p_z, p_s)).all()),
        all((conditional[j] == 0).all() for j in carried),
        all(g @ joint[:, j] == p_s[j] * (g @ p_z) for g in indicators for j in carried),
        squared_mmd == 0,
        gdp == 0,
    )


@check("Definition 2.1")
def definition_is_implemented() -> list[Certificate]:
    """Check that the library's HSIC is the number of Definition 2.1, on a rational law and on the Gaussian pair."""
    joint = np.array([[Fraction(2, 15), Fraction(1, 5)], [Fraction(1, 15), Fraction(2, 5)], [Fraction(1, 5), 0]])
    joint = joint.astype(object)
    # r^|i−j| with r = 1/2 is the Laplacian kernel of bandwidth 1/log 2 on integers; two points cannot tell it from a
    # Gaussian, so S takes one of bandwidth 1/√(2 log 2).
    exact = exact_hsic(joint, power_gram(3), power_gram(2))
    i, j = np.indices(joint.shape).reshape(2, -1)
    value = hsic(
        i.astype(float),
        j.astype(float),
        kernel_z=Laplacian(1.0 / np.log(2.0)),
        kernel_s=Gaussian(1.0 / np.sqrt(2.0 * np.log(2.0))),
        sample_weight=joint.reshape(-1).astype(float),
    )
    law, kernel = GaussianPair(0.5), Gaussian(1.0)
    return [
        equality(
            "hsic() of a weighted sample is the defined squared norm, in rational arithmetic",
            left=float(value), right=float(exact), evidence="exact", tolerance=1e-12, details={"exact": str(exact)},
        ),
        equality(
            "the closed form on the Gaussian pair is the defined squared norm, by quadrature",
            left=deviations_of_pair(law, kernel, kernel).hsic.item(), right=law.hsic(kernel, kernel), evidence="exact",
            tolerance=1e-11,
        ),
    ]  # fmt: skip


@check("Proposition 3.1")
def equivalence_on_all_laws(*, quick: bool) -> list[Certificate]:
    """Check that the six conditions of Proposition 3.1 have one truth value on every law of a grid."""
    shapes = [(2, 2, 8), (2, 3, 6), (3, 2, 6)] if quick else [(2, 2, 16), (2, 3, 8), (3, 2, 8), (3, 3, 6)]
    disagree, independent, total = 0, 0, 0
    for rows, columns, denominator in shapes:
        gram_z, gram_s = power_gram(rows), power_gram(columns, ratio=Fraction(1, 3))
        for joint in joint_laws(rows, columns, denominator):
            truth = conditions(joint, gram_z, gram_s)
            disagree += len(set(truth)) > 1
            independent += truth[1]
            total += 1
    return [
        equality(
            "the four conditions, the EIPM form and the GDP form agree on every law of a rational grid",
            left=float(disagree), right=0.0, evidence="exact", tolerance=0.0,
            assumptions=("kernels strictly positive definite on the finite space: characteristic",),
            details={"laws": total, "independent": independent, "conditions": list(CONDITIONS)},
        )
    ]  # fmt: skip


@check("Proposition 3.1")
def what_breaks_without_characteristic() -> list[Certificate]:
    """Drop "characteristic": with linear kernels Z = S² on {−1, 0, 1} has HSIC zero and depends on S completely."""
    third = Fraction(1, 3)
    s = np.array([-1, 0, 1], dtype=object)
    z = np.array([0, 1], dtype=object)
    joint = np.array([[0, third, 0], [third, 0, third]], dtype=object)
    linear = exact_hsic(joint, np.outer(z, z), np.outer(s, s))
    seen = exact_hsic(joint, power_gram(2), power_gram(3))
    points = torch.tensor([-1.0, 0.0, 1.0], dtype=torch.float64)
    library = hsic(points**2, points, kernel_z=Linear(), kernel_s=Linear()).item()
    return [
        strict_inequality(
            "without a characteristic class it breaks: linear HSIC is 0 for Z = S² while the characteristic one is not",
            middle=float(linear), upper=float(seen), evidence="exact", margin=1e-3,
            details={"linear HSIC": str(linear), "characteristic HSIC": str(seen), "library, linear": library},
        )
    ]  # fmt: skip
