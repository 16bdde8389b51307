"""Theorem 4.5, Corollary 4.6 and Remark B.3: HSIC and the conditional MMD integral, up to a spectral tail.

With the eigenpairs (λ_ℓ, ψ_ℓ) of T_S and Δ_ℓ = E_S[Δ(S)ψ_ℓ(S)],

    HSIC = Σ λ_ℓ‖Δ_ℓ‖²,   HSIC/κ ≤ E[MMD²] ≤ HSIC/λ_m + ρ_m²,   ρ_m² = E[MMD²] − Σ_{ℓ≤m}‖Δ_ℓ‖².

The tail ρ_m² is what the first m eigenfunctions leave. It contains the part of Δ in the kernel of T_S. Without that
part the bound is false for a kernel whose operator is not injective (:func:`kernel_of_the_operator`).

The Gaussian pair has all of these in closed form. The paper calls λ_m the counterpart of the empirical λ̂_m of Theorem
4.7. It is not: λ̂_m belongs to the *centred* Gram matrix and converges to an eigenvalue of the centred operator, which
lies between λ_{m+1} and λ_m. Since Δ has mean zero both theorems hold with the centred system, and that form is the
counterpart.

Remark B.3 is about the smallest positive eigenvalue λ̂_S of the centred Gram matrix of S. It tends to 1/n as σ → 0 if
all S_i are distinct, and to 0 as σ → ∞, as printed. With tied values the first limit is another number, and between the
limits there is no power law of exponent about −1. For n distinct points the k-th positive eigenvalue falls like
σ^(−2k), so the smallest falls like σ^(−2(n−1)): at n = 1500 far below anything float64 can hold. A cut-off at
10⁻⁶·λ_max records the cut-off instead. These eigenvalues are enclosed in ball arithmetic.
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


def two_sides(rho: Fraction, sigma_z: Fraction, sigma_s: Fraction) -> tuple[Ball, Ball, list[Ball]]:
    """Enclose HSIC, E[MMD²] and HSIC/λ_m + ρ_m² for m = 1, …, 8, of a Gaussian pair with Gaussian kernels.

    The closed forms of :mod:`frhsic_core.laws` are written for any type of number, so that balls give enclosures.

    Examples
    --------
    >>> from flint import ctx
    >>> with ctx.workprec(160):
    ...     hsic, integral, bounds = two_sides(Fraction(1, 2), Fraction(1), Fraction(1))
    ...     round(float(hsic), 12), bool(hsic < integral)
    (0.010763320144, True)
    """
    correlation, width_z, width_s = ball(rho), ball(sigma_z), ball(sigma_s)
    root: Any = {"sqrt": lambda x: x.sqrt()}
    mean, coupling = (
        formulas.mean_kernel(width_z, **root),
        formulas.pair_coupling(correlation, width_z),
    )
    hsic = formulas.hsic(mean, coupling, width_s, **root)
    integral = tail = formulas.expected_squared_mmd(mean, coupling, **root)
    bounds = []
    for l in range(8):  # the paper counts from one
        tail = tail - _mercer.delta_coefficient(l, mean, coupling, width_s, **root)
        bounds.append(hsic / _mercer.eigenvalue(l, width_s, **root) + tail)
    return hsic, integral, bounds


RHOS = tuple(Fraction(k, 100) for k in (1, 10, 30, 50, 70, 90, 99))
SIGMAS = tuple(Fraction(k, 4) for k in (1, 2, 4, 8, 16))


@check("Theorem 4.5")
def proved_on_a_grid() -> list[Certificate]:
    """Check Theorem 4.5, both sides, at every point of a grid: balls that do not overlap are a proof."""
    from flint import ctx

    with ctx.workprec(160):
        found = [two_sides(*point) for point in product(RHOS, SIGMAS, SIGMAS)]
        lower = [(hsic, integral) for hsic, integral, _ in found]
        upper = [(integral, bound) for _, integral, bounds in found for bound in bounds]
        return [
            enclosed_inequality(
                f"proved on a grid of Gaussian pairs: {side}", pairs, evidence="interval",
                assumptions=("parameters are exact fractions", "κ_S = 1"),
                details={"inequalities proved": len(pairs)})
            for side, pairs in (("lower side", lower), ("upper side, m = 1..8", upper))
        ]  # fmt: skip


@check("Theorem 4.5")
def kernel_of_the_operator() -> list[Certificate]:
    """Check that the tail needs the kernel of T_S: S = ±1 with equal chance, k_S a function of |s|, and Z = S.

    k_S is constant on the two values, so that HSIC is zero and T_S has one positive eigenvalue with a constant
    eigenfunction, along which Δ, of mean zero, has nothing.
    """
    size = torch.tensor([[1.0], [1.0]], dtype=torch.float64)  # |s| at s = −1 and s = 1
    half = 0.5 * torch.eye(2, dtype=torch.float64)
    d = deviations_of_joint(half, 2.0 * half, Gaussian(1.0)(size))
    spectrum = d.spectrum()
    hsic, integral = d.hsic.item(), d.expected_squared_mmd.item()
    first = spectrum.energies[0].item()  # the eigenvalues fall, and the second is zero
    partial = spectrum.energies[spectrum.eigenvalues > 1e-12].sum().item() - first
    bound = hsic / spectrum.eigenvalues[0].item()
    return [
        strict_inequality(
            "without the kernel of T_S in the tail the upper side fails: k_S a function of |s| and Z = sign S",
            middle=bound + partial, upper=integral, evidence="exact", details={"HSIC": hsic, "tail": partial}),
        inequality(
            "with the kernel of T_S in the tail the upper side holds: k_S a function of |s| and Z = sign S",
            middle=integral, upper=bound + integral - first, evidence="exact",
            details={"HSIC": hsic, "tail": integral - first}),
        inequality(
            "text: the tail vanishes as m grows, since T_S is compact; k_S a function of |s| and Z = sign S, all of m",
            middle=integral - first - partial, upper=0.0, evidence="exact"),
    ]  # fmt: skip


@check("Theorem 4.5")
def equal_up_to_the_tail() -> list[Certificate]:
    """Check whether HSIC and the integral differ by the tail alone, on the Gaussian pair at ρ = .5."""
    law, kernel, m = GaussianPair(0.5), Gaussian(1.0), 2
    difference = law.expected_squared_mmd(kernel) - law.hsic(kernel, kernel)
    tail = law.spectral_tail(kernel, kernel, m=m)
    eigenvalue = float(law.mercer(kernel).eigenvalues(m)[-1])
    return [
        inequality("text: HSIC equals the conditional MMD integral up to the tail, Gaussian pair at rho = .5",
                   middle=difference, upper=tail, evidence="exact", details={"m": m, "tail": tail}),
        inequality("HSIC divided by the eigenvalue is the integral up to the tail, Gaussian pair at rho = .5",
                   middle=law.expected_squared_mmd(kernel) - law.hsic(kernel, kernel) / eigenvalue, upper=tail,
                   evidence="exact", corrected=True, details={"m": m, "eigenvalue": eigenvalue, "tail": tail}),
    ]  # fmt: skip


@check("Theorem 4.5", "Theorem 4.7")
def centred_counterpart(*, quick: bool) -> list[Certificate]:
    """Compare λ_m with what λ̂_m of Theorem 4.7 estimates, the centred eigenvalue, and check the theorem with it."""
    law, kernel = GaussianPair(0.5), Gaussian(1.0)
    plain = law.mercer(kernel).eigenvalues(9)
    centered = law.centered_spectrum(kernel, kernel, m=8).eigenvalues
    n = 800 if quick else 2500
    # Quantiles of N(0, 1): a sample without noise, so that n alone is the error.
    s = (
        torch.distributions.Normal(0.0, 1.0)
        .icdf((torch.arange(n, dtype=torch.float64) + 0.5) / n)
        .unsqueeze(-1)
    )
    empirical = centered_eigenvalues(s, bandwidth=1.0)[0].item()
    upper_slack = []
    for rho, sigma_z, sigma_s in product((0.1, 0.5, 0.95), (0.5, 1.0, 3.0), (0.5, 1.0, 3.0)):
        pair, kernel_z, kernel_s = GaussianPair(rho), Gaussian(sigma_z), Gaussian(sigma_s)
        eigenvalues, energies = pair.centered_spectrum(kernel_z, kernel_s, m=8)
        total = pair.expected_squared_mmd(kernel_z)
        bounds = pair.hsic(kernel_z, kernel_s) / eigenvalues + np.maximum(
            total - np.cumsum(energies), 0.0
        )
        upper_slack.append((bounds.min() / total, total, float(bounds.min())))
    _, total, bound = min(upper_slack)
    return [
        equality("'population counterpart': the empirical λ̂_1 of Theorem 4.7 tends to λ_1 of T_S",
                 left=empirical, right=float(plain[0]), evidence="exact", tolerance=0.05,
                 details={"lambda_1": float(plain[0]), "centred lambda_1": float(centered[0]), "empirical": empirical}),
        equality("it tends to the first eigenvalue of the centred operator", left=empirical,
                 right=float(centered[0]), evidence="exact", tolerance=0.01, corrected=True),
        inequality("the eigenvalues interlace: λ_(m+1) ≤ centred λ_m ≤ λ_m for m = 1..8",
                   middle=float(max((centered - plain[:8]).max(), (plain[1:] - centered).max())), upper=0.0,
                   evidence="exact"),
        inequality("the upper side holds with the centred operator, at its best m", middle=total,
                   upper=bound, evidence="exact", corrected=True),
    ]  # fmt: skip


CUT_OFF = 1e-6


def centered_eigenvalues(s: torch.Tensor, *, bandwidth: float) -> torch.Tensor:
    """Return the eigenvalues of HLH/n, descending, float64; O(n³). The last is the zero of the constant vector.

    Examples
    --------
    >>> centered_eigenvalues(torch.tensor([0.0, 1.0, 2.0], dtype=torch.float64), bandwidth=1e-3).round(decimals=6)
    tensor([0.3333, 0.3333, 0.0000], dtype=torch.float64)
    """
    gram = center(Gaussian(bandwidth)(s.reshape(-1, 1)))
    return torch.linalg.eigvalsh(gram / len(gram)).flip(0).clamp_min(0.0)


def kept_eigenvalue(eigenvalues: torch.Tensor, *, cut_off: float = CUT_OFF) -> tuple[float, int]:
    """Return the smallest eigenvalue above ``cut_off`` times the largest, and how many are kept, as in the figure."""
    kept = eigenvalues[eigenvalues > cut_off * eigenvalues[0]]
    return kept[-1].item(), len(kept)


def _restricted_gram(points: list[Fraction], bandwidth: Fraction) -> Any:
    """Return the ball matrix whose eigenvalues are the positive ones of HLH/n, for n rational points.

    With the shares w_a of the k distinct points, it is (√w_a k(s_a, s_b) √w_b) on the complement of √w, where the zero
    of the constant vector is gone.
    """
    from flint import arb, arb_mat

    sigma = ball(bandwidth)
    shares = {point: Fraction(points.count(point), len(points)) for point in sorted(set(points))}
    x = [ball(point) for point in shares]
    roots = [ball(share).sqrt() for share in shares.values()]
    # A product, not a power: a ball around zero to the second power is NaN in python-flint.
    gram = arb_mat(
        [
            [
                p * q * (-(a - b) * (a - b) / (2 * sigma * sigma)).exp()
                for b, q in zip(x, roots, strict=True)
            ]
            for a, p in zip(x, roots, strict=True)
        ]
    )
    # Householder: the reflection that sends √w to minus the first axis; its other rows are the basis.
    normal = [roots[0] + 1, *roots[1:]]
    square = sum((a * a for a in normal), arb(0))
    places = range(len(x))
    basis = arb_mat(
        [[int(i == j) - 2 * normal[i] * normal[j] / square for j in places] for i in places[1:]]
    )
    return basis * gram * basis.transpose()


def enclosed_eigenvalues(
    points: list[Fraction], bandwidth: Fraction, *, bits: int = 400
) -> list[Any]:
    """Enclose the positive eigenvalues of HLH/n, descending, in balls of ``bits`` bits, for n rational points.

    For k distinct points these are k − 1 simple eigenvalues; python-flint isolates them rigorously, and raises
    ``ValueError`` if the bits do not suffice. O(k³) operations, with a large constant.

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
        balls = [value.real for value in acb_mat(_restricted_gram(points, bandwidth)).eig()]
        return sorted(balls, key=lambda one: -float(one.mid().log()) if one > 0 else math.inf)


