"""Theorem 4.5 and Corollary 4.6: HSIC and the conditional MMD integral control each other, up to a spectral tail.

With the eigenpairs (λ_ℓ, ψ_ℓ) of T_S and Δ_ℓ = E_S[Δ(S)ψ_ℓ(S)],

    HSIC = Σ λ_ℓ‖Δ_ℓ‖²,   E[MMD²] = Σ ‖Δ_ℓ‖²,   HSIC/κ ≤ E[MMD²] ≤ HSIC/λ_m + Σ_{ℓ>m}‖Δ_ℓ‖².

The Gaussian pair has all of these in closed form. The paper calls λ_m the counterpart of the empirical λ̂_m of Theorem
4.7; it is not: λ̂_m belongs to the *centred* Gram matrix and converges to an eigenvalue of the centred operator, which
lies between λ_{m+1} and λ_m. Since Δ has mean zero both theorems hold with the centred system, and that form is the
counterpart.
"""

from __future__ import annotations

from functools import cache

import numpy as np
import torch

from frhsic_core.kernels import Gaussian, Kernel, Laplacian
from frhsic_core.laws import FiniteLaw, GaussianPair, KernelHead
from frhsic_core.paper.statements.certificate import Certificate, equality, inequality
from frhsic_core.paper.statements.deviations import deviations_of_law

__all__ = ["best_m", "gdp_control", "two_sided", "upper_bounds"]

NUMBER, LABEL = "Theorem 4.5", "cor:hsic-mmd-equivalence"
HEAD, HEAD_LABEL = "Corollary 4.6", "cor:spectral_gdp_control"
# Odd, even and shifted bumps, and one combination: heads in the RKHS with different shapes of m_f.
HEADS = (((0.0,), (1.0,)), ((1.0,), (1.0,)), ((-1.0, 1.0), (-1.0, 1.0)), ((-2.0, 0.0, 0.5), (1.0, -2.0, 1.5)))


def upper_bounds(
    law: GaussianPair, *, kernel_z: Gaussian, kernel_s: Gaussian, m: int, centred: bool = False
) -> np.ndarray:
    """HSIC/λ_j + ρ_j² for j = 1, …, m: Theorem 4.5's right side, with T_S or with the centred operator.

    Examples
    --------
    >>> bounds = upper_bounds(GaussianPair(0.5), kernel_z=Gaussian(1.0), kernel_s=Gaussian(1.0), m=4)
    >>> bounds.round(4)
    array([0.0721, 0.0583, 0.1281, 0.3151])
    """
    hsic, total = law.hsic(kernel_z, kernel_s), law.expected_squared_mmd(kernel_z)
    if centred:
        eigenvalues, energies = law.centred_spectrum(kernel_z, kernel_s, m=m)
    else:
        eigenvalues = law.mercer(kernel_s).eigenvalues(m)
        energies = law.delta_coefficients(kernel_z, kernel_s, m=m)
    return hsic / eigenvalues + np.maximum(total - np.cumsum(energies), 0.0)


def best_m(law: GaussianPair, *, kernel_z: Gaussian, kernel_s: Gaussian, centred: bool = False) -> tuple[int, float]:
    """Return the m that makes the upper bound smallest, and that bound (among the first 40)."""
    bounds = upper_bounds(law, kernel_z=kernel_z, kernel_s=kernel_s, m=40, centred=centred)
    index = int(bounds.argmin())
    return index + 1, float(bounds[index])


def two_sided(law: GaussianPair | FiniteLaw, *, kernel_z: Kernel, kernel_s: Kernel, m: int) -> Certificate:
    """HSIC/κ_S ≤ E[MMD²] ≤ HSIC/λ_m + ρ_m² with the exact Mercer system and the exact tail.

    Theorem 4.5 (``cor:hsic-mmd-equivalence``). On a Gaussian pair O(m), in closed form; on a finite law with b values
    of S one eigendecomposition, O(b³), and m at most b.

    Examples
    --------
    >>> c = two_sided(GaussianPair(0.5), kernel_z=Gaussian(1.0), kernel_s=Gaussian(1.0), m=4)
    >>> c.holds, round(c.lower, 4), round(c.middle, 4), round(c.upper, 4)
    (True, 0.0108, 0.0551, 0.3151)
    """
    if isinstance(law, FiniteLaw):
        return _two_sided_finite(law, kernel_z=kernel_z, kernel_s=kernel_s, m=m)
    if not isinstance(kernel_z, Gaussian) or not isinstance(kernel_s, Gaussian):
        raise TypeError(
            "a Gaussian pair has closed forms for Gaussian kernels only: pass Gaussian(bandwidth) for both."
        )
    hsic = law.hsic(kernel_z, kernel_s)
    tail = law.spectral_tail(kernel_z, kernel_s, m=m)
    eigenvalue = float(law.mercer(kernel_s).eigenvalues(m)[-1])
    return inequality(
        NUMBER, LABEL, "Gaussian pairs: both sides, every m", lower=hsic / float(kernel_s.bound),
        middle=law.expected_squared_mmd(kernel_z), upper=hsic / eigenvalue + tail, evidence="exact",
        assumptions=("λ_m > 0", "ρ_m² the exact tail"),
        details={"rho": law.rho, "sigma_z": float(kernel_z.bandwidth), "sigma_s": float(kernel_s.bandwidth), "m": m,
                 "lambda_m": eigenvalue, "tail": tail},
    )  # fmt: skip


