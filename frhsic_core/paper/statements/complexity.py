"""The linear-encoder bound after Corollary 5.3: the Gaussian complexity of bounded linear encoders, exactly.

For H = {x ↦ Wx : ‖W‖_F ≤ R} the supremum inside the complexity is a maximum of a linear function over a ball,

    sup_W (1/n)Σ⟨ξ_i, W x_i⟩ = R·‖(1/n)Σ ξ_i x_iᵀ‖_F,

so Ĝ_n = R·E_ξ‖·‖_F: an equality. The squared norm is Σ_j a_j χ²_{d_Z} with a_j the eigenvalues of ΣX_iX_iᵀ, and the
mean of its root is one smooth integral. The paper prints the right side without its expectation over ξ; a number on
the left cannot be at most a random one on the right for every draw.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor

from frhsic_core.arrays import ArrayLike, as_sample
from frhsic_core.paper.statements.certificate import Certificate, inequality
from frhsic_core.paper.statements.coverage import clopper_pearson
from frhsic_core.paper.statements.registry import Check

__all__ = ["CHECKS", "linear_complexity", "linear_complexity_bound", "root_mean_square"]

STATEMENT, LABEL = "Linear-encoder bound", "unnumbered"

# E√Q = π^(−1/2) ∫ (1 − E exp(−e^{2y}Q)) e^{−y} dy. The integrand decays like e^{−|y|} and is analytic for |Im y| < π/4,
# so the trapezoidal rule with step h is right to about exp(−π²/2h).
STEP, REACH = 0.1, 40.0


def linear_complexity(x: ArrayLike, *, radius: float, dimension: int) -> Tensor:
    """Empirical Gaussian complexity Ĝ_n of {x ↦ Wx : ‖W‖_F ≤ R, W of ``dimension`` rows}, to about 14 digits.

    O(n·d² + d³) time for inputs in R^d; the number of rows of W costs nothing.

    Parameters
    ----------
    x : array_like
        Inputs, ``(..., n, d)``.
    radius : float
        R.
    dimension : int
        d_Z, the dimension of the representation.

    Returns
    -------
    Tensor
        Batch shape.

    Examples
    --------
    >>> round(linear_complexity([[1.0]], radius=1.0, dimension=1).item() ** 2 * math.pi, 10)  # E|ξ| = √(2/π)
    2.0
    """
    x = as_sample(x, name="x").to(torch.float64)
    values = torch.linalg.svdvals(x).square()
    total = values.sum(-1, keepdim=True).clamp_min(torch.finfo(x.dtype).tiny)
    y = torch.arange(-REACH, REACH + STEP / 2, STEP, dtype=x.dtype, device=x.device)
    logs = torch.log1p(2.0 * torch.exp(2.0 * y) * (values / total).unsqueeze(-1)).sum(-2)
    mean_root = (-torch.expm1(-0.5 * dimension * logs) * torch.exp(-y)).sum(-1) * (STEP / math.sqrt(math.pi))
    return radius * total.squeeze(-1).sqrt() * mean_root / x.shape[-2]


def root_mean_square(x: ArrayLike, *, radius: float, dimension: int) -> Tensor:
    """R·√(d_Z·Σ‖x_i‖²)/n: Jensen's bound on Ĝ_n, never more than √(π/2) ≈ 1.25 times too large."""
    x = as_sample(x, name="x")
    return radius * math.sqrt(dimension) * x.square().sum((-2, -1)).sqrt() / x.shape[-2]


def linear_complexity_bound(*, radius: float, largest: float, dimension: int, n: int) -> float:
    """The paper's R·M·√(d_Z/n) for inputs with ‖X‖ ≤ M.

    Examples
    --------
    >>> linear_complexity_bound(radius=1.0, largest=1.0, dimension=4, n=100)
    0.2
    """
    return radius * largest * math.sqrt(dimension / n)


