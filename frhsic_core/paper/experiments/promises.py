"""How often each bound is true at the worst corners, at one size and at all sizes of one path.

The samples come from eight distributions over a few scores and groups. A sample is then a table of counts, and every
bound is a function of this table, so that ten thousand samples are one array. A test compares these functions with
:mod:`frhsic_core.bounds`, row by row.

Table ``promises``: one unit draws all samples of one distribution and size; a row is one bound and one δ. The kernels
on Z (the score) and S are 1 for equal values and 0 otherwise.

Table ``promises_in_time``: one unit draws paths that are looked at again and again from 50 to 20,000 rows; a path
counts as covered if the bound is true at every look.
"""

from __future__ import annotations

import math
import zlib
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from frhsic_core.paper.runs.plan import Experiment, units_of

Array = NDArray[np.float64]

DELTAS = (0.01, 0.05, 0.2)
PLANNED = 10_000  # rows to which the bounds for all sizes are tuned
LOOKS = (50, 20_000)
COIN = (0.0, 1.0)
LAWS = (
    "fair coin",
    "fair coin, dependent",
    "rare outcome",
    "tiny group",
    "200 groups",
    "200 groups, dependent",
    "heavy ties",
    "narrow scores",
)


@dataclass(frozen=True)
class Law:
    """Probabilities ``(scores, groups)``, and the scores."""

    table: Array
    scores: Array

    @property
    def gdp(self) -> float:
        """GDP over the groups."""
        return float(group_gap(self.table, self.scores))

    @property
    def hsic(self) -> float:
        """HSIC with kernels that compare equal values."""
        return float(root_hsic(self.table) ** 2)

    @property
    def eipm(self) -> float:
        """EIPM with such a kernel on the score."""
        return float(group_distance(self.table))


def law(name: str) -> Law:
    """Return one of the distributions.

    Examples
    --------
    >>> [round(law(name).gdp, 4) for name in LAWS[:5]]
    [0.0, 0.1, 0.005, 0.0079, 0.0]
    """
    scores: tuple[float, ...] = COIN
    if name == "fair coin":
        table = _coins([0.5, 0.5], [0.5, 0.5])
    elif name == "fair coin, dependent":
        table = _coins([0.5, 0.5], [0.4, 0.6])
    elif name == "rare outcome":
        table = _coins([0.5, 0.5], [0.005, 0.015])
    elif name == "tiny group":
        table = _coins([0.99, 0.01], [0.5, 0.9])
    elif name == "200 groups":
        table = _coins(np.full(200, 0.005), np.full(200, 0.5))
    elif name == "200 groups, dependent":
        table = _coins(np.full(200, 0.005), np.linspace(0.2, 0.8, 200))
    elif name == "heavy ties":
        scores = (0.0, 0.5, 1.0)
        table = np.array([[0.01, 0.02, 0.02], [0.30, 0.30, 0.30], [0.02, 0.02, 0.01]])
    else:
        scores = (0.4, 0.5, 0.6)
        table = np.array([[0.15, 0.05], [0.30, 0.30], [0.05, 0.15]])
    return Law(np.asarray(table, dtype=float), np.asarray(scores))


def _coins(mass: Any, probability: Any) -> Array:
    mass, probability = np.asarray(mass), np.asarray(probability)
    return np.stack([mass * (1.0 - probability), mass * probability])


# Statistics of tables of shares (..., scores, groups) ----------------------------------------------------------------


def group_gap(table: Array, scores: Array) -> Array:
    """Return GDP over the groups."""
    of_group = np.tensordot(table, scores, axes=(-2, 0))
    mass = table.sum(-2)
    return np.asarray(np.abs(of_group - mass * of_group.sum(-1, keepdims=True)).sum(-1))


def root_hsic(table: Array) -> Array:
    """Return the root of HSIC."""
    both = table.sum(-1, keepdims=True) * table.sum(-2, keepdims=True)
    return np.sqrt(((table - both) ** 2).sum((-2, -1)))


def group_distance(table: Array) -> Array:
    """Return EIPM, the mean distance of the distribution of the score in a group from that of all."""
    both = table.sum(-1, keepdims=True) * table.sum(-2, keepdims=True)
    return np.asarray(np.sqrt(((table - both) ** 2).sum(-2)).sum(-1))


def moments(table: Array, scores: Array, n: Any) -> tuple[Array, Array]:
    """Return the mean and the standard deviation (divisor n − 1) of the scores."""
    of_score = table.sum(-1)
    mean = of_score @ scores
    variance = np.maximum(of_score @ scores**2 - mean**2, 0.0)
    return mean, np.sqrt(variance * n / (np.asarray(n) - 1.0))


