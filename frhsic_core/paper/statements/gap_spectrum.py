"""A sample and a head in the eigenbasis of the centred sensitive Gram matrix: what Theorem 4.7 speaks of.

Everything goes through the eigensystem (λ̂_j, ê_j) of L̃/n: the energies ê_jᵀK̃ê_j carry HSIC, the scores ê_j·δ_f
carry the gap of the head f.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from frhsic_core.arrays import ArrayLike, as_pair
from frhsic_core.joint.centring import centre
from frhsic_core.joint.gram import resolve_kernel
from frhsic_core.joint.hsic import hsic
from frhsic_core.kernels import Kernel

__all__ = ["GapSpectrum", "gap_spectrum"]


@dataclass(frozen=True)
class GapSpectrum:
    """A sample and a head in the eigenbasis of L̃/n, largest eigenvalue first; batch shape ``(...)``.

    Attributes
    ----------
    eigenvalues : Tensor
        λ̂_j, ``(..., n)``; numerically zero ones follow the first ``rank``.
    vectors : Tensor
        ê_j in the columns, ``(..., n, n)``.
    energies : Tensor
        ê_jᵀK̃ê_j ≥ 0, ``(..., n)``.
    gap : Tensor
        δ_f, the centred values of the head, ``(..., n)``.
    squared_norm : Tensor
        ‖f‖² in the RKHS of Z, ``(...)``.
    hsic : Tensor
        Biased HSIC, computed without the eigensystem.
    rank : Tensor
        How many eigenvalues exceed n·eps·λ̂_1.
    scale : Tensor
        (Σ|c_a|)²·ν, an upper bound of ‖f‖²: the unit of rounding.
    """

    eigenvalues: Tensor
    vectors: Tensor
    energies: Tensor
    gap: Tensor
    squared_norm: Tensor
    hsic: Tensor
    rank: Tensor
    scale: Tensor

    @property
    def rows(self) -> int:
        """The sample size n."""
        return self.gap.shape[-1]

    @property
    def scores(self) -> Tensor:
        """ê_j·δ_f, ``(..., n)``."""
        return (self.vectors.mT @ self.gap.unsqueeze(-1)).squeeze(-1)

    @property
    def mean_squares(self) -> Tensor:
        """‖P_m δ_f‖²/n for m = 1 … n, ``(..., n)``."""
        return self.scores.square().cumsum(-1) / self.rows

    @property
    def bounds(self) -> Tensor:
        """‖f‖²·HSIC/λ̂_m for m = 1 … n, infinite beyond the rank."""
        bound = (self.squared_norm * self.hsic).unsqueeze(-1) / self.eigenvalues
        return torch.where(self.counts, bound, torch.inf)

    @property
    def counts(self) -> Tensor:
        """Which m are allowed, m ≤ rank, ``(..., n)``."""
        return torch.arange(self.rows, device=self.gap.device) < self.rank.unsqueeze(-1)

    def projected(self, m: Tensor | int) -> Tensor:
        """P_m δ_f for one m per sample, ``(..., n)``."""
        keep = torch.arange(self.rows, device=self.gap.device) < torch.as_tensor(m).unsqueeze(-1)
        return (self.vectors @ (self.scores * keep).unsqueeze(-1)).squeeze(-1)

    def parity_gap(self, m: Tensor | int) -> Tensor:
        """Δ̂_GDP(f), the mean of |P_m δ_f|."""
        return self.projected(m).abs().mean(-1)


def gap_spectrum(
    z: ArrayLike,
    s: ArrayLike,
    *,
    anchors: ArrayLike,
    coefficients: ArrayLike,
    kernel_z: Kernel | None = None,
    kernel_s: Kernel | None = None,
    centred: bool = True,
) -> GapSpectrum:
    """Resolve HSIC and the head f = Σ_a c_a·k(anchor_a, ·) along the eigenvectors of L̃/n; O(n³) time, O(n²) memory.

    Parameters
    ----------
    z, s : array_like
        ``(..., n, d)`` and ``(..., n, p)`` or ``(..., n)``.
    anchors, coefficients : array_like
        ``(..., a, d)`` and ``(..., a)``.
    kernel_z, kernel_s : Kernel, optional
        Default: Gaussian at the median bandwidth.
    centred : bool
        False takes the eigensystem of L/n instead of L̃/n. HSIC = tr(K̃L)/n² too, so every step of the proof holds for
        it as well, with other eigenvalues and other projections.

    Returns
    -------
    GapSpectrum
        What Theorem 4.7 (``thm:hsic_gdp``) speaks of, for every m at once.

    Examples
    --------
    >>> found = gap_spectrum([0.0, 1.0, 2.0, 3.0], [0.0, 0.0, 1.0, 1.0], anchors=[[0.0]], coefficients=[1.0])
    >>> found.rank.item(), bool((found.mean_squares <= found.bounds)[0])
    (1, True)
    """
    z, s = as_pair(z, s)
    n = z.shape[-2]
    points = torch.as_tensor(anchors, dtype=z.dtype, device=z.device)
    weights = torch.as_tensor(coefficients, dtype=z.dtype, device=z.device)
    kernel_z, kernel_s = resolve_kernel(kernel_z, z), resolve_kernel(kernel_s, s)
    gram_z = kernel_z(z)
    gram_s = kernel_s(s)
    values, vectors = torch.linalg.eigh((centre(gram_s) if centred else gram_s) / n)
    values, vectors = values.flip(-1), vectors.flip(-1)
    head = (kernel_z(z, points) @ weights.unsqueeze(-1)).squeeze(-1)
    floor = n * torch.finfo(z.dtype).eps * values[..., :1]
    return GapSpectrum(
        eigenvalues=values,
        vectors=vectors,
        energies=(vectors * (centre(gram_z) @ vectors)).sum(-2),
        gap=head - head.mean(-1, keepdim=True),
        squared_norm=torch.einsum("...a,...ab,...b->...", weights, kernel_z(points), weights).clamp_min(0.0),
        hsic=hsic(z, s, kernel_z=kernel_z, kernel_s=kernel_s),
        rank=(values > floor).sum(-1),
        scale=weights.abs().sum(-1).square() * gram_z.diagonal(dim1=-2, dim2=-1).amax(-1),
    )