def enclosed_smallest(
    points: list[Fraction], bandwidth: Fraction, *, bits: int = 400, squarings: int = 30
) -> Any:
    """Enclose the smallest positive eigenvalue of HLH/n in a ball, without the others.

    For a positive definite B of r rows the largest eigenvalue to the power p lies between tr(B^p)/r and tr(B^p). With
    B the inverse of the matrix and p = 2^squarings this encloses the smallest one. ``ZeroDivisionError`` if the bits do
    not suffice for the inverse. ``squarings`` matrix products, O(k³) each, and no eigenvalue is isolated.

    Examples
    --------
    >>> round(float(enclosed_smallest([Fraction(0), Fraction(1), Fraction(3)], Fraction(1))), 6)
    0.128769
    """
    from flint import arb, ctx

    with ctx.workprec(bits):
        power = _restricted_gram(points, bandwidth).inv()
        rows, scale = power.nrows(), arb(0)
        for _ in range(squarings):
            trace = (
                power.trace()
            )  # the power is scaled to trace one, since an exponent could overflow
            power, scale = power / trace, 2 * (scale + trace.log())
            power = power * power
        logarithm = power.trace().log() + scale
        least, most = ((arb(shift).log() - logarithm) / 2**squarings for shift in (1, rows))
        return least.exp().union(most.exp())


