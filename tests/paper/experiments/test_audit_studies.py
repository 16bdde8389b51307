"""The two studies of the audit: their plans, a smoke run, and the curve that comes back from its rows."""

from __future__ import annotations

from pathlib import Path
from types import ModuleType

import numpy as np
import pytest
from scipy.stats import binom

from frhsic_core.audit.curve import cut, fit_curve
from frhsic_core.paper.experiments import audit_coverage, audit_examples
from frhsic_core.paper.runs.runner import run_experiment
from frhsic_core.paper.runs.store import ResultStore
from frhsic_core.paper.runs.stored import stored_rows


@pytest.mark.parametrize("module", [audit_coverage, audit_examples])
def test_a_smoke_run(tmp_path: Path, module: ModuleType) -> None:
    study = module.plan("smoke")
    store = ResultStore(tmp_path, study.name)
    assert not run_experiment(study, store, device="cpu", threads=1).failed
    rows = store.read()
    if module is audit_coverage:
        found = audit_coverage.coverage(rows)
        assert found["band"].between(found["band_low"], found["band_high"]).all()
        assert set(audit_coverage.levels(rows)["test"]) == {"test", "given"}
    else:
        curve = audit_examples.stored_curve(rows, "people")
        assert curve.rows.min() >= audit_examples.LEAST_ROWS
        assert curve.n == 200


def test_joined_bins_keep_every_row() -> None:
    generator = np.random.default_rng(0)
    s = np.round(generator.normal(40, 15, 700))
    curve = fit_curve(np.tanh(s / 50), cut(s))
    joined = audit_examples.joined(curve)
    assert joined.rows.min() >= audit_examples.LEAST_ROWS
    assert joined.rows.sum() == 700
    assert joined.share.sum() == pytest.approx(1.0)
    assert joined.share @ joined.mean == pytest.approx(curve.share @ curve.mean)
    assert joined.gdp == curve.gdp


def test_the_full_plans_have_distinct_units() -> None:
    units = audit_coverage.plan("full").units
    assert len(set(units)) == len(units)
    assert {dict(unit)["n"] for unit in units} == {200, 2000, 20_000}
    assert min(dict(unit)["draws"] for unit in units) >= 200


def test_one_combination_alone_covers_too_rarely_beyond_chance() -> None:
    rows = stored_rows("audit_coverage")
    curves = rows[rows["kind"] == "curve"].set_index(["law", "shape", "score", "n"])
    chance = binom.cdf(curves["band"], curves["draws"], audit_coverage.LEVEL) * len(curves)
    assert list(curves.index[chance < 0.05]) == [("log-normal", "wave", "probability", 200)]
