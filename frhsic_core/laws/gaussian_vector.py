"""A representation with several coordinates, jointly Gaussian with a scalar attribute."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from frhsic_core.arrays import ArrayLike, as_tensor
from frhsic_core.kernels import Gaussian
from frhsic_core.laws.heads import gaussian_bandwidth
from frhsic_core.laws.joint_gaussian import JointGaussian, draw_normal

__all__ = ["GaussianVector"]


@dataclass(frozen=True, init=False)
class GaussianVector(JointGaussian):
    """Z ~ N(0, Σ_Z) in R^d and S ~ N(0, 1), jointly Gaussian with Cov(Z, S) = c.

    Parameters
    ----------
    cross_covariance : array_like
        c, shape ``(d,)``; with the identity as covariance these are the correlations of the coordinates with S.
    covariance : array_like, optional
        Σ_Z, shape ``(d, d)``, symmetric positive definite; the identity by default. cᵀΣ_Z⁻¹c < 1 is needed.

    Examples
    --------
    >>> law = GaussianVector([0.3, 0.4])
    >>> round(law.maximal_correlation, 12)
    0.5
    >>> z, s = law.sample(6, batch=(2,), generator=torch.Generator().manual_seed(0))
    >>> tuple(z.shape), tuple(s.shape)
    ((2, 6, 2), (2, 6))
    """

    cross: tuple[float, ...]
    covariance_rows: tuple[tuple[float, ...], ...]

    def __init__(self, cross_covariance: ArrayLike, covariance: ArrayLike | None = None) -> None:
        c = as_tensor(cross_covariance, name="cross_covariance").detach().cpu().double().numpy()
        if c.ndim != 1 or c.size == 0:
            raise ValueError(
                f"cross_covariance has shape {c.shape}: one number for each coordinate of Z is needed, shape (d,)."
            )
        if covariance is None:
            matrix = np.eye(c.size)
        else:
            matrix = as_tensor(covariance, name="covariance").detach().cpu().double().numpy()
        if matrix.shape != (c.size, c.size):
            raise ValueError(
                f"covariance has shape {matrix.shape} but cross_covariance has {c.size} entries: "
                f"shape ({c.size}, {c.size}) is needed."
            )
        if not np.allclose(matrix, matrix.T, rtol=1e-12, atol=0.0):
            raise ValueError("covariance is not symmetric: pass (A + A.T) / 2 if rounding is the cause.")
        if not np.linalg.eigvalsh(matrix)[0] > 0.0:
            raise ValueError(
                f"covariance has smallest eigenvalue {np.linalg.eigvalsh(matrix)[0]:.3g}: it must be positive definite."
            )
        if not c @ np.linalg.solve(matrix, c) < 1.0:
            raise ValueError(
                f"cross_covariance gives squared canonical correlation {c @ np.linalg.solve(matrix, c):.6g}: "
                "it must be below 1, or Z would determine S; shrink cross_covariance."
            )
        object.__setattr__(self, "cross", tuple(c.tolist()))
        object.__setattr__(self, "covariance_rows", tuple(map(tuple, matrix.tolist())))

    @property
    def cross_covariance(self) -> np.ndarray:
        """Cov(Z, S), shape ``(d,)``."""
        return np.array(self.cross)

    @property
    def covariance(self) -> np.ndarray:
        """Σ_Z, shape ``(d, d)``."""
        return np.array(self.covariance_rows)

    @property
    def maximal_correlation(self) -> float:
        """√(cᵀΣ_Z⁻¹c), since the best f is linear, f(z) = cᵀΣ_Z⁻¹z."""
        c = self.cross_covariance
        return math.sqrt(c @ np.linalg.solve(self.covariance, c))

    def coupling(self, kernel_z: Gaussian) -> float:
        """Coupling q = cᵀ(σ²I + 2Σ_Z)⁻¹c; O(d³)."""
        sigma, c = gaussian_bandwidth(kernel_z, name="kernel_z"), self.cross_covariance
        return float(c @ np.linalg.solve(sigma**2 * np.eye(self.dimension) + 2.0 * self.covariance, c))

    def _relative_variances(self, kernel_z: Gaussian) -> np.ndarray:
        return np.linalg.eigvalsh(self.covariance) / gaussian_bandwidth(kernel_z, name="kernel_z") ** 2

    def mean_kernel_z(self, kernel_z: Gaussian) -> float:
        """μ_K = det(I + 2Σ_Z/σ²)^(−1/2)."""
        return float(np.prod(1.0 + 2.0 * self._relative_variances(kernel_z)) ** -0.5)

    def hsic_z(self, kernel_z: Gaussian) -> float:
        """HSIC(Z, Z) = E k² − 2·E[k(Z, Z')k(Z, Z'')] + (E k)², each a product over the eigenvalues of Σ_Z."""
        w = self._relative_variances(kernel_z)
        squared = np.prod(1.0 + 4.0 * w) ** -0.5
        shared = np.prod((1.0 + 3.0 * w) * (1.0 + w)) ** -0.5
        return float(squared - 2.0 * shared + self.mean_kernel_z(kernel_z) ** 2)

    def sample(
        self,
        n: int,
        *,
        generator: torch.Generator | None = None,
        dtype: torch.dtype = torch.float64,
        device: torch.device | str | None = None,
        batch: Sequence[int] = (),
    ) -> tuple[Tensor, Tensor]:
        """Draw ``z`` of shape ``(*batch, n, d)`` and ``s`` of shape ``(*batch, n)``; O(nd²) time."""
        c, d = self.cross_covariance, self.dimension
        root = np.linalg.cholesky(self.covariance - np.outer(c, c))
        noise = draw_normal(*batch, n, d + 1, generator=generator, dtype=dtype, device=device)
        s = noise[..., d]
        factor = torch.as_tensor(root, dtype=dtype, device=s.device)
        slope = torch.as_tensor(c, dtype=dtype, device=s.device)
        return noise[..., :d] @ factor.mT + s.unsqueeze(-1) * slope, s
