"""The summaries of the datasets, which the book shows instead of the data."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from sklearn.linear_model import LinearRegression

from frhsic_core.data import Dataset, Provenance, load_dataset
from frhsic_core.paper.datasets import VARIANTS, recipe_of
from frhsic_core.paper.summaries import SMALLEST_CELL, differences, live_summary, load_summary, summarize
from frhsic_core.registry import PAPER_DATASETS

STORED = Path(__file__).parents[2] / "book" / "data_summaries"
CASES = [(name, variant) for name in PAPER_DATASETS for variant in VARIANTS]


def test_a_summary_against_plain_numpy_and_scikit_learn() -> None:
    rng = np.random.RandomState(0)
    s = rng.randint(18, 60, size=500)
    x = np.column_stack([s + rng.normal(0, 5, 500), rng.normal(size=500), np.ones(500)])
    y = (rng.uniform(size=500) < s / 80).astype(float)
    w = rng.randint(0, 3, size=500).astype(float)
    data = Dataset("toy", x, s, y, "classification", tuple("abc"), ("s",), Provenance("toy", "made"), weights=w)
    summary = summarize(data)
    assert summary["x_explains_s"] == pytest.approx(LinearRegression().fit(x, s).score(x, s), abs=1e-4)
    pairs = (s[:, None] == s[None, :]).mean()
    assert summary["s"]["tie_probability"] == pytest.approx(pairs, abs=1e-4)
    assert summary["bins"]["edges"][:2] == [15, 20]
    first = (s >= 20) & (s < 25)
    assert summary["bins"]["counts"][1] == first.sum()
    assert summary["bins"]["y_mean"][1] == pytest.approx(y[first].mean(), abs=1e-4)
    bins = s // 5
    gap = sum((bins == b).mean() * abs(y[bins == b].mean() - y.mean()) for b in np.unique(bins))
    assert summary["mean_gap"] == pytest.approx(gap, abs=1e-4)
    assert summary["weights"]["y_mean"] == pytest.approx(np.average(y, weights=w), abs=1e-4)
    assert summary["weights"]["share_of_zero"] == pytest.approx((w == 0).mean(), abs=1e-4)
    json.dumps(summary)


def test_a_summary_leaves_out_small_cells() -> None:
    data = load_dataset("synthetic", n=450)
    counts = summarize(data)["bins"]["counts"]
    assert None in counts
    assert min(count for count in counts if count is not None) >= SMALLEST_CELL
    with pytest.raises(ValueError, match="2 sensitive attributes"):
        summarize(load_dataset("synthetic", sensitive=("s", "x1")))


def test_differences_are_found() -> None:
    stored = {"a": 1.0, "b": [1, 2], "c": {"d": None}}
    assert differences(stored, {"a": 1.00005, "b": [1, 2], "c": {"d": None}}) == []
    assert differences(stored, {"a": 1.1, "b": [1], "c": {"d": 3}}) == [
        ".a: 1.0 stored, 1.1 now",
        ".b: [1, 2] stored, [1] now",
        ".c.d: None stored, 3 now",
    ]


@pytest.mark.parametrize(("name", "variant"), CASES)
def test_every_summary_is_stored_and_holds_aggregates_only(name: str, variant: str) -> None:
    summary = load_summary(name, variant, folder=STORED)
    assert (summary["name"], summary["variant"]) == (name, variant)
    assert summary["sensitive"] == recipe_of(name, variant).sensitive
    cells = summary["bins"]["counts"]
    assert sum(count for count in cells if count) <= summary["n"]
    assert all(count is None or count >= SMALLEST_CELL for count in cells)

    def longest(value: object) -> int:
        if isinstance(value, dict):
            return max((longest(item) for item in value.values()), default=0)
        if isinstance(value, list):
            return max([len(value), *(longest(item) for item in value)])
        return 0

    assert longest(summary) <= 22  # no list is as long as a column


@pytest.mark.data
@pytest.mark.parametrize(("name", "variant"), CASES)
def test_stored_summaries_are_those_of_the_data(name: str, variant: str) -> None:
    live = live_summary(name, variant)
    assert live is not None
    assert differences(load_summary(name, variant, folder=STORED), live) == []
