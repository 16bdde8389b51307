"""Prediction heads whose dependence on S is known exactly under a jointly Gaussian law.

m_f(s) = E[f(Z) | S = s] − E f(Z) is what generalised demographic parity averages: GDP(f) = E_S|m_f(S)|. For a linear
head it is a line; for a head in the RKHS of a Gaussian kernel, f = Σ_j a_j k(c_j, ·), it is a sum of Gaussian bumps
less their mean.
"""

from __future__ import annotations

import math
import warnings
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import torch
from torch import Tensor

from frhsic_core.arrays import ArrayLike, as_tensor
from frhsic_core.kernels import Gaussian
from frhsic_core.laws import formulas
from frhsic_core.laws.quadrature import normal_expectation, sign_changes


class Covariances(Protocol):
    """What a head needs from a jointly Gaussian law: d, Σ_Z and Cov(Z, S)."""

    @property
    def dimension(self) -> int:
        """Dimension d of Z."""

    @property
    def covariance(self) -> np.ndarray:
        """Σ_Z, shape ``(d, d)``."""

    @property
    def cross_covariance(self) -> np.ndarray:
        """Cov(Z, S), shape ``(d,)``."""


def gaussian_bandwidth(kernel: Any, *, name: str) -> float:
    """Return the bandwidth of a Gaussian kernel as a float; other kernels have no closed form here."""
    if not isinstance(kernel, Gaussian):
        raise TypeError(
            f"{name} is {type(kernel).__name__}: this law's closed forms are for the Gaussian kernel; "
            "pass Gaussian(bandwidth)."
        )
    bandwidth = kernel.bandwidth
    if isinstance(bandwidth, Tensor):
        if bandwidth.numel() != 1:
            raise ValueError(f"{name} has a bandwidth of shape {tuple(bandwidth.shape)}: pass one bandwidth at a time.")
        bandwidth = bandwidth.item()
    return float(bandwidth)


def _numbers(x: ArrayLike, name: str) -> np.ndarray:
    return as_tensor(x, name=name).detach().cpu().double().numpy()


@dataclass(frozen=True, init=False)
class LinearHead:
    """f(z) = w·z + b. Not in the RKHS of a Gaussian kernel: the spectral bounds of Section 4 do not speak of it.

    Examples
    --------
    >>> LinearHead([2.0], bias=1.0)(torch.tensor([[3.0]]))
    tensor([7.])
    """

    weights: tuple[float, ...]
    bias: float

    def __init__(self, weights: ArrayLike, *, bias: float = 0.0) -> None:
        object.__setattr__(self, "weights", tuple(np.atleast_1d(_numbers(weights, "weights")).tolist()))
        object.__setattr__(self, "bias", float(bias))

    @property
    def dimension(self) -> int:
        """Number of coordinates it reads."""
        return len(self.weights)

    def __call__(self, z: Tensor) -> Tensor:
        return z @ torch.tensor(self.weights, dtype=z.dtype, device=z.device) + self.bias


@dataclass(frozen=True, init=False)
class KernelHead:
    """f = Σ_j a_j k(c_j, ·), an element of the RKHS of ``kernel``.

    Parameters
    ----------
    centers : array_like
        c_j, shape ``(m, d)``, or ``(m,)`` for a scalar Z.
    coefficients : array_like
        a_j, shape ``(m,)``.
    kernel : Gaussian

    Examples
    --------
    >>> head = KernelHead([0.0, 1.0], [1.0, -1.0], kernel=Gaussian(1.0))
    >>> round(head.norm, 6)
    0.887096
    """

    centers: tuple[tuple[float, ...], ...]
    coefficients: tuple[float, ...]
    kernel: Gaussian

    def __init__(self, centers: ArrayLike, coefficients: ArrayLike, *, kernel: Gaussian) -> None:
        c = _numbers(centers, "centres")
        a = np.atleast_1d(_numbers(coefficients, "coefficients"))
        c = np.atleast_1d(c)[:, None] if c.ndim < 2 else c
        if c.shape[0] != a.size:
            raise ValueError(
                f"centers has {c.shape[0]} rows but coefficients has {a.size} entries: pass one for each center."
            )
        object.__setattr__(self, "centers", tuple(map(tuple, c.tolist())))
        object.__setattr__(self, "coefficients", tuple(a.tolist()))
        object.__setattr__(self, "kernel", kernel)

    @property
    def centres(self) -> tuple[tuple[float, ...], ...]:
        """Old name of ``centers``."""
        warnings.warn("KernelHead.centres is deprecated: use centers.", DeprecationWarning, stacklevel=2)
        return self.centers

    @property
    def dimension(self) -> int:
        """Number of coordinates it reads."""
        return len(self.centers[0])

    @property
    def norm(self) -> float:
        """RKHS norm ‖f‖ = √(aᵀKa)."""
        a = torch.tensor(self.coefficients, dtype=torch.float64)
        return math.sqrt(max(0.0, (a @ self.kernel(torch.tensor(self.centers, dtype=torch.float64)) @ a).item()))

    def __call__(self, z: Tensor) -> Tensor:
        centers = torch.tensor(self.centers, dtype=z.dtype, device=z.device)
        return self.kernel(z, centers) @ torch.tensor(self.coefficients, dtype=z.dtype, device=z.device)


