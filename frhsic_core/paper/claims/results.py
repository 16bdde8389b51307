"""Queries of the ledger on our own runs: matched points, areas, single models, ranks, and experiments by name.

Where the paper prints a mean over five splits and we have 25, the interval is where another five-split mean would lie:
five of our splits are drawn again and again, the whole summary (the choice of the matched λ included) is computed from
their means, and the interval is the mean of these draws ± 2 standard deviations, times √(1 + 5/25) for the error of our
own mean.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import cache

import numpy as np
import pandas as pd

from frhsic_core.paper.claims.answers import Answer, Interval, query
from frhsic_core.paper.experiments.presets import GRIDS
from frhsic_core.paper.experiments.tables.main_table import MAIN_METHODS, PARETO_METHODS
from frhsic_core.paper.experiments.tables.pareto import Frontiers, matched_index
from frhsic_core.paper.runs.reference import book_folder, stored_rows

__all__ = ["DRAWS", "GRID", "PROTOCOLS", "WIDTH", "lambda_grid", "predicted"]

PROTOCOLS = ("text", "reference")
DRAWS = 1000
# Splits behind a mean of the paper.
RUNS = 5
# Mean of the largest minus the smallest of five standard normal draws.
FIVE_RANGE = 2.326
WIDTH = 2.0
# The λ of both protocols, the same nine for every method: the authors' sweep has these for all of its methods (and nine
# more for FRHSIC), the main table of the book has them too. The text names five of them.
GRID = "full"
_grid = [GRID]


@cache
def _main() -> pd.DataFrame:
    return stored_rows("main")


@contextmanager
def lambda_grid(name: str) -> Iterator[None]:
    """Ask every query of this module on another grid of ``presets.GRIDS`` meanwhile."""
    if name not in GRIDS:
        raise ValueError(f"grid is {name!r}: choose one of {', '.join(GRIDS)}.")
    _grid.append(name)
    try:
        yield
    finally:
        _grid.pop()


@cache
def _frontiers(dataset: str, protocol: str, methods: tuple[str, ...], grid: str) -> Frontiers:
    rows = _main()
    rows = rows[(rows["dataset"] == dataset) & (rows["protocol"] == protocol) & (rows["variant"] == protocol)]
    rows = rows[(rows["option"] == "") & ((rows["method"] == "unfair") | rows["lam"].isin(GRIDS[grid]))]
    return Frontiers.from_rows(rows, methods=methods)


def frontiers(dataset: str, protocol: str, methods: tuple[str, ...] = MAIN_METHODS) -> Frontiers:
    """Return the sweeps of a dataset, each protocol on its own variant of the data, all on one λ grid."""
    return _frontiers(dataset, protocol, methods, _grid[-1])


def weights(splits: int, runs: int) -> np.ndarray:
    """Return the share of each split in ``DRAWS`` means over ``runs`` splits, always the same ones."""
    return np.random.default_rng(0).multinomial(runs, np.full(splits, 1.0 / splits), DRAWS) / runs


def predicted(draws: np.ndarray, *, runs: int, splits: int) -> Interval:
    """Return where another mean over ``runs`` splits would lie, from bootstrap draws of such means."""
    draws = draws[~np.isnan(draws)]
    if draws.size < 2:
        return math.nan, math.nan
    # The bootstrap's spread is that of the sample with divisor n.
    spread = draws.std(ddof=1) * math.sqrt(splits / (splits - 1) * (1.0 + runs / splits))
    return float(draws.mean() - WIDTH * spread), float(draws.mean() + WIDTH * spread)


def matched_draws(sweep: Frontiers, shares: np.ndarray) -> np.ndarray:
    """Return performance and dependence at the matched point, ``(2, methods, draws)``; NaN where there is none."""
    performance, dependence = (np.moveaxis(v @ shares.T, -1, 1) for v in (sweep.performance, sweep.dependence))
    place = matched_index(performance, dependence, (shares @ sweep.unfair_performance)[None], higher=sweep.higher)
    chosen = [np.take_along_axis(v, np.maximum(place, 0)[..., None], -1)[..., 0] for v in (performance, dependence)]
    return np.where(place >= 0, np.stack(chosen), np.nan)


def _summaries(dataset: str, protocol: str) -> tuple[dict[str, np.ndarray], ...]:
    """Return matched points and areas by method (3 rows): of all splits, of the draws, of the paper's own splits."""
    return _summaries_on(dataset, protocol, _grid[-1])


@cache
def _summaries_on(dataset: str, protocol: str, grid: str) -> tuple[dict[str, np.ndarray], ...]:
    sweep, wide = (_frontiers(dataset, protocol, methods, grid) for methods in (MAIN_METHODS, PARETO_METHODS))
    everything, first = np.full((1, wide.splits), 1.0 / wide.splits), np.zeros((1, wide.splits))
    first[0, :RUNS] = 1.0 / RUNS
    found: list[dict[str, np.ndarray]] = []
    for shares in (everything, weights(wide.splits, RUNS), first):
        points, areas = matched_draws(wide, shares), sweep.areas(shares)
        columns = dict(zip(sweep.methods, areas.T, strict=True))
        nothing = np.full(len(shares), np.nan)
        found.append({m: np.stack([*points[:, i], columns.get(m, nothing)]) for i, m in enumerate(wide.methods)})
    return tuple(found)


