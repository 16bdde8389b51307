"""The matched points of methods: the choice of a setting, and the comparison with the best."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from frhsic_core.paper.experiments import matched_points


@pytest.fixture(scope="module")
def rows() -> pd.DataFrame:
    """Return six splits of Unfair and of two methods with three settings, one of which loses too much accuracy."""
    rng = np.random.default_rng(1)
    lines = []
    for split in range(6):
        lines.append(("unfair", "0", split, 0.8, 1.0 + 0.01 * rng.normal()))
        for name, left in (("good", 0.2), ("poor", 0.7)):
            for setting, score, factor in (("1", 0.8, 1.2), ("2", 0.799, 1.0), ("3", 0.7, 0.1)):
                lines.append((name, setting, split, score, left * factor * (1 + 0.3 * rng.normal())))
    table = pd.DataFrame(lines, columns=["name", "setting", "split", "performance", "gdp"])
    return table.assign(dataset="adult", task="classification")


def test_the_setting_is_chosen_on_the_other_splits(rows: pd.DataFrame) -> None:
    found = matched_points.matched(rows, "gdp").set_index(["name", "split"])
    changed = 0
    for name in ("good", "poor"):
        own = rows[rows["name"] == name]
        for split in range(6):
            means = own[own["split"] != split].groupby("setting")[["performance", "gdp"]].mean()
            best = means[means["performance"] >= 0.8 * 0.99]["gdp"].idxmin()
            line = own[(own["split"] == split) & (own["setting"] == best)].iloc[0]
            assert found.loc[(name, split), "gdp"] == line["gdp"]
            kept = own[(own["split"] == split) & (own["setting"] != "3")]
            changed += line["gdp"] != kept["gdp"].min()
    assert changed > 0  # else a choice on the same split would pass as well


def test_a_method_is_compared_with_the_best(rows: pd.DataFrame) -> None:
    found = matched_points.compared_with_best(matched_points.matched(rows, "gdp"), "gdp").set_index("name")
    assert set(found["best"]) == {"good"}
    assert bool(found.loc["poor", "worse"])
    assert not bool(found.loc["good", "worse"])
