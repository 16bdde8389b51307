"""Guards the sentences of the chapter on the synthetic validation and its ablations."""

from __future__ import annotations

import pandas as pd
import pytest

from frhsic_core.paper.datasets import accuracy_levels
from frhsic_core.paper.experiments.synthetic_validation import (
    along_lambda,
    cell_table,
    cells,
    compared_cells,
    dimension_steps,
    falling,
)
from frhsic_core.paper.runs.stored import book_folder, stored_rows

VARIANTS = ("text", "reference", "normalised")
LABELS = ["variant", "signal", "comparison"]


@pytest.fixture(scope="module")
def rows() -> pd.DataFrame:
    return stored_rows("synthetic")


@pytest.fixture(scope="module")
def table(rows) -> pd.DataFrame:
    return along_lambda(rows)


@pytest.mark.parametrize("variant", ["text", "reference"])
def test_the_unpenalized_model_is_above_the_majority_rate(table, variant: str) -> None:
    assert table.loc[(variant, "paper"), "excess"].iloc[0] > 0.003


@pytest.mark.parametrize("variant", ["text", "reference"])
def test_from_ten_on_nearly_every_model_is_constant(table, variant: str) -> None:
    assert (table.loc[(variant, "paper"), "constant_models"].loc[10.0:] >= 0.9).all()


def test_the_mean_falls_at_every_step_in_the_normalized_variant_alone(rows) -> None:
    falls = falling(rows).xs("paper", level="signal")["mean_falls"]
    assert falls.to_dict() == {"normalised": True, "reference": False, "text": False}


@pytest.mark.parametrize("variant", VARIANTS)
def test_between_one_and_ten_gdp_drops_by_more_than_an_order_of_magnitude(table, variant: str) -> None:
    gdp = table.loc[(variant, "paper"), "gdp"]
    assert gdp[1.0] > 10 * gdp[10.0]


def test_below_one_the_references_gdp_hardly_moves(table) -> None:
    gdp = table.loc[("reference", "paper"), "gdp"][:1.0]
    assert gdp.max() - gdp.min() < 0.01


def test_on_the_stronger_label_the_references_gdp_does_not_fall_while_hsic_does(table) -> None:
    strong = table.loc[("reference", "strong")]
    assert (strong["gdp"] > 0.95 * strong["gdp"].iloc[0]).all()
    assert strong["hsic"].iloc[-1] < 0.6 * strong["hsic"].iloc[0]
    assert strong["ratio"].min() > 10  # the distance of Z in bandwidths


def test_in_the_texts_variant_gdp_falls_only_beyond_five(table) -> None:
    gdp = table.loc[("text", "strong"), "gdp"]
    assert gdp[:5.0].min() > 0.95 * gdp[0.0]
    assert gdp[50.0] < 0.3 * gdp[0.0]


def test_the_normalized_variant_leaves_nothing_to_a_linear_probe(table) -> None:
    assert table.loc[("normalised", "strong", 50.0), "linear_r2"] < 0.05


@pytest.mark.parametrize("variant", VARIANTS)
def test_a_nonlinear_probe_still_reads_about_two_thirds(table, variant: str) -> None:
    probe = table["nonlinear_r2"]
    assert 0.6 < probe[variant, "strong", 50.0] / probe[variant, "strong", 0.0] < 0.8
    assert probe[variant, "paper", 50.0] > 0.25


def test_the_normalized_variant_pays_the_price_of_parity(table) -> None:
    fair = table.loc[("normalised", "strong")]
    assert fair["gdp"][50.0] < 0.1 * fair["gdp"][0.0]
    assert abs(fair["accuracy"][50.0] - accuracy_levels("strong")["parity"]) < 0.01


def test_on_the_papers_sample_the_bayes_rule_is_worse_than_the_constant(rows) -> None:
    own = rows[(rows["signal"] == "paper") & (rows["draw"] == 42)]
    assert (own["bayes"] < own["constant"]).all()


@pytest.fixture(scope="module")
def ablation() -> pd.DataFrame:
    return stored_rows("ablation")


def test_nine_pairs_of_kernels_and_four_dimensions(ablation) -> None:
    assert len([cell for cell in cells() if cell[2] == 8]) == 9
    for _, part in ablation[ablation["lam"] > 0].groupby(["variant", "signal"]):
        counts = part.groupby(["kernel_z", "kernel_s", "dimension"]).size()
        assert set(counts.index) == set(cells())
        assert (counts == 25).all()


