"""Guards the checked sentences of the chapter on what HSIC misses."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from frhsic_core.kernels import Categorical, Gaussian
from frhsic_core.laws import FiniteLaw
from frhsic_core.paper.statements.spectral import enclosed_eigenvalues

POINTS = [Fraction(i, 7) for i in range(8)]
AGES, KERNELS = np.arange(20, 70), (Categorical(), Gaussian(15.0))


def kept_over_cut_off(bandwidth: Fraction) -> float:
    """Return the smallest eigenvalue above the cut-off 1e-6 times the largest, as a multiple of the cut-off."""
    values = [float(ball) for ball in enclosed_eigenvalues(POINTS, bandwidth)]
    cut_off = 1e-6 * max(values)
    return min(value for value in values if value > cut_off) / cut_off


@pytest.mark.parametrize("power", range(-3, 6))
def test_from_a_quarter_on_the_value_kept_is_within_a_factor_of_a_thousand_of_the_cut_off(
    power: int,
) -> None:
    assert (1 < kept_over_cut_off(Fraction(2) ** power) < 1000) == (power >= -2)


def two_groups(young: Fraction) -> FiniteLaw:
    """Return the applicants of the example by hand: 60 % of the young are hired and 40 % of the old."""
    old = 1 - young
    hired = [young * Fraction(3, 5), old * Fraction(2, 5)]
    return FiniteLaw([0, 1], [0, 1], [[young - hired[0], old - hired[1]], hired])


@pytest.mark.parametrize("c", [Fraction(0), Fraction(1, 2), Fraction(1)])
def test_by_hand_hsic_is_the_eigenvalue_times_the_expected_squared_mmd(c: Fraction) -> None:
    """In the example half of the people are young, in the first exercise a quarter."""
    for young, eigenvalue, squared in (
        (2, Fraction(1, 2), Fraction(1, 100)),
        (4, Fraction(3, 8), Fraction(75, 10_000)),
    ):
        law = two_groups(Fraction(1, young))
        hired = [[0, 0], [0, 1]]
        assert law.expected_squared_mmd(hired) == squared
        assert law.hsic(hired, [[1, c], [c, 1]]) == eigenvalue * (1 - c) * squared


def test_the_hiring_table_has_one_kernel_in_three_chapters(printed) -> None:
    """HSIC is .005 (1 − c) wherever 60 % of the young and 40 % of the old are hired."""
    law = two_groups(Fraction(1, 2))
    assert law.hsic([[0, 0], [0, 1]], [[1, 0], [0, 1]]) == Fraction(5, 1000)
    assert r"=\frac{1-c}2\cdot.01$" in printed.text("spectral_equivalence")
    for chapter in ("disintegration", "parity_gap"):
        assert r".005\,(1-c)" in printed.text(chapter)


def hiring(waves: int) -> FiniteLaw:
    hired = 0.5 + 0.3 * np.sin(2 * np.pi * waves * (AGES - 19.5) / 50)
    return FiniteLaw([0, 1], AGES, np.stack([1 - hired, hired]) / 50)


def test_hsic_falls_from_a_quarter_of_the_expected_squared_mmd_to_less_than_a_hundredth() -> None:
    shares = []
    for waves in range(1, 9):
        total = hiring(waves).expected_squared_mmd(KERNELS[0])
        assert total == pytest.approx(0.09, rel=1e-12)
        shares.append(hiring(waves).hsic(*KERNELS) / total)
    assert shares[0] == pytest.approx(0.25, abs=0.02)
    assert shares[-1] < 0.01
    assert (np.diff(shares) < 0).all()


@pytest.mark.parametrize(
    ("waves", "largest_tail", "smallest_tail"), [(1, 0.25, 0.0), (4, 1.0, 0.95)]
)
def test_for_one_wave_the_bound_comes_from_hsic_and_for_four_from_the_tail(
    waves: int, largest_tail: float, smallest_tail: float
) -> None:
    law = hiring(waves)
    tail = law.spectral_tail(*KERNELS, m=2)
    bound = law.hsic(*KERNELS) / law.mercer(KERNELS[1]).eigenvalues[1] + tail
    assert smallest_tail <= tail / bound < largest_tail
    assert 1.0 <= bound / law.expected_squared_mmd(KERNELS[0]) < 1.02


def test_each_wave_is_a_mixture_and_faster_waves_have_more_energy_in_later_eigenfunctions() -> None:
    for m in (2, 4, 6, 8):
        tails = [hiring(waves).spectral_tail(*KERNELS, m=m) for waves in range(1, 9)]
        assert (np.diff(tails) > 0).all()
    assert all(
        hiring(waves).delta_coefficients(*KERNELS).max() < 0.9 * 0.09 for waves in range(1, 9)
    )


def test_the_bandwidth_at_which_hsic_counts_a_wave_most_is_smaller_for_faster_waves() -> None:
    bandwidths = np.geomspace(0.3, 60, 40)
    best = [
        np.argmax([hiring(waves).hsic(KERNELS[0], Gaussian(b)) for b in bandwidths])
        for waves in (1, 2, 4, 8)
    ]
    assert len(bandwidths) - 1 > best[0] > best[1] > best[2] > best[3] > 0


def test_with_a_kernel_of_absolute_values_the_whole_deviation_is_in_every_tail() -> None:
    s = np.linspace(-1, 1, 40)
    law = FiniteLaw([-1, 1], s, np.stack([s < 0, s > 0]) / 40)
    gram = np.exp(-((np.abs(s)[:, None] - np.abs(s)) ** 2) / 2)
    assert law.hsic(np.eye(2), gram) == pytest.approx(0, abs=1e-15)
    assert law.expected_squared_mmd(np.eye(2)) == pytest.approx(0.5)
    values, functions = law.mercer(gram)
    assert (values[:5] > 1e-8).all()
    assert (law.delta / 40) @ functions[:, :5] == pytest.approx(np.zeros((2, 5)), abs=1e-8)
