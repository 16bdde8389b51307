r"""Compare methods over a λ sweep and over splits: matched points, areas (nAUP), and paired tests.

The area is over the budget g = dependence / dependence of Unfair, clipped to [0, 1]; its height is the largest utility
(accuracy, or −MSE, min–max normalised over every point of the comparison and Unfair) that a method reaches within g:

.. math:: \mathrm{nAUP} = \int_0^1 \max\{u_\lambda : g_\lambda \le g\}\,dg, \qquad \text{0 where no } g_\lambda \le g,

by the trapezoidal rule on 201 points. Because the envelope is a maximum, more λ can only raise it. A comparison of
methods with different λ grids is therefore refused unless you ask for it.

Paired tests: Wilcoxon's exact signed-rank test, a corrected t-test, and Holm's correction.
Splits are random cuts of one dataset. Their training parts overlap (80 % of the rows each), so differences from
different splits are not independent: a p-value says how stable an order is *on this dataset under re-splitting*, not on
a new sample of people. The corrected resampled t-test of Nadeau and Bengio (2003) allows for the overlap and stands
beside the signed-rank test.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from scipy import special

BAND = 0.01
GRID = np.linspace(0.0, 1.0, 201)
KEYS = ["dataset", "variant", "protocol"]
Means = tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]


def keeps(performance: Any, unfair: Any, *, higher: Any, band: float = BAND) -> np.ndarray:
    """Return where performance is kept: accuracy at least (1 − band) times Unfair's, MSE at most (1 + band) times."""
    return np.where(
        higher, performance >= (1.0 - band) * unfair, performance <= (1.0 + band) * unfair
    )


def matched_index(
    performance: np.ndarray,
    dependence: np.ndarray,
    unfair: np.ndarray | float,
    *,
    higher: bool,
    band: float = BAND,
) -> np.ndarray:
    """Return where on the sweep (last axis) dependence is lowest within ``band`` of Unfair's performance; −1: nowhere.

    Examples
    --------
    >>> int(matched_index(np.array([0.85, 0.845, 0.70]), np.array([0.7, 0.2, 0.0]), 0.85, higher=True))
    1
    """
    inside = keeps(
        performance, np.asarray(unfair)[..., None], higher=higher, band=band
    ) & ~np.isnan(dependence)
    best = np.where(inside, dependence, np.inf).argmin(-1)
    return np.where(inside.any(-1), best, -1)


def taken(
    values: np.ndarray, place: np.ndarray, otherwise: np.ndarray | float = np.nan
) -> np.ndarray:
    """Return the values (λ on the last axis) at the places of :func:`matched_index`, ``otherwise`` where it is −1."""
    return np.where(
        place >= 0,
        np.take_along_axis(values, np.maximum(place, 0)[..., None], -1)[..., 0],
        otherwise,
    )


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
    # The best of the first k points is the height from the budget of point k to that of the next.
    lengths = np.diff(np.searchsorted(GRID, budget), axis=-1, prepend=0, append=len(GRID))
    height = np.repeat(best.ravel(), lengths.ravel()).reshape(*best.shape[:-1], len(GRID))
    step = GRID[1] - GRID[0]
    return step * (height.sum(-1) - 0.5 * (height[..., 0] + height[..., -1]))


