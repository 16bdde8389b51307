"""The comparison of all methods: the setting is chosen on the other splits, and a method is compared with the best."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from frhsic_core.paper.experiments import every_method


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
    found = every_method.matched(rows, "gdp").set_index(["name", "split"])
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
    found = every_method.compared_with_best(every_method.matched(rows, "gdp"), "gdp").set_index("name")
    assert set(found["best"]) == {"good"}
    assert bool(found.loc["poor", "worse"])
    assert not bool(found.loc["good", "worse"])


def test_boosting_predicts_what_is_there_and_nothing_else() -> None:
    rng = np.random.default_rng(0)
    z = rng.uniform(-1, 1, size=(600, 3))
    assert every_method.boosting_r2(z, np.abs(z[:, 0])) > 0.8
    assert every_method.boosting_r2(z, rng.normal(size=600)) < 0.05


def test_the_strongest_setting_is_the_largest_strength() -> None:
    measures = ("performance", "gdp_sample", "linear_r2", "nonlinear_r2", "boosting_r2", "cpu_seconds")
    lines = [
        {"method": method, "dataset": "adult", "lam": lam, **dict.fromkeys(measures, value)}
        for method, lam, value in (("kernel_null", 0.5, 9.0), ("kernel_null", 1.0, 1.0), ("kernel_null", 1.0, 3.0),
                                   ("dcor", 50.0, 4.0), ("frrm", 0.2, 5.0))
    ]  # fmt: skip
    found = every_method.strongest(pd.DataFrame(lines))["boosting_r2"]
    assert found.to_dict() == {("kernel_null", "adult"): 2.0, ("dcor", "adult"): 4.0}
