"""The audits of the example datasets: a smoke run, and the curve that comes back from its rows."""

from __future__ import annotations

import numpy as np
import pytest

from frhsic_core import gdp_curve
from frhsic_core.paper.experiments import audit_examples, experiment_for
from frhsic_core.paper.runs.jobs import run_job


def test_a_small_audit_comes_back_from_its_rows() -> None:
    (unit,) = experiment_for("audit_examples", "smoke").jobs
    curve = audit_examples.stored_curve(run_job(unit, device="cpu").rows, "synthetic")
    assert curve.rows.min() >= audit_examples.LEAST_ROWS
    assert curve.n == 30


def test_joined_bins_keep_every_row() -> None:
    generator = np.random.default_rng(0)
    s = np.round(generator.normal(40, 15, 700))
    curve = gdp_curve(np.tanh(s / 50), s)
    joined = audit_examples.joined(curve)
    # A bin ends with the row that makes it large enough; the last one takes what is left.
    below = np.cumsum(curve.rows)
    ends = [int(below.searchsorted(20))]
    while (end := int(below.searchsorted(below[ends[-1]] + 20))) < len(below):
        ends.append(end)
    assert np.cumsum(joined.rows)[:-1].tolist() == below[ends[:-1]].tolist()
    assert joined.rows.sum() == 700
    assert joined.share.sum() == pytest.approx(1.0)
    assert joined.share @ joined.mean == pytest.approx(curve.share @ curve.mean)
    assert joined.gdp == curve.gdp
