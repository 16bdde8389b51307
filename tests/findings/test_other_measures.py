"""Guards the sentences of the chapter on other measures."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import torch
from samples import stored

from frhsic_core import gdp
from frhsic_core.joint.information import mutual_information
from frhsic_core.paper.experiments import GRIDS
from frhsic_core.paper.experiments.mutual_information import information_gap, principal_components
from frhsic_core.paper.stored import book_folder

rows = stored("mutual_information")

PRINTED = {
    ("adult", "frhsic"): 0.008,
    ("crime", "frhsic"): 0.015,
    ("adult", "reg_gdp"): 0.017,
    ("crime", "reg_gdp"): 0.056,
}
PAPER_FOUR = ["adult", "acs_income", "meps", "crime"]
FIVE = [*PAPER_FOUR, "compas"]
ADVERSARIES = ["adv", "laftr"]


@pytest.fixture(scope="module")
def authors() -> pd.DataFrame:
    """Return the authors' stored sweep on the nine λ that all methods share."""
    found = pd.read_csv(book_folder("claims", "reference", "sweep.csv")).rename(
        columns={"lambda": "lam"}
    )
    return found[found["lam"].isin([0.0, *GRIDS["full"]])]


@pytest.mark.parametrize(("dataset", "method"), PRINTED)
def test_on_adult_both_lie_below_every_stored_value_and_on_crime_between_two(
    authors, dataset, method
) -> None:
    stored = authors[(authors["dataset"] == dataset) & (authors["method"] == method)]["mi"]
    assert (PRINTED[dataset, method] < stored.min()) == (dataset == "adult")


def test_the_released_estimate_is_reproduced(rows, authors) -> None:
    same = ["dataset", "method", "lam"]
    ours = rows.groupby(same)["mi_reference"].mean().reset_index()
    both = ours.merge(authors[[*same, "mi"]], on=same)
    assert len(both) == 320
    assert both["mi_reference"].rank().corr(both["mi"].rank()) > 0.9
    assert (both["mi_reference"] - both["mi"]).abs().median() < 0.005


def test_on_adult_and_crime_the_released_estimate_falls_to_zero_for_the_adversarial_methods(
    rows,
) -> None:
    means = rows.groupby(["dataset", "method", "lam"])["mi_reference"].mean().unstack("lam")
    for dataset in ("adult", "crime"):
        found = means.loc[[(dataset, "adv"), (dataset, "laftr")]].drop(columns=0.0)
        assert (found.loc[:, 0.5:] == 0).all(axis=None)
        assert found.loc[(dataset, "adv"), 0.01] > 0.03  # not zero at every λ


@pytest.mark.parametrize("estimate", ["mi_reference", "mi_standardised"])
def test_at_the_matched_point_frhsics_estimate_is_lower_in_every_split_on_the_papers_four(
    rows, estimate
) -> None:
    gap = information_gap(rows, estimate).set_index("dataset").loc[PAPER_FOUR]
    assert (gap["high"] < 0).all()
    assert (gap["lower in"] == gap["splits"]).all()


def test_on_compas_both_released_estimates_are_zero(rows) -> None:
    gap = information_gap(rows, "mi_reference").set_index("dataset")
    assert gap.loc["compas", ["frhsic", "reg_gdp"]].tolist() == [0, 0]


def test_at_the_matched_point_the_nonlinear_probe_reads_less_on_all_five(rows) -> None:
    assert (information_gap(rows, "nonlinear_r2")["high"] < 0).all()


def test_by_a_linear_guess_it_does_not_hold_on_acs_income_and_compas(rows) -> None:
    guess = information_gap(rows, "mi_probe").set_index("dataset")
    two = guess.loc[["acs_income", "compas"]]
    assert (two["high"] > 0).all()
    assert (two["low"] < 0).all()
    assert guess.loc["acs_income", "lower in"] == 0
    assert (guess.loc[["adult", "meps", "crime"], "high"] < 0).all()


@pytest.fixture(scope="module")
def medians(rows) -> pd.DataFrame:
    """Return medians of the models without a penalty and at λ = 10."""
    chosen = rows[rows["lam"].isin([0.0, 10.0])]
    return chosen.groupby(["dataset", "method"])[["scale", "linear_r2"]].median().astype(float)


@pytest.mark.parametrize("dataset", FIVE)
@pytest.mark.parametrize("method", ADVERSARIES)
def test_the_scale_of_z_is_much_larger_with_an_adversary(
    medians, dataset: str, method: str
) -> None:
    assert medians.loc[(dataset, method), "scale"] > 2 * medians.loc[(dataset, "unfair"), "scale"]


def test_a_linear_probe_still_reads_most_of_s_from_the_adversaries_but_advs_half_on_adult(
    medians,
) -> None:
    probe = medians["linear_r2"].unstack("method")
    share = probe[ADVERSARIES].div(probe["unfair"], axis=0)
    assert 0.5 < share.loc["adult", "adv"] < 0.6
    assert (share.stack().drop(("adult", "adv")) > 0.75).all()


def test_at_the_same_scale_the_estimate_is_zero_about_as_often_for_other_methods(rows) -> None:
    others = rows[rows["dataset"] != "compas"]
    sizes = pd.cut(
        others["scale"],
        [0, 5, 15, 50, np.inf],
        labels=["up to 5", "5 to 15", "15 to 50", "above 50"],
    )
    who = (
        others["method"].isin(ADVERSARIES).map({True: "adversaries", False: "others"}).rename("who")
    )
    zero = (others["mi_reference"] == 0).groupby([sizes, who], observed=True).mean().unstack("who")
    assert abs(zero.loc["15 to 50", "adversaries"] - zero.loc["15 to 50", "others"]) < 0.1
    assert zero.loc["15 to 50"].min() > 0.65
    assert zero.loc["above 50"].min() > 0.95
    assert zero.loc["up to 5"].max() < 0.3
    assert zero.loc["5 to 15", "adversaries"] > 2 * zero.loc["5 to 15", "others"]


def test_principal_components_can_leave_out_what_a_head_can_multiply(generator) -> None:
    tau, a, delta, n = 0.5, 10.0, 0.01, 2000
    noise = torch.randn(1, n, 3, generator=generator, dtype=torch.float64)
    s = torch.randn(1, n, generator=generator, dtype=torch.float64)
    hidden = s + tau * noise[..., 2]
    zeros = [torch.zeros_like(s)] * 3
    z = torch.stack([a * noise[..., 0], a * noise[..., 1], delta * hidden, *zeros], dim=-1)
    assert abs(mutual_information(principal_components(z), s).item()) < 0.06
    head = mutual_information(hidden.unsqueeze(-1), s).item()
    assert head == pytest.approx(0.5 * np.log(1 + tau**-2), abs=0.08)
    assert gdp(z[0, :, 2] / delta, s[0]).item() == pytest.approx(np.sqrt(2 / np.pi), abs=0.06)
