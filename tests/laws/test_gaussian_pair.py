"""The bivariate Gaussian pair: closed forms against quadrature, against Monte Carlo, against printed digits.

The quadratures share nothing with the closed forms: a Gaussian kernel is the Fourier transform of a
Gaussian, so every squared RKHS distance is an integral of |difference of characteristic functions|²
over frequencies.
"""

from __future__ import annotations

import math
from itertools import pairwise

import mpmath
import numpy as np
import pytest
import torch
from samples import normal_grid

from frhsic_core.kernels import Gaussian
from frhsic_core.laws import GaussianPair, formulas

ONE = Gaussian(1.0)
GRID = [(0.5, 1.0, 1.0), (-0.8, 0.5, 2.0), (0.2, 3.0, 0.3), (0.97, 0.7, 0.7)]


def within(sample: torch.Tensor, truth: float) -> None:
    error = (sample.std() / math.sqrt(sample.numel())).item()
    assert abs(sample.mean().item() - truth) < 5.0 * error


def gauss(x: torch.Tensor, bandwidth: float) -> torch.Tensor:
    return torch.exp(-0.5 * (x / bandwidth) ** 2)


def test_the_reference_digits() -> None:
    law = GaussianPair(0.5)
    assert round(law.hsic(ONE, ONE), 15) == 0.010763320143794
    assert round(law.expected_mmd(ONE), 15) == 0.199520696643811
    assert round(law.expected_squared_mmd(ONE), 10) == 0.0551052628
    assert round(law.eipm_limit(ONE, bandwidth=0.5), 3) == 0.158
    assert round(law.eipm_limit(ONE, bandwidth=1.0), 4) == 0.0976


@pytest.mark.parametrize(("rho", "a", "b"), GRID)
def test_hsic_is_the_integral_over_frequencies(rho: float, a: float, b: float) -> None:
    x, w = normal_grid(801)
    t, u = x[:, None] / a, x / b
    joint = np.exp(-0.5 * (t * t + 2 * rho * t * u + u * u))
    gap = (joint - np.exp(-0.5 * (t * t + u * u))) ** 2
    value = GaussianPair(rho).hsic(Gaussian(a), Gaussian(b))
    assert value == pytest.approx(w @ gap @ w, rel=1e-12)


@pytest.mark.parametrize("a", [0.4, 1.0, 2.5])
def test_mean_kernel(a: float) -> None:
    x, w = normal_grid(601)
    gram = np.exp(-0.5 * (x[:, None] - x) ** 2 / a**2)
    mean = w @ gram @ w
    assert GaussianPair(0.3).mean_kernel_z(Gaussian(a)) == pytest.approx(mean, rel=1e-12)


def characteristic_gap(rho: float, a: float, s: np.ndarray, gamma: float) -> np.ndarray:
    """MMD² of the (smoothed) conditional against the marginal, by two quadratures: over S and over frequencies."""
    x, w = normal_grid(801)
    t = x / a
    conditional = np.exp(
        1j * rho * np.multiply.outer(x, t) - 0.5 * (1 - rho**2) * t * t
    )  # (S node, frequency)
    if gamma == 0.0:
        at_s = np.exp(1j * rho * np.multiply.outer(s, t) - 0.5 * (1 - rho**2) * t * t)
    else:
        smooth = np.exp(-0.5 * ((s[:, None] - x) / gamma) ** 2) * w
        at_s = smooth @ conditional / smooth.sum(1, keepdims=True)
    return np.abs(at_s - np.exp(-0.5 * t * t)) ** 2 @ w


@pytest.mark.parametrize("gamma", [0.0, 0.3, 1.0])
@pytest.mark.parametrize(("rho", "a"), [(0.5, 1.0), (-0.9, 0.5), (0.2, 2.0)])
def test_conditional_mmd_and_the_limit_of_eipm(rho: float, a: float, gamma: float) -> None:
    law, kernel = GaussianPair(rho), Gaussian(a)
    s = np.array([-2.0, 0.0, 0.7, 3.0])
    squared = characteristic_gap(rho, a, s, gamma)
    if gamma == 0.0:
        np.testing.assert_allclose(law.conditional_mmd(kernel, s) ** 2, squared, rtol=1e-9)
    nodes, weights = np.polynomial.legendre.leggauss(24)
    # Panels on the half line, small near the bend of the root at s = 0.
    edges = np.array([0.0, 0.1, 0.4, 1.0, 2.0, 4.0, 10.0])
    s = np.concatenate([(r - l) / 2 * nodes + (r + l) / 2 for l, r in pairwise(edges)])
    w = np.concatenate([(r - l) / 2 * weights for l, r in pairwise(edges)])
    w = 2.0 * w * np.exp(-0.5 * s * s) / math.sqrt(2 * math.pi)
    squared = np.maximum(characteristic_gap(rho, a, s, gamma), 0.0)
    assert law.eipm_limit(kernel, bandwidth=gamma) == pytest.approx(w @ np.sqrt(squared), rel=1e-9)
    if gamma == 0.0:
        assert law.expected_mmd(kernel) == law.eipm_limit(kernel, bandwidth=0.0)
        assert law.expected_squared_mmd(kernel) == pytest.approx(w @ squared, rel=1e-10)


