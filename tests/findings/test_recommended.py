"""What the chapter ``variants`` states about the recommended form of FRHSIC."""

from __future__ import annotations

import pandas as pd
import pytest

from frhsic_core.paper.experiments.variants.recommended import (
    CANDIDATES,
    RECOMMENDED,
    comparisons,
    search_table,
    verdicts,
)


@pytest.fixture(scope="module")
def found() -> pd.DataFrame:
    return verdicts(comparisons())


def test_the_rule_gives_the_recommended_form() -> None:
    table = search_table()
    assert table.index[0] == RECOMMENDED
    assert len(table) == len(CANDIDATES)
    assert table["score"].iloc[0] < 0  # ahead of the best rival by its worst measure, in the mean of the two datasets
    assert table["score"].iloc[0] < table["score"].iloc[1] - 0.02


def test_the_recommended_form_is_significantly_behind_no_rival(found: pd.DataFrame) -> None:
    own = found.loc["recommended"]
    assert own["behind"].sum() == 0
    assert (own[["ahead", "undecided", "behind"]].sum(axis=1) == 30).all()
    assert (own.loc["published", "ahead"] >= 14).all()
    assert own.loc[("published", "nonlinear_r2"), "ahead"] == 30
    assert own.loc["four dimensions", "ahead"].min() >= 10


def test_it_is_ahead_more_often_than_the_former_default(found: pd.DataFrame) -> None:
    assert (found.loc["recommended", "ahead"] >= found.loc["former default", "ahead"]).all()
    assert found.loc["former default", "behind"].sum() == 1


def test_several_scales_bring_no_significant_lead(found: pd.DataFrame) -> None:
    difference = found.loc["multi-scale twin", "ahead"] - found.loc["recommended", "ahead"]
    assert difference.max() <= 1
    assert found.loc["multi-scale twin", "behind"].sum() == 0
