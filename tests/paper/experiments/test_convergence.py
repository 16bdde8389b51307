"""The convergence study: features are the kernel, estimates are the library's, slopes are the fitted ones."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import torch

from frhsic_core.conditional import eipm
from frhsic_core.joint.hsic import hsic
from frhsic_core.kernels import Gaussian
from frhsic_core.laws import GaussianPair
from frhsic_core.paper.experiments import convergence
from frhsic_core.paper.experiments.convergence import mean_slope, slope_interval
from frhsic_core.paper.experiments.presets import experiment_for
from frhsic_core.paper.experiments.shared.fourier_features import (
    gaussian_features,
    mean_mmd,
    squared_mmd_at_rows,
    v_statistic_hsic,
)
from frhsic_core.paper.runs.runner import run_experiment as run_study
from frhsic_core.paper.runs.store import ResultStore as StudyStore
from frhsic_core.paper.statements.rates import rmse_slope

LAW, KERNEL = GaussianPair(0.5), Gaussian(1.0)


@pytest.mark.parametrize("bandwidth", [0.03, 0.3, 1.0, 5.0])
def test_features_are_the_kernel(bandwidth: float) -> None:
    x = torch.randn(2, 60, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    features = gaussian_features(x, bandwidth)
    exact = torch.exp(-((x.unsqueeze(-1) - x.unsqueeze(-2)) ** 2) / (2 * bandwidth**2))
    assert (features @ features.mT - exact).abs().max() < 1e-12


@pytest.mark.parametrize("n", [30, 250])
def test_hsic_from_features(n: int) -> None:
    z, s = LAW.sample(n, random_state=torch.Generator().manual_seed(n), batch=(3,))
    found = v_statistic_hsic(gaussian_features(z.squeeze(-1), 1.0), gaussian_features(s, 1.0))
    for value, estimator in zip(found, ("biased", "unbiased"), strict=True):
        exact = hsic(z, s, kernel_z=KERNEL, kernel_s=KERNEL, estimator=estimator)
        torch.testing.assert_close(value, exact, rtol=1e-9, atol=1e-13)


@pytest.mark.parametrize("gamma", [1.0, 0.3, 0.05, 0.01])
def test_eipm_from_features_with_rows_that_stand_alone(gamma: float) -> None:
    z, s = LAW.sample(120, random_state=torch.Generator().manual_seed(5), batch=(2,))
    squared = squared_mmd_at_rows(gaussian_features(z.squeeze(-1), 1.0), s, gamma)
    for power, value in ((1, mean_mmd(squared)), (2, squared.mean(-1))):
        exact = eipm(z, s, kernel_z=KERNEL, bandwidth=gamma, power=power)
        torch.testing.assert_close(value, exact, rtol=1e-8, atol=1e-10)


def test_estimates_do_not_depend_on_the_chunks() -> None:
    one = convergence.estimates(30, replications=5, seed=1, names=("hsic_biased", "eipm_n"))
    z, s = LAW.sample(30, random_state=torch.Generator().manual_seed(1), batch=(5,))
    exact = eipm(z, s, kernel_z=KERNEL, bandwidth=30**-0.2)
    np.testing.assert_allclose(one["eipm_n"], exact.numpy(), rtol=1e-9)
    np.testing.assert_allclose(one["hsic_biased"], hsic(z, s, kernel_z=KERNEL, kernel_s=KERNEL).numpy(), rtol=1e-9)


def test_a_rule_is_the_librarys_estimate_at_its_bandwidth() -> None:
    found = convergence.estimates(27, replications=2, seed=3, names=tuple(convergence.RULES), rho=0.0)
    z, s = GaussianPair(0.0).sample(27, random_state=torch.Generator().manual_seed(3), batch=(2,))
    for name, gamma in (("eipm_n", 27**-0.2), ("eipm_third", 1 / 3)):
        expected = eipm(z, s, kernel_z=KERNEL, bandwidth=gamma)
        np.testing.assert_allclose(found[name], expected.numpy(), rtol=1e-9)


def test_scaled_errors_are_constant_at_the_right_rate() -> None:
    rows = pd.DataFrame({"n": [16, 16, 81, 81]})
    rows["eipm_third"] = 1.0 + rows["n"] ** -0.5 * [1, -1, 1, -1]
    rows["eipm_n"] = 1.0 + rows["n"] ** -0.4 * [2, -2, 2, -2]
    found = convergence.scaled_errors(rows, 1.0)
    assert found["eipm_third"] == pytest.approx({16: 1.0, 81: 1.0})
    assert found["eipm_n"] == pytest.approx({16: 2.0, 81: 2.0})


def test_a_printed_study_by_hand(monkeypatch) -> None:
    monkeypatch.setattr(convergence, "SIZES", (20, 40))
    monkeypatch.setattr(convergence, "REPLICATIONS", 3)
    monkeypatch.setattr(convergence, "PROXY_N", 60)
    found = convergence.printed_studies(9, studies=2)
    for study in range(2):
        sample = LAW.sample(60, random_state=torch.Generator().manual_seed(9), batch=(2,))
        proxy = float(hsic(sample[0][study], sample[1][study], kernel_z=KERNEL, kernel_s=KERNEL))
        errors = []
        for i, n in enumerate((20, 40)):
            z, s = LAW.sample(n, random_state=torch.Generator().manual_seed(10 + i), batch=(6,))
            values = hsic(z, s, kernel_z=KERNEL, kernel_s=KERNEL)[3 * study : 3 * study + 3]
            errors.append((values - proxy).abs().mean().item())
        assert found["slope_hsic"][study] == pytest.approx(np.log(errors[1] / errors[0]) / np.log(2), rel=1e-9)


def test_slopes_against_another_fit() -> None:
    rng = np.random.default_rng(1)
    sizes = np.array([100.0, 400.0, 1600.0])
    errors = np.abs(rng.normal(size=(3, 800))) * sizes[:, None] ** -0.4
    slope, (low, high) = slope_interval(sizes, list(errors))
    other, (other_low, other_high) = rmse_slope(sizes, errors, confidence=0.95)
    assert slope == mean_slope(sizes, list(errors))
    assert slope == pytest.approx(other, abs=0.01)
    assert low < -0.4 < high
    assert (high - low) == pytest.approx(other_high - other_low, rel=0.25)


def test_smoke_runs_from_end_to_end(tmp_path) -> None:
    study = experiment_for("convergence", "smoke")
    store = StudyStore(tmp_path, study.name)
    assert run_study(study, store, device="cpu").left == 0
    rows = store.read()
    assert (rows["part"] == "exact").sum() == 6
    rules = rows[rows["part"] == "bandwidth"]
    assert sorted(rules["rho"].unique()) == [0.0, 0.5]
    assert rules[["eipm_n", "eipm_third"]].notna().all(axis=None)
    assert rows.loc[rows["part"] == "printed", "slope_hsic"].between(-1.5, 0.5).all()
