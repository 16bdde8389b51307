"""The main table, the Pareto summary and the frontiers: eight methods on five datasets, and a small part to run live.

Every interval of the ledger here is where another mean over five splits would lie: five of our splits are drawn again
and again, the whole summary (the choice of the matched λ included) is computed from their means, and the interval is
given by quantiles of these draws, widened for the error of our own mean (``claims.answers.predicted``).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from functools import cache

import numpy as np
import pandas as pd

from frhsic_core.paper.claims.answers import (
    FULL_GRID,
    PROTOCOLS,
    RUNS,
    TAIL,
    Answer,
    data_note,
    joined,
    predicted,
    query,
    rows_of,
    weights,
)
from frhsic_core.paper.experiments.presets import DATASETS, GRIDS, LIVE, METHODS, SPLITS, smoke
from frhsic_core.paper.experiments.shared.pareto import KEYS, Frontiers, matched_index, named, on_grid, taken
from frhsic_core.paper.runs.plan import Experiment, Task
from frhsic_core.paper.runs.stored import paper_table
from frhsic_core.registry import DEPENDENCE, MAIN_METHODS, PARETO_METHODS

ORDER = 1
# The ranks that are neither among the first two nor among the last two of the six methods of the main table.
MIDDLE = (3, 4)


def plan_main(preset: str) -> Experiment:
    """Return the main sweep.

    ``full`` trains the reference protocol on the reference's data, Crime also with the other attribute in each
    protocol, then the text's protocol on the text's data.
    """
    text, reference = (tuple(Task(name, protocol, protocol) for name in DATASETS) for protocol in PROTOCOLS)
    if preset == "smoke":
        return smoke(Experiment("main", (*text, *reference), METHODS, (), ()), epochs=3)
    if preset == "text":
        return Experiment("main", text, METHODS, GRIDS["text"], SPLITS["text"])
    crossed = (Task("crime", "text", "reference"), Task("crime", "reference", "text"))
    return Experiment("main", (*reference, *crossed, *text), METHODS, GRIDS["full"], SPLITS["full"])


def plan_live(preset: str) -> Experiment:
    """Return two methods on a small sample of the synthetic law: what the live cells of the chapters repeat."""
    live = Experiment("live", (LIVE,), ("unfair", "frhsic"), (1.0, 10.0), SPLITS["full"], epochs=40)
    return smoke(live, lams=(10.0,)) if preset == "smoke" else live


def comparisons(rows: pd.DataFrame) -> Iterator[tuple[tuple[str, str, str], pd.DataFrame]]:
    """Yield the rows of each dataset, variant and protocol that can be compared: Unfair and at least one method."""
    for key, part in rows.groupby(KEYS, sort=True):
        if (part["method"] == "unfair").any() and (part["method"] != "unfair").any():
            yield (str(key[0]), str(key[1]), str(key[2])), part


def pareto_table(
    rows: pd.DataFrame,
    *,
    methods: tuple[str, ...] | None = PARETO_METHODS,
    dependence: str = "gdp_reference",
    lams: Iterable[float] | None = None,
    splits: Iterable[int] | None = None,
    unequal_grids: bool = False,
    resamples: int = 1000,
) -> pd.DataFrame:
    """Return matched points and nAUP for every comparison in ``rows``; see ``Frontiers.summary`` for the columns.

    The utility is normalised over ``methods``; ``dependence`` is a key of ``DEPENDENCE``. ``lams`` and ``splits``
    restrict the rows (Unfair stays).
    """
    rows = on_grid(rows, lams)
    if splits is not None:
        rows = rows[rows["split"].isin(list(splits))]
    found = []
    for key, part in comparisons(rows):
        sweep = Frontiers.from_rows(
            named(part), methods=methods, dependence=dependence, unequal_grids=unequal_grids, name="name"
        )
        summary = sweep.summary(resamples=resamples)
        for column, value in zip(reversed(KEYS), reversed(key), strict=True):
            summary.insert(0, column, value)
        found.append(summary)
    return pd.concat(found, ignore_index=True) if found else pd.DataFrame(columns=[*KEYS, "method", "naup"])


def beside_paper(table: pd.DataFrame) -> pd.DataFrame:
    """Return the table with the paper's ``paper_performance``, ``paper_dependence`` and ``paper_naup`` in each line.

    dCor stands in the paper's Pareto summary only, which prints no nAUP. A variant of Crime whose attribute the paper's
    code did not use has no printed value.
    """
    printed = paper_table("tab:real_data").combine_first(paper_table("tab:pareto_summary").drop(columns="naup"))
    printed = printed.add_prefix("paper_").reset_index()
    joined = table.merge(printed, on=["dataset", "method"], how="left")
    other = (joined["dataset"] == "crime") & (joined["variant"] != "reference")
    joined.loc[other, [name for name in joined.columns if name.startswith("paper_")]] = float("nan")
    return joined


def areas_by_measure(rows: pd.DataFrame) -> pd.DataFrame:
    """Return nAUP for every measure of dependence: a line for each comparison and method, a column for each measure."""
    columns = []
    for measure in DEPENDENCE:
        table = pareto_table(rows, dependence=measure, resamples=1)
        columns.append(table[table["method"] != "unfair"].set_index([*KEYS, "method"])["naup"].rename(measure))
    return pd.concat(columns, axis=1)


def extremes(rows: pd.DataFrame, *, near: float = 0.005, escape: float = 3.0) -> pd.DataFrame:
    """Return, for each comparison, method and λ, which share of models collapsed and which escaped their kernel.

    A classifier has *collapsed* when its accuracy is within ``near`` of the majority rate, a regression when its error
    is at least (1 − ``near``) of the variance of y. Z has *escaped* when its median distance is more than ``escape`` or
    less than 1/``escape`` bandwidths at the end (NaN for methods without a kernel on Z).
    """
    regression = rows["task"] == "regression"
    collapsed = (rows["performance"] - rows["constant"]).abs() <= near
    collapsed = collapsed.where(~regression, rows["performance"] >= (1 - near) * rows["constant"])
    outside = ((rows["ratio"] > escape) | (rows["ratio"] < 1 / escape)).where(rows["ratio"].notna())
    shares = rows.assign(collapsed=collapsed.astype(float), escaped=outside.astype(float))
    return shares.groupby([*KEYS, "method", "lam"])[["collapsed", "escaped"]].mean()


@cache
def frontiers(
    dataset: str, protocol: str, *, methods: tuple[str, ...] = MAIN_METHODS, lambda_grid: str = FULL_GRID
) -> Frontiers:
    """Return the sweeps of our runs of one dataset and protocol on a grid of ``presets.GRIDS``."""
    if lambda_grid not in GRIDS:
        raise ValueError(f"grid is {lambda_grid!r}: choose one of {', '.join(GRIDS)}.")
    rows = rows_of("main")
    part = rows[(rows["dataset"] == dataset) & (rows["protocol"] == protocol) & (rows["variant"] == protocol)]
    return Frontiers.from_rows(on_grid(part, GRIDS[lambda_grid]), methods=methods)


def matched_draws(sweep: Frontiers, shares: np.ndarray) -> np.ndarray:
    """Return performance and dependence at the matched point, ``(2, methods, draws)``; NaN where there is none."""
    performance, dependence = (np.moveaxis(v @ shares.T, -1, 1) for v in (sweep.performance, sweep.dependence))
    place = matched_index(performance, dependence, (shares @ sweep.unfair_performance)[None], higher=sweep.higher)
    return np.stack([taken(performance, place), taken(dependence, place)])


@cache
def summaries(dataset: str, protocol: str, lambda_grid: str = FULL_GRID) -> tuple[dict[str, np.ndarray], ...]:
    """Return matched points and areas by method (3 rows): of all splits, of the draws, of the paper's own splits."""
    sweep, wide = (
        frontiers(dataset, protocol, methods=methods, lambda_grid=lambda_grid)
        for methods in (MAIN_METHODS, PARETO_METHODS)
    )

    everything = np.full((1, wide.splits), 1.0 / wide.splits)
    first = np.zeros((1, wide.splits))
    first[0, :RUNS] = 1.0 / RUNS
    found: list[dict[str, np.ndarray]] = []
    for shares in (everything, weights(wide.splits, RUNS), first):
        points = matched_draws(wide, shares)
        areas = sweep.areas(shares)
        columns = dict(zip(sweep.methods, areas.T, strict=True))
        nothing = np.full(len(shares), np.nan)
        found.append({m: np.stack([*points[:, i], columns.get(m, nothing)]) for i, m in enumerate(wide.methods)})
    return tuple(found)


