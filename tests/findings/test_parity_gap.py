"""Guards the checked sentences of the chapter on what a small HSIC promises for a score."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from samples import stored

from frhsic_core.laws import FiniteLaw
from frhsic_core.paper.experiments.bound_tightness import (
    TRIVIAL,
    bound_curves,
    slopes,
    with_bounds,
)
from frhsic_core.paper.stored import book_folder, stored_rows

rows = stored("bound_tightness")


def test_the_four_people_have_the_numbers_of_the_text(printed) -> None:
    """HSIC is 1/64, and the first direction resolves .0474 of the variance .05."""
    gram = [[1, 0.5, 0, 0], [0.5, 1, 0.5, 0], [0, 0.5, 1, 0.5], [0, 0, 0.5, 1]]
    scores, law = (
        np.outer(*[[-0.3, -0.1, 0.1, 0.3]] * 2),
        FiniteLaw(range(4), range(4), np.eye(4) / 4),
    )
    hsic, (values, functions) = law.hsic(scores, gram), law.mercer(gram, centered=True)
    resolved, *_ = law.delta_coefficients(scores, gram, centered=True)
    assert (hsic, scores.trace() / 4) == (pytest.approx(1 / 64), pytest.approx(0.05))
    shown = [
        f"/n={resolved:.4f}$",
        f"${resolved * np.abs(functions[:, 0]).mean() ** 2:.4f}\\le{resolved:.4f}\\le",
    ]
    shown += [
        f"{values[0]:.4f}={hsic / values[0]:.4f}$",
        f"{values[2]:.5f}={hsic / values[2]:.3f}$",
    ]
    assert [
        words for words in shown if words.replace("0.", ".") not in printed.text("parity_gap")
    ] == []


@pytest.fixture(scope="module")
def frhsic(rows) -> pd.DataFrame:
    return rows[rows["method"] == "frhsic"]


@pytest.fixture(scope="module")
def sides(frhsic) -> dict[str, pd.DataFrame]:
    authors = pd.read_csv(book_folder("claims", "authors", "bound_tightness.csv"))
    names = {"lhs_max": "left_max", "rhs_bound": "right_64", "lhs_mean": "left"}
    ours = {kernel: with_bounds(frhsic, kernel=kernel) for kernel in ("unit", "median")}
    return ours | {"authors": authors.rename(columns=names)}


@pytest.mark.parametrize("runs", ["unit", "median", "authors"])
def test_the_right_side_lies_above_the_left_everywhere(sides, runs: str) -> None:
    """The left side is the largest variance of a head, so that no bound is below the mean one either."""
    assert (sides[runs]["left"] <= sides[runs]["left_max"]).all()
    assert (sides[runs]["left_max"] <= sides[runs]["right_64"]).all()


def test_the_bound_is_vacuous_for_every_model_at_the_median_bandwidth_and_nine_in_ten_at_one(
    sides,
) -> None:
    assert (sides["median"]["right_64"] >= TRIVIAL).all()
    assert (sides["authors"]["right_64"] >= TRIVIAL).all()
    below = sides["unit"][sides["unit"]["right_64"] < TRIVIAL]
    assert 0.05 < len(below) / len(sides["unit"]) < 0.12
    assert (below["left"] < 1e-4).all()  # the exceptions have a collapsed Z


@pytest.mark.parametrize("kernel", ["unit", "median"])
def test_the_bound_is_informative_for_one_to_four_directions_and_for_none_where_z_collapsed(
    frhsic, kernel
) -> None:
    curves = bound_curves(frhsic, kernel=kernel).xs(
        ("reference", 300.0), level=["protocol", "test_rows"]
    )
    assert (curves["resolved"] <= curves["theorem"] * (1 + 1e-5)).all()
    count = (curves["theorem"] < curves["left"]).groupby(["dataset", "lam"]).sum()
    collapsed = curves["left"].groupby(["dataset", "lam"]).first() < 1e-4
    assert count[~collapsed].between(1, 4).all()
    assert (count[collapsed] == 0).all()
    assert collapsed.any() == (kernel == "unit")


@pytest.fixture(scope="module")
def logs() -> pd.DataFrame:
    """Return log₁₀ of the smallest eigenvalue and how many are kept, for each dataset, bandwidth and precision."""
    columns = ["log10_smallest", "log10_largest", "kept"]
    return stored_rows("bandwidth_scaling").pivot(
        index=["dataset", "sigma"], columns="precision", values=columns
    )


@pytest.fixture(scope="module")
def authors() -> pd.DataFrame:
    return pd.read_csv(book_folder("claims", "authors", "lambda2_vs_sigma.csv"))


def test_the_smallest_eigenvalue_is_smaller_by_tens_to_hundreds_of_orders_of_magnitude(
    logs, authors
) -> None:
    assert logs[("log10_smallest", "exact")].between(-500, -50).all()
    assert np.log10(authors["hat_lambda_S"]).between(-10, -6).all()
    largest = 10 ** logs[("log10_largest", "exact")].unstack("sigma")[[0.1, 10.0]]
    assert np.allclose(largest / [0.25, 0.0003], 1, atol=0.2)


def test_in_float32_the_rank_rises_again_past_what_distinct_values_allow(logs) -> None:
    for _, part in logs["kept"].groupby(level="dataset"):
        assert part["float32"].iloc[-1] > part["float32"].iloc[-2]
        assert part["float32"].iloc[-1] > part["exact"].iloc[-1]


@pytest.fixture(scope="module")
def fitted() -> pd.DataFrame:
    """Return the slopes in σ, a row for each dataset, a column for each way of computing."""
    return slopes(stored_rows("bandwidth_scaling")).unstack("precision")


def test_the_exact_eigenvalue_falls_with_minus_twice_the_rank(fitted, logs) -> None:
    rank = logs[("kept", "exact")].groupby(level="dataset").first()
    assert np.allclose(-fitted["exact"], 2 * rank.loc[fitted.index], rtol=0.01)


def test_slopes_in_float64_are_not_within_a_factor_of_two_of_minus_one(fitted) -> None:
    assert (fitted["float64"].abs() < 0.5).all()


def test_the_authors_slopes_are_near_float32_and_far_from_float64(fitted, authors) -> None:
    theirs = authors.groupby("dataset")["slope_stored"].first()
    ours = fitted.loc[theirs.index]
    assert ((theirs - ours["float32"]).abs() < 0.25).all()
    assert ((theirs - ours["float64"]).abs() > 1).all()
