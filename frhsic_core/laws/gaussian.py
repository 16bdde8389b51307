"""Jointly Gaussian laws with exact answers: the standard pair, and a vector Z with a scalar attribute.

S ~ N(0, 1), and Z in R^d is centred and jointly Gaussian with it. HSIC, E[MMD²] and the conditional MMD under Gaussian
kernels are determinants of Gaussian integrals; E[MMD] is one adaptive integral over S. Every estimator of the library
is compared with these numbers, and nothing here imports an estimator.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from frhsic_core.arrays import ArrayLike, RandomState, as_generator, as_tensor
from frhsic_core.kernels import Gaussian
from frhsic_core.laws import formulas, mercer
from frhsic_core.laws.heads import Head, KernelHead, LinearHead, gaussian_bandwidth
from frhsic_core.laws.mercer import CenteredSpectrum, MercerSystem
from frhsic_core.laws.quadrature import REACH, normal_expectation, sign_changes


class JointGaussian(ABC):
    """Jointly Gaussian Z in R^d and S ~ N(0, 1), with every criterion under Gaussian kernels.

    A subclass gives its covariances, its coupling, its mean kernel and how it is sampled; the formulas are in
    :mod:`frhsic_core.laws.formulas`, the spectrum in :mod:`frhsic_core.laws.mercer`.
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
        """Largest Corr(f(Z), g(S)) over all square-integrable f and g, the canonical correlation √(cᵀΣ_Z⁻¹c)."""

    @abstractmethod
    def coupling(self, kernel_z: Gaussian) -> float:
        """Return the coupling q = cᵀ(σ²I + 2Σ_Z)⁻¹c, zero exactly under independence."""

    @abstractmethod
    def mean_kernel_z(self, kernel_z: Gaussian) -> float:
        """Return μ_K = E k(Z, Z') for independent copies."""

    @abstractmethod
    def hsic_z(self, kernel_z: Gaussian) -> float:
        """Return HSIC(Z, Z), what :meth:`normalized_hsic` divides by."""

    def mean_kernel_s(self, kernel_s: Gaussian) -> float:
        """Return μ_L = E l(S, S') for independent copies."""
        return formulas.mean_kernel(gaussian_bandwidth(kernel_s, name="kernel_s"))

    def hsic_s(self, kernel_s: Gaussian) -> float:
        """Return HSIC(S, S), what :meth:`normalized_hsic` divides by."""
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
        """Return HSIC(Z, S) in closed form (Definition 2.1, ``def:hsic``)."""
        b = gaussian_bandwidth(kernel_s, name="kernel_s")
        return formulas.hsic(self.mean_kernel_z(kernel_z), self.coupling(kernel_z), b)

    def normalized_hsic(self, kernel_z: Gaussian, kernel_s: Gaussian) -> float:
        """Return HSIC(Z, S)/√(HSIC(Z, Z)·HSIC(S, S)), in [0, 1)."""
        return self.hsic(kernel_z, kernel_s) / math.sqrt(self.hsic_z(kernel_z) * self.hsic_s(kernel_s))

    def conditional_mmd(self, kernel_z: Gaussian, s: Any, *, smoothing: float = 0.0) -> np.ndarray:
        """Return MMD(P_{Z|S=s}, P_Z) at each s, in closed form.

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
        """Return E_S[MMD²(P_{Z|S}, P_Z)], the middle of Theorem 4.5 (``cor:hsic-mmd-equivalence``)."""
        return formulas.expected_squared_mmd(self.mean_kernel_z(kernel_z), self.coupling(kernel_z))

    def expected_mmd(self, kernel_z: Gaussian) -> float:
        """Return E_S[MMD(P_{Z|S}, P_Z)], the population EIPM, by adaptive quadrature to 1e-12."""
        return self.eipm_limit(kernel_z, bandwidth=0.0)

    def eipm_limit(self, kernel_z: Gaussian, *, bandwidth: float, power: int = 1) -> float:
        """Return the limit of the EIPM estimator as n → ∞ at a fixed smoothing bandwidth γ in S.

        ``E_S[MMD(P_γ(·|S), P_Z)^power]`` with ``P_γ(·|s) ∝ ∫ P_{Z|S=t}·exp(−(t − s)²/(2γ²)) dP_S(t)``: the estimator
        converges, to a number below E_S[MMD]. γ = 0 is the target itself. Closed form for ``power=2``, else quadrature.
        """
        if power not in (1, 2):
            raise ValueError(f"power is {power}: pass 1 for E[MMD], or 2 for E[MMD²].")
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

    def _require_dimension(self, head: Head) -> None:
        if head.dimension != self.dimension:
            raise ValueError(
                f"The head has {head.dimension} coordinates but Z has {self.dimension}: both need the same number."
            )

    def _slope(self, head: LinearHead) -> float:
        """Return the slope w·c of m_f(s) = (w·c)·s."""
        self._require_dimension(head)
        return float(np.array(head.weights) @ self.cross_covariance)

    def _head_terms(self, head: KernelHead) -> tuple[np.ndarray, np.ndarray, float]:
        """Return a_j·E k(c_j, Z), the tilts u_j and the head coupling h (see :mod:`frhsic_core.laws.formulas`)."""
        self._require_dimension(head)
        sigma, c = gaussian_bandwidth(head.kernel, name="the head's kernel"), self.cross_covariance
        centers, matrix = np.array(head.centers), sigma**2 * np.eye(self.dimension) + self.covariance
        solved = np.linalg.solve(matrix, np.column_stack([c, centers.T]))
        determinant = np.linalg.det(matrix / sigma**2)
        means = np.exp(-0.5 * (centers.T * solved[:, 1:]).sum(0)) / math.sqrt(determinant)
        return np.array(head.coefficients) * means, c @ solved[:, 1:], float(c @ solved[:, 0])

    def conditional_gap(self, head: Head, s: Any, *, smoothing: float = 0.0) -> np.ndarray:
        """Return m_f(s) = E[f(Z) | S = s] − E f(Z) at each s; ``smoothing`` as in :meth:`conditional_mmd`."""
        s, kappa = np.asarray(s, dtype=np.float64), shrinkage(smoothing)
        if isinstance(head, LinearHead):
            return self._slope(head) * kappa * s
        means, tilts, h = self._head_terms(head)
        root = math.sqrt(kappa)
        terms = formulas.head_gap(means, root * tilts, kappa * h, root * s[..., None], sqrt=np.sqrt, expm1=np.expm1)
        return terms.sum(-1)

    def gdp(self, head: Head, *, smoothing: float = 0.0) -> float:
        """Return E_S|m_f(S)|; with γ > 0 the limit of a Nadaraya–Watson estimate at that fixed bandwidth.

        A closed form for a linear head, else adaptive quadrature between the sign changes of m_f.
        """
        kappa = shrinkage(smoothing)
        if isinstance(head, LinearHead):
            return abs(self._slope(head)) * kappa * math.sqrt(2.0 / math.pi)
        _, tilts, h = self._head_terms(head)
        if h == 0.0:
            return 0.0
        # Bumps of m_f can be narrow against the unit scale of S: the panels must find each of them.
        centers, width = tilts / (kappa * h), math.sqrt((1.0 - kappa * h) / h) / kappa
        cuts = np.unique(np.concatenate([centers + step * width for step in (-6.0, -2.0, 0.0, 2.0, 6.0)]))

        def gap(s: np.ndarray) -> np.ndarray:
            return self.conditional_gap(head, s, smoothing=smoothing)

        zeros = sign_changes(gap, near=cuts)
        return normal_expectation(lambda s: abs(float(gap(np.array(s)))), cuts=[*cuts, *zeros])

    def expected_squared_gap(self, head: Head) -> float:
        """Return E_S[m_f(S)²] in closed form: the right-hand side of Jensen's step in Corollary 4.6; O(m²)."""
        if isinstance(head, LinearHead):
            return self._slope(head) ** 2
        means, tilts, h = self._head_terms(head)
        covariance = formulas.head_squared_gap(tilts[:, None], tilts, h, sqrt=np.sqrt, expm1=np.expm1)
        return float(means @ covariance @ means)

    def mercer(self, kernel_s: Gaussian) -> MercerSystem:
        """Return the eigensystem of T_S under S ~ N(0, 1), in closed form."""
        return MercerSystem(gaussian_bandwidth(kernel_s, name="kernel_s"))

    def delta_coefficients(self, kernel_z: Gaussian, kernel_s: Gaussian, *, m: int) -> np.ndarray:
        """Return ‖⟨Δ, ψ_l⟩‖² for the first m eigenfunctions of T_S, Δ(s) = μ_{Z|S=s} − μ_Z."""
        terms = self.mean_kernel_z(kernel_z), self.coupling(kernel_z)
        return mercer.delta_coefficients(self.mercer(kernel_s), *terms, m)

    def spectral_tail(self, kernel_z: Gaussian, kernel_s: Gaussian, *, m: int) -> float:
        """Return ρ_m² = ‖(I − P_m)Δ‖², P_m onto the first m eigenfunctions: the remainder of Theorem 4.5."""
        terms = self.mean_kernel_z(kernel_z), self.coupling(kernel_z)
        return mercer.spectral_tail(self.mercer(kernel_s), *terms, m)

    def centered_spectrum(self, kernel_z: Gaussian, kernel_s: Gaussian, *, m: int) -> CenteredSpectrum:
        """Return the m leading eigenvalues of the centred operator, and Δ along its eigenfunctions."""
        terms = self.mean_kernel_z(kernel_z), self.coupling(kernel_z)
        return mercer.centered_spectrum(self.mercer(kernel_s), *terms, m)

    def head_coefficients(self, head: KernelHead, kernel_s: Gaussian, *, m: int) -> np.ndarray:
        """Return ⟨m_f, ψ_l⟩ for l < m: E[m_f²] less their squares is r²_{m,f} of Corollary 4.6."""
        return mercer.head_coefficients(self.mercer(kernel_s), *self._head_terms(head), m)

    @property
    def mutual_information(self) -> float:
        """I(Z; S) = −log(1 − R²)/2 in nats, R the canonical correlation."""
        # + 0.0 turns the −0.0 of independence into a plain zero.
        return -0.5 * math.log1p(-(self.maximal_correlation**2)) + 0.0

    def sample(
        self,
        n: int,
        *,
        random_state: RandomState = None,
        dtype: torch.dtype = torch.float64,
        device: torch.device | str | None = None,
        batch: Sequence[int] = (),
    ) -> tuple[Tensor, Tensor]:
        """Draw ``z`` of shape ``(*batch, n, d)`` and ``s`` of shape ``(*batch, n)``; O(nd²) time, O(nd) memory."""
        # Drawn where the generator lives, then moved: the same stream for every device.
        generator = as_generator(random_state)
        where = generator.device if generator is not None else device

        def normal(*shape: int) -> Tensor:
            return torch.randn(*shape, generator=generator, dtype=dtype, device=where).to(device or where)

        return self._draw(normal, (*batch, n))

    @abstractmethod
    def _draw(self, normal: Callable[..., Tensor], shape: tuple[int, ...]) -> tuple[Tensor, Tensor]:
        """Draw ``z (*shape, d)`` and ``s`` of ``shape`` from standard normal numbers, ``normal(*shape)``."""


