"""Functions of a Gram matrix of Z, differentiated by hand.

Every kernel penalty here is a function of K = k(Z, Z) whose gradient G = ∂value/∂K is known in closed form. For a
radial kernel the rest of the chain is two lines: with W = G ∘ k'(squared distance),
∂value/∂z_i = 4 Σ_j W_ij (z_i − z_j), one matrix product. Autograd through the same formulas keeps five n × n matrices
and runs over each of them several times.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from frhsic_core.joint.centring import contraction_weights
from frhsic_core.kernels import Distance, Gaussian, InverseMultiquadric, Kernel

__all__ = ["GramFunction", "correlation", "inner_product", "through_gram"]

GramFunction = Callable[[Tensor], tuple[Tensor, Tensor]]
"""``K -> (value, G)``: value ``(...)`` and its symmetric gradient ``(..., n, n)`` in K."""

_RADIAL = (Gaussian, InverseMultiquadric, Distance)


def _radial(kind: type, inner: Tensor) -> Tensor:
    """Turn ``u @ u.mT`` into the matrix of a radial kernel, in place; distances keep their sign (no minus)."""
    half = 0.5 * inner.diagonal(dim1=-2, dim2=-1)
    minus_half_squared = inner.sub_(half.unsqueeze(-1)).sub_(half.unsqueeze(-2)).clamp_max_(0.0)
    if kind is Gaussian:
        return minus_half_squared.exp_()
    if kind is InverseMultiquadric:
        return minus_half_squared.mul_(-2.0).add_(1.0).rsqrt_()
    # The expansion leaves rounding where two rows coincide; its root would be a distance with a wild direction.
    floor = torch.finfo(inner.dtype).eps * 8 * half.amax(-1)[..., None, None]
    return torch.where(minus_half_squared < -floor, minus_half_squared.mul(-2.0), torch.zeros_like(inner)).sqrt_()


def _slope(kind: type, gram: Tensor) -> Tensor:
    """Derivative of the kernel in the squared distance, times −2 (times +2 for distances)."""
    if kind is Gaussian:
        return gram
    if kind is InverseMultiquadric:
        return gram * gram * gram
    return torch.where(gram > 0, 1.0 / gram.clamp_min(torch.finfo(gram.dtype).tiny), torch.zeros_like(gram))


class _Radial(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, u: Tensor, function: GramFunction, kind: type) -> Tensor:
        gram = _radial(kind, u @ u.mT)
        value, gradient = function(gram)
        pull = gradient.mul(_slope(kind, gram))
        ctx.save_for_backward(u, pull)
        ctx.sign = -2.0 if kind is Distance else 2.0
        return value

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None, None]:
        u, pull = ctx.saved_tensors
        moved = torch.sub(pull @ u, pull.sum(-1, keepdim=True) * u)
        return moved.mul_(ctx.sign * grad[..., None, None]), None, None


def through_gram(z: Tensor, kernel: Kernel, function: GramFunction) -> Tensor:
    """Value of ``function`` at k(Z, Z), with its gradient in Z; ``(..., n, d) -> (...)``.

    Gaussian and inverse multiquadric kernels and the Euclidean distance (``Distance()`` stands for the distance matrix
    itself here, not for its kernel) take the written-out gradient; any other kernel goes through autograd once.

    Examples
    --------
    >>> z = torch.tensor([[0.0], [1.0]], requires_grad=True)
    >>> through_gram(z, Gaussian(1.0), inner_product(torch.full((2, 2), 0.25))).backward()
    >>> z.grad.round(decimals=4)
    tensor([[ 0.3033],
            [-0.3033]])
    """
    bandwidth = getattr(kernel, "bandwidth", 1.0)
    if isinstance(kernel, _RADIAL) and not (isinstance(bandwidth, Tensor) and bandwidth.requires_grad):
        scale = bandwidth.to(z)[..., None, None] if isinstance(bandwidth, Tensor) else bandwidth
        u = z - z.detach().mean(-2, keepdim=True)
        return _Radial.apply(u if isinstance(kernel, Distance) else u / scale, function, type(kernel))
    gram = kernel(z)
    value, gradient = function(gram.detach())
    linear = (gram * gradient).sum((-2, -1))
    return value + (linear - linear.detach())


def inner_product(weights: Tensor) -> GramFunction:
    """``K -> Σ_ij K_ij A_ij``: HSIC, distance covariance and every kernel MMD."""

    def function(gram: Tensor) -> tuple[Tensor, Tensor]:
        return (gram * weights).sum((-2, -1)), weights

    return function


def correlation(
    weights: Tensor, own: Tensor, *, estimator: str = "biased", row_weights: Tensor | None = None
) -> GramFunction:
    """``K -> ⟨K, A⟩ / √(⟨K, A_K⟩ · own)``, the normalised form; zero, with zero gradient, where either is constant.

    ``own`` is ⟨L, A⟩, the same statistic of S with itself. ⟨K, A_K⟩ is quadratic in K with gradient 2 A_K.
    """

    def function(gram: Tensor) -> tuple[Tensor, Tensor]:
        own_weights = contraction_weights(gram, estimator=estimator, weights=row_weights)
        own_z = (gram * own_weights).sum((-2, -1))
        smallest = 64.0 * torch.finfo(gram.dtype).eps ** 2
        alive = ((own_z > smallest) & (own > smallest)).to(gram.dtype)
        own_z = own_z.clamp_min(smallest)
        root = alive * torch.rsqrt(own_z * own.clamp_min(smallest))
        value = (gram * weights).sum((-2, -1)) * root
        return value, weights * root[..., None, None] - own_weights * (value / own_z)[..., None, None]

    return function