Head = LinearHead | KernelHead


def _require_dimension(law: Covariances, head: Head) -> None:
    if head.dimension != law.dimension:
        raise ValueError(
            f"The head has {head.dimension} coordinates but Z has {law.dimension}: both need the same number."
        )


def kernel_head_terms(law: Covariances, head: KernelHead) -> tuple[np.ndarray, np.ndarray, float]:
    """Return a_j·E k(c_j, Z), the tilts u_j and the head coupling h (see :mod:`frhsic_core.laws.formulas`)."""
    _require_dimension(law, head)
    sigma = gaussian_bandwidth(head.kernel, name="the head's kernel")
    centers, matrix = np.array(head.centers), sigma**2 * np.eye(law.dimension) + law.covariance
    solved = np.linalg.solve(matrix, np.column_stack([law.cross_covariance, centers.T]))
    determinant = np.linalg.det(matrix / sigma**2)
    means = np.exp(-0.5 * (centers.T * solved[:, 1:]).sum(0)) / math.sqrt(determinant)
    tilts = law.cross_covariance @ solved[:, 1:]
    return np.array(head.coefficients) * means, tilts, float(law.cross_covariance @ solved[:, 0])


def linear_head_slope(law: Covariances, head: LinearHead) -> float:
    """Return the slope w·c of m_f(s) = (w·c)·s."""
    _require_dimension(law, head)
    return float(np.array(head.weights) @ law.cross_covariance)


def conditional_gap(law: Covariances, head: Head, s: ArrayLike, *, kappa: float = 1.0) -> np.ndarray:
    """Return m_f(s) in closed form at each s, with κ < 1 under smoothing weights of bandwidth √(1/κ − 1)."""
    s = np.asarray(s, dtype=np.float64)
    if isinstance(head, LinearHead):
        return linear_head_slope(law, head) * kappa * s
    means, tilts, h = kernel_head_terms(law, head)
    root = math.sqrt(kappa)
    terms = formulas.head_gap(means, root * tilts, kappa * h, root * s[..., None], sqrt=np.sqrt, expm1=np.expm1)
    return terms.sum(-1)


def expected_squared_gap(law: Covariances, head: Head) -> float:
    """Return E_S[m_f(S)²] in closed form: the right-hand side of Jensen's step in Corollary 4.6. O(m²)."""
    if isinstance(head, LinearHead):
        return linear_head_slope(law, head) ** 2
    means, tilts, h = kernel_head_terms(law, head)
    covariance = formulas.head_squared_gap(tilts[:, None], tilts, h, sqrt=np.sqrt, expm1=np.expm1)
    return float(means @ covariance @ means)


def gdp(law: Covariances, head: Head, *, kappa: float = 1.0) -> float:
    """Return E_S|m_f(S)|: a closed form for a linear head, else adaptive quadrature between the sign changes of m_f."""
    if isinstance(head, LinearHead):
        return abs(linear_head_slope(law, head)) * kappa * math.sqrt(2.0 / math.pi)
    _, tilts, h = kernel_head_terms(law, head)
    if h == 0.0:
        return 0.0
    # Bumps of m_f can be narrow against the unit scale of S: the panels must find each of them.
    centers, width = tilts / (kappa * h), math.sqrt((1.0 - kappa * h) / h) / kappa
    cuts = np.unique(np.concatenate([centers + step * width for step in (-6.0, -2.0, 0.0, 2.0, 6.0)]))

    def gap(s: np.ndarray) -> np.ndarray:
        return conditional_gap(law, head, s, kappa=kappa)

    zeros = sign_changes(gap, near=cuts)
    return normal_expectation(lambda s: abs(float(gap(np.array(s)))), cuts=[*cuts, *zeros])
