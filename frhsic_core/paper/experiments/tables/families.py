"""Who beats whom over 25 splits: the main sweep (or the variants) compared split by split.

The *family* of a Holm correction is every rival on every dataset for one measure of dependence, one summary and one
protocol: the statements one reads off one table.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import asdict
from functools import lru_cache
from itertools import combinations
from typing import Any

import numpy as np
import pandas as pd

from frhsic_core.paper.experiments.tables.main_table import PARETO_METHODS
from frhsic_core.paper.experiments.tables.paired import compare, holm
from frhsic_core.paper.experiments.tables.pareto import Frontiers, matched_index
from frhsic_core.paper.runs.reference import stored_rows

__all__ = [
    "CONVENTIONS",
    "SUMMARIES",
    "TOLERANCES",
    "differences",
    "equivalence",
    "family",
    "headline",
    "main_family",
    "main_rows",
    "matched_dependence",
    "per_split",
]

CONVENTIONS = {
    "gdp_reference": "GDP, as in the paper",
    "gdp_sample": "GDP, as defined",
    "gdp_density": "GDP, Jiang et al.",
    "nonlinear_r2": "nonlinear probe R²",
    "normalized_hsic_1": "HSIC, median",
}
SUMMARIES = {"naup": "nAUP", "matched": "matched dependence"}
# Differences the paper calls practically equivalent (tex:668): of accuracy, and of GDP.
TOLERANCES = {"performance": 0.01, "dependence": 0.05}
KEYS = ["dataset", "variant", "protocol"]


def main_rows(protocol: str) -> pd.DataFrame:
    """Return the stored main sweep of a protocol on the data that go with it (Crime: its own attribute)."""
    rows = stored_rows("main")
    rows = rows[(rows["protocol"] == protocol) & (rows["variant"] == protocol)]
    return rows.assign(name=rows["method"])


def matched_dependence(sweep: Frontiers, *, band: float = 0.01) -> np.ndarray:
    """Return each method's lowest dependence within ``band`` of Unfair on the same split, ``(splits, methods)``.

    Where no λ stays within the band the value is Unfair's own: λ = 0 is always open to the user.
    """
    performance, dependence = np.moveaxis(sweep.performance, -1, 0), np.moveaxis(sweep.dependence, -1, 0)
    unfair = sweep.unfair_performance[:, None]
    place = matched_index(performance, dependence, unfair, higher=sweep.higher, band=band)
    chosen = np.take_along_axis(dependence, np.maximum(place, 0)[..., None], -1)[..., 0]
    return np.where(place >= 0, chosen, sweep.unfair_dependence[:, None])


def per_split(sweep: Frontiers, summary: str) -> np.ndarray:
    """Return a summary of each split's own sweep, ``(splits, methods)``; nAUP is normalised within the split."""
    if summary == "naup":
        return sweep.areas(np.eye(sweep.splits))
    if summary == "matched":
        return matched_dependence(sweep)
    raise ValueError(f"summary is {summary!r}: choose 'naup' or 'matched'.")


def _sweeps(rows: pd.DataFrame, measure: str, methods: tuple[str, ...] | None) -> Iterator[tuple[str, Frontiers]]:
    for key, part in rows.groupby(KEYS, sort=True):
        yield str(key[0]), Frontiers.from_rows(part, methods=methods, dependence=measure, name="name")


def family(
    rows: pd.DataFrame,
    *,
    measure: str,
    summary: str,
    method: str = "frhsic",
    methods: tuple[str, ...] | None = PARETO_METHODS,
    rivals: tuple[str, ...] | None = None,
) -> pd.DataFrame:
    """Compare ``method`` with every rival on every dataset of ``rows``; p-values adjusted over all lines (Holm).

    Parameters
    ----------
    rows : pandas.DataFrame
        One variant and protocol of each dataset, with a column ``name``.
    measure : str
        Column of dependence.
    summary : {"naup", "matched"}
        nAUP (higher is better) or the matched dependence (lower is better).
    method : str
        The one compared.
    methods : tuple of str, optional
        Those that take part in the normalisation of nAUP.
    rivals : tuple of str, optional
        Those compared with, by default all others of ``methods``.

    Returns
    -------
    pandas.DataFrame
        The fields of :class:`~frhsic_core.paper.experiments.tables.paired.Paired`, ``p_holm``, ``p_corrected_holm``,
        and two verdicts, "ahead", "behind" or "undecided" at 5 % after Holm: ``verdict_corrected`` by the corrected
        resampled t-test, ``verdict`` by the signed-rank test.
    """
    return _family(_sweeps(rows, measure, methods), summary, method, rivals)