@check("Remark B.3")
def limits() -> list[Certificate]:
    """Check both limits of the bandwidth, and the first one again with ties."""
    moved = 0.01 * torch.sin(torch.arange(40.0, dtype=torch.float64))
    distinct = torch.linspace(-2.0, 2.0, 40, dtype=torch.float64) + moved
    small = centered_eigenvalues(distinct, bandwidth=1e-3)[-2].item()
    large = [centered_eigenvalues(distinct, bandwidth=b)[0].item() for b in (1e2, 1e4)]
    multiplicity = (2, 3, 7)  # integer ages: several people share each value
    tied = torch.repeat_interleave(
        torch.arange(3.0, dtype=torch.float64), torch.tensor(multiplicity)
    )
    n = len(tied)
    positive = centered_eigenvalues(tied, bandwidth=1e-3)
    limit = positive[positive > 1e-10][-1].item()
    return [
        equality("distinct values: the smallest positive eigenvalue tends to 1/n as σ → 0",
                 left=40.0 * small, right=1.0, evidence="exact", tolerance=1e-9),
        inequality("all eigenvalues tend to zero as the bandwidth grows", middle=large[1],
                   upper=1.1e-4 * large[0], evidence="exact"),
        equality("tied values: the limit as the bandwidth vanishes is 1/n", left=limit, right=1.0 / n,
                 evidence="exact", details={"multiplicities": list(multiplicity), "n": n}),
        inequality("tied values: the limit lies between the two smallest multiplicities over n",
                   lower=multiplicity[0] / n, middle=limit, upper=multiplicity[1] / n, evidence="exact",
                   corrected=True),
    ]  # fmt: skip


