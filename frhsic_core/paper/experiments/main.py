"""The main table, the Pareto summary, the frontiers and the paired tests: eight methods on five datasets.

Where the paper's number would lie is computed from draws of five of our splits: the whole summary (the choice of the
matched λ included) is computed from their means (``claims.answers.spread``). The paper's own five splits are used as
far as two runs on one split share their noise (:func:`shared_noise`).

The paired tests compare methods split by split. The *family* of a Holm correction is every rival on every dataset for
one measure of dependence, one summary and one protocol: the statements that one reads off one table.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from functools import cache
from itertools import combinations
from typing import Any

import numpy as np
import pandas as pd

from frhsic_core import registry
from frhsic_core.paper.claims.answers import (
    PROTOCOLS,
    RUNS,
    TAIL,
    Answer,
    Spread,
    answer_of_runs,
    data_note,
    joined,
    print_weights,
    query,
    rows_of,
    spread,
    weights,
)
from frhsic_core.paper.experiments import DATASETS, GRIDS, METHODS, SPLITS
from frhsic_core.paper.experiments.comparison import (
    KEYS,
    Frontiers,
    compare_all,
    named,
    on_grid,
    sweeps_of,
    taken,
)
from frhsic_core.paper.runs.plan import Experiment, Task, stacks_of
from frhsic_core.paper.stored import paper_table, reference_sweep, stored_rows
from frhsic_core.registry import MAIN_METHODS, PAPER_DATASETS, PARETO_METHODS

# The ranks that are neither among the first two nor among the last two of the six methods of the main table.
MIDDLE = (3, 4)
# Differences the paper calls practically equivalent (tex:668): of accuracy, and of GDP.
TOLERANCES = {"performance": 0.01, "dependence": 0.05}
# Mean of the largest minus the smallest of five standard normal draws.
FIVE_RANGE = 2.326


def plan() -> Experiment:
    """Return the main sweep.

    It trains the reference protocol on the reference's data, Crime also with the other attribute in each protocol, then
    the text's protocol on the text's data.
    """
    text, reference = (
        [Task(name, protocol, protocol) for name in DATASETS] for protocol in PROTOCOLS
    )
    crossed = [Task("crime", "text", "reference"), Task("crime", "reference", "text")]
    return Experiment(
        "main", stacks_of(reference + crossed + text, METHODS, GRIDS["full"], SPLITS["full"])
    )


def plan_live() -> Experiment:
    """Return two methods on a small sample of the synthetic law: what a cell of the chapter trains again."""
    small = Task("synthetic", "text", "reference", (("n", 2000),))
    return Experiment(
        "live", stacks_of([small], ("unfair", "frhsic"), (1.0, 10.0), SPLITS["full"], epochs=40)
    )


def pareto_table(
    rows: pd.DataFrame,
    *,
    methods: tuple[str, ...] | None = PARETO_METHODS,
    dependence: str = "gdp_reference",
    lams: Iterable[float] | None = None,
    unequal_grids: bool = False,
    resamples: int = 1000,
) -> pd.DataFrame:
    """Return matched points and nAUP for every comparison in ``rows``; see ``Frontiers.summary`` for the columns.

    The utility is normalised over ``methods``; ``dependence`` is a column of the rows. ``lams`` restrict the
    rows (Unfair stays).
    """
    rows = on_grid(rows, lams)
    found = []
    for key, part in rows.groupby(KEYS, sort=True):
        if (part["method"] == "unfair").all() or not (part["method"] == "unfair").any():
            continue
        sweep = Frontiers.from_rows(
            named(part),
            methods=methods,
            dependence=dependence,
            unequal_grids=unequal_grids,
            name="name",
        )
        summary = sweep.summary(resamples=resamples)
        found.append(pd.concat([pd.DataFrame([key] * len(summary), columns=KEYS), summary], axis=1))
    return (
        pd.concat(found, ignore_index=True)
        if found
        else pd.DataFrame(columns=[*KEYS, "method", "naup"])
    )


def beside_paper(table: pd.DataFrame) -> pd.DataFrame:
    """Return the table with the paper's ``paper_performance``, ``paper_dependence`` and ``paper_naup`` in each line.

    dCor stands in the paper's Pareto summary only, which prints no nAUP. A variant of Crime whose attribute the paper's
    code did not use has no printed value.
    """
    printed = paper_table("tab:real_data").combine_first(
        paper_table("tab:pareto_summary").drop(columns="naup")
    )
    printed = printed.add_prefix("paper_").reset_index()
    joined = table.merge(printed, on=["dataset", "method"], how="left")
    other = (joined["dataset"] == "crime") & (joined["variant"] != "reference")
    joined.loc[other, [name for name in joined.columns if name.startswith("paper_")]] = float("nan")
    return joined


@cache
def frontiers(dataset: str, protocol: str, *, methods: tuple[str, ...] = MAIN_METHODS) -> Frontiers:
    """Return the sweeps of our runs of one dataset and protocol, the same nine λ for every method."""
    rows = rows_of("main")
    part = rows[
        (rows["dataset"] == dataset)
        & (rows["protocol"] == protocol)
        & (rows["variant"] == protocol)
    ]
    return Frontiers.from_rows(part, methods=methods)


@cache
def shared_noise(dataset: str, protocol: str, measure: str) -> float:
    """Return the correlation of the authors' runs with ours on the same splits, 1 − r²; see ``claims.rules``.

    ``measure`` is ``"performance"`` or ``"gdp_reference"``. The ratio r compares the distance between a cell of the
    authors' stored sweep and our mean over the same five splits with the standard deviation of two independent means
    over five: its 90 % quantile over all cells by that of a normal variable, at most 1.
    """
    rows = main_rows(protocol)
    cells = (
        rows[rows["dataset"] == dataset]
        .groupby(["method", "lam", "split"])[measure]
        .mean()
        .unstack("split")
    )
    stored = reference_sweep()
    theirs = (
        stored[stored["dataset"] == dataset]
        .set_index(["method", "lam"])[measure]
        .reindex(cells.index)
    )
    known = theirs.notna().to_numpy()
    runs = cells.to_numpy(float)[known]
    distance = np.abs(theirs.to_numpy(float)[known] - runs[:, :RUNS].mean(1))
    # The stored means have four decimals, and a collapsed model has no spread at all.
    distance = np.maximum(distance - 0.00005, 0.0)
    scale = np.sqrt(2.0 * runs.var(1, ddof=1) / RUNS + 1e-12)
    ratio = float(np.quantile(distance / scale, 0.9)) / 1.645
    return max(0.0, 1.0 - ratio**2)


# The matched point's performance and dependence, and the area.
SUMMARY_ROWS = ("performance", "gdp_reference", "gdp_reference")


def summarized(
    dataset: str, protocol: str, shares: tuple[np.ndarray, np.ndarray]
) -> dict[str, np.ndarray]:
    """Return matched points and areas by method, ``(3, draws)``, for weights of the splits; of Unfair its one model."""
    sweep, wide = (
        frontiers(dataset, protocol, methods=methods) for methods in (MAIN_METHODS, PARETO_METHODS)
    )
    place = wide.matched(*shares)
    points = np.stack([taken(values, place) for values in wide.means(*shares)[:2]])
    columns = dict(zip(sweep.methods, sweep.areas(*shares).T, strict=True))
    nothing = np.full(len(shares[0]), np.nan)
    found = {
        m: np.stack([*points[..., i], columns.get(m, nothing)]) for i, m in enumerate(wide.methods)
    }
    return {"unfair": np.stack([*wide.means(*shares)[2:], nothing]), **found}


@cache
def summaries(dataset: str, protocol: str) -> tuple[dict[str, np.ndarray], ...]:
    """Return :func:`summarized` of all splits, of draws of the paper's numbers and of our mean, and of its splits."""
    splits = frontiers(dataset, protocol).splits
    shared = [shared_noise(dataset, protocol, name) for name in SUMMARY_ROWS[:2]]
    first = np.zeros((1, splits))
    first[0, :RUNS] = 1.0 / RUNS
    everything = np.full((1, splits), 1.0 / splits)
    own = weights(splits, splits)
    prints = [print_weights(splits, RUNS, one) for one in shared]
    pairs = ((everything, everything), (prints[0], prints[1]), (own, own), (first, first))
    return tuple(summarized(dataset, protocol, pair) for pair in pairs)


