"""A probability table of (Z, S): its values, marginals and conditionals, how to make one and how to draw from it."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import Self

import numpy as np
import torch
from torch import Tensor

from frhsic_core.arrays import ArrayLike
from frhsic_core.laws.rational import as_table, in_one_arithmetic, is_exact

__all__ = ["FiniteTable"]


def _points(values: ArrayLike, count: int, name: str) -> Tensor:
    table = as_table(values, name=name).astype(np.float64)
    if table.ndim == 0 or table.shape[0] != count:
        raise ValueError(
            f"{name} has shape {table.shape} but probabilities has {count} of them: one for each is needed."
        )
    return torch.as_tensor(table.reshape(count, -1))


class FiniteTable:
    """Joint probabilities of finitely many values of Z and S; :class:`frhsic_core.laws.FiniteLaw` adds the criteria."""

    def __init__(self, z_values: ArrayLike, s_values: ArrayLike, probabilities: ArrayLike) -> None:
        table = as_table(probabilities, name="probabilities")
        if table.ndim != 2 or table.size == 0:
            raise ValueError(f"probabilities has shape {table.shape}: a table (nz, ns) is needed.")
        if not is_exact(table) and not np.isfinite(table).all():
            raise ValueError("probabilities has NaN or infinite entries: each must be a number in [0, 1].")
        if (table < 0).any():
            raise ValueError(f"probabilities has a negative entry ({table.min()}): each must be zero or positive.")
        total = table.sum()
        if (total != 1) if is_exact(table) else abs(total - 1.0) > 1e-12:
            raise ValueError(f"probabilities sum to {total}: they must sum to one; divide by their sum.")
        if (table.sum(0) == 0).any():
            empty = int(np.flatnonzero(table.sum(0) == 0)[0])
            raise ValueError(f"s value number {empty} has probability zero: leave it out, nothing can be given it.")
        self.probabilities = table
        self.z_points = _points(z_values, table.shape[0], "z_values")
        self.s_points = _points(s_values, table.shape[1], "s_values")
        self._scalar_s = np.ndim(as_table(s_values, name="s_values")) == 1

    @classmethod
    def independent(
        cls, p: ArrayLike, q: ArrayLike, *, z_values: ArrayLike | None = None, s_values: ArrayLike | None = None
    ) -> Self:
        """Product of the marginals p of Z and q of S; values count from zero unless given."""
        p, q = in_one_arithmetic(as_table(p, name="p"), as_table(q, name="q"))
        z = np.arange(len(p)) if z_values is None else z_values
        return cls(z, np.arange(len(q)) if s_values is None else s_values, np.multiply.outer(p, q))

    @classmethod
    def random(
        cls, nz: int, ns: int, *, generator: torch.Generator | None = None, d: int = 1, exact: bool = False
    ) -> Self:
        """Draw a law: normal values, probabilities uniform on the simplex (Fractions with ``exact``)."""
        where = generator.device if generator is not None else None
        z = torch.randn(nz, d, generator=generator, dtype=torch.float64, device=where).cpu()
        s = torch.randn(ns, generator=generator, dtype=torch.float64, device=where).cpu()
        if exact:
            whole = torch.randint(1, 1000, (nz, ns), generator=generator, device=where).cpu().numpy()
            total = int(whole.sum())
            return cls(z, s, [[Fraction(int(entry), total) for entry in row] for row in whole])
        weights = torch.rand(nz, ns, generator=generator, dtype=torch.float64, device=where).cpu()
        weights = -torch.log1p(-weights) + torch.finfo(torch.float64).tiny
        return cls(z, s, weights / weights.sum())

    @classmethod
    def xor(cls, *, flip: Fraction | float = Fraction(1, 2)) -> Self:
        """Z = S ⊕ U, S a fair coin, P(U = 1) = ``flip``. At 1/2, Z ⟂ S although every flip of S flips Z."""
        stay = (1 - flip) / 2
        return cls([0, 1], [0, 1], [[stay, flip / 2], [flip / 2, stay]])

    @classmethod
    def parity(cls) -> Self:
        """Z = (A, B), two fair coins, S = A ⊕ B: each coordinate is independent of S, together they are S."""
        quarter = Fraction(1, 4)
        return cls([[0, 0], [0, 1], [1, 0], [1, 1]], [0, 1], [[quarter, 0], [0, quarter], [0, quarter], [quarter, 0]])

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
        """P(Z = z | S = s), ``(nz, ns)``: each column sums to one."""
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
        generator: torch.Generator | None = None,
        dtype: torch.dtype = torch.float64,
        device: torch.device | str | None = None,
        batch: Sequence[int] = (),
    ) -> tuple[Tensor, Tensor]:
        """Draw ``z`` ``(*batch, n, d)`` and ``s`` ``(*batch, n)`` (``(*batch, n, p)`` for vector values)."""
        where = generator.device if generator is not None else device
        cumulative = torch.as_tensor(self.probabilities.astype(np.float64).ravel().cumsum(), device=where)
        uniform = torch.rand(*batch, n, generator=generator, dtype=torch.float64, device=where)
        cell = torch.searchsorted(cumulative, uniform, right=True).clamp_max(self._last_cell)
        ns = len(self.s_points)
        cell = cell.to(device or where)
        z = self.z_points.to(dtype=dtype, device=cell.device)[cell // ns]
        s = self.s_points.to(dtype=dtype, device=cell.device)[cell % ns]
        return z, s.squeeze(-1) if self._scalar_s else s

    @property
    def _last_cell(self) -> int:
        # Rounding can leave the cumulative sum below one; a draw above it belongs to the last cell that has any mass.
        return int(np.flatnonzero(self.probabilities.ravel() > 0)[-1])

    def __repr__(self) -> str:
        nz, ns = self.probabilities.shape
        return f"{type(self).__name__}(nz={nz}, ns={ns}, exact={is_exact(self.probabilities)})"
