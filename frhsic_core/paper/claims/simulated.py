"""Test the rule of the ledger on simulated papers, in which it is known which printed numbers are true.

A simulated paper prints the matched points and areas of our own runs on five splits. The rule judges them with twenty
other splits, so that nothing is used twice. Five of the twenty play the part of the paper's own splits: the printed
number follows them as far as two runs on one split share their noise, as measured on the authors' stored sweep.

The numbers are then printed as they are (*true*), moved up or down by a share (*shifted*), or exchanged between methods
of one dataset (*swapped*). Every paper is judged as a whole, with its own control of the false discovery rate.

:func:`best_share` is what no rule can exceed that judges each number by itself.
"""

from __future__ import annotations

from functools import cache

import numpy as np
import pandas as pd
from scipy.stats import gaussian_kde

from frhsic_core.paper.claims.answers import RUNS, Spread, partly_shared, spread, weights
from frhsic_core.paper.claims.rules import RELEVANT, margin, p_values, threshold
from frhsic_core.paper.claims.verdicts import AGREES, DISAGREES, OPEN, OTHER_DATASETS
from frhsic_core.paper.experiments.main import SUMMARY_ROWS, frontiers, shared_noise, summarized
from frhsic_core.registry import BASELINE, MAIN_METHODS, PAPER_DATASETS

# The columns of Table 1, and the datasets on which our rows are those of the authors.
MEASURES = ("matched performance", "gdp", "naup")
DATASETS = tuple(name for name in PAPER_DATASETS if name not in OTHER_DATASETS)
DRAWS = 300
# What is printed: the truth, all numbers wrong by a share of themselves, or those of another method.
CHANGES = ("true", "shifted by 10 %", "shifted by 20 %", "shifted by 50 %", "swapped")


def _block(splits: int, chosen: np.ndarray) -> np.ndarray:
    shares = np.zeros((1, splits))
    shares[0, chosen] = 1.0 / len(chosen)
    return shares


def _paper(dataset: str, protocol: str, rng: np.random.Generator, runs: int = RUNS) -> pd.DataFrame:
    """Return a simulated paper on one dataset: the true print of each cell, and the two spreads that judge it.

    ``draws`` are other papers with means over ``runs`` splits, which share the same splits with us.
    """
    splits = frontiers(dataset, protocol).splits
    order = rng.permutation(splits)
    fresh, own, kept = order[:RUNS], order[RUNS : 2 * RUNS], np.sort(order[RUNS:])
    shared = [shared_noise(dataset, protocol, name) for name in SUMMARY_ROWS[:2]]

    def on_kept(number: int) -> np.ndarray:
        shares = np.zeros((DRAWS, splits))
        shares[:, kept] = weights(kept.size, number)[:DRAWS]
        return shares

    followed = _block(splits, own)
    printed = [
        partly_shared(_block(splits, order), followed, _block(splits, fresh), one) for one in shared
    ]
    drawn = [partly_shared(_block(splits, kept), followed, on_kept(runs), one) for one in shared]
    parts = [
        summarized(dataset, protocol, (pair[0], pair[1]))
        for pair in (printed, drawn, [on_kept(kept.size)] * 2)
    ]
    lines = []
    for method in (BASELINE, *MAIN_METHODS):
        for row, measure in enumerate(MEASURES):
            value, prints, means = (part[method][row] for part in parts)
            if np.isnan(value[0]) or np.isnan(prints).mean() > 0.1:
                continue
            scale = 100.0 if dataset == "crime" and row == 0 else 1.0
            noise = shared[min(row, 1)]
            lines.append(
                {
                    "dataset": dataset,
                    "method": method,
                    "column": measure,
                    "measure": "performance" if method == BASELINE and row == 0 else measure,
                    "digits": 2 if scale > 1.0 else 3,
                    "draws": scale * prints,
                    "print": scale * value[0],
                    "prints": spread(scale * prints, splits=kept.size, runs=RUNS, shared=noise),
                    "means": spread(scale * means, splits=kept.size),
                }
            )
    return pd.DataFrame(lines)


def _changed(paper: pd.DataFrame, change: str, rng: np.random.Generator) -> np.ndarray:
    """Return the printed numbers of a paper after a change."""
    values = paper["print"].to_numpy(float)
    if change == "swapped":
        moved = values.copy()
        for _, places in paper.groupby(["dataset", "column"]).indices.items():
            order = rng.permutation(places)
            moved[order] = values[np.roll(order, 1)]
        return moved
    if change == "true":
        return values
    share = float(change.removeprefix("shifted by ").removesuffix(" %")) / 100.0
    return values * (1.0 + share * rng.choice([-1.0, 1.0], len(values)))


