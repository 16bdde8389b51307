"""The matched point and nAUP: by hand, by brute force, and against the 35 and 40 rows the paper prints."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pandas as pd
import pytest

from frhsic_core.paper.experiments import GRIDS
from frhsic_core.paper.experiments.comparison import (
    Frontiers,
    matched_index,
    named,
    naup,
    on_grid,
)
from frhsic_core.paper.experiments.main import MAIN_METHODS, beside_paper, pareto_table
from frhsic_core.paper.stored import reference_sweep


def brute_force(performance, dependence, unfair_performance, unfair_dependence, *, higher):
    """Return nAUP by plain loops over one comparison, points as lists of methods of λ."""
    sign = 1 if higher else -1
    utilities = [sign * p for row in performance for p in row if p == p] + [
        sign * unfair_performance
    ]
    low, high = min(utilities), max(utilities)
    found = []
    for row_p, row_d in zip(performance, dependence, strict=True):
        heights = []
        for step in range(201):
            inside = [
                (sign * p - low) / (high - low)
                for p, d in zip(row_p, row_d, strict=True)
                if p == p and min(max(d / unfair_dependence, 0.0), 1.0) <= step / 200 + 1e-15
            ]
            heights.append(max(inside, default=0.0))
        found.append(sum((a + b) / 2 / 200 for a, b in pairwise(heights)))
    return found


@pytest.mark.parametrize("higher", [True, False])
def test_area_is_that_of_plain_loops(higher: bool) -> None:
    rng = np.random.default_rng(0)
    performance, dependence = rng.uniform(0.5, 0.9, (4, 3, 6)), rng.uniform(-0.1, 1.3, (4, 3, 6))
    performance[:, 1, 4:], dependence[:, 1, 4:] = np.nan, np.nan
    unfair_performance, unfair_dependence = rng.uniform(0.8, 0.95, 4), rng.uniform(0.5, 1.0, 4)
    found = naup(performance, dependence, unfair_performance, unfair_dependence, higher=higher)
    for i in range(4):
        expected = brute_force(
            performance[i].tolist(),
            dependence[i].tolist(),
            unfair_performance[i],
            unfair_dependence[i],
            higher=higher,
        )
        np.testing.assert_allclose(found[i], expected, atol=1e-12)


def test_an_area_grows_with_the_grid_which_is_why_unequal_grids_are_refused() -> None:
    rows = reference_sweep()
    adult = rows[rows["dataset"] == "adult"]
    with pytest.raises(ValueError, match=r"number of λ: frem 9, .*frhsic 18\).*on_grid"):
        Frontiers.from_rows(adult)
    dense = Frontiers.from_rows(adult, methods=MAIN_METHODS, unequal_grids=True).areas()[0]
    common = Frontiers.from_rows(on_grid(adult, GRIDS["full"]), methods=MAIN_METHODS).areas()[0]
    assert round(dense, 3) == 0.786
    assert round(common, 3) == 0.743


def test_matched_point_keeps_to_the_band_and_its_edge_belongs_to_it() -> None:
    accuracy, parity = np.array([0.85, 0.8416, 0.8414, 0.7]), np.array([0.7, 0.5, 0.2, 0.0])
    assert matched_index(accuracy, parity, 0.85, higher=True) == 1
    assert matched_index(accuracy, parity, 0.95, higher=True) == -1
    error = np.array([0.0190, 0.0192, 0.0195])
    assert matched_index(error, np.array([3.0, 2.0, 1.0]), 0.0191, higher=False) == 1
    assert matched_index(accuracy, np.array([np.nan, 0.5, 0.2, 0.0]), 0.85, higher=True) == 1
    inside = np.array([0.99, 1.0])
    assert matched_index(inside, np.array([0.1, 0.5]), 1.0, higher=True) == 0
    assert matched_index(np.array([1.01, 1.0]), np.array([0.1, 0.5]), 1.0, higher=False) == 0
    assert matched_index(inside, np.array([0.1, 0.5]), 1.0, higher=True, band=0.005) == 1


def test_summary_by_hand() -> None:
    """Two splits: means, and standard deviations with divisor n, of Unfair and of the matched point."""
    rows = sweep_of(2, 0.01, seed=4)
    summary = Frontiers.from_rows(rows).summary(resamples=400).set_index("method")
    for method, lam in (("unfair", 0.0), ("frhsic", summary.loc["frhsic", "lam"])):
        mine = rows[(rows["method"] == method) & (rows["lam"] == lam)].sort_values("split")
        for name, column in (("performance", "performance"), ("dependence", "gdp_reference")):
            first, second = mine[column]
            assert summary.loc[method, name] == pytest.approx((first + second) / 2)
            assert summary.loc[method, f"{name}_sd"] == pytest.approx(abs(first - second) / 2)
    sweep = Frontiers.from_rows(rows)
    single = sweep.areas(np.eye(2))
    # Of two splits a resample is the first twice, both, or the second twice, with probabilities 1/4, 1/2, 1/4.
    three = [single[0, 0], single[1, 0], sweep.areas()[0]]
    assert summary.loc["frhsic", "naup_low"] == pytest.approx(min(three))
    assert summary.loc["frhsic", "naup_high"] == pytest.approx(max(three))


def test_the_interval_of_the_area_is_a_percentile_bootstrap() -> None:
    sweep = Frontiers.from_rows(sweep_of(7, 0.02, seed=5))
    found = sweep.summary(resamples=500).set_index("method").loc["frhsic"]
    rng = np.random.default_rng(0)
    areas = [
        sweep.areas(np.bincount(rng.integers(7, size=7), minlength=7) / 7)[0] for _ in range(4000)
    ]
    low, inner_low, inner_high, high = np.quantile(areas, [0.025, 0.1, 0.9, 0.975])
    step = (inner_low - low) / 2
    assert found["naup_low"] == pytest.approx(low, abs=step)
    assert found["naup_high"] == pytest.approx(high, abs=(high - inner_high) / 2)


def test_error_is_better_when_lower_in_a_regression() -> None:
    rows = sweep_of(2, 0.0)
    assert Frontiers.from_rows(rows).higher
    assert not Frontiers.from_rows(rows.assign(task="regression")).higher


def test_grid_and_names() -> None:
    rows = sweep_of(2, 0.0)
    assert len(on_grid(rows, [10.0])) == 2 + 2 * 2
    assert on_grid(rows, None) is rows
    option = rows.assign(option=np.where(rows["method"] == "frem", "x", ""))
    assert set(named(option)["name"]) == {"unfair", "frhsic", "frem:x"}


def sweep_of(splits: int, noise: float, seed: int = 0) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    lines = []
    for split in range(splits):
        lines.append(
            ("unfair", 0.0, split, 0.85 + noise * rng.normal(), 0.7 + noise * rng.normal())
        )
        for i, method in enumerate(("frhsic", "frem")):
            for j, lam in enumerate((1.0, 10.0, 100.0)):
                performance = 0.85 - 0.02 * j - 0.01 * i + noise * rng.normal()
                lines.append(
                    (method, lam, split, performance, 0.6 / (j + 1) + noise * rng.normal())
                )
    frame = pd.DataFrame(lines, columns=["method", "lam", "split", "performance", "gdp_reference"])
    return frame.assign(task="classification")


def test_only_splits_that_every_model_has_are_compared() -> None:
    rows = sweep_of(4, 0.01)
    rows = rows[~((rows["method"] == "frem") & (rows["lam"] == 10.0) & (rows["split"] == 3))]
    assert Frontiers.from_rows(rows).splits == 3


def test_errors_say_what_is_missing() -> None:
    rows = sweep_of(2, 0.0)
    for without in (rows[rows["method"] != "unfair"], rows[:0].assign(task="classification")):
        with pytest.raises(ValueError, match="no rows of 'unfair'"):
            Frontiers.from_rows(without)
    with pytest.raises(ValueError, match="nothing to compare"):
        Frontiers.from_rows(rows[rows["method"] == "unfair"])
    lonely = pd.concat(
        [
            rows[(rows["method"] == "unfair") & (rows["split"] == 0)],
            rows[rows["split"] == 1].iloc[1:],
        ]
    )
    with pytest.raises(ValueError, match="every model"):
        Frontiers.from_rows(lonely)


def test_printed_numbers_stand_beside_the_right_lines() -> None:
    table = pareto_table(reference_sweep(), unequal_grids=True, resamples=1)
    other = table.assign(variant=np.where(table["dataset"] == "crime", "text", table["variant"]))
    joined, foreign = beside_paper(table), beside_paper(other)
    assert len(joined) == len(table)
    line = joined[(joined["dataset"] == "crime") & (joined["method"] == "frem")].iloc[0]
    assert (line["paper_performance"], line["paper_dependence"], line["paper_naup"]) == (
        0.0187,
        0.023,
        0.680,
    )
    dcor = joined[(joined["dataset"] == "adult") & (joined["method"] == "dcor")].iloc[0]
    assert dcor["paper_dependence"] == 0.194
    assert np.isnan(dcor["paper_naup"])
    assert foreign.loc[foreign["dataset"] == "crime", "paper_dependence"].isna().all()
    assert foreign.loc[foreign["dataset"] == "adult", "paper_dependence"].notna().all()
