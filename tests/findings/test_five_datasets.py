"""Guards the sentences of the chapter on the datasets."""

from __future__ import annotations

import pytest

from frhsic_core.paper.runs.stored import book_folder
from frhsic_core.paper.summaries import load_summary

DATASETS = ("adult", "acs_income", "meps", "crime", "compas")


@pytest.fixture(scope="module")
def stored() -> dict[tuple[str, str], dict]:
    folder = book_folder("data_summaries")
    cases = [(name, variant) for name in DATASETS for variant in ("text", "reference")]
    return {case: load_summary(*case, folder=folder) for case in cases}


def test_y_is_a_class_everywhere_but_on_crime(stored) -> None:
    assert {name for (name, _), it in stored.items() if it["task"] == "regression"} == {"crime"}


@pytest.mark.parametrize("variant", ["text", "reference"])
def test_on_meps_the_share_rises_with_age_from_one_in_twenty_to_one_in_two(stored, variant: str) -> None:
    summary = stored["meps", variant]
    rates = summary["bins"]["y_mean"]
    assert rates[0] < 0.06
    assert 0.45 < max(rates) < 0.6
    assert summary["correlation"] > 0.29
