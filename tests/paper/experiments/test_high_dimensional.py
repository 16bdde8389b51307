"""The study of a vector S: truths against quadrature and simulation, estimators against definitions, tests at level."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch

from frhsic_core.conditional import eipm
from frhsic_core.joint.hsic import hsic
from frhsic_core.kernels import Gaussian, squared_distances
from frhsic_core.laws import GaussianPair
from frhsic_core.paper.experiments.high_dimensional import vector_attribute
from frhsic_core.paper.experiments.high_dimensional.vector_attribute import (
    eipm_values,
    errors,
    hsic_values,
    leave_one_out,
    median_distance,
    power,
    silverman,
    truth,
)
from frhsic_core.paper.experiments.presets import experiment_for
from frhsic_core.paper.experiments.shared.fourier_features import gaussian_features
from frhsic_core.paper.runs.runner import run_experiment
from frhsic_core.paper.runs.store import ResultStore


def sample(n: int = 60, p: int = 3, count: int = 2) -> tuple[torch.Tensor, torch.Tensor]:
    generator = torch.Generator().manual_seed(2)
    s = torch.randn(count, n, p, generator=generator, dtype=torch.float64)
    return 0.6 * s[..., 0] + 0.8 * torch.randn(count, n, generator=generator, dtype=torch.float64), s


def prepared(z: torch.Tensor, s: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    distances = squared_distances(s)
    return gaussian_features(z, 1.0), distances, distances + torch.diag(torch.full((z.shape[-1],), torch.inf))


def test_hsic_of_a_vector_by_simulation() -> None:
    """The closed form against the mean of the unbiased estimator, for several p and bandwidths."""
    generator = torch.Generator().manual_seed(0)
    for p, sigma in ((2, 1.0), (4, 2.5)):
        s = torch.randn(3000, 40, p, generator=generator, dtype=torch.float64)
        z = 0.5 * s[..., 0] + math.sqrt(0.75) * torch.randn(3000, 40, generator=generator, dtype=torch.float64)
        values = hsic(z.unsqueeze(-1), s, kernel_z=Gaussian(1.0), kernel_s=Gaussian(sigma), estimator="unbiased")
        exact = truth("hsic_biased", 0.5, p, sigma)
        assert abs(values.mean().item() - exact) < 4 * values.std().item() / math.sqrt(3000)


def test_conditional_truth_does_not_depend_on_p() -> None:
    pair, kernel = GaussianPair(0.5), Gaussian(1.0)
    for p in (1, 7):
        assert truth("eipm", 0.5, p, 0.5) == pair.expected_mmd(kernel)
        assert truth("eipm_distinct", 0.5, p, 0.5) == pair.expected_squared_mmd(kernel)
    assert truth("hsic_unbiased", 0.5, 1, 1.0) == pair.hsic(kernel, kernel)


def test_median_distance_and_rule() -> None:
    draws = np.random.default_rng(0).standard_normal((2, 200_000, 5))
    assert np.median(np.linalg.norm(draws[0] - draws[1], axis=1)) == pytest.approx(median_distance(5), rel=5e-3)
    assert silverman(1000, 1) == pytest.approx((4 / 3000) ** 0.2)


def test_hsic_from_features_and_distances() -> None:
    z, s = sample()
    phi, distances, _ = prepared(z, s)
    found = hsic_values(phi, distances, 1.4)
    for estimator in ("biased", "unbiased"):
        exact = hsic(z.unsqueeze(-1), s, kernel_z=Gaussian(1.0), kernel_s=Gaussian(1.4), estimator=estimator)
        torch.testing.assert_close(found[f"hsic_{estimator}"], exact, rtol=1e-8, atol=1e-12)


def test_eipm_against_the_library_and_pairs_by_brute_force() -> None:
    z, s = sample(25)
    phi, _, others = prepared(z, s)
    weights = leave_one_out(others, 0.7)
    found = eipm_values(phi, weights)
    for name, power_ in (("eipm", 1), ("eipm_squared", 2)):
        exact = eipm(z.unsqueeze(-1), s, kernel_z=Gaussian(1.0), bandwidth=0.7, power=power_)
        torch.testing.assert_close(found[name], exact, rtol=1e-8, atol=1e-10)
    n = 25
    gram = torch.exp(-((z[0][:, None] - z[0]) ** 2) / 2)
    total = 0.0
    pairs = [(j, k) for j in range(n) for k in range(n) if j != k]
    for i in range(n):
        w = weights[0, i]

        def mean(a, b):
            mass = sum((a[j] * b[k]).item() for j, k in pairs)
            return sum((a[j] * b[k] * gram[j, k]).item() for j, k in pairs) / mass

        q = torch.full((n,), 1 / n, dtype=torch.float64)
        total += (mean(w, w) - 2 * mean(w, q) + mean(q, q)) / n
    assert found["eipm_distinct"][0].item() == pytest.approx(total, rel=1e-8)


def test_few_axes_carry_the_kernel_of_z() -> None:
    z, s = sample(300)
    phi, distances, others = vector_attribute.prepared(z, s)
    assert phi.shape[-1] == vector_attribute.RANK
    exact = torch.exp(-((z.unsqueeze(-1) - z.unsqueeze(-2)) ** 2) / 2)
    assert (phi @ phi.mT - exact).abs().max() < 1e-6
    full = hsic_values(gaussian_features(z, 1.0), distances, 1.4)["hsic_unbiased"]
    torch.testing.assert_close(hsic_values(phi, distances, 1.4)["hsic_unbiased"], full, rtol=1e-6, atol=1e-11)
    assert torch.isinf(others.diagonal(dim1=-2, dim2=-1)).all()


def test_distinct_pairs_have_no_floor() -> None:
    rows = {
        (row["estimator"], row["rule"]): row
        for row in errors(0.0, 5, 100, replications=60, gammas=(0.5,), device="cpu")
    }
    free, floored = rows["eipm_distinct", "0.5"], rows["eipm_squared", "0.5"]
    assert abs(free["mean"]) < 4 * free["sd"] / math.sqrt(60)
    assert floored["mean"] > 10 * floored["sd"] / math.sqrt(60)
    null = rows["hsic_biased", "median"]
    pair, sigma = GaussianPair(0.0), median_distance(5)
    mean_s = (sigma / math.sqrt(sigma**2 + 2)) ** 5
    expected = (1 - pair.mean_kernel_z(Gaussian(1.0))) * (1 - mean_s) * (1 - 1 / 100) / 100
    assert null["mean"] == pytest.approx(expected, abs=4 * null["sd"] / math.sqrt(60))


def test_permutation_tests_have_their_level() -> None:
    for row in power(0.0, 2, 40, replications=400, permutations=39, device="cpu"):
        assert 0.02 < row["power"] < 0.09
    strong = power(0.9, 2, 40, replications=50, permutations=39, device="cpu")
    assert min(row["power"] for row in strong) > 0.9


def test_smoke_runs_from_end_to_end(tmp_path) -> None:
    study = experiment_for("high_dimensional", "smoke")
    store = ResultStore(tmp_path, study.name)
    assert run_experiment(study, store, device="cpu").left == 0
    assert set(store.read()["part"]) == {"error", "power"}
