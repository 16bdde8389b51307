"""Kernels on the representation and on the sensitive attribute.

Every kernel is a small immutable object with three things the theory asks of it: its Gram matrix, a bound ν on k(x, x),
and the Lipschitz constant ℓ of its feature map, ‖φ(x) − φ(y)‖ ≤ ℓ·‖x − y‖ (``math.inf`` where there is none).
Bandwidths may be tensors with the batch shape: a stack of models, each with a bandwidth of its own, is one call.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import torch
from torch import Tensor

from frhsic_core.distances import euclidean_distances, median_bandwidth, squared_distances

__all__ = [
    "Distance",
    "Gaussian",
    "InverseMultiquadric",
    "Kernel",
    "Laplacian",
    "Linear",
    "Product",
    "median_bandwidth",
    "squared_distances",
]


def lowest_exponent(dtype: torch.dtype) -> float:
    """Exponent below which a kernel value is taken as ``exp`` of this one: half the logarithm of the smallest number.

    That is 1e-19 in float32, far below the rounding of any sum it enters. Without it a Z spread over many bandwidths
    fills the Gram matrix with subnormal numbers, on which ``exp`` and matrix products are a hundred times slower.
    """
    return 0.5 * math.log(torch.finfo(dtype).tiny)


def gaussian_gram(u: Tensor, v: Tensor | None = None) -> Tensor:
    """``exp(−‖u_i − v_j‖²/2)`` for rows already divided by the bandwidth; the diagonal is exactly one.

    Scalar rows are subtracted directly: cheaper than the expansion and free of cancellation.
    """
    if u.shape[-1] == 1:
        difference = u - (u if v is None else v).mT
        if difference.requires_grad:
            return torch.exp((-0.5 * difference * difference).clamp_min(lowest_exponent(u.dtype)))
        return difference.square_().mul_(-0.5).clamp_min_(lowest_exponent(u.dtype)).exp_()
    if v is not None:
        return torch.exp((-0.5 * squared_distances(u, v)).clamp_min(lowest_exponent(u.dtype)))
    u = u - u.detach().mean(-2, keepdim=True)
    inner = u @ u.mT
    # Half the diagonal of the product itself, so that u·u − |u|²/2 − |u|²/2 is exactly zero there.
    half = 0.5 * inner.diagonal(dim1=-2, dim2=-1)
    low = lowest_exponent(u.dtype)
    if inner.requires_grad:
        return torch.exp((inner - half.unsqueeze(-1) - half.unsqueeze(-2)).clamp(low, 0.0))
    return inner.sub_(half.unsqueeze(-1)).sub_(half.unsqueeze(-2)).clamp_(low, 0.0).exp_()


def _scale(bandwidth: float | Tensor, like: Tensor) -> float | Tensor:
    """Shape a bandwidth with batch shape ``(...)`` so that it divides a ``(..., n, m)`` matrix."""
    if isinstance(bandwidth, Tensor):
        return bandwidth.to(dtype=like.dtype, device=like.device)[..., None, None]
    return bandwidth


def _require_positive(bandwidth: float | Tensor) -> None:
    # Tensors are trusted: looking at their values would make a training step wait for the GPU.
    if not isinstance(bandwidth, Tensor) and not (math.isfinite(bandwidth) and bandwidth > 0):
        raise ValueError(f"bandwidth is {bandwidth}: it must be a positive number (median_bandwidth gives one).")


@runtime_checkable
class Kernel(Protocol):
    """What a kernel offers: a Gram matrix, the bound ν, and the Lipschitz constant ℓ of its feature map."""

    def __call__(self, x: Tensor, y: Tensor | None = None) -> Tensor:
        """Gram matrix ``k(x_i, y_j)`` of shape ``(..., n, m)``; ``y=None`` means ``y = x``."""
        ...

    @property
    def bound(self) -> float | Tensor:
        """ν, with k(x, x) ≤ ν for every x; ``math.inf`` if unbounded."""
        ...

    @property
    def lipschitz(self) -> float | Tensor:
        """ℓ, with ‖φ(x) − φ(y)‖ ≤ ℓ‖x − y‖ for all x, y; ``math.inf`` if there is none."""
        ...


@dataclass(frozen=True)
class Gaussian:
    """Gaussian kernel ``exp(−‖x − y‖² / (2σ²))``: ν = 1, ℓ = 1/σ, characteristic.

    ``2 − 2·exp(−r²/2σ²) ≤ r²/σ²`` gives ℓ. Gram matrix: O(nmd) time, O(nm) memory.

    Parameters
    ----------
    bandwidth : float or Tensor
        σ > 0; a tensor holds one bandwidth for each batch element.

    Examples
    --------
    >>> Gaussian(1.0)(torch.tensor([[0.0], [1.0]])).round(decimals=4)
    tensor([[1.0000, 0.6065],
            [0.6065, 1.0000]])
    """

    bandwidth: float | Tensor

    def __post_init__(self) -> None:
        _require_positive(self.bandwidth)

    def __call__(self, x: Tensor, y: Tensor | None = None) -> Tensor:
        scale = _scale(self.bandwidth, x)
        return gaussian_gram(x / scale, None if y is None else y / scale)

    @property
    def bound(self) -> float:
        return 1.0

    @property
    def lipschitz(self) -> float | Tensor:
        return 1.0 / self.bandwidth


@dataclass(frozen=True)
class Laplacian:
    """Laplacian kernel ``exp(−‖x − y‖₁ / σ)``: ν = 1, characteristic, ℓ = ∞.

    The squared feature distance is 2 − 2·exp(−r/σ) ≈ 2r/σ near zero, so the feature map is Hölder of order 1/2 but not
    Lipschitz: Theorem 5.1 (``thm:uniform-hsic-frhsic``) does not apply to it. Gram matrix: O(nmd) time and memory.

    Examples
    --------
    >>> Laplacian(1.0)(torch.tensor([[0.0], [1.0]]))[0, 1].item() == torch.exp(torch.tensor(-1.0)).item()
    True
    """

    bandwidth: float | Tensor

    def __post_init__(self) -> None:
        _require_positive(self.bandwidth)

    def __call__(self, x: Tensor, y: Tensor | None = None) -> Tensor:
        # cdist with p=1 has the gradient sign(x − y), zero at repeated rows.
        distance = torch.cdist(x, x if y is None else y, p=1.0)
        return torch.exp((-distance / _scale(self.bandwidth, distance)).clamp_min(lowest_exponent(x.dtype)))

    @property
    def bound(self) -> float:
        return 1.0

    @property
    def lipschitz(self) -> float:
        return math.inf


@dataclass(frozen=True)
class InverseMultiquadric:
    """Inverse multiquadric kernel ``(1 + ‖x − y‖²/σ²)^(−1/2)``: ν = 1, ℓ = 1/σ, characteristic.

    Its tail is polynomial: two far clouds still attract each other where a Gaussian kernel sees nothing. Cost as
    :class:`Gaussian`.

    Examples
    --------
    >>> InverseMultiquadric(1.0)(torch.tensor([[0.0], [1.0]]))[0, 1].round(decimals=4)
    tensor(0.7071)
    """

    bandwidth: float | Tensor

    def __post_init__(self) -> None:
        _require_positive(self.bandwidth)

    def __call__(self, x: Tensor, y: Tensor | None = None) -> Tensor:
        squared = squared_distances(x, y)
        scale = _scale(self.bandwidth, squared)
        return torch.rsqrt(1.0 + squared / (scale * scale))

    @property
    def bound(self) -> float:
        return 1.0

    @property
    def lipschitz(self) -> float | Tensor:
        return 1.0 / self.bandwidth


@dataclass(frozen=True)
class Linear:
    """Linear kernel ``x·y``: ν = ∞, ℓ = 1, not characteristic. HSIC with it sees covariances only.

    Examples
    --------
    >>> Linear()(torch.tensor([[1.0, 2.0]]))
    tensor([[5.]])
    """

    def __call__(self, x: Tensor, y: Tensor | None = None) -> Tensor:
        return x @ (x if y is None else y).mT

    @property
    def bound(self) -> float:
        return math.inf

    @property
    def lipschitz(self) -> float:
        return 1.0


@dataclass(frozen=True)
class Distance:
    """Distance-induced kernel ``(‖x‖ + ‖y‖ − ‖x − y‖)/2``: ν = ∞, ℓ = ∞; HSIC with it is dCov²/4.

    ‖φ(x) − φ(y)‖² = ‖x − y‖, Hölder of order 1/2. The choice of origin drops out of every centred statistic
    (Sejdinovic et al., 2013). Distances have gradient zero on repeated rows.

    Examples
    --------
    >>> Distance()(torch.tensor([[3.0], [1.0]]))
    tensor([[3., 1.],
            [1., 1.]])
    """

    def __call__(self, x: Tensor, y: Tensor | None = None) -> Tensor:
        y = x if y is None else y
        origin_x = torch.linalg.vector_norm(x, dim=-1).unsqueeze(-1)
        origin_y = torch.linalg.vector_norm(y, dim=-1).unsqueeze(-2)
        return 0.5 * (origin_x + origin_y - euclidean_distances(x, y))

    @property
    def bound(self) -> float:
        return math.inf

    @property
    def lipschitz(self) -> float:
        return math.inf


@dataclass(frozen=True)
class Product:
    """Product over attributes: ``Π_a k_a(x[:, a], y[:, a])``, one factor for each column.

    ν is the product of the factors' ν. For two unit kernels ``1 − Π(1 − ℓ_a²r_a²/2) ≤ Σ ℓ_a²r_a²/2`` gives ℓ = max ℓ_a;
    in general ``ℓ² = Σ_a ℓ_a² Π_{b≠a} ν_b`` (triangle inequality, then Cauchy–Schwarz). Cost: the sum of the factors'.

    Examples
    --------
    >>> kernel = Product([Gaussian(1.0), Gaussian(2.0)])
    >>> kernel.bound, kernel.lipschitz
    (1.0, 1.0)
    """

    factors: tuple[Kernel, ...]

    def __init__(self, factors: Sequence[Kernel]) -> None:
        if len(factors) == 0:
            raise ValueError("Product has no factors: give one kernel for each column.")
        object.__setattr__(self, "factors", tuple(factors))

    def __call__(self, x: Tensor, y: Tensor | None = None) -> Tensor:
        if x.shape[-1] != len(self.factors):
            raise ValueError(
                f"x has {x.shape[-1]} columns but Product has {len(self.factors)} factors: one kernel for each column."
            )
        grams = [
            factor(x[..., a : a + 1], None if y is None else y[..., a : a + 1]) for a, factor in enumerate(self.factors)
        ]
        return math.prod(grams[1:], start=grams[0])

    @property
    def bound(self) -> float | Tensor:
        return math.prod(factor.bound for factor in self.factors)

    @property
    def lipschitz(self) -> float | Tensor:
        bounds = [torch.as_tensor(factor.bound, dtype=torch.float64) for factor in self.factors]
        constants = [torch.as_tensor(factor.lipschitz, dtype=torch.float64) for factor in self.factors]
        if all(bool((bound == 1).all()) for bound in bounds):
            largest = torch.stack(torch.broadcast_tensors(*constants)).amax(0)
            return largest.item() if largest.ndim == 0 else largest
        total = sum(
            (constant**2 * math.prod(bounds[:a] + bounds[a + 1 :]) for a, constant in enumerate(constants)),
            start=torch.zeros((), dtype=torch.float64),
        )
        root = total.sqrt()
        return root.item() if root.ndim == 0 else root