def _note(dataset: str, same: float, *, runs: int = RUNS) -> str:
    # Splits are ordered by seed: the first five are seeded as the paper's.
    which = f"splits 42 to {41 + runs}" if runs > 1 else "split 42"
    own = "" if math.isnan(same) else f"{which} alone, reference protocol: {same:.4g}"
    return joined(own, data_note(dataset))


def _answered(
    dataset: str,
    statistic: Callable[[dict[str, np.ndarray]], np.ndarray],
    *,
    row: int = 2,
    measure: str = "naup",
    ranks: bool = False,
    note: str = "",
) -> Answer:
    """Answer with a statistic of :func:`summaries`; the spread of ``ranks`` holds 95 % of those of the draws.

    ``row`` is that of :func:`summarized` whose shared noise counts.
    """
    values = {}
    prints = {}
    means = {}
    for protocol in PROTOCOLS:
        everything, drawn, own, first = (statistic(part) for part in summaries(dataset, protocol))
        splits = frontiers(dataset, protocol).splits
        values[protocol] = float(everything[0])
        shared = shared_noise(dataset, protocol, SUMMARY_ROWS[row])
        prints[protocol] = spread(drawn, splits=splits, runs=RUNS, shared=shared)
        means[protocol] = spread(own, splits=splits)
        if ranks:
            low, high = np.quantile(drawn, [0.025, 0.975])
            prints[protocol] = Spread(float(low), values[protocol], float(high))
    # The loop ends with the reference protocol.
    note = joined(note, _note(dataset, float(first[0])))
    return Answer(values, prints, {} if ranks else means, note=note, measure=measure, splits=splits)


