"""Theorem 4.5 and Remark B.3: enclosures contain the float answers, and what is false is not proved."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
import torch

from frhsic_core.kernels import Gaussian
from frhsic_core.laws import GaussianPair
from frhsic_core.paper.statements import spectral as b
from frhsic_core.paper.statements.certificate import enclosed_inequality


def test_eigenvalues_are_those_of_hlh() -> None:
    s = torch.tensor([0.0, 0.4, 1.0, 2.5, 2.6], dtype=torch.float64)
    gram = np.exp(-((s.numpy()[:, None] - s.numpy()[None]) ** 2) / (2 * 0.7**2))
    h = np.eye(5) - 0.2
    expected = np.sort(np.linalg.eigvalsh(h @ gram @ h / 5))[::-1]
    assert np.allclose(b.centered_eigenvalues(s, bandwidth=0.7).numpy(), expected, atol=1e-14)


def test_enclosures_contain_the_float_eigenvalues() -> None:
    points = [Fraction(0), Fraction(1, 3), Fraction(1), Fraction(5, 2)]
    balls = b.enclosed_eigenvalues(points, Fraction(3, 4))
    floats = b.centered_eigenvalues(
        torch.tensor([float(p) for p in points], dtype=torch.float64), bandwidth=0.75
    )
    assert [float(ball.mid()) for ball in balls] == pytest.approx(floats[:-1].tolist(), rel=1e-12)
    assert all(float(ball.rad()) < 1e-80 for ball in balls)


def test_ties_count_and_too_few_bits_are_an_error() -> None:
    points = [Fraction(k, 4) for k in (0, 0, 0, 1, 2, 2, 4)]
    balls = b.enclosed_eigenvalues(points, Fraction(1, 2))
    floats = b.centered_eigenvalues(
        torch.tensor([float(p) for p in points], dtype=torch.float64), bandwidth=0.5
    )
    assert [float(ball.mid()) for ball in balls] == pytest.approx(floats[:3].tolist(), rel=1e-12)
    assert floats[3:].max() < 1e-15
    with pytest.raises(ValueError, match="eigenvalues"):
        b.enclosed_eigenvalues([Fraction(k, 39) for k in range(40)], Fraction(3), bits=64)


def test_kept_eigenvalue_counts() -> None:
    value, rank = b.kept_eigenvalue(torch.tensor([1.0, 1e-3, 2e-6, 5e-7, 0.0], dtype=torch.float64))
    assert value == pytest.approx(2e-6)
    assert rank == 3


@pytest.mark.parametrize("bandwidth", [Fraction(1, 10), Fraction(1), Fraction(10)])
def test_the_smallest_alone_is_that_of_all_eigenvalues(bandwidth: Fraction) -> None:
    points = [Fraction(i * i, 49) for i in range(8)] + [Fraction(0), Fraction(1)]  # with ties
    found, expected = (
        b.enclosed_smallest(points, bandwidth),
        b.enclosed_eigenvalues(points, bandwidth)[-1],
    )
    assert found.contains(expected)
    assert float((found.rad() / found.mid()).abs_upper()) < 1e-8
    with pytest.raises(ZeroDivisionError):
        b.enclosed_smallest([Fraction(i, 39) for i in range(40)], Fraction(3), bits=64)


@pytest.mark.parametrize("point", [("1/2", "1", "1"), ("9/10", "1/2", "2")])
def test_enclosures_of_a_pair(point: tuple[str, ...]) -> None:
    from flint import ctx

    rho, *widths = map(float, map(Fraction, point))
    law, (kernel_z, kernel_s) = GaussianPair(rho), map(Gaussian, widths)
    with ctx.workprec(160):
        hsic, integral, bounds = b.two_sides(*map(Fraction, point))
    value = law.hsic(kernel_z, kernel_s)
    expected = value / law.mercer(kernel_s).eigenvalues(3)[-1] + law.spectral_tail(
        kernel_z, kernel_s, m=3
    )
    for enclosure, number in (
        (hsic, value),
        (integral, law.expected_squared_mmd(kernel_z)),
        (bounds[2], expected),
    ):
        assert float(enclosure.mid()) == pytest.approx(number, rel=1e-11)
        assert float(enclosure.rad()) < 1e-15


def test_verdicts_of_balls() -> None:
    from flint import arb

    def verdict(*pair: object) -> str:
        return enclosed_inequality("y", [(b.ball(1), b.ball(9)), pair], evidence="interval").verdict

    assert verdict(b.ball(1), b.ball(2)) == "holds"
    assert verdict(b.ball(2), b.ball(1)) == "fails as stated"
    assert verdict(arb(1, 0.6), arb(2, 0.6)) == "inconclusive"
    assert verdict(arb("nan"), b.ball(1)) == "inconclusive"
    # The pair with the least room for its size is shown: 20 per cent, and not 1/2.
    shown = enclosed_inequality("y", [(arb(1), arb(1.5)), (arb(10), arb(12))], evidence="interval")
    assert (shown.middle, shown.upper, shown.slack) == (10.0, 12.0, 2.0)


@pytest.mark.parametrize(("factor", "verdict"), [(1, "holds"), (2, "fails as stated")])
def test_every_point_of_the_grid_is_proved_or_refuted(
    monkeypatch, factor: int, verdict: str
) -> None:
    right = b._mercer.eigenvalue
    monkeypatch.setattr(
        b._mercer, "eigenvalue", lambda *args, **options: factor * right(*args, **options)
    )
    lower, upper = b.proved_on_a_grid()
    points = len(b.RHOS) * len(b.SIGMAS) ** 2
    assert (lower.details["inequalities proved"], upper.details["inequalities proved"]) == (
        points,
        8 * points,
    )
    assert (lower.verdict, upper.verdict) == ("holds", verdict)


def test_the_steps_of_the_lower_bound() -> None:
    """The product of the eigenvalues, the determinant, and its Vandermonde part, for random points in balls."""
    from flint import arb, arb_mat, ctx

    rng = np.random.default_rng(0)
    for _ in range(20):
        k, sigma = int(rng.integers(1, 6)), Fraction(int(rng.integers(1, 400)), 10)
        points = [Fraction(int(x), 7) for x in rng.choice(100, k + 1, replace=False)]
        with ctx.workprec(600):
            x = [b.ball(point) for point in points]
            near = [[(-(p - q) * (p - q) / (2 * b.ball(sigma) ** 2)).exp() for q in x] for p in x]
            gram = arb_mat(near)
            ones = arb_mat([[1]] * (k + 1))
            factor = (ones.transpose() * gram.inv() * ones)[0, 0]
            product = arb(1)
            for value in b.enclosed_eigenvalues(points, sigma, bits=600):
                product *= (k + 1) * value
            assert product.overlaps(gram.det() * factor / (k + 1))
            assert factor > 1
            part = arb(1)
            for i, p in enumerate(x):
                part *= (-p * p / b.ball(sigma) ** 2).exp() / (
                    arb(i).fac() * b.ball(sigma) ** (2 * i)
                )
                for q in x[:i]:
                    part *= (p - q) * (p - q)
            assert part < gram.det()
