"""Heads under Gaussian laws: the gap m_f, its first and second moments, against quadrature and Monte Carlo."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch

from frhsic_core.kernels import Gaussian, Laplacian
from frhsic_core.laws import GaussianPair, KernelHead, formulas
from frhsic_core.laws.quadrature import normal_expectation

HEAD = KernelHead([-1.0, 0.2, 1.5], [1.0, -2.0, 0.7], kernel=Gaussian(0.8))


def normal_grid(points: int, reach: float = 12.0) -> tuple[np.ndarray, np.ndarray]:
    x = np.linspace(-reach, reach, points)
    w = np.exp(-0.5 * x * x)
    return x, w / w.sum()


def gap_by_quadrature(rho: float, head: KernelHead, s: np.ndarray) -> np.ndarray:
    x, w = normal_grid(1201)

    def f(z: np.ndarray) -> np.ndarray:
        return head(torch.as_tensor(z.reshape(-1, 1))).numpy().reshape(z.shape)

    return f(rho * s[:, None] + math.sqrt(1 - rho**2) * x) @ w - w @ f(x)


@pytest.mark.parametrize("rho", [0.3, -0.8])
def test_gap_and_gdp_of_a_kernel_head(rho: float) -> None:
    law, s = GaussianPair(rho), np.linspace(-3.0, 3.0, 7)
    np.testing.assert_allclose(law.conditional_gap(HEAD, s), gap_by_quadrature(rho, HEAD, s), atol=1e-12)
    # |m_f| has kinks: a plain trapezoid rule needs a fine grid, and then needs no knowledge of where they are.
    x, w = normal_grid(400_001)
    gap = law.conditional_gap(HEAD, x)
    assert law.gdp(HEAD) == pytest.approx(w @ np.abs(gap), rel=1e-8)
    assert law.expected_squared_gap(HEAD) == pytest.approx(w @ gap**2, rel=1e-11)
    assert abs(w @ gap) < 1e-14
    assert law.gdp(HEAD) <= math.sqrt(law.expected_squared_gap(HEAD))


def test_gap_is_bounded_by_norm_times_mmd() -> None:
    law, s = GaussianPair(0.6), np.linspace(-4.0, 4.0, 81)
    bound = HEAD.norm * law.conditional_mmd(HEAD.kernel, s)
    assert (np.abs(law.conditional_gap(HEAD, s)) <= bound * (1 + 1e-12)).all()
    assert law.expected_squared_gap(HEAD) <= HEAD.norm**2 * law.expected_squared_mmd(HEAD.kernel)


@pytest.mark.parametrize(("rho", "sigma", "centre"), [(0.999, 0.01, 0.7), (1 - 5e-7, 1e-3, 3.1)])
def test_narrow_bumps_are_found(rho: float, sigma: float, centre: float) -> None:
    """At ρ near one and a small bandwidth m_f is a spike of width .05, .0014 on a line of length 24."""
    law, head = GaussianPair(rho), KernelHead([centre], [1.0], kernel=Gaussian(sigma))
    x, w = normal_grid(2_000_001)
    assert law.gdp(head) == pytest.approx(w @ np.abs(law.conditional_gap(head, x)), rel=1e-8)


def test_monte_carlo_of_covariances_with_the_attribute(generator: torch.Generator) -> None:
    """Cov(f(Z), g(S)) = E[m_f(S)·g(S)] for any g: the sample knows f and Z, the closed form only m_f."""
    law = GaussianPair(0.7)
    z, s = law.sample(400_000, random_state=generator)
    x, w = normal_grid(2001)
    gap = law.conditional_gap(HEAD, x)
    for g in (torch.sin, torch.cos, torch.square):
        product = HEAD(z) * (g(s) - (w @ g(torch.as_tensor(x)).numpy()))
        error = (product.std() / math.sqrt(len(s))).item()
        assert abs(product.mean().item() - w @ (gap * g(torch.as_tensor(x)).numpy())) < 5.0 * error


def test_norm_is_the_rkhs_norm() -> None:
    a, c = np.array(HEAD.coefficients), np.array(HEAD.centers)
    gram = np.exp(-0.5 * (c[:, None] - c) ** 2 / 0.8**2)
    assert HEAD.norm == pytest.approx(math.sqrt(a @ gram @ a), rel=1e-12)
    z = torch.linspace(-3, 3, 5, dtype=torch.float64)[:, None]
    by_hand = sum(w * torch.exp(-0.5 * (z[:, 0] - x) ** 2 / 0.8**2) for w, x in zip(a, c, strict=True))
    torch.testing.assert_close(HEAD(z), by_hand)
    assert HEAD(torch.zeros(2, 4, 1)).shape == (2, 4)


def test_independence_gives_exact_zeros() -> None:
    law = GaussianPair(0.0)
    assert law.gdp(HEAD) == 0.0
    assert law.expected_squared_gap(HEAD) == 0.0
    assert (law.conditional_gap(HEAD, [-1.0, 2.0]) == 0.0).all()
    # Gap of first order in ρ: m_f(s) ≈ ρ·s·E f'(Z).
    z, w = normal_grid(2001)
    f = HEAD(torch.as_tensor(z)[:, None]).numpy()
    slope = w @ (z * f)  # Stein: E f'(Z) = E Z·f(Z)
    assert GaussianPair(1e-6).gdp(HEAD) / 1e-6 == pytest.approx(abs(slope) * math.sqrt(2 / math.pi), rel=1e-5)


def test_balls_go_through_the_head_formulas() -> None:
    arb = pytest.importorskip("flint").arb
    rho, c, s, variance = arb(1) / 2, arb(3) / 10, arb(2), arb(2)  # σ² + 1 = 2
    mean = (-(c * c) / (2 * variance)).exp() / variance.sqrt()
    ball = formulas.head_gap(mean, rho * c / variance, rho * rho / variance, s, sqrt=arb.sqrt, expm1=arb.expm1)
    head = KernelHead([0.3], [1.0], kernel=Gaussian(1.0))
    assert float(ball.rad()) < 1e-13
    assert float(ball.mid()) == pytest.approx(float(GaussianPair(0.5).conditional_gap(head, 2.0)), rel=1e-13)


def test_errors() -> None:
    law = GaussianPair(0.5)
    with pytest.raises(ValueError, match="centers has 2 entries"):
        KernelHead([0.0, 1.0], [1.0], kernel=Gaussian(1.0))
    with pytest.raises(TypeError, match="the head's kernel is Laplacian"):
        law.gdp(KernelHead([0.0], [1.0], kernel=Laplacian(1.0)))  # type: ignore[arg-type]
    with pytest.raises(ArithmeticError, match="add the points where the integrand bends to cuts"):
        normal_expectation(lambda s: math.sin(1e6 * s) ** 2)