_GRID_NOTE = f"{len(GRIDS['full'])} λ for every method"


@query
def matched(dataset: str, method: str, measure: str, scale: float = 1.0) -> Answer:
    """Return the matched point: the lowest GDP within one per cent of Unfair's performance."""
    row = ("performance", "dependence").index(measure)
    named = ("matched performance", "gdp")[row]
    return _answered(dataset, lambda part: scale * part[method][row], row=row, measure=named)


@query
def no_matched(dataset: str, method: str) -> Answer:
    """Return which share of five-split means has no matched point."""
    shares = {
        name: float(np.isnan(summaries(dataset, name)[1][method][0]).mean()) for name in PROTOCOLS
    }
    return Answer(shares, note=data_note(dataset))


@query
def area(dataset: str, method: str) -> Answer:
    """Return nAUP among the six methods of the main table."""
    return _answered(dataset, lambda part: part[method][2])


@query
def point(
    dataset: str,
    method: str,
    measure: str,
    lam: float | None = None,
    runs: int = RUNS,
    scale: float = 1.0,
) -> Answer:
    """Return one model of the sweep: at ``lam``, or without it at the λ with the lowest mean GDP."""
    values = {}
    for protocol in PROTOCOLS:
        rows = main_rows(protocol)
        rows = rows[(rows["dataset"] == dataset) & (rows["method"] == method)]
        at = rows.groupby("lam")["gdp_reference"].mean().idxmin() if lam is None else lam
        values[protocol] = scale * rows[rows["lam"] == at].groupby("split")[
            measure
        ].mean().to_numpy(float)
    shared = {protocol: shared_noise(dataset, protocol, measure) for protocol in PROTOCOLS}
    note = _note(dataset, float(values["reference"][:runs].mean()), runs=runs)
    named = "performance" if measure == "performance" else "gdp"
    return answer_of_runs(values, runs=runs, shared=shared, note=note, measure=named)


@query
def area_gap(dataset: str, method: str) -> Answer:
    """Return how far nAUP is below the best of the six methods."""

    def gap(part: dict[str, np.ndarray]) -> np.ndarray:
        return np.max([part[name][2] for name in MAIN_METHODS], axis=0) - part[method][2]

    return _answered(dataset, gap, note=_GRID_NOTE)


def places(part: dict[str, np.ndarray], method: str) -> np.ndarray:
    """Return the rank by nAUP among the six methods, from one part of :func:`summaries`."""
    return 1 + sum((part[name][2] > part[method][2]).astype(int) for name in MAIN_METHODS)


@query
def area_rank(dataset: str, method: str) -> Answer:
    """Return the rank by nAUP among the six methods; the interval holds 95 % of the ranks of five-split means."""
    return _answered(dataset, lambda part: places(part, method), ranks=True, note=_GRID_NOTE)


@query
def middle_ranks(datasets: list[str], method: str) -> Answer:
    """Return whether the rank by nAUP is one of the two in the middle of six on every dataset named.

    Not decided where five-split means would give both answers.
    """
    values: dict[str, bool | str] = {}
    notes = []
    for protocol in PROTOCOLS:
        parts = [summaries(name, protocol) for name in datasets]
        ranks = [int(places(part[0], method)[0]) for part in parts]
        # The datasets are independent: the share of five-split means with all ranks in the middle is a product.
        share = math.prod(float(np.isin(places(part[1], method), MIDDLE).mean()) for part in parts)
        if 2.0 * TAIL <= share <= 1.0 - 2.0 * TAIL:
            values[protocol] = f"{share:.0%} of five-split means have all ranks in the middle"
        else:
            values[protocol] = share > 0.5
        notes.append(f"{protocol}: place {', '.join(map(str, ranks))} of 6")
    return Answer(values, note="; ".join([_GRID_NOTE, *notes]))


