r"""Gram matrices of small rank as products of thin matrices, K = ΦΦᵀ, and HSIC from them in O(n r²) time.

A smooth kernel on an interval is a polynomial up to rounding. It is interpolated at Chebyshev nodes,
k(x, y) = Σ_ab A_ab T_a(x) T_b(y), and the small matrix A is factored, so that Φ has a few tens of columns at bandwidths
near the median. The constant T_0 is left out: it only adds functions of one argument to the kernel, which centering
removes, and without it nothing cancels when the kernel is wide. Rows of a few columns, and categories, are factored by
a pivoted Cholesky decomposition, which also gives the trace that is left. :func:`factor` returns ``None`` if the rank
would be too large.

With the centered features φ̃, ψ̃ and weights p, and M = Σ_i p_i φ̃_i ψ̃_iᵀ, the biased form is ‖M‖²_F, and all other forms,
the gradient, and the sums of the tests are sums over rows of the same thin matrices. They are visited in blocks, so
that nothing of size n × r is stored. The result differs from the sum over all pairs by about 1e-12 of its value; the
tests ask for 1e-10.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial, reduce
from typing import TYPE_CHECKING

import numpy as np

from frhsic_core._arrays import recomputed, spaced_rows
from frhsic_core.backend import gradient_wanted, xp
from frhsic_core.kernels import (
    Categorical,
    Gaussian,
    InverseMultiquadric,
    Kernel,
    Laplacian,
    Linear,
    MultiScale,
    Product,
)

if TYPE_CHECKING:
    from torch import Tensor

# From this many rows thin matrices are faster than two Gram matrices.
THIN_ROWS = 768
# No factor has more columns than this, nor more than an eighth of the rows.
LARGEST_RANK = 512
_UNIT_DIAGONAL = (Gaussian, MultiScale, Laplacian, InverseMultiquadric, Categorical)
# Columns of Z up to which a pivoted Cholesky decomposition is tried.
FEW_COLUMNS = 4
# Rows from which its first pivots are chosen, and rows that are added where too much is left.
_CANDIDATES = 2048
_WORST = 256
_ROUNDS = 8
# After this many pivots a rank below the limit can be expected if less than this share of the trace is left.
_EARLY, _EARLY_LEFT = 64, 5e-4
# Share of the trace that may be left, and of the largest eigenvalue below which an eigenvalue is rounding.
_LEFT = 1e-12
_EIGENVALUE = 1e-14
_ROUNDING = 1e-15  # coefficients below this share of the largest one are rounding
_FEW_PAIRS = 12  # features whose products are listed one by one
_BLOCK = 2**13  # rows whose features are held at once


@dataclass(frozen=True)
class Factor:
    """Features Φ of a sample, ``(n, d) -> (n, rank)``, with K = ΦΦᵀ up to functions of one argument.

    Attributes
    ----------
    root : Tensor
        ``(m, rank)``, from m simple functions of a row to its features.
    functions : callable
        The simple functions of rows, ``(n, d) -> (n, m)``.
    polynomial : bool
        Whether they are polynomials: their derivative is then that of the kernel, and sums of them lose no digits.
    mean : Tensor, optional
        ``(m,)``: what is subtracted from the functions, a constant of the gradient.
    """

    root: Tensor
    functions: Callable[[Tensor], Tensor]
    polynomial: bool = True
    mean: Tensor | None = None

    @property
    def rank(self) -> int:
        """Number of features."""
        return self.root.shape[-1]

    def __call__(self, x: Tensor, *, root: bool = True) -> Tensor:
        """Return the features of rows ``(n, d)``, or without ``root`` the functions that they are made of."""
        found = self.functions(x)
        found = found if self.mean is None else found - self.mean
        return found @ self.root if root else found

    def centered(self, x: Tensor, weights: Tensor) -> Factor:
        """Return the features minus their weighted mean over the rows of a sample."""
        parts = zip(weights.split(_BLOCK), x.split(_BLOCK), strict=True)
        sums = xp.stack([w @ self.functions(rows) for w, rows in parts])
        return replace(self, mean=sums.sum(0) / weights.sum())


def _chebyshev(t: Tensor, count: int) -> Tensor:
    """Return the Chebyshev polynomials T_0, …, T_(count−1) at numbers in [−1, 1], ``(...) -> (count, ...)``."""
    result = t.new_empty(count, *t.shape)
    result[0] = 1.0
    if count > 1:
        result[1] = t
    known = 2
    while known < count:  # T_(k+j) = 2 T_k T_j − T_(k−j) doubles the known ones
        k = known - 1
        more = min(k, count - known)
        xp.mul(result[1 : more + 1], 2.0 * result[k], out=result[known : known + more])
        result[known : known + more] -= result[k - more : k].flip(0)
        known += more
    return result


def _polynomials(t: Tensor, first: int, count: int) -> Tensor:
    """Return ``count`` polynomials from T_first on at numbers ``(n,)`` in [−1, 1], ``(n, count)``."""
    if not gradient_wanted(t):
        return _chebyshev(t, first + count)[first:].mT
    from frhsic_core.gradients import Chebyshev

    return Chebyshev.apply(t, partial(_chebyshev, count=first + count))[first:].mT


def factor(kernel: Kernel, x: Tensor) -> Factor | None:
    """Factor the Gram matrix of ``(n, d)`` rows in float64 to rounding, or return ``None`` if its rank is too large.

    One column with a Gaussian, multi-scale or inverse multiquadric kernel is interpolated, in O(n + m³) time for
    polynomials of degree m. Up to four columns, categories and products of kernels take a pivoted Cholesky
    decomposition, O(n r²).

    Examples
    --------
    >>> import torch
    >>> x = torch.linspace(0, 1, 1000, dtype=torch.float64)[:, None]
    >>> features = factor(Gaussian(0.5), x)(x)
    >>> centered = features - features.mean(0)
    >>> gram = Gaussian(0.5)(x)
    >>> error = centered @ centered.mT - (gram - gram.mean(0) - gram.mean(1, keepdim=True) + gram.mean())
    >>> features.shape[1] < 20, bool(error.abs().max() < 1e-13)
    (True, True)
    >>> factor(Gaussian(1e-4), x) is None
    True
    """
    most = min(LARGEST_RANK, len(x) // 8)
    if isinstance(kernel, Linear):
        return _columns_themselves(x, most)
    if x.shape[1] == 1 and isinstance(kernel, Gaussian | InverseMultiquadric | MultiScale):
        found = _on_interval(kernel, x, most)
        if found is not None:
            return found
    if not _has_unit_diagonal(kernel):
        return None
    if x.shape[1] > FEW_COLUMNS and not isinstance(kernel, Categorical | Product):
        return None
    if x.shape[1] == 1 and not isinstance(kernel, Categorical):
        # The interpolation has failed: only a column of few values can have a small rank.
        values = x[: 8 * most].unique()
        if len(values) > most:
            return None
    return _pivoted(kernel, x, most=most)


def _columns_themselves(x: Tensor, most: int) -> Factor | None:
    """Return the features of the linear kernel."""
    columns = x.shape[1]
    if columns > most:
        return None
    return Factor(xp.eye(columns, like=x), lambda rows: rows)


def _on_interval(
    kernel: Gaussian | InverseMultiquadric | MultiScale, x: Tensor, most: int
) -> Factor | None:
    """Interpolate a smooth kernel between the smallest and the largest number of a column."""
    low, high = x.aminmax()
    half = 0.5 * (high - low)
    narrowest = float(kernel.bandwidth)
    if isinstance(kernel, MultiScale):
        narrowest = narrowest * 0.25
    # About nine degrees for each bandwidth in half the range are needed: fewer than six never suffice.
    if 6.0 * float(half) > most * narrowest:
        return None
    return interpolated(lambda t: kernel(half * t.unsqueeze(-1)), low, high, most=most)


def _has_unit_diagonal(kernel: Kernel) -> bool:
    """Return whether k(x, x) = 1, which the pivoted decomposition needs."""
    parts = kernel.factors if isinstance(kernel, Product) else (kernel,)
    return all(isinstance(part, _UNIT_DIAGONAL) for part in parts)


def interpolated(
    gram: Callable[[Tensor], Tensor], low: Tensor, high: Tensor, *, most: int, centered: bool = True
) -> Factor | None:
    """Factor a smooth kernel on an interval; ``gram`` gives its matrix for nodes ``(m,)`` in units of the interval.

    The number of nodes doubles until the last coefficients are rounding. ``centered`` leaves the constant out.
    """
    middle = 0.5 * (low + high)
    half = 0.5 * (high - low)
    first = 1 if centered else 0
    if not bool(half > 0):
        # Zero times the rows keeps the graph: a collapsed Z has a gradient.
        return Factor(low.new_zeros(1, 0), lambda x: 0.0 * x)

    def functions(count: int, x: Tensor) -> Tensor:
        return _polynomials((x[:, 0] - middle) / half, first, count)

    nodes = 16
    while nodes <= 2 * most:
        coefficients = _chebyshev_coefficients(gram, nodes, like=low)
        size = coefficients.abs().amax(-1)
        rounding = _ROUNDING * size.amax()
        last = size[-(nodes // 8) :]
        if bool((last <= rounding).all()):
            degrees = int((size > rounding).nonzero().amax()) + 1
            if degrees > most:
                return None
            root = _root(coefficients[first:degrees, first:degrees])
            return Factor(root, partial(functions, degrees - first))
        nodes *= 2
    return None


def _chebyshev_coefficients(
    gram: Callable[[Tensor], Tensor], nodes: int, *, like: Tensor
) -> Tensor:
    """Return A with k(x, y) = Σ_ab A_ab T_a(x) T_b(y), from the matrix of the kernel at Chebyshev nodes."""
    # T_k at the nodes is the cosine of whole multiples of π/2m, which are reduced before they are rounded.
    degrees = xp.arange(nodes, like=like)
    multiple = xp.outer(degrees, 2 * degrees + 1) % (4 * nodes)
    polynomials = xp.cos(multiple.to(like) * (0.5 * math.pi / nodes))
    table = gram(polynomials[1])
    transform = polynomials * (2.0 / nodes)
    transform[0] *= 0.5
    return transform @ table @ transform.mT


def _root(matrix: Tensor) -> Tensor:
    """Return R with RRᵀ equal to a non-negative matrix, without directions that are rounding."""
    values, vectors = xp.eigh(matrix)
    largest = values[-1:]  # none of an empty matrix
    kept = values > _EIGENVALUE * largest
    return vectors[:, kept] * values[kept].sqrt()


def pivoted_cholesky(
    gram: Tensor, *, share: float, most: int, weight: Tensor | None = None, early: float = math.inf
) -> tuple[Tensor, Tensor, bool]:
    """Return columns G with GGᵀ = K up to ``share`` of the (weighted) trace, their pivots, and whether they suffice.

    The pivots do not depend on the order of the rows.

    Parameters
    ----------
    gram : Tensor
        K, ``(n, n)``.
    share, most : float and int
        Share of the trace that may be left, and the largest number of columns.
    weight : Tensor, optional
        ``(n,)``, weights in the trace that sum to one.
    early : float
        Stop if more than this share of the trace is left after 64 columns.

    Examples
    --------
    >>> import torch
    >>> pivoted_cholesky(torch.ones(3, 3), share=1e-9, most=2)[0]
    tensor([[1.],
            [1.],
            [1.]])
    """
    n = len(gram)
    left = gram.diagonal().clone()
    weight = xp.full_like(left, 1.0 / n) if weight is None else weight
    # Most kernels are one on the diagonal: what decides between equal entries must not be the order of the rows.
    tilt = 1.0 + 1e-6 * gram @ weight / left.amax().clamp_min(1e-300)
    trace = remains = float(weight @ left)
    columns = left.new_empty(min(most, n), n)
    pivots: list[int] = []
    while remains > share * trace and len(pivots) < len(columns):
        if len(pivots) == _EARLY and remains > early * trace:
            break
        pivot = int((left * tilt).argmax())
        known = columns[: len(pivots)]
        columns[len(pivots)] = (gram[pivot] - known[:, pivot] @ known) / left[pivot].sqrt()
        left = (left - columns[len(pivots)].square()).clamp_min_(0.0)
        left[pivot] = 0.0
        pivots.append(pivot)
        remains = float(weight @ left)
    found = xp.as_tensor(np.array(pivots, dtype=np.int64), like=left)
    return columns[: len(pivots)].mT, found, remains <= share * trace


def _pivoted(kernel: Kernel, x: Tensor, *, most: int) -> Factor | None:
    """Factor a kernel with k(x, x) = 1 by a pivoted Cholesky decomposition: Φ = k(x, X)·R⁻ᵀ with k(X, X) = RRᵀ.

    The pivots X come from a part of the rows. All rows are then visited in blocks; where too much is left, the worst
    rows become candidates as well.
    """
    n = len(x)
    candidates = x[spaced_rows(n, _CANDIDATES, like=x)]
    for _ in range(_ROUNDS):
        columns, pivots, enough = pivoted_cholesky(
            kernel(candidates), share=_LEFT, most=most, early=_EARLY_LEFT
        )
        if not enough:
            return None
        landmarks = candidates[pivots]
        eye = xp.eye(len(landmarks), like=x)
        root = xp.solve_triangular(columns[pivots], eye, upper=False).mT
        found = Factor(root, partial(kernel, y=landmarks), polynomial=False)
        left = xp.cat([1.0 - found(part).square().sum(-1) for part in x.split(_BLOCK)])
        if float(left.clamp_min(0.0).mean()) <= 2.0 * _LEFT:
            return found
        worst = left.topk(min(n, _WORST)).indices
        candidates = xp.cat([landmarks, x[worst]])
    return None


# Sums over rows of two thin matrices ---------------------------------------------------------------------------------


@dataclass(frozen=True)
class ThinPair:
    """Two samples in float64, their features, and the weights ``(n,)`` of their rows, visited in blocks of rows."""

    z: Tensor
    s: Tensor
    factor_z: Factor
    factor_s: Factor
    weights: Tensor

    def over_rows(
        self, function: Callable[..., tuple[Tensor, ...]], *, root: bool = True
    ) -> tuple[Tensor, ...]:
        """Return the sums over blocks of rows of ``function`` of the features of Z and S and the weights, a column."""

        def part(weights: Tensor, z: Tensor, s: Tensor) -> tuple[Tensor, ...]:
            return function(self.factor_z(z, root=root), self.factor_s(s, root=root), weights)

        blocks = (x.split(_BLOCK) for x in (self.weights.unsqueeze(-1), self.z, self.s))
        parts = (
            recomputed(partial(part, weights), z, s) for weights, z, s in zip(*blocks, strict=True)
        )
        return reduce(
            lambda total, more: tuple(a + b for a, b in zip(total, more, strict=True)), parts
        )

    def product(self) -> Tensor:
        """Return Σ w φψᵀ."""
        # Sums of polynomials first, and their root once: fewer operations than sums of features.
        later = self.factor_z.polynomial and self.factor_s.polynomial
        (found,) = self.over_rows(lambda phi, psi, w: ((phi * w).mT @ psi,), root=not later)
        return self.factor_z.root.mT @ found @ self.factor_s.root if later else found


def thin_pair(
    z: Tensor, s: Tensor, kernel_z: Kernel, kernel_s: Kernel, weights: Tensor | None = None
) -> ThinPair | None:
    """Return two samples with their centered features, or ``None`` if thin matrices do not serve."""
    # On a GPU fused kernels serve several columns. Tensors without numbers, which count operations, have no rank.
    if len(z) < THIN_ROWS or z.is_meta or (z.is_cuda and max(z.shape[1], s.shape[1]) > 1):
        return None
    z, s = z.double(), s.double()
    found = []
    # S has few columns, so that its factor says "no" first.
    for x, kernel in ((s, kernel_s), (z, kernel_z)):
        features = factor(kernel, x.detach())
        if features is None or (gradient_wanted(x) and not features.polynomial):
            return None
        found.append(features)
    weights = xp.ones_like(z[:, 0].detach()) if weights is None else weights.double()
    factor_s, factor_z = (
        features.centered(x.detach(), weights) for features, x in zip(found, (s, z), strict=True)
    )
    return ThinPair(z, s, factor_z, factor_s, weights)


def squared_factor(features: Factor, x: Tensor) -> Factor | None:
    """Factor K̃ ∘ K̃, the squares of the entries of a centered Gram matrix, from the centered features of its rows."""
    mean = features.mean
    assert mean is not None
    if features.rank <= _FEW_PAIRS:  # products of all pairs of features
        row, column = xp.triu_indices(features.rank, like=x)

        def pairs(rows: Tensor) -> Tensor:
            centered = features(rows)
            return centered[:, row] * centered[:, column]

        return Factor(xp.diag(xp.where(row == column, 1.0, 2.0).to(x).sqrt()), pairs)
    if not features.polynomial or x.shape[1] > 1:
        return None

    def gram(t: Tensor) -> Tensor:
        centered = (_polynomials(t, 1, len(features.root)) - mean) @ features.root
        return (centered @ centered.mT).square()

    return interpolated(gram, x.amin(), x.amax(), most=2 * LARGEST_RANK, centered=False)
