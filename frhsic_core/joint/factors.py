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

A Laplacian kernel and a distance are not smooth, but sums over all pairs of rows of two columns take O(n log² n) time.
The rows are sorted by x and halved again and again. For a row i of an upper half the sum over the rows j of the lower
half is a sum over sorted y, because x_i > x_j is known: of |y_i − y_j| times a linear function (Huo and Székely, 2016),
or of exp(−|y_i − y_j|/τ), which a recursion along y adds up. All results are exact up to rounding.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial, reduce
from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable
from torch.nn.functional import pad

from frhsic_core._arrays import recomputed, spaced_rows
from frhsic_core.joint.contraction import from_sums, sum_factors
from frhsic_core.kernels import (
    Categorical,
    Distance,
    Gaussian,
    InverseMultiquadric,
    Kernel,
    Laplacian,
    Linear,
    MultiScale,
    Product,
)

# From this many rows thin matrices are faster than two Gram matrices, and so are sorted columns for distances.
THIN_ROWS = 768
SORTED_ROWS = 256
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
_DIRECT = 32  # rows of the smallest parts of a sorted column, whose pairs are compared directly


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
        sums = torch.stack([w @ self.functions(rows) for w, rows in parts])
        return replace(self, mean=sums.sum(0) / weights.sum())


class _Chebyshev(torch.autograd.Function):
    """The Chebyshev polynomials T_0, …, T_(count−1) at numbers in [−1, 1], ``(...) -> (count, ...)``."""

    @staticmethod
    def forward(ctx: Any, t: Tensor, count: int) -> Tensor:
        result = t.new_empty(count, *t.shape)
        result[0] = 1.0
        if count > 1:
            result[1] = t
        known = 2
        while known < count:  # T_(k+j) = 2 T_k T_j − T_(k−j) doubles the known ones
            k = known - 1
            more = min(k, count - known)
            torch.mul(result[1 : more + 1], 2.0 * result[k], out=result[known : known + more])
            result[known : known + more] -= result[k - more : k].flip(0)
            known += more
        ctx.save_for_backward(result)
        return result

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None]:
        # T_k' = k U_(k−1), and U_k = 2 T_k + U_(k−2).
        second = ctx.saved_tensors[0].clone()
        second[1:] *= 2.0
        for degree in range(2, len(second)):
            second[degree] += second[degree - 2]
        degrees = torch.arange(1, len(second), dtype=grad.dtype, device=grad.device).unsqueeze(-1)
        return (degrees * second[:-1] * grad[1:]).sum(0), None


def _polynomials(t: Tensor, first: int, count: int) -> Tensor:
    """Return ``count`` polynomials from T_first on at numbers ``(n,)`` in [−1, 1], ``(n, count)``."""
    return _Chebyshev.apply(t, first + count)[first:].mT


