"""The gamma and spectral fits of the null distribution of n·HSIC_b, and the sums over Gram matrices that they need.

*Gamma* fits two moments (Gretton et al., 2007). *Spectral* takes the exact mean and variance over permutations
(Kazi-Aoual et al., 1995) and the skewness of the limit law, a weighted sum of χ²₁ variables. Both need sums over the
entries of two centered Gram matrices: from thin matrices where the ranks are small, from whole matrices, or block by
block. The spectral fit also needs Σλ³ = tr K̃³, which is a sum over triples of rows: block by block it is estimated from
products of K̃ with a few random vectors.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import torch
from scipy.special import gammaincc, gammainccinv
from torch import Tensor

from frhsic_core.joint.contraction import center
from frhsic_core.joint.factors import ThinPair, squared_factor, thin_factors
from frhsic_core.joint.streaming import gram_block
from frhsic_core.kernels import Kernel
from frhsic_core.memory import DENSE_ROWS, blocks

# Rows of a block: large enough to keep a GPU busy, small enough for the cache of a CPU.
_SIZE = {"cuda": 4096, "cpu": 512}
# Random vectors of the trace estimate: this many directions exactly, and as many probes of the remainder.
DIRECTIONS = 32


@dataclass(frozen=True)
class GramSums:
    """Sums over one Gram matrix K and over its centered form K̃; tensors have the batch shape.

    Attributes
    ----------
    n : int
        Number of rows.
    largest : Tensor
        max |K|.
    trace, squares, diagonal_squares : Tensor
        tr K̃, Σ K̃² = Σλ², and the sum of squares on the diagonal of K̃.
    cubes : Tensor
        tr K̃³ = Σλ³, for the spectral fit only.
    """

    n: int
    largest: Tensor
    trace: Tensor
    squares: Tensor
    diagonal_squares: Tensor
    cubes: Tensor

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
        if method == "gamma":
            mean, variance = gretton_moments(self.k, self.l, self.squares)
            return mean, variance, mean**2 / variance
        return *permutation_moments(self.k, self.l), spectral_shape(self.k, self.l)


def pair_sums(z: Tensor, s: Tensor, kernel_z: Kernel, kernel_s: Kernel, *, method: str) -> PairSums:
    """Return the sums that the fit ``method`` needs, of one sample ``(n, d)`` and ``(n, p)``.

    O(n r²) time where both Gram matrices have small rank r, O(n²(d + p)) otherwise (O(n³) for the spectral fit up to
    4,096 rows).
    """
    factors = thin_factors(z, s, kernel_z, kernel_s)
    if factors is not None:
        found = _thin_sums(ThinPair.of(z, s, *factors), method)
        if found is not None:
            return found
    if len(z) <= DENSE_ROWS:
        return dense_pair(kernel_z(z), kernel_s(s), method=method)
    return _streamed_sums(z, s, kernel_z, kernel_s, cubes=method == "spectral")


# Thin matrices -------------------------------------------------------------------------------------------------------


def _thin_sums(pair: ThinPair, method: str) -> PairSums | None:
    """Return the sums from the centered features; ``None`` if the squared kernels have too large a rank."""
    cross, own_z, own_s = pair.products(own=True)
    diagonals = cross.new_zeros(5)
    for _, phi, psi, _ in pair.features():
        d, e = phi.square().sum(-1), psi.square().sum(-1)
        diagonals += torch.stack([d.sum(), d @ d, e.sum(), e @ e, d.square() @ e.square()])
    squares = torch.zeros_like(diagonals[0])
    if method == "gamma":
        # K̃ ∘ K̃ is a kernel again, with a rank of its own.
        factor_z, factor_s = squared_factor(pair, "z"), squared_factor(pair, "s")
        if factor_z is None or factor_s is None:
            return None
        entries = ThinPair.uncentered(pair.z, pair.s, factor_z, factor_s).products()[0]
        squares = entries.square().sum() - diagonals[4]

    def sums(own: Tensor, trace: Tensor, diagonal_squares: Tensor) -> GramSums:
        return GramSums(
            n=len(pair.z),
            largest=torch.ones_like(trace),
            trace=trace,
            squares=own.square().sum(),
            diagonal_squares=diagonal_squares,
            cubes=((own @ own) * own).sum(),
        )

    return PairSums(sums(own_z, *diagonals[:2]), sums(own_s, *diagonals[2:4]), cross.square().sum(), squares)


# Whole matrices ------------------------------------------------------------------------------------------------------


def _diagonal(a: Tensor) -> Tensor:
    return a.diagonal(dim1=-2, dim2=-1)


def dense_sums(gram: Tensor, centered: Tensor, *, cubes: bool = False) -> GramSums:
    """Return the sums of ``(..., n, n)`` matrices; ``cubes`` costs O(n³)."""
    third = ((centered @ centered) * centered).sum((-2, -1)) if cubes else torch.zeros_like(gram[..., 0, 0])
    return GramSums(
        n=gram.shape[-1],
        largest=gram.abs().amax((-2, -1)),
        trace=_diagonal(centered).sum(-1),
        squares=centered.square().sum((-2, -1)),
        diagonal_squares=_diagonal(centered).square().sum(-1),
        cubes=third,
    )


def dense_pair(k: Tensor, l: Tensor, *, method: str) -> PairSums:
    """Return the sums of two stacks of Gram matrices ``(..., n, n)``."""
    k_centered, l_centered = center(k), center(l)
    products = k_centered * l_centered
    squares = products.square()
    return PairSums(
        dense_sums(k, k_centered, cubes=method == "spectral"),
        dense_sums(l, l_centered, cubes=method == "spectral"),
        products.sum((-2, -1)),
        squares.sum((-2, -1)) - _diagonal(squares).sum(-1),
    )


# Block by block ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class StreamedGram:
    """A Gram matrix that is computed block by block: its kernel, its rows and the column r with K̃ = K − r1ᵀ − 1rᵀ."""

    kernel: Kernel
    x: Tensor
    size: int
    shift: Tensor
    largest: Tensor

    @classmethod
    def of(cls, kernel: Kernel, x: Tensor) -> StreamedGram:
        """Find the row means in one pass."""
        size = _SIZE.get(x.device.type, _SIZE["cpu"])
        n = x.shape[0]
        sums = x.new_zeros(n)
        largest = x.new_zeros(())
        for rows, columns, same in blocks(n, size):
            gram = gram_block(kernel, x, rows, columns, hollow=False)
            sums[rows] += gram.sum(-1)
            largest = torch.maximum(largest, gram.abs().amax())
            if not same:
                sums[columns] += gram.sum(-2)
        mean = sums / n
        return cls(kernel, x, size, mean - 0.5 * mean.mean(), largest)

    def centered(self, rows: slice, columns: slice) -> Tensor:
        """Return one block of K̃."""
        gram = gram_block(self.kernel, self.x, rows, columns, hollow=False)
        return gram.sub_(self.shift[rows].unsqueeze(-1)).sub_(self.shift[columns])

    def times(self, v: Tensor) -> Tensor:
        """Return K̃v for ``(n, q)`` columns, in one pass."""
        result = torch.zeros_like(v)
        for rows, columns, same in blocks(len(v), self.size):
            block = self.centered(rows, columns)
            result[rows] += block @ v[columns]
            if not same:
                result[columns] += block.mT @ v[rows]
        return result

    def sums(self, squares: Tensor, diagonal: Tensor, *, cubes: bool) -> GramSums:
        """Return the sums of this matrix, given Σ K̃² and the diagonal of K̃."""
        return GramSums(
            n=len(self.x),
            largest=self.largest,
            trace=diagonal.sum(),
            squares=squares,
            diagonal_squares=diagonal.square().sum(),
            cubes=cubic_trace(self.times, self.x) if cubes else torch.zeros_like(squares),
        )


def _streamed_sums(z: Tensor, s: Tensor, kernel_z: Kernel, kernel_s: Kernel, *, cubes: bool) -> PairSums:
    """Return the sums of one sample in O(n) memory.

    Two passes over each Gram matrix, and three more with ``cubes``. O(n²(d + p)) time, and O(n + block²) memory beside
    the data (O(32·n + block²) with ``cubes``).
    """
    k = StreamedGram.of(kernel_z, z)
    l = StreamedGram.of(kernel_s, s)
    n = len(z)
    product, squares, k_squares, l_squares = z.new_zeros(4).unbind()
    k_diagonal, l_diagonal = z.new_zeros(2, n).unbind()
    for rows, columns, same in blocks(n, k.size):
        twice = 1 if same else 2
        k_block = k.centered(rows, columns)
        l_block = l.centered(rows, columns)
        if same:
            k_diagonal[rows] = _diagonal(k_block)
            l_diagonal[rows] = _diagonal(l_block)
        k_squares = k_squares + twice * torch.linalg.vector_norm(k_block).square()
        l_squares = l_squares + twice * torch.linalg.vector_norm(l_block).square()
        both = k_block.mul_(l_block)
        product = product + twice * both.sum()
        squares = squares + twice * torch.linalg.vector_norm(both).square()
    squares = squares - (k_diagonal * l_diagonal).square().sum()
    k_sums = k.sums(k_squares, k_diagonal, cubes=cubes)
    l_sums = l.sums(l_squares, l_diagonal, cubes=cubes)
    return PairSums(k_sums, l_sums, product, squares)


def cubic_trace(times: Callable[[Tensor], Tensor], like: Tensor) -> Tensor:
    """Estimate tr A³ of a positive semi-definite matrix from three products with ``DIRECTIONS`` vectors (Hutch++).

    Q spans A applied to random signs, which holds the large eigenvalues. Their part, tr QᵀA³Q, is exact. The remainder
    is estimated by Hutchinson's method with random signs that are orthogonal to Q (Meyer et al., 2021).
    The relative standard error of the remainder is √(2Σλ⁶/DIRECTIONS)/Σλ³ over its eigenvalues. The skewness enters the
    critical value with a small weight. The signs are fixed, so that results repeat.
    """
    generator = torch.Generator().manual_seed(0)
    signs = torch.randint(0, 2, (len(like), 2 * DIRECTIONS), generator=generator).to(like) * 2.0 - 1.0
    basis = torch.linalg.qr(times(signs[:, :DIRECTIONS])).Q
    probes = signs[:, DIRECTIONS:]
    probes = probes - basis @ (basis.mT @ probes)
    once = times(torch.cat([basis, probes], dim=1))
    cubes = (once * times(once)).sum(0)
    return cubes[:DIRECTIONS].sum() + cubes[DIRECTIONS:].mean()


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


def spectral_shape(k: GramSums, l: GramSums) -> Tensor:
    """Return the shape of the gamma distribution that has the skewness of the limit law Σ λ_i μ_j χ²_ij.

    The r-th cumulant of the limit law is 2^(r−1) (r − 1)! Σλ^r Σμ^r, so its skewness is √8 Σλ³Σμ³/(Σλ²Σμ²)^(3/2). A
    gamma distribution with shape a has skewness 2/√a.
    """
    return _shape(k) * _shape(l) / 2.0


def _shape(gram: GramSums) -> Tensor:
    """Return (Σλ²)³/(Σλ³)², one factor of twice the shape."""
    return gram.squares**3 / gram.cubes**2


def gretton_moments(k: GramSums, l: GramSums, squares: Tensor) -> tuple[Tensor, Tensor]:
    """Return the null mean and variance of n·HSIC_b (Gretton et al., 2007, Theorem 4 and its estimates).

    ``squares`` is the sum of (K̃ ∘ L̃)² over the entries off the diagonal.
    """
    n = k.n
    off_diagonal = squares / (n * (n - 1))
    factor = 2.0 * n * (n - 4) * (n - 5) / ((n - 1) * (n - 2) * (n - 3))
    # The mean diagonal entry minus the mean off-diagonal one is tr K̃/(n − 1).
    return k.trace * l.trace / (n - 1) ** 2, factor * off_diagonal


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
