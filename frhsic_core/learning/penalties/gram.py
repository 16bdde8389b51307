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
    """A summand of a penalty with its gradient already known: ``value (...)``, and the gradient at ``at (..., n, d)``.

    A training step hands the gradient to ``torch.autograd.grad`` beside that of the task, so that no graph is built and
    run for the summand itself; :meth:`differentiable` gives an ordinary tensor instead. The gradient is kept as a
    ``direction (..., n, d)`` and a ``coefficient (..., 1, 1)``: scaling by λ then touches one number for each model.
    """

    value: Tensor
    at: Tensor
    direction: Tensor
    coefficient: Tensor

    @property
    def gradient(self) -> Tensor:
        """Gradient of the value in ``at``."""
        return self.direction * self.coefficient

    def times(self, factor: Tensor) -> Pull:
        """Scale by a number for each model, ``(...)``."""
        return Pull(self.value * factor, self.at, self.direction, self.coefficient * factor[..., None, None])

    def differentiable(self) -> Tensor:
        """Return a linear function with this gradient, moved to this value."""
        linear = (self.at * self.gradient).sum((-2, -1))
        return self.value + (linear - linear.detach())


def augmented(u: Tensor) -> tuple[Tensor, Tensor]:
    """Rows [u, |u|², −½] and [u, −½, |u|²]: their product is −|u_i − u_j|²/2, in one pass over the n × n matrix."""
    square = (u * u).sum(-1, keepdim=True)
    constant = torch.full_like(square, -0.5)
    return torch.cat([u, square, constant], dim=-1), torch.cat([u, constant, square], dim=-1)


def _exponent(u: Tensor) -> tuple[Tensor, Tensor]:
    """−|u_i − u_j|²/2 and |u_i|², ``(..., n, n)`` and ``(..., n, 1)``."""
    if u.device.type == "cpu":  # a pass over a matrix in cache costs less than two copies of u beside its norms
        square = (u * u).sum(-1, keepdim=True)
        half = 0.5 * square
        return torch.matmul(u, u.mT).sub_(half).sub_(half.mT), square
    left, right = augmented(u)
    return left @ right.mT, left[..., -2:-1]


def _radial(kind: type, u: Tensor) -> Tensor:
    """Matrix of a radial kernel of bandwidth one (or of distances) of the rows of u."""
    exponent, square = _exponent(u)
    if kind is Gaussian:
        return exponent.exp_()
    if kind is InverseMultiquadric:
        return exponent.clamp_max_(0.0).mul_(-2.0).add_(1.0).rsqrt_()
    # The expansion leaves rounding where two rows coincide; its root would be a distance with a wild direction.
    floor = -8.0 * torch.finfo(exponent.dtype).eps * square.amax(-2, keepdim=True)
    return torch.where(exponent < floor, exponent.mul(-2.0), torch.zeros_like(exponent)).sqrt_()


def _pull(kind: type, gram: Tensor, gradient: Tensor) -> Tensor:
    """G ∘ k'(squared distance), up to the factor −1/2 (+1/2 for distances); the Gram matrix is used up."""
    if kind is Gaussian:
        return gram.mul_(gradient)
    if kind is InverseMultiquadric:
        return gram.pow_(3).mul_(gradient)
    return torch.where(gram > 0, gradient / gram.clamp_min(torch.finfo(gram.dtype).tiny), torch.zeros_like(gram))


def _value_and_pull(z: Tensor, scale: Tensor, function: GramFunction, kind: type, factor: float) -> Pull:
    """Value ``(...)`` and gradient in z ``(..., n, d)``."""
    u = (z - z.mean(-2, keepdim=True)).div_(scale)
    gram = _radial(kind, u)
    value, gradient = function(gram)
    if value is None and kind is not Gaussian:
        value = (gram * gradient).sum((-2, -1))
    pull = _pull(kind, gram, gradient)
    mass = pull.sum(-1)
    if value is None:
        value = mass.sum(-1)
    # Σ_j W_ij (u_j − u_i) as one product: the row sums go onto the diagonal.
    pull.diagonal(dim1=-2, dim2=-1).sub_(mass)
    slope = (-2.0 if kind is Distance else 2.0) * factor
    return Pull(value if factor == 1.0 else value * factor, z, pull @ u, slope / scale)


def gram_term(z: Tensor, kernel: Kernel, function: GramFunction, *, factor: float = 1.0) -> Pull | Tensor:
    """``factor`` times the value of ``function`` at k(Z, Z), ``(..., n, d) -> (...)``, as a summand of a penalty.

    Gaussian and inverse multiquadric kernels and the Euclidean distance (``Distance()`` stands for the distance matrix
    itself here, not for its kernel) take the written-out gradient; any other kernel goes through autograd once.
    """
    bandwidth = getattr(kernel, "bandwidth", 1.0)
    if isinstance(kernel, _RADIAL) and not (isinstance(bandwidth, Tensor) and bandwidth.requires_grad):
        # A number becomes a tensor on the device by filling one: copying it there cannot be captured.
        sigma = bandwidth if isinstance(bandwidth, Tensor) else z.new_full((), float(bandwidth))
        with torch.no_grad():
            return _value_and_pull(z, sigma[..., None, None], function, type(kernel), factor)
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
    """Rows of S ``(datasets, n, p)`` ready for :func:`centred_gaussian`, ``(datasets, n, 2(p + 2))``; done once."""
    u = (s - s.mean(-2, keepdim=True)) / bandwidth[..., None, None]
    return torch.cat(augmented(u), dim=-1)


def centred_gaussian(rows: Tensor) -> Tensor:
    """HLH for the Gaussian Gram matrix L of S, in six passes over it, from some rows of :func:`gaussian_rows`."""
    left, right = rows.chunk(2, dim=-1)
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
        if row_weights is None and estimator == "biased":  # centring is a projection: ⟨K, A_K⟩ = |A_K|²
            own_z = torch.linalg.vector_norm(own_weights, dim=(-2, -1)).square()
        else:
            own_z = (gram * own_weights).sum((-2, -1))
        smallest = vanishing(gram, rows=gram.shape[-1], row_weights=row_weights)
        alive = ((own_z > smallest) & (own > smallest)).to(gram.dtype)
        own_z = own_z.clamp_min(smallest)
        root = alive * torch.rsqrt(own_z * own.clamp_min(smallest))
        value = (gram * weights).sum((-2, -1)) * root
        slope = own_weights.mul_((value / own_z).neg_()[..., None, None]).addcmul_(weights, root[..., None, None])
        return value, slope

    return function
