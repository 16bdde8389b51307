"""Functions of a Gram matrix of Z, differentiated by hand.

Every kernel penalty here is a function of K = k(Z, Z) whose gradient G = ∂value/∂K is known in closed form. For a
radial kernel the rest of the chain is short: with W = G ∘ k'(squared distance), ∂value/∂z_i = 4 Σ_j W_ij (z_i − z_j),
one matrix product. Autograd through the same formulas keeps five n × n matrices and runs over each several times.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from frhsic_core.joint.centring import centre, contraction_weights
from frhsic_core.kernels import Distance, Gaussian, InverseMultiquadric, Kernel

__all__ = [
    "GramFunction",
    "Pull",
    "augmented",
    "centred_for",
    "centred_gaussian",
    "correlation",
    "gaussian_rows",
    "gram_term",
    "inner_product",
    "through_gram",
    "vanishing",
]

GramFunction = Callable[[Tensor], tuple[Tensor | None, Tensor]]
"""``K -> (value, G)``: value ``(...)`` and its symmetric gradient ``(..., n, n)`` in K; ``None`` stands for ⟨K, G⟩."""

_RADIAL = (Gaussian, InverseMultiquadric, Distance)


@dataclass(frozen=True)
class Pull:
    """A summand of a penalty with its gradient already known: ``value (...)`` and ``gradient`` at ``at (..., n, d)``.

    A training step hands the gradient to ``torch.autograd.grad`` beside that of the task, so that no graph is built and
    run for the summand itself; :meth:`differentiable` gives an ordinary tensor instead.
    """

    value: Tensor
    at: Tensor
    gradient: Tensor

    def times(self, factor: Tensor) -> Pull:
        """Scale by a number for each model, ``(...)``."""
        return Pull(self.value * factor, self.at, self.gradient * factor[..., None, None])

    def differentiable(self) -> Tensor:
        """Return a linear function with this gradient, moved to this value."""
        linear = (self.at * self.gradient).sum((-2, -1))
        return self.value + (linear - linear.detach())


def augmented(u: Tensor) -> tuple[Tensor, Tensor]:
    """Rows [u, |u|², −½] and [u, −½, |u|²]: their product is −|u_i − u_j|²/2, in one pass over the n × n matrix."""
    square = (u * u).sum(-1, keepdim=True)
    constant = torch.full_like(square, -0.5)
    return torch.cat([u, square, constant], dim=-1), torch.cat([u, constant, square], dim=-1)


def _radial(kind: type, left: Tensor, right: Tensor) -> Tensor:
    """Matrix of a radial kernel (or of distances) of rows augmented as above."""
    exponent = left @ right.mT
    if kind is Gaussian:
        return exponent.exp_()
    if kind is InverseMultiquadric:
        return exponent.clamp_max_(0.0).mul_(-2.0).add_(1.0).rsqrt_()
    # The expansion leaves rounding where two rows coincide; its root would be a distance with a wild direction.
    floor = -8.0 * torch.finfo(exponent.dtype).eps * left[..., -2].amax(-1)[..., None, None]
    return torch.where(exponent < floor, exponent.mul(-2.0), torch.zeros_like(exponent)).sqrt_()


def _pull(kind: type, gram: Tensor, gradient: Tensor) -> Tensor:
    """G ∘ k'(squared distance), up to the factor −1/2 (+1/2 for distances)."""
    if kind is Gaussian:
        return gradient * gram
    if kind is InverseMultiquadric:
        return gradient * gram.pow(3)
    return torch.where(gram > 0, gradient / gram.clamp_min(torch.finfo(gram.dtype).tiny), torch.zeros_like(gram))


def _value_and_gradient(
    z: Tensor, scale: Tensor | float, function: GramFunction, kind: type, factor: float
) -> tuple[Tensor, Tensor]:
    """Value ``(...)`` and gradient in z ``(..., n, d)``; they share the last matrix product."""
    u = (z - z.mean(-2, keepdim=True)).div_(scale)
    left, right = augmented(u)
    gram = _radial(kind, left, right)
    value, gradient = function(gram)
    pull = _pull(kind, gram, gradient)
    moved = pull @ left  # the last column gives minus half the row sums
    mass = moved[..., -1:]
    if value is None:
        value = mass.sum((-2, -1)) * (-2.0 * factor) if kind is Gaussian else (gram * gradient).sum((-2, -1)) * factor
    elif factor != 1.0:
        value = value * factor
    slope = (-2.0 if kind is Distance else 2.0) * factor
    return value, torch.addcmul(moved[..., : u.shape[-1]], mass, u, value=2.0).div_(scale / slope)


