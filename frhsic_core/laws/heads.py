"""Prediction heads whose dependence on S is known exactly under the Gaussian pair.

m_f(s) = E[f(Z) | S = s] − E f(Z) is what generalised demographic parity averages: GDP(f) = E_S|m_f(S)|. For a head in
the RKHS of a Gaussian kernel, f = Σ_j a_j k(c_j, ·), it is a sum of Gaussian bumps less their mean.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

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


@dataclass(frozen=True, init=False)
class KernelHead:
    """f = Σ_j a_j k(c_j, ·), an element of the RKHS of ``kernel``.

    Parameters
    ----------
    centers, coefficients : array_like
        c_j and a_j, ``(m,)``.
    kernel : Gaussian

    Examples
    --------
    >>> head = KernelHead([0.0, 1.0], [1.0, -1.0], kernel=Gaussian(1.0))
    >>> round(head.norm, 6)
    0.887096
    """

    centers: tuple[float, ...]
    coefficients: tuple[float, ...]
    kernel: Gaussian

    def __init__(self, centers: ArrayLike, coefficients: ArrayLike, *, kernel: Gaussian) -> None:
        c = as_tensor(centers, name="centers").double().flatten().tolist()
        a = as_tensor(coefficients, name="coefficients").double().flatten().tolist()
        if len(c) != len(a):
            raise ValueError(f"centers has {len(c)} entries but coefficients has {len(a)}: pass one for each center.")
        object.__setattr__(self, "centers", tuple(c))
        object.__setattr__(self, "coefficients", tuple(a))
        object.__setattr__(self, "kernel", kernel)

    @property
    def norm(self) -> float:
        """RKHS norm ‖f‖ = √(aᵀKa)."""
        a = torch.tensor(self.coefficients, dtype=torch.float64)
        centers = torch.tensor(self.centers, dtype=torch.float64).unsqueeze(-1)
        return math.sqrt(max(0.0, (a @ self.kernel(centers) @ a).item()))

    def __call__(self, z: Tensor) -> Tensor:
        centers = torch.tensor(self.centers, dtype=z.dtype, device=z.device).unsqueeze(-1)
        return self.kernel(z, centers) @ torch.tensor(self.coefficients, dtype=z.dtype, device=z.device)