def shrinkage(bandwidth: float) -> float:
    """Return κ = 1/(1 + γ²): smoothing at bandwidth γ leaves S with mean κs and variance 1 − κ around s."""
    if not (math.isfinite(bandwidth) and bandwidth >= 0.0):
        raise ValueError(f"The smoothing bandwidth is {bandwidth}: pass zero (no smoothing) or a positive number.")
    return 1.0 / (1.0 + bandwidth * bandwidth)


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
    >>> z, s = law.sample(5, random_state=torch.Generator().manual_seed(0))
    >>> tuple(z.shape), tuple(s.shape)
    ((5, 1), (5,))
    """

    rho: float

    def __post_init__(self) -> None:
        if not abs(self.rho) < 1.0:
            raise ValueError(f"rho is {self.rho}: pass a correlation strictly between -1 and 1.")

    @property
    def covariance(self) -> np.ndarray:
        return np.eye(1)

    @property
    def cross_covariance(self) -> np.ndarray:
        return np.array([float(self.rho)])

    @property
    def maximal_correlation(self) -> float:
        """``|ρ|`` (Gebelein 1941)."""
        return abs(self.rho)

    def coupling(self, kernel_z: Gaussian) -> float:
        """Return the coupling q = ρ²/(σ² + 2)."""
        return formulas.pair_coupling(self.rho, gaussian_bandwidth(kernel_z, name="kernel_z"))

    def mean_kernel_z(self, kernel_z: Gaussian) -> float:
        """Return μ_K = σ/√(σ² + 2)."""
        return formulas.mean_kernel(gaussian_bandwidth(kernel_z, name="kernel_z"))

    def hsic_z(self, kernel_z: Gaussian) -> float:
        """Return HSIC(Z, Z): the pair at correlation one."""
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

    def _draw(self, normal: Callable[..., Tensor], shape: tuple[int, ...]) -> tuple[Tensor, Tensor]:
        z, noise = normal(2, *shape)
        return z.unsqueeze(-1), self.rho * z + math.sqrt(1.0 - self.rho**2) * noise


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
    >>> z, s = law.sample(6, batch=(2,), random_state=torch.Generator().manual_seed(0))
    >>> tuple(z.shape), tuple(s.shape)
    ((2, 6, 2), (2, 6))
    """

    cross: tuple[float, ...]
    covariance_rows: tuple[tuple[float, ...], ...]

    def __init__(self, cross_covariance: ArrayLike, covariance: ArrayLike | None = None) -> None:
        c = as_tensor(cross_covariance, name="cross_covariance").detach().cpu().double().numpy()
        if c.ndim != 1 or c.size == 0:
            raise ValueError(
                f"cross_covariance has shape {c.shape}: pass one number for each coordinate of Z, shape (d,)."
            )
        if covariance is None:
            matrix = np.eye(c.size)
        else:
            matrix = as_tensor(covariance, name="covariance").detach().cpu().double().numpy()
        if matrix.shape != (c.size, c.size):
            raise ValueError(
                f"covariance has shape {matrix.shape} but cross_covariance has {c.size} entries: "
                f"pass shape ({c.size}, {c.size})."
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
        return np.array(self.cross)

    @property
    def covariance(self) -> np.ndarray:
        return np.array(self.covariance_rows)

    @property
    def maximal_correlation(self) -> float:
        """√(cᵀΣ_Z⁻¹c), since the best f is linear, f(z) = cᵀΣ_Z⁻¹z."""
        c = self.cross_covariance
        return math.sqrt(c @ np.linalg.solve(self.covariance, c))

    def coupling(self, kernel_z: Gaussian) -> float:
        """Return the coupling q = cᵀ(σ²I + 2Σ_Z)⁻¹c; O(d³)."""
        sigma, c = gaussian_bandwidth(kernel_z, name="kernel_z"), self.cross_covariance
        return float(c @ np.linalg.solve(sigma**2 * np.eye(self.dimension) + 2.0 * self.covariance, c))

    def _relative_variances(self, kernel_z: Gaussian) -> np.ndarray:
        return np.linalg.eigvalsh(self.covariance) / gaussian_bandwidth(kernel_z, name="kernel_z") ** 2

    def mean_kernel_z(self, kernel_z: Gaussian) -> float:
        """Return μ_K = det(I + 2Σ_Z/σ²)^(−1/2)."""
        return float(np.prod(1.0 + 2.0 * self._relative_variances(kernel_z)) ** -0.5)

    def hsic_z(self, kernel_z: Gaussian) -> float:
        """Return HSIC(Z, Z) = E k² − 2·E[k(Z, Z')k(Z, Z'')] + (E k)², products over the eigenvalues of Σ_Z."""
        w = self._relative_variances(kernel_z)
        squared = np.prod(1.0 + 4.0 * w) ** -0.5
        shared = np.prod((1.0 + 3.0 * w) * (1.0 + w)) ** -0.5
        return float(squared - 2.0 * shared + self.mean_kernel_z(kernel_z) ** 2)

    def _draw(self, normal: Callable[..., Tensor], shape: tuple[int, ...]) -> tuple[Tensor, Tensor]:
        c, d = self.cross_covariance, self.dimension
        noise = normal(*shape, d + 1)
        s = noise[..., d]
        factor = torch.as_tensor(np.linalg.cholesky(self.covariance - np.outer(c, c))).to(s)
        slope = torch.as_tensor(c).to(s)
        return noise[..., :d] @ factor.mT + s.unsqueeze(-1) * slope, s
