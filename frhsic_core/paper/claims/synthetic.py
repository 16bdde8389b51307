"""Queries of the ledger on the synthetic validation, the ablations, the tightness of the bound and λ̂_S against σ.

The paper prints one run for each of these, so the interval is that of one run: the mean over our draws or splits ± 2
standard deviations; for GDP, which is positive and spans orders of magnitude here, on its logarithm.
"""

from __future__ import annotations

import math
from functools import cache
from typing import Any

import numpy as np
import pandas as pd

from frhsic_core.paper.claims.answers import Answer, query
from frhsic_core.paper.claims.results import PROTOCOLS, predicted, weights
from frhsic_core.paper.experiments import module_of
from frhsic_core.paper.experiments.presets import experiment_for
from frhsic_core.paper.experiments.tables.synthetic import along_lambda, falling, is_constant
from frhsic_core.paper.experiments.tables.tightness import TRIVIAL, slopes, with_bounds
from frhsic_core.paper.runs.plan import Experiment
from frhsic_core.paper.runs.reference import stored_rows

__all__ = ["one_run"]

COLUMNS = {"acc": "performance", "gdp": "gdp_reference"}


@cache
def _rows(experiment: str) -> pd.DataFrame:
    return stored_rows(experiment)


def _absent(experiment: str) -> Answer:
    return Answer(why=f"not run yet (no stored rows of {experiment!r})")


def one_run(values: np.ndarray, *, logarithm: bool = False) -> tuple[float, tuple[float, float]]:
    """Return the mean of some runs and where one further run would lie; with ``logarithm`` the geometric mean.

    Examples
    --------
    >>> one_run(np.array([1.0, 1.0, 1.0]))
    (1.0, (1.0, 1.0))
    """
    values = np.asarray(values, float)
    if logarithm:
        mean, (low, high) = one_run(np.log(values))
        return math.exp(mean), (math.exp(low), math.exp(high))
    return float(values.mean()), predicted(weights(len(values), 1) @ values, runs=1, splits=len(values))


@query
def plan_value(module: str, name: str) -> Answer:
    """A grid or a number of an experiment's plan, as the module that trains has it."""
    return Answer({"any": getattr(module_of(module), name)})


@query
def synthetic_network(what: str) -> Answer:
    """Width of the hidden layers or number of layers of the encoder, Z's included, in either arm."""
    arms = module_of("synthetic").ARMS
    values: dict[str, Any] = {}
    for name in PROTOCOLS:
        widths = tuple(dict.fromkeys(arms[name].hidden))
        values[name] = len(arms[name].hidden) + 1 if what == "layers" else widths[0] if len(widths) == 1 else widths
    return Answer(values)


@query
def synthetic_falls(what: str) -> Answer:
    """Whether the mean over draws falls at every step of λ: GDP, or GDP and HSIC together."""
    rows = _rows("synthetic")
    if rows.empty:
        return _absent("synthetic")
    rows = rows[rows["signal"] == "paper"]
    gdp, hsic = falling(rows, "gdp_reference"), falling(rows, "hsic_unit")
    values, said = {}, []
    for name in PROTOCOLS:
        key = (name, "paper")
        values[name] = bool(gdp.loc[key, "mean_falls"] and (what == "gdp" or hsic.loc[key, "mean_falls"]))
        share = gdp.loc[key, "runs"] if what == "gdp" else gdp.loc[key, "together"]
        said.append(
            f"{name}: GDP falls at every step in {share:.0%} of single runs"
            if what == "gdp"
            else f"{name}: rank correlation of GDP and HSIC along λ {share:.2f} on average"
        )
    return Answer(values, note="; ".join(said))


@query
def synthetic_accuracy() -> Answer:
    """Accuracy of one run averaged over the λ grid, with the majority rate and the share of constant predictors."""
    rows = _rows("synthetic")
    if rows.empty:
        return _absent("synthetic")
    rows = rows[rows["signal"] == "paper"]
    values, intervals, said = {}, {}, []
    for name in PROTOCOLS:
        part = rows[rows["arm"] == name]
        values[name], intervals[name] = one_run(part.groupby("draw")["performance"].mean().to_numpy())
        last = part[part["lam"] == part["lam"].max()]
        said.append(f"{name}: {is_constant(last).mean():.0%} of the models at the largest λ predict one class")
    own = rows[rows["draw"] == rows["draw"].min()]["constant"].iloc[0]
    level = along_lambda(rows)["constant"].mean()
    return Answer(
        values, intervals, note=f"majority rate {level:.3f}, {own:.3f} on the paper's draw; " + "; ".join(said)
    )


