"""Tables and queries from stored draws of the synthetic validation and the ablations; torch is not needed.

Draws are independent samples of a law, so differences between two settings on the same draws are independent, and the
signed-rank test needs no correction for overlapping splits. The paper prints one run for each of these, so the interval
of a query is that of one run; for GDP, which is positive and spans orders of magnitude here, the range over our draws.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import Any

import numpy as np
import pandas as pd

from frhsic_core.paper.claims.answers import IMPLEMENTED, PROTOCOLS, Answer, one_run, query, rows_of
from frhsic_core.paper.experiments.shared.paired import compare_all, t_interval
from frhsic_core.paper.experiments.synthetic_validation import ARMS, DIMENSION

GROUP = ["arm", "signal"]
BASE = ("gaussian", "gaussian", DIMENSION)
CELL = ["kernel_z", "kernel_s", "dimension"]
Cell = tuple[str, str, int]
Pairs = list[tuple[str, np.ndarray, np.ndarray]]


def is_constant(rows: pd.DataFrame) -> pd.Series:
    """Return whether a model predicts the same class for every test row."""
    return rows["positive"].isin((0.0, 1.0))


def along_lambda(rows: pd.DataFrame) -> pd.DataFrame:
    """Return, for each arm, signal and λ, means and standard deviations over draws, and the share of constant models.

    ``accuracy``, ``gdp`` (as in the paper), ``hsic`` (unit bandwidths), ``linear_r2`` and ``nonlinear_r2`` of probes of
    S; ``excess`` is accuracy minus the majority rate of the same test rows. ``ratio`` is the median over draws of the
    median distance of Z in bandwidths, which has a long tail where Z escapes.
    """
    named = rows.assign(
        accuracy=rows["performance"],
        gdp=rows["gdp_reference"],
        hsic=rows["hsic_unit"],
        excess=rows["performance"] - rows["constant"],
        constant_models=is_constant(rows).astype(float),
    )
    grouped = named.groupby([*GROUP, "lam"])
    table = grouped[["accuracy", "gdp", "hsic", "excess", "linear_r2", "nonlinear_r2"]].agg(["mean", "std"])
    table.columns = [name if what == "mean" else f"{name}_sd" for name, what in table.columns]
    table = table.join(grouped[["constant_models", "constant", "bayes"]].mean())
    return table.join(grouped[["ratio"]].median())


def falling(rows: pd.DataFrame, column: str = "gdp_reference") -> pd.DataFrame:
    """Return how often a column falls along λ: in single runs and in the mean over draws.

    ``runs``: share of draws in which every step along λ is down or level; ``steps``: share of single steps;
    ``mean_falls``: whether the mean falls at every step; ``together``: the mean over draws of Spearman's correlation,
    along λ, between the column and the unit-bandwidth HSIC.

    Examples
    --------
    >>> line = {"arm": "a", "signal": "b", "draw": 1, "gdp_reference": [3.0, 1.0, 2.0], "hsic_unit": [3.0, 2.0, 1.0]}
    >>> found = falling(pd.DataFrame({**line, "lam": [0.0, 1.0, 2.0]}))
    >>> [float(value) for value in found.loc[("a", "b")]]
    [0.0, 0.5, 0.0, 0.5]
    """
    from scipy.stats import spearmanr

    lines = {}
    for key, part in rows.groupby(GROUP):
        values = part.pivot(index="draw", columns="lam", values=column).sort_index(axis=1)
        other = part.pivot(index="draw", columns="lam", values="hsic_unit").sort_index(axis=1)
        down = np.diff(values.to_numpy(), axis=1) <= 0
        pairs = zip(values.to_numpy(), other.to_numpy(), strict=True)
        lines[key] = {
            "runs": float(down.all(axis=1).mean()),
            "steps": float(down.mean()),
            "mean_falls": bool((np.diff(values.mean()) <= 0).all()),
            "together": float(np.mean([spearmanr(a, b).statistic for a, b in pairs])),
        }
    table = pd.DataFrame.from_dict(lines, orient="index")
    table.index = pd.MultiIndex.from_tuples(list(lines), names=GROUP)
    return table


def cell_table(rows: pd.DataFrame) -> pd.DataFrame:
    """Return mean, standard deviation and extremes over draws for each arm, signal and cell of the ablations."""
    penalised = rows[rows["lam"] > 0].assign(constant_models=is_constant(rows).astype(float))
    grouped = penalised.groupby([*GROUP, *CELL])
    return pd.DataFrame(
        {
            "accuracy": grouped["performance"].mean(),
            "accuracy_sd": grouped["performance"].std(),
            "majority": grouped["constant"].mean(),
            "gdp": grouped["gdp_reference"].mean(),
            "gdp_sd": grouped["gdp_reference"].std(),
            "gdp_low": grouped["gdp_reference"].min(),
            "gdp_high": grouped["gdp_reference"].max(),
            "linear_r2": grouped["linear_r2"].mean(),
            "nonlinear_r2": grouped["nonlinear_r2"].mean(),
            "constant_models": grouped["constant_models"].mean(),
        }
    )


def _tested(rows: pd.DataFrame, column: str, pairs_of: Callable[[dict[Cell, np.ndarray]], Pairs]) -> pd.DataFrame:
    """Compare pairs of cells in each arm and signal, draw by draw; Holm within arm and signal."""
    tables = []
    for (arm, signal), part in rows[rows["lam"] > 0].groupby(GROUP):
        values = {key: cell.sort_values("draw")[column].to_numpy(float) for key, cell in part.groupby(CELL)}
        named = [({"arm": arm, "signal": signal, "comparison": name}, a, b) for name, a, b in pairs_of(values)]
        tables.append(compare_all(named, higher=True, resamples=200))
    shown = ["arm", "signal", "comparison", "mean", "median", "higher_in", "draws", "effect", "p", "p_holm"]
    names = {"wins": "higher_in", "splits": "draws"}
    return pd.concat(tables, ignore_index=True).rename(columns=names)[shown]


def compared_cells(rows: pd.DataFrame, column: str = "gdp_reference") -> pd.DataFrame:
    """Compare every pair of kernels with Gaussian–Gaussian, draw by draw; Holm within each arm and signal.

    ``mean`` and ``median`` are of the cell minus Gaussian–Gaussian; ``higher_in`` counts draws.
    """

    def pairs(values: dict[Cell, np.ndarray]) -> Pairs:
        others = [key for key in values if key[2] == DIMENSION and key != BASE]
        return [(f"{key[0]}, {key[1]}", values[key], values[BASE]) for key in others]

    return _tested(rows, column, pairs)


def dimension_steps(rows: pd.DataFrame, column: str = "gdp_reference") -> pd.DataFrame:
    """Compare each dimension with the next smaller, and the largest with the smallest; Holm within arm and signal."""

    def pairs(values: dict[Cell, np.ndarray]) -> Pairs:
        sizes = {key[2]: value for key, value in sorted(values.items()) if key[:2] == BASE[:2]}
        steps = [*pairwise(sizes), (min(sizes), max(sizes))]
        return [(f"{a} to {b}", sizes[b], sizes[a]) for a, b in steps]

    return _tested(rows, column, pairs)


COLUMNS = {"acc": "performance", "gdp": "gdp_reference"}


@query(kind=IMPLEMENTED)
def synthetic_network(what: str) -> Answer:
    """Return the width of the hidden layers or the number of layers of the encoder, Z's included, in either arm."""
    values: dict[str, Any] = {}
    for name in PROTOCOLS:
        widths = tuple(dict.fromkeys(ARMS[name].hidden))
        values[name] = len(ARMS[name].hidden) + 1 if what == "layers" else widths[0] if len(widths) == 1 else widths
    return Answer(values)