def both_differ(table: Array, n: int) -> Array:
    """Return the share of pairs of rows that differ in both columns."""
    rows, columns = table.sum(-1), table.sum(-2)
    same = 1.0 - (rows**2).sum(-1) - (columns**2).sum(-1) + (table**2).sum((-2, -1))
    return np.asarray(same * n / (n - 1))


def differ(table: Array, n: int) -> Array:
    """Return the share of pairs of rows with different scores."""
    return np.asarray((1.0 - (table.sum(-1) ** 2).sum(-1)) * n / (n - 1))


# One size ------------------------------------------------------------------------------------------------------------


def plan_promises() -> Experiment:
    """Return one unit for each distribution and size."""
    name = "promises"
    return Experiment(name, units_of(name, law=LAWS, n=(50, 500, 5000), draws=10_000))


def measure_unit_promises(unit: dict[str, Any], device: str) -> list[dict[str, Any]]:
    """Return, for each bound and δ, in how many samples the bound is at least as large as the truth."""
    chosen = law(unit["law"])
    n, draws = unit["n"], unit["draws"]
    generator = np.random.default_rng(zlib.crc32(f"{unit['law']} {n}".encode()))
    counts = generator.multinomial(n, chosen.table.ravel(), size=draws)
    tables = counts.reshape(draws, *chosen.table.shape) / n
    found = []
    for delta in DELTAS:
        for name, bound in bounds_of(tables, chosen.scores, n, delta).items():
            kind = name.partition(",")[0]
            estimate = {
                "gdp": group_gap(tables, chosen.scores),
                "hsic": root_hsic(tables),
                "eipm": group_distance(tables),
            }[kind]
            truth = {"gdp": chosen.gdp, "hsic": math.sqrt(chosen.hsic), "eipm": chosen.eipm}[kind]
            row = {"bound": name, "delta": delta, "truth": truth}
            row["covered"] = int((bound >= truth - 1e-12).sum())
            row["estimate_covers"] = int((estimate >= truth - 1e-12).sum())
            row["slack"] = float((bound - estimate).mean())
            found.append(row)
    return found


def bounds_of(tables: Array, scores: Array, n: int, delta: float) -> dict[str, Array]:
    """Return every bound of the library for many samples of one size; those of HSIC are for its root."""
    from frhsic_core.bounds.gdp import Once, always_slack, variance_slack
    from frhsic_core.bounds.heads import HeadProjection
    from frhsic_core.bounds.hsic import AllTimes, pair_slack
    from frhsic_core.bounds.inequalities import hoeffding

    level = math.log(1.0 / delta)
    gap, root, distance = group_gap(tables, scores), root_hsic(tables), group_distance(tables)
    mean, deviation = moments(tables, scores, n)
    once = hoeffding(2.0, n, level) + gap / (n - 1)
    if Once().method(n, delta) == "variance":
        once = variance_slack(mean, deviation, n, delta)
    always = _distinct(always_slack, mean, deviation, n, delta)
    jensen = n / (n - 1) * root
    pairs = differ(tables, n)
    heads = [
        HeadProjection(e, v, 2.0, delta, None).bound(n)
        for e, v in zip(distance.tolist(), pairs.tolist(), strict=True)
    ]
    all_sizes = HeadProjection(0.0, 0.0, 2.0, delta, PLANNED)
    times = AllTimes(math.sqrt(6.0), (math.sqrt(2.0), math.sqrt(2.0)), delta, PLANNED)
    return {
        "gdp": np.minimum(gap + once, 0.5),
        "gdp, all sizes": np.minimum(gap + always, 0.5),
        "hsic": np.minimum(jensen + math.sqrt(6.0 * level / (2.0 * n)), 0.5),
        "hsic, variance": np.minimum(jensen + pair_slack(both_differ(tables, n), n, delta), 0.5),
        "hsic, all sizes": np.minimum(root + float(times.slack(n)), 0.5),
        "eipm": np.array(heads),
        "eipm, all sizes": np.minimum(distance + all_sizes.slack(n), 1.0),
    }


def _distinct(function: Any, mean: Array, deviation: Array, n: Any, delta: float) -> Array:
    """Return a slack that is computed once for each distinct pair of mean and deviation."""
    pairs, places = np.unique(
        np.round(np.stack([mean, deviation]), 12), axis=1, return_inverse=True
    )
    found = function(pairs[0], pairs[1], n, delta, rows=PLANNED)
    return np.asarray(np.asarray(found)[places.ravel()])


# All sizes -----------------------------------------------------------------------------------------------------------


