"""Queries of the ledger on data stored in ``book/claims``: the authors' runs, and recorded certificates."""

from __future__ import annotations

import json
from functools import cache
from typing import Any

import numpy as np
import pandas as pd

from frhsic_core.paper.claims.answers import CHECKED, Answer, query
from frhsic_core.paper.experiments.main import MAIN_METHODS, MIDDLE, PARETO_METHODS, pareto_table
from frhsic_core.paper.experiments.presets import GRIDS
from frhsic_core.paper.runs.stored import book_folder, paper_table, reference_sweep

TABLES = {"Table 1": "tab:real_data", "Pareto summary": "tab:pareto_summary"}


@cache
def authors_file(name: str) -> pd.DataFrame:
    """Return one of the copied files: ``"sweep"``, or a side experiment."""
    folder = ("claims", "reference") if name.startswith("sweep") else ("claims", "authors")
    return pd.read_csv(book_folder(*folder, f"{name}.csv"))


@cache
def _table(grid: str) -> pd.DataFrame:
    """Return matched points and areas: with every λ a method has (as printed), or on the common nine."""
    lams = None if grid == "dense" else GRIDS["full"]
    methods = {"points": PARETO_METHODS, "areas": MAIN_METHODS}
    parts = {
        what: pareto_table(reference_sweep(), methods=names, lams=lams, unequal_grids=True, resamples=1).set_index(
            ["dataset", "method"]
        )
        for what, names in methods.items()
    }
    return parts["points"].assign(naup=parts["areas"]["naup"])


def two_grids(method: str = "frhsic") -> pd.DataFrame:
    """Return where the two tables of the paper print different GDP for one matched point, and what each grid gives.

    Table 1 and the Pareto summary define the same quantity. The last two columns are that quantity from the authors'
    stored sweep, with every λ that the method has and with the nine that all methods have.
    """
    printed = [paper_table(label)["dependence"].xs(method, level="method") for label in TABLES.values()]
    sweep = reference_sweep()
    sizes = {"dense": sweep.loc[sweep["method"] == method, "lam"].nunique(), "nine": len(GRIDS["full"])}
    found = pd.DataFrame(dict(zip(TABLES, printed, strict=True)))
    for grid, size in sizes.items():
        found[f"{size} λ"] = _table(grid)["dependence"].xs(method, level="method")
    return found[found["Table 1"] != found["Pareto summary"]].reset_index()


def _filtered(file: str, where: dict[str, Any] | None) -> pd.DataFrame:
    rows = authors_file(file)
    for name, wanted in (where or {}).items():
        rows = rows[rows[name] == wanted]
    return rows


def _grid_note(dataset: str, method: str) -> str:
    rows = reference_sweep()
    count = int(((rows["dataset"] == dataset) & (rows["method"] == method)).sum())
    return f"printed from {count} λ" if count > len(GRIDS["full"]) else ""


STATISTICS = {
    "mean": lambda v: float(v.mean()),
    "median": lambda v: float(v.median()),
    "min": lambda v: float(v.min()),
    "max": lambda v: float(v.max()),
    "sd": lambda v: float(v.std(ddof=0)),
    "distinct": lambda v: float(v.nunique()),
    "sorted": lambda v: tuple(sorted(float(x) for x in v.unique())),
    "falls": lambda v: bool((np.diff(v.to_numpy(float)) <= 0).all()),
    "near_zero": lambda v: bool((v <= 0.05).all()),
    "some_zero": lambda v: bool((v <= 0.005).any()),
    "all_ones": lambda v: bool((v == 1).all()),
}


@query
def stored_value(file: str, column: str, where: dict[str, Any] | None = None, statistic: str = "mean") -> Answer:
    """Return a statistic of a column of a file, over the rows named."""
    rows = _filtered(file, where)
    if rows.empty:
        return Answer(why="not among the stored runs")
    return Answer({"any": STATISTICS[statistic](rows[column])})


@query
def stored_ratio(
    file: str, column: str, top: dict[str, Any], bottom: dict[str, Any], each: str = "", end: str = "mean"
) -> Answer:
    """Return the ratio of two means; with ``each``, the smallest or largest ratio over its values."""
    above, below = (_filtered(file, where) for where in (top, bottom))
    if each:
        ratios = above.groupby(each)[column].mean() / below.groupby(each)[column].mean()
        return Answer({"any": STATISTICS[end](ratios)})
    return Answer({"any": float(above[column].mean() / below[column].mean())})


