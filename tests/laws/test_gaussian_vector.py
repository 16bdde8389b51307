"""The Gaussian vector: it reduces to the pair, agrees with quadrature over frequencies and with Monte Carlo."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch

from frhsic_core.kernels import Gaussian
from frhsic_core.laws import GaussianPair, GaussianVector

COVARIANCE = np.array([[1.0, 0.3, -0.2], [0.3, 2.0, 0.4], [-0.2, 0.4, 0.5]])
CROSS = np.array([0.4, -0.5, 0.2])
KERNEL_Z, KERNEL_S = Gaussian(1.7), Gaussian(0.9)


def answers(law: GaussianPair | GaussianVector, kernel_z: Gaussian, kernel_s: Gaussian) -> list[float]:
    return [
        law.hsic(kernel_z, kernel_s),
        law.hsic_z(kernel_z),
        law.normalized_hsic(kernel_z, kernel_s),
        law.mean_kernel_z(kernel_z),
        law.null_mean(kernel_z, kernel_s, n=7),
        law.expected_mmd(kernel_z),
        law.expected_squared_mmd(kernel_z),
        law.eipm_limit(kernel_z, bandwidth=0.5),
        law.eipm_limit(kernel_z, bandwidth=0.5, power=2),
        law.mutual_information,
        law.maximal_correlation,
        law.spectral_tail(kernel_z, kernel_s, m=2),
        *law.conditional_mmd(kernel_z, [-1.0, 0.5]),
        *law.delta_coefficients(kernel_z, kernel_s, m=4),
    ]


def within(sample: torch.Tensor, truth: float) -> None:
    assert abs(sample.mean().item() - truth) < 5.0 * (sample.std() / math.sqrt(sample.numel())).item()


@pytest.mark.parametrize("rho", [0.0, 0.5, -0.9])
def test_one_coordinate_is_the_pair(rho: float) -> None:
    pair = answers(GaussianPair(rho), KERNEL_Z, KERNEL_S)
    np.testing.assert_allclose(answers(GaussianVector([rho]), KERNEL_Z, KERNEL_S), pair, rtol=1e-12, atol=1e-15)
    # A coordinate of standard deviation 3 under three times the bandwidth is the same question.
    wide = GaussianVector([3.0 * rho], [[9.0]])
    np.testing.assert_allclose(answers(wide, Gaussian(5.1), KERNEL_S), pair, rtol=1e-12, atol=1e-15)


def test_rotations_do_not_matter() -> None:
    q = np.linalg.qr(np.arange(9.0).reshape(3, 3) + np.eye(3))[0]
    turned = q @ COVARIANCE @ q.T
    turned = GaussianVector(q @ CROSS, (turned + turned.T) / 2)
    still = GaussianVector(CROSS, COVARIANCE)
    np.testing.assert_allclose(answers(turned, KERNEL_Z, KERNEL_S), answers(still, KERNEL_Z, KERNEL_S), rtol=1e-10)


def test_an_independent_coordinate_only_scales() -> None:
    """The kernel factors over coordinates: a coordinate independent of the rest multiplies HSIC by its E k."""
    pair, wide = GaussianPair(0.5), GaussianVector([0.5, 0.0])
    own = pair.mean_kernel_z(KERNEL_Z)
    assert wide.hsic(KERNEL_Z, KERNEL_S) == pytest.approx(own * pair.hsic(KERNEL_Z, KERNEL_S), rel=1e-12)
    assert wide.expected_mmd(KERNEL_Z) == pytest.approx(math.sqrt(own) * pair.expected_mmd(KERNEL_Z), rel=1e-12)


def test_hsic_and_conditional_mmd_are_integrals_over_frequencies() -> None:
    covariance, cross, a, b = COVARIANCE[:2, :2], CROSS[:2], 1.7, 0.9
    law = GaussianVector(cross, covariance)
    x = np.linspace(-9.0, 9.0, 121)
    w = np.exp(-0.5 * x * x)
    w /= w.sum()
    t1, t2, u = x[:, None, None] / a, x[None, :, None] / a, x / b
    own = covariance[0, 0] * t1**2 + 2 * covariance[0, 1] * t1 * t2 + covariance[1, 1] * t2**2
    along = cross[0] * t1 + cross[1] * t2
    gap = (np.exp(-0.5 * (own + 2 * along * u + u * u)) - np.exp(-0.5 * (own + u * u))) ** 2
    integral = np.einsum("i,j,k,ijk->", w, w, w, gap)
    assert law.hsic(KERNEL_Z, KERNEL_S) == pytest.approx(integral, rel=1e-11)
    s = 1.3
    at_s = np.exp(1j * along * s - 0.5 * (own - along**2)) - np.exp(-0.5 * own)
    squared = np.einsum("i,j,ij->", w, w, np.abs(at_s[..., 0]) ** 2)
    assert float(law.conditional_mmd(KERNEL_Z, s)) ** 2 == pytest.approx(squared, rel=1e-11)


def test_monte_carlo_in_three_dimensions(generator: torch.Generator) -> None:
    law = GaussianVector(CROSS, COVARIANCE)
    z, s = law.sample(4, batch=(300_000,), random_state=generator)

    def k(i: int, j: int) -> torch.Tensor:
        return torch.exp(-0.5 * ((z[:, i] - z[:, j]) ** 2).sum(-1) / 1.7**2)

    def kernel_s(i: int, j: int) -> torch.Tensor:
        return torch.exp(-0.5 * (s[:, i] - s[:, j]) ** 2 / 0.9**2)

    within(k(0, 1) * (kernel_s(0, 1) - 2 * kernel_s(0, 2) + kernel_s(2, 3)), law.hsic(KERNEL_Z, KERNEL_S))
    within(k(0, 1) * (k(0, 1) - 2 * k(0, 2) + k(2, 3)), law.hsic_z(KERNEL_Z))
    within(k(0, 1), law.mean_kernel_z(KERNEL_Z))
    # Two draws of Z at one S: replace S of the second draw by that of the first along the regression line.
    slope = torch.as_tensor(CROSS)
    twin = z[:, 1] + slope * (s[:, :1] - s[:, 1:2])
    same = torch.exp(-0.5 * ((z[:, 0] - twin) ** 2).sum(-1) / 1.7**2)
    within(same - k(2, 3), law.expected_squared_mmd(KERNEL_Z))
    within(torch.as_tensor(law.conditional_mmd(KERNEL_Z, s[:, 0].numpy())), law.expected_mmd(KERNEL_Z))


def test_sample_has_the_stated_covariance(generator: torch.Generator) -> None:
    law = GaussianVector(CROSS, COVARIANCE)
    z, s = law.sample(200_000, random_state=generator)
    both = torch.cat([z, s[:, None]], dim=-1)
    full = np.block([[COVARIANCE, CROSS[:, None]], [CROSS[None, :], np.ones((1, 1))]])
    for i in range(4):
        within(both[:, i], 0.0)
        for j in range(4):
            within(both[:, i] * both[:, j], full[i, j])
    z, s = law.sample(7, batch=(2, 5), random_state=generator, dtype=torch.float32)
    assert z.shape == (2, 5, 7, 3)
    assert s.shape == (2, 5, 7)
    assert z.dtype == s.dtype == torch.float32


def test_information_is_that_of_the_best_linear_predictor() -> None:
    law = GaussianVector(CROSS, COVARIANCE)
    full = np.block([[COVARIANCE, CROSS[:, None]], [CROSS[None, :], np.ones((1, 1))]])
    by_determinants = 0.5 * math.log(np.linalg.det(COVARIANCE) / np.linalg.det(full))
    assert law.mutual_information == pytest.approx(by_determinants, rel=1e-12)
    assert GaussianVector([0.6, 0.0]).maximal_correlation == pytest.approx(0.6, rel=1e-14)
    assert law == GaussianVector(CROSS, COVARIANCE)
    assert hash(law) == hash(GaussianVector(CROSS, COVARIANCE))


def test_independence_gives_exact_zeros() -> None:
    law = GaussianVector([0.0, 0.0], [[1.0, 0.5], [0.5, 1.0]])
    assert law.hsic(KERNEL_Z, KERNEL_S) == 0.0
    assert law.expected_mmd(KERNEL_Z) == 0.0
    assert law.expected_squared_mmd(KERNEL_Z) == 0.0
    assert law.mutual_information == 0.0
    assert law.spectral_tail(KERNEL_Z, KERNEL_S, m=0) == 0.0


@pytest.mark.parametrize(
    ("cross", "covariance", "message"),
    [
        (0.5, None, r"cross_covariance has shape \(\)"),
        ([], None, r"cross_covariance has shape \(0,\)"),
        ([0.1, 0.2], [[1.0]], r"covariance has shape \(1, 1\) but cross_covariance has 2 entries"),
        ([0.1, 0.2], [[1.0, 0.5], [0.0, 1.0]], "covariance is not symmetric"),
        ([0.1, 0.2], [[1.0, 2.0], [2.0, 1.0]], "covariance has smallest eigenvalue -1: it must be positive definite"),
        ([0.8, 0.7], None, r"squared canonical correlation 1\.13: it must be below 1"),
        ([1.0], None, r"squared canonical correlation 1: it must be below 1"),
    ],
)
def test_impossible_covariances(cross: object, covariance: object, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        GaussianVector(cross, covariance)
