"""Definition 2.1 and Proposition 3.1 on finite laws, against sums written out."""

from __future__ import annotations

from fractions import Fraction
from itertools import product
from math import comb

import numpy as np
import pytest
import torch

from frhsic_core.joint import hsic
from frhsic_core.kernels import Gaussian
from frhsic_core.paper.statements import zero_level

THIRD = Fraction(1, 3)


def law(counts: list[list[int]]) -> np.ndarray:
    total = sum(map(sum, counts))
    return np.array([[Fraction(c, total) for c in row] for row in counts], dtype=object)


def written_out_hsic(joint: np.ndarray, k: np.ndarray, l: np.ndarray) -> Fraction:
    """E[k l] − 2E[E[k|Z] E[l|S]] + E[k]E[l] over independent copies, four indices at a time."""
    rows, columns = joint.shape
    p, q = joint.sum(1), joint.sum(0)
    cells = list(product(range(rows), range(columns)))
    paired = sum(joint[i, j] * joint[a, b] * k[i, a] * l[j, b] for i, j in cells for a, b in cells)
    half = sum(
        joint[i, j] * p[a] * q[b] * k[i, a] * l[j, b] for i, j in cells for a in range(rows) for b in range(columns)
    )
    apart = (p @ k @ p) * (q @ l @ q)
    return paired - 2 * half + apart


@pytest.mark.parametrize("counts", [[[1, 2], [3, 4]], [[5, 0, 1], [2, 2, 2]], [[1], [2]], [[0, 1], [1, 0], [3, 1]]])
def test_exact_hsic_is_the_three_sums(counts: list[list[int]]) -> None:
    joint = law(counts)
    k, l = zero_level.power_gram(joint.shape[0]), zero_level.power_gram(joint.shape[1], ratio=THIRD)
    assert zero_level.exact_hsic(joint, k, l) == written_out_hsic(joint, k, l)


def test_exact_hsic_is_the_statistic_of_a_repeated_sample() -> None:
    counts = [[2, 1], [1, 3]]
    z = np.repeat([0.0, 0.0, 1.0, 1.0], [2, 1, 1, 3])
    s = np.repeat([0.0, 1.0, 0.0, 1.0], [2, 1, 1, 3])
    kernel = Gaussian(1.0 / np.sqrt(2.0 * np.log(2.0)))  # one half at distance one
    exact = zero_level.exact_hsic(law(counts), zero_level.power_gram(2), zero_level.power_gram(2))
    assert float(hsic(z, s, kernel_z=kernel, kernel_s=kernel)) == pytest.approx(float(exact), rel=1e-12)


def test_joint_laws_are_all_the_laws() -> None:
    laws = list(zero_level.joint_laws(2, 2, 5))
    assert len(laws) == comb(5 + 3, 3) == len({tuple(l.ravel()) for l in laws})
    assert all(l.sum() == 1 for l in laws)


def test_every_condition_holds_for_a_product_law() -> None:
    joint = np.outer([THIRD, 1 - THIRD], [Fraction(1, 4), Fraction(1, 2), Fraction(1, 4)])
    assert zero_level.conditions(joint, zero_level.power_gram(2), zero_level.power_gram(3)) == (True,) * 6


def test_every_condition_fails_for_a_dependent_law() -> None:
    joint = law([[1, 2, 3], [3, 2, 1]])
    assert zero_level.conditions(joint, zero_level.power_gram(2), zero_level.power_gram(3)) == (False,) * 6


def test_values_of_probability_zero_do_not_count() -> None:
    joint = law([[1, 0, 2], [2, 0, 4]])
    assert zero_level.conditions(joint, zero_level.power_gram(2), zero_level.power_gram(3)) == (True,) * 6


def test_a_kernel_that_is_not_characteristic_breaks_the_equivalence() -> None:
    constant = np.ones((2, 2), dtype=object) * Fraction(1)
    truth = zero_level.conditions(law([[1, 0], [0, 1]]), constant, zero_level.power_gram(2))
    assert truth == (True, False, False, False, True, False)  # the constant kernel sees nothing


def test_power_gram_is_positive_definite() -> None:
    assert np.linalg.eigvalsh(zero_level.power_gram(6).astype(float)).min() > 0


def test_rational_hsic_agrees_with_floats() -> None:
    z, s = [0, 1, 1, 3], [0, 0, 2, 1]

    class Laplace:  # values are dyadic, so both computations see the same matrix
        bound, lipschitz = 1.0, float("inf")

        def __call__(self, x: torch.Tensor, y: torch.Tensor | None = None) -> torch.Tensor:
            return 2.0 ** -torch.cdist(x, x if y is None else y)

    gram, other = ([[Fraction(1, 2 ** abs(a - b)) for b in v] for a in v] for v in (z, s))
    assert (
        abs(float(zero_level.rational_hsic(gram, other)) - float(hsic(z, s, kernel_z=Laplace(), kernel_s=Laplace())))
        < 1e-15
    )


def test_conditions_that_disagree_are_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(zero_level, "conditions", lambda *_: (True, True, True, False, True, True))
    assert zero_level.equivalence_on_all_laws(quick=True)[0].verdict == "fails as stated"