def factor(kernel: Kernel, x: Tensor) -> Factor | None:
    """Factor the Gram matrix of ``(n, d)`` rows in float64 to rounding, or return ``None`` if its rank is too large.

    One column with a Gaussian, multi-scale or inverse multiquadric kernel is interpolated, in O(n + m³) time for
    polynomials of degree m. Up to four columns, categories and products of kernels take a pivoted Cholesky
    decomposition, O(n r²).

    Examples
    --------
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
        eye = torch.eye(x.shape[1], dtype=x.dtype, device=x.device)
        return Factor(eye, lambda rows: rows) if x.shape[1] <= most else None
    if x.shape[1] == 1 and isinstance(kernel, Gaussian | InverseMultiquadric | MultiScale):
        low, high = x.aminmax()
        half = 0.5 * (high - low)
        # About nine degrees for each bandwidth in half the range are needed: fewer than six never suffice.
        narrow = float(kernel.bandwidth) * (0.25 if isinstance(kernel, MultiScale) else 1.0)
        if 6.0 * float(half) <= most * narrow:
            found = interpolated(lambda t: kernel(half * t.unsqueeze(-1)), low, high, most=most)
            if found is not None:
                return found
    # The decomposition below needs k(x, x) = 1.
    parts = kernel.factors if isinstance(kernel, Product) else (kernel,)
    if not all(isinstance(part, _UNIT_DIAGONAL) for part in parts):
        return None
    if x.shape[1] > FEW_COLUMNS and not isinstance(kernel, Categorical | Product):
        return None
    if (
        x.shape[1] == 1
        and not isinstance(kernel, Categorical)
        and len(x[: 8 * most].unique()) > most
    ):
        return None  # the interpolation has failed already, and there are more values than a factor may have columns
    return _pivoted(kernel, x, most=most)


def interpolated(
    gram: Callable[[Tensor], Tensor], low: Tensor, high: Tensor, *, most: int, centered: bool = True
) -> Factor | None:
    """Factor a smooth kernel on an interval; ``gram`` gives its matrix for nodes ``(m,)`` in units of the interval.

    The number of nodes doubles until the last coefficients are rounding. ``centered`` leaves the constant out.
    """
    middle, half = 0.5 * (low + high), 0.5 * (high - low)
    first = 1 if centered else 0
    if not bool(half > 0):
        return Factor(
            low.new_zeros(1, 0), lambda x: 0.0 * x
        )  # keeps the graph: a collapsed Z has a gradient

    def functions(count: int, x: Tensor) -> Tensor:
        return _polynomials((x[:, 0] - middle) / half, first, count)

    nodes = 16
    while nodes <= 2 * most:
        # T_k at the nodes is the cosine of whole multiples of π/2m, which are reduced before they are rounded.
        multiple = torch.outer(torch.arange(nodes), 2 * torch.arange(nodes) + 1) % (4 * nodes)
        transform = torch.cos(multiple.to(low) * (0.5 * math.pi / nodes))
        table = gram(transform[1])
        transform = transform * (2.0 / nodes)
        transform[0] *= 0.5
        table = transform @ table @ transform.mT
        size = table.abs().amax(-1)
        rounding = _ROUNDING * size.amax()
        if bool((size[-(nodes // 8) :] <= rounding).all()):
            degrees = int((size > rounding).nonzero().amax()) + 1
            if degrees > most:
                return None
            values, vectors = torch.linalg.eigh(table[first:degrees, first:degrees])
            kept = values > _EIGENVALUE * values[-1:]  # the largest, if there is any
            return Factor(
                vectors[:, kept] * values[kept].sqrt(), partial(functions, degrees - first)
            )
        nodes *= 2
    return None


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
    >>> pivoted_cholesky(torch.ones(3, 3), share=1e-9, most=2)[0]
    tensor([[1.],
            [1.],
            [1.]])
    """
    n = len(gram)
    left = gram.diagonal().clone()
    weight = torch.full_like(left, 1.0 / n) if weight is None else weight
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
    found = torch.tensor(pivots, dtype=torch.long, device=left.device)
    return columns[: len(pivots)].mT, found, remains <= share * trace


def _pivoted(kernel: Kernel, x: Tensor, *, most: int) -> Factor | None:
    """Factor a kernel with k(x, x) = 1 by a pivoted Cholesky decomposition: Φ = k(x, X)·R⁻ᵀ with k(X, X) = RRᵀ.

    The pivots X come from a part of the rows. All rows are then visited in blocks; where too much is left, the worst
    rows become candidates as well.
    """
    n = len(x)
    candidates = x[spaced_rows(n, _CANDIDATES, x.device)]
    for _ in range(_ROUNDS):
        columns, pivots, enough = pivoted_cholesky(
            kernel(candidates), share=_LEFT, most=most, early=_EARLY_LEFT
        )
        if not enough:
            return None
        landmarks = candidates[pivots]
        eye = torch.eye(len(landmarks), dtype=x.dtype, device=x.device)
        root = torch.linalg.solve_triangular(columns[pivots], eye, upper=False).mT
        found = Factor(root, partial(kernel, y=landmarks), polynomial=False)
        left = torch.cat([1.0 - found(part).square().sum(-1) for part in x.split(_BLOCK)])
        if float(left.clamp_min(0.0).mean()) <= 2.0 * _LEFT:
            return found
        worst = left.topk(min(n, _WORST)).indices
        candidates = torch.cat([landmarks, x[worst]])
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
        needs_gradient = torch.is_grad_enabled() and x.requires_grad
        if features is None or (needs_gradient and not features.polynomial):
            return None
        found.append(features)
    weights = torch.ones_like(z[:, 0].detach()) if weights is None else weights.double()
    factor_s, factor_z = (
        features.centered(x.detach(), weights) for features, x in zip(found, (s, z), strict=True)
    )
    return ThinPair(z, s, factor_z, factor_s, weights)


