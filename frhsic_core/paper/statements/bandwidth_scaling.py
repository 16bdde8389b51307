"""Remark B.3: the smallest positive eigenvalue of the centred Gram matrix of S, against the bandwidth.

True as printed: λ̂_S tends to 1/n as σ → 0 if all S_i are distinct, and to 0 as σ → ∞. Not true: with tied values the
first limit is another number; and between the limits there is no power law of exponent about −1. For n distinct points
the k-th positive eigenvalue falls like σ^(−2k), so the smallest falls like σ^(−2(n−1)): at n = 1500 far below anything
float64 can hold. What a cut-off at 10⁻⁶·λ_max records instead is the cut-off. Eigenvalues here are enclosed in ball
arithmetic.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import torch

from frhsic_core.kernels import Gaussian
from frhsic_core.paper.statements.certificate import Certificate, equality, inequality, strict_inequality

__all__ = ["centred_eigenvalues", "enclosed_eigenvalues", "kept_eigenvalue"]

NUMBER, LABEL = "Remark B.3", "rem:lambda2_scaling"
CUT_OFF = 1e-6


def centred_eigenvalues(s: torch.Tensor, *, bandwidth: float) -> torch.Tensor:
    """Eigenvalues of HLH/n, descending, float64; O(n³). The last is the zero of the constant vector.

    Examples
    --------
    >>> centred_eigenvalues(torch.tensor([0.0, 1.0, 2.0], dtype=torch.float64), bandwidth=1e-3).round(decimals=6)
    tensor([0.3333, 0.3333, 0.0000], dtype=torch.float64)
    """
    gram = Gaussian(bandwidth)(s.reshape(-1, 1))
    gram = gram - gram.mean(0) - gram.mean(1, keepdim=True) + gram.mean()
    return torch.linalg.eigvalsh(gram / len(gram)).flip(0).clamp_min(0.0)


def kept_eigenvalue(eigenvalues: torch.Tensor, *, cut_off: float = CUT_OFF) -> tuple[float, int]:
    """Smallest eigenvalue above ``cut_off`` times the largest, and how many are kept: what the paper's figure shows."""
    kept = eigenvalues[eigenvalues > cut_off * eigenvalues[0]]
    return kept[-1].item(), len(kept)


def enclosed_eigenvalues(points: list[Fraction], bandwidth: Fraction, *, precision: int = 400) -> list[Any]:
    """Enclose the positive eigenvalues of HLH/n, descending, in balls of ``precision`` bits; distinct rational points.

    The matrix is written in an orthonormal basis of the vectors of sum zero, so that the zero of the constant vector is
    gone and the others are simple; python-flint isolates them rigorously. O(n³) operations.

    Returns
    -------
    list of flint.arb
        n − 1 balls, each containing one eigenvalue.

    Examples
    --------
    >>> balls = enclosed_eigenvalues([Fraction(0), Fraction(1), Fraction(3)], Fraction(1))
    >>> [round(float(ball), 6) for ball in balls]
    [0.37057, 0.128769]
    """
    from flint import acb_mat, arb, arb_mat, ctx

    before = ctx.prec
    ctx.prec = precision
    try:
        n, sigma = len(points), arb(bandwidth.numerator) / bandwidth.denominator
        x = [arb(point.numerator) / point.denominator for point in points]
        # A product, not a power: a ball around zero to the second power is NaN in python-flint.
        gram = arb_mat([[(-(a - b) * (a - b) / (2 * sigma * sigma)).exp() for b in x] for a in x])
        rows = []
        for k in range(1, n):
            c = 1 / arb(k * (k + 1)).sqrt()
            rows.append([c] * k + [-k * c] + [arb(0)] * (n - k - 1))
        basis = arb_mat(rows)
        balls = [value.real for value in acb_mat(basis * gram * basis.transpose() / n).eig()]
        return sorted(balls, key=lambda ball: -float(ball.mid()))
    finally:
        ctx.prec = before