@cache
def data_note(dataset: str) -> str:
    """Say where the rows behind our reference runs are not those of the authors' runs."""
    ours = json.loads(book_folder("data_summaries", f"{dataset}-reference.json").read_text(encoding="utf-8"))
    sweep = pd.read_csv(book_folder("claims", "reference", "sweep.csv"))
    theirs = sweep[sweep["dataset"] == dataset].iloc[0]
    if (ours["n"], ours["d"]) != (theirs["n"], theirs["d"]):
        here = f"n = {ours['n']:,}, d = {ours['d']} here"
        return f"other data: {here}, {theirs['n']:,} and {theirs['d']} in the authors' runs"
    drawn = [note for note in ours["provenance"]["notes"] if "rows were drawn" in note]
    return "a different draw of 20,000 rows" if drawn else ""


def _grid_note() -> str:
    return f"{len(GRIDS[_grid[-1]])} λ for every method"


def _note(dataset: str, same: float, runs: int = RUNS) -> str:
    # Splits are ordered by seed: the first five are seeded as the paper's.
    which = f"splits 42 to {41 + runs}" if runs > 1 else "split 42"
    own = "" if math.isnan(same) else f"{which} alone, reference protocol: {same:.4g}"
    return "; ".join(part for part in (own, data_note(dataset)) if part)


def _on_grid(answer: Answer) -> Answer:
    return replace(answer, note="; ".join(part for part in (_grid_note(), answer.note) if part))


def _summarised(dataset: str, statistic: Callable[[dict[str, np.ndarray]], np.ndarray]) -> Answer:
    values, intervals = {}, {}
    for protocol in PROTOCOLS:
        everything, draws, first = (statistic(part) for part in _summaries(dataset, protocol))
        values[protocol] = float(everything[0])
        intervals[protocol] = predicted(draws, runs=RUNS, splits=frontiers(dataset, protocol).splits)
    # The loop ends with the reference protocol.
    return Answer(values, intervals, note=_note(dataset, float(first[0])))


@query
def matched(dataset: str, method: str, measure: str, scale: float = 1.0) -> Answer:
    """The matched point: lowest GDP within one per cent of Unfair's performance."""
    row = ("performance", "dependence").index(measure)
    return _summarised(dataset, lambda part: scale * part[method][row])


@query
def no_matched(dataset: str, method: str) -> Answer:
    """Which share of five-split means has no matched point."""
    shares = {name: float(np.isnan(_summaries(dataset, name)[1][method][0]).mean()) for name in PROTOCOLS}
    return Answer(shares, note=data_note(dataset))


@query
def area(dataset: str, method: str) -> Answer:
    """nAUP among the six methods of the main table."""
    return _summarised(dataset, lambda part: part[method][2])


@query
def no_area(dataset: str) -> Answer:
    """Share of comparisons in which Unfair has no sweep and hence no area: one point, λ = 0, in every split."""
    rows = _main()
    rows = rows[(rows["dataset"] == dataset) & (rows["method"] == "unfair")]
    return Answer({name: float((rows.loc[rows["protocol"] == name, "lam"] == 0).mean()) for name in PROTOCOLS})


@query
def point(
    dataset: str, method: str, measure: str, lam: float | None = None, runs: int = RUNS, scale: float = 1.0
) -> Answer:
    """One model of the sweep: at ``lam``, or without it at the λ with the lowest mean GDP."""
    values, intervals = {}, {}
    for protocol in PROTOCOLS:
        rows = _main()
        rows = rows[(rows["dataset"] == dataset) & (rows["method"] == method) & (rows["protocol"] == protocol)]
        rows = rows[rows["variant"] == protocol]
        at = rows.groupby("lam")["gdp_reference"].mean().idxmin() if lam is None else lam
        found = scale * rows[rows["lam"] == at].groupby("split")[measure].mean().to_numpy(float)
        values[protocol] = float(found.mean())
        intervals[protocol] = predicted(weights(len(found), runs) @ found, runs=runs, splits=len(found))
    return Answer(values, intervals, note=_note(dataset, float(found[:runs].mean()), runs))


@query
def area_gap(dataset: str, method: str) -> Answer:
    """How far nAUP is behind the best of the six methods."""
    return _on_grid(
        _summarised(dataset, lambda part: np.max([part[name][2] for name in MAIN_METHODS], axis=0) - part[method][2])
    )


def _places(part: dict[str, np.ndarray], method: str) -> np.ndarray:
    return 1 + sum((part[name][2] > part[method][2]).astype(int) for name in MAIN_METHODS)


@query
def area_rank(dataset: str, method: str) -> Answer:
    """Place by nAUP among the six methods; the interval holds 95 % of the places of five-split means."""
    values, intervals = {}, {}
    for protocol in PROTOCOLS:
        everything, draws, first = (_places(part, method) for part in _summaries(dataset, protocol))
        low, high = np.quantile(draws, [0.025, 0.975])
        values[protocol], intervals[protocol] = float(everything[0]), (float(low), float(high))
    return _on_grid(Answer(values, intervals, note=_note(dataset, float(first[0]))))


@query
def middle_ranks(datasets: list[str], method: str) -> Answer:
    """Whether the place by nAUP is neither the first nor the last of six on every dataset named."""
    places = {
        protocol: [int(_places(_summaries(name, protocol)[0], method)[0]) for name in datasets]
        for protocol in PROTOCOLS
    }
    said = [f"{protocol}: place {', '.join(map(str, found))} of 6" for protocol, found in places.items()]
    note = "; ".join([_grid_note(), *said])
    return Answer({p: all(1 < place < len(MAIN_METHODS) for place in found) for p, found in places.items()}, note=note)
