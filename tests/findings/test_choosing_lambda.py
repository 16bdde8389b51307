"""Guards the sentences of the chapter on choosing λ."""

from __future__ import annotations

from functools import cache

import numpy as np
import pandas as pd
import pytest

from frhsic_core.learning import LambdaSelection
from frhsic_core.paper.experiments.lambda_selection import (
    accepted,
    chosen_elsewhere,
    selected,
    summary_of,
)
from frhsic_core.paper.stored import authors_file, stored_rows

TESTS = ("released", "gamma", "permutation")
DATA = ("adult", "acs_income", "meps", "crime", "compas")
CASES = [("reference", name) for name in DATA] + [
    ("text", name) for name in ("adult", "crime", "compas")
]
SMALL = [case for case in CASES if case[1] in ("crime", "compas")]
LAST = "method == 'frhsic' and lam == 500"


def test_with_few_people_the_test_accepts_and_with_more_it_rejects_everywhere(printed) -> None:
    few, more, most = (printed.words("choosing_lambda", f"{n} people: ") for n in (60, 250, 1000))
    assert few.startswith("independence 0.1, practical 0.1")
    for line in (more, most):
        assert line.startswith("independence 30 (the largest), practical 30 (the largest)")
    assert len({line.rpartition(" ")[2] for line in (few, more, most)}) > 1
    # The standard error of an AUC of .91 on 60 people, by the formula of Hanley and McNeil (1982).
    auc, half = 0.91, 30
    first, second = auc / (2 - auc), 2 * auc**2 / (1 + auc)
    variance = auc * (1 - auc) + (half - 1) * (first + second - 2 * auc**2)
    assert np.sqrt(variance) / half > 0.02


def test_the_chosen_model_has_less_dependence_on_the_test_part(printed) -> None:
    assert [*map(len, LambdaSelection(validation_fraction=0.4).held_out(1000, random_state=0))] == [
        400,
        400,
    ]
    unfair, chosen = (printed.numbers("choosing_lambda", name) for name in ("no penalty", "chosen"))
    assert abs(unfair[0] - chosen[0]) < 0.02
    assert chosen[1] < unfair[1]
    # "R² is much smaller, while GDP falls by less than half"
    assert chosen[-1] < 0.5 * unfair[-1]
    assert 0.5 < chosen[1] / unfair[1] < 1.0


@cache
def real() -> pd.DataFrame:
    rows = stored_rows("lambda_selection")
    return rows[rows["dataset"] != "synthetic"]


@cache
def part(protocol: str, name: str) -> pd.DataFrame:
    """Return the rows of Unfair and FRHSIC in one protocol on one dataset."""
    rows = real()
    chosen = (
        (rows["protocol"] == protocol)
        & (rows["dataset"] == name)
        & rows["method"].isin(["unfair", "frhsic"])
    )
    return rows[chosen]


@cache
def summary(
    protocol: str, name: str, test: str = "permutation", epsilon: float | None = None
) -> dict:
    options = {} if epsilon is None else {"epsilon": epsilon}
    return summary_of(selected(part(protocol, name), test=test, **options))


@cache
def chosen(protocol: str, name: str, test: str) -> np.ndarray:
    """Return the selected λ of each split, −1 where the rule finds nothing."""
    table = selected(part(protocol, name), test=test)
    return table["lam"].where(table["satisfied"], -1.0).to_numpy()


def kept_share(protocol: str, test: str) -> float:
    both = [summary(protocol, name, test) for name in ("crime", "compas")]
    return sum(it["kept"] for it in both) / sum(it["found"] for it in both)


def test_eight_methods_on_five_datasets_over_ten_splits_and_three_datasets_in_the_text() -> None:
    stored = real().groupby(["protocol", "dataset"]).agg({"method": "nunique", "split": "nunique"})
    assert (stored["split"] == 10).all()
    assert (stored.loc["reference", "method"] == 8).all()
    assert set(stored.index) == set(CASES)


@pytest.fixture(scope="module")
def levels() -> pd.Series:
    own = real()[(real()["method"] == "frhsic") & (real()["threshold_permutation"] > 0)]
    return own.groupby(["protocol", "dataset", "lam"])["level_released"].mean()


def test_the_released_test_errs_by_a_factor_of_up_to_three_to_both_sides(levels) -> None:
    assert 0.05 / 3.5 < levels["reference"].min() < 0.05 / 2
    assert 0.13 < levels["reference"].max() < 0.17
    assert levels["text", "adult"].min() < 0.01


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("test", TESTS)
def test_the_tests_agree_where_there_is_nothing_to_select(case: tuple[str, str], test: str) -> None:
    share = (chosen(*case, test) == chosen(*case, "permutation")).mean()
    assert share >= (0.3 if case in SMALL else 0.9)