def limits(*, quick: bool) -> list[Certificate]:
    """Both limits of the bandwidth, and the first one again with ties."""
    distinct = torch.linspace(-2.0, 2.0, 40, dtype=torch.float64) + 0.01 * torch.sin(
        torch.arange(40.0, dtype=torch.float64)
    )
    small = centred_eigenvalues(distinct, bandwidth=1e-3)[-2].item()
    large = [centred_eigenvalues(distinct, bandwidth=b)[0].item() for b in (1e2, 1e4)]
    multiplicity = (2, 3, 7)  # integer ages: several people share each value
    tied = torch.repeat_interleave(torch.arange(3.0, dtype=torch.float64), torch.tensor(multiplicity))
    n = len(tied)
    positive = centred_eigenvalues(tied, bandwidth=1e-3)
    limit = positive[positive > 1e-10][-1].item()
    return [
        equality(NUMBER, LABEL, "distinct values: the smallest positive eigenvalue tends to 1/n as σ → 0",
                 left=40.0 * small, right=1.0, evidence="exact", tolerance=1e-9),
        inequality(NUMBER, LABEL, "all eigenvalues tend to zero as the bandwidth grows", middle=large[1],
                   upper=1.1e-4 * large[0], evidence="exact"),
        equality(NUMBER, LABEL, "tied values: the limit as the bandwidth vanishes is 1/n", left=limit, right=1.0 / n,
                 evidence="exact", tolerance=1e-6, details={"multiplicities": list(multiplicity), "n": n}),
        inequality(NUMBER, LABEL, "tied values: the limit lies between the two smallest multiplicities over n",
                   lower=multiplicity[0] / n, middle=limit, upper=multiplicity[1] / n, evidence="exact",
                   corrected=True),
    ]  # fmt: skip


def power_law(*, quick: bool) -> list[Certificate]:
    """Check "polynomial dependence" with slopes near −1: the true exponent, and what a cut-off makes of it."""
    from flint import arb

    n = 8
    points = [Fraction(i, n - 1) for i in range(n)]
    narrow, wide = (enclosed_eigenvalues(points, Fraction(2**k)) for k in (6, 7))
    exponents = [(a / b).log() / arb(2).log() for a, b in zip(narrow, wide, strict=True)]
    # How far the k-th exponent can be from 2k, over its whole ball.
    miss = max(float(abs(exponent - 2 * k).upper()) for k, exponent in enumerate(exponents, start=1))
    exact = enclosed_eigenvalues(points, Fraction(1))[-1]
    s = torch.arange(n, dtype=torch.float64) / (n - 1)
    kept, count = kept_eigenvalue(centred_eigenvalues(s, bandwidth=1.0))
    # At the size of the paper: quantiles of N(0, 1); the value kept against the cut-off, over its bandwidths.
    size = 300 if quick else 1500
    normal = torch.distributions.Normal(0.0, 1.0).icdf((torch.arange(size, dtype=torch.float64) + 0.5) / size)
    sweep, ranks = [], []
    for bandwidth in (0.1, 0.3, 1.0, 3.0, 10.0):
        eigenvalues = centred_eigenvalues(normal, bandwidth=bandwidth)
        value, rank = kept_eigenvalue(eigenvalues)
        sweep.append(value / (CUT_OFF * eigenvalues[0].item()))
        ranks.append(rank)
    tops = [centred_eigenvalues(normal[:: size // 100], bandwidth=bandwidth)[0].item() for bandwidth in (50.0, 100.0)]
    return [
        inequality(NUMBER, LABEL, "'polynomial dependence' with exponents within a factor of two of one",
                   lower=0.5, middle=float(exponents[-1].lower()), upper=2.0, evidence="interval",
                   details={"points": n, "between bandwidths": "64 and 128 times the range of S"}),
        inequality(NUMBER, LABEL, "the k-th eigenvalue of n distinct points falls with exponent 2k, k = 1..n−1",
                   middle=miss, upper=1e-3, evidence="interval", corrected=True,
                   details={"exponents": [float(exponent) for exponent in exponents]}),
        inequality(NUMBER, LABEL, "'smallest positive eigenvalue': the value kept by the cut-off is within twice of it",
                   middle=kept, upper=2.0 * float(exact.upper()), evidence="interval", tolerance=0.0,
                   details={"kept": kept, "kept rank": count, "true": float(exact.mid())}),
        strict_inequality(NUMBER, LABEL, "the value kept is the cut-off: within a factor 1e3 of it at every bandwidth",
                          middle=math.log10(max(sweep)), upper=3.0, evidence="exact", margin=0.0, corrected=True,
                          details={"kept ranks": ranks, "kept over cut-off": sweep}),
        inequality(NUMBER, LABEL, "the largest eigenvalue, and with it a relative cut-off, falls like σ⁻²",
                   lower=-2.01, middle=math.log(tops[-1] / tops[-2]) / math.log(2.0), upper=-1.99,
                   evidence="exact", corrected=True),
    ]  # fmt: skip


CHECKS = {NUMBER: [limits, power_law]}
