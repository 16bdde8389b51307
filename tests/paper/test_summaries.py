"""The summaries of the datasets, which the book shows instead of the data."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from frhsic_core.data import Dataset, Provenance
from frhsic_core.paper.datasets import VARIANTS, recipe_of
from frhsic_core.paper.summaries import live_summary, load_summary, summarize
from frhsic_core.registry import PAPER_DATASETS

STORED = Path(__file__).parents[2] / "book" / "data_summaries"
CASES = [(name, variant) for name in PAPER_DATASETS for variant in VARIANTS]


def test_a_summary_against_plain_numpy() -> None:
    rng = np.random.RandomState(0)
    s = rng.randint(18, 60, size=500)
    x = np.column_stack([s + rng.normal(0, 5, 500), rng.normal(size=500), np.ones(500)])
    y = (rng.uniform(size=500) < s / 80).astype(float)
    summary = summarize(Dataset("toy", x, s, y, "classification", tuple("abc"), ("s",), Provenance("toy", "made")))
    assert summary["correlation"] == pytest.approx(
        ((s - s.mean()) * (y - y.mean())).mean() / s.std() / y.std(), abs=1e-4
    )
    expected = {"min": 18, "max": 59, "mean": s.mean(), "sd": s.std(), "distinct": len(set(s))}
    assert summary["s"] == pytest.approx(expected, abs=1e-4)
    assert (summary["n"], summary["d"], summary["y"]["mean"]) == (500, 3, pytest.approx(y.mean()))


@pytest.mark.parametrize(("name", "variant"), CASES)
def test_every_summary_is_stored(name: str, variant: str) -> None:
    summary = load_summary(name, variant, folder=STORED)
    assert (summary["name"], summary["variant"]) == (name, variant)
    assert summary["sensitive"] == recipe_of(name, variant).sensitive


@pytest.mark.data
@pytest.mark.parametrize(("name", "variant"), CASES)
def test_stored_summaries_are_those_of_the_data(name: str, variant: str) -> None:
    live = live_summary(name, variant)
    assert live is not None
    stored = load_summary(name, variant, folder=STORED)
    for key in ("s", "y"):
        assert stored.pop(key) == pytest.approx(live.pop(key), abs=2e-4)
    assert stored.pop("correlation") == pytest.approx(live.pop("correlation"), abs=2e-4)
    assert stored == live
