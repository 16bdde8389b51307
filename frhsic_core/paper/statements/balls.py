"""Gaussian pairs in ball arithmetic: every quantity of section 4 as a rigorous enclosure.

The closed forms of :mod:`frhsic_core.laws` are written for any type of number. Fed with balls of python-flint
(``flint.arb``) they return enclosures, and an inequality whose balls do not overlap is proved for those parameters,
rounding included. E[MMD] and GDP are integrals of a square root and of an absolute value: ``flint.acb.integral``
encloses them on [−R, R] and the mass beyond R is bounded. Parameters are fractions, so nothing is rounded on the way
in.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from fractions import Fraction
from typing import Any

from frhsic_core.laws import formulas, mercer

__all__ = ["Ball", "HeadBalls", "PairBalls", "ball", "expected_mmd_ball", "gdp_ball", "precision"]

REACH = 12  # P(|S| > 12) < 4e-33
BITS = 160
Ball = Any  # flint.arb


@contextmanager
def precision(bits: int = BITS) -> Iterator[None]:
    """Set the precision of python-flint for a block, and put the old one back."""
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
        """λ_m of T_S, counted from one as the paper does."""
        return mercer.eigenvalue(m - 1, self.sigma_s, sqrt=_sqrt)

    def captured(self, m: int) -> Ball:
        """‖P_mΔ‖² = Σ_{ℓ≤m}‖Δ_ℓ‖²."""
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


class HeadBalls:
    """A head f = Σ a_j k(c_j, ·) on a pair: its norm, E m_f², coefficients and GDP as enclosures."""

    def __init__(self, pair: PairBalls, centres: tuple[Fraction, ...], weights: tuple[Fraction, ...]) -> None:
        self.pair, self.centres, self.weights = pair, [ball(c) for c in centres], [ball(w) for w in weights]
        spread = pair.sigma_z * pair.sigma_z + 1
        scale = pair.sigma_z / spread.sqrt()
        self.means = [
            w * scale * (-c * c / (2 * spread)).exp() for w, c in zip(self.weights, self.centres, strict=True)
        ]
        self.tilts = [pair.rho * c / spread for c in self.centres]
        self.coupling = pair.rho * pair.rho / spread

    @property
    def squared_norm(self) -> Ball:
        """‖f‖² = aᵀKa."""
        sigma = self.pair.sigma_z
        terms = [
            w * v * (-(c - d) * (c - d) / (2 * sigma * sigma)).exp()
            for w, c in zip(self.weights, self.centres, strict=True)
            for v, d in zip(self.weights, self.centres, strict=True)
        ]
        return sum(terms[1:], start=terms[0])

    @property
    def squared_gap(self) -> Ball:
        """E_S[m_f(S)²]."""
        terms = [
            a * b * formulas.head_squared_gap(u, v, self.coupling, sqrt=_sqrt, expm1=_expm1)
            for a, u in zip(self.means, self.tilts, strict=True)
            for b, v in zip(self.means, self.tilts, strict=True)
        ]
        return sum(terms[1:], start=terms[0])

    def coefficients(self, m: int) -> list[Ball]:
        """⟨m_f, ψ_ℓ⟩ for ℓ = 1, …, m: Gaussian integrals of Hermite functions by their three-term recurrence."""
        omega = mercer.frequency(self.pair.sigma_s, sqrt=_sqrt)
        envelope = omega.sqrt().sqrt()
        slack = 1 - self.coupling
        tight = (omega - 1) / 2 + 1 / slack
        # E ψ_ℓ: the same integral with the tilt and the coupling switched off.
        constant = _hermite(ball(0), (omega - 1) / (omega + 1), m)
        constant = [envelope * (2 / (omega + 1)).sqrt() * value for value in constant]
        total = [ball(0)] * m
        for mean, tilt in zip(self.means, self.tilts, strict=True):
            shift = tilt / (slack * tight)
            factor = envelope / (tight * slack).sqrt() * ((shift * tilt - tilt * tilt) / (2 * slack)).exp()
            series = _hermite(omega.sqrt() * shift, omega / tight - 1, m)
            total = [t + mean * (factor * v - c) for t, v, c in zip(total, series, constant, strict=True)]
        return total


def _hermite(linear: Ball, quadratic: Ball, m: int) -> list[Ball]:
    """√(l!)·[t^l] exp(quadratic·t²/2 + linear·t) for l < m."""
    series = [ball(1), linear]
    for l in range(1, m - 1):
        series.append((linear * series[l] + quadratic * ball(l).sqrt() * series[l - 1]) / ball(l + 1).sqrt())
    return series[:m]


def gdp_ball(head: HeadBalls) -> Ball:
    """Enclose E_S|m_f(S)|: the integral on [−R, R], and beyond it at most 2‖f‖·P(|S| > R)."""
    from flint import acb, arb

    terms = [(acb(mean), acb(tilt)) for mean, tilt in zip(head.means, head.tilts, strict=True)]
    coupling = acb(head.coupling)

    def integrand(s: Any, analytic: bool) -> Any:
        gaps = [formulas.head_gap(mean, tilt, coupling, s, sqrt=_sqrt, expm1=_expm1) for mean, tilt in terms]
        return sum(gaps[1:], start=gaps[0]).real_abs(analytic=analytic) * (-s * s / 2).exp()

    value = acb.integral(integrand, -REACH, REACH, rel_tol=2.0**-40, abs_tol=2.0**-60).real / (2 * arb.pi()).sqrt()
    outside = 2 * head.squared_norm.sqrt() * (arb(REACH) / arb(2).sqrt()).erfc()
    return value.union(value + outside)