@dataclass(frozen=True)
class Frontiers:
    """The sweeps of several methods (without Unfair) on one dataset, split by split.

    ``lams`` is ``(methods, λ)``, NaN where a method has fewer; ``performance`` and ``dependence`` are
    ``(methods, λ, splits)``, those of Unfair ``(splits,)``; ``higher``: a higher performance is better.
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
        """Read the rows of one dataset, variant and protocol; ``name`` is the column with the method's name.

        Only ``methods`` take part in the comparison and so in the normalisation, by default all but Unfair. Splits that
        not every model of every method has are left out, so that all are compared on the same ones. Different λ grids
        are refused unless ``unequal_grids`` is set: the area grows with the grid.
        """
        task = rows["task"].iloc[:1].tolist() if "task" in rows else []
        # Stored rows have dozens of columns, and every selection would copy all of them.
        rows = rows[list(dict.fromkeys(["method", name, "lam", "split", performance, dependence]))]
        unpenalized = rows["method"] == "unfair"
        base = rows[unpenalized].groupby("split")[[performance, dependence]].mean()
        if base.empty:
            raise ValueError(
                "There are no rows of 'unfair': nAUP and the matched point are relative to it."
            )
        swept = rows[~unpenalized]
        found = tuple(dict.fromkeys(swept[name]))
        methods = tuple(m for m in (methods or found) if m in found)
        if not methods:
            raise ValueError(
                "There are no rows of a method beside 'unfair', so that there is nothing to compare."
            )
        every = {m: tuple(sorted(set(lams))) for m, lams in swept.groupby(name)["lam"]}
        grids = {m: every[m] for m in methods}
        if len(set(grids.values())) > 1 and not unequal_grids:
            sizes = ", ".join(f"{m} {len(grid)}" for m, grid in grids.items())
            raise ValueError(
                f"the λ grids differ (number of λ: {sizes}): more λ can only raise the envelope. Compare on a common "
                "grid (on_grid), or pass unequal_grids=True and say so beside the numbers."
            )
        cells = swept.groupby([name, "lam", "split"])[[performance, dependence]].mean()
        wanted = [(m, lam) for m in methods for lam in grids[m]]
        there = (
            pd.Series(True, index=cells.index).unstack("split", fill_value=False).loc[wanted].all()
        )
        order = sorted(set(base.index) & set(there.index[there]))
        if not order:
            raise ValueError("No split has every model: train the missing models first.")
        lams = np.full((len(methods), max(map(len, grids.values()))), np.nan)
        for line, grid in zip(lams, grids.values(), strict=True):
            line[: len(grid)] = grid
        values = np.full((2, *lams.shape, len(order)), np.nan)
        for part, column in zip(values, (performance, dependence), strict=True):
            part[~np.isnan(lams)] = cells[column].unstack("split").loc[wanted, order]
        unfair = base.loc[order].to_numpy(float).T
        return cls(
            methods, lams, values[0], values[1], unfair[0], unfair[1], task != ["regression"]
        )

    @property
    def splits(self) -> int:
        """Number of splits."""
        return self.performance.shape[-1]

    def means(
        self, weights: np.ndarray | None = None, of_dependence: np.ndarray | None = None
    ) -> Means:
        """Return means over splits of performance and of dependence, ``(methods, λ)``, and those of Unfair.

        With ``weights (draws, splits)`` they are weighted, and the draws come first. Dependence has weights of its own
        where they are given.
        """
        w = np.full(self.splits, 1.0 / self.splits) if weights is None else weights
        both = (w, w if of_dependence is None else of_dependence)
        mean = [
            np.moveaxis(v @ one.T, -1, 0) if one.ndim == 2 else v @ one
            for v, one in zip((self.performance, self.dependence), both, strict=True)
        ]
        return mean[0], mean[1], both[0] @ self.unfair_performance, both[1] @ self.unfair_dependence

    def areas(self, *weights: np.ndarray) -> np.ndarray:
        """Return nAUP of :meth:`means` by method."""
        return naup(*self.means(*weights), higher=self.higher)

    def matched(self, *weights: np.ndarray) -> np.ndarray:
        """Return the place of each method's matched λ in :meth:`means`; −1 where there is none."""
        performance, dependence, unfair, _ = self.means(*weights)
        return matched_index(performance, dependence, unfair[..., None], higher=self.higher)

    def summary(self, *, resamples: int = 1000) -> pd.DataFrame:
        """Return one line for each method: matched point (mean and sd over splits), nAUP and its interval.

        ``naup`` is that of the mean sweep, as the paper's; ``naup_low`` and ``naup_high`` bound the 95 % percentile
        bootstrap over splits, the same resample for all methods. Standard deviations have divisor n, as the authors'.
        """
        draws = np.random.default_rng(0).multinomial(
            self.splits, np.full(self.splits, 1 / self.splits), resamples
        )
        low, high = np.quantile(self.areas(draws / self.splits), [0.025, 0.975], axis=0)
        place = self.matched()
        columns: dict[str, Any] = {
            "method": ["unfair", *self.methods],
            "lam": [0.0, *taken(self.lams, place)],
        }
        for name in ("performance", "dependence"):
            values = getattr(self, name)
            unfair = getattr(self, f"unfair_{name}")
            columns[name] = [unfair.mean(), *taken(values.mean(-1), place)]
            columns[f"{name}_sd"] = [unfair.std(), *taken(values.std(-1), place)]
        columns |= {
            "naup": [np.nan, *self.areas()],
            "naup_low": [np.nan, *low],
            "naup_high": [np.nan, *high],
        }
        return pd.DataFrame(columns).assign(splits=self.splits)