# The paired tests: which differences between methods 25 splits resolve.


@cache
def main_rows(protocol: str) -> pd.DataFrame:
    """Return the stored main sweep of a protocol on the data that go with it (Crime: its own attribute)."""
    rows = stored_rows("main")
    rows = rows[(rows["protocol"] == protocol) & (rows["variant"] == protocol)]
    return rows.assign(name=rows["method"])


def family(
    rows: pd.DataFrame,
    *,
    measure: str,
    method: str = "frhsic",
    methods: tuple[str, ...] | None = PARETO_METHODS,
) -> pd.DataFrame:
    """Compare ``method`` with every rival on every dataset of ``rows``; p-values adjusted over all lines (Holm).

    The compared number is the nAUP of each split's own sweep, normalized within the split. ``rows`` have one variant
    and protocol of each dataset and a column ``name``; ``measure`` is a column of dependence. ``methods`` take part in
    the normalization; the rivals are all others of them.

    The columns are those of :func:`~frhsic_core.paper.experiments.comparison.compare_all`.
    """
    pairs = []
    for dataset, sweep in sweeps_of(rows, measure, methods=methods):
        values = dict(zip(sweep.methods, sweep.areas(np.eye(sweep.splits)).T, strict=True))
        for rival in values:
            if rival != method:
                labels = {"dataset": dataset, "method": method, "rival": rival}
                pairs.append((labels, values[method] - values[rival]))
    return compare_all(pairs)


def main_family(protocol: str, *, measure: str) -> pd.DataFrame:
    """Return :func:`family` of the published FRHSIC in the stored main sweep."""
    return family(main_rows(protocol), measure=measure)


def equivalence(rows: pd.DataFrame, quantity: str) -> dict[str, int]:
    """Count the pairs of methods within ±.01 accuracy or ±.05 GDP at matched points, and how many the splits resolve.

    The matched λ of a method is that of its mean sweep, one for all splits, as in the paper's table; a method without
    one takes no part. Crime's performance is a mean squared error of a few hundredths, for which the tolerance was not
    meant: it takes part in Holm's correction over all pairs, but is not counted. ``resolved`` is by the signed-rank
    test, ``resolved_corrected`` by the corrected t-test.
    """
    pairs = []
    for dataset, sweep in sweeps_of(rows, "gdp_reference", methods=PARETO_METHODS):
        chosen = [getattr(sweep, quantity)[i, j] for i, j in enumerate(sweep.matched()) if j >= 0]
        pairs += [({"dataset": dataset}, a - b) for a, b in combinations(chosen, 2)]
    table = compare_all(pairs)
    table = table[(table["dataset"] != "crime") | (quantity == "dependence")]
    small = table[table["mean"].abs() <= TOLERANCES[quantity]]
    resolved = {
        "resolved": small["p_holm"] < 0.05,
        "resolved_corrected": small["p_corrected_holm"] < 0.05,
    }
    return {"within": len(small)} | {name: int(found.sum()) for name, found in resolved.items()}


@query
def spread_and_pairs(measure: str) -> Answer:
    """Return the expected range of five splits at the matched points, by dataset (the median over methods).

    The note counts the pairs of methods within the tolerance that 25 paired splits tell apart.
    """
    values: dict[str, Any] = {}
    notes = []
    # Crime's performance is an error of a few hundredths: a tolerance of accuracy does not concern it.
    others = [name for name in PAPER_DATASETS if name != "crime"]
    titles = registry.labels([*others, "crime"] if measure == "dependence" else others)
    for protocol in PROTOCOLS:
        found = []
        for dataset in titles:
            sweep = frontiers(dataset, protocol)
            chosen = np.stack(
                [getattr(sweep, measure)[i, j] for i, j in enumerate(sweep.matched()) if j >= 0]
            )
            found.append(float(np.median(chosen.std(-1, ddof=1) * FIVE_RANGE)))
        values[protocol] = tuple(found)
        counts = equivalence(main_rows(protocol), measure)
        notes.append(
            f"{protocol}: {counts['resolved']} of {counts['within']} pairs within the tolerance told apart by "
            f"paired tests, {counts['resolved_corrected']} by the corrected one"
        )
    names = list(titles.values())
    narrow = [
        name
        for i, name in enumerate(names)
        if min(values[p][i] for p in PROTOCOLS) < TOLERANCES[measure]
    ]
    below = f"narrower than the tolerance on {', '.join(narrow)} alone; " if narrow else ""
    order = f"{', '.join(names)}: largest minus smallest of five splits, on average"
    return Answer(values, note=f"{order}; {below}{'; '.join(notes)}")
