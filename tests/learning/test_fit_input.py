"""What ``fit`` checks before it trains: targets that are no numbers, and far values."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch

from frhsic_core.inputs.features import fit_scaling
from frhsic_core.inputs.fitting import require_numbers
from frhsic_core.learning import FairRegressor, Trainer, TrainingData

QUICK = {"widths": (4, 2), "epochs": 2, "batch_size": 32, "random_state": 0, "device": "cpu"}
NO_NUMBERS = {
    "text": (np.array(["low", "high"]), r"y has text \(first: 'low'\), but numbers are needed"),
    "text after a number": (np.array([1.5, "high"], dtype=object), r"text \(first: 'high'\)"),
    "numbers as text": (np.array(["1", "2"]), r"text \(first: '1'\)"),
    "bytes": (np.array([b"1", b"2"]), r"text \(first: .*1.*\)"),
    "dates": (np.array(["2020-01-02", "2021-01-02"], "M8[D]"), r"dates \(first: 2020-01-02\)"),
    "durations": (np.array([3, 4], "m8[D]"), r"dates \(first: 3 days\)"),
}
NUMBERS = {
    "floats": np.array([1.5, 2.0]),
    "whole numbers": np.array([1, 2]),
    "booleans": np.array([True, False]),
    "objects": np.array([1.5, 2], dtype=object),
    "a frame of one column": pd.DataFrame({"y": [1.0, 2.0]}),
}


@pytest.mark.parametrize("kind", NO_NUMBERS)
def test_a_target_without_numbers_is_refused(kind: str) -> None:
    y, message = NO_NUMBERS[kind]
    with pytest.raises(ValueError, match=message):
        require_numbers(y)


@pytest.mark.parametrize("kind", NUMBERS)
def test_a_target_of_numbers_is_accepted(kind: str) -> None:
    require_numbers(NUMBERS[kind])


def test_a_regressor_names_text_and_advises_a_classifier() -> None:
    X = np.random.default_rng(0).normal(size=(40, 2))
    y = np.where(X[:, 0] > 0, "yes", "no")
    with pytest.raises(ValueError, match=r"text .* or use a classifier if it has two classes"):
        FairRegressor(**QUICK).fit(X, y, sensitive_features=X[:, 1])


# Digits -------------------------------------------------------------------------------------------


def stack_of(offset: float, **options: Any) -> Trainer:
    """Return a trainer for an attribute of typical distance 12 around an offset."""
    rng = np.random.default_rng(0)
    s = rng.uniform(20, 70, size=300)
    X = np.column_stack([s / 25 + rng.normal(size=300), rng.normal(size=300)])
    y = (X.sum(1) > 2).astype(float)
    return Trainer(X, y, s + offset, epochs=1, device="cpu", widths=(4, 2), **options)


def test_an_attribute_that_float32_would_round_is_refused() -> None:
    """At 1e6 neighbors in float32 are 0.06 apart, at 1e5 0.008, and the ages differ by 12."""
    for offset in (1e6, -1e8, 1e12):
        with pytest.raises(ValueError, match=r"s has values around .* float32 has too few digits"):
            stack_of(offset)
        assert stack_of(offset, dtype=torch.float64).data.s.unique().numel() == 300
    assert stack_of(1e5).data.s.unique().numel() > 290
    assert stack_of(0.0).data.s.unique().numel() == 300


def test_columns_and_targets_that_float32_would_round_are_refused() -> None:
    rng = np.random.default_rng(0)
    x, s = rng.normal(size=(200, 2)), rng.normal(size=200)
    options = {"task": "regression", "dtype": torch.float32}
    with pytest.raises(ValueError, match=r"X has values around .* \(column 1\)"):
        TrainingData.from_arrays(x + np.array([0.0, 1e9]), s, s, **options)
    with pytest.raises(ValueError, match="y has values around"):
        TrainingData.from_arrays(x, s - 1e9, s, **options)
    with pytest.raises(ValueError, match=r"X has values up to 1.0e\+300, too large for float32"):
        TrainingData.from_arrays(np.where(x > 2.5, 1e300, x), s, s, **options)
    # Columns that are constant or have two values lose nothing; nor does one value far away.
    several = np.column_stack([np.full(200, 1e9 + 1), s > 0, np.where(np.arange(200), s, 1e30)])
    TrainingData.from_arrays(several, s, s, **options)
    # Several datasets are checked one by one.
    shifted = np.stack([s, s + 1e9])
    with pytest.raises(ValueError, match=r"s has values around 1e\+09 \(column 0\)"):
        TrainingData.from_arrays(np.stack([x, x]), np.stack([s, s]), shifted, **options)


def test_a_column_may_have_a_value_at_the_end_of_the_range() -> None:
    """Its square is no number: neither a warning nor a column without a scale may come of it."""
    X = np.zeros((8, 2))
    X[:, 0] = np.arange(8.0)
    X[0] = 1e300
    offset, scale = fit_scaling(X)
    np.testing.assert_array_equal(offset, [4.0, 0.0])
    np.testing.assert_allclose(scale[1], 2e300 * np.sqrt(7) / 8, rtol=1e-14)
