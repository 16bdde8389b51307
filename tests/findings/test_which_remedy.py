"""Guards the sentences of the chapter on choosing a remedy; everything is read from stored results."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from frhsic_core.paper.experiments import every_method
from frhsic_core.paper.experiments.closed_forms import CLOSED_FORMS
from frhsic_core.paper.experiments.remedies import (
    DATASETS,
    TOLERANCE,
    at_equal_score,
    by_tolerance,
    complete,
    evidence,
    means,
    settings_of,
    verdicts,
)
from frhsic_core.paper.runs.stored import stored_rows


@pytest.fixture(scope="module")
def rows() -> pd.DataFrame:
    return complete(stored_rows("remedies"))


@pytest.fixture(scope="module")
def equal(rows: pd.DataFrame) -> pd.DataFrame:
    return at_equal_score(rows)


def test_every_family_is_compared_on_the_same_splits(rows: pd.DataFrame, equal: pd.DataFrame) -> None:
    assert set(rows["dataset"]) == set(DATASETS)
    assert equal["splits"].nunique() == 1
    assert equal["splits"].iloc[0] == 10


def test_ours_is_first_or_not_significantly_worse(equal: pd.DataFrame) -> None:
    """The must-show sentence: no rival depends significantly less at equal score, with S or without it."""
    assert (verdicts(equal) != "more").all()


def test_ours_has_several_times_as_many_settings(rows: pd.DataFrame) -> None:
    found = settings_of(rows)
    for needs_s in (True, False):
        rivals = found[needs_s].drop("ours")
        assert (found[needs_s, "ours"] >= 4 * rivals).all()


def test_most_wins_are_over_packages_without_a_setting_of_that_quality(equal: pd.DataFrame) -> None:
    won = equal.loc[verdicts(equal).index][verdicts(equal) == "less"]
    assert len(won) == 8
    assert won["choice"].str.startswith("no remedy").sum() == 6


def test_on_wages_with_s_fairlearn_is_level_and_cheaper(equal: pd.DataFrame) -> None:
    part = equal[(equal["dataset"] == "wage") & equal["needs_s"]].set_index("family")
    assert abs(part.loc["fairlearn", "difference"]) < 0.005
    assert part.loc["fairlearn", "cpu_seconds"] < part.loc["ours", "cpu_seconds"]


@pytest.mark.slow
def test_no_loss_at_any_tolerance_and_most_wins_at_the_one_of_the_figure(rows: pd.DataFrame) -> None:
    """However much of the score may be lost, no rival depends significantly less, even before Holm's correction."""
    found = by_tolerance(rows)
    assert (found["more"] == 0).all()
    assert found["smallest_p"].min() > 0.3
    assert found["less"].tolist() == [2, 5, 8, 5, 3]  # what is not stable: the limit of the figure has the most
    assert (found[["less", "no difference", "more"]].sum(axis=1) == 16).all()


def test_every_family_keeps_its_score(rows: pd.DataFrame, equal: pd.DataFrame) -> None:
    best = means(rows[rows["method"] == "none"]).groupby("dataset")["score"].max()
    kept = equal.set_index("dataset")["score"]
    # Chosen on other splits, so a little below the limit is possible.
    assert (kept >= best.loc[kept.index] - TOLERANCE - 0.02).all()


def test_with_s_the_least_dependence_is_reached(equal: pd.DataFrame) -> None:
    ours = equal[equal["family"] == "ours"].set_index(["dataset", "needs_s"])["dcor"].unstack()
    assert (ours[True] <= ours[False] + 0.02).all()


def test_leace_flattens_linear_models_and_not_boosted_ones(rows: pd.DataFrame) -> None:
    table = means(rows[rows["dataset"].isin(("affairs", "pension"))])
    full = table[(table["method"] == "leace_spline") & (table["strength"] == 1.0)].set_index(["dataset", "learner"])
    for dataset in ("affairs", "pension"):
        assert full.loc[(dataset, "linear"), "dcor"] < full.loc[(dataset, "boosting"), "dcor"]


# Every method on the five datasets of the paper --------------------------------------------------------------------


