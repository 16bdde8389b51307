"""The HSIC engine: the value and the gradient of ⟨K, A⟩ and of its normalized form.

Every statistic of the joint route is a function of the Gram matrix K of the representation. Most are linear in it,
HSIC = Σ_ij K_ij A_ij, where A is the centered Gram matrix of the sensitive attribute; the normalized form also divides
by √⟨K, A_K⟩. In both cases the gradient G = ∂value/∂K is known in closed form. For a radial kernel the remaining chain
rule is short: with W = G ∘ k'(squared distance), ∂value/∂z_i = 4 Σ_j W_ij (z_i − z_j), which is one matrix product.
Autograd through the same formulas keeps five n × n matrices and passes over each of them several times.

No input is checked here and nothing waits for the device, so a training step can be captured in a CUDA graph.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

from frhsic_core.backend import finfo, is_torch, xp
from frhsic_core.kernels import (
    Gaussian,
    InverseMultiquadric,
    MultiScale,
    exponential,
    half_squared_distances,
    multi_scale_grams,
    needs_differences,
)

if TYPE_CHECKING:
    from torch import Tensor

ESTIMATORS = ("biased", "unbiased")

GramFunction = Callable[["Tensor"], tuple["Tensor", "Tensor"]]
"""``K -> (value, G)``: value ``(...)`` and its symmetric gradient ``(..., n, n)`` in K."""

Operator = Callable[["Tensor"], "Tensor"]
"""``L -> A`` with a statistic ⟨K, A⟩ of two Gram matrices; linear, symmetric and non-negative."""

Gram = Callable[["Tensor"], "Tensor"]
"""Anything that makes a symmetric matrix ``(..., n, n)`` of rows ``(..., n, d)``: a kernel, or a distance."""


# Centering -----------------------------------------------------------------------------------------------------------


def center(gram: Tensor, *, estimator: str = "biased", weights: Tensor | None = None) -> Tensor:
    """Center a Gram matrix by its row and column means, in O(n²).

    ``"biased"``: H G H with H = I − 11ᵀ/n; with ``weights`` p (summing to one) the means are weighted.
    ``"unbiased"``: the U-centered matrix of Székely and Rizzo (2014), zero on the diagonal, with sums over j ≠ i
    divided by n − 2 and the grand sum by (n − 1)(n − 2); with ``weights`` that are 0/1 (a mask) only the kept rows
    count. Both are orthogonal projections, so it is enough to center one of the two matrices in an inner product.

    Parameters
    ----------
    gram : Tensor
        Symmetric, ``(..., n, n)``.
    estimator : {"biased", "unbiased"}
        Which of the two forms.
    weights : Tensor, optional
        ``(..., n)``: probabilities for the biased form, a 0/1 mask for the unbiased one.

    Examples
    --------
    >>> import torch
    >>> center(torch.tensor([[2.0, 0.0], [0.0, 2.0]]))
    tensor([[ 1., -1.],
            [-1.,  1.]])
    """
    if estimator == "biased":
        # HGH = G − r1ᵀ − 1rᵀ with r the row means minus half the grand mean.
        column = None if weights is None else weights.unsqueeze(-1)
        row = gram.mean(-1, keepdim=True) if column is None else gram @ column
        grand = (
            row.mean(-2, keepdim=True) if column is None else (row * column).sum(-2, keepdim=True)
        )
        row = row - 0.5 * grand
        return (gram - row).sub_(row.mT)
    n = gram.shape[-1]
    eye = xp.own_entries(n, like=gram)
    hollow = gram.masked_fill(eye, 0.0)
    kept = gram.new_ones(n, 1) if weights is None else weights.to(gram.dtype).unsqueeze(-1)
    count = kept.sum(-2, keepdim=True)
    # Fewer than four kept rows define no unbiased estimate; the clamps keep the numbers finite and callers return zero.
    row = hollow @ kept / (count - 2).clamp_min(1.0)
    centered = (
        hollow - row - row.mT + (row * kept).sum(-2, keepdim=True) / (count - 1).clamp_min(1.0)
    )
    centered = centered.masked_fill(eye, 0.0)
    return centered if weights is None else centered * kept * kept.mT


def contraction_weights(
    gram: Tensor,
    *,
    estimator: str = "biased",
    row_weights: Tensor | None = None,
    operator: Operator | None = None,
) -> Tensor:
    """Return A with HSIC = :func:`unit_factor` · Σ_ij K_ij A_ij, from the Gram matrix L of the sensitive attribute.

    Biased: A = p pᵀ ∘ (centered L). Unbiased (Song et al., 2012): A = U-centered L over n(n − 3) kept rows, and zero
    where a mask keeps fewer than four. ``row_weights`` as in :func:`center`; without them A is the centered L itself.
    HSIC given a third variable (``joint.given``) has an ``operator`` of its own in place of all this.
    """
    if operator is not None:
        return operator(gram)
    centered = center(gram, estimator=estimator, weights=row_weights)
    if row_weights is None:
        return centered
    if estimator == "biased":
        return centered * row_weights.unsqueeze(-1) * row_weights.unsqueeze(-2)
    count = row_weights.to(gram.dtype).sum(-1)[..., None, None]
    enough = (count >= 4).to(gram.dtype)
    return centered * (enough / (count * (count - 3)).clamp_min(1.0))


def unit_factor(n: int, estimator: str, row_weights: Tensor | None) -> float:
    """Return what :func:`contraction_weights` leave out: 1/n² or 1/n(n − 3) where all of the n rows count the same."""
    if row_weights is not None:
        return 1.0
    return 1.0 / (n * n) if estimator == "biased" else 1.0 / (n * (n - 3))


def centered_product(rows: Tensor) -> Tensor:
    """Return HΦΦᵀH for some rows of features Φ ``(models, m, rank)``."""
    import torch

    rows = torch.sub(rows, rows.sum(-2, keepdim=True), alpha=1.0 / rows.shape[-2])
    return torch.bmm(
        rows, rows.mT.contiguous()
    )  # on a CPU a copy of the thin matrix pays for itself


def weighted_mean(values: Tensor, weights: Tensor | None) -> Tensor:
    """Return the mean over the last dimension; ``weights`` sum to one, and ``None`` stands for equal weights.

    A tensor of equal weights would do, but costs an extra pass over the values in every step.
    """
    return values.mean(-1) if weights is None else (weights * values).sum(-1)


# Functions of a Gram matrix ------------------------------------------------------------------------------------------


def inner_product(weights: Tensor) -> GramFunction:
    """Return ``K -> Σ_ij K_ij A_ij``: HSIC, distance covariance and every kernel MMD."""

    def function(gram: Tensor) -> tuple[Tensor, Tensor]:
        value = (gram * weights).sum((-2, -1))
        return value, weights.expand(
            *value.shape, *weights.shape[-2:]
        )  # several samples may share one S

    return function


def own_product(
    gram: Tensor,
    centered: Tensor,
    *,
    estimator: str = "biased",
    row_weights: Tensor | None = None,
    operator: Operator | None = None,
) -> Tensor:
    """Return ⟨K, A_K⟩ for A_K = :func:`contraction_weights` of K."""
    if row_weights is None and estimator == "biased" and operator is None:
        # Centering is a projection: ⟨K, A_K⟩ = |A_K|². Row by row: on a CPU one norm adds up all squares in a row,
        # which costs float32 three of its digits.
        return xp.vector_norm(centered, dim=-1).square().sum(-1)
    return (gram * centered).sum((-2, -1))


def smallest_own(like: Tensor, *, rows: int, row_weights: Tensor | None = None) -> float:
    """Return where ⟨K, A_K⟩ counts as zero: what rounding leaves of a constant sample, in units of that product."""
    return 64.0 * finfo(like).eps ** 2 * (rows * rows if row_weights is None else 1)


def inverse_root(own_z: Tensor, own_s: Tensor, smallest: float) -> Tensor:
    """Return 1/√(own_z · own_s), and zero where either sample is constant: no correlation is defined there."""
    varies = ((own_z > smallest) & (own_s > smallest)).to(own_z.dtype)
    return varies * (own_z.clamp_min(smallest) * own_s.clamp_min(smallest)).rsqrt()


def correlation(
    weights: Tensor,
    own: Tensor,
    *,
    estimator: str = "biased",
    row_weights: Tensor | None = None,
    operator: Operator | None = None,
) -> GramFunction:
    """Return ``K -> ⟨K, A⟩ / √(⟨K, A_K⟩ · own)``, the normalized form; zero, with zero gradient, for a constant sample.

    ``own`` is ⟨L, A⟩, the same statistic of S with itself, and A is :func:`contraction_weights` of L. ⟨K, A_K⟩ is
    quadratic in K with gradient 2 A_K.
    """
    options: dict[str, Any] = {
        "estimator": estimator,
        "row_weights": row_weights,
        "operator": operator,
    }

    def function(gram: Tensor) -> tuple[Tensor, Tensor]:
        own_weights = contraction_weights(gram, **options)
        own_z = own_product(gram, own_weights, **options)
        smallest = smallest_own(
            gram, rows=gram.shape[-1] if operator is None else 1, row_weights=row_weights
        )
        root = inverse_root(own_z, own, smallest)
        value = (gram * weights).sum((-2, -1)) * root
        share = (value / own_z.clamp_min(smallest)).neg_()
        if value.shape != gram.shape[:-2]:  # one representation against several attributes
            return value, share[..., None, None] * own_weights + root[..., None, None] * weights
        return value, own_weights.mul_(share[..., None, None]).addcmul_(
            weights, root[..., None, None]
        )

    return function


def statistic(gram: Tensor, *, normalized: bool, **options: Any) -> GramFunction:
    """Return ``K -> ⟨K, A⟩`` with A = :func:`contraction_weights` of the Gram matrix of S, or the correlation."""
    weights = contraction_weights(gram, **options)
    if not normalized:
        return inner_product(weights)
    return correlation(weights, own_product(gram, weights, **options), **options)


# From the Gram matrix to Z -------------------------------------------------------------------------------------------


def _for_each_row(values: Tensor, like: Tensor) -> Tensor:
    """Return one number for each model, ``(...)``, in a shape that multiplies Z or a score."""
    return values.view(*values.shape, *[1] * (like.ndim - values.ndim))


@dataclass(frozen=True)
class GradientTerm:
    """A term of a loss whose gradient is known: ``value (...)``, and the gradient at ``at``, Z or a score ``(..., n)``.

    A training step adds the gradient to that of the task where it arrives at ``at``, so that no graph is built and run
    for the term itself; :meth:`differentiable` gives an ordinary tensor instead. The gradient is kept as a
    ``direction``, of the shape of ``at``, and a ``coefficient``, so that scaling by λ changes one number per model.
    """

    value: Tensor
    at: Tensor
    direction: Tensor
    coefficient: Tensor | float

    @property
    def gradient(self) -> Tensor:
        """Gradient of the value in ``at``."""
        return self.direction * self.coefficient

    def times(self, factor: Tensor) -> GradientTerm:
        """Scale by one number for each model, ``(...)``."""
        coefficient = self.coefficient * _for_each_row(factor, self.direction)
        return GradientTerm(self.value * factor, self.at, self.direction, coefficient)

    def differentiable(self) -> Tensor:
        """Return the value as a tensor that autograd can differentiate once."""
        from frhsic_core.gradients import KnownGradient

        return KnownGradient.apply(self.at, self.value, self.gradient)


@dataclass
class Frame:
    """Rows ``u (..., n, d)`` made from ``at``, and how a gradient returns to ``at``; for functions of distances.

    With ``back`` the rows are scaled to a size near one, and ``back`` turns a gradient in ``u`` into one in ``at``,
    linearly. Without it ``u`` is ``at`` itself. ``u`` is part of no graph.
    """

    at: Tensor
    u: Tensor
    back: Callable[[Tensor], Tensor] | None

    @cached_property
    def exponents(self) -> Tensor:
        """−|u_i − u_j|²/2, ``(..., n, n)``; whoever overwrites them deletes them."""
        return half_squared_distances(self.u)


@dataclass(frozen=True)
class ExpandedDistance:
    """Euclidean distances from one matrix product, fast enough for a training step.

    Rows closer than 6e-8 (float32: 2e-3) times the largest norm count as equal: the expansion |x|² + |y|² − 2x·y leaves
    rounding there, and its root would be a distance with an arbitrary direction. :func:`gram_term` computes them.
    """


def _radial(kind: type, exponent: Tensor, u: Tensor) -> Tensor:
    """Return the matrix of a radial kernel with bandwidth one (or of distances) from −|u_i − u_j|²/2, in place."""
    if kind is Gaussian or kind is MultiScale:
        return exponential(exponent)
    if kind is InverseMultiquadric:
        return exponent.clamp_max_(0.0).mul_(-2.0).add_(1.0).rsqrt_()
    import torch

    largest = (u * u).sum(-1).amax(-1)[..., None, None]
    floor = -8.0 * finfo(exponent).eps * largest
    return torch.where(exponent < floor, exponent.mul(-2.0), torch.zeros_like(exponent)).sqrt_()


def _weighted_slope(kind: type, gram: Tensor, gradient: Tensor) -> Tensor:
    """Return G ∘ k'(squared distance) up to the factor −1/2 (+1/2 for distances); may overwrite the Gram matrix."""
    if kind is Gaussian:
        return gram.mul_(gradient) if gradient.shape[:-2] == gram.shape[:-2] else gram * gradient
    if kind is InverseMultiquadric:
        return gram.pow(3).mul(gradient)
    import torch

    # A tensor of zeros, not a number: a number would be copied to the device, which cannot be captured.
    return torch.where(
        gram > 0, gradient / gram.clamp_min(finfo(gram).tiny), torch.zeros_like(gram)
    )


