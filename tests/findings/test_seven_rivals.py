"""Guards the sentences of the chapter on the rivals."""

from __future__ import annotations

import pandas as pd
import pytest

from frhsic_core.paper.runs.stored import stored_rows


def test_all_ten_means_lie_within_two_of_the_authors_standard_deviations() -> None:
    check = stored_rows("reference_check")
    assert check[["acc_within_2sd", "gdp_within_2sd"]].size == 10
    assert check[["acc_within_2sd", "gdp_within_2sd"]].all(axis=None)


@pytest.fixture(scope="module")
def captured() -> pd.DataFrame:
    """Return milliseconds of a captured training step, a row for each penalty."""
    times = stored_rows("training_step_h200")
    times[["penalty", "models", "how"]] = times["step"].str.rsplit(", ", n=2, expand=True)
    return times[times["how"] == "captured"].pivot(index="penalty", columns="models", values="ms")


def test_whitening_is_the_one_form_of_frhsic_above_a_millisecond(captured) -> None:
    many = captured["125 models"]
    assert (many[["frhsic fixed bandwidth", "frhsic every batch", "frhsic standardised"]] < 1.0).all()
    whitened = many.filter(like="frhsic recommended")
    assert len(whitened) > 0
    assert (whitened > 1.0).all()


def test_five_times_as_many_models_cost_one_and_a_half_to_two_and_a_half_times_as_much(captured) -> None:
    assert (captured["125 models"] / captured["25 models"]).between(1.45, 2.55).all()
