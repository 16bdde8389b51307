"""Guards the checked sentences of the chapter on the spectral equivalence."""

from __future__ import annotations

from fractions import Fraction

import pytest

from frhsic_core.paper.statements.spectral import enclosed_eigenvalues

POINTS = [Fraction(i, 7) for i in range(8)]


def kept_over_cut_off(bandwidth: Fraction) -> float:
    """Return the smallest eigenvalue above the cut-off 1e-6 times the largest, as a multiple of the cut-off."""
    values = [float(ball) for ball in enclosed_eigenvalues(POINTS, bandwidth)]
    cut_off = 1e-6 * max(values)
    return min(value for value in values if value > cut_off) / cut_off


@pytest.mark.parametrize("power", range(-2, 6))
def test_at_these_bandwidths_the_value_kept_is_within_a_factor_of_a_thousand_of_the_cut_off(power: int) -> None:
    assert 1 < kept_over_cut_off(Fraction(2) ** power) < 1000


def test_at_a_smaller_bandwidth_it_is_not() -> None:
    assert kept_over_cut_off(Fraction(1, 8)) > 1000
