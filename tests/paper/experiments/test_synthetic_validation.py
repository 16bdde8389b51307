"""The synthetic validation and the ablations: laws, stacks of draws, tables and what the stored rows say."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import integrate, stats

from frhsic_core.data import load_dataset
from frhsic_core.data._recipes import numpy_generator
from frhsic_core.data._synthetic import classification
from frhsic_core.paper.datasets import accuracy_levels
from frhsic_core.paper.experiments.synthetic_validation import drawn_splits


def test_levels_of_the_papers_law_by_adaptive_quadrature() -> None:
    """Majority and Bayes accuracy against one-dimensional integrals over the density of X1."""

    def density(x: float) -> float:
        return float(stats.norm.cdf(x / 0.3) - stats.norm.cdf((x - 1) / 0.3))

    def probability(x: float) -> float:
        return 1 / (1 + math.exp(-x))

    share = integrate.quad(lambda x: density(x) * probability(x), -2, 3)[0]
    best = integrate.quad(
        lambda x: density(x) * max(probability(x), 1 - probability(x)), -2, 3, points=[0.0]
    )[0]
    found = accuracy_levels("paper")
    assert found["majority"] == pytest.approx(share, abs=2e-5)
    assert found["parity"] == pytest.approx(share, abs=2e-5)
    assert found["bayes"] == pytest.approx(best, abs=2e-5)


def test_levels_of_the_strong_law_by_simulation() -> None:
    table = classification(400_000, numpy_generator(1), signal="strong")
    x1, x2, y = table.columns["x1"], table.columns["x2"], table.y > 0.5
    found = accuracy_levels("strong")
    assert found["majority"] == pytest.approx(0.5, abs=1e-6)  # the law is symmetric
    assert found["parity"] == pytest.approx(((x2 > 0) == y).mean(), abs=0.003)
    assert found["bayes"] == pytest.approx(((4 * (x1 - 0.5) + 2 * x2 > 0) == y).mean(), abs=0.003)
    assert found["majority"] + 0.2 < found["parity"] < found["bayes"] - 0.05


def test_the_strong_law_changes_the_label_only() -> None:
    paper, strong = (
        load_dataset("synthetic", n=500, signal=signal) for signal in ("paper", "strong")
    )
    assert np.array_equal(paper.X, strong.X)
    assert np.array_equal(paper.s, strong.s)
    assert not np.array_equal(paper.y, strong.y)
    with pytest.raises(ValueError, match="signal"):
        load_dataset("synthetic", signal="weak")


def test_draw_42_is_the_authors_sample_cut_as_they_cut_it() -> None:
    """Unscaled, and train before test; tests/data has the facts of the released script about this sample."""
    splits, data = drawn_splits("paper", [42], n=5000, device="cpu"), load_dataset("synthetic")
    for name, whole in (("x", data.X), ("y", data.y), ("s", data.s)):
        for part, rows in (("train", slice(0, 4000)), ("test", slice(4000, 5000))):
            assert np.array_equal(
                getattr(splits, f"{name}_{part}")[0].numpy(), whole[rows].astype(np.float32)
            )
