"""The gamma and spectral fits of the null distribution of n·HSIC_b, and the sums over Gram matrices that they need.

*Gamma* fits two moments (Gretton et al., 2007). *Spectral* takes the exact mean and variance over permutations
(Kazi-Aoual et al., 1995) and the skewness of the limit law, a weighted sum of χ²₁ variables. Both need sums over the
entries of two centered Gram matrices: from thin matrices where the ranks are small, or from some rows of the whole
matrices at a time. The spectral fit also needs Σλ³ = tr K̃³, a sum over triples of rows: above 4,096 rows the shape of
the law is that of a part of the rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from scipy.special import gammaincc, gammainccinv

from frhsic_core._arrays import DENSE_ROWS, spaced_rows
from frhsic_core.backend import finfo, xp
from frhsic_core.joint.contraction import center
from frhsic_core.joint.factors import ThinPair, squared_factor, thin_pair
from frhsic_core.kernels import Kernel, Linear

if TYPE_CHECKING:
    from torch import Tensor

_ENTRIES = 2**23  # numbers of a Gram matrix that are held at once where the matrix is not: 64 MB


@dataclass(frozen=True)
class PairSums:
    """Sums over two Gram matrices K and L and over their centered forms; a pair ``(2,)`` is that of K and that of L.

    Attributes
    ----------
    largest : Tensor
        Pair max |K|.
    trace, squares, diagonal_squares : Tensor
        Pairs tr K̃, Σ K̃² = Σλ², and the sum of squares on the diagonal of K̃.
    shape : Tensor
        Pair (Σλ²)³/(Σλ³)², for the spectral fit only.
    product, product_squares : Tensor
        The sum of K̃ ∘ L̃, and the sum of its squares off the diagonal (for the gamma fit).
    """

    largest: Tensor
    trace: Tensor
    squares: Tensor
    diagonal_squares: Tensor
    shape: Tensor
    product: Tensor
    product_squares: Tensor

    def fitted(self, method: str, n: float) -> tuple[Tensor, Tensor, Tensor]:
        """Return the mean, the variance and the shape of the gamma distribution that is fitted to n·HSIC_b."""
        traces = self.trace.prod()
        if method == "gamma":  # Theorem 4 of Gretton et al. (2007) and its estimates
            # The mean diagonal entry minus the mean off-diagonal one is tr K̃/(n − 1).
            mean = traces / (n - 1) ** 2
            variance = (
                2.0 * (n - 4) * (n - 5) / ((n - 1) ** 2 * (n - 2) * (n - 3)) * self.product_squares
            )
            return mean, variance, mean**2 / variance
        # The exact mean and variance of n·HSIC_b over all n! permutations (Kazi-Aoual et al., 1995).
        spread = (n - 1) * self.squares - self.trace**2
        rest = n * (n + 1) * self.diagonal_squares - (n - 1) * (self.trace**2 + 2 * self.squares)
        variance = 2.0 * spread.prod() / ((n - 1) ** 2 * (n + 1) * (n - 2))
        variance = variance + rest.prod() / ((n + 1) * n * (n - 1) * (n - 2) * (n - 3))
        # The r-th cumulant of the limit law Σ λ_i μ_j χ²_ij is 2^(r−1) (r − 1)! Σλ^r Σμ^r, so its skewness is
        # √8 Σλ³Σμ³/(Σλ²Σμ²)^(3/2). A gamma distribution with shape a has skewness 2/√a.
        return traces / (n - 1) / n, variance / n**2, self.shape.prod() / 2.0


# Thin matrices -------------------------------------------------------------------------------------------------------


def largest_entry(kernel: Kernel, x: Tensor) -> Tensor:
    """Return max |K| of a kernel that has thin features: all but the linear one are one on the diagonal."""
    if isinstance(kernel, Linear):
        return x.square().sum(-1).amax()
    return x.new_ones(())


def _thin_sums(pair: ThinPair, largest: Tensor, method: str) -> PairSums | None:
    """Return the sums from the centered features; ``None`` if the squared kernels have too large a rank."""
    trace, diagonal_squares, diagonal_products = pair.over_rows(_diagonal_sums)
    product_squares = xp.zeros_like(diagonal_products)
    if method == "gamma":
        every_square = _sum_of_squared_products(pair)
        if every_square is None:
            return None
        product_squares = every_square - diagonal_products
    own_z = replace(pair, s=pair.z, factor_s=pair.factor_z).product()
    own_s = replace(pair, z=pair.s, factor_z=pair.factor_s).product()
    return PairSums(
        largest=largest,
        trace=trace,
        squares=xp.stack([own_z.square().sum(), own_s.square().sum()]),
        diagonal_squares=diagonal_squares,
        shape=xp.stack([cubic_shape(own_z), cubic_shape(own_s)]),
        product=pair.product().square().sum(),
        product_squares=product_squares,
    )


def _diagonal_sums(phi: Tensor, psi: Tensor, _: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Return sums over the diagonals k and l of both matrices: pairs Σk, Σl and Σk², Σl², and Σk²l²."""
    diagonals = xp.stack([phi.square().sum(-1), psi.square().sum(-1)])
    product = diagonals.prod(0)
    return diagonals.sum(-1), diagonals.square().sum(-1), product.square().sum()