def as_printed(*, quick: bool) -> list[Certificate]:
    """Ĝ_n against R·‖(1/n)Σξ_i x_iᵀ‖_F for single draws of ξ, and against its mean."""
    n, d, dimension, radius = 50, 3, 2, 1.5
    draws = 4_000 if quick else 40_000
    generator = torch.Generator().manual_seed(11)
    x = torch.rand(n, d, generator=generator, dtype=torch.float64)
    noise = torch.randn(draws, dimension, n, generator=generator, dtype=torch.float64)
    norms = radius * torch.linalg.matrix_norm(noise @ x / n)
    exact = linear_complexity(x, radius=radius, dimension=dimension).item()
    below = int((norms < exact).sum())
    low, high = clopper_pearson(below, draws, confidence=0.999)
    radius_of_mean = 4.0 * norms.std().item() / math.sqrt(draws)
    return [
        inequality(
            STATEMENT,
            LABEL,
            "text: the complexity is at most the norm without its expectation; share of draws that break it is zero",
            middle=low,
            upper=0.0,
            evidence="statistical",
            details={"share": below / draws, "interval": [low, high], "draws": draws},
        ),
        inequality(
            STATEMENT,
            LABEL,
            "the complexity equals the expectation of the norm (exact value against the mean of draws)",
            middle=abs(norms.mean().item() - exact),
            upper=radius_of_mean,
            evidence="statistical",
            corrected=True,
            details={"exact": exact, "mean of draws": norms.mean().item(), "draws": draws},
        ),
    ]


def random_inputs(count: int, *, generator: torch.Generator) -> list[tuple[Tensor, int]]:
    """Draw batches of bounded inputs with a dimension d_Z each: on a sphere, in a ball, one direction, mostly zero."""
    batches = []
    settings = [(n, d, dimension) for n in (1, 2, 10, 40) for d in (1, 3, 8) for dimension in (1, 2, 50)]
    for index, (n, d, dimension) in enumerate(settings):
        share = count // len(settings) + (index < count % len(settings))
        x = torch.randn(share, n, d, generator=generator, dtype=torch.float64)
        sphere = x / torch.linalg.vector_norm(x, dim=-1, keepdim=True)
        radii = torch.rand(share, n, 1, generator=generator, dtype=torch.float64)
        rare = sphere * (radii < 0.1) + 1e-3 * sphere
        options = torch.stack([sphere, sphere * radii, sphere[:, :1].expand_as(sphere), rare])
        kind = torch.randint(4, (share,), generator=generator)
        batches.append((options[kind, torch.arange(share)], dimension))
    return batches


def excesses(x: Tensor, dimension: int, *, radius: float = 1.0) -> dict[str, Tensor]:
    """How far each inequality is from holding, relative to its right side; positive means violated."""
    exact = linear_complexity(x, radius=radius, dimension=dimension)
    middle = root_mean_square(x, radius=radius, dimension=dimension)
    largest = torch.linalg.vector_norm(x, dim=-1).amax(-1)
    printed = radius * largest * math.sqrt(dimension / x.shape[-2])
    return {
        "the complexity is at most R times M times the root of d_Z over n": exact / printed - 1.0,
        "the complexity is at most its root mean square": exact / middle - 1.0,
        "the complexity is at least 0.797 of its root mean square": math.sqrt(2.0 / math.pi) * middle / exact - 1.0,
    }


def search(*, quick: bool) -> list[Certificate]:
    """Search random inputs for a violation of the printed bound and of the two-sided one."""
    count = 1_200 if quick else 10_000
    worst: dict[str, float] = {}
    for x, dimension in random_inputs(count, generator=torch.Generator().manual_seed(12)):
        for name, excess in excesses(x, dimension).items():
            worst[name] = max(worst.get(name, -math.inf), excess.max().item())
    return [
        inequality(
            STATEMENT,
            LABEL,
            name,
            middle=value,
            upper=0.0,
            tolerance=1e-12,
            evidence="deterministic",
            corrected=index > 0,
            assumptions=("inputs bounded by M",),
            details={"instances": count},
        )
        for index, (name, value) in enumerate(worst.items())
    ]


CHECKS: dict[str, list[Check]] = {STATEMENT: [as_printed, search]}
