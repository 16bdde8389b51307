r"""Summaries of a λ sweep: the matched point and the normalised area under the Pareto envelope (nAUP).

The area is over the budget g = dependence / dependence of Unfair, clipped to [0, 1]; its height is the largest utility
(accuracy, or −MSE, min–max normalised over every point of the comparison and Unfair) that a method reaches within g:

.. math:: \mathrm{nAUP} = \int_0^1 \max\{u_\lambda : g_\lambda \le g\}\,dg, \qquad \text{0 where no } g_\lambda \le g,

by the trapezoidal rule on 201 points. Because the envelope is a maximum, more λ can only raise it. A comparison of
methods with different λ grids is therefore refused unless you ask for it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

BAND = 0.01
GRID = np.linspace(0.0, 1.0, 201)
KEYS = ["dataset", "variant", "protocol"]


class UnequalGrids(ValueError):
    """The methods have different λ grids, and the area to compare them by grows with the grid."""


def matched_index(
    performance: np.ndarray, dependence: np.ndarray, unfair: np.ndarray | float, *, higher: bool, band: float = BAND
) -> np.ndarray:
    """Return where on the sweep (last axis) dependence is lowest within ``band`` of Unfair's performance; −1: nowhere.

    Accuracy must be at least (1 − band) times Unfair's, MSE at most (1 + band) times.

    Examples
    --------
    >>> int(matched_index(np.array([0.85, 0.845, 0.70]), np.array([0.7, 0.2, 0.0]), 0.85, higher=True))
    1
    """
    unfair = np.asarray(unfair)[..., None]
    inside = performance >= (1.0 - band) * unfair if higher else performance <= (1.0 + band) * unfair
    inside &= ~np.isnan(dependence)
    best = np.where(inside, dependence, np.inf).argmin(-1)
    return np.where(inside.any(-1), best, -1)


def naup(
    performance: np.ndarray,
    dependence: np.ndarray,
    unfair_performance: np.ndarray | float,
    unfair_dependence: np.ndarray | float,
    *,
    higher: bool,
) -> np.ndarray:
    """Return nAUP of each method, ``(..., methods, λ) -> (..., methods)``; NaN marks a λ that is not there.

    O(201 · methods · λ). The paper defines it in the caption of its main table.

    Examples
    --------
    >>> accuracy, parity = np.array([[0.85, 0.80]]), np.array([[0.5, 0.0]])
    >>> naup(accuracy, parity, 0.90, 1.0, higher=True).round(3)
    array([0.251])
    """
    sign = 1.0 if higher else -1.0
    unfair_u = sign * np.asarray(unfair_performance, float)
    unfair_d = np.asarray(unfair_dependence, float)
    u = np.where(np.isnan(dependence), np.nan, sign * performance)
    everything = np.concatenate([u.reshape(*u.shape[:-2], -1), unfair_u[..., None]], axis=-1)
    low = np.nanmin(everything, -1)[..., None, None]
    high = np.nanmax(everything, -1)[..., None, None]
    width = np.where(high > low, high - low, 1.0)
    u = (u - low) / width
    scale = np.where(unfair_d > 0, unfair_d, 1.0)[..., None, None]
    budget = np.clip(dependence / scale, 0.0, 1.0)
    order = np.argsort(np.where(np.isnan(budget), np.inf, budget), axis=-1)
    budget = np.take_along_axis(np.where(np.isnan(budget), np.inf, budget), order, -1)
    best = np.maximum.accumulate(np.nan_to_num(np.take_along_axis(u, order, -1), nan=0.0), axis=-1)
    best = np.concatenate([np.zeros_like(best[..., :1]), best], axis=-1)
    # How many points of the sweep lie within each budget: their best is the height there.
    within = (budget[..., None, :] <= GRID[:, None]).sum(-1)
    height = np.take_along_axis(best, within, -1)
    step = GRID[1] - GRID[0]
    return step * (height.sum(-1) - 0.5 * (height[..., 0] + height[..., -1]))


@dataclass(frozen=True)
class Frontiers:
    """The sweeps of several methods on one dataset, split by split.

    Parameters
    ----------
    methods : tuple of str
        Without Unfair.
    lams : numpy.ndarray
        ``(methods, λ)``, NaN where a method has fewer.
    performance, dependence : numpy.ndarray
        ``(methods, λ, splits)``.
    unfair_performance, unfair_dependence : numpy.ndarray
        ``(splits,)``.
    higher : bool
        Whether a higher performance is better.
    """

    methods: tuple[str, ...]
    lams: np.ndarray
    performance: np.ndarray
    dependence: np.ndarray
    unfair_performance: np.ndarray
    unfair_dependence: np.ndarray
    higher: bool

    @classmethod
    def from_rows(
        cls,
        rows: pd.DataFrame,
        *,
        methods: tuple[str, ...] | None = None,
        dependence: str = "gdp_reference",
        performance: str = "performance",
        unequal_grids: bool = False,
        name: str = "method",
    ) -> Frontiers:
        """Read the rows of one dataset, variant and protocol.

        Splits that not every model of every method has are left out, so that all are compared on the same ones.

        Parameters
        ----------
        rows : pandas.DataFrame
            From a :class:`~frhsic_core.paper.runs.store.ResultStore`.
        methods : tuple of str, optional
            Which methods take part in the comparison (and so in the normalisation); by default all but Unfair.
        dependence, performance : str
            Columns.
        unequal_grids : bool
            Compare although the λ grids differ.
        name : str
            Column that holds the method's name.

        Raises
        ------
        UnequalGrids
            The grids differ.
        """
        base = rows[rows["method"] == "unfair"].groupby("split")[[performance, dependence]].mean()
        if base.empty:
            raise ValueError("There are no rows of 'unfair': nAUP and the matched point are relative to it.")
        swept = rows[rows["method"] != "unfair"]
        found = tuple(dict.fromkeys(swept[name]))
        methods = tuple(m for m in (methods or found) if m in found)
        if not methods:
            raise ValueError("There are no rows of a method beside 'unfair', so that there is nothing to compare.")
        grids = {m: tuple(sorted(set(swept.loc[swept[name] == m, "lam"]))) for m in methods}
        if len(set(grids.values())) > 1 and not unequal_grids:
            sizes = ", ".join(f"{m} {len(grid)}" for m, grid in grids.items())
            raise UnequalGrids(
                f"the λ grids differ (number of λ: {sizes}): more λ can only raise the envelope. Compare on a common "
                "grid (on_common_grid), or pass unequal_grids=True and say so beside the numbers."
            )
        cells = swept.groupby([name, "lam", "split"])[[performance, dependence]].mean()
        wanted = [(m, lam) for m in methods for lam in grids[m]]
        there = pd.Series(True, index=cells.index).unstack("split", fill_value=False).loc[wanted].all()
        splits = set(base.index) & set(there.index[there])
        if not splits:
            raise ValueError("No split has every model: train the missing models first.")
        order = sorted(splits)
        widest = max(map(len, grids.values()))
        lams = np.full((len(methods), widest), np.nan)
        values = np.full((2, len(methods), widest, len(order)), np.nan)
        wide = [
            cells[column].unstack("split").loc[wanted, order].to_numpy(float) for column in (performance, dependence)
        ]
        places = [(i, j) for i, m in enumerate(methods) for j in range(len(grids[m]))]
        for k, (i, j) in enumerate(places):
            lams[i, j] = wanted[k][1]
            values[:, i, j] = wide[0][k], wide[1][k]
        unfair = base.loc[order].to_numpy(float).T
        higher = "task" not in rows or str(rows["task"].iloc[0]) != "regression"
        return cls(methods, lams, values[0], values[1], unfair[0], unfair[1], higher)

    @property
    def splits(self) -> int:
        """Number of splits."""
        return self.performance.shape[-1]

    def areas(self, weights: np.ndarray | None = None) -> np.ndarray:
        """Return nAUP of the means over splits, ``(methods,)``; with ``weights (..., splits)``, of weighted means."""
        w = np.full(self.splits, 1.0 / self.splits) if weights is None else weights
        mean = [np.moveaxis(v @ w.T, -1, 0) if w.ndim == 2 else v @ w for v in (self.performance, self.dependence)]
        unfair = w @ self.unfair_performance, w @ self.unfair_dependence
        return naup(mean[0], mean[1], unfair[0], unfair[1], higher=self.higher)

    def summary(self, *, resamples: int = 1000, seed: int = 0, level: float = 0.95) -> pd.DataFrame:
        """Return one line for each method: matched point (mean and sd over splits), nAUP, its spread and interval.

        ``naup`` is that of the mean sweep, as the paper's; ``naup_split_mean`` and ``naup_split_sd`` are over the
        splits taken singly; ``naup_low`` and ``naup_high`` bound the percentile bootstrap over splits, the same
        resample for all methods. Standard deviations have divisor n, as the authors'.
        """
        area = self.areas()
        single = self.areas(np.eye(self.splits))
        draws = np.random.default_rng(seed).multinomial(self.splits, np.full(self.splits, 1 / self.splits), resamples)
        tails = [(1 - level) / 2, (1 + level) / 2]
        bounds = np.quantile(self.areas(draws / self.splits), tails, axis=0)
        performance = self.performance.mean(-1)
        dependence = self.dependence.mean(-1)
        place = matched_index(performance, dependence, self.unfair_performance.mean(), higher=self.higher)
        lines: list[dict[str, Any]] = [
            {
                "method": "unfair",
                "lam": 0.0,
                "performance": self.unfair_performance.mean(),
                "performance_sd": self.unfair_performance.std(),
                "dependence": self.unfair_dependence.mean(),
                "dependence_sd": self.unfair_dependence.std(),
            }
        ]
        for i, (method, j) in enumerate(zip(self.methods, place, strict=True)):
            line: dict[str, Any] = {
                "method": method,
                "naup": area[i],
                "naup_low": bounds[0, i],
                "naup_high": bounds[1, i],
            }
            line |= {"naup_split_mean": single[:, i].mean(), "naup_split_sd": single[:, i].std()}
            if j >= 0:
                line |= {
                    "lam": self.lams[i, j],
                    "performance": performance[i, j],
                    "performance_sd": self.performance[i, j].std(),
                    "dependence": dependence[i, j],
                    "dependence_sd": self.dependence[i, j].std(),
                }
            lines.append(line)
        return pd.DataFrame(lines).assign(splits=self.splits)


def named(rows: pd.DataFrame) -> pd.DataFrame:
    """Return the rows with a column ``name``: the method, and its option after a colon where it has one."""
    return rows.assign(name=rows["method"].where(rows["option"] == "", rows["method"] + ":" + rows["option"]))


def sweeps_of(
    rows: pd.DataFrame, measure: str, *, methods: tuple[str, ...] | None = None
) -> Iterator[tuple[str, Frontiers]]:
    """Yield each dataset of ``rows`` (:func:`named`, one variant and protocol of each) with its sweeps."""
    for key, part in rows.groupby(KEYS, sort=True):
        yield str(key[0]), Frontiers.from_rows(part, methods=methods, dependence=measure, name="name")


def on_grid(rows: pd.DataFrame, lams: Iterable[float] | None) -> pd.DataFrame:
    """Return the rows at some λ, and those of Unfair; all rows without ``lams``."""
    return rows if lams is None else rows[(rows["method"] == "unfair") | rows["lam"].isin(list(lams))]


def on_common_grid(rows: pd.DataFrame, *, name: str = "method") -> pd.DataFrame:
    """Return the rows whose λ every method has (Unfair always stays)."""
    swept = rows[rows["method"] != "unfair"]
    common = set.intersection(*(set(part["lam"]) for _, part in swept.groupby(name))) if len(swept) else set()
    return on_grid(rows, common)
