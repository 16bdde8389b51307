"""Twenty lines of the ledger, drawn at random, recomputed from the stored files with code of their own.

Nothing of ``frhsic_core`` computes here: files are read with pandas, summaries are loops, the draws have another seed.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from frhsic_core.paper.claims import claims

BOOK = Path(__file__).resolve().parents[3] / "book"
SEED = 2026
PROTOCOLS = ("text", "reference")
MAIN = ("frhsic", "frem", "reg_gdp", "adv", "mmd_binned", "laftr")
TAIL = stats.norm.sf(2)
# Relevant differences, typed from the page of the ledger.
SHARES = {"performance": (math.inf, 0.01), "matched": (math.inf, 0.005), "gdp": (0.05, 0.2), "naup": (0.05, 0.2)}
Found = dict[str, tuple[float, tuple[float, float]]]


@cache
def stored(name: str) -> pd.DataFrame:
    return pd.read_parquet(BOOK / "results" / f"{name}.parquet")


Means = dict[tuple[str, float], float]


def sweep(dataset: str, protocol: str) -> tuple[list[tuple[str, float]], np.ndarray, np.ndarray, bool]:
    """Return the pairs of method and λ, and for each of them performance and GDP on every split."""
    rows = stored("main")
    rows = rows[(rows["dataset"] == dataset) & (rows["protocol"] == protocol) & (rows["variant"] == protocol)]
    wide = [
        rows.astype({column: float}).pivot_table(index=["method", "lam"], columns="split", values=column)
        for column in ("performance", "gdp_reference")
    ]
    keys = [(str(method), float(lam)) for method, lam in wide[0].index]
    return keys, wide[0].to_numpy(), wide[1].to_numpy(), bool((rows["task"] == "classification").all())


def matched_by_hand(performance: Means, gdp: Means, method: str, higher: bool) -> tuple[float, float]:
    unfair = performance["unfair", 0.0]
    best = (math.nan, math.inf)
    for key in [key for key in gdp if key[0] == method]:
        kept = performance[key] >= 0.99 * unfair if higher else performance[key] <= 1.01 * unfair
        if kept and gdp[key] < best[1]:
            best = (performance[key], gdp[key])
    return best if math.isfinite(best[1]) else (math.nan, math.nan)


def area_by_hand(performance: Means, gdp: Means, method: str, higher: bool) -> float:
    sign = 1 if higher else -1
    compared = [sign * value for key, value in performance.items() if key[0] in (*MAIN, "unfair")]
    low, high = min(compared), max(compared)
    points = [
        (min(gdp[key] / gdp["unfair", 0.0], 1.0), (sign * performance[key] - low) / (high - low))
        for key in gdp
        if key[0] == method
    ]
    heights = [max([0.0, *(u for g, u in points if g <= step / 200)]) for step in range(201)]
    return sum((a + b) / 2 for a, b in pairwise(heights)) / 200


def of_five_splits(dataset: str, statistic: Callable[[Means, Means, bool], float]) -> Found:
    found: Found = {}
    for protocol in PROTOCOLS:
        keys, *parts, higher = sweep(dataset, protocol)
        rng = np.random.default_rng(7)
        values = []
        for splits in (np.arange(25), *rng.integers(0, 25, (600, 5))):
            means = [dict(zip(keys, part[:, splits].mean(axis=1).tolist(), strict=True)) for part in parts]
            values.append(statistic(*means, higher))
        draws = np.array(values[1:])
        low, middle, high = np.quantile(draws[~np.isnan(draws)], [TAIL, 0.5, 1 - TAIL])
        stretch = math.sqrt(25 / 24 * (1 + 5 / 25))
        ends = max(middle - stretch * (middle - low), 0.0), middle + stretch * (high - middle)
        found[protocol] = values[0], ends
    return found


def one_run_by_hand(values: np.ndarray, skewed: bool) -> tuple[float, tuple[float, float]]:
    if skewed:
        return float(np.median(values)), (values.min(), values.max())
    reach = stats.t(len(values) - 1).isf(TAIL) * values.std(ddof=1) * math.sqrt(1 + 1 / len(values))
    low = values.mean() - reach
    return float(values.mean()), (max(low, 0.0) if (values >= 0).all() else low, values.mean() + reach)


def matched(dataset: str, method: str, measure: str, scale: float = 1.0) -> tuple[Found, str]:
    place = ("performance", "dependence").index(measure)
    found = of_five_splits(dataset, lambda p, g, higher: scale * matched_by_hand(p, g, method, higher)[place])
    return found, ("matched", "gdp")[place]


def area(dataset: str, method: str) -> tuple[Found, str]:
    return of_five_splits(dataset, lambda p, g, higher: area_by_hand(p, g, method, higher)), "naup"


def point(dataset: str, method: str, measure: str, lam: float, scale: float = 1.0) -> tuple[Found, str]:
    place = ("performance", "gdp_reference").index(measure)
    found = of_five_splits(dataset, lambda p, g, higher: scale * (p, g)[place][method, lam])
    return found, ("performance", "gdp")[place]


def option_point(experiment: str, dataset: str, option: Any, measure: str, lam: float = 0.0) -> tuple[Found, str]:
    found: Found = {}
    for protocol in PROTOCOLS:
        rows = stored(experiment)
        rows = rows[(rows["dataset"] == dataset) & (rows["protocol"] == protocol) & (rows["seed"] == rows["split"])]
        name = option if isinstance(option, str) else option[protocol]
        mine = rows["method"] == "unfair" if name == "unfair" else (rows["option"] == name) & (rows["lam"] == lam)
        values = rows[mine][measure].to_numpy(float)
        found[protocol] = one_run_by_hand(values, measure != "performance")
    return found, "performance" if measure == "performance" else "gdp"


def transfer_spread(dataset: str, method: str) -> tuple[Found, str]:
    rows = stored("transfer")
    lam = 0.0 if method == "unfair" else {"adult": 10.0, "crime": 100.0}[dataset]
    rows = rows[(rows["dataset"] == dataset) & (rows["method"] == method) & (rows["option"] == "")]
    heads = rows[rows["lam"] == lam][[f"{head}_gdp_mixed" for head in ("linear", "mlp", "forest", "svm")]]
    return {"any": one_run_by_hand(heads.to_numpy(float).std(axis=1), False)}, "gdp"


def by_interval(found: Found, measure: str, printed: str) -> str:
    """Return the verdict from values, intervals and the relevant difference."""
    wanted = float(printed)
    rounding = 0.51 * 10.0 ** -len(printed.partition(".")[2])
    absolute, share = SHARES[measure]
    decisions = {}
    for name, (value, (low, high)) in found.items():
        inside = low - rounding <= wanted <= high + rounding
        short = max(high - value, value - low) + rounding <= min(absolute, share * wanted)
        decisions[name] = ("reproduced" if short else "compatible, not decided") if inside else "differs"
    first = decisions.get("any", decisions.get("text"))
    if first == "reproduced":
        return "reproduced"
    if decisions.get("reference") == "reproduced":
        return "reproduced by the reference protocol only"
    return "compatible, not decided" if "compatible, not decided" in decisions.values() else "differs"


def dataset_fact(dataset: str, what: str, printed: str) -> str:
    variants = [json.loads((BOOK / "data_summaries" / f"{dataset}-{name}.json").read_text()) for name in PROTOCOLS]
    if what in ("n", "d") and any("lacks" in note or "not in this" in note
                                  for one in variants for note in one["provenance"]["notes"]):  # fmt: skip
        return "cannot be judged"
    if what == "range":
        wanted = [float(end) for end in printed.split("-")]
        agree = [[one["s"]["min"], one["s"]["max"]] == wanted for one in variants]
    else:
        agree = [abs(one[what] / float(printed) - 1) <= 0.05 for one in variants]
    return ("differs", "reproduced by the reference protocol only")[agree[1]] if not agree[0] else "reproduced"


def cost_order(forms: list[str], printed: str) -> str:
    rows = pd.read_csv(BOOK / "results" / "cost.csv", low_memory=False)
    rows = rows[(rows["part"] == "operations") & (rows["n"] <= 4096) & rows["anchors"].isna()]
    wanted = [float(part.partition("^")[2][0]) for part in printed.split(" vs ")]
    for form, power in zip(forms, wanted, strict=True):
        count = rows[rows["form"] == form].set_index("n")["operations"]
        if abs(math.log2(count[4096] / count[2048]) - power) > 0.1:
            return "fails"
    return "reproduced"


def information_lower(datasets: list[str], printed: str) -> str:
    rows = stored("mutual_information")
    below = above = 0
    for dataset in datasets:
        part = rows[rows["dataset"] == dataset]
        means = part.groupby(["method", "lam"])[["performance", "gdp_reference"]].mean().astype(float)
        higher = bool((part["task"] == "classification").all())
        values = {}
        for method in ("frhsic", "reg_gdp"):
            gdp = means["gdp_reference"].to_dict()
            best = matched_by_hand(means["performance"].to_dict(), gdp, method, higher)[1]
            lam = next(key[1] for key in gdp if key[0] == method and gdp[key] == best)
            mine = part[(part["method"] == method) & (part["lam"] == lam)]
            values[method] = mine.set_index("split")["mi_reference"].astype(float)
        test = stats.ttest_rel(values["frhsic"], values["reg_gdp"])
        below += test.pvalue < 0.05 and test.statistic < 0
        above += test.pvalue < 0.05 and test.statistic > 0
    if below == len(datasets):
        return "reproduced"
    return "fails" if above else "compatible, not decided"


INTERVALS: dict[str, Callable[..., tuple[Found, str]]] = {
    one.__name__: one for one in (matched, area, point, option_point, transfer_spread)
}
OTHERS: dict[str, Callable[..., str]] = {one.__name__: one for one in (dataset_fact, cost_order, information_lower)}


def drawn_lines() -> list[str]:
    """Return twenty measured lines; which ones depends on the seed and on the list of claims alone."""
    from frhsic_core.paper.claims.answers import KIND_OF, queries

    queries()
    found = claims()
    measured = found[found["query"].map(KIND_OF) == "measured"]["id"].to_numpy()
    return sorted(np.random.default_rng(SEED).choice(measured, 20, replace=False))


@pytest.mark.parametrize("key", drawn_lines())
def test_a_drawn_line_is_what_other_code_finds(key: str, full_ledger: pd.DataFrame) -> None:
    claim = claims().set_index("id").loc[key]
    line = full_ledger.set_index("id").loc[key]
    arguments = json.loads(claim["arguments"])
    if claim["query"] in OTHERS:
        assert OTHERS[claim["query"]](**arguments, printed=claim["value"]) == line["verdict"]
        return
    found, measure = INTERVALS[claim["query"]](**arguments)
    assert by_interval(found, measure, claim["value"]) == line["verdict"]
    for value, _ in found.values():
        assert f"{value:.4g}" in line["ours"]
