"""Guards the numbers by hand of the chapter on disintegration: the text has those of the library."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from frhsic_core.laws import FiniteLaw

HIRED = [[0, 0], [0, 1]]


@pytest.mark.parametrize(("young", "old"), [(30, 20), (35, 15)])
def test_the_numbers_of_two_groups(printed, young: int, old: int) -> None:
    """In the example 30 of 50 young people are hired and 20 of 50 old ones, in the exercise 35 and 15."""
    law = FiniteLaw(
        [0, 1], [0, 1], np.array([[50 - young, 50 - old], [young, old]]) * Fraction(1, 100)
    )
    contrast, other = law.conditional_gap([0, 1])
    assert (other, law.expected_mmd(HIRED)) == (-contrast, pytest.approx(float(contrast)))
    # GDP is half of the difference of the groups.
    assert law.gdp([0, 1]) == contrast == (law.conditional[1, 0] - law.conditional[1, 1]) / 2
    for c in (Fraction(-1), Fraction(0), Fraction(1, 2), Fraction(1)):
        assert law.hsic(HIRED, [[1, c], [c, 1]]) == contrast**2 / 2 * (1 - c)
    # A kernel above one makes the root of HSIC larger than the expected MMD.
    assert law.hsic(HIRED, [[4, -4], [-4, 4]]) == (2 * contrast) ** 2
    text, size, hsic = (
        printed.text("disintegration"),
        f"{float(contrast):g}"[1:],
        f"{float(contrast**2 / 2):g}"[1:],
    )
    if young == 30:
        assert f"are $+{size}$ for the young and $-{size}$ for the old" in text
        assert f"{hsic}\\,(1-c)" in text
    else:
        assert f"are ${size}$ for the young and $-{size}$ for the old" in text
        assert f"(2-2c)={float(contrast**2 / 4):g}$".replace("0.", ".") in text


def test_three_groups_reverse_the_order(printed) -> None:
    """The two laws of the proof of Lemma B.2, in units of the square of v, which is 1/8."""
    gram_s = np.array([[1, 0.9, 0], [0.9, 1, 0], [0, 0, 1]])
    sides = []
    for x in ((1, -1, 0), (0.5, 0.5, -1)):
        hired = 0.5 + 0.25 * np.array(x)
        law = FiniteLaw([0, 1], [0, 1, 2], np.stack([1 - hired, hired]) / 3)
        sides.append((24 * law.expected_squared_mmd(np.eye(2)), 72 * law.hsic(np.eye(2), gram_s)))
    text = printed.text("disintegration")
    for share, pair in zip((3, 9), zip(*sides, strict=True), strict=True):
        words = [f"$\\frac1{share}\\cdot{size:.4g}\\norm v^2$" for size in pair]
        assert " against ".join(words) in text


def test_the_spread_alone_has_no_gdp_of_a_linear_head() -> None:
    law = FiniteLaw([-1, 0, 1], [0, 1], np.array([[1, 0], [0, 2], [1, 0]]) * Fraction(1, 4))
    assert [law.gdp(head) for head in ([-1, 0, 1], [1, 0, 1])] == [0, Fraction(1, 2)]


def test_the_chapter_prints_the_same_numbers(printed) -> None:
    assert printed.numbers("disintegration", "all six true or all six false:") == [286, 286]
    assert printed.numbers("disintegration", "HSIC:") == [1, 400, 0.1, 1, 10]