def squared_factor(features: Factor, x: Tensor) -> Factor | None:
    """Factor K̃ ∘ K̃, the squares of the entries of a centered Gram matrix, from the centered features of its rows."""
    mean = features.mean
    assert mean is not None
    if features.rank <= _FEW_PAIRS:  # products of all pairs of features
        row, column = torch.triu_indices(features.rank, features.rank, device=x.device)

        def pairs(rows: Tensor) -> Tensor:
            centered = features(rows)
            return centered[:, row] * centered[:, column]

        return Factor(torch.diag(torch.where(row == column, 1.0, 2.0).to(x).sqrt()), pairs)
    if not features.polynomial or x.shape[1] > 1:
        return None

    def gram(t: Tensor) -> Tensor:
        centered = (_polynomials(t, 1, len(features.root)) - mean) @ features.root
        return (centered @ centered.mT).square()

    return interpolated(gram, x.amin(), x.amax(), most=2 * LARGEST_RANK, centered=False)


# Sums over all pairs of rows of two columns --------------------------------------------------------------------------


def sums_of_distances(x: Tensor) -> Tensor:
    """Return Σ_j |x_i − x_j| for each i, from sorted numbers and their partial sums."""
    ordered, order = x.sort()
    n = len(x)
    place = torch.arange(n, dtype=x.dtype, device=x.device)
    sums = (2.0 * place - n + 1.0) * ordered + ordered.sum() - 2.0 * ordered.cumsum(0) + ordered
    return torch.empty_like(x).index_copy_(0, order, sums)


def sum_of_products(x: Tensor, y: Tensor) -> Tensor:
    """Return Σ_ij |x_i − x_j||y_i − y_j|.

    For a row of an upper half four partial sums are enough, over the rows of the lower half with smaller y.

    Examples
    --------
    >>> sum_of_products(torch.tensor([0.0, 1.0, 3.0]), torch.tensor([2.0, 1.0, 1.0])).item()
    8.0
    """

    def across(weight: Tensor, left: Tensor, right: Tensor, upper: Tensor) -> Tensor:
        lower = torch.where(upper, 0.0, weight)
        below = torch.stack([lower, lower * left, lower * right, lower * left * right]).cumsum(-1)
        one, of_x, of_y, of_both = 2.0 * below - below[..., -1:]  # smaller minus larger y
        inner = left * right * one - right * of_x - left * of_y + of_both
        return (inner * (weight * upper)).sum()

    return _over_pairs(x, y, torch.ones_like(x), torch.mul, across)


def laplacian_sum(x: Tensor, y: Tensor, weights: Tensor, sigma: float, tau: float) -> Tensor:
    """Return Σ_ij w_i w_j exp(−|x_i − x_j|/σ) exp(−|y_i − y_j|/τ), in O(n log² n) time.

    Examples
    --------
    >>> x = torch.tensor([0.0, 1.0])
    >>> bool((laplacian_sum(x, x, torch.ones(2), 1.0, 1.0) - 2 - 2 * torch.exp(torch.tensor(-2.0))).abs() < 1e-6)
    True
    """

    def across(weight: Tensor, left: Tensor, right: Tensor, upper: Tensor) -> Tensor:
        # From the largest x of the lower half, so that no exponent is positive.
        middle = torch.where(upper, -torch.inf, left).amax(-1, keepdim=True)
        size = weight * torch.exp(-(left - middle).abs() / sigma)
        found = laplacian_times(right, torch.where(upper, 0.0, size), tau)
        return (torch.where(upper, size, 0.0) * found).sum()

    return _over_pairs(x, y, weights, lambda a, b: torch.exp(-(a / sigma + b / tau)), across)


