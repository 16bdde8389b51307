r"""Gram matrices of small rank as products of thin matrices, K = ΦΦᵀ, and HSIC from them in O(n r²) time.

A smooth kernel on an interval is a polynomial up to rounding. It is interpolated at Chebyshev nodes,
k(x, y) = Σ_ab A_ab T_a(x) T_b(y), and the small matrix A is factored, so that Φ has a few tens of columns at bandwidths
near the median. The constant T_0 is left out: it only adds functions of one argument to the kernel, which centering
removes, and without it nothing cancels when the kernel is wide. Rows of a few columns, and categories, are factored by
a pivoted Cholesky decomposition, which also gives the trace that is left. :func:`factor` returns ``None`` if the rank
would be too large. A Laplacian kernel is not smooth, but a product with its Gram matrix of one column is a recursion
along sorted numbers (:mod:`frhsic_core.joint.sorted_columns`).

With the centered features φ̃, ψ̃ and weights p, and M = Σ_i p_i φ̃_i ψ̃_iᵀ, the biased form is ‖M‖²_F, and all other forms,
the gradient, and the sums of the tests are sums over rows of the same thin matrices. They are visited in blocks, so
that nothing of size n × r is stored. The result differs from the sum over all pairs by about 1e-12 of its value; the
tests ask for 1e-10.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from frhsic_core.joint.contraction import from_sums, inverse_root, smallest_own, sum_factors
from frhsic_core.joint.sorted_columns import laplacian_sum, laplacian_times
from frhsic_core.joint.streaming import each_element
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

# From this many rows thin matrices are faster than two Gram matrices.
THIN_ROWS = 768
# No factor has more columns than this, nor more than an eighth of the rows.
LARGEST_RANK = 512
_UNIT_DIAGONAL = (Gaussian, MultiScale, Laplacian, InverseMultiquadric, Categorical)
# Columns of Z up to which a pivoted Cholesky decomposition is tried.
_FEW_COLUMNS = 4
# Rows from which its first pivots are chosen, and rows that are added where too much is left.
_CANDIDATES = 2048
_WORST = 256
_ROUNDS = 8
# After this many pivots a rank below the limit can be expected if less than this share of the trace is left.
_EARLY, _EARLY_LEFT = 64, 5e-4
# Share of the trace that may be left, and of the largest eigenvalue below which an eigenvalue is rounding.
_LEFT = 1e-12
_EIGENVALUE = 1e-14
# Coefficients below this are rounding: of the largest one, and of the largest one that centering keeps.
_ROUNDING = 1e-15
_COEFFICIENT = 1e-15
_FEW_PAIRS = 12  # features whose products are listed one by one
_BLOCK = 2**13  # rows whose features are held at once


class Factor:
    """Features Φ of a sample, ``(n, d) -> (n, rank)``, with K = ΦΦᵀ up to functions of one argument.

    Parameters
    ----------
    root : Tensor
        ``(m, rank)``, from m simple functions of a row to its features.
    """

    def __init__(self, root: Tensor) -> None:
        self.root = root

    @property
    def rank(self) -> int:
        """Number of features."""
        return self.root.shape[-1]

    def functions(self, x: Tensor) -> Tensor:
        """Return the m simple functions of each row."""
        raise NotImplementedError

    def __call__(self, x: Tensor) -> Tensor:
        """Return the features of rows ``(..., d)``."""
        return self.functions(x) @ self.root


class ChebyshevFactor(Factor):
    """Polynomials of one column on an interval; ``first`` is the degree of the first of them."""

    def __init__(self, root: Tensor, middle: Tensor, half: Tensor, first: int) -> None:
        super().__init__(root)
        self.middle = middle
        self.half = half
        self.first = first

    def functions(self, x: Tensor) -> Tensor:
        """Return T_first, …, at each row."""
        return self.polynomials((x[..., 0] - self.middle) / self.half)

    def polynomials(self, t: Tensor) -> Tensor:
        """Return T_first, …, at numbers in [−1, 1]."""
        return _polynomials(t, len(self.root) + self.first)[self.first :].movedim(0, -1)

    def slope(self, x: Tensor) -> Tensor:
        """Return the derivative of the features, ``(..., rank)``."""
        t = (x[..., 0] - self.middle) / self.half
        count = len(self.root) + self.first
        # T_k' = k U_(k−1), and U_k = 2 T_k + U_(k−2).
        second = _polynomials(t, count)
        second[1:] *= 2.0
        for degree in range(2, count):
            second[degree] += second[degree - 2]
        degrees = torch.arange(max(self.first, 1), count, dtype=t.dtype, device=t.device)
        derivative = second[max(self.first, 1) - 1 : count - 1].movedim(0, -1) * degrees
        return derivative @ self.root[-len(degrees) :] / self.half


class LandmarkFactor(Factor):
    """Kernel values at a few rows, the pivots: k(x, X)·R⁻ᵀ with k(X, X) = RRᵀ."""

    def __init__(self, kernel: Kernel, landmarks: Tensor, root: Tensor) -> None:
        super().__init__(root)
        self.kernel = kernel
        self.landmarks = landmarks

    def functions(self, x: Tensor) -> Tensor:
        """Return k(x, X)."""
        return self.kernel(x, self.landmarks)


class LinearFactor(Factor):
    """The columns themselves, for the linear kernel."""

    def functions(self, x: Tensor) -> Tensor:
        """Return the columns."""
        return x


def _polynomials(t: Tensor, count: int) -> Tensor:
    """Return the Chebyshev polynomials T_0, …, T_(count−1) at numbers in [−1, 1], ``(count, ...)``."""
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
    return result


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
        return LinearFactor(torch.eye(x.shape[1], dtype=x.dtype, device=x.device)) if x.shape[1] <= most else None
    profile = _profile(kernel)
    if x.shape[1] == 1 and profile is not None:
        low, high = x.aminmax()
        half = 0.5 * (high - low)
        # About nine degrees for each bandwidth in half the range are needed: fewer than six never suffice.
        narrow = _narrowest(kernel)
        found = None
        if 6.0 * float(half) <= most * narrow:
            found = interpolated(lambda t: profile((half * (t - t.unsqueeze(-1))).square()), low, high, most=most)
        if found is not None:
            return found
    # The decomposition below needs k(x, x) = 1.
    parts = kernel.factors if isinstance(kernel, Product) else (kernel,)
    if not all(isinstance(part, _UNIT_DIAGONAL) for part in parts):
        return None
    if x.shape[1] > _FEW_COLUMNS and not isinstance(kernel, Categorical | Product):
        return None
    if x.shape[1] == 1 and not isinstance(kernel, Categorical) and len(x[: 8 * most].unique()) > most:
        return None  # the interpolation has failed already, and there are more values than a factor may have columns
    return _pivoted(kernel, x, most=most)


def _profile(kernel: Kernel) -> Callable[[Tensor], Tensor] | None:
    """Return the kernel as a smooth function of the squared distance, or ``None``."""
    bandwidth = getattr(kernel, "bandwidth", None)
    if bandwidth is None or (isinstance(bandwidth, Tensor) and bandwidth.numel() > 1):
        return None
    sigma = float(bandwidth)
    if isinstance(kernel, Gaussian):
        return lambda squared: torch.exp(squared * (-0.5 / sigma / sigma))
    if isinstance(kernel, InverseMultiquadric):
        return lambda squared: torch.rsqrt(1.0 + squared / sigma / sigma)
    if isinstance(kernel, MultiScale):
        scales = (2.0 * sigma, sigma, 0.5 * sigma, 0.25 * sigma)

        def mixture(squared: Tensor) -> Tensor:
            parts = (torch.exp(squared * (-0.5 / scale / scale)) for scale in scales)
            return sum(parts, squared.new_zeros(())) / 4.0

        return mixture
    return None


def _narrowest(kernel: Kernel) -> float:
    """Return the bandwidth of the finest scale of a kernel that has a profile."""
    return float(kernel.bandwidth) * (0.25 if isinstance(kernel, MultiScale) else 1.0)  # type: ignore[attr-defined]


def interpolated(
    gram: Callable[[Tensor], Tensor], low: Tensor, high: Tensor, *, most: int, centered: bool = True
) -> ChebyshevFactor | None:
    """Factor a smooth kernel on an interval; ``gram`` gives its matrix for nodes ``(m,)`` in units of the interval.

    The number of nodes doubles until the last coefficients are rounding. ``centered`` leaves the constant out.
    """
    middle, half = 0.5 * (low + high), 0.5 * (high - low)
    first = 1 if centered else 0
    if not bool(half > 0):
        return ChebyshevFactor(low.new_zeros(1, 0), middle, torch.ones_like(half), first)
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
        rounding = torch.maximum(_ROUNDING * size.amax(), _COEFFICIENT * size[first:].amax())
        if bool((size[-(nodes // 8) :] <= rounding).all()):
            degrees = int((size > rounding).nonzero().amax()) + 1
            if degrees > most:
                return None
            values, vectors = torch.linalg.eigh(table[first:degrees, first:degrees])
            kept = values > _EIGENVALUE * values.amax()
            return ChebyshevFactor(vectors[:, kept] * values[kept].sqrt(), middle, half, first)
        nodes *= 2
    return None


def _pivoted(kernel: Kernel, x: Tensor, *, most: int) -> LandmarkFactor | None:
    """Factor a kernel with k(x, x) = 1 by a pivoted Cholesky decomposition.

    Pivots come from a part of the rows. All rows are then visited in blocks; where too much is left, the worst rows
    become candidates as well.
    """
    n = len(x)
    chosen = torch.linspace(0, n - 1, min(n, _CANDIDATES), dtype=torch.float64).round().long().to(x.device)
    candidates = x[chosen]
    for _ in range(_ROUNDS):
        pivots = _pivots(kernel, candidates, most)
        if pivots is None:
            return None
        landmarks = candidates[pivots]
        core, info = torch.linalg.cholesky_ex(kernel(landmarks))
        if int(info):
            return None
        eye = torch.eye(len(landmarks), dtype=x.dtype, device=x.device)
        found = LandmarkFactor(kernel, landmarks, torch.linalg.solve_triangular(core, eye, upper=False).mT)
        left = torch.cat([1.0 - found(part).square().sum(-1) for part in x.split(_BLOCK)])
        if float(left.clamp_min(0.0).mean()) <= 2.0 * _LEFT:
            return found
        worst = left.topk(min(n, _WORST)).indices
        candidates = torch.cat([landmarks, x[worst]])
    return None


def _pivots(kernel: Kernel, x: Tensor, most: int) -> Tensor | None:
    """Return the rows whose kernel functions span those of all rows, or ``None`` if they are more than ``most``."""
    left = x.new_ones(len(x))
    columns = x.new_zeros(most, len(x))
    pivots: list[int] = []
    while float(left.mean()) > _LEFT:
        if len(pivots) == most or (len(pivots) == _EARLY and float(left.mean()) > _EARLY_LEFT):
            return None
        pivot = int(left.argmax())
        known = columns[: len(pivots)]
        column = kernel(x, x[pivot : pivot + 1])[:, 0] - known.mT @ known[:, pivot]
        column = column / left[pivot].sqrt()
        columns[len(pivots)] = column
        left = (left - column.square()).clamp_min(0.0)
        left[pivot] = 0.0
        pivots.append(pivot)
    return torch.tensor(pivots, device=x.device)


# Sums over rows of two thin matrices ---------------------------------------------------------------------------------


@dataclass(frozen=True)
class ThinPair:
    """The centered features of Z and S with row weights, visited in blocks.

    Attributes
    ----------
    z, s : Tensor
        ``(n, d)`` and ``(n, p)``, float64.
    factor_z, factor_s : Factor
        Their features.
    weights : Tensor or None
        ``(n,)``; ``None`` means one for each row.
    total : Tensor
        Sum of the weights.
    mean_z, mean_s : Tensor
        Weighted means of the functions that the features are made of.
    """

    z: Tensor
    s: Tensor
    factor_z: Factor
    factor_s: Factor
    weights: Tensor | None
    total: Tensor
    mean_z: Tensor
    mean_s: Tensor

    @classmethod
    def of(cls, z: Tensor, s: Tensor, factor_z: Factor, factor_s: Factor, weights: Tensor | None = None) -> ThinPair:
        """Find the means in one pass."""
        means = []
        total = z.new_tensor(float(len(z))) if weights is None else weights.sum()
        for x, features in ((z, factor_z), (s, factor_s)):
            sums = x.new_zeros(features.root.shape[0])
            for start in range(0, len(x), _BLOCK):
                part = slice(start, start + _BLOCK)
                functions = features.functions(x[part])
                sums += functions.sum(0) if weights is None else weights[part] @ functions
            means.append(sums / total)
        return cls(z, s, factor_z, factor_s, weights, total, *means)

    @classmethod
    def uncentered(cls, z: Tensor, s: Tensor, factor_z: Factor, factor_s: Factor) -> ThinPair:
        """Take the features as they are."""
        zeros = [z.new_zeros(features.root.shape[0]) for features in (factor_z, factor_s)]
        return cls(z, s, factor_z, factor_s, None, z.new_tensor(float(len(z))), *zeros)

    def blocks(self) -> Iterator[tuple[slice, Tensor, Tensor, Tensor | None]]:
        """Yield rows, their centered functions of Z and of S, and their weights as a column."""
        for start in range(0, len(self.z), _BLOCK):
            rows = slice(start, start + _BLOCK)
            weights = None if self.weights is None else self.weights[rows].unsqueeze(-1)
            own = self.factor_z.functions(self.z[rows]) - self.mean_z
            yield rows, own, self.factor_s.functions(self.s[rows]) - self.mean_s, weights

    def features(self) -> Iterator[tuple[slice, Tensor, Tensor, Tensor | None]]:
        """Yield the same with the centered features in place of the functions."""
        for rows, own, other, weights in self.blocks():
            yield rows, own @ self.factor_z.root, other @ self.factor_s.root, weights

    def products(self, *, own: bool = False) -> tuple[Tensor, Tensor, Tensor]:
        """Return Σ w φ̃ψ̃ᵀ, and with ``own`` Σ w φ̃φ̃ᵀ and Σ w ψ̃ψ̃ᵀ."""
        # Sums of polynomials first, and their root once: fewer operations than sums of features.
        exact = isinstance(self.factor_z, LandmarkFactor) or isinstance(self.factor_s, LandmarkFactor)
        root_z, root_s = self.factor_z.root, self.factor_s.root
        widths = (root_z.shape[int(exact)], root_s.shape[int(exact)])
        cross = self.z.new_zeros(widths)
        own_z, own_s = (self.z.new_zeros(width, width) for width in widths)
        for _, phi, psi, weights in self.features() if exact else self.blocks():
            weighted = phi if weights is None else phi * weights
            cross.addmm_(weighted.mT, psi)
            if own:
                own_z.addmm_(weighted.mT, phi)
                own_s.addmm_(psi.mT, psi if weights is None else psi * weights)
        if exact:
            return cross, own_z, own_s
        return root_z.mT @ cross @ root_s, root_z.mT @ own_z @ root_z, root_s.mT @ own_s @ root_s


class PairsFactor(Factor):
    """Products of all pairs of a few centered features, for the square of a kernel."""

    def __init__(self, features: Factor, mean: Tensor) -> None:
        row, column = torch.triu_indices(features.rank, features.rank, device=mean.device)
        super().__init__(torch.diag(torch.where(row == column, 1.0, 2.0).to(mean).sqrt()))
        self.features = features
        self.mean = mean
        self.places = row, column

    def functions(self, x: Tensor) -> Tensor:
        """Return the products of the centered features of each row."""
        centered = (self.features.functions(x) - self.mean) @ self.features.root
        return centered[..., self.places[0]] * centered[..., self.places[1]]


def squared_factor(pair: ThinPair, side: str) -> Factor | None:
    """Factor K̃ ∘ K̃, the squares of the entries of a centered Gram matrix, from the features of K̃."""
    features, mean, x = (pair.factor_z, pair.mean_z, pair.z) if side == "z" else (pair.factor_s, pair.mean_s, pair.s)
    if features.rank <= _FEW_PAIRS:
        return PairsFactor(features, mean)
    if not isinstance(features, ChebyshevFactor):
        return None

    def gram(t: Tensor) -> Tensor:
        centered = (features.polynomials(t) - mean) @ features.root
        return (centered @ centered.mT).square()

    return interpolated(gram, x.amin(), x.amax(), most=2 * LARGEST_RANK, centered=False)


class _Thin(torch.autograd.Function):
    """HSIC of one pair of samples from its factors; the backward pass computes the features again.

    The unbiased form does not change when functions of one argument are added to the kernel, so K may be Φ̃Φ̃ᵀ, whose
    rows sum to zero: without its diagonal the sums of rows are −|φ̃_i|².
    """

    @staticmethod
    def forward(
        ctx: Any, z: Tensor, s: Tensor, factors: tuple[Factor, Factor], weights: Tensor | None, form: str
    ) -> Tensor:
        pair = ThinPair.of(z.double(), s.double(), *factors, weights)
        cross, own_z, own_s = pair.products(own=form == "normalized")
        ctx.pair, ctx.form, ctx.cross, ctx.own = pair, form, cross, (own_z, own_s)
        if form == "unbiased":
            parts = [(phi.square().sum(-1), psi.square().sum(-1)) for _, phi, psi, _ in pair.features()]
            d, e = (torch.cat(part) for part in zip(*parts, strict=True))
            w = torch.ones_like(d) if weights is None else weights
            ctx.diagonals = d, e, w
            return from_sums(cross.square().sum() - w @ (d * e), -d, -e, w, estimator=form).to(z.dtype)
        value = (cross / pair.total).square().sum()
        if form == "normalized":
            size_z, size_s = ((own / pair.total).square().sum() for own in (own_z, own_s))
            ctx.root = inverse_root(size_z, size_s, smallest_own(value, rows=1))
            value = value * ctx.root
        return value.to(z.dtype)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        pair, form, total = ctx.pair, ctx.form, ctx.pair.total
        gradients = [torch.empty_like(x) if ctx.needs_input_grad[i] else None for i, x in enumerate((pair.z, pair.s))]
        share, both, scale = sum_factors(total, "unbiased" if form == "unbiased" else "biased")
        means = []
        if form == "unbiased":  # Σ_i w_i e_i φ̃_i, and Σ_i w_i d_i ψ̃_i
            d, e, w = ctx.diagonals
            parts = [((w * e)[rows] @ phi, (w * d)[rows] @ psi) for rows, phi, psi, _ in pair.features()]
            means = [torch.stack(part).sum(0) / total for part in zip(*parts, strict=True)]
        for rows, phi, psi, weights in pair.features():
            for i, (x, features, own, other) in enumerate(
                ((pair.z, pair.factor_z, phi, psi), (pair.s, pair.factor_s, psi, phi))
            ):
                gradient = gradients[i]
                if gradient is None:
                    continue
                direction = other @ (ctx.cross.mT if i == 0 else ctx.cross)
                if form == "normalized":
                    ratio = ctx.cross.square().sum() / ctx.own[i].square().sum().clamp_min(1e-300)
                    direction = ctx.root * (direction - ratio * (own @ ctx.own[i]))
                elif form == "unbiased":
                    diagonal = other.square().sum(-1, keepdim=True)
                    sums = w @ (e if i == 0 else d)
                    direction = direction - (1.0 + 2.0 * share) * (diagonal * own - means[i]) + both * sums * own
                slope = 2.0 * scale * (features.slope(x[rows]) * direction).sum(-1, keepdim=True)
                gradient[rows] = slope if weights is None else slope * weights
        typed = [None if found is None else found * grad.double() for found in gradients]
        return (*typed, None, None, None)


def thin_hsic(
    z: Tensor,
    s: Tensor,
    *,
    kernel_z: Kernel,
    kernel_s: Kernel,
    estimator: str = "biased",
    row_weights: Tensor | None = None,
    normalized: bool = False,
) -> Tensor | None:
    """Return HSIC in O(n r²) time, or ``None`` if a rank is too large; batch elements are taken one after another.

    The result is differentiable in samples of one column.

    Parameters
    ----------
    z, s, kernel_z, kernel_s, estimator, row_weights, normalized
        As in :func:`frhsic_core.joint.contraction.dependence`; the normalized form is biased.

    Examples
    --------
    >>> x = torch.linspace(0, 1, 2000, dtype=torch.float64)[:, None]
    >>> kernel = Gaussian(0.3)
    >>> thin = thin_hsic(x, x.sin(), kernel_z=kernel, kernel_s=kernel)
    >>> from frhsic_core.joint.contraction import dependence
    >>> bool((thin / dependence(x, x.sin(), kernel_z=kernel, kernel_s=kernel) - 1).abs() < 1e-12)
    True
    """
    form = "normalized" if normalized else estimator

    def one(a: Tensor, b: Tensor, kernel_a: Kernel, kernel_b: Kernel, weights: Tensor | None) -> Tensor | None:
        weights = None if weights is None else weights.double()
        factors = thin_factors(a, b, kernel_a, kernel_b)
        if factors is None:
            return _laplacian_hsic(a, b, kernel_a, kernel_b, weights, form)
        return _Thin.apply(a, b, factors, weights, form)

    return each_element(one, z, s, kernel_z, kernel_s, row_weights) if z.shape[-2] >= THIN_ROWS else None


def _laplacian_hsic(
    z: Tensor, s: Tensor, kernel_z: Kernel, kernel_s: Kernel, weights: Tensor | None, form: str
) -> Tensor | None:
    """Return HSIC of two columns where one kernel is Laplacian and the other is too, or has small rank; no gradient.

    A product with a Laplacian Gram matrix takes O(n log n) time. ``None`` if this does not serve.
    """
    if not isinstance(kernel_z, Laplacian):
        z, s, kernel_z, kernel_s = s, z, kernel_s, kernel_z
    gradient = torch.is_grad_enabled() and (z.requires_grad or s.requires_grad)
    if not isinstance(kernel_z, Laplacian) or gradient or z.shape[1] > 1:
        return None
    dtype = z.dtype
    order = z[:, 0].argsort()
    x, y = z[order, 0].double(), s[order].double()
    n = len(x)
    p = x.new_full((n,), 1.0 if form == "unbiased" else 1.0 / n) if weights is None else weights[order]
    sigma = float(kernel_z.bandwidth)
    rows_k = laplacian_times(x, p, sigma)
    if isinstance(kernel_s, Laplacian) and y.shape[1] == 1:
        tau = float(kernel_s.bandwidth)
        sorted_y, place = y[:, 0].sort()
        rows_l = torch.empty_like(p).index_copy_(0, place, laplacian_times(sorted_y, p[place], tau))
        product = laplacian_sum(x, y[:, 0], p, sigma, tau)
        diagonal = torch.ones_like(p)
        own_l = laplacian_times(sorted_y, p[place], 0.5 * tau) @ p[place]
    else:
        features = factor(kernel_s, y)
        if features is None:
            return None
        psi = features(y)
        psi = psi - (p @ psi) / p.sum()
        product = sum((part * laplacian_times(x, part, sigma)).sum() for part in (psi.mT * p).split(8))
        rows_l = torch.zeros_like(p)  # the weighted features sum to zero
        diagonal = psi.square().sum(-1)
        own_l = ((psi.mT * p) @ psi).square().sum()
    if form == "unbiased":
        hollow = product - p @ diagonal, rows_k - 1.0, rows_l - diagonal
        return from_sums(*hollow, p, estimator=form).to(dtype)
    value = from_sums(product, rows_k, rows_l, p)
    if form == "normalized":  # the square of a Laplacian kernel has half the bandwidth
        own_k = from_sums(laplacian_times(x, p, 0.5 * sigma) @ p, rows_k, rows_k, p)
        value = value * inverse_root(own_k, from_sums(own_l, rows_l, rows_l, p), smallest_own(value, rows=1))
    return value.to(dtype)


def thin_factors(z: Tensor, s: Tensor, kernel_z: Kernel, kernel_s: Kernel) -> tuple[Factor, Factor] | None:
    """Return the factors of both samples, or ``None`` if thin matrices do not serve."""
    # On a GPU fused kernels serve several columns. Tensors without numbers, which count operations, have no rank.
    if len(z) < THIN_ROWS or z.is_meta or (z.is_cuda and max(z.shape[1], s.shape[1]) > 1):
        return None
    found = []
    # S has few columns, so that its factor says "no" first.
    for x, kernel in ((s, kernel_s), (z, kernel_z)):
        bandwidth = getattr(kernel, "bandwidth", None)
        if isinstance(bandwidth, Tensor) and bandwidth.requires_grad:
            return None
        features = factor(kernel, x.detach().double())
        needs_gradient = torch.is_grad_enabled() and x.requires_grad
        if features is None or (needs_gradient and not isinstance(features, ChebyshevFactor)):
            return None
        found.append(features)
    return found[1], found[0]
