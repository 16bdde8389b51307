"""Which differences between methods 25 paired splits resolve: the main sweep (or the variants) split by split.

The *family* of a Holm correction is every rival on every dataset for one measure of dependence, one summary and one
protocol: the statements that one reads off one table.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from itertools import combinations
from typing import Any

import numpy as np
import pandas as pd

from frhsic_core import registry
from frhsic_core.paper.claims.answers import FULL_GRID, PROTOCOLS, Answer, query
from frhsic_core.paper.experiments.main_table import frontiers
from frhsic_core.paper.experiments.shared.paired import compare, compare_all, holm
from frhsic_core.paper.experiments.shared.pareto import Frontiers, matched_chosen, sweeps_of
from frhsic_core.paper.runs.stored import stored_rows
from frhsic_core.registry import DEPENDENCE, PAPER_DATASETS, PARETO_METHODS

CONVENTIONS = {
    name: DEPENDENCE[name]
    for name in ("gdp_reference", "gdp_sample", "gdp_density", "nonlinear_r2", "normalized_hsic_1")
}

SUMMARIES = {"naup": "nAUP", "matched": "matched dependence"}
# Differences the paper calls practically equivalent (tex:668): of accuracy, and of GDP.
TOLERANCES = {"performance": 0.01, "dependence": 0.05}

# Mean of the largest minus the smallest of five standard normal draws.
FIVE_RANGE = 2.326


def main_rows(protocol: str) -> pd.DataFrame:
    """Return the stored main sweep of a protocol on the data that go with it (Crime: its own attribute)."""
    rows = stored_rows("main")
    rows = rows[(rows["protocol"] == protocol) & (rows["variant"] == protocol)]
    return rows.assign(name=rows["method"])


def per_split(sweep: Frontiers, summary: str) -> np.ndarray:
    """Return a summary of each split's own sweep, ``(splits, methods)``; nAUP is normalised within the split."""
    if summary == "naup":
        return sweep.areas(np.eye(sweep.splits))
    if summary == "matched":
        return matched_chosen(sweep, sweep)["dependence"]
    raise ValueError(f"summary is {summary!r}: choose 'naup' or 'matched'.")


def family(
    rows: pd.DataFrame,
    *,
    measure: str,
    summary: str,
    method: str = "frhsic",
    methods: tuple[str, ...] | None = PARETO_METHODS,
) -> pd.DataFrame:
    """Compare ``method`` with every rival on every dataset of ``rows``; p-values adjusted over all lines (Holm).

    ``rows`` have one variant and protocol of each dataset and a column ``name``; ``measure`` is a column of dependence.
    ``summary`` is ``"naup"`` (higher is better) or ``"matched"``, the matched dependence (lower is better). ``methods``
    take part in the normalisation of nAUP; the rivals are all others of them.

    Beside the fields of :class:`~frhsic_core.paper.experiments.shared.paired.Paired` a line has two verdicts, "ahead",
    "behind" or "undecided" at 5 % after Holm: ``verdict_corrected`` by the corrected resampled t-test, ``verdict`` by
    the signed-rank test.
    """
    return _family(sweeps_of(rows, measure, methods=methods), summary, method)


def _family(sweeps: Iterable[tuple[str, Frontiers]], summary: str, method: str) -> pd.DataFrame:
    pairs = []
    for dataset, sweep in sweeps:
        values = dict(zip(sweep.methods, per_split(sweep, summary).T, strict=True))
        for rival in values:
            if rival != method:
                labels = {"dataset": dataset, "method": method, "rival": rival}
                pairs.append((labels, values[method], values[rival]))
    table = compare_all(pairs, higher=summary == "naup")
    for verdict, p, direction in (("verdict", "p_holm", "effect"), ("verdict_corrected", "p_corrected_holm", "mean")):
        side = np.where(table[direction] > 0, "ahead", "behind")
        table[verdict] = np.where(table[p] < 0.05, side, "undecided")
    return table


@lru_cache(maxsize=32)
def _main_sweeps(protocol: str, measure: str) -> tuple[tuple[str, Frontiers], ...]:
    return tuple(sweeps_of(main_rows(protocol), measure, methods=PARETO_METHODS))


def main_family(protocol: str, *, measure: str, summary: str = "naup") -> pd.DataFrame:
    """Return :func:`family` of the published FRHSIC in the stored main sweep; its sweeps are read once."""
    return _family(_main_sweeps(protocol, measure), summary, "frhsic")


def verdict_counts(table: pd.DataFrame) -> dict[str, int]:
    """Count the comparisons of a family and their verdicts; ``*_corrected`` by the corrected resampled t-test."""
    counts = {"comparisons": len(table)}
    for verdict in ("ahead", "behind", "undecided"):
        counts[verdict] = int((table["verdict"] == verdict).sum())
        counts[f"{verdict}_corrected"] = int((table["verdict_corrected"] == verdict).sum())
    return counts