def steps_along(rows: pd.DataFrame, column: str) -> pd.DataFrame:
    """Return the mean change of a column at each step of λ over the same draws, with its 95 % interval."""
    values = rows.pivot(index="draw", columns="lam", values=column).sort_index(axis=1)
    lines = []
    for before, after in pairwise(values.columns):
        mean, half = t_interval((values[after] - values[before]).to_numpy())
        lines.append({"lam": after, "mean": mean, "low": mean - half, "high": mean + half})
    return pd.DataFrame(lines)


@query
def synthetic_falls(what: str) -> Answer:
    """Return whether the mean over draws falls at every step of λ: GDP, or GDP and HSIC together.

    A step rises only if its paired interval lies above zero; one that holds zero leaves the claim open.
    """
    rows = rows_of("synthetic")
    rows = rows[rows["signal"] == "paper"]
    gdp = falling(rows, "gdp_reference")
    values: dict[str, Any] = {}
    notes = []
    for name in PROTOCOLS:
        part = rows[rows["arm"] == name]
        columns = ["gdp_reference"] if what == "gdp" else ["gdp_reference", "hsic_unit"]
        steps = pd.concat([steps_along(part, column) for column in columns], ignore_index=True)
        if (steps["low"] > 0).any():
            up = steps.loc[steps["low"].idxmax()]
            values[name] = False
            span = f"{up['mean']:.3g} ({up['low']:.3g} to {up['high']:.3g})"
            notes.append(f"{name}: rises to λ = {up['lam']:g} by {span}")
        elif (steps["high"] > 0).any():
            values[name] = "no step rises significantly, and not every step falls significantly"
        else:
            values[name] = True
        share = gdp.loc[(name, "paper"), "runs" if what == "gdp" else "together"]
        notes.append(
            f"{name}: GDP falls at every step in {share:.0%} of single runs"
            if what == "gdp"
            else f"{name}: rank correlation of GDP and HSIC along λ {share:.2f} on average"
        )
    return Answer(values, note="; ".join(notes))


