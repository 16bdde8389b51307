"""What the chapter ``synthetic_validation`` states about the stored results of its tables."""

from __future__ import annotations

import pytest

from frhsic_core.paper.datasets import accuracy_levels
from frhsic_core.paper.experiments import synthetic_validation as slice_
from frhsic_core.paper.experiments.synthetic_validation.tables import (
    along_lambda,
    compared_cells,
    dimension_steps,
    falling,
)
from frhsic_core.paper.runs.stored import stored_rows


def test_stored_models_of_the_papers_law_become_constant() -> None:
    rows = stored_rows("synthetic").query("signal == 'paper' and arm != 'normalised'")
    table = along_lambda(rows)
    for arm in ("text", "reference"):
        assert table.loc[(arm, "paper", 10.0), "constant_models"] > 0.85
        assert abs(table.loc[(arm, "paper", 10.0), "excess"]) < 0.002
        assert 0.002 < table.loc[(arm, "paper", 0.0), "excess"] < 0.02
    own = rows[rows["draw"] == 42]
    assert own["constant"].round(3).eq(0.620).all()


def test_stored_gdp_does_not_fall_monotonically_under_the_reference() -> None:
    rows = stored_rows("synthetic")
    found = falling(rows)
    assert found.loc[("reference", "paper"), "runs"] < 0.2
    assert not found.loc[("reference", "paper"), "mean_falls"]


def test_stored_penalty_is_evaded_on_the_strong_law() -> None:
    """GDP stays while HSIC falls under the reference; a penalty without a scale brings accuracy to the law's price."""
    table, law = along_lambda(stored_rows("synthetic")), accuracy_levels("strong")
    evaded, fair = table.loc[("reference", "strong", 50.0)], table.loc[("normalised", "strong", 50.0)]
    assert evaded["gdp"] > 0.9 * table.loc[("reference", "strong", 0.0), "gdp"]
    assert evaded["hsic"] < 0.6 * table.loc[("reference", "strong", 0.0), "hsic"]
    assert fair["gdp"] < 0.1 * table.loc[("normalised", "strong", 0.0), "gdp"]
    assert abs(fair["accuracy"] - law["parity"]) < 0.01
    assert evaded["ratio"] > 10  # Z lies far outside its kernel


def test_stored_nonlinear_probe_still_reads_s_where_the_linear_one_does_not() -> None:
    rows = stored_rows("synthetic")
    at = along_lambda(rows).loc[("normalised", "strong", 50.0)]
    part = rows.query("arm == 'normalised' and signal == 'strong' and lam == 50")
    assert at["nonlinear_r2"] == pytest.approx(part["nonlinear_r2"].mean())
    assert at["ratio"] == part["ratio"].median()
    assert at["linear_r2"] < 0.05
    assert at["nonlinear_r2"] > 0.25


def test_stored_ablations_hold_every_pair_and_dimension_in_both_arms() -> None:
    rows = stored_rows("ablation").query("lam > 0")
    for _, part in rows.groupby(["arm", "signal"]):
        counts = part.groupby(["kernel_z", "kernel_s", "dimension"]).size()
        assert set(counts.index) == set(slice_.cells())
        assert (counts == 25).all()


def test_stored_ablations_depend_on_kernel_and_dimension() -> None:
    rows = stored_rows("ablation")
    kernels = compared_cells(rows[rows["arm"] == "text"]).query("signal == 'paper'")
    assert (kernels["p_holm"] < 0.05).sum() >= 4
    steps = dimension_steps(rows).query("signal == 'paper' and comparison == '2 to 64'")
    assert set(steps["arm"]) == {"text", "reference"}
    assert (steps["p_holm"] < 1e-4).all()
    assert (steps["mean"] > 0.1).all()