def test_the_range_of_the_released_tests_selections() -> None:
    crime, compas = (chosen("text", name, "released") for name in ("crime", "compas"))
    found = np.concatenate([crime, compas])
    assert (found[found > 0].min(), found.max()) == (5, 100)
    assert ((crime < 0).sum(), (compas < 0).sum()) == (0, 4)


@pytest.mark.parametrize(("protocol", "permuted"), [("reference", 0.5), ("text", 0.25)])
def test_fewer_than_half_of_the_selected_models_keep_performance(
    protocol: str, permuted: float
) -> None:
    assert kept_share(protocol, "released") < 0.5
    assert kept_share(protocol, "permutation") == permuted


@pytest.mark.parametrize("protocol", ["reference", "text"])
def test_on_adult_the_probe_reads_about_half_of_what_it_reads_without_a_penalty(
    protocol: str,
) -> None:
    last = part(protocol, "adult").query(LAST)
    inside = last[last["ratio"] <= 3] if protocol == "reference" else last
    plain = part(protocol, "adult").query("method == 'unfair'")["nonlinear_r2"].mean()
    assert 0.4 < inside["nonlinear_r2"].mean() / plain < 0.65


def test_on_adult_some_runs_escape_and_keep_their_gdp() -> None:
    """By the released code; the paper's estimator gives two to thirteen times our value."""
    last = part("reference", "adult").query(LAST)
    plain = part("reference", "adult").query("method == 'unfair'")
    escaped = last["ratio"] > 3
    assert 0 < escaped.sum() < 5
    assert last.loc[escaped, "gdp_sample"].min() > 0.5 * plain["gdp_sample"].mean()
    assert last.loc[~escaped, "gdp_sample"].max() < 0.4 * plain["gdp_sample"].mean()
    columns = ["gdp_reference", "gdp_sample"]
    means = real().query("method == 'unfair'").groupby(["protocol", "dataset"])[columns].mean()
    ratio = means["gdp_reference"] / means["gdp_sample"]
    assert (round(ratio.min()), round(ratio.max())) == (2, 13)


@pytest.mark.parametrize("case", CASES)
def test_the_variant_keeps_performance_more_often_than_not_except_on_crime(
    case: tuple[str, str],
) -> None:
    found = summary(*case, epsilon=1e-3)
    assert (found["kept"] > 0.5 * found["found"]) == (case[1] != "crime")


@pytest.mark.parametrize("case", [case for case in CASES if case[1] in ("adult", "compas")])
def test_on_adult_and_compas_the_variant_stops_where_gdp_is_still_most_of_unfairs(
    case: tuple[str, str],
) -> None:
    unfair = part(*case).query("method == 'unfair'")["gdp_reference"].mean()
    assert summary(*case, epsilon=1e-3)["gdp"] > 0.8 * unfair


def test_the_matched_lambda_of_one_part_is_not_that_of_the_other() -> None:
    table = chosen_elsewhere(real()[real()["protocol"] == "reference"])
    assert table["method"].nunique() == 7
    assert table.groupby("method")["outside"].mean().between(0.15, 0.35).all()
    same = table.groupby("dataset")["same"].mean()
    assert same["adult"] > 0.7
    assert same.drop("adult").max() < 0.6


def test_stored_adult_is_rejected_on_a_thousand_rows_already_while_z_still_holds_s() -> None:
    reference, text = (
        part(name, "adult").query("method == 'frhsic'") for name in ("reference", "text")
    )
    assert all((rows["validation_rows"] == 1000).all() for rows in (reference, text))
    for test in TESTS:
        assert not accepted(reference, test=test).any()
        assert set(text.loc[accepted(text, test=test), "lam"]) == {100.0}
    last = text[text["lam"] == 500.0]
    assert last["gdp_reference"].mean() < 0.05
    assert last["nonlinear_r2"].mean() > 0.2


def test_none_of_the_six_models_that_the_authors_selected_is_within_one_per_cent() -> None:
    """Compared with their own model at the smallest λ, which stands for Unfair in their file."""
    theirs = authors_file("lambda_selection")
    lost = []
    for (dataset, _), part in theirs[theirs["dataset"] != "adult"].groupby(["dataset", "repeat"]):
        own = part.set_index("lambda")["perf"]
        ratio = own[part["selected_lambda"].iloc[0]] / own[0.01]
        lost.append(ratio - 1 if dataset == "crime" else 1 - ratio)
    assert len(lost) == 6
    assert min(lost) > 0.01
