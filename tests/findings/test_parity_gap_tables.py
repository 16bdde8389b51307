"""What the chapter ``parity_gap`` states about the stored results of its tables."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from frhsic_core.paper.experiments import bound_tightness
from frhsic_core.paper.experiments.bound_tightness.tables import (
    TRIVIAL,
    slopes,
    with_bounds,
)
from frhsic_core.paper.runs.stored import book_folder, stored_provenance, stored_rows


def test_stored_bounds_hold_and_say_nothing_at_the_cut_off() -> None:
    rows = stored_rows("bound_tightness").query("method == 'frhsic'")
    for kernel in ("unit", "median"):
        found = with_bounds(rows, kernel=kernel)
        assert (found["projected"] <= found["right_64"]).all()
        assert (found["left_max"] <= found["right_64"]).all()  # observed, not implied
        assert (found["right_64"] > found["left"]).all()
        assert np.log10(found["right_64"] / found["left"]).min() > 3
        assert (found["best_coco"] <= found["best_hsic"] * (1 + 1e-6)).all()
    assert (with_bounds(rows, kernel="median")["right_64"] > TRIVIAL).all()
    theirs = pd.read_csv(book_folder("claims", "authors", "bound_tightness.csv"))
    assert (theirs["rhs_bound"] > TRIVIAL).all()


def test_stored_smallest_eigenvalues() -> None:
    rows = stored_rows("bandwidth_scaling")
    exact = rows[rows["precision"] == "exact"]
    assert (exact["log10_smallest_upper"] - exact["log10_smallest"]).max() < 1e-3
    assert exact["log10_smallest"].max() < -50
    found = slopes(rows)
    ranks = exact.groupby(["dataset", "variant"])["kept"].first()
    for key, rank in ranks.items():
        assert found[(*key, "exact", "none")] == pytest.approx(-2 * rank, rel=0.01)
    for dataset in ("adult", "crime"):
        assert abs(found[dataset, "reference", "float64", "relative"]) < 0.5
        assert 0.5 < abs(found[dataset, "reference", "float32", "relative"]) < 2.0
    kept = rows[(rows["precision"] == "float64") & (rows["cut"] == "relative") & (rows["dataset"] == "adult")]
    assert not kept.sort_values("sigma")["log10_smallest"].is_monotonic_decreasing


def test_stored_spectrum_ends_at_the_enclosed_smallest() -> None:
    rows = stored_rows("bandwidth_scaling")
    ends = rows[rows["what"] == "spectrum"].groupby("sigma")["log10_exact"].min()
    exact = rows[(rows["precision"] == "exact") & (rows["dataset"] == "adult")].set_index("sigma")["log10_smallest"]
    assert len(ends) == 3
    for sigma, value in ends.items():
        assert value == pytest.approx(exact[sigma], abs=1e-3)
    side = stored_provenance("bandwidth_scaling")
    assert len(side["units"]) == len(bound_tightness.plan_bandwidth_scaling("full").units)