@query
def stored_matched(dataset: str, method: str, measure: str, grid: str = "dense", scale: float = 1.0) -> Answer:
    """Return the matched point of the stored sweep."""
    note = _grid_note(dataset, method) if grid == "dense" else ""
    return Answer({"any": scale * float(_table(grid).loc[(dataset, method), measure])}, note=note)


@query
def stored_no_matched(dataset: str, method: str, grid: str = "dense") -> Answer:
    """Return whether the stored sweep has no matched point."""
    return Answer({"any": float(np.isnan(_table(grid).loc[(dataset, method), "dependence"]))})


@query
def stored_area(dataset: str, method: str) -> Answer:
    """Return nAUP of the stored sweep with every λ it has, as printed."""
    return Answer({"any": float(_table("dense").loc[(dataset, method), "naup"])}, note=_grid_note(dataset, method))


@query
def stored_area_rank(dataset: str, method: str, grid: str = "dense") -> Answer:
    """Return the rank by nAUP among the six methods."""
    areas = _table(grid)["naup"].loc[dataset].dropna()
    return Answer({"any": float(areas.rank(ascending=False)[method])})


@query
def stored_area_gap(dataset: str, method: str) -> Answer:
    """Return the distance from the best nAUP."""
    areas = _table("dense")["naup"].loc[dataset].dropna()
    return Answer({"any": float(areas.max() - areas[method])})


@query
def stored_middle_ranks(datasets: list[str], method: str) -> Answer:
    """Return whether the rank is one of the two in the middle of six on every dataset named."""
    places = [_table("dense")["naup"].loc[name].dropna().rank(ascending=False)[method] for name in datasets]
    return Answer({"any": all(place in MIDDLE for place in places)})


@query
def stored_point(dataset: str, method: str, measure: str, lam: float | None = None, scale: float = 1.0) -> Answer:
    """Return one model of the stored sweep, at ``lam`` or at its lowest GDP; ``measure`` is a column of the file."""
    rows = _filtered("sweep", {"dataset": dataset, "method": method})
    row = rows.loc[rows["gdp_mean"].idxmin()] if lam is None else rows[rows["lambda"] == lam].iloc[0]
    return Answer({"any": scale * float(row[measure])})


@query
def stored_grids() -> Answer:
    """Return the λ of the stored sweep; the longest grid where those of the methods differ."""
    rows = authors_file("sweep")
    grids = {tuple(sorted(part["lambda"])) for name, part in rows.groupby(["dataset", "method"]) if name[1] != "unfair"}
    return Answer({"any": max(grids, key=len)}, note=f"{len(grids)} different grids")


@query
def stored_lower_information(datasets: list[str]) -> Answer:
    """Return whether FRHSIC's stored MI at its matched point is below Reg-GDP's on every dataset named."""
    table = _table("nine")
    lower = []
    for dataset in datasets:
        found = [
            stored_point(dataset, name, "mi", lam=float(table.loc[(dataset, name), "lam"])).values["any"]
            for name in ("frhsic", "reg_gdp")
        ]
        lower.append(found[0] < found[1])
    return Answer({"any": all(lower)}, note=f"lower on {sum(lower)} of {len(lower)} datasets")


@query
def stored_attributes_fall(lams: list[float], band: float = 0.01) -> Answer:
    """Return whether GDP of both attributes falls along ``lams`` in both forms, accuracy within ``band`` of Unfair."""
    rows = authors_file("multi_sensitive")
    unfair = float(rows.loc[rows["method"] == "Unfair", "acc"].iloc[0])
    found = {}
    for name in ("FRHSIC-Joint", "FRHSIC-Sum"):
        part = rows[(rows["method"] == name) & rows["lambda"].isin(lams)].sort_values("lambda")
        falls = all(STATISTICS["falls"](part[column]) for column in ("gdp_age", "gdp_hours"))
        found[name] = falls and bool((part["acc"] >= (1 - band) * unfair).all())
    return Answer(
        {"any": all(found.values())}, note=", ".join(f"{k}: {'yes' if v else 'no'}" for k, v in found.items())
    )


@query
def stored_arm_lower(first: str, second: str, lam: float, measures: list[str]) -> Answer:
    """Return whether the stored value of the first form is below that of the second in every column named."""
    rows = authors_file("multi_sensitive")
    rows = rows[rows["lambda"] == lam].set_index("method")
    return Answer({"any": bool((rows.loc[first, measures] < rows.loc[second, measures]).all())})


