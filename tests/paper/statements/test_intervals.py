"""Ball arithmetic: enclosures contain the float answers, and an inequality that is false is not proved."""

from __future__ import annotations

import functools
from fractions import Fraction

import numpy as np
import pytest

from frhsic_core.kernels import Gaussian
from frhsic_core.laws import GaussianPair, KernelHead
from frhsic_core.paper.statements import intervals, spectral
from frhsic_core.paper.statements.certificate import enclosed_inequality
from frhsic_core.paper.statements.intervals import HeadBalls, PairBalls, ball, expected_mmd_ball, gdp_ball, precision

CASES = [(Fraction(1, 2), Fraction(1), Fraction(1)), (Fraction(9, 10), Fraction(1, 2), Fraction(2))]


@pytest.mark.parametrize(("rho", "sigma_z", "sigma_s"), CASES)
def test_pair_enclosures(rho: Fraction, sigma_z: Fraction, sigma_s: Fraction) -> None:
    law, kernel_z, kernel_s = GaussianPair(float(rho)), Gaussian(float(sigma_z)), Gaussian(float(sigma_s))
    with precision():
        pair = PairBalls(rho, sigma_z, sigma_s)
        for enclosure, value in (
            (pair.hsic, law.hsic(kernel_z, kernel_s)),
            (pair.squared_integral, law.expected_squared_mmd(kernel_z)),
            (pair.eigenvalue(3), law.mercer(kernel_s).eigenvalues(3)[-1]),
            (pair.captured(5), law.delta_coefficients(kernel_z, kernel_s, m=5).sum()),
            (expected_mmd_ball(pair), law.expected_mmd(kernel_z)),
        ):
            assert float(enclosure.mid()) == pytest.approx(value, rel=1e-11)
            assert float(enclosure.rad()) < 1e-15


@pytest.mark.parametrize(("rho", "sigma_z", "sigma_s"), CASES)
def test_head_enclosures(rho: Fraction, sigma_z: Fraction, sigma_s: Fraction) -> None:
    law = GaussianPair(float(rho))
    head = KernelHead([-1.0, 0.5], [1.0, 2.0], kernel=Gaussian(float(sigma_z)))
    with precision():
        balls = HeadBalls(PairBalls(rho, sigma_z, sigma_s), (Fraction(-1), Fraction(1, 2)), (Fraction(1), Fraction(2)))
        assert float(balls.squared_norm.mid()) == pytest.approx(head.norm**2, rel=1e-12)
        assert float(balls.squared_gap.mid()) == pytest.approx(law.expected_squared_gap(head), rel=1e-11)
        expected = law.head_coefficients(head, Gaussian(float(sigma_s)), m=6)
        assert np.allclose([float(c.mid()) for c in balls.coefficients(6)], expected, rtol=1e-10, atol=1e-14)
        gdp = gdp_ball(balls)
        assert float(gdp.lower()) <= law.gdp(head) * (1 + 1e-10)
        assert float(gdp.upper()) >= law.gdp(head) * (1 - 1e-10)


def test_verdicts_of_balls() -> None:
    from flint import arb

    def verdict(left: object, right: object) -> str:
        return enclosed_inequality("y", left=left, right=right, evidence="interval").verdict

    assert verdict(ball(1), ball(2)) == "holds"
    assert verdict(ball(2), ball(1)) == "fails as stated"
    assert verdict(arb(1, 0.6), arb(2, 0.6)) == "inconclusive"
    assert verdict(arb("nan"), ball(1)) == "inconclusive"


def test_a_broken_theorem_is_refuted_rigorously(monkeypatch: pytest.MonkeyPatch) -> None:
    right = PairBalls.eigenvalue
    monkeypatch.setattr(PairBalls, "eigenvalue", lambda self, m: right(self, m) * 2)
    lower, upper = intervals.theorem_two_sides(quick=True)
    assert lower.verdict == "holds"
    assert upper.verdict == "fails as stated"
    assert {c.verdict for c in intervals.corollary_heads(quick=True)} >= {"fails as stated"}


def test_every_point_of_the_grid_is_proved() -> None:
    lower, upper = intervals.theorem_two_sides()
    points = len(intervals.RHOS) * len(intervals.SIGMAS) ** 2
    assert (lower.details["inequalities proved"], upper.details["inequalities proved"]) == (points, 8 * points)
    assert min(lower.slack, upper.slack) > 0


def test_precision_is_put_back() -> None:
    from flint import ctx

    before = ctx.prec
    with precision(999):
        assert ctx.prec == 999
    assert ctx.prec == before
    with pytest.raises(ZeroDivisionError), precision(999):
        raise ZeroDivisionError
    assert ctx.prec == before


SMALL = intervals.Box((Fraction(7, 100), Fraction(9, 100)), (Fraction(9, 10), Fraction(11, 10)))


def test_a_box_contains_the_values_at_its_points() -> None:
    box = intervals.Box((Fraction(79, 1000), Fraction(81, 1000)), (Fraction(99, 100), Fraction(101, 100)))
    with precision(80):
        enclosed = intervals.enclose_on_box(intervals.bounds_at_two, box)
        for q, sigma in ((0.079, 0.99), (0.08, 1.0), (0.081, 0.995)):
            law, kernel_s = GaussianPair((3.0 * q) ** 0.5), Gaussian(sigma)  # coupling ρ²/3 at bandwidth one on Z
            bounds = spectral.upper_bounds(law, kernel_z=Gaussian(1.0), kernel_s=kernel_s, m=3)
            integral = law.expected_squared_mmd(Gaussian(1.0))
            fourth = law.hsic(Gaussian(1.0), kernel_s) / law.mercer(kernel_s).eigenvalues(4)[-1]
            others = [(bounds[0] - bounds[1]), (bounds[2] - bounds[1]), fourth - bounds[1]]
            for value, one in zip(
                [1.25 - bounds[1] / integral, *(x / integral for x in others)], enclosed, strict=True
            ):
                assert float(one.lower()) - 1e-12 <= value <= float(one.upper()) + 1e-12


def test_a_box_is_decided_either_way_or_not_at_all() -> None:
    with precision(80):
        assert intervals.prove_on_box(intervals.bounds_at_two, SMALL)[0] > 0
        tight = functools.partial(intervals.bounds_at_two, loss=Fraction(101, 100))
        assert intervals.prove_on_box(tight, SMALL)[0] < 0
        assert np.isnan(intervals.prove_on_box(intervals.bounds_at_two, SMALL, limit=2)[0])
        whole = intervals.prove_on_box(lambda q, s: [q * 0 + 1], SMALL)
        assert whole == (1.0, 1)
