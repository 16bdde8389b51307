"""Guards the sentences of the chapter on high-dimensional attributes."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from frhsic_core.paper.experiments.cost.tables import seconds_table, speed_up
from frhsic_core.paper.experiments.high_dimensional import COORDINATES, best_smoothing
from frhsic_core.paper.runs.stored import stored_rows

DIMENSIONS = range(1, 6)
UNBIASED = ("hsic_unbiased", "median")
BIASED = ("hsic_biased", "median")
BIASED_ONE = ("hsic_biased", "one")
EIPM = ("eipm", "0.5")


@pytest.fixture(scope="module")
def timed() -> pd.DataFrame:
    return stored_rows("cost")


@pytest.fixture(scope="module")
def rows() -> pd.DataFrame:
    return stored_rows("high_dimensional")


def test_no_form_has_a_trend_in_d(timed) -> None:
    times = seconds_table(timed, part="dimension", by="d")
    times = times[times["device"] == "cuda"].astype({"d": int})
    wide = times.pivot(index=["mode", "method", "form"], columns="d", values="median")
    assert len(wide) > 0
    assert (wide.max(axis=1) < 1.5 * wide.min(axis=1)).all()
    assert (wide[5] / wide[1]).between(0.7, 1.3).all()


@pytest.fixture(scope="module")
def ratio(timed):
    """Return the median epoch of FREM over that of FRHSIC, for each dimension."""

    def of(frem: str, frhsic: str, device: str, mode: str = "eager") -> pd.Series:
        pair = ("frem", frem), ("frhsic", frhsic)
        options = {"device": device, "mode": mode, "part": "dimension"}
        return pd.Series({d: speed_up(timed, *pair, at={"d": d}, **options)[0] for d in DIMENSIONS})

    return of


def test_plain_frem_takes_two_to_three_times_as_long_on_a_cpu_and_five_to_seven_on_a_gpu(ratio) -> None:
    assert ratio("loop, 32 anchors", "plain, centred", "cpu").between(2, 3).all()
    assert ratio("loop, 32 anchors", "plain, centred", "cuda").between(5, 7).all()


@pytest.mark.parametrize("mode", ["eager", "captured"])
@pytest.mark.parametrize("form", ["library, 32 anchors", "library, all anchors"])
def test_without_the_loop_frem_takes_about_as_long(ratio, form: str, mode: str) -> None:
    assert ratio(form, "library", "cuda", mode).between(0.85, 1.5).all()


@pytest.fixture(scope="module")
def estimates(rows):
    """Return an estimator's rows in n and p, at correlation one half or at independence."""
    found = rows[rows["part"] == "error"].dropna(axis=1, how="all")

    def of(key: tuple[str, str], n: int, rho: float = 0.5) -> pd.DataFrame:
        estimator, rule = key
        chosen = (found["estimator"] == estimator) & (found["rule"] == rule) & (found["n"] == n)
        return found[chosen & (found["rho"] == rho)].set_index("p").sort_index()

    return of


def test_smoothing_over_a_vector_takes_its_own_variance_for_dependence(estimates) -> None:
    part = estimates(EIPM, 256)
    share = part["mean"] / part["truth"]
    assert share[1] < 1
    assert share[5] > 1.3
    assert share[12] > 2


def test_the_unbiased_hsic_has_its_mean_at_the_truth_and_an_even_relative_spread(estimates) -> None:
    part = estimates(UNBIASED, 256)
    error = part["sd"] / np.sqrt(part["replications"])
    assert ((part["mean"] - part["truth"]).abs() < 4 * error).all()
    spread = part["sd"] / part["truth"]
    assert spread[12] < 1.3 * spread[1]


@pytest.fixture(scope="module")
def floor(estimates):
    """Return the mean at independence over the mean at correlation one half, by p."""
    return lambda key: estimates(key, 256, 0.0)["mean"] / estimates(key, 256)["mean"]


def test_the_biased_hsic_is_mostly_floor_at_bandwidth_one_and_less_at_the_median(floor) -> None:
    assert floor(BIASED_ONE)[8] > 0.75
    assert floor(BIASED)[8] < 0.4
    assert floor(BIASED).is_monotonic_increasing
    assert floor(BIASED_ONE).is_monotonic_increasing


def test_eipm_is_nearly_the_same_with_and_without_dependence(floor) -> None:
    assert floor(EIPM)[5] > 0.8
    assert floor(EIPM)[8] > 0.93


def test_power_falls_with_p_and_hsics_less_than_eipms(rows) -> None:
    tests = rows[(rows["part"] == "power") & (rows["rho"] > 0)]
    powers = tests.set_index(["estimator", "rule", "p"])["power"].sort_index()
    assert powers["hsic", "median", 12] > 2.5 * powers["eipm", "0.5", 12]
    assert powers["hsic", "median", 12] < powers["hsic", "median", 1]


def test_the_oracle_chooses_for_every_number_of_coordinates(rows) -> None:
    best = best_smoothing(rows[rows["part"] == "error"], "eipm_distinct")
    assert set(best["p"]) == set(COORDINATES)


def test_most_pairs_of_people_agree_in_capital_gain_and_loss(rows) -> None:
    columns = rows[rows["part"] == "columns"].set_index("attribute")
    assert (columns.loc[["capital-gain", "capital-loss"], "agree"] > 0.5).all()
    assert (columns["sd"] < 0.5).all()
