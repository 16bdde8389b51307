"""Sharper than Theorem 4.7: COCO for the Hilbert–Schmidt norm, the best m, and the whole spectrum.

With a_j = (ê_j·δ_f)²/n the theorem says Σ_{j≤m} a_j ≤ ‖f‖²·HSIC/λ̂_m. Three steps make it sharper, each free:

* Σ_j λ̂_j a_j = ‖Σ̂_SZ f‖² ≤ ‖f‖²·COCO² ≤ ‖f‖²·HSIC: no division by λ̂_m, the whole spectrum at once, and attained by
  the leading singular function, so COCO² is the best constant there is;
* λ̂_m Σ_{j≤m} a_j ≤ Σ_j λ̂_j a_j, hence COCO² in place of HSIC for every m;
* the exact worst head for a given m reaches ‖f‖²·λ_max(P_m K̃ P_m)/n: no bound over all heads is below it.

The tightness figure of the paper averages over heads f = k(z0, ·) with z0 from the sample, keeps the eigenvalues above
a relative cut-off and takes m as large as possible. :func:`compare_bounds` evaluates the same sample and heads with the
best m, with COCO and with the whole weighted spectrum, and so shows how much was lost. For heads outside the RKHS see
:func:`frhsic_core.paper.statements.gap_remarks.head_bound`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from frhsic_core.arrays import ArrayLike, as_pair
from frhsic_core.joint.coco import coco
from frhsic_core.joint.contraction import center
from frhsic_core.kernels import Gaussian, Kernel, resolve_kernel
from frhsic_core.laws import GaussianPair
from frhsic_core.paper.statements import Certificate, check, inequality
from frhsic_core.paper.statements.gap_remarks import trivial_gap
from frhsic_core.paper.statements.parity_gap import GapSpectrum, gap_spectrum
from frhsic_core.paper.statements.search import SampleBatch, worst_excess


@dataclass(frozen=True)
class SharperGap:
    """Theorem 4.7 and its sharper forms for one head, for every m at once (last dimension m = 1 … n).

    Attributes
    ----------
    spectrum : GapSpectrum
        The sample and the head in the eigenbasis of L̃/n.
    coco : Tensor
        Largest singular value of the empirical cross-covariance operator, ``(...)``.
    worst : Tensor
        λ_max(P_m K̃ P_m)/n, the largest ‖P_m δ_f‖²/n over all heads of norm one, ``(..., n)``.
    """

    spectrum: GapSpectrum
    coco: Tensor
    worst: Tensor

    @property
    def hsic_bounds(self) -> Tensor:
        """The theorem's ‖f‖²·HSIC/λ̂_m."""
        return self.spectrum.bounds

    @property
    def coco_bounds(self) -> Tensor:
        """‖f‖²·COCO²/λ̂_m."""
        ratio = self.spectrum.squared_norm * self.coco.square()
        return torch.where(self.spectrum.counts, ratio.unsqueeze(-1) / self.spectrum.eigenvalues, torch.inf)

    @property
    def worst_heads(self) -> Tensor:
        """‖f‖²·λ_max(P_m K̃ P_m)/n, what no bound over all heads can beat."""
        return self.spectrum.squared_norm.unsqueeze(-1) * self.worst

    @property
    def rests(self) -> Tensor:
        """‖(I − P_m)δ_f‖²/n, what m directions do not resolve."""
        whole = self.spectrum.gap.square().mean(-1, keepdim=True)
        return (whole - self.spectrum.mean_squares).clamp_min(0.0)

    @property
    def weighted(self) -> Tensor:
        """Σ_j λ̂_j (ê_j·δ_f)²/n, at most ‖f‖²·COCO²; also HSIC of f(Z) with a linear kernel on it."""
        return (self.spectrum.eigenvalues * self.spectrum.scores.square()).sum(-1) / self.spectrum.rows

    def best(self, bounds: Tensor) -> tuple[Tensor, Tensor]:
        """Return the smallest bound + rest over m and the m where it is reached, both ``(...)``."""
        value, index = (bounds + self.rests).min(-1)
        return value, index + 1


