"""Ball arithmetic: enclosures contain the float answers, and an inequality that is false is not proved."""

from __future__ import annotations

from fractions import Fraction

import pytest

from frhsic_core.kernels import Gaussian
from frhsic_core.laws import GaussianPair
from frhsic_core.paper.statements import intervals
from frhsic_core.paper.statements.certificate import enclosed_inequality
from frhsic_core.paper.statements.intervals import PairBalls, ball, expected_mmd_ball, precision

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
