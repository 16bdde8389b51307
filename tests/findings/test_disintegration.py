"""Guards the numbers by hand of the chapter on disintegration, with plain arrays and without the library's laws."""

from __future__ import annotations

import numpy as np
import pytest

JOINT = np.array([[0.2, 0.3], [0.3, 0.2]])  # rows: not hired, hired; columns: young, old
CONTRASTS = {+1: (JOINT / JOINT.sum(0))[1] - JOINT.sum(1)[1]}
CONTRASTS[-1] = -CONTRASTS[+1]


def two_orders(rows: list[tuple[float, ...]]) -> tuple[float, float]:
    """Return the largest row mean, and the mean of the columns' largest entries."""
    table = np.array(rows)
    return table.mean(1).max(), table.max(0).mean()


def hsic(joint: np.ndarray, gram_z: np.ndarray, gram_s: np.ndarray) -> float:
    """Return HSIC by its definition, a sum over pairs of cells."""
    difference = joint - np.outer(joint.sum(1), joint.sum(0))
    return float(np.einsum("ij,kl,ik,jl->", difference, difference, gram_z, gram_s))


def alike(c: float) -> np.ndarray:
    return np.array([[1.0, c], [c, 1.0]])


def test_the_two_tables() -> None:
    assert CONTRASTS[+1] == pytest.approx([0.1, -0.1])
    one = [tuple(CONTRASTS[sign]) for sign in (+1, -1)]
    glued = [(CONTRASTS[a][0], CONTRASTS[b][1]) for a in (+1, -1) for b in (+1, -1)]
    assert two_orders(one) == pytest.approx((0.0, 0.1))
    assert two_orders(glued) == pytest.approx((0.1, 0.1))
    # "only if" fails: the two rows in the middle are not a decomposable class, and both orders still agree.
    assert two_orders(glued[1:3]) == pytest.approx((0.1, 0.1))


@pytest.mark.parametrize("c", [-1.0, 0.0, 0.5, 1.0])
def test_hsic_of_two_groups_by_hand(c: float) -> None:
    g = np.array([0.0, 1.0])
    assert hsic(JOINT, np.outer(g, g), alike(c)) == pytest.approx(0.005 * (1 - c), abs=1e-15)
    assert 0.005 * (1 - c) <= 0.1**2 + 1e-15


def test_a_kernel_on_age_above_one_makes_the_root_of_hsic_larger_than_the_expected_mmd() -> None:
    g = np.array([0.0, 1.0])
    assert hsic(JOINT, np.outer(g, g), 4 * alike(-1.0)) == pytest.approx((2 * 0.1) ** 2)


def test_the_row_with_both_signs_computed_in_two_ways() -> None:
    """Theorem 3.2 takes the contrast of the slice at each age, not of the function with its overall mean."""
    f = np.array([[0.0, 0.0], [1.0, -1.0]])  # g for the young, −g for the old
    at_once = ((JOINT - np.outer(JOINT.sum(1), JOINT.sum(0))) * f).sum()
    by_age = [(JOINT / JOINT.sum(0))[:, s] @ f[:, s] - JOINT.sum(1) @ f[:, s] for s in (0, 1)]
    assert (at_once, *by_age) == pytest.approx((0.1, 0.1, 0.1))


def test_every_criterion_is_a_multiple_of_the_same_number() -> None:
    g = np.array([0.0, 1.0])
    for n in range(51):  # the exercise has 35 and 15
        joint = np.array([[50 - n, n], [n, 50 - n]]) / 100
        contrast = (joint / joint.sum(0))[1] - joint.sum(1)[1]
        assert np.abs(contrast).mean() == pytest.approx(abs(n - 25) / 50, abs=1e-15)
        assert hsic(joint, np.outer(g, g), alike(0.5)) == pytest.approx((abs(n - 25) / 100) ** 2, abs=1e-15)


def test_three_groups_reverse_the_order() -> None:
    """The two laws of the proof of Lemma B.2."""
    gram_s = np.array([[1, 0.9, 0], [0.9, 1, 0], [0, 0, 1]])
    hsics, integrals = [], []
    for x in ((1, -1, 0), (0.5, 0.5, -1)):
        hired = 0.5 + 0.25 * np.array(x)
        joint = np.stack([1 - hired, hired]) / 3
        hsics.append(hsic(joint, np.eye(2), gram_s))
        integrals.append(2 * np.mean((hired - 0.5) ** 2))
    assert integrals[0] / integrals[1] == pytest.approx(2 / 1.5)
    assert hsics[1] / hsics[0] == pytest.approx(1.95 / 0.2)


def test_what_breaks() -> None:
    squares = np.array([[0, 1, 0], [1, 0, 1]]) / 3  # Z = S² in {0, 1}, S in {−1, 0, 1}
    z, s = np.array([0, 1]), np.array([-1, 0, 1])
    assert hsic(squares, np.outer(z, z), np.outer(s, s)) == pytest.approx(0, abs=1e-16)
    assert hsic(squares, np.eye(2), np.eye(3)) > 0.01
    spread = np.array([[1, 0], [0, 2], [1, 0]]) / 4  # Z in {−1, 0, 1}: only its spread depends on S
    values = np.array([-1.0, 0.0, 1.0])
    gdps = [np.abs(f @ (spread / spread.sum(0)) - f @ spread.sum(1)).mean() for f in (values, values**2)]
    assert gdps == pytest.approx([0.0, 0.5])


def test_gdp_is_not_the_difference_of_the_groups() -> None:
    young, old = (JOINT / JOINT.sum(0))[1]
    assert young - old == pytest.approx(0.2)
    assert np.abs(CONTRASTS[+1]).mean() == pytest.approx(2 * 0.5 * 0.5 * 0.2)


def test_the_chapter_prints_the_same_numbers(printed) -> None:
    assert printed.numbers("disintegration", "all six true or all six false:") == [286, 286]
    assert printed.numbers("disintegration", "HSIC:") == [1, 400, 0.1, 1, 10]
