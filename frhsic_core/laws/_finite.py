"""Finite laws of (Z, S): every quantity is a finite sum, and Fractions stay Fractions.

Every supremum is attained. A NumPy array of dtype ``object`` that holds :class:`fractions.Fraction`
goes through sums and matrix products without rounding. If one operand holds floats, the whole
computation is float64.
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
    """Read nested numbers as Fractions or as float64.

    They are Fractions if each is whole or a Fraction and at least one is a Fraction.

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
    if isinstance(x, (list, tuple)):
        raw = np.array(x, dtype=object)
    else:
        raw = np.asarray(x)
    if _are_fractions(raw, or_whole=exact):
        return _as_fractions(raw)
    return as_tensor(x, name=name).double().numpy()


def _are_fractions(raw: np.ndarray, *, or_whole: bool) -> bool:
    """Return whether all entries are whole or Fractions and one is a Fraction, or none needs to."""
    if raw.dtype.kind not in "Oiu" or raw.size == 0:
        return False
    entries = list(raw.flat)
    if not all(isinstance(entry, (int, np.integer, Fraction)) for entry in entries):
        return False
    return or_whole or any(isinstance(entry, Fraction) for entry in entries)


def _as_fractions(raw: np.ndarray) -> np.ndarray:
    """Return an array of Fractions and whole numbers as one of Fractions."""
    table = np.empty(raw.shape, dtype=object)
    for place, entry in np.ndenumerate(raw):
        # A NumPy integer has a fixed number of digits; an integer of Python has not.
        table[place] = entry if isinstance(entry, Fraction) else Fraction(int(entry))
    return table


def is_exact(x: np.ndarray) -> bool:
    """Return whether the array holds Fractions."""
    return x.dtype == object


def in_one_arithmetic(*arrays: np.ndarray) -> list[np.ndarray]:
    """Return the arrays as they are if all hold Fractions, else all as float64."""
    if all(is_exact(array) for array in arrays):
        return list(arrays)
    return [array.astype(np.float64) for array in arrays]