@pytest.fixture(scope="module")
def methods() -> pd.DataFrame:
    return every_method.sweep_rows()


@pytest.fixture(scope="module")
def compared(methods: pd.DataFrame) -> dict[str, pd.DataFrame]:
    rows = every_method.pooled(methods)
    return {
        measure: every_method.compared_with_best(every_method.matched(rows, measure), measure).set_index(
            ["name", "dataset"]
        )
        for measure in every_method.SHOWN
    }


def test_every_method_is_stored_on_every_dataset(methods: pd.DataFrame) -> None:
    splits = methods.groupby(["name", "dataset"])["split"].nunique().unstack()
    assert (splits.loc[list(every_method.NETWORKS)] == 25).all(axis=None)
    closed = [name for name, row in CLOSED_FORMS.items() if not row.regression_only]
    assert (splits.loc[closed] == 5).all(axis=None)
    assert splits.loc["frrm", "crime"] == 5


def test_whitened_frhsic_has_the_lowest_mean_over_all_columns(compared: dict[str, pd.DataFrame]) -> None:
    shares = pd.concat([table["share"].unstack("dataset") for table in compared.values()], axis=1)
    whole = shares.dropna()
    assert set(every_method.NETWORKS) <= set(whole.index)
    assert whole.clip(lower=0.0).mean(axis=1).idxmin() == every_method.WHITENED
    # No method is best in every column.
    assert all(table["best"].nunique() > 1 for table in compared.values())
    for table in compared.values():
        assert (~table.loc[every_method.WHITENED, "worse"]).sum() == 4


def test_kernel_ridge_keeps_the_score_on_two_datasets(compared: dict[str, pd.DataFrame]) -> None:
    for table in compared.values():
        assert set(table.loc["hsic_krr"].index) == {"compas", "acs_income"}
        assert (table.loc["hsic_krr", "difference"] < 0).all()
        assert (table.loc["leace_z", "share"] > 0.9).all()


def test_whitened_frhsic_leaves_less_than_the_closed_forms_with_one_exception(
    compared: dict[str, pd.DataFrame],
) -> None:
    shares = compared["gdp_sample"]["share"].unstack("dataset")
    closed = shares.loc[[name for name in CLOSED_FORMS if name in shares.index and name != "hsic_krr"]]
    assert len(closed) >= 5
    assert not (closed <= shares.loc[every_method.WHITENED]).any(axis=None)


def test_where_whitened_frhsic_loses(compared: dict[str, pd.DataFrame]) -> None:
    for measure, dataset, winner in (("gdp_sample", "meps", "dcor"), ("nonlinear_r2", "adult", "laftr")):
        own = compared[measure].loc[every_method.WHITENED]
        assert own.index[own["worse"]].tolist() == [dataset]
        assert own.loc[dataset, "best"] == winner


def test_leace_is_level_with_the_encoder_on_the_hiring_table(printed) -> None:
    shown = printed.table("which_remedy", "dCor").set_index("remedy")[["AUC", "dCor"]].astype(float)
    leace, encoder = shown.loc["LEACE on S"], shown.loc["trained encoder (FRHSIC)"]
    assert leace["dCor"] <= encoder["dCor"]
    assert 0 < encoder["AUC"] - leace["AUC"] < 0.04


def test_a_share_and_its_test_by_hand(methods: pd.DataFrame, compared: dict[str, pd.DataFrame]) -> None:
    """Unfair is all of its own dependence, and one split of one method is chosen by a loop over its settings."""
    table = every_method.matched(methods, "gdp_sample")
    assert np.allclose(table[table["name"] == "unfair"]["share"], 1.0)
    part = methods[methods["dataset"] == "meps"]
    others = part[part["split"] != 50]
    level = 0.99 * others[others["name"] == "unfair"]["performance"].mean()
    best = None
    for setting, own in others[others["name"] == "dcor"].groupby("setting"):
        if own["performance"].mean() >= level and (best is None or own["gdp_sample"].mean() < best[0]):
            best = (own["gdp_sample"].mean(), setting)
    line = table[(table["dataset"] == "meps") & (table["name"] == "dcor") & (table["split"] == 50)].iloc[0]
    assert line["setting"] == best[1]
    own = table[(table["dataset"] == "meps") & table["name"].isin(("dcor", "frhsic_whitened"))]
    wide = own.pivot(index="split", columns="name", values="gdp_sample")
    found = compared["gdp_sample"].loc[("frhsic_whitened", "meps")]
    assert found["best"] == "dcor"
    assert found["difference"] == pytest.approx((wide["frhsic_whitened"] - wide["dcor"]).mean(), abs=2e-3)


