"""Theorem 4.5, Corollary 4.6 and Remark B.3: HSIC and the conditional MMD integral, up to a tail.

With the eigenpairs (λ_ℓ, ψ_ℓ) of T_S and Δ_ℓ = E_S[Δ(S)ψ_ℓ(S)],

    HSIC = Σ λ_ℓ‖Δ_ℓ‖²,   HSIC/κ ≤ E[MMD²] ≤ HSIC/λ_m + ρ_m²,   ρ_m² = E[MMD²] − Σ_{ℓ≤m}‖Δ_ℓ‖².

The tail ρ_m² is what the first m eigenfunctions leave. It contains the part of Δ in the kernel of
T_S. Without that part the bound is false for a kernel whose operator is not injective
(:func:`kernel_of_the_operator`).

The Gaussian pair has all of these in closed form. The paper calls λ_m the counterpart of the
empirical λ̂_m of Theorem 4.7. It is not: λ̂_m belongs to the *centred* Gram matrix and converges to
an eigenvalue of the centred operator, which lies between λ_{m+1} and λ_m. Since Δ has mean zero
both theorems hold with the centred system, and that form is the counterpart.

Remark B.3 is about the smallest positive eigenvalue λ̂_S of the centred Gram matrix of S. It tends
to 1/n as σ → 0 if all S_i are distinct, and to 0 as σ → ∞, as printed. With tied values the first
limit is another number, and between the limits there is no power law of exponent about −1. For n
distinct points the k-th positive eigenvalue falls like σ^(−2k), so the smallest falls like
σ^(−2(n−1)): at n = 1500 far below anything float64 can hold. A cut-off at 10⁻⁶·λ_max records the
cut-off instead. These eigenvalues are enclosed in ball arithmetic.
"""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np
import torch

from frhsic_core.joint.contraction import center
from frhsic_core.kernels import Gaussian
from frhsic_core.laws import GaussianPair, _mercer, formulas
from frhsic_core.paper.statements import Certificate, check, equality, inequality, strict_inequality
from frhsic_core.paper.statements.certificate import enclosed_inequality
from frhsic_core.paper.statements.smoothing import deviations_of_joint

Ball = Any  # flint.arb


def ball(x: Fraction | int) -> Ball:
    """Return the ball of a fraction at the current precision."""
    from flint import arb

    fraction = Fraction(x)
    return arb(fraction.numerator) / fraction.denominator


def ball_sqrt(x: Ball) -> Ball:
    """Return the square root of a ball."""
    return x.sqrt()


def two_sides(rho: Fraction, sigma_z: Fraction, sigma_s: Fraction) -> tuple[Ball, Ball, list[Ball]]:
    """Enclose HSIC, E[MMD²] and HSIC/λ_m + ρ_m² for m = 1, …, 8.

    They are those of a Gaussian pair with Gaussian kernels. The closed forms of
    :mod:`frhsic_core.laws` are written for any type of number, so that balls give enclosures.

    Examples
    --------
    >>> from flint import ctx
    >>> with ctx.workprec(160):
    ...     hsic, integral, bounds = two_sides(Fraction(1, 2), Fraction(1), Fraction(1))
    ...     round(float(hsic), 12), bool(hsic < integral)
    (0.010763320144, True)
    """
    width_z = ball(sigma_z)
    width_s = ball(sigma_s)
    mean = formulas.mean_kernel(width_z, sqrt=ball_sqrt)
    coupling = formulas.pair_coupling(ball(rho), width_z)
    hsic = formulas.hsic(mean, coupling, width_s, sqrt=ball_sqrt)
    integral = formulas.expected_squared_mmd(mean, coupling, sqrt=ball_sqrt)
    tail = integral
    bounds = []
    for l in range(8):  # the paper counts from one
        tail = tail - _mercer.delta_coefficient(l, mean, coupling, width_s, sqrt=ball_sqrt)
        eigenvalue = _mercer.eigenvalue(l, width_s, sqrt=ball_sqrt)
        bounds.append(hsic / eigenvalue + tail)
    return hsic, integral, bounds


RHOS = tuple(Fraction(k, 100) for k in (1, 10, 30, 50, 70, 90, 99))
SIGMAS = tuple(Fraction(k, 4) for k in (1, 2, 4, 8, 16))


