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

Above 1,024 rows features are those of 64 landmark rows, and the rows of one of 256 random blocks share a sign, so that
M is 256 × 256: O(n) time and memory.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from frhsic_core.joint.given import Features, Given, GivenKernel, given_kernel, spaced_rows
from frhsic_core.joint.independence.fits import fitted_gamma
from frhsic_core.joint.independence.permutation import (
    INDEXED_ROWS,
    Aggregate,
    checked,
    factors_of,
    largest_score,
    relative_rank_test,
    scaled,
)
from frhsic_core.kernels import Gaussian, Kernel, median_distance

# Multiples of the median bandwidth of C, and ridges, from which each regression chooses.
SCALES = (0.5, 1.0, 2.0, 4.0)
RIDGES = tuple(10.0 ** (0.5 * i) for i in range(-8, 7))
# Landmark rows of C, and of Z and S up to INDEXED_ROWS rows and above.
GIVEN_LANDMARKS = 128
DENSE_LANDMARKS = 512
LANDMARKS = 64
BLOCKS = 256
LOCAL_LANDMARKS = 8
# Factors of the bandwidths of Z and S: narrow features have conditional means that no regression can follow.
WIDE = (4.0, 2.0, 1.0, 0.5)
FUNCTION = 1e-4  # share of the variance that is left of a function of C
RowFunction = Callable[[Tensor], Tensor]
_CHUNK = 2**13  # rows whose features are held at once


class Regression:
    """Kernel ridge regression on C at one bandwidth, in its eigenbasis: all ridges at once.

    Parameters
    ----------
    features : Features
        Features Φ of C; the fit has a constant beside them.
    """

    def __init__(self, features: Features, chunks: list[Tensor]) -> None:
        self.features = features
        n = sum(map(len, chunks))
        total: Tensor | float = 0.0
        second: Tensor | float = 0.0
        for rows in chunks:
            part = features(rows)
            total = total + part.sum(0)
            second = second + part.mT @ part
        self.mean = torch.as_tensor(total) / n
        covariance = second - n * torch.outer(self.mean, self.mean)
        values, vectors = torch.linalg.eigh(covariance)
        kept = values > 1e-9 * values.amax()
        self.values = values[kept]
        self.basis = vectors[:, kept] * self.values.rsqrt()

    def __call__(self, rows: Tensor) -> Tensor:
        """Return orthonormal functions of C at these rows."""
        return (self.features(rows) - self.mean) @ self.basis

    def shrinkage(self) -> Tensor:
        """Return the factor of each function for each ridge, ``(functions, ridges)``."""
        return self.values.unsqueeze(-1) / (self.values.unsqueeze(-1) + self.values.new_tensor(RIDGES))


@dataclass(frozen=True)
class Fit:
    """The regression of one set of features on C, at the best bandwidth of C and the best ridge.

    Attributes
    ----------
    regression : Regression
        Its functions of C.
    mean, coefficients : Tensor
        The constant and the shrunken coefficients.
    shrinkage : Tensor
        The factor of each function of C.
    constant, left : Tensor
        Whether nothing but rounding is left, and the share of the variance that is left.
    """

    regression: Regression
    mean: Tensor
    coefficients: Tensor
    shrinkage: Tensor
    constant: Tensor
    left: Tensor

    def kept(self, basis: Tensor, n: int) -> Tensor:
        """Return the share of the error variance of each row that is left in its residual, ``(rows,)``.

        This is the diagonal of (I − A)² for the smoother A.
        """
        return 1.0 - 1.0 / n - basis.square() @ (2.0 * self.shrinkage - self.shrinkage.square())

    def residual(self, values: Tensor, basis: Tensor) -> Tensor:
        """Return the residuals of features ``(rows, m)`` at rows where the regression has this basis."""
        return values - self.mean - basis @ self.coefficients