def gram_term(z: Tensor, kernel: Kernel, function: GramFunction, *, factor: float = 1.0) -> Pull | Tensor:
    """``factor`` times the value of ``function`` at k(Z, Z), ``(..., n, d) -> (...)``, as a summand of a penalty.

    Gaussian and inverse multiquadric kernels and the Euclidean distance (``Distance()`` stands for the distance matrix
    itself here, not for its kernel) take the written-out gradient; any other kernel goes through autograd once.
    """
    bandwidth = getattr(kernel, "bandwidth", 1.0)
    if isinstance(kernel, _RADIAL) and not (isinstance(bandwidth, Tensor) and bandwidth.requires_grad):
        scale = bandwidth[..., None, None] if isinstance(bandwidth, Tensor) else bandwidth
        with torch.no_grad():
            value, gradient = _value_and_gradient(z, scale, function, type(kernel), factor)
        return Pull(value, z, gradient)
    gram = kernel(z)
    known, gradient = function(gram.detach())
    linear = factor * (gram * gradient).sum((-2, -1))
    return linear if known is None else factor * known + (linear - linear.detach())


def through_gram(z: Tensor, kernel: Kernel, function: GramFunction, *, factor: float = 1.0) -> Tensor:
    """The same as :func:`gram_term`, as a tensor that can be differentiated.

    Examples
    --------
    >>> z = torch.tensor([[0.0], [1.0]], requires_grad=True)
    >>> through_gram(z, Gaussian(1.0), inner_product(torch.full((2, 2), 0.25))).backward()
    >>> z.grad.round(decimals=4)
    tensor([[ 0.3033],
            [-0.3033]])
    """
    term = gram_term(z, kernel, function, factor=factor)
    return term.differentiable() if isinstance(term, Pull) else term


def gaussian_rows(s: Tensor, bandwidth: Tensor) -> Tensor:
    """Rows of S ``(datasets, n, p)`` ready for :func:`centred_gaussian`, ``(2, datasets, n, p + 2)``; done once."""
    u = (s - s.mean(-2, keepdim=True)) / bandwidth[..., None, None]
    return torch.stack(augmented(u))


def centred_gaussian(left: Tensor, right: Tensor) -> Tensor:
    """HLH for the Gaussian Gram matrix L of S, in six passes over it, from some rows of :func:`gaussian_rows`."""
    gram = torch.bmm(left, right.mT).exp_()
    row = gram.mean(-1, keepdim=True)
    row = torch.sub(row, row.mean(-2, keepdim=True), alpha=0.5)
    return gram.sub_(row).sub_(row.mT)


def inner_product(weights: Tensor) -> GramFunction:
    """``K -> Σ_ij K_ij A_ij``: HSIC, distance covariance and every kernel MMD."""

    def function(gram: Tensor) -> tuple[None, Tensor]:
        return None, weights

    return function


def centred_for(gram: Tensor, *, estimator: str = "biased", row_weights: Tensor | None = None) -> Tensor:
    """A with ⟨K, A⟩ proportional to the statistic: the factor n² or n(n − 3) is left out where rows count the same."""
    if row_weights is None:
        return centre(gram, estimator=estimator)
    return contraction_weights(gram, estimator=estimator, weights=row_weights)


def vanishing(like: Tensor, *, rows: int, row_weights: Tensor | None) -> float:
    """Where ⟨K, A_K⟩ counts as zero: what rounding leaves of a constant sample, in the scale of :func:`centred_for`."""
    return 64.0 * torch.finfo(like.dtype).eps ** 2 * (rows * rows if row_weights is None else 1)


def correlation(
    weights: Tensor, own: Tensor, *, estimator: str = "biased", row_weights: Tensor | None = None
) -> GramFunction:
    """``K -> ⟨K, A⟩ / √(⟨K, A_K⟩ · own)``, the normalised form; zero, with zero gradient, where either is constant.

    ``own`` is ⟨L, A⟩, the same statistic of S with itself, and A is :func:`centred_for` of L. ⟨K, A_K⟩ is quadratic in
    K with gradient 2 A_K.
    """

    def function(gram: Tensor) -> tuple[Tensor, Tensor]:
        own_weights = centred_for(gram, estimator=estimator, row_weights=row_weights)
        own_z = (gram * own_weights).sum((-2, -1))
        smallest = vanishing(gram, rows=gram.shape[-1], row_weights=row_weights)
        alive = ((own_z > smallest) & (own > smallest)).to(gram.dtype)
        own_z = own_z.clamp_min(smallest)
        root = alive * torch.rsqrt(own_z * own.clamp_min(smallest))
        value = (gram * weights).sum((-2, -1)) * root
        slope = (weights * root[..., None, None]).addcmul_(own_weights, (value / own_z)[..., None, None], value=-1.0)
        return value, slope

    return function