def sharper_gap(
    z: ArrayLike,
    s: ArrayLike,
    *,
    anchors: ArrayLike,
    coefficients: ArrayLike,
    kernel_z: Kernel | None = None,
    kernel_s: Kernel | None = None,
    resolutions: int | None = None,
) -> SharperGap:
    """Resolve Theorem 4.7 beside its sharper forms, for any sample and the head f = Σ_a c_a·k(anchor_a, ·).

    Parameters
    ----------
    z, s, anchors, coefficients, kernel_z, kernel_s
        As :func:`frhsic_core.paper.statements.parity_gap.gap_spectrum`.
    resolutions : int, optional
        How many m get their exact worst head (the rest are infinite); all by default. O(n³) time for the spectra and
        O(m³) for each m, O(n²) memory.

    Examples
    --------
    >>> z, s = GaussianPair(0.5).sample(50, generator=torch.Generator().manual_seed(0))
    >>> found = sharper_gap(z, s, anchors=[[1.0]], coefficients=[1.0], resolutions=4)
    >>> chain = [found.spectrum.mean_squares, found.worst_heads, found.coco_bounds, found.hsic_bounds]
    >>> [bool((left[:4] <= right[:4]).all()) for left, right in zip(chain, chain[1:])]
    [True, True, True]
    """
    z, s = as_pair(z, s)
    kernel_z, kernel_s = resolve_kernel(kernel_z, z), resolve_kernel(kernel_s, s)
    spectrum = gap_spectrum(z, s, anchors=anchors, coefficients=coefficients, kernel_z=kernel_z, kernel_s=kernel_s)
    n = spectrum.rows
    count = n if resolutions is None else min(resolutions, n)
    directions = spectrum.vectors[..., :count]
    energy = directions.mT @ center(kernel_z(z)) @ directions / n
    worst = [torch.linalg.eigvalsh(energy[..., :m, :m])[..., -1] for m in range(1, count + 1)]
    worst += [torch.full_like(worst[0], torch.inf)] * (n - count)
    return SharperGap(spectrum, coco(z, s, kernel_z=kernel_z, kernel_s=kernel_s), torch.stack(worst, -1))


def _prepare(batch: SampleBatch) -> SharperGap:
    return sharper_gap(
        batch.z,
        batch.s,
        anchors=batch.anchors,
        coefficients=batch.coefficients,
        kernel_z=batch.kernel_z,
        kernel_s=batch.kernel_s,
    )


def weighted_excess(found: SharperGap) -> Tensor:
    """Return Σ λ̂_j (ê_j·δ_f)²/n − ‖f‖²·COCO²."""
    return (found.weighted - found.spectrum.squared_norm * found.coco.square()) / found.spectrum.scale


def coco_excess(found: SharperGap) -> Tensor:
    """Return λ̂_m·λ_max(P_m K̃ P_m)/n − COCO² for every m: no head of norm one beats the COCO form."""
    excess = found.spectrum.eigenvalues * found.worst - found.coco.square().unsqueeze(-1)
    return torch.where(found.spectrum.counts, excess, -torch.inf)


def order_excess(found: SharperGap) -> Tensor:
    """Return COCO² − HSIC."""
    return found.coco.square() - found.spectrum.hsic


STEPS: dict[str, Callable[[SharperGap], Tensor]] = {
    "the whole weighted spectrum of the gap is at most squared norm times COCO squared": weighted_excess,
    "COCO squared over the m-th eigenvalue bounds the worst head at every m": coco_excess,
    "COCO squared is at most HSIC": order_excess,
}


@check("Theorem 4.7")
def search(*, quick: bool) -> list[Certificate]:
    """Search random samples for a violation of the sharper forms."""
    worst = worst_excess(
        STEPS,
        prepare=_prepare,
        instances=1_200 if quick else 10_000,
        generator=torch.Generator().manual_seed(49),
    )
    return [found.certificate(f"sharper: {name}", corrected=True) for name, found in worst.items()]


