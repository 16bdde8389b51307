"""Lemmas B.1 and B.2, and the sentences about finite S."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from frhsic_core.paper.statements import finite_attribute as f
from frhsic_core.paper.statements.zero_level import exact_hsic, power_gram

COUNTS = st.lists(st.integers(0, 9), min_size=6, max_size=6)


def two_groups(counts: list[int]) -> np.ndarray:
    counts = [c + (i < 2) for i, c in enumerate(counts)]  # both groups occur
    return np.array([Fraction(c, sum(counts)) for c in counts], dtype=object).reshape(3, 2)


@given(COUNTS, st.integers(1, 9))
def test_two_group_formula_is_hsic(counts: list[int], tenth: int) -> None:
    joint, k, l = two_groups(counts), power_gram(3), power_gram(2, ratio=Fraction(tenth, 10))
    assert f.two_group_hsic(joint, k, l) == exact_hsic(joint, k, l)


@given(COUNTS)
def test_two_group_integral_is_the_groups_distance(counts: list[int]) -> None:
    joint, k = two_groups(counts), power_gram(3)
    p = joint.sum(0)
    contrast = joint[:, 0] / p[0] - joint[:, 1] / p[1]
    assert f.exact_squared_integral(joint, k) == p[0] * p[1] * (contrast @ k @ contrast)


@given(COUNTS, st.lists(st.integers(-5, 5), min_size=3, max_size=3))
def test_gdp_is_twice_the_variance_of_s_times_parity(counts: list[int], head: list[int]) -> None:
    joint, values = two_groups(counts), np.array([Fraction(h) for h in head], dtype=object)
    p = joint.sum(0)
    assert f.exact_gdp(joint, values) == 2 * p[0] * p[1] * f.demographic_parity(joint, values)


def test_gdp_is_at_most_half_of_parity_and_reaches_it_for_equal_groups() -> None:
    equal, head = two_groups([2, 2, 0, 5, 5, 0]), np.array([Fraction(1), Fraction(0), Fraction(0)], dtype=object)
    assert equal.sum(0).tolist() == [Fraction(1, 2)] * 2
    assert 2 * f.exact_gdp(equal, head) == f.demographic_parity(equal, head)
    unequal = two_groups([2, 2, 0, 5, 9, 0])
    assert 2 * f.exact_gdp(unequal, head) < f.demographic_parity(unequal, head)


def test_gdp_skips_impossible_values() -> None:
    joint = np.array([[Fraction(1, 4), 0, Fraction(1, 4)], [Fraction(1, 4), 0, Fraction(1, 4)]], dtype=object)
    assert f.exact_gdp(joint, np.array([Fraction(1), Fraction(3)], dtype=object)) == 0


def test_certificates_are_as_recorded() -> None:
    certificates = [c for checks in f.CHECKS.values() for check in checks for c in check(quick=True)]
    failing = [c.claim for c in certificates if not c.holds]
    assert len(failing) == 2
    assert any("coincide" in claim for claim in failing)
    assert any("binary" in claim for claim in failing)
    assert sum(c.verdict == "holds as corrected" for c in certificates) == 2


def test_the_numbers_of_the_counterexample() -> None:
    certificate = next(c for c in f.discrete_lemma(quick=True) if "coincide" in c.claim)
    assert certificate.middle == pytest.approx(float(Fraction(certificate.details["HSIC"])))
    assert certificate.middle < 0.3 * certificate.upper
