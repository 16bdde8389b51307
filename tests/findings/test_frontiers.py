"""Guards the sentences of the chapter on frontiers."""

from __future__ import annotations

import pandas as pd
import pytest

from frhsic_core.paper.experiments.main_table import comparisons
from frhsic_core.paper.runs.stored import stored_rows


def on_frontier(rows: pd.DataFrame, dependence: str) -> pd.Series:
    """Count, for each method, the λ whose mean point no other point dominates."""
    means = rows[rows["method"] != "unfair"].groupby(["method", "lam"])[["performance", dependence]].mean()
    sign = -1 if (rows["task"] == "regression").all() else 1
    points = list(zip(sign * means["performance"], means[dependence], strict=True))
    kept = [not any(u >= v and g <= h and (u, g) != (v, h) for u, g in points) for v, h in points]
    return pd.Series(kept, index=means.index).groupby("method").sum()


@pytest.fixture(scope="module", params=["reference", "text"])
def counts(request) -> pd.DataFrame:
    rows = stored_rows("main")
    rows = rows[(rows["protocol"] == request.param) & (rows["variant"] == request.param)]
    return pd.DataFrame({key[0]: on_frontier(part, "gdp_reference") for key, part in comparisons(rows)})


def test_reg_gdp_has_more_points_on_the_frontiers_than_frhsic(counts) -> None:
    together = counts.sum(axis=1)
    assert together["reg_gdp"] > together["frhsic"]


def test_nobody_is_alone_on_a_frontier(counts) -> None:
    assert ((counts > 0).sum() > 1).all()