def gram_term(
    z: Tensor | Frame,
    kernel: Gram | ExpandedDistance,
    function: GramFunction,
    *,
    factor: float = 1.0,
    careful: bool = False,
) -> GradientTerm | Tensor:
    """Return ``factor`` times ``function`` at k(Z, Z), ``(..., n, d) -> (...)``, as a term of a loss.

    Gaussian, multi-scale and inverse multiquadric kernels and :class:`ExpandedDistance` take the written-out gradient.
    Any other kernel, and one with a learned bandwidth, goes through autograd once, and with ``careful`` each one does:
    a kernel itself subtracts rows where one of them is far away. Where no gradient is needed the result is a plain
    tensor. The rows may come as a :class:`Frame`, for Gaussian and inverse multiquadric kernels.

    Examples
    --------
    >>> import torch
    >>> z = torch.tensor([[0.0], [1.0]], requires_grad=True)
    >>> gram_term(z, Gaussian(1.0), inner_product(torch.full((2, 2), 0.25))).gradient.round(decimals=4)
    tensor([[ 0.3033],
            [-0.3033]])
    """
    import torch

    from frhsic_core.gradients import KnownGradient

    bandwidth = getattr(kernel, "bandwidth", 1.0)
    learned = is_torch(bandwidth) and bandwidth.requires_grad
    expanded = isinstance(kernel, Gaussian | InverseMultiquadric | MultiScale | ExpandedDistance)
    if learned or careful or not expanded:
        assert not isinstance(z, Frame)
        assert not isinstance(kernel, ExpandedDistance)
        gram = kernel(z)
        value, gradient = function(gram.detach())
        return factor * (
            KnownGradient.apply(gram, value, gradient) if gram.requires_grad else value
        )
    frame, kind = z if isinstance(z, Frame) else Frame(z, z.detach(), None), type(kernel)
    needs_gradient = torch.is_grad_enabled() and frame.at.requires_grad
    with torch.no_grad():
        # A number becomes a tensor on the device by filling one: copying it there cannot be captured.
        sigma = (
            bandwidth.to(frame.u) if is_torch(bandwidth) else frame.u.new_full((), float(bandwidth))
        )
        scale = sigma[..., None, None]
        if frame.back is None:
            if kind is MultiScale:
                scale = 2.0 * scale  # the widest scale; the others are its powers
            u = (frame.u - frame.u.mean(-2, keepdim=True)) / scale
            precision = scale.reciprocal()  # u has the other factor
            exponent = half_squared_distances(u)
        else:
            u = frame.u
            precision = scale**-2
            exponent = frame.exponents.mul_(precision)
            del (
                frame.exponents
            )  # they are overwritten, and computed again if there is another criterion
        gram = _radial(kind, exponent, u)
        if kind is MultiScale:
            gram, derivative = multi_scale_grams(gram, (1.0, 4.0))
        value, gradient = function(gram)
        if not needs_gradient:
            return factor * value
        slope = (
            derivative * gradient if kind is MultiScale else _weighted_slope(kind, gram, gradient)
        )
        mass = slope.sum(-1)
        direction = torch.addcmul(
            slope @ u, mass.unsqueeze(-1), u, value=-1.0
        )  # Σ_j W_ij (u_j − u_i)
        if frame.back is not None:
            direction = frame.back(direction)
        sign = -2.0 if kind is ExpandedDistance else 2.0
        return GradientTerm(value * factor, frame.at, direction, precision * (sign * factor))