def _sum_of_squared_products(pair: ThinPair) -> Tensor | None:
    """Return the sum of the squares of K̃ ∘ L̃; ``None`` if the rank is too large.

    K̃ ∘ K̃ is a kernel again, with features of its own.
    """
    factor_z = squared_factor(pair.factor_z, pair.z)
    factor_s = squared_factor(pair.factor_s, pair.s)
    if factor_z is None or factor_s is None:
        return None
    squared = replace(pair, factor_z=factor_z, factor_s=factor_s)
    return squared.product().square().sum()


# Whole matrices ------------------------------------------------------------------------------------------------------


def _all_pairs_sums(
    z: Tensor, s: Tensor, kernel_z: Kernel, kernel_s: Kernel, *, method: str
) -> PairSums:
    """Return the sums of one sample in O(n) memory, from two passes over both Gram matrices."""
    n = len(z)
    parts = xp.arange(n, like=z).split(max(1, _ENTRIES // n))
    side_z = _Side.of(kernel_z, z, parts)
    side_s = _Side.of(kernel_s, s, parts)
    totals = z.new_zeros(4, 2)
    largest = z.new_zeros(2)
    for rows in parts:
        most_z, k = side_z.centered(rows)
        most_s, l = side_s.centered(rows)
        largest = xp.maximum(largest, xp.stack([most_z, most_s]))
        own = xp.arange(len(rows), like=z)
        diagonals = xp.stack([k[own, rows], l[own, rows]])
        squares = xp.stack([k.square().sum(), l.square().sum()])
        product = k.mul_(l)
        off_diagonal = product.square().sum() - diagonals.prod(0).square().sum()
        products = xp.stack([product.sum(), off_diagonal])
        totals += xp.stack([diagonals.sum(-1), squares, diagonals.square().sum(-1), products])
    trace, squares, diagonal_squares, products = totals.unbind()
    product_sum, product_squares = products.unbind()
    shape = z.new_zeros(2)
    if method == "spectral":
        some = spaced_rows(n, n if n <= DENSE_ROWS else DENSE_ROWS // 2, like=z)
        shape_z = cubic_shape(center(kernel_z(z[some])))
        shape_s = cubic_shape(center(kernel_s(s[some])))
        shape = xp.stack([shape_z, shape_s])
    return PairSums(largest, trace, squares, diagonal_squares, shape, product_sum, product_squares)


@dataclass(frozen=True)
class _Side:
    """One sample ``x`` with its kernel, and ``shift`` r with K̃ = K − r1ᵀ − 1rᵀ."""

    kernel: Kernel
    x: Tensor
    shift: Tensor

    @classmethod
    def of(cls, kernel: Kernel, x: Tensor, parts: Sequence[Tensor]) -> _Side:
        """Return the side, from a first pass over some rows of the matrix at a time."""
        mean = xp.cat([kernel(x[rows], x).mean(-1) for rows in parts])
        return cls(kernel, x, mean - 0.5 * mean.mean())

    def centered(self, rows: Tensor) -> tuple[Tensor, Tensor]:
        """Return the largest |K| in some rows, and these rows of K̃."""
        gram = self.kernel(self.x[rows], self.x)
        largest = gram.abs().amax()
        return largest, gram.sub_(self.shift[rows].unsqueeze(-1)).sub_(self.shift)


def only_rounding(spread: Tensor, largest: Tensor, n: int) -> Tensor:
    """Return whether rounding alone is left of Gram matrices of n rows, from tr K̃/n and max |K|."""
    return spread <= n * finfo(spread).eps * largest


# The two fits -------------------------------------------------------------------------------------------------------


def cubic_shape(matrix: Tensor) -> Tensor:
    """Return (Σλ²)³/(Σλ³)² for the eigenvalues of a symmetric matrix, from traces."""
    return matrix.square().sum() ** 3 / ((matrix @ matrix) * matrix).sum() ** 2


def fitted_groups(
    z: Tensor,
    s: Tensor,
    kernel_z: Kernel,
    kernel_s: Kernel,
    groups: list[Tensor],
    *,
    method: str,
    alpha: float,
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Return Σ n_g HSIC_g of groups of rows, its p-value and critical value by the fits, and whether nothing varies.

    The groups are independent, so their cumulants add up. Groups with fewer than six rows are left out.

    O(n r²) time where both Gram matrices have small rank r, O(n²(d + p)) otherwise (O(n³) for the spectral fit up to
    4,096 rows, above which the skewness comes from 2,048 rows).
    """
    moments = []
    for rows in groups:
        if len(rows) < min(6, len(z)):
            continue
        own = rows.to(z.device)
        group = z[own], s[own], kernel_z, kernel_s
        pair = thin_pair(*group)
        sums = None
        if pair is not None:
            sizes = [largest_entry(kernel_z, group[0]), largest_entry(kernel_s, group[1])]
            sums = _thin_sums(pair, xp.stack(sizes), method)
        if sums is None:
            sums = _all_pairs_sums(*group, method=method)
        if bool(only_rounding(sums.trace / len(rows), sums.largest, len(rows)).any()):
            continue
        mean, variance, shape = sums.fitted(method, float(len(rows)))
        third = 2.0 * variance**1.5 / shape.sqrt()
        moments.append(xp.stack([sums.product.clamp_min(0.0) / len(rows), mean, variance, third]))
    statistic, mean, variance, third = xp.stack(moments or [z.new_zeros(4)]).sum(0).unbind()
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
    tail = xp.as_tensor(gammaincc(shape_cpu, argument.cpu().numpy()), like=mean)
    quantile = xp.as_tensor(gammainccinv(shape_cpu, alpha), like=mean)
    return tail, shift + scale * quantile
