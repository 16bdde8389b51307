"""The conditional deviations Δ(s) = μ_{Z|S=s} − μ_Z of a law, and everything section 4 computes from them.

Proposition 4.1 to Corollary 4.6 never touch Z again once the inner products ⟨Δ(s), Δ(t)⟩ are known. On finitely many
values of S a law is therefore three arrays: the probabilities p_s, the matrix G_st = ⟨Δ(s), Δ(t)⟩ and the Gram matrix
L_st = k_S(s, t). A finite law gives them exactly; a Gaussian pair gives them at the nodes of a Gauss–Hermite rule,
where every integral of section 4 except E[MMD] converges to machine precision. Leading batch dimensions everywhere.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import torch
from torch import Tensor

from frhsic_core.kernels import Gaussian
from frhsic_core.laws import GaussianPair


@dataclass(frozen=True)
class Spectrum:
    """Δ in the eigenbasis of T_S: eigenvalues λ_ℓ (descending) and the squared norms ‖Δ_ℓ‖² of its coefficients.

    Attributes
    ----------
    eigenvalues : Tensor
        ``(..., b)``, clamped at zero.
    energies : Tensor
        ``(..., b)``, ‖E_S[Δ(S)ψ_ℓ(S)]‖².
    vectors : Tensor
        ``(..., b, b)``, orthonormal columns √p·ψ_ℓ.
    """

    eigenvalues: Tensor
    energies: Tensor
    vectors: Tensor

    @property
    def tails(self) -> Tensor:
        """ρ_m² = Σ_{ℓ>m} ‖Δ_ℓ‖² for m = 1, …, b, the smallest tail Theorem 4.5 allows."""
        total = self.energies.flip(-1).cumsum(-1).flip(-1)
        return torch.cat([total[..., 1:], torch.zeros_like(total[..., :1])], dim=-1)

    def coefficients(self, values: Tensor) -> Tensor:
        """Return E_S[g(S)ψ_ℓ(S)] for ``values`` √p·g of shape ``(..., b)``."""
        return torch.einsum("...s,...sl->...l", values, self.vectors)


@dataclass(frozen=True)
class Deviations:
    """Probabilities of S, inner products of the deviations, Gram matrix of S, and optionally a set of heads.

    Attributes
    ----------
    probabilities : Tensor
        ``(..., b)``, sums to one; zeros allowed.
    gram : Tensor
        ``(..., b, b)``, ⟨Δ(s), Δ(t)⟩.
    gram_s : Tensor
        ``(..., b, b)``, k_S(s, t).
    head_gaps : Tensor, optional
        ``(..., a, b)``, m_f(s) = E[f(Z)|S=s] − E f(Z) for the heads f = k_Z(c_i, ·).
    head_gram : Tensor, optional
        ``(..., a, a)``, k_Z(c_i, c_j): the norm of a combination of those heads.
    """

    probabilities: Tensor
    gram: Tensor
    gram_s: Tensor
    head_gaps: Tensor | None = None
    head_gram: Tensor | None = None

    @property
    def bound_s(self) -> Tensor:
        """κ_S, the largest k_S(s, s) over the values given."""
        return self.gram_s.diagonal(dim1=-2, dim2=-1).amax(-1)

    @cached_property
    def hsic(self) -> Tensor:
        """E_{S,S'}[⟨Δ(S), Δ(S')⟩ k_S(S, S')], the right side of equation (4.1)."""
        p = self.probabilities
        return torch.einsum("...s,...st,...t->...", p, self.gram * self.gram_s, p)

    @cached_property
    def mmd(self) -> Tensor:
        """MMD(P_{Z|S=s}, P_Z) for each s, ``(..., b)``."""
        return self.gram.diagonal(dim1=-2, dim2=-1).clamp_min(0.0).sqrt()

    @property
    def expected_mmd(self) -> Tensor:
        """E_S[MMD], the EIPM of the unit ball."""
        return (self.probabilities * self.mmd).sum(-1)

    @property
    def expected_squared_mmd(self) -> Tensor:
        """E_S[MMD²], the conditional MMD integral of Theorem 4.5."""
        return (self.probabilities * self.gram.diagonal(dim1=-2, dim2=-1)).sum(-1)

    def smoothed(self, g: Tensor) -> Tensor:
        """Return ‖E_S[g(S)Δ(S)]‖² for values ``g`` of shape ``(..., b)``."""
        weighted = self.probabilities * g
        return torch.einsum("...s,...st,...t->...", weighted, self.gram, weighted)

    def gap(self, alpha: Tensor) -> tuple[Tensor, Tensor]:
        """Return m_f(s) and ‖f‖² of the head f = Σ_i α_i k_Z(c_i, ·), ``alpha`` of shape ``(..., a)``."""
        if self.head_gaps is None or self.head_gram is None:
            raise ValueError("These deviations have no heads: build them with deviations_of_joint, or pass centers.")
        gap = torch.einsum("...i,...is->...s", alpha, self.head_gaps)
        return gap, torch.einsum("...i,...ij,...j->...", alpha, self.head_gram, alpha)

    def spectrum(self, *, centered: bool = False) -> Spectrum:
        """Return the eigenbasis of T_S, or with ``centered=True`` of T_S restricted to functions of mean zero.

        Δ has mean zero, so both resolve it fully; the centred operator is the population counterpart of HLH/n in
        Theorem 4.7. One symmetric eigendecomposition, O(b³).
        """
        root = self.probabilities.sqrt()
        operator = root.unsqueeze(-1) * self.gram_s * root.unsqueeze(-2)
        if centered:
            # √p is the constant function one in these coordinates.
            off = torch.eye(root.shape[-1], dtype=root.dtype, device=root.device) - root.unsqueeze(-1) * root.unsqueeze(
                -2
            )
            operator = off @ operator @ off
        values, vectors = torch.linalg.eigh(operator)
        values, vectors = values.flip(-1).clamp_min(0.0), vectors.flip(-1)
        weighted = root.unsqueeze(-1) * self.gram * root.unsqueeze(-2)
        energies = (vectors * (weighted @ vectors)).sum(-2).clamp_min(0.0)
        return Spectrum(values, energies, vectors)


def deviations_of_joint(joint: Tensor, gram_z: Tensor, gram_s: Tensor) -> Deviations:
    """Return the deviations of the finite law P(Z = z_i, S = s_j) = ``joint[..., i, j]``; its heads are k_Z(z_i, ·).

    O(a²b + ab²) time. Values of S with probability zero get Δ = 0: no statement looks at them.

    Examples
    --------
    >>> eye = torch.eye(2, dtype=torch.float64)
    >>> deviations_of_joint(0.5 * eye, eye, eye).hsic.item()
    0.25
    """
    p_z, p_s = joint.sum(-1), joint.sum(-2)
    safe = torch.where(p_s > 0, p_s, torch.ones_like(p_s))
    conditional = torch.where((p_s > 0).unsqueeze(-2), joint / safe.unsqueeze(-2) - p_z.unsqueeze(-1), 0.0)
    head_gaps = gram_z @ conditional
    gram = conditional.mT @ head_gaps
    return Deviations(p_s, 0.5 * (gram + gram.mT), gram_s, head_gaps, gram_z)


def deviations_of_pair(
    law: GaussianPair,
    kernel_z: Gaussian,
    kernel_s: Gaussian,
    *,
    nodes: int = 120,
    centers: tuple[float, ...] = (-1.0, 0.0, 0.5, 2.0),
) -> Deviations:
    """Return the deviations of a Gaussian pair at Gauss–Hermite nodes; its heads are k_Z(c, ·) at ``centers``.

    Z given S = s is N(ρs, 1 − ρ²), so ⟨μ_{Z|s}, μ_{Z|t}⟩ = σ/√v·exp(−ρ²(s − t)²/(2v)) with v = σ² + 2(1 − ρ²).

    Examples
    --------
    >>> d = deviations_of_pair(GaussianPair(0.5), Gaussian(1.0), Gaussian(1.0))
    >>> round(d.hsic.item(), 12), round(d.expected_squared_mmd.item(), 10)
    (0.010763320144, 0.0551052628)
    """
    rho, sigma = law.rho, float(kernel_z.bandwidth)
    s, weights = np.polynomial.hermite_e.hermegauss(nodes)
    p = weights / weights.sum()
    variance = sigma**2 + 2.0 * (1.0 - rho**2)
    inner = sigma / np.sqrt(variance) * np.exp(-(rho**2) * (s[:, None] - s[None, :]) ** 2 / (2.0 * variance))
    row = inner @ p
    gram = inner - row[:, None] - row[None, :] + p @ row
    points = torch.tensor(s).unsqueeze(-1)
    c = np.asarray(centers, dtype=np.float64)
    spread = sigma**2 + 1.0 - rho**2
    means = sigma / np.sqrt(spread) * np.exp(-((c[:, None] - rho * s[None, :]) ** 2) / (2.0 * spread))
    gaps = means - (means @ p)[:, None]
    at = torch.tensor(c).unsqueeze(-1)
    return Deviations(torch.tensor(p), torch.tensor(gram), kernel_s(points), torch.tensor(gaps), kernel_z(at))