def _family(
    sweeps: Iterable[tuple[str, Frontiers]], summary: str, method: str, rivals: tuple[str, ...] | None = None
) -> pd.DataFrame:
    lines: list[dict[str, Any]] = []
    for dataset, sweep in sweeps:
        values = per_split(sweep, summary)
        mine = values[:, sweep.methods.index(method)]
        for i, rival in enumerate(sweep.methods):
            if rival == method or (rivals is not None and rival not in rivals):
                continue
            found = compare(mine, values[:, i], higher=summary == "naup")
            lines.append({"dataset": dataset, "method": method, "rival": rival, **asdict(found)})
    table = pd.DataFrame(lines)
    table["p_holm"] = holm(table["p"].to_numpy())
    table["p_corrected_holm"] = holm(table["p_corrected"].to_numpy())
    for verdict, p, direction in (("verdict", "p_holm", "effect"), ("verdict_corrected", "p_corrected_holm", "mean")):
        side = np.where(table[direction] > 0, "ahead", "behind")
        table[verdict] = np.where(table[p] < 0.05, side, "undecided")
    return table


@lru_cache(maxsize=32)
def _main_sweeps(protocol: str, measure: str) -> tuple[tuple[str, Frontiers], ...]:
    return tuple(_sweeps(main_rows(protocol), measure, PARETO_METHODS))


def main_family(protocol: str, *, measure: str, summary: str = "naup") -> pd.DataFrame:
    """Return :func:`family` of the published FRHSIC in the stored main sweep; its sweeps are read once."""
    return _family(_main_sweeps(protocol, measure), summary, "frhsic")


def headline(protocol: str = "reference") -> pd.DataFrame:
    """Count how often FRHSIC is ahead of, behind and not told apart from a rival, by measure and summary.

    Thirty comparisons in each line (six rivals, five datasets), Holm within the line; ``*_corrected`` are the counts by
    the corrected resampled t-test. For other pages too: ``headline().loc[("gdp_reference", "naup"), "behind"]``.
    """
    lines = {}
    for measure in CONVENTIONS:
        for summary in SUMMARIES:
            table = main_family(protocol, measure=measure, summary=summary)
            line: dict[str, int] = {"comparisons": len(table), "splits": int(table["splits"].min())}
            for verdict in ("ahead", "behind", "undecided"):
                line[verdict] = int((table["verdict"] == verdict).sum())
                line[f"{verdict}_corrected"] = int((table["verdict_corrected"] == verdict).sum())
            lines[measure, summary] = line
    return pd.DataFrame(lines).T.rename_axis(["measure", "summary"])


def differences(
    rows: pd.DataFrame, *, measure: str = "gdp_reference", methods: tuple[str, ...] = PARETO_METHODS
) -> pd.DataFrame:
    """Compare every two methods at their matched points: differences of performance and dependence over splits.

    The matched λ of a method is that of its mean sweep, one for all splits, as in the paper's table; a method without
    one takes no part. A line for each dataset, pair and quantity: mean difference, sd of the differences, sd of each
    method's own values (root mean square of the two), exact p-value.
    """
    lines: list[dict[str, Any]] = []
    for dataset, sweep in _sweeps(rows, measure, methods):
        mean_performance, mean_dependence = sweep.performance.mean(-1), sweep.dependence.mean(-1)
        place = matched_index(mean_performance, mean_dependence, sweep.unfair_performance.mean(), higher=sweep.higher)
        found = [i for i in range(len(place)) if place[i] >= 0]
        for i, j in combinations(found, 2):
            for quantity, values in (("performance", sweep.performance), ("dependence", sweep.dependence)):
                a, b = values[i, place[i]], values[j, place[j]]
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
    """Ask whether differences within ±.01 accuracy or ±.05 GDP are noise: how many such differences 25 splits resolve.

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
    # The expected range of five normal draws is 2.326 standard deviations.
    return counts.assign(expected_range=2.326 * groups["own_sd"].median(), paired_sd=groups["sd"].median())