def named(rows: pd.DataFrame) -> pd.DataFrame:
    """Return the rows with a column ``name``: the method, and its option after a colon where it has one."""
    return rows.assign(
        name=rows["method"].where(rows["option"] == "", rows["method"] + ":" + rows["option"])
    )


def sweeps_of(
    rows: pd.DataFrame, measure: str, *, methods: tuple[str, ...] | None = None
) -> Iterator[tuple[str, Frontiers]]:
    """Yield each dataset of ``rows`` (:func:`named`, one variant and protocol of each) with its sweeps."""
    # Every part would have a copy of each of the dozens of columns that stored rows have.
    used = {*KEYS, "task", "method", "name", "lam", "split", "performance", measure}
    for key, part in rows[[column for column in rows if column in used]].groupby(KEYS, sort=True):
        yield (
            str(key[0]),
            Frontiers.from_rows(part, methods=methods, dependence=measure, name="name"),
        )


def on_grid(rows: pd.DataFrame, lams: Iterable[float] | None) -> pd.DataFrame:
    """Return the rows at some λ, and those of Unfair; all rows without ``lams``."""
    return (
        rows if lams is None else rows[(rows["method"] == "unfair") | rows["lam"].isin(list(lams))]
    )


# Paired tests over splits ---------------------------------------------------------------------------------------------


def signed_rank(difference: np.ndarray) -> float:
    """Return the exact two-sided p-value of Wilcoxon's signed-rank test; ties and zeros are allowed.

    Zeros are left out (Wilcoxon's way), tied |d| share their mean rank, and the law of the rank sum under random signs
    is counted out, conditionally on the ranks: twice the smaller tail, at most 1. The smallest p-value n differences
    can reach is 2^(1 − n): 1/16 with five, 6·10⁻⁸ with 25. O(n³).

    Examples
    --------
    >>> signed_rank(np.array([1.0, 2.0, 3.0, 4.0, 5.0]))
    0.0625
    """
    kept = np.asarray(difference, float)
    kept = kept[kept != 0.0]
    if not len(kept):
        return 1.0
    _, places, ties = np.unique(np.abs(kept), return_inverse=True, return_counts=True)
    doubled = (2 * np.cumsum(ties) - ties + 1)[places]  # midranks are halves of integers
    law = np.zeros(doubled.sum() + 1)
    law[0] = 1.0
    for rank in doubled:
        law[rank:] = 0.5 * law[rank:] + 0.5 * law[: len(law) - rank]
        law[:rank] *= 0.5
    observed = int(doubled[kept > 0].sum())
    return float(min(1.0, 2.0 * min(law[: observed + 1].sum(), law[observed:].sum())))


def holm(p: np.ndarray) -> np.ndarray:
    """Return p-values adjusted by Holm's step-down method: any set of claims made at level α has familywise error α.

    Examples
    --------
    >>> holm(np.array([0.01, 0.04, 0.03])).tolist()
    [0.03, 0.06, 0.06]
    """
    p = np.asarray(p, float)
    order = np.argsort(p, kind="stable")
    stepped = np.maximum.accumulate(p[order] * np.arange(len(p), 0, -1))
    adjusted = np.empty_like(p)
    adjusted[order] = np.minimum(stepped, 1.0)
    return adjusted