def test_1200_models_have_the_penalty_and_400_have_none(ablation) -> None:
    none = ablation[ablation["lam"] == 0]
    assert (len(ablation) - len(none), len(none)) == (1200, 400)
    assert (none.groupby(["dimension", "signal", "variant"]).size() == 25).all()


def test_ours_collapse_in_some_cells_and_not_in_others(ablation) -> None:
    collapsed = cell_table(ablation).xs("paper", level="signal")["constant_models"]
    assert collapsed.groupby("variant").min().eq(0.0).all()
    assert collapsed["reference"].max() == 1.0


@pytest.mark.parametrize("variant", ["text", "reference"])
def test_most_printed_cells_are_below_all_our_runs(ablation, variant: str) -> None:
    printed = pd.read_csv(book_folder("claims", "cells.csv"))
    printed = printed[printed["place"].isin(["tab:ablation_kernel", "tab:ablation_dim"])]
    printed = printed[printed["quantity"] == "gdp"]
    assert len(printed) > 0
    keys = ["variant", "signal", "kernel_z", "kernel_s", "dimension"]
    lowest = ablation[ablation["lam"] > 0].groupby(keys)["gdp_reference"].min()
    below = 0
    for claim, value in zip(printed["claim"], printed["value"].astype(float), strict=True):
        facts = dict(part.split("=") for part in claim.split(", ")[-1].split(";"))
        cell = (facts.get("kz", "gaussian"), facts.get("ks", "gaussian"), int(facts.get("dz", 8)))
        below += value < lowest[(variant, "paper", *cell)]
    assert below > len(printed) / 2


@pytest.fixture(scope="module")
def gdp_tests(ablation) -> pd.DataFrame:
    return compared_cells(ablation).set_index(LABELS)


def test_on_the_papers_law_no_pair_is_significantly_below_gaussian_gaussian(gdp_tests) -> None:
    paper = gdp_tests.xs("paper", level="signal")
    assert (paper.query("p_holm < 0.05")["mean"] > 0).all()


def test_all_eight_pairs_are_significantly_above_in_the_reference_variant_and_five_in_the_texts(gdp_tests) -> None:
    differs = gdp_tests["p_holm"] < 0.05
    assert differs["reference", "paper"].all()
    assert differs["text", "paper"].sum() == 5


def test_in_accuracy_four_pairs_of_the_reference_variant_differ_upwards_by_less_than_a_point(ablation) -> None:
    moved = compared_cells(ablation, "performance").set_index(LABELS).query("p_holm < 0.05")
    assert set(moved.index.droplevel("comparison")) == {("reference", "paper")}
    assert len(moved) == 4
    assert moved["mean"].between(0, 0.01).all()


def test_on_the_stronger_label_differences_go_in_both_directions_and_are_small(gdp_tests) -> None:
    assert gdp_tests.xs("strong", level="signal")["mean"].abs().max() < 0.05
    assert (gdp_tests.loc[("text", "strong")].query("p_holm < 0.05")["mean"] < 0).sum() == 2


@pytest.fixture(scope="module")
def steps(ablation) -> pd.DataFrame:
    found = dimension_steps(ablation).set_index(LABELS)
    return found.assign(significant=found["p_holm"] < 0.05)


def test_on_the_papers_law_gdp_grows_with_the_dimension(steps) -> None:
    assert (steps.xs("paper", level="signal").query("significant")["mean"] > 0).all()
    assert steps.loc[("reference", "paper"), "significant"].all()


def test_the_step_from_8_to_32_shows_in_both_variants_and_the_others_in_the_reference_only(steps) -> None:
    found = steps.loc[("text", "paper"), "significant"].to_dict()
    assert found == {"2 to 8": False, "8 to 32": True, "32 to 64": False, "2 to 64": True}


def test_on_the_stronger_label_gdp_grows_in_the_texts_variant_in_part_without_the_penalty(steps, ablation) -> None:
    whole = steps.loc[("text", "strong", "2 to 64")]
    assert whole["significant"]
    assert whole["mean"] > 0
    plain = ablation.query("lam == 0 and variant == 'text' and signal == 'strong'")
    plain = plain.groupby("dimension")["gdp_reference"].mean()
    assert plain[64] > plain[2]


def test_on_the_stronger_label_gdp_does_not_grow_in_the_reference_variant(steps) -> None:
    assert not steps.loc[("reference", "strong", "2 to 64"), "significant"]
    assert steps.loc[("reference", "strong", "2 to 8"), "mean"] < 0
