"""Guards the sentences of the chapter on the bandwidth trap."""

from __future__ import annotations

import json

import pandas as pd
import pytest

from frhsic_core.learning import FRHSIC
from frhsic_core.learning.bandwidth import resolve_policy
from frhsic_core.learning.penalties.base import RIDGE
from frhsic_core.paper.runs.stored import book_folder, stored_rows


@pytest.fixture(scope="module")
def summary() -> pd.DataFrame:
    """Return, for each form, policy and ridge (in millionths), in how many of ten runs something happened."""
    runs = stored_rows("bandwidth_policies")
    adult = json.loads(book_folder("data_summaries", "adult-reference.json").read_text(encoding="utf-8"))
    outside = ~runs["ratio"].between(1 / 3, 3)
    runs = runs.assign(
        outside=outside,
        once=outside | (runs["peak_ratio"] > 3),
        constant=runs["accuracy"] < 1 - adult["y"]["mean"] + 0.005,
        ridge=(1e6 * runs["ridge"]).round().fillna(0).astype(int),
        runs=1,
    )
    by = runs.groupby(["form", "policy", "ridge"])
    return by[["runs", "outside", "once", "constant"]].sum().assign(probe=by["probe_r2"].median())


def test_ten_runs_of_each_setting(summary) -> None:
    assert (summary["runs"] == 10).all()


def test_the_estimators_default_at_500_is_never_outside_and_always_constant(summary) -> None:
    narrow = summary.loc["the estimators' default"]
    assert (narrow["once"] == 0).all()
    assert (narrow["constant"] == 10).all()


def test_the_published_form_leaves_its_kernels_range_or_collapses_under_every_policy(summary) -> None:
    biased = summary.loc["biased"]
    assert ((biased["outside"] == 10) | (biased["constant"] == 10)).all()


def test_the_default_form_stays_in_range_in_every_epoch_and_keeps_the_task(summary) -> None:
    default = FRHSIC(estimator="normalized", on="representation")
    assert (default.scale, default.estimator) == ("whiten", "normalized")
    policy = next(p for p in ("every_batch", "moving_average") if resolve_policy(p) == default.policy)
    own = summary.loc[("normalized, Z whitened", policy, round(1e6 * RIDGE))]
    assert own["once"] == own["constant"] == 0


def test_of_the_calm_forms_a_whitened_one_gives_the_probe_least(summary) -> None:
    calm = summary[(summary["outside"] == 0) & (summary["constant"] == 0)]
    assert calm["probe"].idxmin()[0] == "normalized, Z whitened"


def test_standardized_z_does_not_stay_in_range(summary) -> None:
    plain = summary.loc[("normalized, Z standardised", "every_batch", 0)]
    assert plain["outside"] > 5
    assert plain["once"] == 10
