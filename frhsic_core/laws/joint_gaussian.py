"""What every jointly Gaussian law shares: kernel answers, heads, and the spectrum of its conditional embedding.

S ~ N(0, 1), and Z in R^d is centred and jointly Gaussian with it. HSIC, E[MMD²] and the conditional MMD under Gaussian
kernels are determinants of Gaussian integrals; E[MMD] is one adaptive integral over S. These are the numbers every
estimator of the library is held against; nothing here knows the estimators.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from frhsic_core.kernels import Gaussian
from frhsic_core.laws import formulas, heads, spectrum
from frhsic_core.laws.heads import Head, KernelHead, gaussian_bandwidth
from frhsic_core.laws.mercer import MercerSystem
from frhsic_core.laws.quadrature import REACH, normal_expectation
from frhsic_core.laws.spectrum import CentredSpectrum

__all__ = ["JointGaussian"]


class JointGaussian(ABC):
    """Jointly Gaussian Z in R^d and S ~ N(0, 1): every answer a Gaussian kernel can ask for.

    A subclass says its covariances, its coupling, its mean kernel and how it is sampled; the formulas are in
    :mod:`frhsic_core.laws.formulas`, heads in :mod:`frhsic_core.laws.heads`, the spectrum in
    :mod:`frhsic_core.laws.spectrum`.
    """

    @property
    @abstractmethod
    def covariance(self) -> np.ndarray:
        """Σ_Z, shape ``(d, d)``."""

    @property
    @abstractmethod
    def cross_covariance(self) -> np.ndarray:
        """Return c = Cov(Z, S), shape ``(d,)``."""

    @property
    def dimension(self) -> int:
        """Dimension d of Z."""
        return len(self.cross_covariance)

    @property
    @abstractmethod
    def maximal_correlation(self) -> float:
        """Largest Corr(f(Z), g(S)) over all square-integrable f, g, the canonical correlation √(cᵀΣ_Z⁻¹c)."""

    @abstractmethod
    def coupling(self, kernel_z: Gaussian) -> float:
        """Coupling q = cᵀ(σ²I + 2Σ_Z)⁻¹c, zero exactly under independence."""

    @abstractmethod
    def mean_kernel_z(self, kernel_z: Gaussian) -> float:
        """μ_K = E k(Z, Z') for independent copies."""

    @abstractmethod
    def hsic_z(self, kernel_z: Gaussian) -> float:
        """HSIC(Z, Z), what :meth:`normalized_hsic` divides by."""

    def mean_kernel_s(self, kernel_s: Gaussian) -> float:
        """μ_L = E l(S, S') for independent copies."""
        return formulas.mean_kernel(gaussian_bandwidth(kernel_s, name="kernel_s"))

    def hsic_s(self, kernel_s: Gaussian) -> float:
        """HSIC(S, S), what :meth:`normalized_hsic` divides by."""
        b = gaussian_bandwidth(kernel_s, name="kernel_s")
        # A copy of S is a pair at correlation one.
        return formulas.hsic(formulas.mean_kernel(b), formulas.pair_coupling(1.0, b), b)

    def null_mean(self, kernel_z: Gaussian, kernel_s: Gaussian, *, n: int | None = None) -> float:
        """Return what n·HSIC_b would have as mean if Z and S with these marginals were independent.

        (1 − μ_K)(1 − μ_L)(1 − 1/n); ``n=None`` is the limit. The biased estimator never falls below it on average.
        """
        limit = (1.0 - self.mean_kernel_z(kernel_z)) * (1.0 - self.mean_kernel_s(kernel_s))
        return limit if n is None else limit * (1.0 - 1.0 / n)

    def hsic(self, kernel_z: Gaussian, kernel_s: Gaussian) -> float:
        """HSIC(Z, S) in closed form (Definition 2.1, ``def:hsic``)."""
        b = gaussian_bandwidth(kernel_s, name="kernel_s")
        return formulas.hsic(self.mean_kernel_z(kernel_z), self.coupling(kernel_z), b)

    def normalized_hsic(self, kernel_z: Gaussian, kernel_s: Gaussian) -> float:
        """HSIC(Z, S)/√(HSIC(Z, Z)·HSIC(S, S)), in [0, 1)."""
        return self.hsic(kernel_z, kernel_s) / math.sqrt(self.hsic_z(kernel_z) * self.hsic_s(kernel_s))

    def conditional_mmd(self, kernel_z: Gaussian, s: Any, *, smoothing: float = 0.0) -> np.ndarray:
        """MMD(P_{Z|S=s}, P_Z) at each s, in closed form.

        Parameters
        ----------
        kernel_z : Gaussian
        s : array_like
            Values of the sensitive attribute, any shape.
        smoothing : float
            With γ > 0, the law of Z under Nadaraya–Watson weights of bandwidth γ around s takes the place of the law
            given S = s.

        Returns
        -------
        numpy.ndarray
            Same shape as ``s``, float64.
        """
        squared = formulas.conditional_squared_mmd(
            self.mean_kernel_z(kernel_z),
            self.coupling(kernel_z),
            np.asarray(s, dtype=np.float64),
            shrinkage=shrinkage(smoothing),
            sqrt=np.sqrt,
            expm1=np.expm1,
        )
        return np.sqrt(squared)

    def expected_squared_mmd(self, kernel_z: Gaussian) -> float:
        """E_S[MMD²(P_{Z|S}, P_Z)] in closed form, the middle of Theorem 4.5 (``cor:hsic-mmd-equivalence``)."""
        return formulas.expected_squared_mmd(self.mean_kernel_z(kernel_z), self.coupling(kernel_z))

    def expected_mmd(self, kernel_z: Gaussian) -> float:
        """E_S[MMD(P_{Z|S}, P_Z)], the population EIPM, by adaptive quadrature to 1e-12."""
        return self.eipm_limit(kernel_z, bandwidth=0.0)

    def eipm_limit(self, kernel_z: Gaussian, *, bandwidth: float, power: int = 1) -> float:
        """Limit of the EIPM estimator as n → ∞ at a fixed smoothing bandwidth γ in S.

        ``E_S[MMD(P_γ(·|S), P_Z)^power]`` with ``P_γ(·|s) ∝ ∫ P_{Z|S=t}·exp(−(t − s)²/(2γ²)) dP_S(t)``: the estimator
        converges, to a number below E_S[MMD]. γ = 0 is the target itself. Closed form for ``power=2``, else quadrature.
        """
        if power not in (1, 2):
            raise ValueError(f"power is {power}: 1 for E[MMD], 2 for E[MMD²].")
        mean, q, kappa = self.mean_kernel_z(kernel_z), self.coupling(kernel_z), shrinkage(bandwidth)
        if power == 2:
            return formulas.smoothed_expected_squared_mmd(mean, q, shrinkage=kappa)
        if q == 0.0:
            return 0.0
        # √(MMD²) is a hyperbola near s = 0, bent at |s| ≈ √(κq)/κ: panels grow geometrically from there.
        bend = math.sqrt(q / kappa)
        cuts = [bend * 3.0**j for j in range(int(math.log(REACH / bend, 3.0)) + 1)] if bend < REACH else []

        def mmd(s: float) -> float:
            return math.sqrt(formulas.conditional_squared_mmd(mean, q, s, shrinkage=kappa))

        return 2.0 * normal_expectation(mmd, cuts=cuts, lower=0.0)

    def conditional_gap(self, head: Head, s: Any, *, smoothing: float = 0.0) -> np.ndarray:
        """m_f(s) = E[f(Z) | S = s] − E f(Z) at each s, in closed form; ``smoothing`` as in :meth:`conditional_mmd`."""
        return heads.conditional_gap(self, head, s, kappa=shrinkage(smoothing))

    def gdp(self, head: Head, *, smoothing: float = 0.0) -> float:
        """E_S|m_f(S)|; with γ > 0 the limit of a Nadaraya–Watson estimate at that fixed bandwidth."""
        return heads.gdp(self, head, kappa=shrinkage(smoothing))

    def expected_squared_gap(self, head: Head) -> float:
        """E_S[m_f(S)²] in closed form."""
        return heads.expected_squared_gap(self, head)

    def mercer(self, kernel_s: Gaussian) -> MercerSystem:
        """Eigensystem of T_S under S ~ N(0, 1), in closed form."""
        return MercerSystem(gaussian_bandwidth(kernel_s, name="kernel_s"))

    def delta_coefficients(self, kernel_z: Gaussian, kernel_s: Gaussian, *, m: int) -> np.ndarray:
        """‖⟨Δ, ψ_l⟩‖² for the first m eigenfunctions of T_S, Δ(s) = μ_{Z|S=s} − μ_Z."""
        terms = self.mean_kernel_z(kernel_z), self.coupling(kernel_z)
        return spectrum.delta_coefficients(self.mercer(kernel_s), *terms, m)

    def spectral_tail(self, kernel_z: Gaussian, kernel_s: Gaussian, *, m: int) -> float:
        """ρ_m² = ‖(I − P_m)Δ‖², P_m onto the first m eigenfunctions: the remainder of Theorem 4.5."""
        terms = self.mean_kernel_z(kernel_z), self.coupling(kernel_z)
        return spectrum.spectral_tail(self.mercer(kernel_s), *terms, m)

    def centred_spectrum(self, kernel_z: Gaussian, kernel_s: Gaussian, *, m: int) -> CentredSpectrum:
        """Return the m leading eigenvalues of the centred operator, and Δ along its eigenfunctions."""
        terms = self.mean_kernel_z(kernel_z), self.coupling(kernel_z)
        return spectrum.centred_spectrum(self.mercer(kernel_s), *terms, m)

    def head_coefficients(self, head: KernelHead, kernel_s: Gaussian, *, m: int) -> np.ndarray:
        """⟨m_f, ψ_l⟩ for the first m eigenfunctions: E[m_f²] less their squares is r²_{m,f} of Corollary 4.6."""
        return spectrum.head_coefficients(self.mercer(kernel_s), *heads.kernel_head_terms(self, head), m)

    @property
    def mutual_information(self) -> float:
        """I(Z; S) = −log(1 − R²)/2 in nats, R the canonical correlation."""
        # + 0.0 turns the −0.0 of independence into a plain zero.
        return -0.5 * math.log1p(-(self.maximal_correlation**2)) + 0.0

    @abstractmethod
    def sample(
        self,
        n: int,
        *,
        generator: torch.Generator | None = None,
        dtype: torch.dtype = torch.float64,
        device: torch.device | str | None = None,
        batch: Sequence[int] = (),
    ) -> tuple[Tensor, Tensor]:
        """Draw ``z`` of shape ``(*batch, n, d)`` and ``s`` of shape ``(*batch, n)``; O(nd) time and memory."""


def shrinkage(bandwidth: float) -> float:
    """Return κ = 1/(1 + γ²): smoothing at bandwidth γ leaves S with mean κs and variance 1 − κ around s."""
    if not (math.isfinite(bandwidth) and bandwidth >= 0.0):
        raise ValueError(
            f"the smoothing bandwidth is {bandwidth}: it must be zero (no smoothing) or a positive number."
        )
    return 1.0 / (1.0 + bandwidth * bandwidth)


def draw_normal(
    *shape: int, generator: torch.Generator | None, dtype: torch.dtype, device: torch.device | str | None
) -> Tensor:
    """Draw standard normal numbers where the generator lives, then move them: the same stream for every device."""
    where = generator.device if generator is not None else device
    return torch.randn(*shape, generator=generator, dtype=dtype, device=where).to(device or where)
