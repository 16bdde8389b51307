"""Read what the authors stored: their runs in ``book/claims``, and the recorded certificates.

A claim names, in columns of its row, a table of :func:`stored_table`, the rows of it, and a formula.
Both are expressions over the table's columns (:mod:`frhsic_core.paper.claims.formulas`); a formula
can also be the name of a function in ``FORMULAS``.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
import pandas as pd

from frhsic_core.paper.claims.answers import Answer, computed, query
from frhsic_core.paper.claims.formulas import selected
from frhsic_core.paper.experiments import GRIDS
from frhsic_core.paper.experiments.main import MAIN_METHODS, PARETO_METHODS, pareto_table
from frhsic_core.paper.stored import authors_file, recorded_certificates, reference_sweep


@cache
def stored_table(name: str, rows: str = "") -> pd.DataFrame:
    """Return a copied file, or a table that is derived from one, or some rows of it."""
    if rows:
        return selected(stored_table(name), rows)
    if name in _DERIVED:
        return _DERIVED[name]()
    return authors_file(name)


def stored_answer(table: str, rows: str, formula: str) -> Answer:
    """Return a formula over some rows of a stored table, with the note of these rows if the table has one."""
    chosen = stored_table(table, rows)
    if chosen.empty:
        return Answer(why="not among the stored runs")
    if formula in FORMULAS:
        value, note = FORMULAS[formula](chosen)
        return Answer({"any": value}, note=note)
    note = chosen["note"].iloc[0] if "note" in chosen and formula not in _WITHOUT_NOTE else ""
    return Answer({"any": computed(chosen, formula)}, note=note)


# Derived tables -------------------------------------------------------------------------------------------------------


def _points() -> pd.DataFrame:
    """Return matched points and areas: with every λ that a method has (as printed), and on the common nine."""
    parts = []
    for grid, lams in (("dense", None), ("nine", GRIDS["full"])):
        points, areas = (
            pareto_table(
                reference_sweep(), methods=methods, lams=lams, unequal_grids=True, resamples=1
            )
            for methods in (PARETO_METHODS, MAIN_METHODS)
        )
        table = points.drop(columns="naup").merge(areas[["dataset", "method", "naup"]], how="left")
        by_dataset = table.groupby("dataset")["naup"]
        parts.append(
            table.assign(
                grid=grid,
                naup_rank=by_dataset.rank(ascending=False),
                naup_gap=by_dataset.transform("max") - table["naup"],
            )
        )
    found = pd.concat(parts, ignore_index=True)
    sizes = reference_sweep().groupby(["dataset", "method"]).size().rename("size").reset_index()
    sizes = found.merge(sizes, how="left")["size"]
    printed = (found["grid"] == "dense") & (sizes > len(GRIDS["full"]))
    return found.assign(note=np.where(printed, "printed from " + sizes.astype(str) + " λ", ""))


def _sweep() -> pd.DataFrame:
    rows = authors_file("sweep")
    return rows.assign(
        lowest_gdp=rows.index.isin(rows.groupby(["dataset", "method"])["gdp_mean"].idxmin())
    )


def _epochs(file: str, index: str, seconds: str) -> pd.DataFrame:
    return (
        authors_file(file).pivot_table(index=index, columns="method", values=seconds).reset_index()
    )


def _slopes() -> pd.DataFrame:
    """Return the slope of the logarithm of each estimator's mean error on that of n."""
    means = authors_file("convergence").groupby(["estimator", "n"])["abs_error"].mean().unstack("n")
    sizes = np.log(means.columns.to_numpy(float))
    slopes = [float(np.polyfit(sizes, np.log(errors), 1)[0]) for errors in means.to_numpy()]
    return pd.DataFrame({"estimator": means.index, "slope": slopes})


def _heads() -> pd.DataFrame:
    """Return the spread of GDP over heads, its reduction from Unfair in per cent, and its rank.

    Reg-GDP, whose accuracy fell, has no rank.
    """
    spread = (
        authors_file("transfer")
        .groupby(["dataset", "method"])["gdp"]
        .std(ddof=0)
        .rename("sd")
        .reset_index()
    )
    unfair = spread[spread["method"] == "unfair"].set_index("dataset")["sd"]
    ranked = spread[~spread["method"].isin(["unfair", "reg_gdp"])]
    return spread.assign(
        reduction=100 * (1 - spread["sd"] / spread["dataset"].map(unfair)),
        sd_rank=ranked.groupby("dataset")["sd"].rank(),
    )


def _joint_and_sum() -> pd.DataFrame:
    rows = authors_file("multi_sensitive")
    joint, summed = (rows[rows["method"] == f"FRHSIC-{form}"] for form in ("Joint", "Sum"))
    return joint.merge(summed, on="lambda", suffixes=("_joint", "_sum"))


_DERIVED: dict[str, Callable[[], pd.DataFrame]] = {
    "points": _points,
    "sweep": _sweep,
    "epochs_by_size": lambda: _epochs("runtime", "n", "epoch_seconds"),
    "epochs_by_dimension": lambda: _epochs("highdim_S", "d", "time_per_epoch_s"),
    "slopes": _slopes,
    "heads": _heads,
    "joint_and_sum": _joint_and_sum,
}
# The number of λ behind a printed number is no note for these.
_WITHOUT_NOTE = ("dependence.isna()", "naup_rank", "naup_gap", "naup_rank.isin([3, 4]).all()")