def _over_pairs(
    x: Tensor,
    y: Tensor,
    weights: Tensor,
    direct: Callable[[Tensor, Tensor], Tensor],
    across: Callable[[Tensor, Tensor, Tensor, Tensor], Tensor],
) -> Tensor:
    """Return the weighted sum over all pairs of rows of ``direct``, a function of both distances.

    ``across`` is the sum over the pairs of a lower and an upper half, for parts ``(parts, width)`` sorted by y: their
    weights, x and y, and which rows are in the upper half.
    """
    n = len(x)
    order = torch.argsort(x)
    size = _DIRECT
    while size < n:
        size *= 2
    rows = x.new_zeros(3, size)  # those that fill the last part have weight zero
    for row, values in zip(rows, (weights, x, y), strict=True):
        row[:n] = values[order]
    rows[1, n:] = rows[1, n - 1]
    total = x.new_zeros(())
    for part in rows.view(3, -1, _DIRECT).split(2**8, dim=1):
        weight, *columns = part.unbind()
        values = direct(
            *((column.unsqueeze(-1) - column.unsqueeze(-2)).abs_() for column in columns)
        )
        total += ((values @ weight.unsqueeze(-1)).squeeze(-1) * weight).sum()
    place = torch.argsort(rows[2]).unsqueeze(0)
    while place.shape[1] > _DIRECT:  # a stable split leads from one level to the next
        half = place.shape[1] // 2
        upper = (place & half) != 0
        weight, left, right = (row[place] for row in rows)
        total += 2.0 * across(weight, left, right, upper)
        place = torch.stack([place[~upper].view(-1, half), place[upper].view(-1, half)], 1).view(
            -1, half
        )
    return total


def laplacian_times(x: Tensor, v: Tensor, sigma: float) -> Tensor:
    """Return Σ_j exp(−|x_i − x_j|/σ) v_j for sorted x ``(..., n)`` and v whose last dimensions are those of x.

    The recursion h_i = exp(−(x_i − x_(i−1))/σ) h_(i−1) + v_i runs along the rows in both directions. It is computed by
    doubling: after k steps h_i holds the sum over 2^k rows.
    """
    decay = torch.exp(-x.diff(dim=-1) / sigma)
    start = torch.zeros_like(x[..., :1])
    forward = _recursion(v, torch.cat([start, decay], -1))
    backward = _recursion(v.flip(-1), torch.cat([start, decay.flip(-1)], -1)).flip(-1)
    return forward + backward - v


def _recursion(v: Tensor, decay: Tensor) -> Tensor:
    step = 1
    while step < v.shape[-1] and bool(decay.any()):
        v = v + decay * pad(v[..., :-step], (step, 0))
        decay = decay * pad(decay[..., :-step], (step, 0))
        step *= 2
    return v


# HSIC without Gram matrices ------------------------------------------------------------------------------------------


