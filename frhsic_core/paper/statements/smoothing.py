"""Theorem 4.3 and Corollary 4.4, and the conditional deviations of all of section 4.

The deviation at s is Δ(s) = μ_{Z|S=s} − μ_Z. Proposition 4.1 to Corollary 4.6 never touch Z again
once the inner products ⟨Δ(s), Δ(t)⟩ are known. On finitely many values of S a law is therefore
three arrays: the probabilities p_s, the matrix G_st = ⟨Δ(s), Δ(t)⟩ and the Gram matrix L_st =
k_S(s, t). Leading batch dimensions everywhere.

With C = E_S[Δ(S) ⊗ k_S(S, ·)] and HSIC = ‖C‖²_HS, contracting C against a function g, a head f, or
both gives

    smoothed     ‖E_S[g(S)Δ(S)]‖²      ≤ ‖g‖²·HSIC
    fixed head   ‖E_S[m_f(S)k_S(S,·)]‖² ≤ ‖f‖²·HSIC
    bilinear     |E_S[g(S)m_f(S)]|²     ≤ ‖f‖²‖g‖²·HSIC

and g = k_S(s₀, ·) or a difference of two such gives the local forms. ``search`` looks for a law
that breaks one.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import torch
from torch import Tensor

from frhsic_core.kernels import Gaussian
from frhsic_core.paper.statements import Certificate, check, equality, strict_inequality


@dataclass(frozen=True)
class Spectrum:
    """Δ in the eigenbasis of T_S: eigenvalues λ_ℓ, and the squared norms of its coefficients.

    Attributes
    ----------
    eigenvalues : Tensor
        ``(..., b)``, descending, clamped at zero.
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
    """Probabilities of S, inner products of the deviations, Gram matrix of S, and a set of heads.

    Attributes
    ----------
    probabilities : Tensor
        ``(..., b)``, sums to one; zeros allowed.
    gram : Tensor
        ``(..., b, b)``, ⟨Δ(s), Δ(t)⟩.
    gram_s : Tensor
        ``(..., b, b)``, k_S(s, t).
    head_gaps : Tensor
        ``(..., a, b)``, m_f(s) = E[f(Z)|S=s] − E f(Z) for the heads f = k_Z(c_i, ·).
    head_gram : Tensor
        ``(..., a, a)``, k_Z(c_i, c_j): the norm of a combination of those heads.
    """

    probabilities: Tensor
    gram: Tensor
    gram_s: Tensor
    head_gaps: Tensor
    head_gram: Tensor

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
        """Return m_f(s) and ‖f‖² of the head f = Σ_i α_i k_Z(c_i, ·), ``alpha`` ``(..., a)``."""
        gap = torch.einsum("...i,...is->...s", alpha, self.head_gaps)
        squared_norm = torch.einsum("...i,...ij,...j->...", alpha, self.head_gram, alpha)
        return gap, squared_norm

    def spectrum(self) -> Spectrum:
        """Return Δ in the eigenbasis of T_S; one symmetric eigendecomposition, O(b³)."""
        root = self.probabilities.sqrt()
        operator = root.unsqueeze(-1) * self.gram_s * root.unsqueeze(-2)
        rising, vectors_of_rising = torch.linalg.eigh(operator)
        values = rising.flip(-1).clamp_min(0.0)
        vectors = vectors_of_rising.flip(-1)
        weighted = root.unsqueeze(-1) * self.gram * root.unsqueeze(-2)
        energies = (vectors * (weighted @ vectors)).sum(-2).clamp_min(0.0)
        return Spectrum(values, energies, vectors)


def deviations_of_joint(joint: Tensor, gram_z: Tensor, gram_s: Tensor) -> Deviations:
    """Return the deviations of the finite law P(Z = z_i, S = s_j) = ``joint[..., i, j]``.

    The heads are k_Z(z_i, ·). O(a²b + ab²) time. Values of S with probability zero get Δ = 0: no
    statement looks at them.

    Examples
    --------
    >>> eye = torch.eye(2, dtype=torch.float64)
    >>> deviations_of_joint(0.5 * eye, eye, eye).hsic.item()
    0.25
    """
    p_z = joint.sum(-1)
    p_s = joint.sum(-2)
    occurs = p_s > 0
    divisor = torch.where(occurs, p_s, 1.0).unsqueeze(-2)
    difference = joint / divisor - p_z.unsqueeze(-1)
    difference = torch.where(occurs.unsqueeze(-2), difference, 0.0)
    head_gaps = gram_z @ difference
    gram = difference.mT @ head_gaps
    return Deviations(
        probabilities=p_s,
        gram=0.5 * (gram + gram.mT),
        gram_s=gram_s,
        head_gaps=head_gaps,
        head_gram=gram_z,
    )


