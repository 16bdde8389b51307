"""Proposition C.1: the regularised empirical kernel HGR against HSIC, both sides.

The paper calls it a sandwich and prints the upper side, kHGR² ≤ HSIC/(η_Z η_S). The proof works
with the operator norm of Σ̂_ZS, which is COCO, and its other half gives the missing side:

    COCO²/((‖Σ̂_ZZ‖ + η_Z)(‖Σ̂_SS‖ + η_S)) ≤ kHGR² ≤ COCO²/(η_Z η_S),    HSIC/r ≤ COCO² ≤ HSIC,

with r the smaller rank of the two centred Gram matrices. Characteristic kernels are not needed for
any of it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from frhsic_core._arrays import ArrayLike, as_pair
from frhsic_core.joint.contraction import center
from frhsic_core.joint.hsic import hsic
from frhsic_core.joint.operator_norms import coco, khgr
from frhsic_core.kernels import Kernel, Linear, resolve_kernel
from frhsic_core.paper.statements import Certificate, check, inequality
from frhsic_core.paper.statements.search import TOLERANCE, Instances, features, worst_excess

RIDGES = ((1e-6, 1e-6), (1e-2, 1e-2), (1e-4, 10.0), (1.0, 0.1), (1e3, 1e3))


@dataclass(frozen=True)
class Sandwich:
    """Every member of the two-sided bound for one pair of ridges, batch shape ``(...)``.

    Attributes
    ----------
    squared : Tensor
        kHGR².
    hsic, coco_squared : Tensor
        Of the same sample and kernels.
    norms : Tensor
        (‖Σ̂_ZZ‖ + η_Z)(‖Σ̂_SS‖ + η_S).
    ranks : Tensor
        The smaller rank of the two centred Gram matrices, at least one.
    ridges : float
        η_Z·η_S.
    """

    squared: Tensor
    hsic: Tensor
    coco_squared: Tensor
    norms: Tensor
    ranks: Tensor
    ridges: float


def norm_and_rank(gram: Tensor) -> tuple[Tensor, Tensor]:
    """Return the largest eigenvalue of a centered Gram matrix over n, and its numerical rank."""
    n = gram.shape[-1]
    values = torch.linalg.eigvalsh(center(gram)) / n
    norm = values[..., -1].clamp_min(0.0)
    # A direction lost to rounding here would make the lower side too large: count generously.
    rounding = torch.finfo(gram.dtype).eps * gram.abs().amax((-2, -1)) / n
    rank = (values > rounding.unsqueeze(-1)).sum(-1)
    return norm, rank


def sandwich(
    z: ArrayLike,
    s: ArrayLike,
    *,
    ridge: tuple[float, float],
    kernel_z: Kernel | None = None,
    kernel_s: Kernel | None = None,
) -> Sandwich:
    """Compute kHGR² and everything that bounds it; O(n³) time, O(n²) memory.

    Parameters
    ----------
    z, s : array_like
        ``(..., n, d)`` and ``(..., n, p)`` or ``(..., n)``.
    ridge : (float, float)
        (η_Z, η_S), both positive.
    kernel_z, kernel_s : Kernel, optional
        Default: Gaussian at the median bandwidth.

    Examples
    --------
    >>> found = sandwich([0.0, 1.0, 2.0, 3.0], [0.0, 1.0, 4.0, 9.0], ridge=(0.1, 0.1))
    >>> bool(found.coco_squared / found.norms <= found.squared <= found.coco_squared / found.ridges)
    True
    """
    z, s = as_pair(z, s, torch=True)
    kernel_z = resolve_kernel(kernel_z, z)
    kernel_s = resolve_kernel(kernel_s, s)
    ridge_z, ridge_s = ridge
    norm_z, rank_z = norm_and_rank(kernel_z(z))
    norm_s, rank_s = norm_and_rank(kernel_s(s))
    return Sandwich(
        squared=khgr(z, s, ridge=ridge, kernel_z=kernel_z, kernel_s=kernel_s).square(),
        hsic=hsic(z, s, kernel_z=kernel_z, kernel_s=kernel_s),
        coco_squared=coco(z, s, kernel_z=kernel_z, kernel_s=kernel_s).square(),
        norms=(norm_z + ridge_z) * (norm_s + ridge_s),
        ranks=torch.minimum(rank_z, rank_s).clamp_min(1),
        ridges=ridge_z * ridge_s,
    )


Step = Callable[[Sandwich], Tensor]


def above_hsic(x: Sandwich) -> Tensor:
    """Return η_Zη_S·kHGR² − HSIC."""
    return x.ridges * x.squared - x.hsic


def above_coco(x: Sandwich) -> Tensor:
    """Return η_Zη_S·kHGR² − COCO²."""
    return x.ridges * x.squared - x.coco_squared


def below_coco(x: Sandwich) -> Tensor:
    """Return COCO²/((‖Σ̂_ZZ‖ + η_Z)(‖Σ̂_SS‖ + η_S)) − kHGR²."""
    return x.coco_squared / x.norms - x.squared


def coco_below_hsic(x: Sandwich) -> Tensor:
    """Return HSIC/r − COCO²."""
    return x.hsic / x.ranks - x.coco_squared


def above_one(x: Sandwich) -> Tensor:
    """Return kHGR² − 1."""
    return x.squared - 1.0


# By how much a sample would break each bound, multiplied out. The first is the printed one
# (``eq:khgr_reg_bound``).
STEPS: dict[str, Step] = {
    "kHGR squared is at most HSIC over the product of the ridges": above_hsic,
    "kHGR squared is at most COCO squared over the product of the ridges": above_coco,
    "kHGR squared is at least COCO squared over (norm + ridge)(norm + ridge)": below_coco,
    "COCO squared is at least HSIC over the rank": coco_below_hsic,
    "kHGR is below one": above_one,
}
PRINTED = next(iter(STEPS))


def every_ridge(x: Instances) -> list[Sandwich]:
    """Compute the sandwich of each sample at five pairs of ridges."""
    z = features(x.gram_z)
    s = features(x.gram_s)
    return [sandwich(z, s, ridge=ridge, kernel_z=Linear(), kernel_s=Linear()) for ridge in RIDGES]


def at_every_ridge(step: Step) -> Callable[[list[Sandwich]], Tensor]:
    """Return a function that applies a step to the sandwich of each pair of ridges.

    An excess is relative to the product of the ridges where that is above one.
    """

    def excesses(found: list[Sandwich]) -> Tensor:
        relative = [step(one) / max(1.0, one.ridges) for one in found]
        return torch.stack(relative, -1)

    return excesses


@check("Proposition C.1")
def search(*, quick: bool) -> list[Certificate]:
    """Search random samples for a violation, with characteristic kernels and others."""
    instances = 1_200 if quick else 10_000
    steps = {name: at_every_ridge(step) for name, step in STEPS.items()}
    worst = worst_excess(steps, prepare=every_ridge, instances=instances, random_state=31)
    return [
        inequality(
            f"{name}: no counterexample among random samples",
            middle=excess,
            upper=0.0,
            tolerance=TOLERANCE,
            evidence="deterministic",
            ours=name != PRINTED,
            details={"instances": instances, "pairs of ridges": len(RIDGES)},
        )
        for name, excess in worst.items()
    ]
