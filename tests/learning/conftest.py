"""Data that several tests of learning share."""

from __future__ import annotations

import numpy as np
import pytest


@pytest.fixture
def toy() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(7)
    s = rng.uniform(20, 70, size=400)
    X = np.column_stack([s / 25 + 0.5 * rng.normal(size=400), 3 * rng.normal(size=400), rng.normal(size=400)])
    y = np.where(X[:, 0] + X[:, 1] / 3 + 0.3 * rng.normal(size=400) > 2, "yes", "no")
    return X, y, s