@check("Remark B.3")
def power_law(*, quick: bool) -> list[Certificate]:
    """Check "polynomial dependence" with slopes near −1: the true exponent, and what a cut-off makes of it."""
    from flint import arb

    n = 8
    points = [Fraction(i, n - 1) for i in range(n)]
    narrow, wide = (enclosed_eigenvalues(points, Fraction(2**k)) for k in (6, 7))
    exponents = [(a / b).log() / arb(2).log() for a, b in zip(narrow, wide, strict=True)]
    # How far the k-th exponent can be from 2k, over its whole ball.
    miss = max(
        float(abs(exponent - 2 * k).upper()) for k, exponent in enumerate(exponents, start=1)
    )
    exact = enclosed_eigenvalues(points, Fraction(1))[-1]
    s = torch.arange(n, dtype=torch.float64) / (n - 1)
    kept, count = kept_eigenvalue(centered_eigenvalues(s, bandwidth=1.0))
    # At the size of the paper: quantiles of N(0, 1); the value kept against the cut-off, over its bandwidths.
    size = 300 if quick else 1500
    normal = torch.distributions.Normal(0.0, 1.0).icdf(
        (torch.arange(size, dtype=torch.float64) + 0.5) / size
    )
    sweep, ranks = [], []
    for bandwidth in (0.1, 0.3, 1.0, 3.0, 10.0):
        eigenvalues = centered_eigenvalues(normal, bandwidth=bandwidth)
        value, rank = kept_eigenvalue(eigenvalues)
        sweep.append(value / (CUT_OFF * eigenvalues[0].item()))
        ranks.append(rank)
    return [
        inequality("'polynomial dependence' with exponents within a factor of two of one",
                   lower=0.5, middle=float(exponents[-1].lower()), upper=2.0, evidence="interval",
                   details={"points": n, "between bandwidths": "64 and 128 times the range of S"}),
        inequality("the k-th eigenvalue of n distinct points falls with exponent 2k, k = 1..n−1",
                   middle=miss, upper=1e-3, evidence="interval", corrected=True,
                   details={"exponents": [float(exponent) for exponent in exponents]}),
        inequality("'smallest positive eigenvalue': the value kept by the cut-off is within twice of it",
                   middle=kept, upper=2.0 * float(exact.upper()), evidence="interval", tolerance=0.0,
                   details={"kept": kept, "kept rank": count, "true": float(exact.mid())}),
        strict_inequality("the value kept is the cut-off: within a factor 1e3 of it at every bandwidth",
                          middle=math.log10(max(sweep)), upper=3.0, evidence="exact", margin=0.0, corrected=True,
                          details={"kept ranks": ranks, "kept over cut-off": sweep}),
    ]  # fmt: skip
