"""Theorem 3.2 and Corollary 3.4: linear programs against other solvers, classes against their definitions."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import wasserstein_distance

from frhsic_core.laws import FiniteLaw
from frhsic_core.paper.statements import disintegration as d

WEIGHTS = st.lists(st.integers(1, 9), min_size=5, max_size=5).map(lambda w: np.array(w) / sum(w))


@given(WEIGHTS, WEIGHTS)
def test_transport_on_a_line_is_the_area_between_distribution_functions(p: np.ndarray, q: np.ndarray) -> None:
    points = np.arange(5.0)
    cost = np.abs(points[:, None] - points[None, :])
    expected = wasserstein_distance(points, points, p, q)
    assert d.wasserstein(p - q, cost) == pytest.approx(expected, abs=1e-9)
    pairs = [(i, j, float(cost[i, j])) for i in range(5) for j in range(i)]
    assert d.lipschitz_supremum(p - q, pairs) == pytest.approx(expected, abs=1e-9)


def test_conditional_contrast_is_joint_minus_product() -> None:
    joint = d.example_law()
    assert (d.conditional_contrast(joint) == joint - np.outer(joint.sum(1), joint.sum(0))).all()


def test_conditional_contrast_ignores_impossible_values() -> None:
    joint = np.array([[Fraction(1, 2), 0], [Fraction(1, 2), 0]], dtype=object)
    assert (d.conditional_contrast(joint) == 0).all()


def test_total_variation_is_the_supremum_over_signs() -> None:
    measure = np.array([[Fraction(1, 6), Fraction(-1, 3)], [Fraction(1, 2), Fraction(-1, 3)]], dtype=object)
    signs = np.array(np.meshgrid(*[[-1, 1]] * 4)).reshape(4, -1).T
    assert d.total_variation(measure) == max(abs(s @ measure.ravel()) for s in signs)
    joint = d.example_law()
    witness = np.sign((joint - np.outer(joint.sum(1), joint.sum(0))).astype(float)).astype(int)
    assert d.largest_over_signs(joint) == (witness * (joint - np.outer(joint.sum(1), joint.sum(0)))).sum()


def test_the_law_of_the_library_gives_the_same_suprema() -> None:
    joint = d.example_law()
    law = FiniteLaw(range(4), range(3), joint)
    assert law.total_variation() * 2 == d.total_variation(d.conditional_contrast(joint))
    measure = d.conditional_contrast(joint).astype(float).ravel()
    assert law.wasserstein() == pytest.approx(d.lipschitz_supremum(measure, d._grid_pairs(4, 3, across=True)), rel=1e-9)
    within = d.lipschitz_supremum(measure, d._grid_pairs(4, 3, across=False))
    assert law.expected_wasserstein() == pytest.approx(within, rel=1e-9)


def test_the_check_can_fail(monkeypatch: pytest.MonkeyPatch) -> None:
    right = d.conditional_contrast
    monkeypatch.setattr(d, "conditional_contrast", lambda joint: Fraction(9, 10) * right(joint))
    assert {c.verdict for c in d.disintegration(quick=True)} == {"fails as stated"}
