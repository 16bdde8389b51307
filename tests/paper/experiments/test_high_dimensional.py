"""The study of a vector S: truths against simulation, tests at their level."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch

from frhsic_core.kernels import Gaussian
from frhsic_core.laws import GaussianPair
from frhsic_core.paper.experiments import high_dimensional as study


def test_the_exact_hsic_of_a_vector_is_the_mean_of_the_unbiased_estimates() -> None:
    generator = torch.Generator().manual_seed(0)
    for p, sigma in ((2, 1.0), (4, 2.5)):
        values = study.estimate("hsic_unbiased", *study.sample(0.5, 40, p, 3000, generator), sigma)
        exact = study.truth("hsic_biased", 0.5, p, sigma)
        assert abs(values.mean().item() - exact) < 4 * values.std().item() / math.sqrt(3000)


def test_the_truths_are_those_of_the_scalar_pair() -> None:
    law, kernel = GaussianPair(0.5), Gaussian(1.0)
    assert study.truth("eipm", 0.5, 1, 0.5) == study.truth("eipm", 0.5, 7, 2.0) == law.expected_mmd(kernel)
    assert study.truth("hsic_unbiased", 0.5, 1, 1.0) == law.hsic(kernel, kernel)


def test_the_median_distance_is_that_of_draws() -> None:
    draws = np.random.default_rng(0).standard_normal((2, 200_000, 5))
    found = study.bandwidths(1000, 5)["hsic"]["median"]
    assert np.median(np.linalg.norm(draws[0] - draws[1], axis=1)) == pytest.approx(found, rel=5e-3)


def test_permutation_tests_have_their_level_and_find_a_strong_dependence() -> None:
    unit = {"part": "power", "p": 2, "n": 40, "permutations": 39}
    for row in study.measure_unit({**unit, "rho": 0.0, "replications": 400}, "cpu"):
        assert 0.02 < row["power"] < 0.09
    strong = study.measure_unit({**unit, "rho": 0.9, "replications": 50}, "cpu")
    assert {(row["estimator"], row["rule"]) for row in strong} == {
        ("hsic", "one"), ("hsic", "median"), ("eipm", "0.5"), ("eipm", "silverman")
    }  # fmt: skip
    assert min(row["power"] for row in strong) > 0.9
