"""What the chapter ``variants`` states about the stored results of its tables."""

from __future__ import annotations

import pandas as pd

from frhsic_core.paper.experiments.main import family
from frhsic_core.paper.experiments.presets import experiment_for
from frhsic_core.paper.experiments.shared.paired import holm
from frhsic_core.paper.experiments.variants import (
    BEST,
    RETUNED,
)
from frhsic_core.paper.experiments.variants.tables import (
    all_rows,
    best,
    factor_changes,
    factor_table,
    left_out,
    level_tables,
    to_train,
)
from frhsic_core.paper.runs.stored import stored_rows


def test_the_rule_gives_the_names_in_the_code() -> None:
    """What variants_best trains is what the rule picks from the stored rows, also when any one split is left out."""
    rows = all_rows()
    assert best(rows) == BEST
    assert tuple(best(rows, method=name.partition(":")[0], count=1)[0] for name in RETUNED) == RETUNED
    assert set(left_out(rows, measures=("gdp_reference",))["chosen"]) == {BEST[0]}


def test_what_the_stored_variants_say() -> None:
    """The chapter's findings that five splits carry."""
    mean = factor_table(all_rows(), method="frhsic").T.groupby(level=1).mean().T
    base = mean.loc[("base", "")]
    assert mean.loc[("estimator", "biased"), "gdp_reference"] > base["gdp_reference"] + 0.05
    assert mean.loc[("where", "representation"), "gdp_reference"] < base["gdp_reference"]
    assert mean.loc[("where", "output"), "nonlinear_r2"] < base["nonlinear_r2"] - 0.1
    anchors = level_tables(all_rows())["FREM: anchors"].query("dataset == 'compas'")
    assert len(anchors) == 6
    assert anchors["mean"].max() - anchors["mean"].min() < anchors["sd"].mean() * 1.5


def test_changes_are_the_differences_of_the_table_split_by_split() -> None:
    """The same numbers from :func:`factor_table`, computed on each split alone."""
    rows = all_rows()
    found = factor_changes(rows, measure="nonlinear_r2")
    alone = [factor_table(part, method="frhsic") for _, part in rows.groupby("split")]
    probe = [table.xs("nonlinear_r2", axis=1, level=1).dropna() for table in alone]
    change = pd.concat([(table - table.loc[("base", "")]).mean(axis=1) for table in probe], axis=1)
    expected = pd.DataFrame({"mean": change.mean(axis=1), "sd": change.std(axis=1)}).drop(("base", ""))
    pd.testing.assert_frame_equal(found.sort_index(), expected.sort_index(), check_names=False)
    assert found["mean"].is_monotonic_decreasing


def test_rows_left_to_train_are_counted() -> None:
    """Stored and missing add up to the plan."""
    for name in ("variants", "variants_best"):
        counts = to_train(name)
        plan = experiment_for(name, "full")
        assert counts.to_numpy().sum() == len(plan.keys())


def test_the_uniform_reference_brings_rare_values_no_decided_gain() -> None:
    """Ten splits, Holm over forms, datasets and gaps."""
    rows = stored_rows("minority")
    rows = rows.assign(name=rows["method"].where(rows["option"] == "", rows["method"] + ":" + rows["option"]))
    found = []
    for form in ("normalized", "biased"):
        uniform, product = f"frhsic:{form} uniform", f"frhsic:{form} product"
        for measure in ("cell_gap", "worst_gap", "rare_gap", "people_gap"):
            found.append(family(rows, measure=measure, summary="naup", method=uniform, methods=(uniform, product)))
    table = pd.concat(found, ignore_index=True)
    decided = holm(table["p"].to_numpy()) < 0.05
    assert not (decided & (table["effect"] > 0)).any()
