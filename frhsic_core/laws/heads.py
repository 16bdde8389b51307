"""Prediction heads whose dependence on S is known exactly under a jointly Gaussian law.

m_f(s) = E[f(Z) | S = s] − E f(Z) is what generalised demographic parity averages: GDP(f) = E_S|m_f(S)|. For a linear
head it is a line; for a head in the RKHS of a Gaussian kernel, f = Σ_j a_j k(c_j, ·), it is a sum of Gaussian bumps
less their mean.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from frhsic_core.arrays import ArrayLike, as_tensor
from frhsic_core.kernels import Gaussian


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
        c = _numbers(centers, "centers")
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
