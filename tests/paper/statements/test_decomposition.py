"""Proposition 4.1 and Remark 4.2."""

from __future__ import annotations

import itertools
from fractions import Fraction

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from frhsic_core.kernels import Categorical, Gaussian
from frhsic_core.laws import FiniteLaw
from frhsic_core.paper.statements import decomposition
from frhsic_core.paper.statements.disintegration import exact_hsic, power_gram
from frhsic_core.paper.statements.smoothing import deviations_of_joint


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


COUNTS = st.lists(st.integers(0, 9), min_size=6, max_size=6)


def two_groups(counts: list[int]) -> np.ndarray:
    counts = [c + (i < 2) for i, c in enumerate(counts)]  # both groups occur
    return np.array([Fraction(c, sum(counts)) for c in counts], dtype=object).reshape(3, 2)


@given(COUNTS, st.integers(1, 9))
def test_hsic_of_two_groups_is_a_multiple_of_their_squared_mmd(
    counts: list[int], tenth: int
) -> None:
    joint, k, l = two_groups(counts), power_gram(3), power_gram(2, ratio=Fraction(tenth, 10))
    p = joint.sum(0)
    contrast = joint[:, 0] / p[0] - joint[:, 1] / p[1]
    assert exact_hsic(joint, k, l) == (p[0] * p[1]) ** 2 * 2 * (1 - l[0, 1]) * (
        contrast @ k @ contrast
    )


@given(COUNTS, st.lists(st.integers(-5, 5), min_size=3, max_size=3))
def test_gdp_and_the_integral_of_two_groups(counts: list[int], head: list[int]) -> None:
    law = FiniteLaw(range(3), range(2), two_groups(counts))
    variance = law.p_s.prod()
    contrast = law.conditional[:, 0] - law.conditional[:, 1]
    first, second = law.conditional_gap(head)
    assert law.gdp(head) == 2 * variance * abs(second - first)
    assert law.expected_squared_mmd(power_gram(3)) == variance * (
        contrast @ power_gram(3) @ contrast
    )


@pytest.mark.parametrize("sign", [-1, 1])
def test_a_wrong_integral_of_two_groups_is_noticed(
    monkeypatch: pytest.MonkeyPatch, sign: int
) -> None:
    right = FiniteLaw.expected_squared_mmd
    wrong = Fraction(sign, 10**6)
    monkeypatch.setattr(
        FiniteLaw, "expected_squared_mmd", lambda law, kernel: right(law, kernel) + wrong
    )
    verdicts = {
        c.claim: c.verdict
        for c in decomposition.discrete_lemma(quick=True)
        if "two groups" in c.claim
    }
    assert list(verdicts.values()) == ["fails as stated"]


def test_the_distance_to_functions_with_few_values_is_that_of_the_best_ones() -> None:
    """Every division of six points into two cells, with the features of the kernel written out."""
    grid = torch.linspace(0.0, 1.0, 6, dtype=torch.float64).unsqueeze(-1)
    for kernel in (Categorical(), Gaussian(0.3)):
        values, vectors = np.linalg.eigh(kernel(grid).numpy())
        features = vectors * np.sqrt(np.maximum(values, 0.0))
        found = []
        for cells in itertools.product((0, 1), repeat=6):
            parts = [features[np.array(cells) == cell] for cell in set(cells)]
            total = sum(((part - part.mean(0)) ** 2).sum() for part in parts)
            found.append(total / 6)
        best = decomposition.distance_to_simple_functions(kernel, points=6, values=2)
        assert best == pytest.approx(min(found), rel=1e-9)
    # For the discrete kernel it is 1 − v/p, so it tends to one.
    assert decomposition.distance_to_simple_functions(Categorical(), points=100, values=4) == 0.96


def test_a_separable_kernel_in_the_place_of_the_discrete_one_breaks_nothing(monkeypatch) -> None:
    """The certificate of Lemma B.1 can come out differently: its distances are computed."""
    printed, _ = decomposition.not_strongly_measurable()
    assert printed.verdict == "fails as stated"
    monkeypatch.setattr(decomposition, "Categorical", lambda: Gaussian(1e9))
    printed, _ = decomposition.not_strongly_measurable()
    assert printed.verdict == "holds"
