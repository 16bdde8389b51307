"""Guards the numbers by hand of the chapter on kernels and HSIC: what the library computes and the chapter prints."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from frhsic_core import Categorical, hsic, load_dataset, normalized_hsic
from frhsic_core.laws import FiniteLaw


def hsic_of(hired: list[int], old: list[int]) -> float:
    """Return HSIC with the kernel that is 1 for equal values and 0 otherwise."""
    return hsic(hired, old, kernel_z=Categorical(), kernel_s=Categorical())


def test_the_numbers_by_hand_of_the_four_people(printed) -> None:
    """The picture, the tables of probabilities, and the exercise in which person 4 is hired as well."""
    text, old = printed.text("kernels_and_embeddings"), [0, 0, 1, 1]
    assert hsic_of([1, 1, 0, 0], old) == pytest.approx(1 / 4)
    law = FiniteLaw([0, 1], [0, 1], np.array([[0, 2], [2, 0]]) / 4)
    assert np.abs(law.difference) == pytest.approx(1 / 4)
    assert "$4\\cdot\\frac1{16}=\\frac14$" in text
    assert "HSIC, their mean, is $\\frac14$" in text
    assert hsic_of([1, 1, 0, 1], old) == pytest.approx(1 / 16)
    assert "they give $\\frac1{16}$" in text


def test_a_third_of_the_shuffles_give_as_much(printed) -> None:
    shuffled = [
        hsic_of([1, 1, 0, 0], [int(person not in young) for person in range(4)])
        for young in itertools.combinations(range(4), 2)
    ]
    assert sorted(shuffled) == pytest.approx([0, 0, 0, 0, 1 / 4, 1 / 4])
    assert np.mean(shuffled) == pytest.approx(1 / 12)
    text = printed.text("kernels_and_embeddings")
    assert "two give $\\frac14$ and four give 0" in text
    assert "gives $\\frac1{12}$ on average" in text


def test_the_library_prints_the_number_of_the_pencil(printed) -> None:
    assert printed.numbers("kernels_and_embeddings", "four people:") == [1 / 4]
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