@query
def ablation_cell(
    measure: str, kernel_z: str = "gaussian", kernel_s: str = "gaussian", dimension: int | None = 8
) -> Answer:
    """One cell of the ablation tables on the paper's law; without ``dimension`` the mean over the four of a run."""
    rows = _rows("ablation")
    if rows.empty:
        return _absent("ablation")
    rows = rows[(rows["signal"] == "paper") & (rows["lam"] > 0)]
    rows = rows[(rows["kernel_z"] == kernel_z) & (rows["kernel_s"] == kernel_s)]
    if dimension is not None:
        rows = rows[rows["dimension"] == dimension]
    values, intervals, said = {}, {}, []
    for name in PROTOCOLS:
        part = rows[rows["arm"] == name]
        if part.empty:
            said.append(f"the {name} arm has no {kernel_z} and {kernel_s} pair")
            continue
        runs = part.groupby("draw")[COLUMNS[measure]].mean().to_numpy()
        values[name], intervals[name] = one_run(runs, logarithm=measure == "gdp")
        own = part[part["draw"] == part["draw"].min()][COLUMNS[measure]].mean()
        constant = is_constant(part).mean()
        said.append(f"{name}: {own:.4f} on the paper's own sample, {constant:.0%} of the models predict one class")
    return Answer(values, intervals, note="; ".join(said))


@query
def tightness(what: str) -> Answer:
    """Of the tightness runs on the paper's 1,500 rows: violations of its bound, or its looseness in decades."""
    plan = experiment_for("bound_tightness", "full")
    assert isinstance(plan, Experiment)
    if what == "datasets":
        return Answer({"any": len({task.dataset for task in plan.tasks})})
    rows = _rows("bound_tightness")
    if rows.empty:
        return _absent("bound_tightness")
    found = with_bounds(rows[(rows["test_rows"] == 300) & (rows["method"] == "frhsic")], kernel="unit")
    values, said = {}, []
    for name in PROTOCOLS:
        part = found[found["protocol"] == name]
        broken = (part["left_max"] > part["right_64"]).sum()
        values[name] = float(broken if what == "violations" else np.log10(part["right_64"] / part["left"]).min())
        vacuous = (part["right_64"] >= TRIVIAL).mean()
        said.append(
            f"{name}: the right side is at least 1/4, which no head k(z0, ·) can exceed, in {vacuous:.0%} of models"
        )
    return Answer(values, note="; ".join(said))


# The text names no precision: its procedure in double precision, and in single as the released script has it.
PRECISION = {"text": "float64", "reference": "float32"}


@query
def scaling_end(end: str) -> Answer:
    """Smallest or largest λ̂_S above the cut-off over the sweep, both datasets, in double and in single precision."""
    rows = _rows("bandwidth_scaling")
    if rows.empty:
        return _absent("bandwidth_scaling")
    rows = rows[(rows["what"] == "smallest") & (rows["variant"] == "reference")]
    values = {}
    for name, precision in PRECISION.items():
        kept = rows[(rows["precision"] == precision) & (rows["cut"] == "relative")]["log10_smallest"]
        values[name] = float(10.0 ** (kept.min() if end == "smallest" else kept.max()))
    exact = rows[rows["precision"] == "exact"]["log10_smallest"]
    note = f"text in float64, reference in float32; without a cut-off 10^{exact.min():.0f} to 10^{exact.max():.0f}"
    return Answer(values, note=note)


@query
def scaling_factor(largest: float = 2.0) -> Answer:
    """Whether every fitted slope of λ̂_S above the cut-off is within a factor of minus one, in either precision."""
    rows = _rows("bandwidth_scaling")
    if rows.empty:
        return _absent("bandwidth_scaling")
    found = slopes(rows[rows["variant"] == "reference"])
    values, said = {}, []
    for name, precision in PRECISION.items():
        cut = found.xs((precision, "relative"), level=("precision", "cut"))
        values[name] = bool(np.maximum(cut.abs(), 1 / cut.abs()).max() <= largest)
        said.append(f"{precision}: {', '.join(f'{v:.2f}' for v in cut)}")
    exact = found.xs("exact", level="precision")
    said.append(f"without a cut-off: {', '.join(f'{v:.0f}' for v in exact)}")
    return Answer(values, note="slopes, Adult and Crime; " + "; ".join(said))