def plan_promises_in_time() -> Experiment:
    """Return one unit for each distribution; with 200 groups fewer paths and looks."""
    name = "promises_in_time"
    few = tuple(key for key in LAWS if not key.startswith("200"))
    many = tuple(key for key in LAWS if key.startswith("200"))
    units = units_of(name, law=few, draws=10_000, looks=120)
    return Experiment(name, units + units_of(name, law=many, draws=1000, looks=30))


def look_times(looks: int) -> NDArray[np.int64]:
    """Return the numbers of rows at which a path is looked at."""
    low, high = LOOKS
    return np.unique(np.geomspace(low, high, looks).round().astype(int))


def measure_unit_promises_in_time(unit: dict[str, Any], device: str) -> list[dict[str, Any]]:
    """Return in how many paths a bound is true at every look: the one for all sizes, and the one for one size."""
    chosen = law(unit["law"])
    generator = np.random.default_rng(zlib.crc32(f"path {unit['law']}".encode()))
    draws, times = unit["draws"], look_times(unit["looks"])
    counts = np.zeros((draws, chosen.table.size))
    names = ("gdp, all sizes", "gdp, every look as if alone", "hsic, all sizes", "eipm, all sizes")
    true = {(name, delta): np.ones(draws, dtype=bool) for name in names for delta in DELTAS}
    for n, more in zip(times, np.diff(times, prepend=0), strict=True):
        counts += generator.multinomial(more, chosen.table.ravel(), size=draws)
        tables = counts.reshape(draws, *chosen.table.shape) / n
        for delta in DELTAS:
            for name, short in _too_small(tables, chosen, int(n), delta).items():
                true[name, delta] &= ~short
    return [
        {"bound": name, "delta": delta, "covered": int(held.sum())}
        for (name, delta), held in true.items()
    ]


def _too_small(tables: Array, chosen: Law, n: int, delta: float) -> dict[str, NDArray[np.bool_]]:
    """Return for each bound in which paths it is below the truth at n rows.

    The bound for all sizes is computed only where the estimate is below the truth by more than √(2vL/n), which is a
    part of it: its mixture over rates is at most its largest term.
    """
    from frhsic_core.bounds.gdp import Once, always_slack, levels, variance_slack
    from frhsic_core.bounds.heads import HeadProjection
    from frhsic_core.bounds.hsic import AllTimes
    from frhsic_core.bounds.inequalities import hoeffding, product_moment

    scores = chosen.scores
    missing = chosen.gdp - group_gap(tables, scores)
    mean, deviation = moments(tables, scores, n)
    square = np.maximum(mean, 1.0 - mean) ** 2
    variance = np.minimum(deviation**2 * (n - 1) / n, np.minimum(square, 0.25))
    part = np.sqrt(2.0 * product_moment(variance, square) * levels(delta)[0] / n)
    doubtful = np.flatnonzero(missing > np.maximum(part, 1e-12))
    always = np.zeros(len(missing), dtype=bool)
    if len(doubtful):
        slack = _distinct(always_slack, mean[doubtful], deviation[doubtful], n, delta)
        always[doubtful] = missing[doubtful] > slack
    alone = np.zeros(len(missing), dtype=bool)
    below = np.flatnonzero(missing > 1e-12)
    if Once().method(n, delta) == "variance":
        slack = variance_slack(mean[below], deviation[below], n, delta)
    else:
        slack = hoeffding(2.0, n, math.log(1.0 / delta))
    alone[below] = missing[below] > slack
    times = AllTimes(math.sqrt(6.0), (math.sqrt(2.0), math.sqrt(2.0)), delta, PLANNED)
    heads = HeadProjection(0.0, 0.0, 2.0, delta, PLANNED)
    return {
        "gdp, all sizes": always,
        "gdp, every look as if alone": alone,
        "hsic, all sizes": math.sqrt(chosen.hsic) - root_hsic(tables) > float(times.slack(n)),
        "eipm, all sizes": chosen.eipm - group_distance(tables) > heads.slack(n),
    }


# Tables --------------------------------------------------------------------------------------------------------------


def coverage_table(rows: pd.DataFrame) -> pd.DataFrame:
    """Return the smallest coverage of each bound and δ, and whether any is below 1 − δ beyond the error of simulation.

    ``broken`` counts the settings in which a binomial test at level .001 rejects coverage of at least 1 − δ.
    """
    from scipy.stats import binomtest

    rows = rows.assign(coverage=rows["covered"] / rows["draws"])
    rows["broken"] = [
        binomtest(int(row.covered), int(row.draws), 1.0 - row.delta, alternative="less").pvalue
        < 0.001
        for row in rows.itertuples()
    ]
    return (
        rows.groupby(["bound", "delta"], sort=False)
        .agg(settings=("covered", "size"), coverage=("coverage", "min"), broken=("broken", "sum"))
        .reset_index()
    )