def proved(side: str, pairs: list[tuple[Ball, Ball]]) -> Certificate:
    """Certify one side of Theorem 4.5 for all pairs of enclosed numbers."""
    return enclosed_inequality(
        f"proved on a grid of Gaussian pairs: {side}",
        pairs,
        evidence="interval",
        assumptions=("parameters are exact fractions", "κ_S = 1"),
        details={"inequalities proved": len(pairs)},
    )


@check("Theorem 4.5")
def proved_on_a_grid() -> list[Certificate]:
    """Check both sides of Theorem 4.5 on a grid: balls that do not overlap are a proof."""
    from flint import ctx

    with ctx.workprec(160):
        lower = []
        upper = []
        for rho, sigma_z, sigma_s in product(RHOS, SIGMAS, SIGMAS):
            hsic, integral, bounds = two_sides(rho, sigma_z, sigma_s)
            lower.append((hsic, integral))
            upper += [(integral, bound) for bound in bounds]
        return [proved("lower side", lower), proved("upper side, m = 1..8", upper)]


@check("Theorem 4.5")
def kernel_of_the_operator() -> list[Certificate]:
    """Check that the tail needs the kernel of T_S.

    S = ±1 with equal chance, k_S is a function of |s|, and Z = S. So k_S is constant on the two
    values, HSIC is zero, and T_S has one positive eigenvalue with a constant eigenfunction, along
    which Δ, of mean zero, has nothing.
    """
    size = torch.tensor([[1.0], [1.0]], dtype=torch.float64)  # |s| at s = −1 and s = 1
    half = 0.5 * torch.eye(2, dtype=torch.float64)
    identity = 2.0 * half
    deviations = deviations_of_joint(half, identity, Gaussian(1.0)(size))
    spectrum = deviations.spectrum()
    hsic = deviations.hsic.item()
    integral = deviations.expected_squared_mmd.item()
    first = spectrum.energies[0].item()  # the eigenvalues fall, and the second is zero
    positive = spectrum.eigenvalues > 1e-12
    partial = spectrum.energies[positive].sum().item() - first
    bound = hsic / spectrum.eigenvalues[0].item()
    return [
        strict_inequality(
            "without the kernel of T_S in the tail the upper side fails: "
            "k_S a function of |s| and Z = sign S",
            middle=bound + partial,
            upper=integral,
            evidence="exact",
            details={"HSIC": hsic, "tail": partial},
        ),
        inequality(
            "with the kernel of T_S in the tail the upper side holds: "
            "k_S a function of |s| and Z = sign S",
            middle=integral,
            upper=bound + integral - first,
            evidence="exact",
            details={"HSIC": hsic, "tail": integral - first},
        ),
        inequality(
            "text: the tail vanishes as m grows, since T_S is compact; "
            "k_S a function of |s| and Z = sign S, all of m",
            middle=integral - first - partial,
            upper=0.0,
            evidence="exact",
        ),
    ]


@check("Theorem 4.5")
def equal_up_to_the_tail() -> list[Certificate]:
    """Check whether HSIC and the integral differ by the tail alone, Gaussian pair at ρ = .5."""
    law = GaussianPair(0.5)
    kernel = Gaussian(1.0)
    m = 2
    hsic = law.hsic(kernel, kernel)
    integral = law.expected_squared_mmd(kernel)
    tail = law.spectral_tail(kernel, kernel, m=m)
    eigenvalue = float(law.mercer(kernel).eigenvalues(m)[-1])
    return [
        inequality(
            "text: HSIC equals the conditional MMD integral up to the tail, "
            "Gaussian pair at rho = .5",
            middle=integral - hsic,
            upper=tail,
            evidence="exact",
            details={"m": m, "tail": tail},
        ),
        inequality(
            "HSIC divided by the eigenvalue is the integral up to the tail, "
            "Gaussian pair at rho = .5",
            middle=integral - hsic / eigenvalue,
            upper=tail,
            evidence="exact",
            corrected=True,
            details={"m": m, "eigenvalue": eigenvalue, "tail": tail},
        ),
    ]