def thin_hsic(
    z: Tensor,
    s: Tensor,
    kernel_z: Kernel,
    kernel_s: Kernel,
    row_weights: Tensor | None = None,
    *,
    estimator: str = "biased",
) -> Tensor | None:
    """Return HSIC of one pair of samples in O(n r²) time and float64, or ``None`` if a rank is too large.

    The sums of φ̃ and ψ̃ are zero, so that the means may be constants of the gradient of the biased form. The unbiased
    form does not change when functions of one argument are added to the kernel, so K may be Φ̃Φ̃ᵀ: without its diagonal
    the sum of row i is φ̃_i·Σφ̃ − |φ̃_i|². Products of two sums that are zero are left out.

    The result is differentiable in samples of one column, unless the kernel is Laplacian or a distance, and never in a
    bandwidth. The parameters are those of ``joint.contraction.dependence``.

    Examples
    --------
    >>> x = torch.linspace(0, 1, 2000, dtype=torch.float64)[:, None]
    >>> kernel = Gaussian(0.3)
    >>> thin = thin_hsic(x, x.sin(), kernel, kernel)
    >>> from frhsic_core.joint.contraction import dependence
    >>> bool((thin / dependence(x, x.sin(), kernel_z=kernel, kernel_s=kernel) - 1).abs() < 1e-12)
    True
    """
    weights = None if row_weights is None else row_weights.double()
    pair = thin_pair(z, s, kernel_z, kernel_s, weights)
    if pair is None:
        return _from_sorted_columns(z, s, kernel_z, kernel_s, weights, estimator)
    total = pair.weights.sum()
    if estimator == "biased":
        return (pair.product() / total).square().sum()

    def sums(phi: Tensor, psi: Tensor, weights: Tensor) -> tuple[Tensor, ...]:
        d, e = (x.square().sum(-1, keepdim=True) for x in (phi, psi))
        own, other, weighted = (x * weights for x in (phi, psi, d))
        both = (weighted * e).sum(), weighted.sum(), (e * weights).sum()
        return own.mT @ psi, own.sum(0), (e * own).sum(0), other.sum(0), (d * other).sum(0), *both

    cross, a, with_a, b, with_b, both, d, e = pair.over_rows(sums)
    share, grand, scale = sum_factors(total, estimator)
    inner = both - a @ with_a - b @ with_b
    return (cross.square().sum() - both - 2.0 * share * inner + grand * d * e) * scale


def _from_sorted_columns(
    z: Tensor, s: Tensor, kernel_z: Kernel, kernel_s: Kernel, weights: Tensor | None, estimator: str
) -> Tensor | None:
    """Return HSIC of two columns with distances, or with one Laplacian kernel and another or one of small rank.

    Both take O(n log² n) time at most, and give no gradient. ``None`` if this does not serve.
    """
    gradient = torch.is_grad_enabled() and (z.requires_grad or s.requires_grad)
    if gradient or z.shape[1] > 1:
        return None
    if (
        isinstance(kernel_z, Distance)
        and isinstance(kernel_s, Distance)
        and s.shape[1] == 1
        and weights is None
    ):
        x, y = (column[:, 0].double() - column.double().mean() for column in (z, s))
        # A column with itself: Σ_ij (x_i − x_j)² = 2n Σ_i x_i² of the centred column.
        product = 2.0 * len(x) * x.square().sum() if s is z else sum_of_products(x, y)
        rows = sums_of_distances(x)
        other = rows if s is z else sums_of_distances(y)
        return 0.25 * from_sums(product, rows, other, torch.ones_like(x), estimator=estimator)
    if not isinstance(kernel_z, Laplacian):
        z, s, kernel_z, kernel_s = s, z, kernel_s, kernel_z
    if not isinstance(kernel_z, Laplacian) or z.shape[1] > 1 or len(z) < THIN_ROWS:
        return None
    order = z[:, 0].argsort()
    x, y = z[order, 0].double(), s[order].double()
    p = (
        torch.full_like(x, 1.0 if estimator == "unbiased" else 1.0 / len(x))
        if weights is None
        else weights[order]
    )
    sigma = float(kernel_z.bandwidth)
    rows_k = laplacian_times(x, p, sigma)
    if isinstance(kernel_s, Laplacian) and y.shape[1] == 1:
        tau = float(kernel_s.bandwidth)
        sorted_y, place = y[:, 0].sort()
        rows_l = torch.empty_like(p).index_copy_(0, place, laplacian_times(sorted_y, p[place], tau))
        product = laplacian_sum(x, y[:, 0], p, sigma, tau)
        diagonal = torch.ones_like(p)
    else:
        features = factor(kernel_s, y)
        if features is None:
            return None
        psi = features(y)
        psi = psi - (p @ psi) / p.sum()
        product = torch.stack(
            [(part * laplacian_times(x, part, sigma)).sum() for part in (psi.mT * p).split(8)]
        ).sum()
        rows_l = torch.zeros_like(p)  # the weighted features sum to zero
        diagonal = psi.square().sum(-1)
    if estimator == "unbiased":
        product, rows_k, rows_l = product - p @ diagonal, rows_k - 1.0, rows_l - diagonal
    return from_sums(product, rows_k, rows_l, p, estimator=estimator)