@pytest.mark.parametrize("rho", [1e-7, 1e-3, 0.1, 0.5, 0.9, 0.999])
@pytest.mark.parametrize("a", [0.05, 1.0, 20.0])
def test_nothing_cancels_and_the_quadrature_keeps_its_promise(rho: float, a: float) -> None:
    """The textbook formulas in 60 digits, where cancellation does not matter."""
    with mpmath.workdps(60):
        r, s2 = mpmath.mpf(rho), mpmath.mpf(a) ** 2
        c = (s2 + 2) ** 2
        hsic = s2 * (1 / mpmath.sqrt(c - 4 * r**2) - 2 / mpmath.sqrt(c - r**2) + 1 / mpmath.sqrt(c))
        v = 1 - r**2

        def squared(s: mpmath.mpf) -> mpmath.mpf:
            cross = mpmath.exp(-(r**2) * s**2 / (2 * (s2 + 1 + v))) / mpmath.sqrt(s2 + 1 + v)
            return mpmath.mpf(a) * (
                1 / mpmath.sqrt(s2 + 2 * v) - 2 * cross + 1 / mpmath.sqrt(s2 + 2)
            )

        mean_square = mpmath.mpf(a) * (1 / mpmath.sqrt(s2 + 2 * v) - 1 / mpmath.sqrt(s2 + 2))
    law, kernel = GaussianPair(rho), Gaussian(a)
    assert law.hsic(kernel, kernel) == pytest.approx(float(hsic), rel=2e-14)
    assert law.expected_squared_mmd(kernel) == pytest.approx(float(mean_square), rel=2e-14)
    with mpmath.workdps(60):
        at = [float(mpmath.sqrt(squared(mpmath.mpf(s)))) for s in (0.0, 0.3, 2.0)]
    np.testing.assert_allclose(law.conditional_mmd(kernel, [0.0, 0.3, 2.0]), at, rtol=2e-14)
    bend = rho / math.sqrt(a**2 + 2)
    cuts = sorted(
        {0.0, *(bend * 3.0**j for j in range(20) if bend * 3.0**j < 14), 1.0, 3.0, 6.0, 14.0}
    )
    with mpmath.workdps(30):
        # Each value in 60 digits, then a rule of its own: Gauss–Legendre on the same kind of
        # panels.
        def integrand(s: mpmath.mpf) -> mpmath.mpf:
            with mpmath.workdps(60):
                return mpmath.sqrt(squared(s)) * mpmath.npdf(s)

        expected = 2 * mpmath.quad(integrand, cuts, method="gauss-legendre", maxdegree=4)
    assert law.expected_mmd(kernel) == pytest.approx(float(expected), rel=1e-12)


def test_monte_carlo_agrees_within_five_standard_errors(generator: torch.Generator) -> None:
    law, a, b = GaussianPair(0.6), 0.8, 1.3
    kernel_z, kernel_s = Gaussian(a), Gaussian(b)
    z, s = law.sample(4, batch=(400_000,), random_state=generator)
    z = z.squeeze(-1)
    k = gauss(z[:, 0] - z[:, 1], a)
    paired, half, apart = (
        gauss(s[:, 0] - s[:, 1], b),
        gauss(s[:, 0] - s[:, 2], b),
        gauss(s[:, 2] - s[:, 3], b),
    )
    within(k * (paired - 2 * half + apart), law.hsic(kernel_z, kernel_s))
    within(k, law.mean_kernel_z(kernel_z))
    # Two draws of Z at one S, and two at two.
    noise = torch.randn(2, 400_000, generator=generator, dtype=torch.float64) * math.sqrt(
        1 - law.rho**2
    )
    twins = law.rho * s[:, 0] + noise
    within(
        gauss(twins[0] - twins[1], a) - gauss(z[:, 2] - z[:, 3], a),
        law.expected_squared_mmd(kernel_z),
    )
    at = torch.as_tensor(law.conditional_mmd(kernel_z, s[:, 0].numpy()))
    within(at, law.expected_mmd(kernel_z))