@check("Theorem 4.5", "Theorem 4.7")
def centred_counterpart(*, quick: bool) -> list[Certificate]:
    """Compare λ_m with the centered eigenvalue, which λ̂_m of Theorem 4.7 estimates.

    The theorem is then checked with the centered eigenvalue.
    """
    law = GaussianPair(0.5)
    kernel = Gaussian(1.0)
    plain = law.mercer(kernel).eigenvalues(9)
    centered = law.centered_spectrum(kernel, kernel, m=8).eigenvalues
    above = (centered - plain[:8]).max()
    below = (plain[1:] - centered).max()
    s = normal_quantiles(800 if quick else 2500)
    empirical = centered_eigenvalues(s, bandwidth=1.0)[0].item()

    # The pair whose bound is closest to the integral.
    closest = math.inf
    for rho, sigma_z, sigma_s in product((0.1, 0.5, 0.95), (0.5, 1.0, 3.0), (0.5, 1.0, 3.0)):
        pair = GaussianPair(rho)
        kernel_z = Gaussian(sigma_z)
        kernel_s = Gaussian(sigma_s)
        eigenvalues, energies = pair.centered_spectrum(kernel_z, kernel_s, m=8)
        integral = pair.expected_squared_mmd(kernel_z)
        tails = np.maximum(integral - np.cumsum(energies), 0.0)
        best = float((pair.hsic(kernel_z, kernel_s) / eigenvalues + tails).min())
        if best / integral < closest:
            closest = best / integral
            total, bound = integral, best
    return [
        equality(
            "'population counterpart': the empirical λ̂_1 of Theorem 4.7 tends to λ_1 of T_S",
            left=empirical,
            right=float(plain[0]),
            evidence="exact",
            tolerance=0.05,
            details={
                "lambda_1": float(plain[0]),
                "centred lambda_1": float(centered[0]),
                "empirical": empirical,
            },
        ),
        equality(
            "it tends to the first eigenvalue of the centred operator",
            left=empirical,
            right=float(centered[0]),
            evidence="exact",
            tolerance=0.01,
            corrected=True,
        ),
        inequality(
            "the eigenvalues interlace: λ_(m+1) ≤ centred λ_m ≤ λ_m for m = 1..8",
            middle=float(max(above, below)),
            upper=0.0,
            evidence="exact",
        ),
        inequality(
            "the upper side holds with the centred operator, at its best m",
            middle=total,
            upper=bound,
            evidence="exact",
            corrected=True,
        ),
    ]


CUT_OFF = 1e-6  # of the figure: eigenvalues below this part of the largest are left out


def normal_quantiles(n: int) -> torch.Tensor:
    """Return quantiles of N(0, 1): a sample without noise, so that n alone is the error."""
    levels = (torch.arange(n, dtype=torch.float64) + 0.5) / n
    return torch.distributions.Normal(0.0, 1.0).icdf(levels)


def centered_eigenvalues(s: torch.Tensor, *, bandwidth: float) -> torch.Tensor:
    """Return the eigenvalues of HLH/n, descending, float64; O(n³).

    The last is the zero of the constant vector.

    Examples
    --------
    >>> s = torch.tensor([0.0, 1.0, 2.0], dtype=torch.float64)
    >>> centered_eigenvalues(s, bandwidth=1e-3).round(decimals=6)
    tensor([0.3333, 0.3333, 0.0000], dtype=torch.float64)
    """
    gram = center(Gaussian(bandwidth)(s.reshape(-1, 1)))
    return torch.linalg.eigvalsh(gram / len(gram)).flip(0).clamp_min(0.0)


def kept_eigenvalue(eigenvalues: torch.Tensor, *, cut_off: float = CUT_OFF) -> tuple[float, int]:
    """Return the smallest eigenvalue above ``cut_off`` times the largest, and how many are kept."""
    kept = eigenvalues[eigenvalues > cut_off * eigenvalues[0]]
    return kept[-1].item(), len(kept)


