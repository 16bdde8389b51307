"""What the chapter on training says about the stored models of the running example."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from frhsic_core.paper.experiments.running_example import gauges
from frhsic_core.paper.runs.stored import stored_rows


@pytest.fixture(scope="module")
def measured() -> pd.DataFrame:
    rows = stored_rows("running_example")
    return gauges(rows[rows["lam"].isin([0.0, 0.1, 0.3, 1.0, 3.0, 10.0, 30.0, 100.0])])


def test_hsic_gdp_and_accuracy_fall_under_both_penalties(measured: pd.DataFrame) -> None:
    for form in ("paper", "recommended"):
        part = measured.loc[form]
        first, last = part.iloc[0], part.iloc[-1]
        assert last["normalized_hsic"] < 0.1 * first["normalized_hsic"]
        assert last["gdp"] < 0.2 * first["gdp"]
        assert 0.02 < first["accuracy"] - last["accuracy"] < 0.06


def test_the_probe_reads_the_age_better_under_the_papers_penalty(measured: pd.DataFrame) -> None:
    paper = measured.loc["paper"]
    for lam in (3.0, 10.0):
        assert paper.loc[lam, "nonlinear_r2"] > paper.loc[0.0, "nonlinear_r2"] + 0.1
        assert paper.loc[lam, "normalized_hsic"] < 0.65 * paper.loc[0.0, "normalized_hsic"]
    assert paper["nonlinear_r2"].idxmax() in (3.0, 10.0)
    for lam in (0.1, 0.3, 1.0, 3.0):
        assert measured.loc["recommended"].loc[lam, "nonlinear_r2"] < 0.2


def test_the_thin_direction_is_the_age() -> None:
    """Already without a penalty one direction is thin; at λ = 3 and 10 it is thinner and closer to the age."""
    rows = stored_rows("running_example")
    share, correlation = {}, {}
    for lam, part in rows[rows["form"] == "paper"].groupby("lam"):
        z = part[["z_1", "z_2"]].to_numpy()
        variances, directions = np.linalg.eigh(np.cov(z.T))
        share[lam] = variances[0] / variances.sum()
        correlation[lam] = abs(np.corrcoef(z @ directions[:, 0], part["age"])[0, 1])
    assert max(share.values()) < 0.005
    for lam in (3.0, 10.0):
        assert share[lam] < share[0.0]
        assert correlation[lam] > 0.8 > correlation[0.0] > 0.5
