"""Finite laws of (Z, S): every quantity is a finite sum, every supremum is attained, Fractions stay Fractions.

A NumPy array of dtype ``object`` that holds :class:`fractions.Fraction` goes through sums and
matrix products without rounding. If one operand holds floats, the whole computation is float64.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from typing import Any, NamedTuple, Self

import numpy as np
import torch
from scipy.optimize import linprog
from scipy.sparse import coo_array
from torch import Tensor

from frhsic_core._arrays import ArrayLike, RandomState, as_generator, as_tensor
from frhsic_core.kernels import Kernel, euclidean_distances

Gram = Kernel | ArrayLike  # a kernel, or its matrix on the support


def as_table(x: Any, *, name: str, exact: bool = False) -> np.ndarray:
    """Read nested numbers as Fractions where all are whole or Fractions and one is a Fraction, else as float64.

    Parameters
    ----------
    x : array_like
    name : str
        How errors call it.
    exact : bool
        Whole numbers alone become Fractions too.

    Examples
    --------
    >>> as_table([[Fraction(1, 3), 0]], name="table")
    array([[Fraction(1, 3), Fraction(0, 1)]], dtype=object)
    >>> as_table([[0.5, 0.5]], name="table").dtype
    dtype('float64')
    """
    if isinstance(x, Tensor):
        x = x.detach().cpu()
    raw = np.array(x, dtype=object) if isinstance(x, (list, tuple)) else np.asarray(x)
    entries = list(raw.flat) if raw.dtype.kind in "Oiu" else []
    rational = len(entries) > 0 and all(
        isinstance(entry, (int, np.integer, Fraction)) for entry in entries
    )
    if rational and (exact or any(isinstance(entry, Fraction) for entry in entries)):
        table = np.empty(raw.size, dtype=object)
        table[:] = [
            entry if isinstance(entry, Fraction) else Fraction(int(entry)) for entry in entries
        ]
        return table.reshape(raw.shape)
    return as_tensor(x, name=name).double().numpy()


def is_exact(x: np.ndarray) -> bool:
    """Return whether the array holds Fractions."""
    return x.dtype == object


def in_one_arithmetic(*arrays: np.ndarray) -> list[np.ndarray]:
    """Return the arrays as they are if all hold Fractions, else all as float64."""
    if all(is_exact(array) for array in arrays):
        return list(arrays)
    return [array.astype(np.float64) for array in arrays]


def wasserstein(difference: np.ndarray, distance: np.ndarray) -> float:
    """Return W₁(P, Q) = sup{Σ f_i(P_i − Q_i) : |f_i − f_j| ≤ d_ij} from P − Q and the distance matrix.

    Under a metric, mass that both laws share stays where it is: only the positive part is carried
    to the negative one. A linear program with at most (n/2)² variables, solved by the simplex
    method (HiGHS), accurate to about 1e-10.

    Parameters
    ----------
    difference : ndarray
        ``(n,)``, sums to zero.
    distance : ndarray
        ``(n, n)``, a metric.

    Examples
    --------
    >>> line = np.abs(np.subtract.outer(np.arange(3.0), np.arange(3.0)))
    >>> wasserstein(np.array([0.5, 0.0, -0.5]), line)
    1.0
    """
    difference, distance = (
        np.asarray(difference, dtype=np.float64),
        np.asarray(distance, dtype=np.float64),
    )
    if not (np.isfinite(distance).all() and (distance >= 0.0).all()):
        raise ValueError("distance has negative, NaN or infinite entries: pass a metric.")
    sources, targets = np.flatnonzero(difference > 0.0), np.flatnonzero(difference < 0.0)
    supply, demand = difference[sources], -difference[targets]
    if supply.size == 0 or demand.size == 0:
        return 0.0
    # Solve at total mass one: the solver's tolerances are absolute, and a small difference would
    # fall below them.
    mass = 0.5 * (supply.sum() + demand.sum())
    supply, demand = supply / supply.sum(), demand / demand.sum()
    cost = distance[np.ix_(sources, targets)]
    rows, columns = np.indices(cost.shape)
    variables = np.arange(cost.size)
    index = np.concatenate([rows.ravel(), columns.ravel() + len(sources)])
    marginals = coo_array((np.ones(2 * cost.size), (index, np.tile(variables, 2)))).tocsr()
    # One marginal constraint follows from the others; dropping it keeps rounding from making the
    # program infeasible.
    right = np.concatenate([supply, demand])[:-1]
    result = linprog(
        cost.ravel(), A_eq=marginals[:-1], b_eq=right, bounds=(0.0, None), method="highs-ds"
    )
    if result.status != 0:
        raise ArithmeticError(f"The transport program was not solved: {result.message}")
    return float(result.fun * mass)


class FiniteMercer(NamedTuple):
    """Positive eigenvalues of T_S, falling, and the values ψ_l(s), shape ``(ns, r)``, orthonormal in L²(P_S)."""

    eigenvalues: np.ndarray
    eigenfunctions: np.ndarray


class FiniteLaw:
    """(Z, S) with finitely many values.

    Parameters
    ----------
    z_values : array_like
        ``(nz,)`` or ``(nz, d)``.
    s_values : array_like
        ``(ns,)`` or ``(ns, p)``; each needs positive probability.
    probabilities : array_like
        ``(nz, ns)``, non-negative, summing to one. With :class:`fractions.Fraction` entries, and
        with Gram matrices and heads given as Fractions or whole numbers, rational answers come out
        as Fractions; kernels give floats.

    Examples
    --------
    >>> law = FiniteLaw([0, 1], [0, 1], [[Fraction(3, 8), Fraction(1, 8)], [Fraction(1, 8), Fraction(3, 8)]])
    >>> delta = [[1, 0], [0, 1]]
    >>> law.hsic(delta, delta), law.total_variation()
    (Fraction(1, 16), Fraction(1, 4))
    """

    def __init__(self, z_values: ArrayLike, s_values: ArrayLike, probabilities: ArrayLike) -> None:
        table = as_table(probabilities, name="probabilities")
        if table.ndim != 2 or table.size == 0:
            raise ValueError(f"probabilities has shape {table.shape}: pass a table (nz, ns).")
        if not is_exact(table) and not np.isfinite(table).all():
            raise ValueError(
                "probabilities has NaN or infinite entries: each must be a number in [0, 1]."
            )
        if (table < 0).any():
            raise ValueError(
                f"probabilities has a negative entry ({table.min()}): each must be zero or positive."
            )
        total = table.sum()
        if (total != 1) if is_exact(table) else abs(total - 1.0) > 1e-12:
            raise ValueError(
                f"probabilities sum to {total}: they must sum to one; divide by their sum."
            )
        if (table.sum(0) == 0).any():
            empty = int(np.flatnonzero(table.sum(0) == 0)[0])
            raise ValueError(f"s value number {empty} has probability zero: leave it out.")
        self.probabilities = table
        self.z_points = _points(z_values, table.shape[0], "z_values")
        self.s_points = _points(s_values, table.shape[1], "s_values")
        self._scalar_s = np.ndim(as_table(s_values, name="s_values")) == 1

    @classmethod
    def random(cls, nz: int, ns: int, *, random_state: RandomState = None) -> Self:
        """Draw a law: normal values, probabilities uniform on the simplex."""
        generator = as_generator(random_state)
        options: dict[str, Any] = {"generator": generator, "dtype": torch.float64}
        z = torch.randn(nz, **options)
        s = torch.randn(ns, **options)
        weights = -torch.log1p(-torch.rand(nz, ns, **options)) + torch.finfo(torch.float64).tiny
        return cls(z, s, weights / weights.sum())

    @property
    def p_z(self) -> np.ndarray:
        """Marginal probabilities of Z, ``(nz,)``."""
        return self.probabilities.sum(1)

    @property
    def p_s(self) -> np.ndarray:
        """Marginal probabilities of S, ``(ns,)``."""
        return self.probabilities.sum(0)

    @property
    def conditional(self) -> np.ndarray:
        """Return P(Z = z | S = s) as an array ``(nz, ns)``, whose columns sum to one."""
        return self.probabilities / self.p_s

    @property
    def difference(self) -> np.ndarray:
        """Joint law less the product of its marginals, ``(nz, ns)``."""
        return self.probabilities - np.multiply.outer(self.p_z, self.p_s)

    @property
    def delta(self) -> np.ndarray:
        """P(Z = z | S = s) − P(Z = z), ``(nz, ns)``."""
        return self.conditional - self.p_z[:, None]

    def sample(
        self,
        n: int,
        *,
        random_state: RandomState = None,
        dtype: torch.dtype = torch.float64,
        device: torch.device | str | None = None,
        batch: Sequence[int] = (),
    ) -> tuple[Tensor, Tensor]:
        """Draw ``z`` ``(*batch, n, d)`` and ``s`` ``(*batch, n)`` (``(*batch, n, p)`` for vector values)."""
        generator = as_generator(random_state)
        where = generator.device if generator is not None else device
        cumulative = torch.as_tensor(
            self.probabilities.astype(np.float64).ravel().cumsum(), device=where
        )
        uniform = torch.rand(*batch, n, generator=generator, dtype=torch.float64, device=where)
        # Rounding can leave the cumulative sum below one; a draw above it belongs to the last cell
        # that has any mass.
        last = int(np.flatnonzero(self.probabilities.ravel() > 0)[-1])
        cell = torch.searchsorted(cumulative, uniform, right=True).clamp_max(last)
        ns = len(self.s_points)
        cell = cell.to(device or where)
        z = self.z_points.to(dtype=dtype, device=cell.device)[cell // ns]
        s = self.s_points.to(dtype=dtype, device=cell.device)[cell % ns]
        return z, s.squeeze(-1) if self._scalar_s else s

    def __repr__(self) -> str:
        nz, ns = self.probabilities.shape
        return f"{type(self).__name__}(nz={nz}, ns={ns}, exact={is_exact(self.probabilities)})"

    def _gram(self, kernel: Gram, points: Tensor, name: str) -> np.ndarray:
        if callable(kernel):
            matrix = kernel(points).numpy()
        else:
            matrix = as_table(kernel, name=name, exact=is_exact(self.probabilities))
        if matrix.shape != (len(points), len(points)):
            raise ValueError(
                f"{name} has shape {matrix.shape}: pass shape ({len(points)}, {len(points)})."
            )
        return matrix

    def gram_z(self, kernel_z: Gram) -> np.ndarray:
        """Return the Gram matrix on the values of Z, ``(nz, nz)``."""
        return self._gram(kernel_z, self.z_points, "kernel_z")

    def gram_s(self, kernel_s: Gram) -> np.ndarray:
        """Return the Gram matrix on the values of S, ``(ns, ns)``."""
        return self._gram(kernel_s, self.s_points, "kernel_s")

    def hsic(self, kernel_z: Gram, kernel_s: Gram) -> Any:
        """Return HSIC(Z, S) = Σ D_is·D_jt·K_ij·L_st, D the difference; a Fraction where everything is rational."""
        difference, k, l = in_one_arithmetic(
            self.difference, self.gram_z(kernel_z), self.gram_s(kernel_s)
        )
        return _plain(((k @ difference @ l) * difference).sum())

    def coco(self, kernel_z: Gram, kernel_s: Gram) -> float:
        """Return the largest Cov(f(Z), g(S)) over two unit balls, the top singular value of the cross-covariance."""
        difference, k, l = (
            array.astype(np.float64)
            for array in (self.difference, self.gram_z(kernel_z), self.gram_s(kernel_s))
        )
        return float(np.linalg.svd(_root(k) @ difference @ _root(l), compute_uv=False)[0])

    def conditional_squared_mmd(self, kernel_z: Gram) -> np.ndarray:
        """Return MMD²(P_{Z|S=s}, P_Z) for each s, ``(ns,)``."""
        delta, k = in_one_arithmetic(self.delta, self.gram_z(kernel_z))
        return (delta * (k @ delta)).sum(0)

    def expected_squared_mmd(self, kernel_z: Gram) -> Any:
        """Return E_S[MMD²(P_{Z|S}, P_Z)]."""
        p_s, squared = in_one_arithmetic(self.p_s, self.conditional_squared_mmd(kernel_z))
        return _plain(p_s @ squared)

    def expected_mmd(self, kernel_z: Gram) -> float:
        """Return E_S[MMD(P_{Z|S}, P_Z)]: the supremum over RKHS balls taken for each s on its own."""
        squared = self.conditional_squared_mmd(kernel_z).astype(np.float64)
        return float(self.p_s.astype(np.float64) @ np.sqrt(np.maximum(squared, 0.0)))

    def total_variation(self) -> Any:
        """Return ½Σ|D|: total variation of joint against product."""
        return _plain(abs(self.difference).sum() / 2)

    def wasserstein(self) -> float:
        """Return W₁ of joint against product under the sum of the Euclidean distances of Z and of S."""
        z, s = (euclidean_distances(points).numpy() for points in (self.z_points, self.s_points))
        distance = z[:, None, :, None] + s[None, :, None, :]
        size = self.probabilities.size
        return wasserstein(self.difference.reshape(size), distance.reshape(size, size))

    def expected_wasserstein(self) -> float:
        """Return E_S[W₁(P_{Z|S}, P_Z)], an upper bound of :meth:`wasserstein`."""
        distance, delta = euclidean_distances(self.z_points).numpy(), self.delta
        return math.fsum(
            float(q) * wasserstein(delta[:, s], distance) for s, q in enumerate(self.p_s)
        )

    def conditional_gap(self, head: ArrayLike) -> np.ndarray:
        """Return m_f(s) = E[f(Z) | S = s] − E f(Z), ``(ns,)``, for a head given by its values on ``z_values``."""
        values = as_table(head, name="head", exact=is_exact(self.probabilities))
        if values.shape != (len(self.z_points),):
            raise ValueError(
                f"head has shape {values.shape}: pass {len(self.z_points)} values, one for each z."
            )
        values, delta = in_one_arithmetic(values, self.delta)
        return values @ delta

    def gdp(self, head: ArrayLike) -> Any:
        """Return E_S|m_f(S)|, generalised demographic parity."""
        gap, p_s = in_one_arithmetic(self.conditional_gap(head), self.p_s)
        return _plain(abs(gap) @ p_s)

    def mercer(self, kernel_s: Gram, *, centered: bool = False) -> FiniteMercer:
        """Return the eigensystem of T_S in L²(P_S), or of (I − 1⊗1)T_S(I − 1⊗1); eigenvalues above ns·eps·λ_max."""
        l, weight = self.gram_s(kernel_s).astype(np.float64), self.p_s.astype(np.float64)
        root = np.sqrt(weight)
        matrix = root[:, None] * l * root
        if centered:
            centring = np.eye(len(root)) - np.outer(root, root)
            matrix = centring @ matrix @ centring
        values, vectors = np.linalg.eigh(matrix)
        keep = np.flatnonzero(values > len(root) * np.finfo(np.float64).eps * max(values[-1], 0.0))[
            ::-1
        ]
        return FiniteMercer(values[keep], vectors[:, keep] / root[:, None])

    def delta_coefficients(
        self, kernel_z: Gram, kernel_s: Gram, *, centered: bool = False
    ) -> np.ndarray:
        """Return ‖⟨Δ, ψ_l⟩‖² in F_Z along :meth:`mercer`: times the eigenvalues they sum to HSIC."""
        system = self.mercer(kernel_s, centered=centered)
        along = (self.difference.astype(np.float64)) @ system.eigenfunctions
        return (along * (self.gram_z(kernel_z).astype(np.float64) @ along)).sum(0)

    def spectral_tail(self, kernel_z: Gram, kernel_s: Gram, *, m: int) -> float:
        """Return ρ_m² = ‖(I − P_m)Δ‖², what the first m eigenfunctions of T_S leave of E[MMD²]."""
        if m < 0:
            raise ValueError(f"m is {m}: pass a number of eigenfunctions, zero or more.")
        system = self.mercer(kernel_s)
        m = min(m, len(system.eigenvalues))
        psi, weight = system.eigenfunctions[:, :m], self.p_s.astype(np.float64)
        delta = self.delta.astype(np.float64)
        left = delta - (delta * weight) @ psi @ psi.T
        return float(((left * (self.gram_z(kernel_z).astype(np.float64) @ left)).sum(0)) @ weight)


def _points(values: ArrayLike, count: int, name: str) -> Tensor:
    table = as_table(values, name=name).astype(np.float64)
    if table.ndim == 0 or table.shape[0] != count:
        raise ValueError(
            f"{name} has shape {table.shape} but probabilities has {count} of them: pass one for each."
        )
    return torch.as_tensor(table.reshape(count, -1))


def _plain(x: Any) -> Any:
    """Keep Fractions and turn NumPy scalars into floats."""
    return x if isinstance(x, Fraction) else float(x)


def _root(gram: np.ndarray) -> np.ndarray:
    values, vectors = np.linalg.eigh(gram)
    return vectors * np.sqrt(np.maximum(values, 0.0)) @ vectors.T
