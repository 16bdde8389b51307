"""Definition 2.1 to Corollary 3.4: sums written out, linear programs against other solvers, classes by definition."""

from __future__ import annotations

from fractions import Fraction
from itertools import product
from math import comb

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import wasserstein_distance

from frhsic_core.laws import FiniteLaw
from frhsic_core.paper.statements import disintegration as d

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
        joint[i, j] * p[a] * q[b] * k[i, a] * l[j, b]
        for i, j in cells
        for a in range(rows)
        for b in range(columns)
    )
    apart = (p @ k @ p) * (q @ l @ q)
    return paired - 2 * half + apart


@pytest.mark.parametrize(
    "counts", [[[1, 2], [3, 4]], [[5, 0, 1], [2, 2, 2]], [[1], [2]], [[0, 1], [1, 0], [3, 1]]]
)
def test_exact_hsic_is_the_three_sums(counts: list[list[int]]) -> None:
    joint = law(counts)
    k, l = d.power_gram(joint.shape[0]), d.power_gram(joint.shape[1], ratio=THIRD)
    assert d.exact_hsic(joint, k, l) == written_out_hsic(joint, k, l)


def test_joint_laws_are_all_the_laws() -> None:
    laws = list(d.joint_laws(2, 2, 5))
    assert len(laws) == comb(5 + 3, 3) == len({tuple(l.ravel()) for l in laws})
    assert all(l.sum() == 1 for l in laws)


@pytest.mark.parametrize(
    ("counts", "independent"),
    [
        ([[1, 2, 1], [2, 4, 2]], True),
        ([[1, 2, 3], [3, 2, 1]], False),
        ([[1, 0, 2], [2, 0, 4]], True),
    ],
)
def test_every_condition_holds_or_none(counts: list[list[int]], independent: bool) -> None:
    """A product law, a dependent law, and a product law with a value of probability zero, which does not count."""
    assert d.conditions(law(counts), d.power_gram(2), d.power_gram(3)) == (independent,) * 6


def test_a_kernel_that_is_not_characteristic_breaks_the_equivalence() -> None:
    constant = np.ones((2, 2), dtype=object) * Fraction(1)
    truth = d.conditions(law([[1, 0], [0, 1]]), constant, d.power_gram(2))
    assert truth == (True, False, False, False, True, False)  # the constant kernel sees nothing


def test_conditions_that_disagree_are_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(d, "conditions", lambda *_: (True, True, True, False, True, True))
    assert d.equivalence_on_all_laws(quick=True)[0].verdict == "fails as stated"


WEIGHTS = st.lists(st.integers(1, 9), min_size=5, max_size=5).map(lambda w: np.array(w) / sum(w))


@given(WEIGHTS, WEIGHTS)
def test_transport_on_a_line_is_the_area_between_distribution_functions(
    p: np.ndarray, q: np.ndarray
) -> None:
    points = np.arange(5.0)
    cost = np.abs(points[:, None] - points[None, :])
    expected = wasserstein_distance(points, points, p, q)
    assert d.wasserstein(p - q, cost) == pytest.approx(expected, abs=1e-9)
    pairs = [(i, j, float(cost[i, j])) for i in range(5) for j in range(i)]
    assert d.lipschitz_supremum(p - q, pairs) == pytest.approx(expected, abs=1e-9)


def test_the_largest_sum_over_signs_is_that_of_the_best_witness() -> None:
    joint = d.example_law()
    difference = joint - np.outer(joint.sum(1), joint.sum(0))
    assert (
        d.largest_over_signs(joint)
        == (np.sign(difference.astype(float)).astype(int) * difference).sum()
    )


def test_the_check_can_fail(monkeypatch: pytest.MonkeyPatch) -> None:
    right = FiniteLaw.delta.fget
    monkeypatch.setattr(FiniteLaw, "delta", property(lambda law: Fraction(9, 10) * right(law)))
    assert {c.verdict for c in d.disintegration(quick=True)} == {"fails as stated"}


def first_event_alone(joint: np.ndarray) -> bool:
    return joint[0, 0] == joint[0].sum() * joint[:, 0].sum()


def first_age_alone(joint: np.ndarray) -> bool:
    s = d.carried(joint)[0]
    return bool((d.conditional_law(joint, s) == joint.sum(1)).all())


def unscaled_column(joint: np.ndarray, s: int) -> np.ndarray:
    return joint[:, s]


def constant_functions(size: int) -> np.ndarray:
    return np.ones((1, size), dtype=object)


def signed_gdps(joint: np.ndarray):
    weights = joint.sum(0)[d.carried(joint)]
    return (gaps @ weights for gaps in d.gaps_of_means(joint))


# What each condition would be with a mistake, and the name of the function that has it.
MISTAKES = {
    "one event instead of all": ("is_product_of_events", first_event_alone),
    "one value of S instead of all": ("has_one_conditional_law", first_age_alone),
    "a conditional law that is not divided": ("conditional_law", unscaled_column),
    "constant functions alone": ("functions", constant_functions),
    "GDP without the absolute value": ("gdps", signed_gdps),
    "a kernel on Z that is constant": ("squared_mmd", lambda joint, gram_z: Fraction(0)),
    "HSIC of the margins": ("exact_hsic", lambda joint, gram_z, gram_s: Fraction(0)),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_in_one_condition_is_a_disagreement(mistake: str, monkeypatch) -> None:
    """Each condition is computed by itself, so that a wrong one differs from the others."""
    # The first is independent. In the second, Z is independent of the event S = 0, but not of S.
    laws = [law([[1, 2, 3], [2, 4, 6]]), law([[2, 3, 1], [2, 1, 3]])]
    monkeypatch.setattr(d, "joint_laws", lambda *shape: laws if shape[:2] == (2, 3) else [])
    (certificate,) = d.equivalence_on_all_laws(quick=True)
    assert certificate.verdict == "holds"
    monkeypatch.setattr(d, *MISTAKES[mistake])
    (certificate,) = d.equivalence_on_all_laws(quick=True)
    assert certificate.verdict == "fails as stated"
