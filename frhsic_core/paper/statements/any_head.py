"""What Theorem 4.7 says for a head outside the RKHS, such as the linear head that is actually trained.

A linear function is not in the RKHS of a Gaussian kernel, so the theorem alone says nothing about it. Any head, known
by its values on the sample, is split into a part inside (its kernel ridge fit, with a norm the theorem can use) and a
rest that is paid in full.
"""

from __future__ import annotations

import torch
from torch import Tensor

from frhsic_core.arrays import ArrayLike, as_pair
from frhsic_core.joint.centring import centre
from frhsic_core.joint.coco import coco
from frhsic_core.joint.gram import resolve_kernel
from frhsic_core.kernels import Gaussian, Kernel
from frhsic_core.laws import GaussianPair
from frhsic_core.paper.statements.certificate import Certificate, inequality
from frhsic_core.paper.statements.parity_gap import LABEL, STATEMENT
from frhsic_core.paper.statements.registry import Check

__all__ = ["CHECKS", "head_bound"]


def head_bound(
    values: ArrayLike,
    z: ArrayLike,
    s: ArrayLike,
    *,
    m: int,
    kernel_z: Kernel | None = None,
    kernel_s: Kernel | None = None,
    ridges: Tensor | None = None,
) -> dict[str, float]:
    """Bound the gap of any head, in the RKHS or not, from its values on the sample.

    The head is split into its kernel ridge fit g = Σ_i c_i k(Z_i, ·), c = (K + nηI)⁻¹(values − mean), and the rest ρ:

        ‖P_m δ‖/√n ≤ ‖g‖·COCO/√λ̂_m + ‖P_m ρ‖/√n ≤ ‖g‖·COCO/√λ̂_m + ‖ρ‖/√n,

    and η is chosen to make the last line smallest. A linear head is not in the RKHS of a Gaussian kernel, so Theorem
    4.7 alone says nothing about it. O(n³) time, O(n²) memory.

    Parameters
    ----------
    values : array_like
        f(Z_i), ``(n,)``.
    z, s : array_like
        The sample, ``(n, d)`` and ``(n,)`` or ``(n, p)``.
    m : int
        Number of sensitive directions.
    kernel_z, kernel_s : Kernel, optional
        Default: Gaussian at the median bandwidth.
    ridges : Tensor, optional
        Candidates for η; 10^−8 … 10^2 by default.

    Returns
    -------
    dict
        ``left`` (‖P_m δ‖²/n), ``bound`` (the square of the right side), ``fit`` and ``rest`` (its two parts, not
        squared), ``norm`` (‖g‖), ``ridge``, ``variance`` (‖δ‖²/n, the trivial bound).

    Examples
    --------
    >>> z, s = GaussianPair(0.5).sample(60, generator=torch.Generator().manual_seed(0))
    >>> found = head_bound(z[:, 0], z, s, m=2)
    >>> found["left"] <= found["bound"]
    True
    """
    z, s = as_pair(z, s)
    n = z.shape[-2]
    kernel_z, kernel_s = resolve_kernel(kernel_z, z), resolve_kernel(kernel_s, s)
    head = torch.as_tensor(values, dtype=z.dtype, device=z.device)
    delta = head - head.mean()
    spectrum, vectors = torch.linalg.eigh(kernel_z(z))
    spectrum = spectrum.clamp_min(0.0)
    loadings = vectors.mT @ delta
    grid = torch.logspace(-8.0, 2.0, 81, dtype=z.dtype) if ridges is None else torch.as_tensor(ridges, dtype=z.dtype)
    shrunk = loadings / (spectrum + n * grid.to(z.device).unsqueeze(-1))  # Vᵀc for every η
    norms = (spectrum * shrunk.square()).sum(-1).sqrt()
    rests = delta - (shrunk * spectrum) @ vectors.mT
    rests = rests - rests.mean(-1, keepdim=True)
    sensitive, directions = torch.linalg.eigh(centre(kernel_s(s)) / n)
    eigenvalue, directions = sensitive[-m], directions[:, -m:]
    fits = norms * coco(z, s, kernel_z=kernel_z, kernel_s=kernel_s) / eigenvalue.sqrt()
    sizes = rests.square().mean(-1).sqrt()
    best = int((fits + sizes).argmin())
    return {
        "left": ((directions.mT @ delta).square().sum() / n).item(),
        "bound": (fits + sizes)[best].square().item(),
        "fit": fits[best].item(),
        "rest": sizes[best].item(),
        "norm": norms[best].item(),
        "ridge": grid[best].item(),
        "variance": delta.square().mean().item(),
    }


def linear_head(*, quick: bool) -> list[Certificate]:
    """Bound the gap of the linear head f(z) = z on a sample of the Gaussian law, at m = 1 and m = 2."""
    n = 300 if quick else 800
    z, s = GaussianPair(0.5).sample(n, generator=torch.Generator().manual_seed(1))
    kernel = Gaussian(1.0)
    certificates = []
    for m in (1, 2):
        found = head_bound(z[:, 0], z, s, m=m, kernel_z=kernel, kernel_s=kernel)
        certificates.append(
            inequality(
                STATEMENT,
                LABEL,
                f"sharper: a linear head, outside the RKHS, by its kernel ridge fit and the rest, m = {m}",
                middle=found["left"],
                upper=found["bound"],
                evidence="deterministic",
                corrected=True,
                assumptions=("head known by its values on the sample",),
                details={"n": n, **found},
            )
        )
    return certificates


CHECKS: dict[str, list[Check]] = {STATEMENT: [linear_head]}
