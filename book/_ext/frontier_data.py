"""The points that the frontier explorer draws: this book's own runs and the authors' stored sweep."""

from __future__ import annotations

from functools import cache
from typing import Any

import pandas as pd

from frhsic_core.paper.runs.stored import book_folder, stored_rows
from frhsic_core.registry import PAPER_DATASETS, PARETO_METHODS, labels, titles

TEXT_GRID = [0.1, 1.0, 10.0, 100.0, 500.0]  # the λ of the paper's Section 6
# In the order of the paper's tables, FRHSIC first.
NAMES = labels(PARETO_METHODS)
TITLES = titles(PAPER_DATASETS)
AUTHORS_METRICS = {"gdp": "GDP, as the authors' code computes it", "mi_sk": "mutual information (scikit-learn)",
                   "mi": "mutual information (authors' estimate)"}  # fmt: skip
OWN_METRICS = labels(
    ("gdp_reference", "gdp_sample", "nonlinear_r2", "linear_r2", "normalized_hsic_1", "distance_correlation")
)


def points(rows: pd.DataFrame, metrics: dict[str, str]) -> dict[str, Any]:
    """Return the means over splits by dataset, method and λ, in the order of the paper's tables."""
    metrics = {key: text for key, text in metrics.items() if key in rows.columns}
    datasets: dict[str, Any] = {}
    for dataset in sorted(rows["dataset"].unique(), key=list(TITLES).index):
        part = rows[rows["dataset"] == dataset]
        methods: dict[str, list[dict[str, float | None]]] = {name: [] for name in ("unfair", *NAMES)}
        means = part.groupby(["method", "lam"])[["perf", *metrics]].mean().round(5).reset_index()
        for point in means.to_dict("records"):
            method = point.pop("method")
            if method in methods:
                methods[method].append({key: None if pd.isna(value) else value for key, value in point.items()})
        kind = part["perf_name"].iloc[0]
        unfair = methods.pop("unfair")[0]
        found = {name: listed for name, listed in methods.items() if listed}
        datasets[dataset] = {"perf_name": kind, "higher": kind != "mse", "unfair": unfair, "methods": found}
    return {"datasets": datasets, "metrics": metrics}


def authors_sweep() -> dict[str, Any]:
    """Return the authors' points."""
    rows = pd.read_csv(book_folder("claims", "reference", "sweep.csv"))
    rows = rows.rename(columns={"lambda": "lam", "perf_mean": "perf", "gdp_mean": "gdp"})
    return {"title": "the authors' stored sweep", **points(rows, AUTHORS_METRICS)}


def own_runs(rows: pd.DataFrame) -> dict[str, Any]:
    """Return the points of the book's main experiment, trained as the released code does, without options."""
    rows = rows[(rows["protocol"] == "reference") & (rows["option"] == "")]
    # Where the released code prepares a dataset in its own way, that variant is meant.
    has_reference = rows["dataset"].isin(rows.loc[rows["variant"] == "reference", "dataset"])
    rows = rows[(rows["variant"] == "reference") | ~has_reference].rename(columns={"performance": "perf"})
    rows = rows.assign(perf_name=rows["task"].map({"classification": "acc", "regression": "mse"}))
    return {"title": "this book's runs", **points(rows, OWN_METRICS)}


@cache
def frontier_data() -> dict[str, Any]:
    """Return both sources, the book's own first."""
    sources = {"own": own_runs(stored_rows("main")), "authors": authors_sweep()}
    return {"sources": sources, "names": NAMES, "titles": TITLES, "text_grid": TEXT_GRID}