def fitted(many: Sequence[RowFunction], regressions: list[Regression], chunks: list[Tensor]) -> list[Fit]:
    """Return for each set of features the fit with the smallest generalized cross-validation score, RSS/(1 − df/n)²."""
    n = sum(map(len, chunks))
    sums: list[Tensor | float] = [0.0] * len(many)
    squares: list[Tensor | float] = [0.0] * len(many)
    products: list[list[Tensor | float]] = [[0.0] * len(regressions) for _ in many]
    for rows in chunks:
        bases = [regression(rows) for regression in regressions]
        for i, features in enumerate(many):
            values = features(rows)
            sums[i] += values.sum(0)
            squares[i] += values.square().sum()
            for j, basis in enumerate(bases):  # the functions have mean zero, so the values need not be centered
                products[i][j] += basis.mT @ values
    fits = []
    for total, square, own in zip(sums, squares, products, strict=True):
        mean = torch.as_tensor(total) / n
        spread = square - n * mean.square().sum()
        found = []
        for j, regression in enumerate(regressions):
            shrinkage = regression.shrinkage()
            coefficients = torch.as_tensor(own[j])
            left = spread - coefficients.square().sum(-1) @ (2.0 * shrinkage - shrinkage.square())
            df = 1.0 + shrinkage.sum(0)
            score = torch.where(df > 0.5 * n, torch.inf, left / (1.0 - df / n).square())
            at = int(score.argmin())
            constant = left[at] <= n * torch.finfo(mean.dtype).eps * square
            factor = shrinkage[:, at]
            share = left[at] / torch.as_tensor(spread).clamp_min(1e-300)
            fit = Fit(regression, mean, coefficients * factor.unsqueeze(-1), factor, constant, share * ~constant)
            found.append((float(score[at]), j, fit))
        fits.append(min(found)[2])
    return fits


def residual_test(
    z: Tensor,
    s: Tensor,
    given: Given,
    kernel_z: Kernel | None,
    kernel_s: Kernel | None,
    *,
    method: str,
    n_signs: int,
    generator: torch.Generator,
    alpha: float,
) -> tuple[Aggregate, tuple[float, ...] | None]:
    """Return the test of Z ⟂ S | C of one sample ``(n, d)`` and ``(n, p)``, and the factors of the bandwidths."""
    n = len(z)
    c = given.rows.to(z.device)
    mixed = given.mixed
    blocks = [rows.to(z.device) for rows in _blocks(n, generator)]
    regressions = _regressions(c, mixed, [rows.flatten() for rows in blocks])
    z, kernel_z = _residual_kernel(kernel_z, z, regressions, blocks)
    s, kernel_s = _residual_kernel(kernel_s, s, regressions, blocks)
    factors = factors_of(kernel_z, kernel_s, among=WIDE) if method == "aggregated" else (1.0,)
    windows_z = [scaled(kernel_z, factor) for factor in factors]
    windows_s = [scaled(kernel_s, factor) for factor in factors]
    local = given_kernel(c, mixed=mixed)
    by_value, pooled, left, constant = residual_matrices(windows_z, windows_s, z, s, c, local, regressions, blocks)
    # Both residuals are shrunken by the fit. Their products keep the share `left` of the variance of the statistic,
    # and those of one row with itself, which the signs keep, the square of it.
    scale = left.rsqrt()
    null = [m * scale.unsqueeze(-1) * scale.unsqueeze(-2) for m in (by_value, pooled)]
    if method in ("gamma", "spectral"):
        statistic = by_value[0].sum().clamp_min(0.0)
        pvalue, threshold = _fitted(statistic, null[0][0], method, alpha)
        return checked(statistic, pvalue, threshold, constant[0], n), None
    signs = torch.randint(0, 2, (by_value.shape[-1], n_signs), generator=generator, device=generator.device)
    signs = signs.to(by_value) * 2.0 - 1.0
    if method == "permutation":
        by_value, null = by_value[:1], [null[0][:1]]
        pooled = by_value[:0]
    observed = torch.cat([by_value, pooled]).sum((-2, -1)).unsqueeze(0)
    drawn = torch.cat([((m @ signs) * signs).sum(-2) for m in null]).mT
    values = torch.cat([observed, drawn]).clamp_min(0.0)
    if method == "permutation":
        pvalue, threshold = relative_rank_test(values[0, 0], values[1:, 0], alpha)
        return checked(values[0, 0], pvalue, threshold, constant[0], n), None
    found = largest_score(values, constant.repeat(2), alpha, observed=values[0, factors.index(1.0)] / n)
    return found._replace(windows=found.windows.unflatten(-1, (2, -1)).amin(-2)), factors


def _fitted(statistic: Tensor, matrix: Tensor, method: str, alpha: float) -> tuple[Tensor, Tensor]:
    """Return p-value and critical value of the gamma fit to Σ λ χ²₁, λ the eigenvalues of the matrix."""
    mean = matrix.diagonal().sum()
    variance = 2.0 * matrix.square().sum()
    shape = mean**2 / variance
    if method == "spectral":  # the third cumulant is 8 tr M³
        shape = 4.0 * variance**3 / (8.0 * ((matrix @ matrix) * matrix).sum()).square()
    varies = variance > 0
    return fitted_gamma(statistic, mean, torch.where(varies, variance, 1.0), torch.where(varies, shape, 1.0), alpha)