@check("Theorem 4.7")
def how_much_sharper(*, quick: bool) -> list[Certificate]:
    """Compare the bounds for f = k(0, ·) on a sample of the Gaussian law."""
    n = 300 if quick else 800
    z, s = GaussianPair(0.5).sample(n, generator=torch.Generator().manual_seed(1))
    kernel = Gaussian(1.0)
    found = sharper_gap(z, s, anchors=[[0.0]], coefficients=[1.0], kernel_z=kernel, kernel_s=kernel, resolutions=8)
    printed, _ = found.best(found.hsic_bounds)
    sharp, m = found.best(found.coco_bounds)
    norm = found.spectrum.squared_norm.item()
    return [
        inequality(
            "sharper: the best m with COCO is below the best m with HSIC and below 1/4, Gaussian law, f = k(0, .)",
            middle=sharp.item(), upper=min(printed.item(), trivial_gap()), evidence="deterministic", corrected=True,
            details={"n": n, "m": int(m), "HSIC over COCO squared": (found.spectrum.hsic / found.coco**2).item()}),
        inequality("sharper: weighted gap <= squared norm times COCO squared, Gaussian law, f = k(0, .)",
                   middle=found.weighted.item(), upper=norm * found.coco.item() ** 2, evidence="deterministic",
                   corrected=True, details={"n": n, "HSIC form": norm * found.spectrum.hsic.item()}),
    ]  # fmt: skip


CUTOFF = 1e-6  # relative to the largest eigenvalue, as the paper's appendix has it


def compare_bounds(
    z: ArrayLike,
    s: ArrayLike,
    *,
    anchors: ArrayLike | None = None,
    kernel_z: Kernel | None = None,
    kernel_s: Kernel | None = None,
    cutoff: float = CUTOFF,
) -> dict[str, float]:
    """Average the bounds of Theorem 4.7 over the heads f = k(z0, ·), for one sample; O(n³) time, O(n²) memory.

    Parameters
    ----------
    z, s : array_like
        ``(n, d)`` and ``(n,)`` or ``(n, p)``.
    anchors : array_like, optional
        The z0, ``(a, d)``; the first twenty rows by default.
    kernel_z, kernel_s : Kernel, optional
        Default: Gaussian at the median bandwidth.
    cutoff : float
        Eigenvalues below this share of the largest are dropped, as in the paper's figure.

    Returns
    -------
    dict
        ``kept`` eigenvalues; ``hsic``, ``coco_squared``; ``left`` (the mean square of δ_f), ``projected`` (of P_m δ_f
        at m = kept); ``printed`` (HSIC/λ̂ at m = kept); ``best_hsic`` and ``best_coco`` (bound plus unresolved rest at
        the best m, both at least ``left``); ``weighted`` (Σλ̂_j(ê_j·δ_f)²/n, at most ``coco_squared``).

    Examples
    --------
    >>> from frhsic_core.laws import GaussianPair
    >>> row = compare_bounds(*GaussianPair(0.5).sample(200, generator=torch.Generator().manual_seed(0)))
    >>> row["left"] <= row["best_coco"] <= row["best_hsic"] <= 0.25 < row["printed"]
    True
    """
    z, s = as_pair(z, s)
    n = z.shape[-2]
    kernel_z, kernel_s = resolve_kernel(kernel_z, z), resolve_kernel(kernel_s, s)
    points = z[:20] if anchors is None else torch.as_tensor(anchors, dtype=z.dtype, device=z.device)
    found = gap_spectrum(z, s, anchors=points[:1], coefficients=[1.0], kernel_z=kernel_z, kernel_s=kernel_s)
    values = kernel_z(z, points)
    deltas = values - values.mean(0)
    norms = kernel_z(points).diagonal()
    scores = found.vectors.mT @ deltas
    kept = int((found.eigenvalues > cutoff * found.eigenvalues[0]).sum())
    eigenvalues = found.eigenvalues[:kept].unsqueeze(-1)
    squares = scores.square().cumsum(0)[:kept] / n
    left = deltas.square().mean(0)
    squared = coco(z, s, kernel_z=kernel_z, kernel_s=kernel_s).square()
    return {
        "rows": float(n),
        "kept": float(kept),
        "hsic": found.hsic.item(),
        "coco_squared": squared.item(),
        "left": left.mean().item(),
        "projected": squares[-1].mean().item(),
        "printed": (norms * found.hsic / eigenvalues[-1]).mean().item(),
        "best_hsic": (norms * found.hsic / eigenvalues + left - squares).amin(0).mean().item(),
        "best_coco": (norms * squared / eigenvalues + left - squares).amin(0).mean().item(),
        "weighted": ((found.eigenvalues.unsqueeze(-1) * scores.square()).sum(0) / n).mean().item(),
    }
