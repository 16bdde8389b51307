"""Guards the checked sentences of the chapter on rates."""

from __future__ import annotations

import pandas as pd
import pytest

from frhsic_core.paper.runs.stored import book_folder


@pytest.mark.parametrize("rate", [-1 / 2, -2 / 5])
def test_the_printed_slope_is_within_two_deviations_of_both_rates(rate: float) -> None:
    studies = pd.read_csv(book_folder("results", "convergence.csv"), low_memory=False)["slope_eipm"].dropna()
    assert abs(-0.44 - rate) < 2 * studies.std()
