"""The stored people of the running example, their gauges and the two views of their clouds."""

from __future__ import annotations

import numpy as np

from frhsic_core.paper.experiments.running_example import PENALTIES, clouds
from frhsic_core.paper.runs.stored import stored_rows


def test_stretched_clouds_have_variance_one_and_turn_little() -> None:
    rows = stored_rows("running_example")
    points = clouds(rows)
    lams = PENALTIES["paper"][1]
    for lam in lams:
        np.testing.assert_allclose(np.cov(points["paper", lam]["stretched"].T, bias=True), np.eye(2), atol=1e-9)
    first, second = (points["paper", lam]["stretched"] for lam in lams[2:4])
    # No other rotation or reflection brings the second cloud closer to the first.
    for angle in np.linspace(0, 2 * np.pi, 60):
        turn = np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]])
        for flip in (1.0, -1.0):
            other = second @ turn * np.array([1.0, flip])
            assert ((second - first) ** 2).sum() <= ((other - first) ** 2).sum() + 1e-6
