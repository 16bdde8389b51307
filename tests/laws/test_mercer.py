"""The Hermite eigensystem of T_S and the conditional embedding along it, against discretised integral operators."""

from __future__ import annotations

import math

import numpy as np
import pytest
from samples import normal_grid

from frhsic_core.kernels import Gaussian
from frhsic_core.laws import GaussianPair, MercerSystem
from frhsic_core.laws._mercer import delta_coefficient, eigenvalue

GRID = [(0.5, 1.0, 1.0), (-0.9, 0.5, 0.4), (0.1, 2.0, 1.0), (0.99, 0.3, 3.0)]


def embedding_products(rho: float, a: float, x: np.ndarray) -> np.ndarray:
    """⟨Δ(s), Δ(t)⟩ on a grid, by quadrature over Z alone."""
    z, w = normal_grid(601)
    v = math.sqrt(1 - rho**2)
    # Embeddings as weights on a common grid of Z: densities of N(ρs, 1 − ρ²) less that of N(0, 1).
    step = z[1] - z[0]
    density = (
        np.exp(-0.5 * ((z - rho * x[:, None]) / v) ** 2) / (v * math.sqrt(2 * math.pi)) * step - w
    )
    return density @ np.exp(-0.5 * ((z[:, None] - z) / a) ** 2) @ density.T


@pytest.mark.parametrize("sigma", [0.3, 1.0, 4.0])
def test_eigenfunctions_are_orthonormal_and_satisfy_the_integral_equation(sigma: float) -> None:
    system = MercerSystem(sigma)
    x, w = normal_grid()
    psi = system.eigenfunctions(x, 12)
    np.testing.assert_allclose(psi.T * w @ psi, np.eye(12), atol=1e-12)
    gram = np.exp(-0.5 * ((x[:, None] - x) / sigma) ** 2)
    inside = np.abs(x) < 6.0
    np.testing.assert_allclose(
        (gram * w @ psi)[inside], (psi * system.eigenvalues(12))[inside], atol=1e-11
    )
    np.testing.assert_allclose(system.means(12), w @ psi, atol=1e-13)
    # The same eigenvalues from the discretised operator, which knows no Hermite function.
    matrix = np.sqrt(w)[:, None] * gram * np.sqrt(w)
    np.testing.assert_allclose(
        np.linalg.eigvalsh(matrix)[::-1][:12], system.eigenvalues(12), atol=1e-13
    )


def test_traces() -> None:
    lam = MercerSystem(0.7).eigenvalues(200)
    assert lam.sum() == pytest.approx(1.0, rel=1e-13)
    # Σλ² = E k(S, S')², a Gaussian kernel of squared bandwidth σ²/2.
    assert (lam**2).sum() == pytest.approx(math.sqrt(0.245 / (0.245 + 2)), rel=1e-13)
    assert (np.diff(lam) < 0).all()
    x = np.array([0.3, -1.1])
    psi = MercerSystem(0.7).eigenfunctions(x, 200)
    assert (psi[0] * psi[1] * lam).sum() == pytest.approx(math.exp(-0.5 * 1.4**2 / 0.49), rel=1e-12)
    # A wide kernel: ω − 1 would cancel.
    assert eigenvalue(1, 1e6) == pytest.approx(1e-12, rel=1e-11)


@pytest.mark.parametrize(("rho", "a", "b"), GRID[:3])
def test_coefficients_are_the_double_integrals(rho: float, a: float, b: float) -> None:
    x, w = normal_grid(601)
    law = GaussianPair(rho)
    psi = law.mercer(Gaussian(b)).eigenfunctions(x, 9)
    weighted = psi * w[:, None]
    expected = np.einsum("sl,st,tl->l", weighted, embedding_products(rho, a, x), weighted)
    np.testing.assert_allclose(
        law.delta_coefficients(Gaussian(a), Gaussian(b), m=9), expected, atol=1e-12
    )


@pytest.mark.parametrize(("rho", "a", "b"), GRID)
def test_sums_are_hsic_and_the_mean_square(rho: float, a: float, b: float) -> None:
    law, kernel_z, kernel_s = GaussianPair(rho), Gaussian(a), Gaussian(b)
    coefficients = law.delta_coefficients(kernel_z, kernel_s, m=3000)
    lam = law.mercer(kernel_s).eigenvalues(3000)
    assert (lam * coefficients).sum() == pytest.approx(law.hsic(kernel_z, kernel_s), rel=1e-12)
    total = law.expected_squared_mmd(kernel_z)
    assert coefficients.sum() == pytest.approx(total, rel=1e-12)
    assert law.spectral_tail(kernel_z, kernel_s, m=0) == pytest.approx(total, rel=1e-12)
    for m in (1, 4, 9):
        tail = law.spectral_tail(kernel_z, kernel_s, m=m)
        assert tail == pytest.approx(total - coefficients[:m].sum(), abs=1e-14)
        # Theorem 4.5, the upper bound.
        assert total <= law.hsic(kernel_z, kernel_s) / lam[m - 1] + tail


