"""Theorem 4.7: the empirical demographic-parity gap of an RKHS head, with every step of its proof.

The theorem is linear algebra on the eigensystem (λ̂_j, ê_j) of L̃/n: the energies ê_jᵀK̃ê_j carry HSIC, the scores ê_j·δ_f
carry the gap of the head f. It must therefore hold for every sample. Each step of the proof is a function that returns
by how much a sample would break it, and a search looks for a sample that does.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from frhsic_core.arrays import ArrayLike, as_pair
from frhsic_core.joint.contraction import center
from frhsic_core.joint.hsic import hsic
from frhsic_core.kernels import Gaussian, Kernel, resolve_kernel
from frhsic_core.laws import GaussianPair
from frhsic_core.paper.statements import Certificate, check, inequality
from frhsic_core.paper.statements.search import SAMPLE_KERNELS, SampleBatch, worst_excess


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
        (Σ|c_a|)²·ν, an upper bound of ‖f‖²: the unit of rounding; one where that is zero.
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
        """Which m are allowed, those with m ≤ rank; ``(..., n)``."""
        return torch.arange(self.rows, device=self.gap.device) < self.rank.unsqueeze(-1)

    def projected(self, m: Tensor | int) -> Tensor:
        """Return P_m δ_f for one m per sample, ``(..., n)``."""
        keep = torch.arange(self.rows, device=self.gap.device) < torch.as_tensor(m).unsqueeze(-1)
        return (self.vectors @ (self.scores * keep).unsqueeze(-1)).squeeze(-1)

    def parity_gap(self, m: Tensor | int) -> Tensor:
        """Return Δ̂_GDP(f), the mean of |P_m δ_f|."""
        return self.projected(m).abs().mean(-1)


def gap_spectrum(
    z: ArrayLike,
    s: ArrayLike,
    *,
    anchors: ArrayLike,
    coefficients: ArrayLike,
    kernel_z: Kernel | None = None,
    kernel_s: Kernel | None = None,
    centered: bool = True,
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
    centered : bool
        False takes the eigensystem of L/n instead of L̃/n. HSIC = tr(K̃L)/n² too, so every step of the proof holds for
        it as well, with other eigenvalues and other projections.

    Returns
    -------
    GapSpectrum
        Every quantity of Theorem 4.7 (``thm:hsic_gdp``), for every m at once.

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
    values, vectors = torch.linalg.eigh((center(gram_s) if centered else gram_s) / n)
    values, vectors = values.flip(-1), vectors.flip(-1)
    head = (kernel_z(z, points) @ weights.unsqueeze(-1)).squeeze(-1)
    floor = n * torch.finfo(z.dtype).eps * values[..., :1]
    gram_points = kernel_z(points)
    largest = torch.maximum(*(gram.diagonal(dim1=-2, dim2=-1).amax(-1) for gram in (gram_z, gram_points)))
    scale = weights.abs().sum(-1).square() * largest
    return GapSpectrum(
        eigenvalues=values,
        vectors=vectors,
        energies=(vectors * (center(gram_z) @ vectors)).sum(-2),
        gap=head - head.mean(-1, keepdim=True),
        squared_norm=torch.einsum("...a,...ab,...b->...", weights, gram_points, weights).clamp_min(0.0),
        hsic=hsic(z, s, kernel_z=kernel_z, kernel_s=kernel_s),
        rank=(values > floor).sum(-1),
        scale=torch.where(scale > 0, scale, 1.0),
    )


def witness_spectrum(batch: SampleBatch, *, centered: bool = True) -> tuple[GapSpectrum, GapSpectrum]:
    """Resolve each sample with its own head and with f = Σ_i (ê_1)_i k(Z_i, ·), for which the bound can be tight."""
    kernels: dict[str, Any] = {"kernel_z": batch.kernel_z, "kernel_s": batch.kernel_s, "centered": centered}
    own = gap_spectrum(batch.z, batch.s, anchors=batch.anchors, coefficients=batch.coefficients, **kernels)
    return own, gap_spectrum(batch.z, batch.s, anchors=batch.z, coefficients=own.vectors[..., 0], **kernels)


def _allowed(found: GapSpectrum, excess: Tensor) -> Tensor:
    return torch.where(found.counts, excess, -torch.inf)


def identity_excess(found: GapSpectrum) -> Tensor:
    """Return |HSIC − Σ_{j≤r} λ̂_j ê_jᵀK̃ê_j / n| (``eq:hsic_spectral``)."""
    terms = torch.where(found.counts, found.eigenvalues * found.energies, 0.0)
    return (found.hsic - terms.sum(-1) / found.rows).abs()


def lower_bound_excess(found: GapSpectrum) -> Tensor:
    """Return λ̂_m·tr(P_m K̃ P_m)/n − HSIC for every m (``eq:hsic_lower``)."""
    return _allowed(found, found.eigenvalues * found.energies.cumsum(-1) / found.rows - found.hsic.unsqueeze(-1))


def projection_excess(found: GapSpectrum) -> Tensor:
    """Return ‖P_m δ_f‖²/n − ‖f‖²·tr(P_m K̃ P_m)/n for every m (``eq:proj_bound``)."""
    right = found.squared_norm.unsqueeze(-1) * found.energies.cumsum(-1) / found.rows
    return _allowed(found, found.mean_squares - right) / found.scale.unsqueeze(-1)


def jensen_excess(found: GapSpectrum) -> Tensor:
    """Return |Δ̂_GDP² + Var|P_m δ_f| − ‖P_m δ_f‖²/n| at m = r and m = 1.

    The first inequality of ``eq:hsic_gdp_bound`` is Jensen's, and its slack is exactly the variance of the absolute
    values. The identity is checked instead of the inequality: a smaller left side would break it.
    """
    sides = []
    for m in (found.rank, found.rank.clamp_max(1)):
        part = found.projected(m)
        spread = part.abs().var(-1, correction=0)
        sides.append((found.parity_gap(m).square() + spread - part.square().mean(-1)).abs() / found.scale)
    return torch.stack(sides, -1)


def bound_excess(found: GapSpectrum) -> Tensor:
    """Return ‖P_m δ_f‖²/n − ‖f‖²·HSIC/λ̂_m for each m with λ̂_m above the rounding of L (``eq:hsic_gdp_bound``).

    HSIC is known to about n·eps, which the division turns into n·eps/λ̂_m; the excess is counted in units of 1/λ̂_m
    where that is larger than one.
    """
    clear = found.counts & (found.eigenvalues > found.rows * torch.finfo(found.gap.dtype).eps)
    unit = found.scale.unsqueeze(-1) / found.eigenvalues.clamp(torch.finfo(found.gap.dtype).tiny, 1.0)
    return torch.where(clear, (found.mean_squares - found.bounds) / unit, -torch.inf)


def division_free_excess(found: GapSpectrum) -> Tensor:
    """Return λ̂_m·‖P_m δ_f‖²/n − ‖f‖²·HSIC for every m: the same bound with nothing to divide by."""
    right = (found.squared_norm * found.hsic).unsqueeze(-1)
    return _allowed(found, found.eigenvalues * found.mean_squares - right) / found.scale.unsqueeze(-1)


STEPS: dict[str, Callable[[GapSpectrum], Tensor]] = {
    "HSIC is the sum of eigenvalue times energy (step 1)": identity_excess,
    "HSIC is at least the m-th eigenvalue times the projected trace (step 2)": lower_bound_excess,
    "the projected gap is at most the squared norm times the projected trace (step 3)": projection_excess,
    "the squared parity gap is at most the mean square (Jensen)": jensen_excess,
    "the mean square is at most squared norm times HSIC over the m-th eigenvalue": bound_excess,
    "the same bound, multiplied by the m-th eigenvalue": division_free_excess,
}


def on_both_heads(step: Callable[[GapSpectrum], Tensor]) -> Callable[[tuple[GapSpectrum, GapSpectrum]], Tensor]:
    """Apply a step to the random head and to the witness head of each sample."""

    def both(pair: tuple[GapSpectrum, GapSpectrum]) -> Tensor:
        return torch.maximum(*(step(found).reshape(len(found.hsic), -1).amax(-1) for found in pair))

    return both


@check("Theorem 4.7")
def proof_chain(*, quick: bool) -> list[Certificate]:
    """Search random samples for a violation of any step of the proof."""
    worst = worst_excess(
        {name: on_both_heads(step) for name, step in STEPS.items()},
        prepare=witness_spectrum,
        instances=1_200 if quick else 10_000,
        generator=torch.Generator().manual_seed(47),
    )
    options: Any = {
        "assumptions": ("kernels bounded by one", "head in the RKHS of the kernel on Z"),
        "details": {"heads per instance": 2, "kernels": list(SAMPLE_KERNELS)},
    }
    claim = "no counterexample among random samples"
    return [found.certificate(f"{name}: {claim}", **options) for name, found in worst.items()]


@check("Theorem 4.7")
def on_the_gaussian_law(*, quick: bool) -> list[Certificate]:
    """Check both inequalities for a sample of the Gaussian law and f = k(1, ·), at m = 1, 2, 4, 8."""
    n = 200 if quick else 1000
    z, s = GaussianPair(0.5).sample(n, generator=torch.Generator().manual_seed(0))
    kernel = Gaussian(1.0)
    found = gap_spectrum(z, s, anchors=[[1.0]], coefficients=[1.0], kernel_z=kernel, kernel_s=kernel)
    return [
        inequality(f"squared gap <= mean square <= bound at m = {m}, Gaussian law, f = k(1, .)",
                   lower=found.parity_gap(m).item() ** 2, middle=found.mean_squares[m - 1].item(),
                   upper=found.bounds[m - 1].item(), evidence="deterministic",
                   assumptions=("rho = .5", "unit bandwidths", "distinct S"),
                   details={"n": n, "eigenvalue": found.eigenvalues[m - 1].item(), "hsic": found.hsic.item()})
        for m in (1, 2, 4, 8)
    ]  # fmt: skip
