"""Finite laws of (Z, S): every quantity is a finite sum, every supremum is attained, Fractions stay Fractions."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np
from torch import Tensor

from frhsic_core.arrays import ArrayLike
from frhsic_core.kernels import Kernel, euclidean_distances
from frhsic_core.laws.finite_table import FiniteTable
from frhsic_core.laws.rational import as_table, in_one_arithmetic, is_exact
from frhsic_core.laws.transport import wasserstein

__all__ = ["FiniteLaw", "FiniteMercer"]

Gram = Kernel | ArrayLike  # a kernel, or its matrix on the support


class FiniteMercer(NamedTuple):
    """Positive eigenvalues of T_S, falling, and the values ψ_l(s), shape ``(ns, r)``, orthonormal in L²(P_S)."""

    eigenvalues: np.ndarray
    eigenfunctions: np.ndarray


class FiniteLaw(FiniteTable):
    """(Z, S) with finitely many values.

    Parameters
    ----------
    z_values : array_like
        ``(nz,)`` or ``(nz, d)``.
    s_values : array_like
        ``(ns,)`` or ``(ns, p)``; each needs positive probability.
    probabilities : array_like
        ``(nz, ns)``, non-negative, summing to one. With :class:`fractions.Fraction` entries, and with Gram matrices
        and heads given as Fractions or whole numbers, rational answers come out as Fractions; kernels give floats.

    Examples
    --------
    >>> law = FiniteLaw([0, 1], [0, 1], [[Fraction(3, 8), Fraction(1, 8)], [Fraction(1, 8), Fraction(3, 8)]])
    >>> delta = [[1, 0], [0, 1]]
    >>> law.hsic(delta, delta), law.total_variation()
    (Fraction(1, 16), Fraction(1, 4))
    """

    def _gram(self, kernel: Gram, points: Tensor, name: str) -> np.ndarray:
        if callable(kernel):
            matrix = kernel(points).numpy()
        else:
            matrix = as_table(kernel, name=name, exact=is_exact(self.probabilities))
        if matrix.shape != (len(points), len(points)):
            raise ValueError(f"{name} has shape {matrix.shape}: shape ({len(points)}, {len(points)}) is needed.")
        return matrix

    def gram_z(self, kernel_z: Gram) -> np.ndarray:
        """Gram matrix on the values of Z, ``(nz, nz)``."""
        return self._gram(kernel_z, self.z_points, "kernel_z")

    def gram_s(self, kernel_s: Gram) -> np.ndarray:
        """Gram matrix on the values of S, ``(ns, ns)``."""
        return self._gram(kernel_s, self.s_points, "kernel_s")

    def hsic(self, kernel_z: Gram, kernel_s: Gram) -> Any:
        """Σ D_is·D_jt·K_ij·L_st with D the difference: HSIC(Z, S), a Fraction where everything is rational."""
        difference, k, l = in_one_arithmetic(self.difference, self.gram_z(kernel_z), self.gram_s(kernel_s))
        return _plain(((k @ difference @ l) * difference).sum())

    def hsic_z(self, kernel_z: Gram) -> Any:
        """HSIC(Z, Z)."""
        return _own_hsic(self.p_z, self.gram_z(kernel_z))

    def hsic_s(self, kernel_s: Gram) -> Any:
        """HSIC(S, S)."""
        return _own_hsic(self.p_s, self.gram_s(kernel_s))

    def normalized_hsic(self, kernel_z: Gram, kernel_s: Gram) -> float:
        """HSIC(Z, S)/√(HSIC(Z, Z)·HSIC(S, S)); 0 if either is constant."""
        scale = float(self.hsic_z(kernel_z)) * float(self.hsic_s(kernel_s))
        return float(self.hsic(kernel_z, kernel_s)) / math.sqrt(scale) if scale > 0.0 else 0.0

    def joint_mmd(self, kernel_z: Gram, kernel_s: Gram) -> float:
        """√HSIC: the IPM of joint against product over the unit ball of the product RKHS."""
        return math.sqrt(max(0.0, float(self.hsic(kernel_z, kernel_s))))

    def coco(self, kernel_z: Gram, kernel_s: Gram) -> float:
        """Largest Cov(f(Z), g(S)) over the two unit balls: the leading singular value of the cross-covariance."""
        difference, k, l = (
            array.astype(np.float64) for array in (self.difference, self.gram_z(kernel_z), self.gram_s(kernel_s))
        )
        return float(np.linalg.svd(_root(k) @ difference @ _root(l), compute_uv=False)[0])

    def conditional_squared_mmd(self, kernel_z: Gram) -> np.ndarray:
        """MMD²(P_{Z|S=s}, P_Z) for each s, ``(ns,)``."""
        delta, k = in_one_arithmetic(self.delta, self.gram_z(kernel_z))
        return (delta * (k @ delta)).sum(0)

    def expected_squared_mmd(self, kernel_z: Gram) -> Any:
        """E_S[MMD²(P_{Z|S}, P_Z)]."""
        p_s, squared = in_one_arithmetic(self.p_s, self.conditional_squared_mmd(kernel_z))
        return _plain(p_s @ squared)

    def expected_mmd(self, kernel_z: Gram) -> float:
        """E_S[MMD(P_{Z|S}, P_Z)]: the supremum over RKHS balls taken for each s on its own."""
        squared = self.conditional_squared_mmd(kernel_z).astype(np.float64)
        return float(self.p_s.astype(np.float64) @ np.sqrt(np.maximum(squared, 0.0)))

    def total_variation(self) -> Any:
        """½Σ|D|: total variation of joint against product."""
        return _plain(abs(self.difference).sum() / 2)

    def expected_total_variation(self) -> Any:
        """E_S[TV(P_{Z|S}, P_Z)]; equal to :meth:`total_variation`: its class is decomposable (Corollary 3.4)."""
        return _plain((abs(self.delta).sum(0) / 2) @ self.p_s)

    def wasserstein(
        self, *, metric_z: ArrayLike | None = None, metric_s: ArrayLike | None = None, scale_s: float = 1.0
    ) -> float:
        """W₁ of joint against product under d_Z + ``scale_s``·d_S (Euclidean unless matrices are given)."""
        z, s = _metric(metric_z, self.z_points), scale_s * _metric(metric_s, self.s_points)
        distance = z[:, None, :, None] + s[None, :, None, :]
        size = self.probabilities.size
        return wasserstein(self.difference.reshape(size), distance.reshape(size, size))

    def expected_wasserstein(self, *, metric_z: ArrayLike | None = None) -> float:
        """E_S[W₁(P_{Z|S}, P_Z)]: an upper bound of :meth:`wasserstein`, its limit as ``scale_s`` grows."""
        metric, delta = _metric(metric_z, self.z_points), self.delta
        return math.fsum(float(q) * wasserstein(delta[:, s], metric) for s, q in enumerate(self.p_s))

    def conditional_gap(self, head: ArrayLike) -> np.ndarray:
        """m_f(s) = E[f(Z) | S = s] − E f(Z), ``(ns,)``, for a head given by its values on ``z_values``."""
        values = as_table(head, name="head", exact=is_exact(self.probabilities))
        if values.shape != (len(self.z_points),):
            raise ValueError(f"head has shape {values.shape}: one value for each of the {len(self.z_points)} z values.")
        values, delta = in_one_arithmetic(values, self.delta)
        return values @ delta

    def gdp(self, head: ArrayLike) -> Any:
        """E_S|m_f(S)|, generalised demographic parity."""
        gap, p_s = in_one_arithmetic(self.conditional_gap(head), self.p_s)
        return _plain(abs(gap) @ p_s)

    def expected_squared_gap(self, head: ArrayLike) -> Any:
        """E_S[m_f(S)²]."""
        gap, p_s = in_one_arithmetic(self.conditional_gap(head), self.p_s)
        return _plain((gap * gap) @ p_s)

    def dp_gap(self, head: ArrayLike) -> Any:
        """``|E[f | S = s₁] − E[f | S = s₀]|`` for two-valued S; :meth:`gdp` is 2·P(s₀)·P(s₁) times it, not it."""
        if len(self.s_points) != 2:
            raise ValueError(f"S has {len(self.s_points)} values: demographic parity compares two; use gdp.")
        gap = self.conditional_gap(head)
        return _plain(abs(gap[1] - gap[0]))

    @property
    def mutual_information(self) -> float:
        """I(Z; S) in nats."""
        joint = self.probabilities.astype(np.float64)
        product = np.multiply.outer(self.p_z, self.p_s).astype(np.float64)
        held = joint > 0.0
        return math.fsum(joint[held] * np.log(joint[held] / product[held]))

    @property
    def maximal_correlation(self) -> float:
        """Largest correlation of f(Z) with g(S), a singular value, which kHGR approaches as its ridge vanishes."""
        p_z, p_s = self.p_z.astype(np.float64), self.p_s.astype(np.float64)
        held = p_z > 0.0
        scaled = self.difference.astype(np.float64)[held] / np.sqrt(np.multiply.outer(p_z[held], p_s))
        return float(np.linalg.svd(scaled, compute_uv=False)[0])

    def mercer(self, kernel_s: Gram, *, centred: bool = False) -> FiniteMercer:
        """Eigensystem of T_S in L²(P_S), or of (I − 1⊗1)T_S(I − 1⊗1); eigenvalues above ns·eps·λ_max are kept."""
        l, weight = self.gram_s(kernel_s).astype(np.float64), self.p_s.astype(np.float64)
        root = np.sqrt(weight)
        matrix = root[:, None] * l * root
        if centred:
            centring = np.eye(len(root)) - np.outer(root, root)
            matrix = centring @ matrix @ centring
        values, vectors = np.linalg.eigh(matrix)
        keep = np.flatnonzero(values > len(root) * np.finfo(np.float64).eps * max(values[-1], 0.0))[::-1]
        return FiniteMercer(values[keep], vectors[:, keep] / root[:, None])

    def delta_coefficients(self, kernel_z: Gram, kernel_s: Gram, *, centred: bool = False) -> np.ndarray:
        """‖⟨Δ, ψ_l⟩‖² in F_Z along :meth:`mercer`: times the eigenvalues they sum to HSIC."""
        system = self.mercer(kernel_s, centred=centred)
        along = (self.difference.astype(np.float64)) @ system.eigenfunctions
        return (along * (self.gram_z(kernel_z).astype(np.float64) @ along)).sum(0)

    def spectral_tail(self, kernel_z: Gram, kernel_s: Gram, *, m: int) -> float:
        """ρ_m² = ‖(I − P_m)Δ‖², what the first m eigenfunctions of T_S leave of E[MMD²]."""
        if m < 0:
            raise ValueError(f"m is {m}: a number of eigenfunctions, zero or more, is needed.")
        system = self.mercer(kernel_s)
        m = min(m, len(system.eigenvalues))
        psi, weight = system.eigenfunctions[:, :m], self.p_s.astype(np.float64)
        delta = self.delta.astype(np.float64)
        left = delta - (delta * weight) @ psi @ psi.T
        return float(((left * (self.gram_z(kernel_z).astype(np.float64) @ left)).sum(0)) @ weight)


def _plain(x: Any) -> Any:
    """Fractions stay, NumPy scalars become floats."""
    return x if isinstance(x, Fraction) else float(x)


def _own_hsic(p: np.ndarray, gram: np.ndarray) -> Any:
    p, k = in_one_arithmetic(p, gram)
    square = p @ (k * k) @ p
    row = k @ p
    return _plain(square - 2 * (p @ (row * row)) + (p @ row) ** 2)


def _root(gram: np.ndarray) -> np.ndarray:
    values, vectors = np.linalg.eigh(gram)
    return vectors * np.sqrt(np.maximum(values, 0.0)) @ vectors.T


def _metric(metric: ArrayLike | None, points: Tensor) -> np.ndarray:
    if metric is None:
        return euclidean_distances(points).numpy()
    matrix = as_table(metric, name="metric").astype(np.float64)
    if matrix.shape != (len(points), len(points)):
        raise ValueError(f"a metric has shape {matrix.shape}: shape ({len(points)}, {len(points)}) is needed.")
    return matrix
