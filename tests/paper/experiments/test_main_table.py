"""Tables from rows: printed numbers beside ours, every measure its own area, collapse and escape counted."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from frhsic_core.paper.experiments.main import (
    DEPENDENCE,
    areas_by_measure,
    beside_paper,
    extremes,
    pareto_table,
)
from frhsic_core.paper.runs.plan import Experiment
from frhsic_core.paper.runs.stored import reference_sweep


def test_printed_numbers_stand_beside_the_right_lines() -> None:
    table = pareto_table(reference_sweep(), unequal_grids=True, resamples=1)
    other = table.assign(variant=np.where(table["dataset"] == "crime", "text", table["variant"]))
    joined, foreign = beside_paper(table), beside_paper(other)
    assert len(joined) == len(table)
    line = joined[(joined["dataset"] == "crime") & (joined["method"] == "frem")].iloc[0]
    assert (line["paper_performance"], line["paper_dependence"], line["paper_naup"]) == (0.0187, 0.023, 0.680)
    dcor = joined[(joined["dataset"] == "adult") & (joined["method"] == "dcor")].iloc[0]
    assert dcor["paper_dependence"] == 0.194
    assert np.isnan(dcor["paper_naup"])
    assert foreign.loc[foreign["dataset"] == "crime", "paper_dependence"].isna().all()
    assert foreign.loc[foreign["dataset"] == "adult", "paper_dependence"].notna().all()


def test_every_measure_has_its_own_area(tiny: Experiment, tiny_store) -> None:
    rows = tiny_store.read()
    areas = areas_by_measure(rows)
    assert list(areas.columns) == list(DEPENDENCE)
    assert set(areas.index.get_level_values("method")) == {"frhsic", "reg_gdp", "mmd_binned"}
    for measure in ("gdp_sample", "linear_r2"):
        table = pareto_table(rows, dependence=measure, resamples=1).set_index("method")
        assert areas[measure].xs("frhsic", level="method").item() == pytest.approx(table.loc["frhsic", "naup"])


def test_collapse_and_escape_are_counted() -> None:
    rows = pd.DataFrame(
        {
            "dataset": ["adult"] * 4 + ["crime"] * 2,
            "variant": "text",
            "protocol": "text",
            "method": ["frhsic"] * 4 + ["adv"] * 2,
            "lam": [1.0, 1.0, 500.0, 500.0, 1.0, 1.0],
            "task": ["classification"] * 4 + ["regression"] * 2,
            "performance": [0.85, 0.84, 0.762, 0.84, 0.02, 0.054],
            "constant": [0.76] * 4 + [0.054] * 2,
            "ratio": [1.0, 2.9, 0.2, 45.0, np.nan, np.nan],
        }
    )
    found = extremes(rows)
    assert found.loc[("adult", "text", "text", "frhsic", 1.0)].tolist() == [0.0, 0.0]
    assert found.loc[("adult", "text", "text", "frhsic", 500.0)].tolist() == [0.5, 1.0]
    crime = found.loc[("crime", "text", "text", "adv", 1.0)]
    assert crime["collapsed"] == 0.5
    assert np.isnan(crime["escaped"])


def test_a_choice_of_splits_and_grid_is_kept(tiny_store) -> None:
    rows = tiny_store.read()
    one = pareto_table(rows, lams=(100.0,), splits=(43,), resamples=1)
    assert set(one["splits"]) == {1}
    line = rows[(rows["method"] == "frhsic") & (rows["lam"] == 100.0) & (rows["split"] == 43)].iloc[0]
    mine = one[one["method"] == "frhsic"].iloc[0]
    assert mine["performance"] == pytest.approx(line["performance"]) or np.isnan(mine["performance"])
    assert pareto_table(rows.iloc[:0]).empty