def output_term(
    output: Tensor,
    weights: Tensor,
    own: Tensor | None,
    *,
    row_weights: Tensor | None = None,
    factor: float = 1.0,
) -> GradientTerm:
    """Return HSIC of a score ``(..., n)`` with a linear kernel, f'Af; the normalized form divides by Var(f)·√``own``.

    ``weights`` is A, and ``own`` is ⟨L, A⟩ for the normalized form; see :func:`correlation`.
    """
    f = output.detach() - weighted_mean(output.detach(), row_weights).unsqueeze(-1)
    along = (weights @ f.unsqueeze(-1)).squeeze(-1)
    cross = (f * along).sum(-1)
    if own is None:
        return GradientTerm(cross * factor, output, along, 2.0 * factor)
    # In the units of `own`: a sum where all rows count the same, else a weighted mean.
    variance = (f * f).sum(-1) if row_weights is None else weighted_mean(f * f, row_weights)
    smallest = smallest_own(f, rows=f.shape[-1], row_weights=row_weights)
    varies = ((variance > smallest**0.5) & (own > smallest)).to(f.dtype)
    variance = variance.clamp_min(smallest**0.5)
    root = factor * varies / (variance * own.clamp_min(smallest).sqrt())
    slope = (cross / variance).unsqueeze(-1) * (f if row_weights is None else f * row_weights)
    return GradientTerm(cross * root, output, along - slope, 2.0 * root.unsqueeze(-1))


