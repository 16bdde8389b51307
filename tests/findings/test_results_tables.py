"""What the chapter ``results`` states about the stored results of its tables."""

from __future__ import annotations

import numpy as np
import pytest

from frhsic_core.paper.claims.answers import queries
from frhsic_core.paper.experiments.main import (
    CONVENTIONS,
    TOLERANCES,
    differences,
    equivalence,
    family,
    headline,
    main_rows,
)
from frhsic_core.paper.experiments.presets import experiment_for
from frhsic_core.paper.experiments.shared.paired import holm
from frhsic_core.paper.runs.stored import stored_rows


def test_family_of_the_main_sweep() -> None:
    """Thirty comparisons over 25 splits; verdicts follow from the adjusted p-value and the sign."""
    table = family(main_rows("reference"), measure="gdp_reference", summary="naup")
    assert len(table) == 30
    assert set(table["splits"]) == {25}
    decided = table["p_holm"] < 0.05
    assert (table.loc[decided & (table["effect"] > 0), "verdict"] == "better").all()
    assert (table.loc[~decided, "verdict"] == "not_significant").all()
    assert table["p_holm"].to_numpy() == pytest.approx(holm(table["p"].to_numpy()))


def test_what_the_main_sweep_says() -> None:
    """The chapter's findings: GDP of the head and the representation point opposite ways."""
    counts = headline("reference")
    assert len(counts) == 2 * len(CONVENTIONS)
    gdp, probe, hsic = (counts.loc[(name, "naup")] for name in ("gdp_reference", "nonlinear_r2", "normalized_hsic_1"))
    assert gdp["worse"] > 2 * gdp["better"]
    assert probe["better"] > 5 * max(1, probe["worse"])
    assert hsic["worse"] == 0
    meps = family(main_rows("reference"), measure="gdp_reference", summary="naup").query("dataset == 'meps'")
    assert (meps["verdict"] == "worse").all()
    assert (meps["verdict_corrected"] == "worse").all()


def test_small_differences_are_often_resolved() -> None:
    """±.05 GDP lies inside the range of five splits, yet paired splits tell most such pairs apart on COMPAS, Crime."""
    counts = equivalence(main_rows("reference"))
    gdp = counts.loc["dependence"]
    assert (gdp.loc["compas", "resolved"] / gdp.loc["compas", "within"]) > 0.5
    assert (gdp.loc["crime", "resolved"] / gdp.loc["crime", "within"]) > 0.5
    table = differences(main_rows("reference"))
    assert (table["sd"] < table["own_sd"] * np.sqrt(2)).mean() > 0.8


def test_the_ledger_counts_crime_too() -> None:
    """±.05 of GDP lies inside the range of five splits on four datasets; on Crime it is wider than that range."""
    answer = queries()["spread_and_pairs"](measure="dependence")
    for values in answer.values.values():
        assert min(values[:4]) > TOLERANCES["dependence"] > values[4]
    assert "on Crime alone" in answer.note
    assert min(queries()["spread_and_pairs"](measure="performance").values["text"]) >= TOLERANCES["performance"]


def test_the_stored_live_experiment_is_whole() -> None:
    rows = stored_rows("live")
    assert len(rows) == len(experiment_for("live").keys()) == 75
    assert rows["performance"].between(0.5, 0.8).all()
    assert stored_rows("never_run").empty
