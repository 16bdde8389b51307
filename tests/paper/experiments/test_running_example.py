"""The stored people of the running example, their gauges and the two views of their clouds."""

from __future__ import annotations

import numpy as np
import pytest

from frhsic_core.paper.experiments.running_example import PENALTIES, clouds, gauges
from frhsic_core.paper.runs.stored import stored_rows


def test_gauges_are_those_of_one_model_alone() -> None:
    rows = stored_rows("running_example")
    part = rows[(rows["form"] == "paper") & rows["lam"].isin([0.0, 10.0]) & (rows["person"] < 400)]
    found = gauges(part)
    one = part[part["lam"] == 10.0]
    right = (one["score"] > 0.5) == (one["label"] == 1)
    assert found.loc[("paper", 10.0), "accuracy"] == pytest.approx(right.mean())
    # An independent R²: least squares on all people, which is at least the cross-fitted one.
    design = np.column_stack([np.ones(len(one)), one["z_1"], one["z_2"]])
    residual = one["age"] - design @ np.linalg.lstsq(design, one["age"], rcond=None)[0]
    assert found.loc[("paper", 10.0), "linear_r2"] == pytest.approx(1 - residual.var() / one["age"].var(), abs=0.03)


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