@query
def stored_slope(estimator: str) -> Answer:
    """Return the slope of the logarithm of the mean stored error on that of n."""
    rows = _filtered("convergence", {"estimator": estimator})
    means = rows.groupby("n")["abs_error"].mean()
    return Answer({"any": float(np.polyfit(np.log(means.index.to_numpy(float)), np.log(means.to_numpy()), 1)[0])})


@query
def stored_bound(what: str) -> Answer:
    """Return how often the right side of the stored bounds is below the left, or their least ratio in decades."""
    rows = authors_file("bound_tightness")
    if what == "violations":
        return Answer({"any": float((rows["rhs_bound"] < rows["lhs_max"]).sum())})
    return Answer({"any": float(np.log10(rows["rhs_bound"] / rows["lhs_mean"]).min())})


@query
def stored_slope_factor() -> Answer:
    """Return the largest factor between a stored slope of λ̂_S against σ and minus one."""
    slopes = authors_file("lambda2_vs_sigma")["slope_stored"].abs()
    return Answer({"any": float(np.maximum(slopes, 1 / slopes).max())})


@query
def stored_selected_keep_performance(band: float = 0.01) -> Answer:
    """Return whether every selected λ on Crime and COMPAS keeps the performance of the smallest λ within ``band``."""
    kept = []
    for (dataset, _), part in authors_file("lambda_selection").groupby(["dataset", "repeat"]):
        if dataset == "adult":
            continue
        chosen = part[part["lambda"] == part["selected_lambda"]]["perf"].iloc[0]
        first = part.sort_values("lambda")["perf"].iloc[0]
        kept.append(chosen >= (1 - band) * first if dataset == "compas" else chosen <= (1 + band) * first)
    return Answer({"any": all(kept)}, note=f"{sum(kept)} of {len(kept)} selections")


WORTH_SAYING = ("fails as stated", "inconclusive", "holds as corrected", "holds")


@cache
def recorded() -> list[dict[str, Any]]:
    """Return the recorded certificates."""
    found: list[dict[str, Any]] = json.loads(book_folder("claims", "verdicts.json").read_text(encoding="utf-8"))
    return found


def _described(certificate: dict[str, Any]) -> str:
    return f"{certificate['verdict']}: {certificate['claim']} [{certificate['evidence']}]"


@query(kind=CHECKED)
def certificates(statement: str, contains: list[str], beside: list[str] | None = None) -> Answer:
    """Return the verdicts of the certificates of a statement whose claim contains one of the texts.

    Each text must be found. Certificates found by ``beside`` stand in the note and are not judged: cases that the
    paper's sentence leaves out, by a condition it states or by the kernels it uses.
    """
    cited: list[dict[str, Any]] = []
    others: list[dict[str, Any]] = []
    for text, kept in (*((text, cited) for text in contains), *((text, others) for text in beside or ())):
        found = [c for c in recorded() if c["statement"] == statement and text in c["claim"]]
        if not found:
            return Answer(why=f"no certificate of {statement} says {text!r}")
        kept += found
    # What breaks first, then what holds instead or besides.
    first = {verdict: next((c for c in cited if c["verdict"] == verdict), None) for verdict in WORTH_SAYING}
    notes = [_described(c) for c in first.values() if c is not None][:2]
    notes += [f"beside it, not judged, {_described(c)}" for c in others]
    note = f"{statement}, {'; '.join(notes)}"
    return Answer({"any": tuple(dict.fromkeys(certificate["verdict"] for certificate in cited))}, note=note)


@query(kind=CHECKED)
def exact_hsic_limit() -> Answer:
    """Return the least value of biased HSIC: zero if it is certified in rational arithmetic to be a squared norm."""
    answer = certificates("Definition 2.1", ["is the defined squared norm"])
    return Answer({"any": 0.0 if answer.values["any"] == ("holds",) else None}, note=answer.note)


BREAKS = "fraction of the bound at which coverage breaks"


@query(kind=CHECKED)
def bound_constants(statement: str, contains: list[str], beside: list[str] | None = None) -> Answer:
    """Return what coverage says about the constants of a bound: False if it fails, otherwise how little it says."""
    answer = certificates(statement, contains, beside)
    if "fails as stated" in answer.values["any"]:
        return Answer({"any": False}, note=answer.note)
    checks = [c for c in recorded() if c["statement"] == statement and any(text in c["claim"] for text in contains)]
    shares = [c["details"][BREAKS] for c in checks if c["verdict"] == "holds" and BREAKS in c["details"]]
    told = (
        f"the bound covers, but would still cover at {min(shares):.1g} to {max(shares):.1g} of its size: "
        "much smaller constants would pass as well"
    )
    return Answer({"any": told}, note=answer.note)