def dependence(
    z: Tensor,
    s: Tensor,
    *,
    kernel_z: Gram,
    kernel_s: Gram,
    estimator: str = "biased",
    row_weights: Tensor | None = None,
    normalized: bool = False,
    operator: Operator | None = None,
) -> Tensor:
    """Return HSIC with any two kernels, or with two distances (then it is dCov²), from whole matrices.

    Differentiable in samples and bandwidths. The gradient in S is that of the same statistic with the roles exchanged.

    Parameters
    ----------
    z, s : Tensor
        ``(..., n, d)`` and ``(..., n, p)``.
    kernel_z, kernel_s : callable
        Kernels or distances.
    estimator : {"biased", "unbiased"}
        See :func:`center`.
    row_weights : Tensor, optional
        As in :func:`center`.
    normalized : bool
        Divide by the root of the two statistics of a sample with itself; zero if either sample is constant.
    operator : callable, optional
        That of HSIC given a third variable, in place of ``estimator`` and ``row_weights``.
    """
    options: dict[str, Any] = {
        "estimator": estimator,
        "row_weights": row_weights,
        "operator": operator,
    }
    plain = not normalized and operator is None
    factor = unit_factor(z.shape[-2], estimator, row_weights) if plain else 1.0

    if not is_torch(z):
        return _of_arrays(kernel_z(z), kernel_s(s), factor, normalized, options)

    def through(x: Tensor, kernel: Gram, other: Tensor) -> Tensor:
        function = statistic(other.detach(), normalized=normalized, **options)
        careful = needs_differences(kernel, x)
        term = gram_term(x, kernel, function, factor=factor, careful=careful)
        return term.differentiable() if isinstance(term, GradientTerm) else term

    gram_s = kernel_s(s)
    value = through(z, kernel_z, gram_s)
    if not gram_s.requires_grad:
        return value
    other = through(s, kernel_s, kernel_z(z))
    return value + (other - other.detach())