# Formulas that need more than an expression ---------------------------------------------------------------------------


def longest_grid(sweep: pd.DataFrame) -> tuple[Any, str]:
    """Return the λ of the sweep; the longest grid where those of the methods differ."""
    groups = sweep[sweep["method"] != "unfair"].groupby(["dataset", "method"])["lambda"]
    grids = {tuple(sorted(lams)) for _, lams in groups}
    return max(grids, key=len), f"{len(grids)} different grids"


def lower_information(points: pd.DataFrame) -> tuple[Any, str]:
    """Return whether FRHSIC's MI at its matched point is below Reg-GDP's on every dataset."""
    information = authors_file("sweep").set_index(["dataset", "method", "lambda"])["mi"]
    lams = points.set_index(["dataset", "method"])["lam"]
    lower = [
        information[name, "frhsic", lams[name, "frhsic"]]
        < information[name, "reg_gdp", lams[name, "reg_gdp"]]
        for name in points["dataset"].unique()
    ]
    return all(lower), f"lower on {sum(lower)} of {len(lower)} datasets"


def attributes_fall(rows: pd.DataFrame, band: float = 0.01) -> tuple[Any, str]:
    """Return whether GDP of both attributes falls along λ in both forms, accuracy within ``band`` of Unfair."""
    unfair = float(rows.loc[rows["method"] == "Unfair", "acc"].iloc[0])
    found = {}
    for name in ("FRHSIC-Joint", "FRHSIC-Sum"):
        part = rows[rows["method"] == name].sort_values("lambda")
        falls = (part[["gdp_age", "gdp_hours"]].diff().dropna() <= 0).all(axis=None)
        found[name] = bool(falls and (part["acc"] >= (1 - band) * unfair).all())
    return all(found.values()), ", ".join(
        f"{name}: {'yes' if yes else 'no'}" for name, yes in found.items()
    )


def selections_keep_performance(rows: pd.DataFrame, band: float = 0.01) -> tuple[Any, str]:
    """Return whether every selected λ keeps the performance of the smallest λ within ``band``.

    On COMPAS performance is an accuracy, on Crime an error.
    """
    kept = []
    for (dataset, _), part in rows.groupby(["dataset", "repeat"]):
        chosen = part[part["lambda"] == part["selected_lambda"]]["perf"].iloc[0]
        first = part.sort_values("lambda")["perf"].iloc[0]
        kept.append(
            chosen >= (1 - band) * first if dataset == "compas" else chosen <= (1 + band) * first
        )
    return all(kept), f"{sum(kept)} of {len(kept)} selections"


FORMULAS: dict[str, Callable[[pd.DataFrame], tuple[Any, str]]] = {
    one.__name__: one
    for one in (longest_grid, lower_information, attributes_fall, selections_keep_performance)
}


WORTH_SAYING = ("fails as stated", "inconclusive", "holds as corrected", "holds")


def _described(certificate: dict[str, Any]) -> str:
    return f"{certificate['verdict']}: {certificate['claim']} [{certificate['evidence']}]"


@query
def certificates(statement: str, contains: list[str], beside: list[str] | None = None) -> Answer:
    """Return the verdicts of the certificates of a statement whose claim contains one of the texts.

    Each text must be found. Certificates found by ``beside`` stand in the note and are not judged: cases that the
    paper's sentence leaves out, by a condition it states or by the kernels it uses.
    """
    cited: list[dict[str, Any]] = []
    others: list[dict[str, Any]] = []
    for text, kept in (
        *((text, cited) for text in contains),
        *((text, others) for text in beside or ()),
    ):
        found = [
            c for c in recorded_certificates() if c["statement"] == statement and text in c["claim"]
        ]
        if not found:
            return Answer(why=f"no certificate of {statement} says {text!r}")
        kept += found
    # What breaks first, then what holds instead or besides.
    first = {
        verdict: next((c for c in cited if c["verdict"] == verdict), None)
        for verdict in WORTH_SAYING
    }
    notes = [_described(c) for c in first.values() if c is not None][:2]
    notes += [f"beside it, not judged, {_described(c)}" for c in others]
    note = f"{statement}, {'; '.join(notes)}"
    return Answer(
        {"any": tuple(dict.fromkeys(certificate["verdict"] for certificate in cited))}, note=note
    )


BREAKS = "fraction of the bound at which coverage breaks"


@query
def bound_constants(statement: str, contains: list[str], beside: list[str] | None = None) -> Answer:
    """Return what coverage says about the constants of a bound: False if it fails, otherwise how little it says."""
    answer = certificates(statement, contains, beside)
    if "fails as stated" in answer.values["any"]:
        return Answer({"any": False}, note=answer.note)
    checks = [
        c
        for c in recorded_certificates()
        if c["statement"] == statement and any(text in c["claim"] for text in contains)
    ]
    shares = [
        c["details"][BREAKS] for c in checks if c["verdict"] == "holds" and BREAKS in c["details"]
    ]
    told = (
        f"the bound covers, but would still cover at {min(shares):.1g} to {max(shares):.1g} of its size: "
        "much smaller constants would pass as well"
    )
    return Answer({"any": told}, note=answer.note)
