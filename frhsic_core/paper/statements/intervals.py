"""Proposition 4.1 and Theorem 4.5 on Gaussian pairs, proved in ball arithmetic.

The closed forms of :mod:`frhsic_core.laws` are written for any type of number. Fed with balls of python-flint
(``flint.arb``) they return rigorous enclosures. If the balls of the two sides do not overlap, the inequality is proved
for those parameters, rounding included. E[MMD] is an integral of a square root: ``flint.acb.integral`` encloses it on
[−R, R], which errs on the safe side. Parameters are fractions, so nothing is rounded on the way in. The grid has seven
correlations and five bandwidths on each side.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from fractions import Fraction
from itertools import product
from typing import Any

from frhsic_core.laws import formulas, mercer
from frhsic_core.paper.statements import Certificate, check, tightest
from frhsic_core.paper.statements.certificate import enclosed_inequality

REACH = 12  # P(|S| > 12) < 4e-33
BITS = 160
Ball = Any  # flint.arb


@contextmanager
def precision(bits: int = BITS) -> Iterator[None]:
    """Set the precision of python-flint for a block, and restore the old one afterwards."""
    from flint import ctx

    before = ctx.prec
    ctx.prec = bits
    try:
        yield
    finally:
        ctx.prec = before


def _sqrt(x: Ball) -> Ball:
    return x.sqrt()


def _expm1(x: Ball) -> Ball:
    return x.expm1()


def ball(x: Fraction | int) -> Ball:
    """Return the ball of a fraction at the current precision."""
    from flint import arb

    fraction = Fraction(x)
    return arb(fraction.numerator) / fraction.denominator


class PairBalls:
    """A Gaussian pair with Gaussian kernels, every quantity an enclosure (inside :func:`precision`).

    Parameters
    ----------
    rho, sigma_z, sigma_s : Fraction
        Correlation and the two bandwidths.

    Examples
    --------
    >>> with precision():
    ...     pair = PairBalls(Fraction(1, 2), Fraction(1), Fraction(1))
    ...     round(float(pair.hsic), 12), bool(pair.hsic < pair.squared_integral)
    (0.010763320144, True)
    """

    def __init__(self, rho: Fraction, sigma_z: Fraction, sigma_s: Fraction) -> None:
        self.rho, self.sigma_z, self.sigma_s = ball(rho), ball(sigma_z), ball(sigma_s)
        self.mean = formulas.mean_kernel(self.sigma_z, sqrt=_sqrt)
        self.coupling = formulas.pair_coupling(self.rho, self.sigma_z)
        self.hsic = formulas.hsic(self.mean, self.coupling, self.sigma_s, sqrt=_sqrt)
        self.squared_integral = formulas.expected_squared_mmd(self.mean, self.coupling, sqrt=_sqrt)

    def eigenvalue(self, m: int) -> Ball:
        """Return λ_m of T_S, counted from one as the paper does."""
        return mercer.eigenvalue(m - 1, self.sigma_s, sqrt=_sqrt)

    def captured(self, m: int) -> Ball:
        """Return ‖P_mΔ‖² = Σ_{ℓ≤m}‖Δ_ℓ‖²."""
        terms = [mercer.delta_coefficient(l, self.mean, self.coupling, self.sigma_s, sqrt=_sqrt) for l in range(m)]
        return sum(terms[1:], start=terms[0])


def expected_mmd_ball(pair: PairBalls) -> Ball:
    """Enclose 2∫₀^R MMD(s)φ(s) ds, which is at most E[MMD]: the side on which a bound by E[MMD] must err."""
    from flint import acb, arb

    mean, coupling = acb(pair.mean), acb(pair.coupling)

    def integrand(s: Any, analytic: bool) -> Any:
        squared = formulas.conditional_squared_mmd(mean, coupling, s, sqrt=_sqrt, expm1=_expm1)
        return squared.sqrt(analytic=analytic) * (-s * s / 2).exp()

    value = acb.integral(integrand, 0, REACH, rel_tol=2.0**-60, abs_tol=2.0**-80).real
    return 2 * value / (2 * arb.pi()).sqrt()


RHOS = tuple(Fraction(k, 100) for k in (1, 10, 30, 50, 70, 90, 99))
SIGMAS = tuple(Fraction(k, 4) for k in (1, 2, 4, 8, 16))


def _certify(claim: str, *, left: Ball, right: Ball, **details: Any) -> Certificate:
    assumptions = ("parameters are exact fractions", "κ_S = 1")
    shown = {name: str(value) if isinstance(value, Fraction) else value for name, value in details.items()}
    return enclosed_inequality(
        claim, left=left, right=right, evidence="interval", assumptions=assumptions, details=shown
    )


def _tightest(certificates: list[Certificate]) -> Certificate:
    """Return the tightest certificate with the number of inequalities that were proved."""
    chosen = tightest(certificates)
    return replace(chosen, details={**chosen.details, "inequalities proved": len(certificates)})


@check("Proposition 4.1")
def proposition_bound(*, quick: bool) -> list[Certificate]:
    """Check Proposition 4.1's bound at every point of the grid of ρ and σ."""
    claim = "proved on a grid of Gaussian pairs: HSIC ≤ κ(E MMD)²"
    sigmas = SIGMAS[1:4] if quick else SIGMAS
    found = []
    with precision():
        for rho, sigma_z in product(RHOS, sigmas):
            upper = expected_mmd_ball(PairBalls(rho, sigma_z, sigma_z)) ** 2
            for sigma_s in sigmas:
                hsic = PairBalls(rho, sigma_z, sigma_s).hsic
                found.append(_certify(claim, left=hsic, right=upper, rho=rho, sigma_z=sigma_z, sigma_s=sigma_s))
    return [_tightest(found)]


@check("Theorem 4.5")
def theorem_two_sides() -> list[Certificate]:
    """Check Theorem 4.5, both sides, m = 1, …, 8, at every point of the grid."""
    claim = "proved on a grid of Gaussian pairs:"
    lower, upper = [], []
    with precision():
        for rho, sigma_z, sigma_s in product(RHOS, SIGMAS, SIGMAS):
            pair = PairBalls(rho, sigma_z, sigma_s)
            point = {"rho": rho, "sigma_z": sigma_z, "sigma_s": sigma_s}
            integral = pair.squared_integral
            lower.append(_certify(f"{claim} lower side", left=pair.hsic, right=integral, **point))
            for m in range(1, 9):
                bound = pair.hsic / pair.eigenvalue(m) + (integral - pair.captured(m))
                upper.append(_certify(f"{claim} upper side, m = 1..8", left=integral, right=bound, **point, m=m))
    return [_tightest(lower), _tightest(upper)]