def wasserstein(difference: np.ndarray, distance: np.ndarray) -> float:
    """Return W₁(P, Q) = sup{Σ f_i(P_i − Q_i) : |f_i − f_j| ≤ d_ij} from P − Q and the distances.

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
    difference = np.asarray(difference, dtype=np.float64)
    distance = np.asarray(distance, dtype=np.float64)
    if not (np.isfinite(distance).all() and (distance >= 0.0).all()):
        raise ValueError("distance has negative, NaN or infinite entries: pass a metric.")
    sources = np.flatnonzero(difference > 0.0)
    targets = np.flatnonzero(difference < 0.0)
    supply = difference[sources]
    demand = -difference[targets]
    if supply.size == 0 or demand.size == 0:
        return 0.0
    # Solve at total mass one: the solver's tolerances are absolute, and a small difference would
    # fall below them.
    mass = 0.5 * (supply.sum() + demand.sum())
    masses = np.concatenate([supply / supply.sum(), demand / demand.sum()])
    cost = distance[np.ix_(sources, targets)]
    # A variable is the mass that goes from a source to a target. It counts in the constraint of the
    # source and in that of the target.
    from_source, to_target = np.indices(cost.shape).reshape(2, -1)
    constraints = np.concatenate([from_source, to_target + len(sources)])
    variables = np.tile(np.arange(cost.size), 2)
    marginals = coo_array((np.ones(2 * cost.size), (constraints, variables))).tocsr()
    # One marginal constraint follows from the others; dropping it keeps rounding from making the
    # program infeasible.
    result = linprog(
        cost.ravel(),
        A_eq=marginals[:-1],
        b_eq=masses[:-1],
        bounds=(0.0, None),
        method="highs-ds",
    )
    if result.status != 0:
        raise ArithmeticError(f"The transport program was not solved: {result.message}")
    return float(result.fun * mass)


class FiniteMercer(NamedTuple):
    """Positive eigenvalues of T_S, falling, and the values ψ_l(s), ``(ns, r)``, orthonormal."""

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
    >>> often, rarely = Fraction(3, 8), Fraction(1, 8)
    >>> law = FiniteLaw([0, 1], [0, 1], [[often, rarely], [rarely, often]])
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
                f"probabilities has a negative entry ({table.min()}): each must be zero or "
                "positive."
            )
        total = table.sum()
        rounding = 0 if is_exact(table) else 1e-12
        if abs(total - 1) > rounding:
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
        # Exponential numbers, divided by their sum, are uniform on the simplex.
        exponential = -torch.log1p(-torch.rand(nz, ns, **options))
        weights = exponential + torch.finfo(torch.float64).tiny
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
        """Draw ``z`` ``(*batch, n, d)`` and ``s`` ``(*batch, n)``.

        If the values of S are vectors, ``s`` is ``(*batch, n, p)``.
        """
        generator = as_generator(random_state)
        where = generator.device if generator is not None else device
        probabilities = self.probabilities.astype(np.float64).ravel()
        cumulative = torch.as_tensor(probabilities.cumsum(), device=where)
        uniform = torch.rand(*batch, n, generator=generator, dtype=torch.float64, device=where)
        # Rounding can leave the cumulative sum below one; a draw above it belongs to the last cell
        # that has any mass.
        last = int(np.flatnonzero(self.probabilities.ravel() > 0)[-1])
        cell = torch.searchsorted(cumulative, uniform, right=True).clamp_max(last)
        ns = len(self.s_points)
        cell = cell.to(device or where)
        z = self.z_points.to(dtype=dtype, device=cell.device)[cell // ns]
        s = self.s_points.to(dtype=dtype, device=cell.device)[cell % ns]
        if self._scalar_s:
            s = s.squeeze(-1)
        return z, s

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
        """Return HSIC(Z, S) = Σ D_is·D_jt·K_ij·L_st, D the difference.

        It is a Fraction where everything is rational.
        """
        difference, k, l = in_one_arithmetic(
            self.difference, self.gram_z(kernel_z), self.gram_s(kernel_s)
        )
        return _plain(((k @ difference @ l) * difference).sum())

    def coco(self, kernel_z: Gram, kernel_s: Gram) -> float:
        """Return the largest Cov(f(Z), g(S)) over two unit balls.

        It is the top singular value of the cross-covariance.
        """
        difference = self.difference.astype(np.float64)
        root_z = _root(self.gram_z(kernel_z).astype(np.float64))
        root_s = _root(self.gram_s(kernel_s).astype(np.float64))
        singular_values = np.linalg.svd(root_z @ difference @ root_s, compute_uv=False)
        return float(singular_values[0])

    def conditional_squared_mmd(self, kernel_z: Gram) -> np.ndarray:
        """Return MMD²(P_{Z|S=s}, P_Z) for each s, ``(ns,)``."""
        delta, k = in_one_arithmetic(self.delta, self.gram_z(kernel_z))
        return (delta * (k @ delta)).sum(0)

    def expected_squared_mmd(self, kernel_z: Gram) -> Any:
        """Return E_S[MMD²(P_{Z|S}, P_Z)]."""
        p_s, squared = in_one_arithmetic(self.p_s, self.conditional_squared_mmd(kernel_z))
        return _plain(p_s @ squared)

    def expected_mmd(self, kernel_z: Gram) -> float:
        """Return E_S[MMD(P_{Z|S}, P_Z)], with a supremum over the RKHS ball for each s."""
        squared = self.conditional_squared_mmd(kernel_z).astype(np.float64)
        mmd = np.sqrt(np.maximum(squared, 0.0))
        return float(self.p_s.astype(np.float64) @ mmd)

    def total_variation(self) -> Any:
        """Return ½Σ|D|: total variation of joint against product."""
        return _plain(abs(self.difference).sum() / 2)

    def wasserstein(self) -> float:
        """Return W₁ of joint against product, under Euclidean distance of Z plus that of S."""
        z = euclidean_distances(self.z_points).numpy()
        s = euclidean_distances(self.s_points).numpy()
        distance = z[:, None, :, None] + s[None, :, None, :]
        size = self.probabilities.size
        return wasserstein(self.difference.reshape(size), distance.reshape(size, size))

    def expected_wasserstein(self) -> float:
        """Return E_S[W₁(P_{Z|S}, P_Z)], an upper bound of :meth:`wasserstein`."""
        distance = euclidean_distances(self.z_points).numpy()
        delta = self.delta
        found = [wasserstein(delta[:, s], distance) for s in range(len(self.p_s))]
        return math.fsum(float(p) * one for p, one in zip(self.p_s, found, strict=True))

    def conditional_gap(self, head: ArrayLike) -> np.ndarray:
        """Return m_f(s) = E[f(Z) | S = s] − E f(Z), ``(ns,)``.

        The head f is given by its values on ``z_values``.
        """
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
        """Return the eigensystem of T_S in L²(P_S), or of (I − 1⊗1)T_S(I − 1⊗1).

        It has the eigenvalues above ns·eps·λ_max.
        """
        gram_s = self.gram_s(kernel_s).astype(np.float64)
        root = np.sqrt(self.p_s.astype(np.float64))
        matrix = root[:, None] * gram_s * root
        if centered:
            centring = np.eye(len(root)) - np.outer(root, root)
            matrix = centring @ matrix @ centring
        values, vectors = np.linalg.eigh(matrix)
        rounding = len(root) * np.finfo(np.float64).eps * max(values[-1], 0.0)
        rising = np.flatnonzero(values > rounding)
        falling = rising[::-1]
        return FiniteMercer(values[falling], vectors[:, falling] / root[:, None])

    def delta_coefficients(
        self, kernel_z: Gram, kernel_s: Gram, *, centered: bool = False
    ) -> np.ndarray:
        """Return ‖⟨Δ, ψ_l⟩‖² in F_Z along :meth:`mercer`; times eigenvalues they sum to HSIC."""
        system = self.mercer(kernel_s, centered=centered)
        along = self.difference.astype(np.float64) @ system.eigenfunctions
        gram_z = self.gram_z(kernel_z).astype(np.float64)
        return (along * (gram_z @ along)).sum(0)

    def spectral_tail(self, kernel_z: Gram, kernel_s: Gram, *, m: int) -> float:
        """Return ρ_m² = ‖(I − P_m)Δ‖², what the first m eigenfunctions of T_S leave of E[MMD²]."""
        if m < 0:
            raise ValueError(f"m is {m}: pass a number of eigenfunctions, zero or more.")
        system = self.mercer(kernel_s)
        m = min(m, len(system.eigenvalues))
        psi = system.eigenfunctions[:, :m]
        weight = self.p_s.astype(np.float64)
        delta = self.delta.astype(np.float64)
        rest = delta - (delta * weight) @ psi @ psi.T
        gram_z = self.gram_z(kernel_z).astype(np.float64)
        squared_norms = (rest * (gram_z @ rest)).sum(0)
        return float(squared_norms @ weight)


def _points(values: ArrayLike, count: int, name: str) -> Tensor:
    """Return the values as rows ``(count, d)``."""
    table = as_table(values, name=name).astype(np.float64)
    if table.ndim == 0 or table.shape[0] != count:
        raise ValueError(
            f"{name} has shape {table.shape} but probabilities has {count} of them: pass one for "
            "each."
        )
    return torch.as_tensor(table.reshape(count, -1))


def _plain(x: Any) -> Any:
    """Keep Fractions and turn NumPy scalars into floats."""
    if isinstance(x, Fraction):
        return x
    return float(x)


def _root(gram: np.ndarray) -> np.ndarray:
    """Return the symmetric root of a positive semi-definite matrix."""
    values, vectors = np.linalg.eigh(gram)
    return vectors * np.sqrt(np.maximum(values, 0.0)) @ vectors.T
