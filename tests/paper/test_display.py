"""Tests of what chapters and pages share: tables, names, and the numbers in hand-written pages."""

from __future__ import annotations

import pandas as pd
import pytest
from records import Records

from frhsic_core.paper.display import DATASET_TITLES, METHOD_LABELS, NAMES, table
from frhsic_core.paper.page_values import page_values


def test_rows_have_no_index() -> None:
    shown = table([("a", 1), ("b", 2)], ["letter", "number"]).data
    assert shown.count("<th") == len(["thead", "letter", "number"])
    assert shown.count("<td>") == 4


def test_an_index_is_shown_if_it_has_a_name_and_its_name_is_not() -> None:
    frame = pd.DataFrame({"number": [1]}, index=pd.Index(["first"], name="order"))
    assert "first" in table(frame).data
    assert "order" not in table(frame).data
    assert "first" not in table(frame.rename_axis(None)).data


def test_markup_is_kept() -> None:
    assert "<br>" in table([["x"]], ["a<br>b"]).data


def test_only_floats_are_rounded() -> None:
    shown = table([(0.12345, 7, "0.12345")], ["float", "int", "text"], digits=2).data
    assert "<td>0.12</td>" in shown
    assert "<td>7</td>" in shown
    assert "<td>0.12345</td>" in shown


def test_names_replace_keys_in_both_directions() -> None:
    frame = pd.DataFrame({"acs_income": [1]}, index=pd.Index(["mmd_binned"], name="method"))
    shown = table(frame, names=NAMES).data
    assert "ACS Income" in shown
    assert "MMD (binned)" in shown
    assert "acs_income" not in shown


def test_no_key_is_both_a_dataset_and_a_method() -> None:
    assert not set(DATASET_TITLES) & set(METHOD_LABELS)
    assert len(NAMES) == len(DATASET_TITLES) + len(METHOD_LABELS)


@pytest.mark.slow
@pytest.mark.recorded
def test_pages_show_the_recorded_numbers(recorded: Records) -> None:
    """The last of two decimals can be rounded the other way; everything else is the same."""
    recorded(page_values(), "page_values.json", abs_=0.011, texts=True)