# The boosting probe and the CPU seconds ----------------------------------------------------------------------------


@pytest.fixture(scope="module")
def strong() -> pd.DataFrame:
    return every_method.strongest()


def test_boosting_finds_least_in_whitened_frhsic_on_four_datasets(strong: pd.DataFrame) -> None:
    found = strong["boosting_r2"].unstack("dataset").loc[list(every_method.NETWORKS)]
    least = found.idxmin()
    assert least.drop("adult").eq(every_method.WHITENED).all()
    assert least["adult"] == "dcor"
    assert 0 < found.loc[every_method.WHITENED, "adult"] - found.loc["dcor", "adult"] < 0.02


def test_boosting_finds_s_in_erased_data(strong: pd.DataFrame) -> None:
    """Even at full strength, where the linear probe finds nothing."""
    found = strong["boosting_r2"].unstack("method")
    assert (strong.loc["kernel_null", "linear_r2"] < 0).all()
    assert (found["kernel_null"] / found["unfair"]).between(0.9, 1.1).all()
    assert (found["remover_x"] > found["linear"]).all()  # Z of the linear model is X itself
    assert (found["remover_x"] > 0.85).all()


def test_a_closed_form_is_faster_than_a_penalized_network(strong: pd.DataFrame) -> None:
    seconds = strong["cpu_seconds"].unstack("method")
    penalized = [name for name in every_method.NETWORKS if name != "unfair"]
    closed = [name for name in CLOSED_FORMS if name in seconds and name != "leace_z"]
    assert len(closed) == 5
    assert (seconds[closed].max(axis=1) < seconds[penalized].min(axis=1)).all()
    # LEACE on Z trains Unfair's network alone, and not in a stack of five.
    assert (seconds["leace_z"] / seconds["unfair"]).between(2, 3).all()


def test_no_person_makes_the_gdp_of_logits_huge(methods: pd.DataFrame) -> None:
    """One person of Adult had a logit of 4e14 as long as the kernel eraser kept axes without variance."""
    erased = methods[methods["name"].isin(("kernel_null", "hsic_eraser"))]
    assert len(erased) == 100
    assert (erased["spread"] < 20).all()
    assert (erased["gdp_reference"] < 1).all()


def test_the_kernel_null_space_is_close_to_the_limit_on_adult(methods: pd.DataFrame) -> None:
    table = every_method.matched(methods, "gdp_sample")
    own = table[(table["dataset"] == "adult") & (table["name"] == "kernel_null")]
    assert own["lam"].tolist().count(0.5) == 4
    assert (own.loc[own["lam"] == 0.5, "share"] > 0.9).all()
    rows = methods[(methods["dataset"] == "adult") & methods["split"].isin(own["split"])]
    kept = rows[(rows["name"] == "kernel_null") & (rows["lam"] == 1.0)]["performance"].mean()
    assert 0.010 < 1 - kept / rows[rows["name"] == "unfair"]["performance"].mean() < 0.012


def test_the_leaves_of_the_tree_are_ordered_as_the_chapter_says(rows: pd.DataFrame) -> None:
    """With S less is left than without it, scores are better than X, and every remedy helps."""
    found = evidence(rows, stored_rows("every_method"))
    assert max(found.values()) < 80
    assert max(found["adjust_rank"], found["adjust_mean"]) < 25 < found["correlation_remover"]
    assert found["correlation_remover"] < found["project"] < found["kernel_eraser"]
    assert found["encoder"] < 25