def test_null_mean_of_the_biased_statistic(generator: torch.Generator) -> None:
    law, n = GaussianPair(0.0), 12
    z, s = law.sample(n, batch=(40_000,), random_state=generator)
    k, l = gauss(z - z.mT, 0.7), gauss(s[..., None] - s[..., None, :], 1.5)
    centered = (
        k - k.mean(-1, keepdim=True) - k.mean(-2, keepdim=True) + k.mean((-1, -2), keepdim=True)
    )
    statistic = (centered * l).mean((-1, -2)) * n
    within(statistic, law.null_mean(Gaussian(0.7), Gaussian(1.5), n=n))
    exact = (1 - law.mean_kernel_z(Gaussian(0.7))) * (1 - law.mean_kernel_z(Gaussian(1.5)))
    assert law.null_mean(Gaussian(0.7), Gaussian(1.5)) == exact


def test_independence_gives_exact_zeros_and_small_rho_the_right_order() -> None:
    law = GaussianPair(0.0)
    zeros = [
        law.hsic(ONE, ONE),
        law.expected_mmd(ONE),
        law.expected_squared_mmd(ONE),
        law.eipm_limit(ONE, bandwidth=0.5),
        float(law.conditional_mmd(ONE, 1.7)),
    ]
    assert all(value == 0.0 and math.copysign(1.0, value) > 0 for value in zeros)
    rho = 1e-5
    near = GaussianPair(rho)
    # Leading terms: HSIC ≈ μ_K μ_L ρ²/9, E[MMD²] ≈ μ_K ρ²/3, MMD(s) ≈ |s|·√(μ_K ρ²/3), E|S| =
    # √(2/π).
    assert near.hsic(ONE, ONE) / rho**2 == pytest.approx(1 / 27, rel=1e-8)
    assert near.expected_squared_mmd(ONE) / rho**2 == pytest.approx(3**-1.5, rel=1e-8)
    assert near.expected_mmd(ONE) / rho == pytest.approx(
        3**-0.75 * math.sqrt(2 / math.pi), rel=1e-8
    )


def test_sign_of_rho_does_not_matter_and_dependence_grows() -> None:
    values = []
    for rho in (0.1, 0.4, 0.7, 0.95):
        plus, minus = GaussianPair(rho), GaussianPair(-rho)
        assert plus.hsic(ONE, ONE) == minus.hsic(ONE, ONE)
        assert plus.expected_mmd(ONE) == minus.expected_mmd(ONE)
        values.append([plus.hsic(ONE, ONE), plus.expected_mmd(ONE)])
        assert plus.expected_mmd(ONE) ** 2 < plus.expected_squared_mmd(ONE)
    assert (np.diff(values, axis=0) > 0).all()


def test_balls_enclose_the_floats() -> None:
    flint = pytest.importorskip("flint")
    arb = flint.arb
    rho, one = arb(1) / 2, arb(1)
    mean, q = formulas.mean_kernel(one, sqrt=arb.sqrt), formulas.pair_coupling(rho, one)
    balls = {
        0.010763320143794: formulas.hsic(mean, q, one, sqrt=arb.sqrt),
        0.0551052628440501: formulas.expected_squared_mmd(mean, q, sqrt=arb.sqrt),
        float(GaussianPair(0.5).conditional_mmd(ONE, 1.0)) ** 2: formulas.conditional_squared_mmd(
            mean, q, one, sqrt=arb.sqrt, expm1=arb.expm1
        ),
    }
    for value, ball in balls.items():
        assert float(ball.rad()) < 1e-13
        assert abs(float(ball.mid()) - value) < 1e-15


def test_sample_shapes_moments_and_streams(generator: torch.Generator) -> None:
    law = GaussianPair(-0.4)
    z, s = law.sample(50_000, batch=(2, 3), random_state=generator, dtype=torch.float32)
    assert z.shape == (2, 3, 50_000, 1)
    assert s.shape == (2, 3, 50_000)
    assert z.dtype == s.dtype == torch.float32
    z, s = law.sample(400_000, random_state=generator)
    assert z.dtype == torch.float64
    z = z.squeeze(-1)
    within(z, 0.0)
    within(s, 0.0)
    within(z * z, 1.0)
    within(s * s, 1.0)
    within(z * s, -0.4)
    first = law.sample(5, random_state=torch.Generator().manual_seed(3))
    second = law.sample(5, random_state=torch.Generator().manual_seed(3), device="cpu")
    assert torch.equal(first[0], second[0])
    assert torch.equal(first[1], second[1])
    assert law.sample(3)[0].shape == (3, 1)
    assert law.expected_mmd(Gaussian(torch.tensor(1.0))) == law.expected_mmd(ONE)
