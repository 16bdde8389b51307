"""Theorem 4.5 and Corollary 4.6 on Gaussian pairs."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
import torch

from frhsic_core.kernels import Gaussian, Laplacian, Linear
from frhsic_core.laws import FiniteLaw, GaussianPair, KernelHead, MercerSystem
from frhsic_core.paper.statements import spectral
from frhsic_core.paper.statements import spectral as b
from frhsic_core.paper.statements.registry import checks

ONE = Gaussian(1.0)


@pytest.mark.parametrize("m", [1, 2, 5, 20])
def test_sides_are_hsic_and_hsic_over_eigenvalue_plus_tail(m: int) -> None:
    law = GaussianPair(0.7)
    certificate = spectral.two_sided(law, kernel_z=ONE, kernel_s=Gaussian(0.5), m=m)
    energies = law.delta_coefficients(ONE, Gaussian(0.5), m=500)
    tail = energies[m:].sum()
    expected = law.hsic(ONE, Gaussian(0.5)) / law.mercer(Gaussian(0.5)).eigenvalues(m)[-1] + tail
    assert certificate.upper == pytest.approx(expected, rel=1e-9)
    assert certificate.lower == pytest.approx(law.hsic(ONE, Gaussian(0.5)), rel=1e-12)  # the kernel is bounded by one
    assert certificate.verdict == "holds"
    assert spectral.upper_bounds(law, kernel_z=ONE, kernel_s=Gaussian(0.5), m=m)[-1] == pytest.approx(
        expected, rel=1e-6
    )


def test_best_m_is_the_minimum_and_close_to_the_truth() -> None:
    law = GaussianPair(0.5)
    m, bound = spectral.best_m(law, kernel_z=ONE, kernel_s=ONE)
    bounds = spectral.upper_bounds(law, kernel_z=ONE, kernel_s=ONE, m=10)
    assert m == 2
    assert bound == bounds.min()
    assert law.expected_squared_mmd(ONE) < bound < 1.1 * law.expected_squared_mmd(ONE)


def test_a_wrong_eigenvalue_is_not_certified(monkeypatch: pytest.MonkeyPatch) -> None:
    right = MercerSystem.eigenvalues
    monkeypatch.setattr(MercerSystem, "eigenvalues", lambda self, m: 2.0 * right(self, m))
    certificate = spectral.two_sided(GaussianPair(0.5), kernel_z=ONE, kernel_s=ONE, m=2)
    assert certificate.verdict == "fails as stated"


FINITE = FiniteLaw([0.0, 2.0], [0.0, 1.0, 3.0], [[0.3, 0.1, 0.1], [0.1, 0.1, 0.3]])


def test_finite_laws_against_their_own_mercer_system() -> None:
    kernel = Laplacian(1.0)
    system = FINITE.mercer(kernel)
    energies = FINITE.delta_coefficients(ONE, kernel)
    for m in (1, 2, 3):
        certificate = spectral.two_sided(FINITE, kernel_z=ONE, kernel_s=kernel, m=m)
        assert certificate.holds
        assert certificate.lower == pytest.approx(FINITE.hsic(ONE, kernel))
        assert certificate.middle == pytest.approx(energies.sum())
        expected = FINITE.hsic(ONE, kernel) / system.eigenvalues[m - 1] + energies[m:].sum()
        assert certificate.upper == pytest.approx(expected, rel=1e-9)


def test_errors_say_what_is_needed() -> None:
    with pytest.raises(ValueError, match="m is 4"):
        spectral.two_sided(FINITE, kernel_z=ONE, kernel_s=ONE, m=4)
    with pytest.raises(TypeError, match="Gaussian kernels only"):
        spectral.two_sided(GaussianPair(0.5), kernel_z=ONE, kernel_s=Laplacian(1.0), m=2)


@pytest.mark.parametrize("m", [1, 3, 6])
def test_gdp_control_sides(m: int) -> None:
    law, head = GaussianPair(0.8), KernelHead([-1.0, 0.5], [1.0, 2.0], kernel=ONE)
    projected, whole = spectral.gdp_control(law, head, kernel_s=ONE, m=m)
    # Coefficients by quadrature: an independent way to the projection.
    s, w = np.polynomial.hermite_e.hermegauss(200)
    w = w / w.sum()
    gap = law.conditional_gap(head, s)
    coefficients = (w * gap) @ law.mercer(ONE).eigenfunctions(s, m)
    assert projected.middle == pytest.approx((coefficients**2).sum(), rel=1e-8)
    assert whole.middle == pytest.approx((w @ np.abs(gap)) ** 2, rel=1e-2)
    assert whole.upper == pytest.approx(projected.upper + w @ gap**2 - (coefficients**2).sum(), rel=1e-8)
    assert projected.holds
    assert whole.holds


def test_centred_bounds_hold_and_differ() -> None:
    law = GaussianPair(0.5)
    plain = spectral.upper_bounds(law, kernel_z=ONE, kernel_s=ONE, m=6)
    centered = spectral.upper_bounds(law, kernel_z=ONE, kernel_s=ONE, m=6, centered=True)
    assert (centered >= law.expected_squared_mmd(ONE) - 1e-12).all()
    assert spectral.best_m(law, kernel_z=ONE, kernel_s=ONE, centered=True)[0] == 1
    # The first centred direction is the second of T_S: the constant is no longer paid for.
    assert centered[0] < plain[0]


def test_certificates_are_as_recorded() -> None:
    numbers = ("Theorem 4.5", "Corollary 4.6")
    certificates = [c for number in numbers for check in checks("spectral")[number] for c in check(quick=True)]
    failing = [c.claim for c in certificates if not c.holds]
    assert len(failing) == 3
    for words in ("population counterpart", "the tail vanishes", "up to the tail"):
        assert any(words in claim for claim in failing)
    assert sum(c.verdict == "holds as corrected" for c in certificates) == 3


def test_eigenvalues_are_those_of_hlh() -> None:
    s = torch.tensor([0.0, 0.4, 1.0, 2.5, 2.6], dtype=torch.float64)
    gram = np.exp(-((s.numpy()[:, None] - s.numpy()[None]) ** 2) / (2 * 0.7**2))
    h = np.eye(5) - 0.2
    expected = np.sort(np.linalg.eigvalsh(h @ gram @ h / 5))[::-1]
    assert np.allclose(b.centered_eigenvalues(s, bandwidth=0.7).numpy(), expected, atol=1e-14)


def test_enclosures_contain_the_float_eigenvalues() -> None:
    points = [Fraction(0), Fraction(1, 3), Fraction(1), Fraction(5, 2)]
    balls = b.enclosed_eigenvalues(points, Fraction(3, 4))
    floats = b.centered_eigenvalues(torch.tensor([float(p) for p in points], dtype=torch.float64), bandwidth=0.75)
    assert [float(ball.mid()) for ball in balls] == pytest.approx(floats[:-1].tolist(), rel=1e-12)
    assert all(float(ball.rad()) < 1e-80 for ball in balls)


def test_precision_is_restored() -> None:
    from flint import ctx

    before = ctx.prec
    b.enclosed_eigenvalues([Fraction(0), Fraction(1)], Fraction(1))
    assert ctx.prec == before


def test_kept_eigenvalue_counts() -> None:
    value, rank = b.kept_eigenvalue(torch.tensor([1.0, 1e-3, 2e-6, 5e-7, 0.0], dtype=torch.float64))
    assert value == pytest.approx(2e-6)
    assert rank == 3


def test_remark_b_3_is_as_recorded() -> None:
    certificates = [c for check in checks("spectral")["Remark B.3"] for c in check(quick=True)]
    failing = [c.claim for c in certificates if not c.holds]
    assert len(failing) == 3
    assert any("tied" in claim for claim in failing)
    assert any("polynomial" in claim for claim in failing)
    assert any("cut-off" in claim for claim in failing)
    assert sum(c.verdict == "holds as corrected" for c in certificates) == 4
    assert sum(c.evidence == "interval" for c in certificates) == 3


def test_the_lower_side_divides_by_the_largest_diagonal_value() -> None:
    certificate = spectral.two_sided(FINITE, kernel_z=ONE, kernel_s=Linear(), m=1)
    assert certificate.lower == pytest.approx(FINITE.hsic(ONE, Linear()) / 9.0)  # the values of S are 0, 1 and 3
    assert certificate.holds
