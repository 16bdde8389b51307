"""What the chapter ``equal_opportunity`` states about the stored results of its tables."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from frhsic_core.paper.claims.stored import authors_file
from frhsic_core.paper.experiments import eo_and_several
from frhsic_core.paper.experiments.eo_and_several.tables import (
    arm_rows,
    compare_arms,
    printed_arms,
    restart_spread,
)


def stored(name: str, dataset: str) -> pd.DataFrame:
    rows = arm_rows(name, dataset=dataset, protocol="reference")
    assert not rows.empty
    return rows


@pytest.mark.parametrize(
    ("name", "dataset"), [("equal_opportunity", "adult"), ("equal_opportunity", "compas"), ("multi_sensitive", "adult")]
)
def test_stored_rows_are_those_of_the_plan(name: str, dataset: str) -> None:
    for protocol in ("reference", "text"):
        rows = arm_rows(name, dataset=dataset, protocol=protocol)
        assert not rows.empty
        counts = rows.groupby(["arm", "lam"])["split"].nunique()
        assert (counts == 25).all()
        columns = [c for c in rows if c.startswith(("eo_gdp", "gdp_"))]
        assert np.isfinite(rows[columns].to_numpy()).all()


def test_stored_with_equal_bandwidths_the_penalty_on_positives_is_ahead_on_adult_and_as_released_it_is_not() -> None:
    rows = stored("equal_opportunity", "adult")
    table = compare_arms(rows, "eo_medians", "dp", column="eo_gdp_reference", lams=(5.0, 10.0, 50.0, 100.0))
    assert (table["verdict"] == "eo_medians").all()
    assert (table["p_corrected"] < 0.05).all()
    released = compare_arms(rows, "eo", "dp", column="eo_gdp_reference", lams=(0.1, 1.0, 10.0, 50.0))
    assert (released["verdict"] == "not_significant").all()


def test_stored_as_released_the_penalty_on_positives_is_never_ahead_on_compas() -> None:
    rows = stored("equal_opportunity", "compas")
    table = compare_arms(rows, "eo", "dp", column="eo_gdp_reference", lams=eo_and_several.GRIDS["full"])
    assert "eo" not in set(table["verdict"])


def test_stored_in_the_text_s_protocol_the_penalty_on_positives_is_ahead_on_adult_at_high_lambda() -> None:
    grid = eo_and_several.GRIDS["full"]
    rows = {name: arm_rows("equal_opportunity", dataset=name, protocol="text") for name in ("adult", "compas")}
    adult, compas = (compare_arms(part, "eo", "dp", column="eo_gdp_reference", lams=grid) for part in rows.values())
    adult = adult.set_index("lam")
    assert set(adult.index[adult["verdict"] == "eo"]) == {50.0, 100.0, 500.0}
    assert set(adult.index[adult["p_corrected_holm"] < 0.05]) == {50.0, 100.0}
    assert "eo" not in set(compas["verdict"])


@pytest.mark.parametrize("dataset", ["adult", "compas"])
def test_stored_restarts_are_complete(dataset: str) -> None:
    rows = arm_rows("equal_opportunity", dataset=dataset, protocol="reference", repeats=True)
    for lam in eo_and_several.GRIDS["text"]:
        found = restart_spread(rows, "eo", "dp", lam=lam, column="eo_gdp_reference")
        assert found["runs"].to_dict() == dict.fromkeys(range(42, 47), 5.0)


def test_stored_runs_of_the_sum_at_fifty_fall_into_two_groups_with_a_published_run_in_each() -> None:
    rows = stored("multi_sensitive", "adult")
    part = rows[(rows["arm"] == "sum") & (rows["lam"] == 50.0)]
    escaped = part["ratio"] > 3
    assert 3 <= escaped.sum() <= 12
    high, low = (part.loc[chosen, "gdp_reference_age"] for chosen in (escaped, ~escaped))
    assert high.min() > 2 * low.max()
    assert printed_arms("tab:multi_s").loc[("adult", "sum", 50.0), "gdp_age"] > low.max()
    rerun = authors_file("multi_sensitive").query("method == 'FRHSIC-Sum' and `lambda` == 50.0")
    assert low.min() < float(rerun["gdp_age"].iloc[0]) < low.max()