def judged(
    printed: list[str], measures: list[str], prints: list[Spread], means: list[Spread]
) -> list[str]:
    """Return the verdicts of one paper, each family of tests with its own false discovery rate."""
    rule = "within_spread"
    p = np.array(
        [
            p_values(*one)
            for one in zip(printed, [rule] * len(printed), measures, prints, means, strict=True)
        ]
    )
    differs, agrees = (threshold(p[:, i]) for i in (0, 1))
    return [AGREES if b <= agrees else DISAGREES if a <= differs else OPEN for a, b in p]


@cache
def simulated(protocol: str, *, papers: int) -> pd.DataFrame:
    """Return the verdict on every cell of simulated papers for every change.

    ``beyond`` says whether the printed number is further from the true print than the margin.
    """
    rng = np.random.default_rng(0)
    found = []
    for number in range(papers):
        paper = pd.concat([_paper(name, protocol, rng) for name in DATASETS], ignore_index=True)
        for change in CHANGES:
            numbers = _changed(paper, change, rng)
            printed = [
                f"{number:.{digit}f}"
                for number, digit in zip(numbers, paper["digits"], strict=True)
            ]
            verdicts = judged(
                printed, list(paper["measure"]), list(paper["prints"]), list(paper["means"])
            )
            reach = [
                margin(one, "within_spread", name)
                for one, name in zip(printed, paper["measure"], strict=True)
            ]
            lines = paper[["dataset", "method", "measure"]].assign(
                paper=number,
                change=change,
                verdict=verdicts,
                beyond=np.abs(numbers - paper["print"]) > reach,
            )
            found.append(lines)
    return pd.concat(found, ignore_index=True)


def shares(lines: pd.DataFrame) -> pd.DataFrame:
    """Return for each change which share of the cells is noticed (*disagrees*), open, and said to agree.

    Of changed cells only those beyond the margin count: within it the two numbers say the same.
    """
    counted = lines[(lines["change"] == "true") | lines["beyond"]]
    table = pd.crosstab(counted["change"], counted["verdict"], normalize="index")
    table = table.reindex(index=list(CHANGES), columns=[DISAGREES, OPEN, AGREES], fill_value=0.0)
    return table.assign(cells=counted["change"].value_counts()).rename_axis(
        index=None, columns=None
    )


def best_share(
    protocol: str = "text", *, runs: int = RUNS, level: float = 0.05, papers: int = 2
) -> float:
    """Return the share of swapped cells beyond the margin that the best rule for single numbers notices.

    This rule knows more than any number of our splits can show: for each cell the distribution of a printed mean over
    ``runs`` splits, and that of the numbers that a swap brings there. By the lemma of Neyman and Pearson, among rules
    that call at most the share ``level`` of true cells wrong, the one that rejects where the ratio of the two densities
    is largest notices most. The densities are those of draws of our splits, smoothed.
    """
    rng = np.random.default_rng(0)
    true, swapped, shares = [], [], []
    for dataset in DATASETS * papers:
        for _, group in _paper(dataset, protocol, rng, runs).groupby("column"):
            cells = np.stack(group["draws"].to_list())
            cells = cells[:, ~np.isnan(cells).any(0)]
            rounding = 0.5 * 10.0 ** -group["digits"].iloc[0]
            cells += rng.uniform(-rounding, rounding, cells.shape)
            for own, measure in zip(cells, group["measure"], strict=True):
                relevant = RELEVANT[measure]
                reach = np.maximum(
                    np.minimum(relevant.absolute, relevant.share * np.abs(cells)), rounding
                )
                moved = cells[np.abs(cells - own) > reach]
                share = 1.0 / (cells.size - own.size)
                ratio = np.zeros(own.size), np.zeros(moved.size)
                if moved.size > 1:
                    of_true, of_swapped = gaussian_kde(own), gaussian_kde(moved)
                    ratio = tuple(
                        moved.size * share * of_swapped(x) / np.maximum(of_true(x), 1e-300)
                        for x in (own, moved)
                    )
                true.append(ratio[0])
                swapped.append(ratio[1])
                shares.append(np.full(moved.size, share))
    cut = np.quantile(np.concatenate(true), 1.0 - level)
    return float(np.average(np.concatenate(swapped) > cut, weights=np.concatenate(shares)))