def _blocks(n: int, generator: torch.Generator) -> list[Tensor]:
    """Return index tensors ``(blocks, rows)`` of the rows that share a sign: each row alone, or random blocks."""
    if n <= INDEXED_ROWS:
        return [torch.arange(n).unsqueeze(-1)]
    order = torch.randperm(n, generator=generator, device=generator.device).cpu()
    size = n // BLOCKS
    longer = (n - size * BLOCKS) * (size + 1)  # the remainder is spread over the first blocks
    parts = [order[:longer].reshape(-1, size + 1), order[longer:].reshape(-1, size)]
    step = max(1, _CHUNK // (size + 1))
    return [some for part in parts for some in part.split(step) if len(some)]


def _residual_kernel(
    kernel: Kernel | None, x: Tensor, regressions: list[Regression], blocks: list[Tensor]
) -> tuple[Tensor, Kernel]:
    """Return the rows and their kernel; for ``None`` a Gaussian at the median distance of their residuals given C.

    A function of C is returned as zero: its residuals are errors of the regression, and no evidence.
    """
    if kernel is not None:
        return x, kernel
    fit = fitted([x.__getitem__], regressions, [rows.flatten() for rows in blocks])[0]
    if float(fit.left) <= FUNCTION:
        return torch.zeros_like(x), Gaussian(1.0)
    rows = spaced_rows(len(x), DENSE_LANDMARKS).to(x.device)
    residual = fit.residual(x[rows], fit.regression(rows))
    return x, Gaussian(median_distance(residual, max_points=None))


def _regressions(c: Tensor, mixed: bool, chunks: list[Tensor]) -> list[Regression]:
    return [
        Regression(Features(given_kernel(c, scale=scale, mixed=mixed), c, GIVEN_LANDMARKS), chunks) for scale in SCALES
    ]


def residual_matrices(
    kernels_z: list[Kernel],
    kernels_s: list[Kernel],
    z: Tensor,
    s: Tensor,
    c: Tensor,
    local: GivenKernel,
    regressions: list[Regression],
    blocks: list[Tensor],
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Return M/n by value and pooled, ``(windows, blocks, blocks)``, the shares left, and whether Z or S is constant.

    The share ``(windows, blocks)`` is the geometric mean of :meth:`Fit.kept` for Z and S. O(n(m² + m·m_C)) time for m
    features of Z and S and m_C of C.
    """
    n = len(z)
    chunks = [rows.flatten() for rows in blocks]
    landmarks = DENSE_LANDMARKS if n <= INDEXED_ROWS else LANDMARKS
    many = [Features(kernel, z, landmarks) for kernel in kernels_z]
    many += [Features(kernel, s, landmarks) for kernel in kernels_s]
    fits = fitted(many, regressions, chunks)
    windows = len(kernels_z)
    constant = torch.stack([a.constant | b.constant for a, b in zip(fits[:windows], fits[windows:], strict=True)])
    features_c = Features(local, c, LOCAL_LANDMARKS)
    sums, shares = [], []
    for rows in blocks:
        bases = {id(fit.regression): fit.regression(rows.flatten()) for fit in fits}
        residuals = [
            fit.residual(features(rows.flatten()), bases[id(fit.regression)])
            for features, fit in zip(many, fits, strict=True)
        ]
        kept = torch.stack([fit.kept(bases[id(fit.regression)], n) for fit in fits]).unflatten(-1, rows.shape).mean(-1)
        shares.append((kept[:windows] * kept[windows:]).clamp_min(1e-12).sqrt())
        if n <= INDEXED_ROWS:
            pairs = zip(residuals[:windows], residuals[windows:], strict=True)
            pooled = torch.stack([(r @ r.mT) * (q @ q.mT) / n for r, q in pairs])
            return pooled * local(c), pooled, shares[0], constant
        weights = torch.cat([torch.ones_like(c[:, :1])[rows], features_c(rows.flatten()).unflatten(0, rows.shape)], -1)
        own = []
        for r, q in zip(residuals[:windows], residuals[windows:], strict=True):
            left = (weights.unsqueeze(-1) * r.unflatten(0, rows.shape).unsqueeze(-2)).flatten(2)
            own.append(left.mT @ q.unflatten(0, rows.shape))
        sums.append(torch.stack(own))
    stacked = torch.cat(sums, 1).unflatten(2, (1 + LOCAL_LANDMARKS, -1))  # windows, blocks, 1 + features of C, products
    pooled = stacked[:, :, 0].flatten(2)
    by_value = stacked[:, :, 1:].flatten(2)
    return by_value @ by_value.mT / n, pooled @ pooled.mT / n, torch.cat(shares, 1), constant