def _two_sided_finite(law: FiniteLaw, *, kernel_z: Kernel, kernel_s: Kernel, m: int) -> Certificate:
    d = deviations_of_law(law, kernel_z, kernel_s)
    spectrum = d.spectrum()
    size = spectrum.eigenvalues.shape[-1]
    if not 1 <= m <= size or spectrum.eigenvalues[m - 1] <= size * 2.2e-16 * spectrum.eigenvalues[0]:
        raise ValueError(f"m is {m}: λ_m must be positive, and S takes {size} values.")
    eigenvalue, tail = spectrum.eigenvalues[m - 1].item(), spectrum.tails[m - 1].item()
    return inequality(
        NUMBER, LABEL, "finite laws: both sides, every m", lower=(d.hsic / d.bound_s).item(),
        middle=d.expected_squared_mmd.item(), upper=d.hsic.item() / eigenvalue + tail, evidence="exact",
        assumptions=("λ_m > 0", "ρ_m² the exact tail"), details={"m": m, "lambda_m": eigenvalue, "tail": tail},
    )  # fmt: skip


@cache
def _gdp(law: GaussianPair, head: KernelHead) -> float:
    # An adaptive integral between sign changes, a quarter of a second: the same for every m and every kernel on S.
    return law.gdp(head)


def gdp_control(law: GaussianPair, head: KernelHead, *, kernel_s: Gaussian, m: int) -> tuple[Certificate, Certificate]:
    """‖P_m m_f‖² ≤ ‖f‖²·HSIC/λ_m, and GDP(f)² ≤ ‖f‖²·HSIC/λ_m + r_m², on a Gaussian pair.

    Corollary 4.6 (``cor:spectral_gdp_control``) with the exact coefficients of m_f and the exact tail r_m².

    Examples
    --------
    >>> head = KernelHead([1.0], [1.0], kernel=Gaussian(1.0))
    >>> projected, whole = gdp_control(GaussianPair(0.5), head, kernel_s=Gaussian(1.0), m=2)
    >>> projected.holds, whole.holds, round(whole.middle, 4), round(whole.upper, 4)
    (True, True, 0.0136, 0.0485)
    """
    eigenvalue = float(law.mercer(kernel_s).eigenvalues(m)[-1])
    coefficients = law.head_coefficients(head, kernel_s, m=m)
    captured = float((coefficients**2).sum())
    bound = head.norm**2 * law.hsic(head.kernel, kernel_s) / eigenvalue
    tail = max(law.expected_squared_gap(head) - captured, 0.0)
    details = {"rho": law.rho, "sigma_s": float(kernel_s.bandwidth), "m": m, "centres": [c[0] for c in head.centres]}
    return (
        inequality(HEAD, HEAD_LABEL, "Gaussian pairs: projected gap of kernel heads, every m", middle=captured,
                   upper=bound, evidence="exact", details=details),
        inequality(HEAD, HEAD_LABEL, "Gaussian pairs: GDP of kernel heads with its tail, every m",
                   middle=_gdp(law, head) ** 2, upper=bound + tail, evidence="exact", details=details),
    )  # fmt: skip


def _grid(quick: bool) -> list[tuple[GaussianPair, Gaussian, Gaussian]]:
    rhos = (0.1, 0.5, 0.95) if quick else (0.02, 0.1, 0.3, 0.5, 0.7, 0.9, 0.99)
    sigmas = (0.5, 1.0, 3.0) if quick else (0.3, 0.5, 1.0, 2.0, 5.0)
    return [(GaussianPair(rho), Gaussian(z), Gaussian(s)) for rho in rhos for z in sigmas for s in sigmas]


