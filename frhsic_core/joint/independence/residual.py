"""The test of Z ⟂ S | C for a continuous C: kernel ridge residuals, and random signs in place of permutations.

No test of conditional independence given a continuous C has a level that holds for every distribution, and power
against any (Shah and Peters, 2020). This one assumes that E[φ(Z)|C] and E[ψ(S)|C] are smooth enough for kernel ridge
regression: the product of the two regression errors must be small against n^(−1/2).

1. The features of Z and of S (one set for each window of bandwidths) are regressed on C by kernel ridge regression with
   a Gaussian kernel. Its bandwidth and its ridge are chosen by generalized cross-validation for each window, because
   narrow features need a rougher fit than wide ones. Where C explains all but 1e-4 of the variance of Z or S, it counts
   as a function of C, and the p-value is one.
2. With residuals R and Q, the statistics are n‖mean of R_i ⊗ Q_i‖² (*pooled*) and n‖mean of R_i ⊗ Q_i ⊗ χ(C_i)‖² (*by
   value*, χ the features of a Gaussian kernel on C), that is 1ᵀM1/n with M = RRᵀ ∘ QQᵀ and M = RRᵀ ∘ QQᵀ ∘ χχᵀ.
3. Under the hypothesis R_i ⊗ Q_i has mean zero given C, so that its sign is arbitrary: εᵀMε/n with random signs ε has
   the null distribution in the limit (the multiplier bootstrap). It keeps the variances given C, which permuted
   residuals do not.

Kernels far narrower than the noise have conditional means that no regression can follow, hence ``WIDE``. The chapter
on speed compares levels and power with those of other tests. Several columns of C need more rows, as in every
regression.

Above 512 rows the rows of one of 256 random blocks share a sign, so that M is 256 × 256: O(n) time and memory.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from frhsic_core._arrays import spaced_rows
from frhsic_core.backend import Draws, TorchDraws, finfo, xp
from frhsic_core.joint.given import Given, given_kernel, landmark_features
from frhsic_core.joint.independence.fits import cubic_shape, fitted_gamma
from frhsic_core.joint.independence.permutation import (
    BASE_ROWS,
    SHARE,
    SMALL_ROWS,
    JointFeatures,
    Request,
    decide,
    ranked,
    windows,
)
from frhsic_core.kernels import Gaussian, Kernel, median_distance

if TYPE_CHECKING:
    from torch import Tensor

# Multiples of the median bandwidth of C, and ridges, from which each regression chooses.
SCALES = (0.5, 1.0, 2.0, 4.0)
RIDGES = tuple(10.0 ** (0.5 * i) for i in range(-8, 7))
BLOCKS = 256
LOCAL_LANDMARKS = 8
# Factors of the bandwidths of Z and S: narrow features have conditional means that no regression can follow.
WIDE = (4.0, 2.0, 1.0, 0.5)
FUNCTION = 1e-4  # share of the variance that is left of a function of C
RowFunction = Callable[["Tensor"], "Tensor"]
_CHUNK = 2**13  # rows whose features are held at once
_FINE = 1e-10  # share of the variance of the features that may be left out of a regression, and of a small sample


class Regression:
    """Kernel ridge regression on C at all bandwidths and ridges, in orthonormal functions of C and a constant.

    Parameters
    ----------
    c : Tensor
        ``(n, q + 1)``, the rows of C.
    mixed : bool
        Whether there are groups beside continuous columns.
    chunks : list of Tensor
        All rows, a part at a time.
    """

    def __init__(self, c: Tensor, mixed: bool, chunks: list[Tensor]) -> None:
        kernels = [given_kernel(c, scale=scale, mixed=mixed) for scale in SCALES]
        self.features = JointFeatures(kernels, c, share=_FINE)
        total = second = c.new_zeros(())
        for rows in chunks:
            part = self.features(rows)
            total = total + part.sum(0)
            second = second + part.mT @ part
        n = len(c)
        self.mean = total / n
        values, vectors = xp.eigh(second - n * xp.outer(self.mean, self.mean))
        kept = values > 1e-12 * values.amax()
        root = values[kept].sqrt()
        self.change = vectors[:, kept] / root
        # Each kernel is a matrix of the functions; its eigenvectors are what a ridge shrinks.
        self.kernels = []
        for own in self.features.maps:
            inner = root.unsqueeze(-1) * (vectors[:, kept].mT @ own)
            self.kernels.append(xp.eigh(inner @ inner.mT))

    def __call__(self, rows: Tensor) -> Tensor:
        """Return the orthonormal functions of C at these rows."""
        return (self.features(rows) - self.mean) @ self.change

    def fit(self, n: int, mean: Tensor, square: Tensor, products: Tensor) -> Fit:
        """Return the fit with the smallest generalized cross-validation score, RSS/(1 − df/n)².

        ``mean`` and ``square`` are the mean of the features and the sum of their squares, and ``products`` are their
        sums with the functions of C.
        """
        spread = square - n * mean.square().sum()
        tried = []
        for values, vectors in self.kernels:
            values = values.clamp_min(0.0).unsqueeze(-1)
            shrinkage = values / (values + values.new_tensor(RIDGES))  # (functions, ridges)
            coefficients = vectors.mT @ products
            left = spread - coefficients.square().sum(-1) @ (2.0 * shrinkage - shrinkage.square())
            df = 1.0 + shrinkage.sum(0)
            score = xp.where(df > 0.5 * n, math.inf, left / (1.0 - df / n).square())
            at = int(score.argmin())
            tried.append((float(score[at]), left[at], shrinkage[:, at], coefficients, vectors))
        _, rest, factor, coefficients, vectors = min(tried, key=operator.itemgetter(0))
        rounding = n * finfo(mean).eps * square
        share = xp.where(rest <= rounding, 0.0, rest / spread.clamp_min(1e-300))
        return Fit(mean, vectors @ (factor.unsqueeze(-1) * coefficients), vectors, factor, share)


@dataclass(frozen=True)
class Fit:
    """The regression of one set of features on C, at the best bandwidth of C and the best ridge.

    Attributes
    ----------
    mean, coefficients : Tensor
        The constant and the shrunken coefficients of the functions of C.
    vectors, shrinkage : Tensor
        Directions in the functions of C, and the factor by which each is shrunken.
    left : Tensor
        The share of the variance that is left, zero if it is nothing but rounding.
    """

    mean: Tensor
    coefficients: Tensor
    vectors: Tensor
    shrinkage: Tensor
    left: Tensor

    def kept(self, basis: Tensor) -> Tensor:
        """Return the share of the error variance of each row that is left in its residual, ``(rows,)``.

        This is the diagonal of (I − A)² for the smoother A without the constant.
        """
        return 1.0 - (basis @ self.vectors).square() @ (
            2.0 * self.shrinkage - self.shrinkage.square()
        )

    def residual(self, values: Tensor, basis: Tensor) -> Tensor:
        """Return the residuals of features ``(rows, m)`` at rows where the functions of C are ``basis``."""
        return values - self.mean - basis @ self.coefficients


def fitted(many: Sequence[RowFunction], regression: Regression, chunks: list[Tensor]) -> list[Fit]:
    """Return the fit of each set of features."""
    n = sum(map(len, chunks))
    sums: list[list[Tensor]] = [[] for _ in many]
    for rows in chunks:
        basis = regression(rows)
        for features, own in zip(many, sums, strict=True):
            values = features(rows)
            # The functions have mean zero, so the values need not be centered.
            found = [values.sum(0) / n, values.square().sum(), basis.mT @ values]
            own[:] = [a + b for a, b in zip(own, found, strict=True)] if own else found
    return [regression.fit(n, *own) for own in sums]


def residual_test(
    z: Tensor,
    s: Tensor,
    given: Given,
    kernel_z: Kernel | None,
    kernel_s: Kernel | None,
    request: Request,
) -> Tensor:
    """Return the test of Z ⟂ S | C of one sample ``(n, d)`` and ``(n, p)``."""
    n = len(z)
    method, draws, alpha = request.method, request.draws, request.alpha
    c = given.rows_beside(z)
    blocks = _blocks(n, draws, like=z)
    regression = Regression(c, given.mixed, [rows.flatten() for rows in blocks])
    z, kernel_z = _residual_kernel(kernel_z, z, regression, blocks)
    s, kernel_s = _residual_kernel(kernel_s, s, regression, blocks)
    factors, kernels_of_both = windows(method, WIDE, kernel_z, kernel_s)
    share = _FINE if n <= SMALL_ROWS else SHARE
    sides = zip(kernels_of_both, (z, s), strict=True)
    features_z, features_s = (JointFeatures(kernels, x, share=share) for kernels, x in sides)
    local = given_kernel(c, mixed=given.mixed)
    features = landmark_features(local, c, LOCAL_LANDMARKS)
    weights = local(c) if n <= SMALL_ROWS else lambda rows: features(c[rows])
    by_value, pooled, left, constant = residual_matrices(
        features_z, features_s, weights, regression, blocks
    )
    # Both residuals are shrunken by the fit. Their products keep the share `left` of the variance of the statistic,
    # and those of one row with itself, which the signs keep, the square of it.
    scale = left.rsqrt()
    null = [m * scale.unsqueeze(-1) * scale.unsqueeze(-2) for m in (by_value, pooled)]
    if method in ("gamma", "spectral"):
        statistic = by_value[0].sum().clamp_min(0.0)
        pvalue, threshold = _fitted(statistic, null[0][0], method, alpha)
        return decide(statistic / n, statistic, pvalue, threshold, constant[0])
    signs = draws.signs(by_value.shape[-1], request.n_permutations)
    observed = xp.cat([by_value, pooled]).sum((-2, -1)).unsqueeze(0)
    drawn = xp.cat([((m @ signs) * signs).sum(-2) for m in null]).mT
    values = xp.cat([observed, drawn]).clamp_min(0.0)
    by_value, pooled = values.chunk(2, dim=-1)
    return ranked(by_value, pooled, constant, factors, request, n)


def _fitted(statistic: Tensor, matrix: Tensor, method: str, alpha: float) -> tuple[Tensor, Tensor]:
    """Return p-value and critical value of the gamma fit to Σ λ χ²₁, λ the eigenvalues of the matrix."""
    mean = matrix.diagonal().sum()
    variance = 2.0 * matrix.square().sum()
    shape = mean**2 / variance if method == "gamma" else cubic_shape(matrix) / 2.0
    varies = variance > 0
    return fitted_gamma(
        statistic, mean, xp.where(varies, variance, 1.0), xp.where(varies, shape, 1.0), alpha
    )


def _blocks(n: int, draws: Draws | TorchDraws, *, like: Tensor) -> list[Tensor]:
    """Return index tensors ``(blocks, rows)`` of the rows that share a sign: each row alone, or random blocks."""
    if n <= SMALL_ROWS:
        return [xp.arange(n, like=like).unsqueeze(-1)]
    order = draws.permutation(n)
    size = n // BLOCKS
    longer = (n - size * BLOCKS) * (size + 1)  # the remainder is spread over the first blocks
    parts = [order[:longer].reshape(-1, size + 1), order[longer:].reshape(-1, size)]
    step = max(1, _CHUNK // (size + 1))
    return [some for part in parts for some in part.split(step) if len(some)]


def _residual_kernel(
    kernel: Kernel | None, x: Tensor, regression: Regression, blocks: list[Tensor]
) -> tuple[Tensor, Kernel]:
    """Return the rows and their kernel; for ``None`` a Gaussian at the median distance of their residuals given C.

    A function of C is returned as zero: its residuals are errors of the regression, and no evidence.
    """
    if kernel is not None:
        return x, kernel
    fit = fitted([x.__getitem__], regression, [rows.flatten() for rows in blocks])[0]
    if float(fit.left) <= FUNCTION:
        return xp.zeros_like(x), Gaussian(1.0)
    rows = spaced_rows(len(x), BASE_ROWS, like=x)
    return x, Gaussian(median_distance(fit.residual(x[rows], regression(rows)), max_points=None))


def residual_matrices(
    features_z: JointFeatures,
    features_s: JointFeatures,
    local: Tensor | RowFunction,
    regression: Regression,
    blocks: list[Tensor],
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Return M/n by value and pooled, ``(windows, blocks, blocks)``, the shares left, and whether Z or S is constant.

    The share ``(windows, blocks)`` is the geometric mean of :meth:`Fit.kept` for Z and S. ``local`` is the Gram matrix
    of C, or, for blocks of several rows, its features. O(n(m² + m·m_C)) time for m features of Z and S and m_C of C.
    """
    n = len(features_z.x)
    windows = len(features_z.maps)
    many = [
        partial(features, kernel=w) for features in (features_z, features_s) for w in range(windows)
    ]
    fits = fitted(many, regression, [rows.flatten() for rows in blocks])
    constant = xp.stack(
        [(a.left == 0) | (b.left == 0) for a, b in zip(fits[:windows], fits[windows:], strict=True)]
    )
    sums: list[list[Tensor]] = [[] for _ in range(windows)]
    shares = []
    for rows in blocks:
        basis = regression(rows.flatten())
        kept = (
            xp.stack([fit.kept(basis) for fit in fits]).unflatten(-1, rows.shape).mean(-1) - 1.0 / n
        )
        shares.append((kept[:windows] * kept[windows:]).clamp_min(1e-12).sqrt())
        residuals = [
            fit.residual(of(rows.flatten()), basis) for of, fit in zip(many, fits, strict=True)
        ]
        pairs = zip(residuals[:windows], residuals[windows:], strict=True)
        if not callable(local):
            pooled = xp.stack([(r @ r.mT) * (q @ q.mT) / n for r, q in pairs])
            return pooled * local, pooled, shares[0], constant
        weights = local(rows.flatten()).unflatten(0, rows.shape)
        weights = xp.cat([xp.ones_like(weights[..., :1]), weights], -1)
        for own, (r, q) in zip(sums, pairs, strict=True):
            left = (weights.unsqueeze(-1) * r.unflatten(0, rows.shape).unsqueeze(-2)).flatten(2)
            own.append((left.mT @ q.unflatten(0, rows.shape)).unflatten(1, (weights.shape[-1], -1)))
    found = [xp.cat(own).flatten(2) for own in sums]  # blocks, 1 + features of C, products
    matrices = [
        xp.stack([part.flatten(1) @ part.flatten(1).mT / n for part in parts])
        for parts in ([own[:, 1:] for own in found], [own[:, :1] for own in found])
    ]
    return matrices[0], matrices[1], xp.cat(shares, 1), constant