def restricted_gram(points: list[Fraction], bandwidth: Fraction) -> Any:
    """Return the ball matrix whose eigenvalues are the positive ones of HLH/n.

    With the shares w_a of the k distinct points, it is (√w_a k(s_a, s_b) √w_b) on the complement of
    √w, where the zero of the constant vector is gone.
    """
    from flint import arb, arb_mat

    n = len(points)
    distinct = sorted(set(points))
    x = [ball(point) for point in distinct]
    roots = [ball(Fraction(points.count(point), n)).sqrt() for point in distinct]
    sigma = ball(bandwidth)
    k = len(distinct)
    gram = arb_mat(k, k)
    for i, j in product(range(k), range(k)):
        difference = x[i] - x[j]
        # A product, not a power: a ball around zero to the second power is NaN in python-flint.
        exponent = -difference * difference / (2 * sigma * sigma)
        gram[i, j] = roots[i] * roots[j] * exponent.exp()

    # Householder: the reflection that sends √w to minus the first axis; its other rows are the
    # basis.
    normal = [roots[0] + 1, *roots[1:]]
    squared_length = sum((entry * entry for entry in normal), arb(0))
    basis = arb_mat(k - 1, k)
    for i, j in product(range(1, k), range(k)):
        basis[i - 1, j] = int(i == j) - 2 * normal[i] * normal[j] / squared_length
    return basis * gram * basis.transpose()


def logarithm_of_middle(one: Ball) -> float:
    """Return log of the middle of a ball, minus infinity unless all of it is positive.

    A logarithm, since the middle of a small eigenvalue may be zero as a float.
    """
    if one > 0:
        return float(one.mid().log())
    return -math.inf


def enclosed_eigenvalues(
    points: list[Fraction], bandwidth: Fraction, *, bits: int = 400
) -> list[Any]:
    """Enclose the positive eigenvalues of HLH/n, descending, in balls of ``bits`` bits.

    For k distinct points these are k − 1 simple eigenvalues; python-flint isolates them rigorously,
    and raises ``ValueError`` if the bits do not suffice. O(k³) operations, with a large constant.

    Returns
    -------
    list of flint.arb
        k − 1 balls, each containing one eigenvalue.

    Examples
    --------
    >>> balls = enclosed_eigenvalues([Fraction(0), Fraction(1), Fraction(3)], Fraction(1))
    >>> [round(float(ball), 6) for ball in balls]
    [0.37057, 0.128769]
    """
    from flint import acb_mat, ctx

    with ctx.workprec(bits):
        balls = [value.real for value in acb_mat(restricted_gram(points, bandwidth)).eig()]
        return sorted(balls, key=logarithm_of_middle, reverse=True)


def enclosed_smallest(
    points: list[Fraction], bandwidth: Fraction, *, bits: int = 400, squarings: int = 30
) -> Any:
    """Enclose the smallest positive eigenvalue of HLH/n in a ball, without the others.

    For a positive definite B of r rows the largest eigenvalue to the power p lies between tr(B^p)/r
    and tr(B^p). With B the inverse of the matrix and p = 2^squarings this encloses the smallest
    one. ``ZeroDivisionError`` if the bits do not suffice for the inverse. ``squarings`` matrix
    products, O(k³) each, and no eigenvalue is isolated.

    Examples
    --------
    >>> round(float(enclosed_smallest([Fraction(0), Fraction(1), Fraction(3)], Fraction(1))), 6)
    0.128769
    """
    from flint import arb, ctx

    with ctx.workprec(bits):
        # The matrix B^p is exp(scale)·power; the power has trace one before each squaring, since an
        # exponent could overflow.
        power = restricted_gram(points, bandwidth).inv()
        scale = arb(0)
        for _ in range(squarings):
            trace = power.trace()
            scaled = power / trace
            scale = 2 * (scale + trace.log())
            power = scaled * scaled
        log_trace = power.trace().log() + scale
        p = 2**squarings
        least = -log_trace / p
        most = (arb(power.nrows()).log() - log_trace) / p
        return least.exp().union(most.exp())


