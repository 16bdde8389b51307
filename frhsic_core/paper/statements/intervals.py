"""Rigorous evidence: Proposition 4.1, Theorem 4.5 and Corollary 4.6 on Gaussian pairs in ball arithmetic.

Both sides of each inequality are enclosed (:mod:`frhsic_core.paper.statements.balls`); where the enclosures do not
overlap it is proved for those parameters, rounding included. The grid has seven correlations and five bandwidths on
each side.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any

from frhsic_core.paper.statements.balls import Ball, HeadBalls, PairBalls, expected_mmd_ball, gdp_ball, precision
from frhsic_core.paper.statements.certificate import Certificate, Verdict

__all__ = ["RHOS", "SIGMAS", "enclosed_inequality"]

RHOS = tuple(Fraction(k, 100) for k in (1, 10, 30, 50, 70, 90, 99))
SIGMAS = tuple(Fraction(k, 4) for k in (1, 2, 4, 8, 16))


def enclosed_inequality(
    statement: str, label: str, claim: str, *, left: Ball, right: Ball, details: dict[str, Any] | None = None
) -> Certificate:
    """Certify ``left ≤ right`` for two balls: "holds" only if every number of one is at most every number of the other.

    Overlapping balls are "inconclusive": more bits are needed. The slack is the lower end of the difference.
    """
    difference = right - left
    verdict: Verdict = "holds" if difference >= 0 else ("fails as stated" if difference < 0 else "inconclusive")
    return Certificate(
        statement=statement, label=label, claim=claim, relation="<=", middle=float(left.mid()),
        upper=float(right.mid()), slack=float(difference.lower()), tolerance=0.0, evidence="interval", verdict=verdict,
        assumptions=("parameters are exact fractions", "κ_S = 1"), details=details or {},
    )  # fmt: skip


def _tightest(certificates: list[Certificate]) -> Certificate:
    """Return a certificate that does not hold, if there is one; else the one with the least relative slack."""
    worst = [c for c in certificates if c.verdict != "holds"]
    chosen = worst[0] if worst else min(certificates, key=lambda c: c.slack / c.upper)
    return Certificate(**{**chosen.__dict__, "details": {**chosen.details, "inequalities proved": len(certificates)}})


def proposition_bound(*, quick: bool) -> list[Certificate]:
    """Proposition 4.1's bound at every point of the grid of ρ and σ."""
    sigmas = SIGMAS[1:4] if quick else SIGMAS
    found = []
    with precision():
        for rho in RHOS:
            for sigma_z in sigmas:
                lower = expected_mmd_ball(PairBalls(rho, sigma_z, sigma_z)) ** 2
                for sigma_s in sigmas:
                    found.append(enclosed_inequality(
                        "Proposition 4.1", "thm:EIPM_HSIC", "proved on a grid of Gaussian pairs: HSIC ≤ κ(E MMD)²",
                        left=PairBalls(rho, sigma_z, sigma_s).hsic, right=lower,
                        details={"rho": str(rho), "sigma_z": str(sigma_z), "sigma_s": str(sigma_s)},
                    ))  # fmt: skip
    return [_tightest(found)]


def theorem_two_sides(*, quick: bool) -> list[Certificate]:
    """Theorem 4.5, both sides, m = 1, …, 8, at every point of the grid."""
    number, label = "Theorem 4.5", "cor:hsic-mmd-equivalence"
    lower, upper = [], []
    with precision():
        for rho in RHOS:
            for sigma_z in SIGMAS:
                for sigma_s in SIGMAS:
                    pair = PairBalls(rho, sigma_z, sigma_s)
                    point = {"rho": str(rho), "sigma_z": str(sigma_z), "sigma_s": str(sigma_s)}
                    lower.append(enclosed_inequality(
                        number, label, "proved on a grid of Gaussian pairs: lower side", left=pair.hsic,
                        right=pair.squared_integral, details=point,
                    ))  # fmt: skip
                    for m in range(1, 9):
                        tail = pair.squared_integral - pair.captured(m)
                        upper.append(enclosed_inequality(
                            number, label, "proved on a grid of Gaussian pairs: upper side, m = 1..8",
                            left=pair.squared_integral, right=pair.hsic / pair.eigenvalue(m) + tail,
                            details={**point, "m": m},
                        ))  # fmt: skip
    return [_tightest(lower), _tightest(upper)]


def corollary_heads(*, quick: bool) -> list[Certificate]:
    """Corollary 4.6, both inequalities, m = 1, …, 8, for three heads."""
    number, label = "Corollary 4.6", "cor:spectral_gdp_control"
    heads = (((0,), (1,)), ((1,), (1,)), ((-1, 1), (-1, 1)))
    sigmas = SIGMAS[2:3] if quick else SIGMAS[1:4]
    projected, whole = [], []
    with precision():
        for rho in RHOS[1:6:2] if quick else RHOS:
            for sigma_z in sigmas:
                for centres, weights in heads:
                    points = tuple(map(Fraction, centres)), tuple(map(Fraction, weights))
                    gdp = gdp_ball(HeadBalls(PairBalls(rho, sigma_z, sigma_z), *points))
                    for sigma_s in sigmas:
                        pair = PairBalls(rho, sigma_z, sigma_s)
                        head = HeadBalls(pair, *points)
                        squares = [c * c for c in head.coefficients(8)]
                        for m in range(1, 9):
                            bound = head.squared_norm * pair.hsic / pair.eigenvalue(m)
                            captured = sum(squares[1:m], start=squares[0])
                            point = {"rho": str(rho), "sigma_z": str(sigma_z), "sigma_s": str(sigma_s), "m": m,
                                     "centres": list(centres)}  # fmt: skip
                            projected.append(enclosed_inequality(
                                number, label, "proved on a grid of Gaussian pairs: projected gap, m = 1..8",
                                left=captured, right=bound, details=point))  # fmt: skip
                            whole.append(enclosed_inequality(
                                number, label, "proved on a grid of Gaussian pairs: GDP with its tail, m = 1..8",
                                left=gdp * gdp, right=bound + head.squared_gap - captured, details=point))  # fmt: skip
    return [_tightest(projected), _tightest(whole)]


CHECKS = {
    "Proposition 4.1": [proposition_bound],
    "Theorem 4.5": [theorem_two_sides],
    "Corollary 4.6": [corollary_heads],
}