def equivalence(*, quick: bool) -> list[Certificate]:
    """Theorem 4.5 on a grid of Gaussian pairs and m = 1, …, 12: the identities, then both sides at their tightest."""
    certificates, worst = [], (0.0, 0.0, 0.0)
    for law, kernel_z, kernel_s in _grid(quick):
        certificates += [two_sided(law, kernel_z=kernel_z, kernel_s=kernel_s, m=m) for m in range(1, 13)]
        energies = law.delta_coefficients(kernel_z, kernel_s, m=400)
        summed = float((law.mercer(kernel_s).eigenvalues(400) * energies).sum())
        hsic = law.hsic(kernel_z, kernel_s)
        worst = max(worst, (abs(summed - hsic) / hsic, summed, hsic))
    finite = FiniteLaw([0.0, 1.0, 2.5], [0.0, 0.5, 2.0], [[0.2, 0.1, 0.05], [0.1, 0.15, 0.1], [0.0, 0.1, 0.2]])
    on_finite = [two_sided(finite, kernel_z=Gaussian(1.0), kernel_s=Laplacian(1.0), m=m) for m in (1, 2, 3)]
    return [
        equality(NUMBER, LABEL, "Gaussian pairs: HSIC is the sum of eigenvalues times energies", left=worst[1],
                 right=worst[2], evidence="exact", tolerance=1e-8),
        min(certificates, key=lambda c: c.slack / c.middle),
        min(on_finite, key=lambda c: c.slack / c.middle),
    ]  # fmt: skip


def head_control(*, quick: bool) -> list[Certificate]:
    """Corollary 4.6 on Gaussian pairs for four heads and m = 1, …, 8."""
    pairs = [
        (GaussianPair(rho), Gaussian(s)) for rho in (0.1, 0.5, 0.95) for s in ((1.0,) if quick else (0.5, 1.0, 3.0))
    ]
    results = [
        gdp_control(law, KernelHead(centres, weights, kernel=Gaussian(1.0)), kernel_s=kernel_s, m=m)
        for law, kernel_s in pairs
        for centres, weights in HEADS
        for m in ((1, 2, 4) if quick else range(1, 9))
    ]
    # Relative slack; heads whose gap is rounding at this m say nothing.
    projected, whole = zip(*results, strict=True)
    return [min((c for c in part if c.middle > 1e-12), key=lambda c: c.slack / c.upper) for part in (projected, whole)]


def centred_counterpart(*, quick: bool) -> list[Certificate]:
    """λ_m is not what λ̂_m of Theorem 4.7 estimates; the centred eigenvalue is, and the theorem holds with it."""
    law, kernel = GaussianPair(0.5), Gaussian(1.0)
    plain = law.mercer(kernel).eigenvalues(9)
    centred = law.centred_spectrum(kernel, kernel, m=8).eigenvalues
    n = 800 if quick else 2500
    # Quantiles of N(0, 1): a sample without noise, so that n alone is the error.
    s = torch.distributions.Normal(0.0, 1.0).icdf((torch.arange(n, dtype=torch.float64) + 0.5) / n).unsqueeze(-1)
    gram = kernel(s)
    gram = gram - gram.mean(0) - gram.mean(1, keepdim=True) + gram.mean()
    empirical = torch.linalg.eigvalsh(gram / n).flip(0)[0].item()
    upper_slack = []
    for pair, kernel_z, kernel_s in _grid(True):
        bounds = upper_bounds(pair, kernel_z=kernel_z, kernel_s=kernel_s, m=8, centred=True)
        total = pair.expected_squared_mmd(kernel_z)
        index = int(bounds.argmin())
        upper_slack.append((bounds[index] / total, total, float(bounds[index])))
    _, total, bound = min(upper_slack)
    return [
        equality(NUMBER, LABEL, "'population counterpart': the empirical λ̂_1 of Theorem 4.7 tends to λ_1 of T_S",
                 left=empirical, right=float(plain[0]), evidence="exact", tolerance=0.05,
                 details={"lambda_1": float(plain[0]), "centred lambda_1": float(centred[0]), "empirical": empirical}),
        equality(NUMBER, LABEL, "it tends to the first eigenvalue of the centred operator", left=empirical,
                 right=float(centred[0]), evidence="exact", tolerance=0.01, corrected=True),
        inequality(NUMBER, LABEL, "the eigenvalues interlace: λ_(m+1) ≤ centred λ_m ≤ λ_m for m = 1..8",
                   middle=float(max((centred - plain[:8]).max(), (plain[1:] - centred).max())), upper=0.0,
                   evidence="exact"),
        inequality(NUMBER, LABEL, "the upper side holds with the centred operator, at its best m", middle=total,
                   upper=bound, evidence="exact", corrected=True),
    ]  # fmt: skip


CHECKS = {NUMBER: [equivalence, centred_counterpart], HEAD: [head_control]}