@check("Remark B.3")
def limits() -> list[Certificate]:
    """Check both limits of the bandwidth, and the first one again with ties."""
    count = 40
    irregular = 0.01 * torch.sin(torch.arange(count, dtype=torch.float64))
    distinct = torch.linspace(-2.0, 2.0, count, dtype=torch.float64) + irregular
    smallest = centered_eigenvalues(distinct, bandwidth=1e-3)[-2].item()
    at_wide = centered_eigenvalues(distinct, bandwidth=1e2)[0].item()
    at_wider = centered_eigenvalues(distinct, bandwidth=1e4)[0].item()

    multiplicities = [2, 3, 7]  # integer ages: several people share each value
    ages = torch.arange(3.0, dtype=torch.float64)
    tied = torch.repeat_interleave(ages, torch.tensor(multiplicities))
    n = len(tied)
    positive = centered_eigenvalues(tied, bandwidth=1e-3)
    limit = positive[positive > 1e-10][-1].item()
    return [
        equality(
            "distinct values: the smallest positive eigenvalue tends to 1/n as σ → 0",
            left=count * smallest,
            right=1.0,
            evidence="exact",
            tolerance=1e-9,
        ),
        inequality(
            "all eigenvalues tend to zero as the bandwidth grows",
            middle=at_wider,
            upper=1.1e-4 * at_wide,
            evidence="exact",
        ),
        equality(
            "tied values: the limit as the bandwidth vanishes is 1/n",
            left=limit,
            right=1.0 / n,
            evidence="exact",
            details={"multiplicities": multiplicities, "n": n},
        ),
        inequality(
            "tied values: the limit lies between the two smallest multiplicities over n",
            lower=multiplicities[0] / n,
            middle=limit,
            upper=multiplicities[1] / n,
            evidence="exact",
            corrected=True,
        ),
    ]


@check("Remark B.3")
def power_law(*, quick: bool) -> list[Certificate]:
    """Check "polynomial dependence" with slopes near −1: the true exponent, and a cut-off."""
    from flint import arb

    n = 8
    points = [Fraction(i, n - 1) for i in range(n)]
    at_64 = enclosed_eigenvalues(points, Fraction(64))
    at_128 = enclosed_eigenvalues(points, Fraction(128))
    exponents = []
    distances = []
    for k, (larger, smaller) in enumerate(zip(at_64, at_128, strict=True), start=1):
        exponent = (larger / smaller).log() / arb(2).log()
        exponents.append(exponent)
        # How far the k-th exponent can be from 2k, over its whole ball.
        distances.append(float(abs(exponent - 2 * k).upper()))
    exact = enclosed_eigenvalues(points, Fraction(1))[-1]
    s = torch.arange(n, dtype=torch.float64) / (n - 1)
    kept, count = kept_eigenvalue(centered_eigenvalues(s, bandwidth=1.0))
    # At the size and the bandwidths of the paper: the value kept, against the cut-off.
    normal = normal_quantiles(300 if quick else 1500)
    sweep = []
    ranks = []
    for bandwidth in (0.1, 0.3, 1.0, 3.0, 10.0):
        eigenvalues = centered_eigenvalues(normal, bandwidth=bandwidth)
        value, rank = kept_eigenvalue(eigenvalues)
        sweep.append(value / (CUT_OFF * eigenvalues[0].item()))
        ranks.append(rank)
    return [
        inequality(
            "'polynomial dependence' with exponents within a factor of two of one",
            lower=0.5,
            middle=float(exponents[-1].lower()),
            upper=2.0,
            evidence="interval",
            details={"points": n, "between bandwidths": "64 and 128 times the range of S"},
        ),
        inequality(
            "the k-th eigenvalue of n distinct points falls with exponent 2k, k = 1..n−1",
            middle=max(distances),
            upper=1e-3,
            evidence="interval",
            corrected=True,
            details={"exponents": [float(exponent) for exponent in exponents]},
        ),
        inequality(
            "'smallest positive eigenvalue': the value kept by the cut-off is within twice of it",
            middle=kept,
            upper=2.0 * float(exact.upper()),
            evidence="interval",
            tolerance=0.0,
            details={"kept": kept, "kept rank": count, "true": float(exact.mid())},
        ),
        strict_inequality(
            "the value kept is the cut-off: within a factor 1e3 of it at every bandwidth",
            middle=math.log10(max(sweep)),
            upper=3.0,
            evidence="exact",
            margin=0.0,
            corrected=True,
            details={"kept ranks": ranks, "kept over cut-off": sweep},
        ),
    ]