def headline(protocol: str = "reference") -> pd.DataFrame:
    """Count how often FRHSIC is better than, worse than and not significantly different from a rival.

    Thirty comparisons for each measure and summary (six rivals, five datasets), Holm within them. ``*_corrected`` are
    the counts by the corrected resampled t-test.
    """
    lines = {}
    for measure in CONVENTIONS:
        for summary in SUMMARIES:
            table = main_family(protocol, measure=measure, summary=summary)
            counts = {"comparisons": len(table), "splits": int(table["splits"].min())}
            lines[measure, summary] = counts | verdict_counts(table)
    return pd.DataFrame(lines).T.rename_axis(["measure", "summary"])


def differences(rows: pd.DataFrame) -> pd.DataFrame:
    """Compare every two methods at their matched points: differences of performance and dependence over splits.

    The matched λ of a method is that of its mean sweep, one for all splits, as in the paper's table; a method without
    one takes no part. A line for each dataset, pair and quantity: mean difference, sd of the differences, sd of each
    method's own values (root mean square of the two), exact p-value.
    """
    lines: list[dict[str, Any]] = []
    for dataset, sweep in sweeps_of(rows, "gdp_reference", methods=PARETO_METHODS):
        place = sweep.matched
        for i, j in combinations(np.flatnonzero(place >= 0), 2):
            for quantity, values in (("performance", sweep.performance), ("dependence", sweep.dependence)):
                a = values[i, place[i]]
                b = values[j, place[j]]
                outcome = compare(a, b, higher=True, resamples=1)
                own = float(np.sqrt(0.5 * (a.var(ddof=1) + b.var(ddof=1))))
                line = {"dataset": dataset, "first": sweep.methods[i], "second": sweep.methods[j], "quantity": quantity}
                lines.append(line | {"mean": outcome.mean, "sd": outcome.sd, "own_sd": own, "p": outcome.p,
                                     "p_corrected": outcome.p_corrected, "splits": outcome.splits})  # fmt: skip
    table = pd.DataFrame(lines)
    for name in ("p", "p_corrected"):
        table[f"{name}_holm"] = table.groupby("quantity")[name].transform(lambda p: holm(p.to_numpy()))
    return table


def equivalence(rows: pd.DataFrame) -> pd.DataFrame:
    """Count the differences within ±.01 accuracy or ±.05 GDP, and how many of them 25 splits resolve.

    Crime's performance is a mean squared error of a few hundredths, for which the tolerance was not meant: its
    accuracies are left out, its GDP is kept. A line for each quantity and dataset: pairs, those within the tolerance,
    those of them that the signed-rank test resolves (Holm over all pairs of the quantity), the same by the corrected
    t-test, ``expected_range`` (the mean range of five normal draws with one method's own spread, not a range that was
    observed) and ``paired_sd``, the median sd of a difference.
    """
    table = differences(rows)
    table = table[(table["quantity"] == "dependence") | (table["dataset"] != "crime")]
    inside = table["mean"].abs() <= table["quantity"].map(TOLERANCES)
    small = table.assign(
        within=inside,
        resolved=inside & (table["p_holm"] < 0.05),
        resolved_corrected=inside & (table["p_corrected_holm"] < 0.05),
    )
    groups = small.groupby(["quantity", "dataset"])
    counts = groups[["within", "resolved", "resolved_corrected"]].sum().astype(int)
    counts.insert(0, "pairs", groups.size())
    return counts.assign(expected_range=FIVE_RANGE * groups["own_sd"].median(), paired_sd=groups["sd"].median())


@query
def spread_and_pairs(measure: str, *, lambda_grid: str = FULL_GRID) -> Answer:
    """Return the expected range of five splits at the matched points, by dataset (the median over methods).

    The note counts the pairs of methods within the tolerance that 25 paired splits tell apart.
    """
    values: dict[str, Any] = {}
    notes = []
    # Crime's performance is an error of a few hundredths: a tolerance of accuracy does not concern it.
    others = [name for name in PAPER_DATASETS if name != "crime"]
    titles = registry.titles([*others, "crime"] if measure == "dependence" else others)
    for protocol in PROTOCOLS:
        found = []
        for dataset in titles:
            sweep = frontiers(dataset, protocol, lambda_grid=lambda_grid)
            chosen = np.stack([getattr(sweep, measure)[i, j] for i, j in enumerate(sweep.matched) if j >= 0])
            found.append(float(np.median(chosen.std(-1, ddof=1) * FIVE_RANGE)))
        values[protocol] = tuple(found)
        counts = equivalence(main_rows(protocol)).loc[measure].sum()
        notes.append(
            f"{protocol}: {counts['resolved']:.0f} of {counts['within']:.0f} pairs within the tolerance told apart by "
            f"paired tests, {counts['resolved_corrected']:.0f} by the corrected one"
        )
    names = list(titles.values())
    narrow = [name for i, name in enumerate(names) if min(values[p][i] for p in PROTOCOLS) < TOLERANCES[measure]]
    below = f"narrower than the tolerance on {', '.join(narrow)} alone; " if narrow else ""
    order = f"{', '.join(names)}: largest minus smallest of five splits, on average"
    return Answer(values, note=f"{order}; {below}{'; '.join(notes)}")
