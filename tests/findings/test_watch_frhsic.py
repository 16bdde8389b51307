"""Guards the sentences of the chapter on training: the running example, the thin direction and the bandwidth trap."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.metrics import r2_score
from sklearn.model_selection import cross_val_predict

from frhsic_core.learning import FRHSIC
from frhsic_core.learning.penalties.base import resolve_policy
from frhsic_core.paper.experiments import variants
from frhsic_core.paper.experiments.running_example import gauges
from frhsic_core.paper.stored import stored_rows

TABLES = ("main", "recommended_test")
UNFAIR, ESCAPED, RECOMMENDED = "no penalty", "paper, fixed", "whitened FRHSIC"


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
    own = measured.loc["recommended"]["nonlinear_r2"]
    assert np.sign(np.diff(own)).tolist() == [-1, -1, -1, 1, 1, 1]  # at 0, .1, .3, 1, 3, 10 and 30
    assert own[1.0] < 0.03 < own[0.1] < own[30.0] < 0.2


def test_the_rise_depends_on_the_seed_and_the_probe_stays_good(printed) -> None:
    shown = [f"{name}, λ = {lam}:" for name in ("normalized HSIC", "R² of age") for lam in (0, 10)]
    free, penalized, before, after = (
        np.array(printed.numbers("watch_frhsic", text)[-5:]) for text in shown
    )
    assert (np.abs(penalized / free - 0.25) < 0.06).all()
    assert sorted(np.digitize(after - before, [-0.05, 0.1])) == [0, 1, 1, 2, 2]
    assert after.min() > 0.7


def test_the_distance_from_middle_age_falls_only_at_a_larger_weight() -> None:
    """A boosted regression on Z, not the library's probe; accuracy is lost at the same time."""
    rows = stored_rows("running_example").query("form == 'recommended' and lam in (0.0, 0.3, 3.0)")
    found, right = {}, {}
    for lam, part in rows.groupby("lam"):
        distance = (part["age"] - 45.0).abs()
        told = cross_val_predict(
            HistGradientBoostingRegressor(random_state=0), part[["z_1", "z_2"]], distance, cv=5
        )
        found[lam] = r2_score(distance, told)
        right[lam] = ((part["score"] > 0.5) == (part["label"] == 1)).mean()
    assert found[0.3] > found[0.0] + 0.2 > found[3.0] + 0.2
    assert right[3.0] < right[0.3] - 0.01


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


# The bandwidth trap ----------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def trained(printed) -> pd.DataFrame:
    """Return the table of the models with different bandwidths as the chapter prints it."""
    shown = printed.table("watch_frhsic", "distance / bandwidth")
    ratio = shown.pop(shown.columns[0]).str.split(" to ", expand=True).astype(float)
    return shown.astype(float).set_axis(["accuracy", "gdp", "hsic", "probe"], axis=1).join(ratio)


@pytest.fixture(scope="module")
def renewed(trained) -> pd.DataFrame:
    return trained[trained.index.str.startswith("paper")].drop(ESCAPED)


def test_a_fixed_bandwidth_is_left_behind_and_the_penalty_is_near_its_floor(
    trained, printed
) -> None:
    (penalty, floor) = printed.numbers("watch_frhsic", "fixed bandwidth: the penalty is")
    escaped, unfair = trained.loc[ESCAPED], trained.loc[UNFAIR]
    assert floor < penalty < 1.5 * floor
    assert escaped[0] > 5
    assert 0.55 < escaped["gdp"] / unfair["gdp"] < 0.75
    assert abs(escaped["accuracy"] - unfair["accuracy"]) < 0.011


