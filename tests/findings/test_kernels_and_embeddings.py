"""Guards the numbers by hand of the chapter on kernels and HSIC, by sums over all pairs of people."""

from __future__ import annotations

import math

import numpy as np
import pytest

from frhsic_core import load_dataset, normalized_hsic

HIRED, OLD = np.array([1, 1, 0, 1]), np.array([0, 0, 1, 1])


def centered(x: np.ndarray) -> np.ndarray:
    """Return the centered matrix of the kernel that is one for equal values, entry by entry."""
    gram = (x[:, None] == x).astype(float)
    rows = gram.mean(1)
    return np.array([[gram[i, j] - rows[i] - rows[j] + gram.mean() for j in range(len(x))] for i in range(len(x))])


def test_the_four_people() -> None:
    gram = (HIRED[:, None] == HIRED).mean(1)
    assert gram == pytest.approx([3 / 4, 3 / 4, 1 / 4, 3 / 4])
    assert gram.mean() == 5 / 8
    assert centered(HIRED)[0, 1] == 1 / 8
    assert (centered(HIRED) * centered(OLD)).mean() == 1 / 16
    joint = np.array([[0, 1], [2, 1]]) / 4
    difference = joint - np.outer(joint.sum(1), joint.sum(0))
    assert np.abs(difference) == pytest.approx(np.full((2, 2), 1 / 8))
    young, old = (joint / joint.sum(0)).T
    assert np.linalg.norm(young - old) == pytest.approx(math.sqrt(1 / 2))


def test_the_exercise_with_person_4_not_hired() -> None:
    assert (centered(OLD) ** 2).mean() == 1 / 4


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
