"""Proposition 4.1, Theorem 4.5 and Corollary 4.6 on Gaussian pairs, proved in ball arithmetic.

The closed forms of :mod:`frhsic_core.laws` are written for any type of number. Fed with balls of python-flint
(``flint.arb``) they return rigorous enclosures. If the balls of the two sides do not overlap, the inequality is proved
for those parameters, rounding included. E[MMD] and GDP are integrals of a square root and of an absolute value:
``flint.acb.integral`` encloses them on [−R, R], and the mass beyond R is bounded. Parameters are fractions, so nothing
is rounded on the way in. The grid has seven correlations and five bandwidths on each side.

Numbers that a chapter quotes, such as "the best m is 2", are proved for whole boxes of parameters. A box is halved
until the enclosures over each part decide. Over a box the closed forms are expanded around its center, with derivatives
enclosed by truncated power series, so that the error falls with the square of the width.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import product
from typing import Any

from frhsic_core.laws import formulas, mercer
from frhsic_core.paper.statements import Certificate, check, inequality, tightest
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


class HeadBalls:
    """A head f = Σ a_j k(c_j, ·) on a pair: its norm, E m_f², coefficients and GDP as enclosures."""

    def __init__(self, pair: PairBalls, centers: tuple[Fraction, ...], weights: tuple[Fraction, ...]) -> None:
        self.pair, self.centers, self.weights = pair, [ball(c) for c in centers], [ball(w) for w in weights]
        spread = pair.sigma_z * pair.sigma_z + 1
        scale = pair.sigma_z / spread.sqrt()
        self.means = [
            w * scale * (-c * c / (2 * spread)).exp() for w, c in zip(self.weights, self.centers, strict=True)
        ]
        self.tilts = [pair.rho * c / spread for c in self.centers]
        self.coupling = pair.rho * pair.rho / spread

    @property
    def squared_norm(self) -> Ball:
        """‖f‖² = aᵀKa."""
        sigma = self.pair.sigma_z
        terms = [
            w * v * (-(c - d) * (c - d) / (2 * sigma * sigma)).exp()
            for w, c in zip(self.weights, self.centers, strict=True)
            for v, d in zip(self.weights, self.centers, strict=True)
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
        """Return ⟨m_f, ψ_ℓ⟩ for ℓ = 1, …, m, integrals of Hermite functions by their three-term recurrence."""
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
    """Return √(l!)·[t^l] exp(quadratic·t²/2 + linear·t) for l < m."""
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


@check("Corollary 4.6")
def corollary_heads(*, quick: bool) -> list[Certificate]:
    """Check Corollary 4.6, both inequalities, m = 1, …, 8, for three heads."""
    claim = "proved on a grid of Gaussian pairs:"
    heads = (((0,), (1,)), ((1,), (1,)), ((-1, 1), (-1, 1)))
    rhos = RHOS[1:6:2] if quick else RHOS
    sigmas = SIGMAS[2:3] if quick else SIGMAS[1:4]
    projected, whole = [], []
    with precision():
        for rho, sigma_z, (centers, weights) in product(rhos, sigmas, heads):
            points = tuple(map(Fraction, centers)), tuple(map(Fraction, weights))
            gdp = gdp_ball(HeadBalls(PairBalls(rho, sigma_z, sigma_z), *points))
            for sigma_s in sigmas:
                pair = PairBalls(rho, sigma_z, sigma_s)
                head = HeadBalls(pair, *points)
                squares = [c * c for c in head.coefficients(8)]
                for m in range(1, 9):
                    bound = head.squared_norm * pair.hsic / pair.eigenvalue(m)
                    captured = sum(squares[1:m], start=squares[0])
                    tail = head.squared_gap - captured
                    point = {"rho": rho, "sigma_z": sigma_z, "sigma_s": sigma_s, "m": m, "centres": list(centers)}
                    gap_claim = f"{claim} projected gap, m = 1..8"
                    projected.append(_certify(gap_claim, left=captured, right=bound, **point))
                    gdp_claim = f"{claim} GDP with its tail, m = 1..8"
                    whole.append(_certify(gdp_claim, left=gdp * gdp, right=bound + tail, **point))
    return [_tightest(projected), _tightest(whole)]


@dataclass(frozen=True)
class Box:
    """Ranges of the coupling q = ρ²/(σ_Z² + 2) and of the bandwidth σ_S, each a pair of fractions."""

    coupling: tuple[Fraction, Fraction]
    bandwidth: tuple[Fraction, Fraction]

    def halves(self) -> tuple[Box, Box]:
        """Cut the side that is longer relative to its lower end."""
        (a, b), (c, d) = self.coupling, self.bandwidth
        if b / a > d / c:
            return Box((a, (a + b) / 2), self.bandwidth), Box(((a + b) / 2, b), self.bandwidth)
        return Box(self.coupling, (c, (c + d) / 2)), Box(self.coupling, ((c + d) / 2, d))


Quantities = Callable[[Any, Any], list[Any]]  # of q and σ_S, balls or power series


def enclose_on_box(quantities: Quantities, box: Box) -> list[Ball]:
    """Enclose the values over a box: the value at its center, and the derivatives over the box times the distance."""
    from flint import arb_series

    ranges = [ball(low).union(ball(high)) for low, high in (box.coupling, box.bandwidth)]
    centers = [ball((low + high) / 2) for low, high in (box.coupling, box.bandwidth)]
    total = quantities(*centers)
    for moving in (0, 1):
        series = [arb_series([x, 1] if axis == moving else [x], prec=2) for axis, x in enumerate(ranges)]
        slopes = [value[1] for value in quantities(*series)]
        distance = ranges[moving] - centers[moving]
        total = [value + slope * distance for value, slope in zip(total, slopes, strict=True)]
    return total


def prove_on_box(quantities: Quantities, box: Box, *, limit: int = 50_000) -> tuple[float, int]:
    """Prove that all quantities are non-negative on a box by halving it; return the least lower end and the parts.

    A negative number means that a quantity is negative somewhere, NaN that ``limit`` parts did not decide.
    """
    waiting, least, parts = [box], math.inf, 0
    while waiting:
        part = waiting.pop()
        parts += 1
        try:
            values = enclose_on_box(quantities, part)
        except ValueError:  # a denominator whose enclosure over a large part contains zero
            waiting += part.halves()
            continue
        if any(value < 0 for value in values):
            return min(float(value.upper()) for value in values), parts
        if all(value >= 0 for value in values):
            least = min(least, *(float(value.lower()) for value in values))
        elif parts > limit:
            return math.nan, parts
        else:
            waiting += part.halves()
    return least, parts


LOSS = Fraction(5, 4)  # the upper bound at m = 2 is at most this times the integral


def bounds_at_two(coupling: Any, bandwidth: Any, *, loss: Fraction = LOSS) -> list[Any]:
    """Return what is non-negative if m = 2 is best in Theorem 4.5 and its bound is at most ``loss`` times E[MMD²].

    With b_m = HSIC/λ_m + ρ_m², divided by E[MMD²]: loss − b_2, b_1 − b_2, b_3 − b_2 and HSIC/λ_4 − b_2. The last one
    covers every m ≥ 4, since λ_m ≤ λ_4 and the tail is not negative. The factor μ_Z cancels, so that the correlation
    and the bandwidth on Z enter through the coupling alone.
    """
    one = 0 * coupling + 1
    hsic = formulas.hsic(one, coupling, bandwidth, sqrt=_sqrt)
    integral = formulas.expected_squared_mmd(one, coupling, sqrt=_sqrt)
    eigenvalues = [mercer.eigenvalue(l, bandwidth, sqrt=_sqrt) for l in range(4)]
    energies = [mercer.delta_coefficient(l, one, coupling, bandwidth, sqrt=_sqrt) for l in range(3)]
    first = hsic / eigenvalues[0] + integral - energies[0]
    second = hsic / eigenvalues[1] + integral - energies[0] - energies[1]
    third = hsic / eigenvalues[2] + integral - energies[0] - energies[1] - energies[2]
    above = [first - second, third - second, hsic / eigenvalues[3] - second]
    return [ball(loss) - second / integral, *(difference / integral for difference in above)]


@check("Theorem 4.5")
def best_resolution(*, quick: bool) -> list[Certificate]:
    """Prove on a box of couplings and bandwidths that the upper side is tightest at m = 2, and how tight it is."""
    center, reach = Fraction(1, 12), Fraction(1, 50)  # ρ = 1/2 and σ_Z = 1 have the coupling 1/12
    small = Box((center - reach, center + reach), (Fraction(9, 10), Fraction(11, 10)))
    box = small if quick else Box((Fraction(1, 20), Fraction(2, 5)), (Fraction(3, 4), Fraction(2)))
    with precision(80):
        least, parts = prove_on_box(bounds_at_two, box)
    shown = {name: [str(end) for end in getattr(box, name)] for name in ("coupling", "bandwidth")}
    claim = "proved for every Gaussian pair of a box: the upper side is smallest at m = 2, at most 5/4 of the integral"
    return [
        inequality(claim, middle=-least, upper=0.0, tolerance=0.0, evidence="interval",
                   details={**shown, "parts of the box": parts})
    ]  # fmt: skip
