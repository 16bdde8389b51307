"""Tables from rows: printed numbers beside ours, and a choice of splits and grid."""

from __future__ import annotations

import numpy as np

from frhsic_core.paper.experiments.main import beside_paper, pareto_table
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