@query
def synthetic_accuracy() -> Answer:
    """Return the accuracy of one run averaged over the λ grid, beside the majority rate."""
    rows = rows_of("synthetic")
    rows = rows[rows["signal"] == "paper"]
    values = {}
    intervals = {}
    notes = []
    for name in PROTOCOLS:
        part = rows[rows["arm"] == name]
        values[name], intervals[name], _ = one_run(part.groupby("draw")["performance"].mean().to_numpy())
        last = part[part["lam"] == part["lam"].max()]
        notes.append(f"{name}: {is_constant(last).mean():.0%} of the models at the largest λ predict one class")
    own = rows[rows["draw"] == rows["draw"].min()]["constant"].iloc[0]
    level = along_lambda(rows)["constant"].mean()
    note = f"majority rate {level:.3f}, {own:.3f} on the paper's draw; " + "; ".join(notes)
    return Answer(values, intervals, note=note, measure="performance")


@query
def ablation_cell(
    measure: str, kernel_z: str = "gaussian", kernel_s: str = "gaussian", dimension: int | None = 8
) -> Answer:
    """Return one cell of the ablation tables on the paper's law; without ``dimension`` the mean over all four."""
    rows = rows_of("ablation")
    rows = rows[(rows["signal"] == "paper") & (rows["lam"] > 0)]
    rows = rows[(rows["kernel_z"] == kernel_z) & (rows["kernel_s"] == kernel_s)]
    if dimension is not None:
        rows = rows[rows["dimension"] == dimension]
    values = {}
    intervals = {}
    notes = []
    for name in PROTOCOLS:
        part = rows[rows["arm"] == name]
        if part.empty:
            notes.append(f"the {name} arm has no {kernel_z} and {kernel_s} pair")
            continue
        runs = part.groupby("draw")[COLUMNS[measure]].mean().to_numpy()
        values[name], intervals[name], level = one_run(runs, skewed=measure == "gdp")
        own = part[part["draw"] == part["draw"].min()][COLUMNS[measure]].mean()
        constant = is_constant(part).mean()
        notes.append(f"{name}: {own:.4f} on the paper's own sample, {constant:.0%} of the models predict one class")
    named = "gdp" if measure == "gdp" else "performance"
    return Answer(values, intervals, note="; ".join(notes), measure=named, level=level)