@pytest.mark.parametrize(("rho", "a", "b"), GRID)
def test_one_at_a_time_is_all_at_once(rho: float, a: float, b: float) -> None:
    law, kernel_z, kernel_s = GaussianPair(rho), Gaussian(a), Gaussian(b)
    mean, q = a / math.sqrt(a**2 + 2), rho**2 / (a**2 + 2)
    single = [delta_coefficient(l, mean, q, b) for l in range(60)]
    np.testing.assert_allclose(law.delta_coefficients(kernel_z, kernel_s, m=60), single, atol=3e-16)


def test_balls_enclose_the_spectrum() -> None:
    flint = pytest.importorskip("flint")
    arb = flint.arb
    precision, flint.ctx.prec = flint.ctx.prec, 200
    try:
        one, q = arb(1), arb(1) / 12
        mean = 1 / arb(3).sqrt()
        balls = [delta_coefficient(l, mean, q, one, sqrt=arb.sqrt) for l in range(80)]
        lam = [eigenvalue(l, one, sqrt=arb.sqrt) for l in range(80)]
        hsic = sum((x * y for x, y in zip(balls, lam, strict=True)), arb(0))
    finally:
        flint.ctx.prec = precision
    assert max(float(ball.rad()) for ball in balls) < 1e-50
    assert all(ball > 0 for ball in balls)
    floats = GaussianPair(0.5).delta_coefficients(Gaussian(1.0), Gaussian(1.0), m=80)
    np.testing.assert_allclose(floats, [float(ball.mid()) for ball in balls], atol=2e-16)
    assert round(float(hsic.mid()), 15) == 0.010763320143794


@pytest.mark.parametrize(("rho", "a", "b"), GRID)
def test_centred_system_against_the_discretised_operator(rho: float, a: float, b: float) -> None:
    law, kernel_z, kernel_s = GaussianPair(rho), Gaussian(a), Gaussian(b)
    spectrum = law.centered_spectrum(kernel_z, kernel_s, m=8)
    x, w = normal_grid(601)
    root = np.sqrt(w)
    matrix = root[:, None] * np.exp(-0.5 * ((x[:, None] - x) / b) ** 2) * root
    centring = np.eye(len(x)) - np.outer(root, root)
    values, vectors = np.linalg.eigh(centring @ matrix @ centring)
    np.testing.assert_allclose(spectrum.eigenvalues, values[::-1][:8], atol=1e-13)
    if abs(rho) < 0.95:  # the grid on Z resolves the conditional law
        e = vectors[:, ::-1][:, :6] * root[:, None]
        expected = np.einsum("sl,st,tl->l", e, embedding_products(rho, a, x), e)
        np.testing.assert_allclose(spectrum.coefficients[:6], expected, atol=1e-11)
    # The centred identity is the same: HSIC is the weighted sum, also past the numerical rank.
    many = law.centered_spectrum(kernel_z, kernel_s, m=120)
    weighted = (many.eigenvalues * many.coefficients).sum()
    assert weighted == pytest.approx(law.hsic(kernel_z, kernel_s), rel=1e-11)
    assert many.coefficients.sum() <= law.expected_squared_mmd(kernel_z) * (1 + 1e-9)
    # Odd eigenfunctions have mean zero already; centring can only lower eigenvalues, and they
    # interlace.
    lam = law.mercer(kernel_s).eigenvalues(9)
    assert (spectrum.eigenvalues <= lam[:8] * (1 + 1e-12)).all()
    assert (spectrum.eigenvalues >= lam[1:] * (1 - 1e-9)).all()


def test_independence_and_empty_requests() -> None:
    law, one = GaussianPair(0.0), Gaussian(1.0)
    assert (law.delta_coefficients(one, one, m=5) == 0.0).all()
    assert law.spectral_tail(one, one, m=3) == 0.0
    assert (law.centered_spectrum(one, one, m=3).coefficients == 0.0).all()
    assert GaussianPair(0.5).delta_coefficients(one, one, m=0).shape == (0,)
    assert GaussianPair(0.5).delta_coefficients(one, one, m=1).shape == (1,)
    assert MercerSystem(1.0).eigenfunctions(np.zeros((2, 3)), 1).shape == (2, 3, 1)