def smoothed(deviations: Deviations, beta: Tensor) -> tuple[Tensor, Tensor]:
    """Return both sides of the smoothed form for g = Σ_j β_j k_S(s_j, ·), ``beta`` ``(..., b)``.

    Examples
    --------
    >>> eye = torch.eye(2, dtype=torch.float64)
    >>> beta = torch.tensor([1.0, 0.0], dtype=torch.float64)
    >>> left, right = smoothed(deviations_of_joint(0.5 * eye, eye, eye), beta)
    >>> left.item(), right.item()
    (0.125, 0.25)
    """
    g = torch.einsum("...jk,...k->...j", deviations.gram_s, beta)
    squared_norm = (beta * g).sum(-1)
    return deviations.smoothed(g), squared_norm * deviations.hsic


def fixed_head(deviations: Deviations, alpha: Tensor) -> tuple[Tensor, Tensor]:
    """Return both sides of the fixed-head form, f = Σ_i α_i k_Z(c_i, ·), ``alpha`` ``(..., a)``."""
    gap, squared_norm = deviations.gap(alpha)
    weighted = deviations.probabilities * gap
    left = torch.einsum("...s,...st,...t->...", weighted, deviations.gram_s, weighted)
    return left, squared_norm * deviations.hsic


def bilinear(deviations: Deviations, alpha: Tensor, beta: Tensor) -> tuple[Tensor, Tensor]:
    """Return both sides of the bilinear form, f = Σ_i α_i k_Z(c_i, ·), g = Σ_j β_j k_S(s_j, ·)."""
    gap, squared_f = deviations.gap(alpha)
    g = torch.einsum("...jk,...k->...j", deviations.gram_s, beta)
    squared_g = (beta * g).sum(-1)
    left = (deviations.probabilities * g * gap).sum(-1) ** 2
    return left, squared_f * squared_g * deviations.hsic


def squared_distances(inner: Tensor) -> Tensor:
    """Return ‖a_t − a_u‖² for all pairs of vectors, from their inner products."""
    own = inner.diagonal(dim1=-2, dim2=-1)
    return own.unsqueeze(-1) + own.unsqueeze(-2) - 2.0 * inner


def localized(deviations: Deviations) -> tuple[tuple[Tensor, Tensor], tuple[Tensor, Tensor]]:
    """Return both sides of the one-point form at every s₀ and of the two-point form at every pair.

    The sides of the first have the shape ``(..., b)``, those of the second ``(..., b, b)``. O(b³):
    the smoothed deviations at all points are one matrix product.
    """
    gram_s = deviations.gram_s
    weighted = deviations.probabilities.unsqueeze(-1) * gram_s  # column t holds p_s·k_S(s, t)
    inner = weighted.mT @ deviations.gram @ weighted  # ⟨E[k(S,t)Δ], E[k(S,u)Δ]⟩
    hsic = deviations.hsic[..., None]
    one_point = inner.diagonal(dim1=-2, dim2=-1), gram_s.diagonal(dim1=-2, dim2=-1) * hsic
    two_points = squared_distances(inner), squared_distances(gram_s) * hsic[..., None]
    return one_point, two_points


@check("Theorem 4.3")
def best_constant() -> list[Certificate]:
    """Check that the smoothed form is an equality if S takes two values.

    One direction then carries all of C.
    """
    joint = torch.tensor([[0.3, 0.1], [0.2, 0.4]], dtype=torch.float64)
    kernel = Gaussian(1.0)
    gram_z = kernel(torch.tensor([[0.0], [1.0]], dtype=torch.float64))
    gram_s = kernel(torch.tensor([[0.0], [2.0]], dtype=torch.float64))
    contrast = torch.tensor([1.0, -1.0], dtype=torch.float64)
    left, right = smoothed(deviations_of_joint(joint, gram_z, gram_s), contrast)
    return [
        equality(
            "the constant is best possible: equality for S with two values",
            evidence="exact",
            left=left.item(),
            right=right.item(),
            tolerance=1e-12,
        )
    ]


@check("Corollary 4.4")
def rare_values() -> list[Certificate]:
    """Check what the corollary does not say.

    Divided by the frequency near s₀ the local average has no such bound.
    """
    age = torch.arange(20.0, 70.0, dtype=torch.float64)
    people = torch.exp(-(age - 20) / 9.0)
    hired = 0.2 + 0.6 * (age - 20) / 49
    joint = torch.stack([1 - hired, hired]) * people / people.sum()
    gram_z = torch.eye(2, dtype=torch.float64)
    gram_s = Gaussian(5.0)(age.unsqueeze(-1))
    deviations = deviations_of_joint(joint, gram_z, gram_s)
    (averages, bounds), _ = localized(deviations)
    frequency = deviations.gram_s @ deviations.probabilities  # E k(S, s₀)
    normalized = averages / frequency**2
    return [
        strict_inequality(
            "it bounds an unnormalised average: "
            "divided by E k(S, s0) the left side passes the bound",
            middle=bounds.max().item(),
            upper=normalized.max().item(),
            evidence="exact",
            margin=1e-3,
        )
    ]