def _of_arrays(
    gram_z: Tensor, gram_s: Tensor, factor: float, normalized: bool, options: dict[str, Any]
) -> Tensor:
    """Return the value alone from both Gram matrices; arrays of NumPy have no gradient."""
    weights_s = contraction_weights(gram_s, **options)
    cross = (gram_z * weights_s).sum((-2, -1))
    if not normalized:
        return factor * cross
    weights_z = contraction_weights(gram_z, **options)
    own_z = own_product(gram_z, weights_z, **options)
    own_s = own_product(gram_s, weights_s, **options)
    rows = gram_z.shape[-1] if options["operator"] is None else 1
    smallest = smallest_own(gram_z, rows=rows, row_weights=options["row_weights"])
    return cross * inverse_root(own_z, own_s, smallest)


def sum_factors(total: Tensor, estimator: str) -> tuple[Tensor, Tensor, Tensor]:
    """Return the factors of the row sums, of the grand sum and of the whole in :func:`from_sums`; ``total`` is Σ w."""
    if estimator == "biased":
        return 1.0 / total, total**-2, total**-2
    return 1.0 / (total - 2.0), 1.0 / ((total - 1.0) * (total - 2.0)), 1.0 / (total * (total - 3.0))


def from_sums(
    product: Tensor, k: Tensor, l: Tensor, weights: Tensor, *, estimator: str = "biased"
) -> Tensor:
    """Return HSIC from Σ_ij w_i w_j K_ij L_ij and the row sums k_i = Σ_j w_j K_ij and l_i, without Gram matrices.

    For the unbiased form the weights are zero or one, and the sums leave out i = j.
    """
    share, both, scale = sum_factors(weights.sum(), estimator)
    return (
        product - 2.0 * share * (weights @ (k * l)) + both * (weights @ k) * (weights @ l)
    ) * scale
