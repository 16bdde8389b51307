"""The standard bivariate Gaussian pair: the law of every reference digit in the book."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from frhsic_core.kernels import Gaussian
from frhsic_core.laws import formulas
from frhsic_core.laws.heads import gaussian_bandwidth
from frhsic_core.laws.joint_gaussian import JointGaussian, draw_normal

__all__ = ["GaussianPair"]


@dataclass(frozen=True)
class GaussianPair(JointGaussian):
    """Standard bivariate Gaussian: Z ~ N(0, 1), S = ρZ + √(1 − ρ²)·ε.

    Parameters
    ----------
    rho : float
        Correlation, strictly between −1 and 1.

    Examples
    --------
    >>> law, kernel = GaussianPair(0.5), Gaussian(1.0)
    >>> round(law.hsic(kernel, kernel), 12), round(law.expected_mmd(kernel), 12)
    (0.010763320144, 0.199520696644)
    >>> z, s = law.sample(5, generator=torch.Generator().manual_seed(0))
    >>> tuple(z.shape), tuple(s.shape)
    ((5, 1), (5,))
    """

    rho: float

    def __post_init__(self) -> None:
        if not abs(self.rho) < 1.0:
            raise ValueError(f"rho is {self.rho}: a correlation strictly between -1 and 1 is needed.")

    @property
    def covariance(self) -> np.ndarray:
        """Z is one number of variance one."""
        return np.eye(1)

    @property
    def cross_covariance(self) -> np.ndarray:
        """Cov(Z, S) = ρ."""
        return np.array([float(self.rho)])

    @property
    def maximal_correlation(self) -> float:
        """``|ρ|`` (Gebelein 1941)."""
        return abs(self.rho)

    def coupling(self, kernel_z: Gaussian) -> float:
        """Coupling q = ρ²/(σ² + 2)."""
        return formulas.pair_coupling(self.rho, gaussian_bandwidth(kernel_z, name="kernel_z"))

    def mean_kernel_z(self, kernel_z: Gaussian) -> float:
        """μ_K = σ/√(σ² + 2)."""
        return formulas.mean_kernel(gaussian_bandwidth(kernel_z, name="kernel_z"))

    def hsic_z(self, kernel_z: Gaussian) -> float:
        """HSIC(Z, Z): the pair at correlation one."""
        gaussian_bandwidth(kernel_z, name="kernel_z")
        return self.hsic_s(kernel_z)

    @property
    def squared_distance_covariance(self) -> float:
        """dCov²(Z, S), a V-statistic limit with Euclidean distances (Székely, Rizzo & Bakirov 2007, Theorem 7)."""
        return formulas.squared_distance_covariance(self.rho) * 4.0 / math.pi

    @property
    def distance_correlation(self) -> float:
        """dCor(Z, S), the rooted one, at most ``|ρ|``."""
        own = formulas.squared_distance_covariance(1.0)
        return math.sqrt(formulas.squared_distance_covariance(self.rho) / own)

    def sample(
        self,
        n: int,
        *,
        generator: torch.Generator | None = None,
        dtype: torch.dtype = torch.float64,
        device: torch.device | str | None = None,
        batch: Sequence[int] = (),
    ) -> tuple[Tensor, Tensor]:
        """Draw ``z`` of shape ``(*batch, n, 1)`` and ``s`` of shape ``(*batch, n)``."""
        z, noise = draw_normal(2, *batch, n, generator=generator, dtype=dtype, device=device)
        return z.unsqueeze(-1), self.rho * z + math.sqrt(1.0 - self.rho**2) * noise
