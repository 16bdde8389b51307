"""Proposition 4.1 and Remark 4.2."""

from __future__ import annotations

import itertools
from fractions import Fraction

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from frhsic_core.kernels import Gaussian
from frhsic_core.laws import GaussianPair
from frhsic_core.paper.statements import decomposition
from frhsic_core.paper.statements import decomposition as f
from frhsic_core.paper.statements.deviations import deviations_of_joint
from frhsic_core.paper.statements.disintegration import example_law
from frhsic_core.paper.statements.registry import checks
from frhsic_core.paper.statements.zero_level import exact_hsic, joint_laws, power_gram


def test_decomposition_is_the_definition_on_every_small_law() -> None:
    k, l = power_gram(2), power_gram(2, ratio=Fraction(1, 5))
    for joint in joint_laws(2, 2, 6):
        assert decomposition.decomposed_hsic(joint, k, l) == exact_hsic(joint, k, l)


def test_decomposition_needs_the_kernel_inside() -> None:
    joint = example_law()
    k, l = power_gram(4), power_gram(3)
    assert decomposition.decomposed_hsic(joint, k, 0 * l + 1) == 0  # a constant kernel on S sees nothing
    assert decomposition.decomposed_hsic(joint, k, l) > 0


@pytest.mark.parametrize("rho", [0.05, 0.6, 0.99])
@pytest.mark.parametrize("sigma", [0.2, 1.0, 8.0])
def test_centred_bound_lies_between_hsic_and_the_printed_bound(rho: float, sigma: float) -> None:
    law, kernel = GaussianPair(rho), Gaussian(sigma)
    sharper = decomposition.centered_bound(law, kernel_z=Gaussian(1.0), kernel_s=kernel)
    printed = decomposition.expected_mmd_bound(law, kernel_z=Gaussian(1.0), kernel_s=kernel)
    assert sharper.middle == pytest.approx(printed.middle)
    assert sharper.middle <= sharper.upper
    # ‖k(s,·) − μ‖ can pass one for very small bandwidths only by the size of μ.
    assert sharper.upper <= printed.upper * (1.0 + sigma)


def test_centred_bound_is_much_sharper_at_large_bandwidths() -> None:
    law = GaussianPair(0.3)
    sharper = decomposition.centered_bound(law, kernel_z=Gaussian(1.0), kernel_s=Gaussian(5.0))
    assert sharper.upper < 0.1 * law.expected_mmd(Gaussian(1.0)) ** 2


def test_a_broken_bound_is_not_certified(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        GaussianPair, "expected_mmd", lambda self, kernel: 0.3 * self.expected_squared_mmd(kernel) ** 0.5
    )
    certificate = decomposition.expected_mmd_bound(GaussianPair(0.1), kernel_z=Gaussian(1.0), kernel_s=Gaussian(1.0))
    assert certificate.verdict == "fails as stated"


def test_hidden_wave_keeps_its_conditional_integral() -> None:
    eye = torch.eye(2, dtype=torch.float64)
    values, hsics = [], []
    for frequency in (1, 3, 7):
        joint, s = decomposition.hidden_wave(frequency)
        assert torch.allclose(joint.sum(), torch.ones((), dtype=torch.float64))
        d = deviations_of_joint(joint, eye, Gaussian(0.2)(s.unsqueeze(-1)))
        values.append(d.expected_squared_mmd.item())
        hsics.append(d.hsic.item())
    assert values == pytest.approx([values[0]] * 3)
    assert hsics[0] > 50 * hsics[1]
    assert hsics[1] > hsics[2] > 0


def test_certificates_hold() -> None:
    numbers = ("Proposition 4.1", "Remark 4.2")
    certificates = [c for number in numbers for check in checks("decomposition")[number] for c in check(quick=True)]
    assert len(certificates) == 7
    assert {c.verdict for c in certificates} == {"holds"}


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
    numbers = ("Lemma B.1", "Lemma B.2")
    certificates = [c for number in numbers for check in checks("decomposition")[number] for c in check(quick=True)]
    failing = [c.claim for c in certificates if not c.holds]
    assert len(failing) == 3
    assert any("coincide" in claim for claim in failing)
    assert any("binary" in claim for claim in failing)
    assert sum(c.verdict == "holds as corrected" for c in certificates) == 3


def test_the_numbers_of_the_counterexample() -> None:
    certificate = next(c for c in f.discrete_lemma(quick=True) if "coincide" in c.claim)
    assert certificate.middle == pytest.approx(float(Fraction(certificate.details["HSIC"])))
    assert certificate.middle < 0.3 * certificate.upper


def test_distance_to_simple_functions_by_all_partitions() -> None:
    points = 5
    for values in (1, 2, 3):
        distances = []
        for labels in itertools.product(range(values), repeat=points):
            embeddings = np.eye(points)  # orthonormal, one row for each point
            means = {cell: embeddings[np.array(labels) == cell].mean(0) for cell in set(labels)}
            distances.append(np.mean([((embeddings[i] - means[labels[i]]) ** 2).sum() for i in range(points)]))
        assert float(decomposition.distance_to_simple(values, points)) == pytest.approx(min(distances), rel=1e-12)
