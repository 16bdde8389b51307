"""The jointly Gaussian pair with exact answers.

Z and S are standard normal with correlation ρ. HSIC, E[MMD²] and the conditional MMD under Gaussian
kernels are Gaussian integrals; E[MMD] is one adaptive integral over S. Estimators of the library
are compared with these numbers, and nothing here imports an estimator.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from frhsic_core._arrays import RandomState, as_generator
from frhsic_core.kernels import Gaussian
from frhsic_core.laws import _mercer, formulas
from frhsic_core.laws._mercer import CenteredSpectrum, MercerSystem
from frhsic_core.laws._quadrature import REACH, normal_expectation


def gaussian_bandwidth(kernel: Any, *, name: str) -> float:
    """Return the bandwidth of a Gaussian kernel; other kernels have no closed form here."""
    if not isinstance(kernel, Gaussian):
        raise TypeError(
            f"{name} is {type(kernel).__name__}: this law's closed forms are for the Gaussian "
            "kernel; pass Gaussian(bandwidth)."
        )
    bandwidth = kernel.bandwidth
    if isinstance(bandwidth, Tensor):
        if bandwidth.numel() != 1:
            raise ValueError(
                f"{name} has a bandwidth of shape {tuple(bandwidth.shape)}: pass one bandwidth at "
                "a time."
            )
        bandwidth = bandwidth.item()
    return float(bandwidth)


@dataclass(frozen=True)
class GaussianPair:
    """Standard bivariate Gaussian: Z ~ N(0, 1), S = ρZ + √(1 − ρ²)·ε.

    The formulas are in :mod:`frhsic_core.laws.formulas`, the spectrum in ``laws._mercer``.

    Parameters
    ----------
    rho : float
        Correlation, strictly between −1 and 1.

    Examples
    --------
    >>> law, kernel = GaussianPair(0.5), Gaussian(1.0)
    >>> round(law.hsic(kernel, kernel), 12), round(law.expected_mmd(kernel), 12)
    (0.010763320144, 0.199520696644)
    >>> z, s = law.sample(5, random_state=torch.Generator().manual_seed(0))
    >>> tuple(z.shape), tuple(s.shape)
    ((5, 1), (5,))
    """

    rho: float

    def __post_init__(self) -> None:
        if not abs(self.rho) < 1.0:
            raise ValueError(f"rho is {self.rho}: pass a correlation strictly between -1 and 1.")

    def _terms(self, kernel_z: Gaussian) -> tuple[float, float]:
        """Return the mean kernel μ_K = σ/√(σ² + 2), and the coupling q = ρ²/(σ² + 2)."""
        bandwidth = gaussian_bandwidth(kernel_z, name="kernel_z")
        return formulas.mean_kernel(bandwidth), formulas.pair_coupling(self.rho, bandwidth)

    def mean_kernel_z(self, kernel_z: Gaussian) -> float:
        """Return μ_K = E k(Z, Z') for independent copies."""
        mean, _ = self._terms(kernel_z)
        return mean

    def null_mean(self, kernel_z: Gaussian, kernel_s: Gaussian, *, n: int | None = None) -> float:
        """Return what n·HSIC_b would have as mean if Z and S with these marginals were independent.

        (1 − μ_K)(1 − μ_L)(1 − 1/n); ``n=None`` is the limit. The biased estimator never falls below
        it on average.
        """
        mean_s = formulas.mean_kernel(gaussian_bandwidth(kernel_s, name="kernel_s"))
        limit = (1.0 - self.mean_kernel_z(kernel_z)) * (1.0 - mean_s)
        if n is None:
            return limit
        return limit * (1.0 - 1.0 / n)

    def hsic(self, kernel_z: Gaussian, kernel_s: Gaussian) -> float:
        """Return HSIC(Z, S) in closed form (Definition 2.1, ``def:hsic``)."""
        mean, coupling = self._terms(kernel_z)
        bandwidth_s = gaussian_bandwidth(kernel_s, name="kernel_s")
        return formulas.hsic(mean, coupling, bandwidth_s)

    def conditional_mmd(self, kernel_z: Gaussian, s: Any) -> np.ndarray:
        """Return MMD(P_{Z|S=s}, P_Z) at each s (any shape), in closed form."""
        mean, coupling = self._terms(kernel_z)
        at = np.asarray(s, dtype=np.float64)
        squared = formulas.conditional_squared_mmd(mean, coupling, at, sqrt=np.sqrt, expm1=np.expm1)
        return np.sqrt(squared)

    def expected_squared_mmd(self, kernel_z: Gaussian) -> float:
        """Return E_S[MMD²(P_{Z|S}, P_Z)], the middle of Theorem 4.5.

        Its label is ``cor:hsic-mmd-equivalence``.
        """
        mean, coupling = self._terms(kernel_z)
        return formulas.expected_squared_mmd(mean, coupling)

    def expected_mmd(self, kernel_z: Gaussian) -> float:
        """Return E_S[MMD(P_{Z|S}, P_Z)], the population EIPM, by adaptive quadrature to 1e-12."""
        return self.eipm_limit(kernel_z, bandwidth=0.0)

    def eipm_limit(self, kernel_z: Gaussian, *, bandwidth: float) -> float:
        """Return the limit of the EIPM estimator as n → ∞ at a fixed smoothing bandwidth γ in S.

        ``E_S[MMD(P_γ(·|S), P_Z)]`` with ``P_γ(·|s) ∝ ∫ P_{Z|S=t}·exp(−(t − s)²/(2γ²)) dP_S(t)``:
        the estimator converges, to a number below E_S[MMD]. γ = 0 is the target itself.
        """
        if not (math.isfinite(bandwidth) and bandwidth >= 0.0):
            raise ValueError(
                f"The smoothing bandwidth is {bandwidth}: pass zero (no smoothing) or a positive "
                "number."
            )
        mean, coupling = self._terms(kernel_z)
        if coupling == 0.0:
            return 0.0
        # Smoothing at bandwidth γ leaves S with mean κs and variance 1 − κ around s.
        kappa = 1.0 / (1.0 + bandwidth * bandwidth)
        # √(MMD²) is a hyperbola near s = 0, bent at |s| ≈ √(κq)/κ: panels grow geometrically from
        # there.
        bend = math.sqrt(coupling / kappa)
        cuts: list[float] = []
        if bend < REACH:
            last = int(math.log(REACH / bend, 3.0))
            cuts = [bend * 3.0**j for j in range(last + 1)]

        def mmd(s: float) -> float:
            squared = formulas.conditional_squared_mmd(mean, coupling, s, shrinkage=kappa)
            return math.sqrt(squared)

        return 2.0 * normal_expectation(mmd, cuts=cuts, lower=0.0)

    def mercer(self, kernel_s: Gaussian) -> MercerSystem:
        """Return the eigensystem of T_S under S ~ N(0, 1), in closed form."""
        return MercerSystem(gaussian_bandwidth(kernel_s, name="kernel_s"))

    def delta_coefficients(self, kernel_z: Gaussian, kernel_s: Gaussian, *, m: int) -> np.ndarray:
        """Return ‖⟨Δ, ψ_l⟩‖² for the first m eigenfunctions of T_S, Δ(s) = μ_{Z|S=s} − μ_Z."""
        mean, coupling = self._terms(kernel_z)
        return _mercer.delta_coefficients(self.mercer(kernel_s), mean, coupling, m)

    def spectral_tail(self, kernel_z: Gaussian, kernel_s: Gaussian, *, m: int) -> float:
        """Return ρ_m² = ‖(I − P_m)Δ‖², P_m onto m eigenfunctions: the remainder of Theorem 4.5."""
        mean, coupling = self._terms(kernel_z)
        return _mercer.spectral_tail(self.mercer(kernel_s), mean, coupling, m)

    def centered_spectrum(
        self, kernel_z: Gaussian, kernel_s: Gaussian, *, m: int
    ) -> CenteredSpectrum:
        """Return m leading eigenvalues of the centred operator, and Δ along its eigenfunctions."""
        mean, coupling = self._terms(kernel_z)
        return _mercer.centered_spectrum(self.mercer(kernel_s), mean, coupling, m)

    def sample(
        self,
        n: int,
        *,
        random_state: RandomState = None,
        dtype: torch.dtype = torch.float64,
        device: torch.device | str | None = None,
        batch: Sequence[int] = (),
    ) -> tuple[Tensor, Tensor]:
        """Draw ``z`` of shape ``(*batch, n, 1)`` and ``s`` of shape ``(*batch, n)``."""
        # Drawn where the generator lives, then moved: the same stream for every device.
        generator = as_generator(random_state)
        where = generator.device if generator is not None else device
        drawn = torch.randn(2, *batch, n, generator=generator, dtype=dtype, device=where)
        z, noise = drawn.to(device or where)
        s = self.rho * z + math.sqrt(1.0 - self.rho**2) * noise
        return z.unsqueeze(-1), s