def test_renewed_bandwidths_end_in_range_with_less_dependence_and_less_accuracy(
    trained, renewed
) -> None:
    escaped, unfair = trained.loc[ESCAPED], trained.loc[UNFAIR]
    assert len(renewed) == 2
    assert renewed[[0, 1]].stack().between(0.5, 1.1).all()
    assert (renewed["gdp"] < 0.5 * escaped["gdp"]).all()
    assert (renewed["hsic"] < 0.5 * escaped["hsic"]).all()
    assert (unfair["accuracy"] - renewed["accuracy"]).between(0.02, 0.045).all()


def test_the_probe_orders_them_the_other_way(trained, renewed) -> None:
    """The R² of the escaped model is low; no form is best in every column."""
    assert (renewed["probe"] > trained.loc[ESCAPED, "probe"]).all()
    assert trained.loc[ESCAPED, "probe"] < 0.3 * trained.loc[UNFAIR, "probe"]
    others, own, columns = (
        trained.drop(renewed.index),
        trained.loc[RECOMMENDED],
        ["gdp", "hsic", "accuracy"],
    )
    assert (renewed[columns].max() < others[columns].min()).all()
    assert own["probe"] == trained["probe"].min()
    assert (own["gdp"] / renewed["gdp"]).between(1.7, 2.7).all()


def test_the_recommended_form_stays_in_range_and_is_better_at_that_accuracy(trained) -> None:
    escaped, own = trained.loc[ESCAPED], trained.loc[RECOMMENDED]
    assert own[[0, 1]].between(0.5, 1.5).all()
    assert abs(own["accuracy"] - escaped["accuracy"]) < 0.011
    assert own["gdp"] < escaped["gdp"]


@pytest.fixture(scope="module")
def adult() -> pd.DataFrame:
    """Return, for each form and λ, in how many of 25 runs on Adult something happened, and the medians."""
    main, own = (
        stored_rows(name).query("dataset == 'adult' and method == 'frhsic'") for name in TABLES
    )
    own = own[own["option"] == variants.RECOMMENDED.partition(":")[2]]
    runs = pd.concat([main, own.assign(protocol="recommended")])
    runs["outside"] = ~runs["ratio"].between(1 / 3, 3)
    runs["constant_model"] = runs["performance"] < runs["constant"] + 0.005
    by = runs.groupby(["protocol", "lam"])
    counts = by[["outside", "constant_model"]].sum().assign(runs=by.size())
    return counts.join(by[["performance", "nonlinear_r2"]].median())


def test_the_published_form_leaves_its_kernels_range_at_the_largest_lambda_alone(adult) -> None:
    assert (adult["runs"] == 25).all()
    for protocol in ("reference", "text"):
        part = adult.loc[protocol]
        assert (part.loc[:50.0, ["outside", "constant_model"]] == 0).all(axis=None)
        assert part.loc[500.0, "outside"] == 25
        assert part.loc[500.0, "nonlinear_r2"] > 0.1
        assert 0.45 < part.loc[50.0, "nonlinear_r2"] / part.loc[0.01, "nonlinear_r2"] < 0.55
        assert part.loc[0.01, "performance"] - part.loc[50.0, "performance"] < 0.005
        assert part.loc[0.01, "performance"] - part.loc[500.0, "performance"] > 0.04


def test_the_recommended_form_stays_in_range_and_hides_more_at_that_accuracy(adult) -> None:
    assert FRHSIC().scale == "whiten"
    assert FRHSIC().policy == resolve_policy("moving_average")
    own = adult.loc["recommended"]
    assert (own.loc[:100.0, "outside"] == 0).all()
    assert own["constant_model"].loc[[50.0, 100.0, 500.0]].tolist() == [0, 25, 25]
    assert own.loc[[100.0, 500.0], "nonlinear_r2"].max() < 0.01
    for protocol in ("reference", "text"):
        part = adult.loc[protocol]
        assert (own.loc[:10.0, "performance"] > part.loc[:10.0, "performance"] - 0.005).all()
        assert own.loc[:10.0, "nonlinear_r2"].max() < 0.65 * part.loc[:10.0, "nonlinear_r2"].min()
