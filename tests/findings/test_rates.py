"""Guards the checked sentences of the chapter on rates."""

from __future__ import annotations

import pytest

from frhsic_core.paper.runs.stored import stored_rows


@pytest.mark.parametrize("rate", [-1 / 2, -2 / 5])
def test_the_printed_slope_is_within_two_deviations_of_both_rates(rate: float) -> None:
    studies = stored_rows("convergence")["slope_eipm"].dropna()
    assert abs(-0.44 - rate) < 2 * studies.std()