def _note(dataset: str, same: float, *, runs: int = RUNS) -> str:
    # Splits are ordered by seed: the first five are seeded as the paper's.
    which = f"splits 42 to {41 + runs}" if runs > 1 else "split 42"
    own = "" if math.isnan(same) else f"{which} alone, reference protocol: {same:.4g}"
    return joined(own, data_note(dataset))


def _grid_note(lambda_grid: str) -> str:
    return f"{len(GRIDS[lambda_grid])} λ for every method"


def _summarized(
    dataset: str,
    lambda_grid: str,
    statistic: Callable[[dict[str, np.ndarray]], np.ndarray],
    *,
    measure: str = "naup",
    ranks: bool = False,
) -> Answer:
    """Answer with a statistic of :func:`summaries`; the interval of ``ranks`` holds 95 % of those of the draws."""
    values = {}
    intervals = {}
    for protocol in PROTOCOLS:
        everything, draws, first = (statistic(part) for part in summaries(dataset, protocol, lambda_grid))
        values[protocol] = float(everything[0])
        intervals[protocol] = predicted(draws, runs=RUNS, splits=frontiers(dataset, protocol).splits)
        if ranks:
            low, high = np.quantile(draws, [0.025, 0.975])
            intervals[protocol] = float(low), float(high)
    # The loop ends with the reference protocol.
    return Answer(values, intervals, note=_note(dataset, float(first[0])), measure=measure)


