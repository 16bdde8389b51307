"""The gamma and spectral fits of the null distribution of n·HSIC_b, and the sums over Gram matrices that they need.

*Gamma* fits two moments (Gretton et al., 2007). *Spectral* takes the exact mean and variance over permutations
(Kazi-Aoual et al., 1995) and the skewness of the limit law, a weighted sum of χ²₁ variables. Both need sums over the
entries of two centered Gram matrices: from thin matrices where the ranks are small, or from some rows of the whole
matrices at a time. The spectral fit also needs Σλ³ = tr K̃³, a sum over triples of rows: above 4,096 rows the shape of
the law is that of a part of the rows.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import NamedTuple

import torch
from scipy.special import gammaincc, gammainccinv
from torch import Tensor

from frhsic_core.arrays import DENSE_ROWS, spaced_rows
from frhsic_core.joint.contraction import center
from frhsic_core.joint.factors import ThinPair, squared_factor, thin_pair
from frhsic_core.kernels import Kernel

_ENTRIES = 2**23  # numbers of a Gram matrix that are held at once where the matrix is not: 64 MB


@dataclass(frozen=True)
class GramSums:
    """Sums over one Gram matrix K and over its centered form K̃.

    Attributes
    ----------
    n : int
        Number of rows.
    largest : Tensor
        max |K|.
    trace, squares, diagonal_squares : Tensor
        tr K̃, Σ K̃² = Σλ², and the sum of squares on the diagonal of K̃.
    shape : Tensor
        (Σλ²)³/(Σλ³)², for the spectral fit only.
    """

    n: int
    largest: Tensor
    trace: Tensor
    squares: Tensor
    diagonal_squares: Tensor
    shape: Tensor

    @property
    def constant(self) -> Tensor:
        """Whether nothing but rounding is left after centering."""
        return self.trace <= self.n * self.n * torch.finfo(self.trace.dtype).eps * self.largest


class PairSums(NamedTuple):
    """The sums of K and of L, the sum of K̃ ∘ L̃, and the sum of its squares off the diagonal (for the gamma fit)."""

    k: GramSums
    l: GramSums
    product: Tensor
    squares: Tensor

    def fitted(self, method: str) -> tuple[Tensor, Tensor, Tensor]:
        """Return the mean, the variance and the shape of the gamma distribution that is fitted to n·HSIC_b."""
        if method == "gamma":  # Theorem 4 of Gretton et al. (2007) and its estimates
            n = self.k.n
            # The mean diagonal entry minus the mean off-diagonal one is tr K̃/(n − 1).
            mean = self.k.trace * self.l.trace / (n - 1) ** 2
            variance = 2.0 * (n - 4) * (n - 5) / ((n - 1) ** 2 * (n - 2) * (n - 3)) * self.squares
            return mean, variance, mean**2 / variance
        # The r-th cumulant of the limit law Σ λ_i μ_j χ²_ij is 2^(r−1) (r − 1)! Σλ^r Σμ^r, so its skewness is
        # √8 Σλ³Σμ³/(Σλ²Σμ²)^(3/2). A gamma distribution with shape a has skewness 2/√a.
        return *permutation_moments(self.k, self.l), self.k.shape * self.l.shape / 2.0


def pair_sums(z: Tensor, s: Tensor, kernel_z: Kernel, kernel_s: Kernel, *, method: str) -> PairSums:
    """Return the sums that the fit ``method`` needs, of one sample ``(n, d)`` and ``(n, p)``.

    O(n r²) time where both Gram matrices have small rank r, O(n²(d + p)) otherwise (O(n³) for the spectral fit up to
    4,096 rows, above which the skewness comes from 2,048 rows).
    """
    pair = thin_pair(z, s, kernel_z, kernel_s)
    found = None if pair is None else _thin_sums(pair, method)
    return found if found is not None else _all_pairs_sums(z, s, kernel_z, kernel_s, method=method)


# Thin matrices -------------------------------------------------------------------------------------------------------


def _thin_sums(pair: ThinPair, method: str) -> PairSums | None:
    """Return the sums from the centered features; ``None`` if the squared kernels have too large a rank."""
    own_z = replace(pair, s=pair.z, factor_s=pair.factor_z).product()
    own_s = replace(pair, z=pair.s, factor_z=pair.factor_s).product()

    def diagonal_sums(phi: Tensor, psi: Tensor, _: Tensor) -> tuple[Tensor]:
        d, e = phi.square().sum(-1), psi.square().sum(-1)
        return (torch.stack([d.sum(), d @ d, e.sum(), e @ e, d.square() @ e.square()]),)

    (diagonals,) = pair.over_rows(diagonal_sums)
    squares = torch.zeros_like(diagonals[0])
    if method == "gamma":
        # K̃ ∘ K̃ is a kernel again, with a rank of its own.
        factor_z, factor_s = squared_factor(pair.factor_z, pair.z), squared_factor(pair.factor_s, pair.s)
        if factor_z is None or factor_s is None:
            return None
        entries = replace(pair, factor_z=factor_z, factor_s=factor_s).product()
        squares = entries.square().sum() - diagonals[4]

    def sums(own: Tensor, trace: Tensor, diagonal_squares: Tensor) -> GramSums:
        sizes = trace, own.square().sum(), diagonal_squares
        return GramSums(len(pair.z), torch.ones_like(trace), *sizes, cubic_shape(own))

    return PairSums(sums(own_z, *diagonals[:2]), sums(own_s, *diagonals[2:4]), pair.product().square().sum(), squares)


# Whole matrices ------------------------------------------------------------------------------------------------------


def _all_pairs_sums(z: Tensor, s: Tensor, kernel_z: Kernel, kernel_s: Kernel, *, method: str) -> PairSums:
    """Return the sums of one sample in O(n) memory, from two passes over both Gram matrices."""
    n = len(z)
    parts = torch.arange(n, device=z.device).split(max(1, _ENTRIES // n))
    sides = []
    for kernel, x in ((kernel_z, z), (kernel_s, s)):
        mean = torch.cat([kernel(x[rows], x).mean(-1) for rows in parts])
        sides.append((kernel, x, mean - 0.5 * mean.mean()))  # K̃ = K − r1ᵀ − 1rᵀ
    totals = z.new_zeros(8)
    largest = [z.new_zeros(()), z.new_zeros(())]
    for rows in parts:
        blocks = []
        for i, (kernel, x, shift) in enumerate(sides):
            gram = kernel(x[rows], x)
            largest[i] = torch.maximum(largest[i], gram.abs().amax())
            blocks.append(gram.sub_(shift[rows].unsqueeze(-1)).sub_(shift))
        k, l = blocks
        d, e = (block[torch.arange(len(rows)), rows] for block in blocks)
        own = [k.square().sum(), l.square().sum()]
        both = k.mul_(l)
        squares = both.square().sum() - (d * e).square().sum()
        totals += torch.stack([d.sum(), own[0], d @ d, e.sum(), own[1], e @ e, both.sum(), squares])
    shapes = [z.new_zeros(())] * 2
    if method == "spectral":
        few = spaced_rows(n, n if n <= DENSE_ROWS else DENSE_ROWS // 2, z.device)
        shapes = [cubic_shape(center(kernel(x[few]))) for kernel, x, _ in sides]
    k_sums, l_sums = (
        GramSums(n, largest[i], totals[3 * i], totals[3 * i + 1], totals[3 * i + 2], shapes[i]) for i in range(2)
    )
    return PairSums(k_sums, l_sums, totals[6], totals[7])


# The two fits -------------------------------------------------------------------------------------------------------


def permutation_moments(k: GramSums, l: GramSums) -> tuple[Tensor, Tensor]:
    """Return the exact mean and variance of n·HSIC_b over all n! permutations (Kazi-Aoual et al., 1995)."""
    n = float(k.n)

    def sums(a: GramSums) -> tuple[Tensor, Tensor, Tensor]:
        spread = (n - 1) * a.squares - a.trace**2
        return a.trace, spread, n * (n + 1) * a.diagonal_squares - (n - 1) * (a.trace**2 + 2 * a.squares)

    k_trace, k_spread, k_rest = sums(k)
    l_trace, l_spread, l_rest = sums(l)
    mean = k_trace * l_trace / (n - 1)
    variance = 2.0 * k_spread * l_spread / ((n - 1) ** 2 * (n + 1) * (n - 2))
    variance = variance + k_rest * l_rest / ((n + 1) * n * (n - 1) * (n - 2) * (n - 3))
    return mean / n, variance / n**2


def cubic_shape(matrix: Tensor) -> Tensor:
    """Return (Σλ²)³/(Σλ³)² for the eigenvalues of a symmetric matrix, from traces."""
    return matrix.square().sum() ** 3 / ((matrix @ matrix) * matrix).sum() ** 2


def fitted_groups(
    z: Tensor, s: Tensor, kernel_z: Kernel, kernel_s: Kernel, groups: list[Tensor], *, method: str, alpha: float
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Return Σ n_g HSIC_g of groups of rows, its p-value and critical value by the fits, and whether nothing varies.

    The groups are independent, so their cumulants add up. Groups with fewer than six rows are left out.
    """
    moments = []
    for rows in groups:
        if len(rows) < min(6, len(z)):
            continue
        sums = pair_sums(z[rows.to(z.device)], s[rows.to(z.device)], kernel_z, kernel_s, method=method)
        if bool(sums.k.constant | sums.l.constant):
            continue
        mean, variance, shape = sums.fitted(method)
        third = 2.0 * variance**1.5 / shape.sqrt()
        moments.append(torch.stack([sums.product.clamp_min(0.0) / len(rows), mean, variance, third]))
    if not moments:
        zero = z.new_zeros(())
        return zero, zero, zero, zero == 0
    statistic, mean, variance, third = torch.stack(moments).sum(0).unbind()
    # A gamma distribution with shape a has skewness 2/√a.
    pvalue, threshold = fitted_gamma(statistic, mean, variance, 4.0 * variance**3 / third**2, alpha)
    return statistic, pvalue, threshold, variance <= 0


def fitted_gamma(
    statistic: Tensor, mean: Tensor, variance: Tensor, shape: Tensor, alpha: float
) -> tuple[Tensor, Tensor]:
    """Return the tail probability and critical value of a shifted gamma distribution with these moments."""
    scale = (variance / shape).sqrt()
    shift = mean - shape * scale
    argument = ((statistic - shift) / scale).clamp_min(0.0)
    shape_cpu = shape.cpu().numpy()
    tail = torch.as_tensor(gammaincc(shape_cpu, argument.cpu().numpy()), device=mean.device)
    quantile = torch.as_tensor(gammainccinv(shape_cpu, alpha), device=mean.device)
    return tail, shift + scale * quantile
