"""Closed-form rivals: each returns a representation and an output, and their measures are those of the sweep."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from frhsic_core.data import Dataset, Provenance, load_dataset
from frhsic_core.data.recipes import Draws
from frhsic_core.paper.datasets import gaussian_pair
from frhsic_core.paper.experiments.baselines import evaluated, measure_unit, plan
from frhsic_core.paper.experiments.presets import experiment_for
from frhsic_core.paper.runs.metrics import gdp_conventions
from frhsic_core.paper.splits import stack_splits
from frhsic_core.registry import CLOSED_FORMS, METHODS, SWEEP_DATASETS, resolve


def pair(n: int) -> Dataset:
    """Return a regression on a Gaussian pair with correlation 0.8."""
    table = gaussian_pair(n, Draws(42), rho=0.8)
    s, z = table.columns.to_numpy().T
    return Dataset("pair", z[:, None], s, z, "regression", ("z",), ("s",), Provenance("pair", table.source))


@pytest.fixture(scope="module")
def splits():
    return stack_splits(load_dataset("synthetic", n=500, signal="strong"), seeds=(42,))


def test_the_table_names_functions_and_no_trained_method() -> None:
    assert not set(CLOSED_FORMS) & set(METHODS)
    for key, row in CLOSED_FORMS.items():
        assert row.key == key
        assert callable(resolve(row.fit))


@pytest.mark.parametrize("method", [key for key in CLOSED_FORMS if key not in ("leace_z", "frrm")])
def test_the_strongest_depends_less_than_a_linear_model(splits, method: str) -> None:
    row = CLOSED_FORMS[method]
    plain = evaluated(*resolve(CLOSED_FORMS["linear"].fit)(splits, 0, 0.0), splits)
    found = evaluated(*resolve(row.fit)(splits, 0, row.strengths[-1]), splits)
    assert method == "linear" or found["gdp_sample"] < 0.8 * plain["gdp_sample"]


def test_the_bounded_ridge_is_a_regression() -> None:
    splits = stack_splits(pair(400), seeds=(42,))
    fit = resolve(CLOSED_FORMS["frrm"].fit)
    gaps = [evaluated(*fit(splits, 0, bound), splits)["gdp_sample"] for bound in (0.0, 1.0)]
    assert gaps[0] < 0.5 * gaps[1]


def test_measures_are_those_of_the_sweep(splits) -> None:
    z, output = resolve(CLOSED_FORMS["linear"].fit)(splits, 0, 0.0)
    found = evaluated(z, output, splits)
    y = splits.y_test[0].numpy()
    assert found["performance"] == pytest.approx(np.mean((output > 0) == (y > 0.5)), abs=1e-6)
    expected = gdp_conventions(torch.from_numpy(output), splits.s_test[0].double(), task="classification")
    assert found["gdp_reference"] == pytest.approx(expected["gdp_reference"].item(), rel=1e-5)


def test_the_plan_and_its_smoke_version() -> None:
    study = plan("full")
    assert {dict(unit)["dataset"] for unit in study.units} == set(SWEEP_DATASETS)
    assert {dict(unit)["dataset"] for unit in study.units if dict(unit)["method"] == "frrm"} == {"crime"}
    smoke = experiment_for("baselines", "smoke")
    rows = measure_unit(dict(smoke.units[0]), "cpu")
    assert [row["lam"] for row in rows] == [0.5, 1.0]
    assert all(np.isfinite(row["nonlinear_r2"]) for row in rows)
