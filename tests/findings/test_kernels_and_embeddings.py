"""Guards the numbers by hand of the chapter on kernels and HSIC: what the library computes and the chapter prints."""

from __future__ import annotations

import numpy as np
import pytest

from frhsic_core import Categorical, hsic, load_dataset, normalized_hsic
from frhsic_core.laws import FiniteLaw


def test_the_numbers_by_hand_of_the_four_people(printed) -> None:
    """The picture, the tables of probabilities, and the exercise in which person 4 is not hired."""
    text, old = printed.text("kernels_and_embeddings"), [0, 0, 1, 1]
    kernels = {"kernel_z": Categorical(), "kernel_s": Categorical()}
    assert hsic([1, 1, 0, 1], old, **kernels) == pytest.approx(1 / 16)
    assert np.abs(
        FiniteLaw([0, 1], [0, 1], np.array([[0, 1], [2, 1]]) / 4).difference
    ) == pytest.approx(1 / 8)
    assert "$4\\cdot\\frac1{64}=\\frac1{16}$" in text
    assert hsic([1, 1, 0, 0], old, **kernels) == pytest.approx(1 / 4)
    assert "the mean of the products, is $\\frac14$" in text


def test_the_library_prints_the_number_of_the_pencil(printed) -> None:
    assert printed.numbers("kernels_and_embeddings", "four people:") == [1 / 16]
    trace, sums, library = printed.numbers("kernels_and_embeddings", "trace, three sums, library:")
    # Twelve decimals are printed: 500 products of entries below one are exact to far less than that.
    assert trace == pytest.approx(library, abs=2e-12)
    assert sums == pytest.approx(library, abs=2e-12)


def test_the_habit_depends_on_age_without_a_correlation() -> None:
    people = load_dataset("people", n=150, random_state=0)
    assert abs(np.corrcoef(people.X[:, 2], people.s)[0, 1]) < 0.2
    assert normalized_hsic(people.X[:, 2], people.s) > 0.1


@pytest.mark.parametrize("not_hired", range(4))
def test_four_people_of_whom_one_is_not_hired_show_no_dependence(not_hired: int) -> None:
    """The biased value is 1/16 whoever is not hired, and the unbiased value is zero."""
    hired = np.ones(4)
    hired[not_hired] = 0.0
    old = np.array([0.0, 0.0, 1.0, 1.0])
    same = {"kernel_z": Categorical(), "kernel_s": Categorical()}
    assert hsic(hired, old, **same) == pytest.approx(1 / 16, abs=1e-15)
    assert hsic(hired, old, estimator="unbiased", **same) == pytest.approx(0.0, abs=1e-15)