def mean_of_others(values: np.ndarray) -> np.ndarray:
    """Return for each split (first axis) the mean over the other splits, by which a setting is chosen.

    Examples
    --------
    >>> mean_of_others(np.array([1.0, 2.0, 6.0])).tolist()
    [4.0, 3.5, 1.5]
    """
    return (values.sum(0) - values) / (len(values) - 1)


def corrected_t(difference: np.ndarray, *, test_share: float = 0.2) -> tuple[float, float]:
    r"""Return t and two-sided p of the corrected resampled t-test of Nadeau and Bengio.

    .. math:: t = \bar d\,/\sqrt{\big(\tfrac1J + \tfrac{n_\text{test}}{n_\text{train}}\big)\,s^2},\qquad J - 1
        \text{ degrees of freedom.}

    With one fifth for testing the variance is not s²/J but s²(1/J + 1/4): more splits help only up to a point.

    Examples
    --------
    >>> t, p = corrected_t(np.array([1.0, 2.0, 3.0]))
    >>> round(t, 4), round(p, 4)
    (2.6186, 0.1201)
    """
    d = np.asarray(difference, float)
    variance = d.var(ddof=1) * (1.0 / len(d) + test_share / (1.0 - test_share))
    if variance == 0.0:
        return (0.0, 1.0) if d.mean() == 0.0 else (float(np.copysign(np.inf, d.mean())), 0.0)
    t = d.mean() / np.sqrt(variance)
    return float(t), float(2.0 * special.stdtr(len(d) - 1, -abs(t)))


def t_interval(difference: np.ndarray, *, test_share: float = 0.0) -> tuple[float, float]:
    """Return the mean of paired differences and the half-width of its 95 % t interval; NaN with a single one.

    With ``test_share`` it is the interval of :func:`corrected_t`.

    Examples
    --------
    >>> mean, half = t_interval(np.array([1.0, 2.0, 3.0]))
    >>> mean, round(half, 3)
    (2.0, 2.484)
    """
    d = np.asarray(difference, float)
    share = 1.0 / max(len(d), 1) + test_share / (1.0 - test_share)
    half = (
        special.stdtrit(len(d) - 1, 0.975) * d.std(ddof=1) * np.sqrt(share)
        if len(d) > 1
        else np.nan
    )
    return float(d.mean()), float(half)


def compare_all(pairs: Iterable[tuple[dict[str, Any], np.ndarray]]) -> pd.DataFrame:
    """Compare two methods from their differences over splits, of which positive ones favor the first; a line for each.

    A line has its labels; ``splits``, ``wins``, ``losses`` and ``mean``; ``p`` of the exact signed-rank test and
    ``p_corrected`` of the corrected resampled t-test; and both adjusted over all lines by Holm's method, ``p_holm`` and
    ``p_corrected_holm``. ``verdict_corrected`` is what the latter says at 5 %: ``better``, ``worse`` or
    ``not_significant``.
    """
    lines = []
    for labels, d in pairs:
        if not np.isfinite(d).all():
            raise ValueError(
                "difference holds NaN or infinity: leave these splits out of both methods."
            )
        counts = {
            "splits": len(d),
            "wins": (d > 0).sum(),
            "losses": (d < 0).sum(),
            "mean": d.mean(),
        }
        lines.append(labels | counts | {"p": signed_rank(d), "p_corrected": corrected_t(d)[1]})
    table = pd.DataFrame(lines)
    table = table.assign(p_holm=holm(table["p"]), p_corrected_holm=holm(table["p_corrected"]))
    side = np.where(table["mean"] > 0, "better", "worse")
    return table.assign(
        verdict_corrected=np.where(table["p_corrected_holm"] < 0.05, side, "not_significant")
    )