def _with_grid(answer: Answer, lambda_grid: str) -> Answer:
    return replace(answer, note=joined(_grid_note(lambda_grid), answer.note))


@query
def matched(dataset: str, method: str, measure: str, scale: float = 1.0, *, lambda_grid: str = FULL_GRID) -> Answer:
    """Return the matched point: the lowest GDP within one per cent of Unfair's performance."""
    row = ("performance", "dependence").index(measure)
    named = ("matched performance", "gdp")[row]
    return _summarized(dataset, lambda_grid, lambda part: scale * part[method][row], measure=named)


@query
def no_matched(dataset: str, method: str, *, lambda_grid: str = FULL_GRID) -> Answer:
    """Return which share of five-split means has no matched point."""
    shares = {name: float(np.isnan(summaries(dataset, name, lambda_grid)[1][method][0]).mean()) for name in PROTOCOLS}
    return Answer(shares, note=data_note(dataset))


@query
def area(dataset: str, method: str, *, lambda_grid: str = FULL_GRID) -> Answer:
    """Return nAUP among the six methods of the main table."""
    return _summarized(dataset, lambda_grid, lambda part: part[method][2])


@query
def no_area(dataset: str) -> Answer:
    """Return no value: Unfair has no penalty, hence no sweep and no area, whatever was run."""
    return Answer(why="a dash by construction: Unfair has no λ to sweep")


@query
def point(
    dataset: str, method: str, measure: str, lam: float | None = None, runs: int = RUNS, scale: float = 1.0
) -> Answer:
    """Return one model of the sweep: at ``lam``, or without it at the λ with the lowest mean GDP."""
    values = {}
    intervals = {}
    for protocol in PROTOCOLS:
        rows = rows_of("main")
        rows = rows[(rows["dataset"] == dataset) & (rows["method"] == method) & (rows["protocol"] == protocol)]
        rows = rows[rows["variant"] == protocol]
        at = rows.groupby("lam")["gdp_reference"].mean().idxmin() if lam is None else lam
        found = scale * rows[rows["lam"] == at].groupby("split")[measure].mean().to_numpy(float)
        values[protocol] = float(found.mean())
        intervals[protocol] = predicted(weights(len(found), runs) @ found, runs=runs, splits=len(found))
    named = "performance" if measure == "performance" else "gdp"
    return Answer(values, intervals, note=_note(dataset, float(found[:runs].mean()), runs=runs), measure=named)


@query
def area_gap(dataset: str, method: str, *, lambda_grid: str = FULL_GRID) -> Answer:
    """Return how far nAUP is below the best of the six methods."""

    def gap(part: dict[str, np.ndarray]) -> np.ndarray:
        return np.max([part[name][2] for name in MAIN_METHODS], axis=0) - part[method][2]

    return _with_grid(_summarized(dataset, lambda_grid, gap), lambda_grid)


def places(part: dict[str, np.ndarray], method: str) -> np.ndarray:
    """Return the rank by nAUP among the six methods, from one part of :func:`summaries`."""
    return 1 + sum((part[name][2] > part[method][2]).astype(int) for name in MAIN_METHODS)


@query
def area_rank(dataset: str, method: str, *, lambda_grid: str = FULL_GRID) -> Answer:
    """Return the rank by nAUP among the six methods; the interval holds 95 % of the ranks of five-split means."""
    answer = _summarized(dataset, lambda_grid, lambda part: places(part, method), ranks=True)
    return _with_grid(answer, lambda_grid)


@query
def middle_ranks(datasets: list[str], method: str, *, lambda_grid: str = FULL_GRID) -> Answer:
    """Return whether the rank by nAUP is one of the two in the middle of six on every dataset named.

    Not decided where five-split means would give both answers.
    """
    values: dict[str, bool | str] = {}
    notes = []
    for protocol in PROTOCOLS:
        parts = [summaries(name, protocol, lambda_grid) for name in datasets]
        ranks = [int(places(everything, method)[0]) for everything, _, _ in parts]
        # The datasets are independent: the share of five-split means with all ranks in the middle is a product.
        share = math.prod(float(np.isin(places(draws, method), MIDDLE).mean()) for _, draws, _ in parts)
        if 2.0 * TAIL <= share <= 1.0 - 2.0 * TAIL:
            values[protocol] = f"{share:.0%} of five-split means have all ranks in the middle"
        else:
            values[protocol] = share > 0.5
        notes.append(f"{protocol}: place {', '.join(map(str, ranks))} of 6")
    return Answer(values, note="; ".join([_grid_note(lambda_grid), *notes]))
