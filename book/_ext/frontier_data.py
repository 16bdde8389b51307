"""The points that the frontier explorer draws: this book's own runs and the authors' stored sweep."""

from __future__ import annotations

from functools import cache
from typing import Any

import pandas as pd

from frhsic_core.paper.stored import authors_file, stored_rows
from frhsic_core.registry import METHODS, PAPER_DATASETS, PARETO_METHODS, labels

TEXT_GRID = [0.1, 1.0, 10.0, 100.0, 500.0]  # the λ of the paper's Section 6
# In the order of the paper's tables, FRHSIC first.
NAMES = labels(PARETO_METHODS)
COLORS = {key: METHODS[key].color for key in PARETO_METHODS}
TITLES = labels(PAPER_DATASETS)
AUTHORS_METRICS = {"gdp": "GDP, as the authors' code computes it", "mi_sk": "mutual information (scikit-learn)",
                   "mi": "mutual information (authors' estimate)"}  # fmt: skip
OWN_METRICS = labels(
    (
        "gdp_reference",
        "gdp_sample",
        "nonlinear_r2",
        "linear_r2",
        "normalized_hsic_1",
        "distance_correlation",
    )
)

OWN_PROTOCOLS = {"reference": "released code", "text": "paper's text"}


def points(rows: pd.DataFrame, metrics: dict[str, str]) -> dict[str, Any]:
    """Return means and standard deviations over splits by dataset, method and λ, in the order of the paper's tables.

    The standard deviations are under the name of a measure and ``_sd``; the authors' sweep, which
    has none, has one row for each point.
    """
    metrics = {key: text for key, text in metrics.items() if key in rows.columns}
    datasets: dict[str, Any] = {}
    for dataset in sorted(rows["dataset"].unique(), key=list(TITLES).index):
        part = rows[rows["dataset"] == dataset]
        methods: dict[str, list[dict[str, float | None]]] = {
            name: [] for name in ("unfair", *NAMES)
        }
        groups = part.groupby(["method", "lam"])[["perf", *metrics]]
        means = groups.mean().join(groups.std().add_suffix("_sd")).astype(float).round(5)
        means = means.dropna(axis=1, how="all").reset_index()
        for point in means.to_dict("records"):
            method = point.pop("method")
            if method in methods:
                methods[method].append(
                    {key: None if pd.isna(value) else value for key, value in point.items()}
                )
        kind = part["perf_name"].iloc[0]
        unfair = methods.pop("unfair")[0]
        found = {name: listed for name, listed in methods.items() if listed}
        datasets[dataset] = {
            "perf_name": kind,
            "higher": kind != "mse",
            "unfair": unfair,
            "methods": found,
        }
    return {"datasets": datasets, "metrics": metrics}


def authors_sweep() -> dict[str, Any]:
    """Return the authors' points."""
    rows = authors_file("sweep")
    rows = rows.rename(columns={"lambda": "lam", "perf_mean": "perf", "gdp_mean": "gdp"})
    return {"title": "the authors' stored runs", **points(rows, AUTHORS_METRICS)}


def own_runs(rows: pd.DataFrame, protocol: str = "reference") -> dict[str, Any]:
    """Return the points of the book's main experiment under one protocol, without options."""
    rows = rows[(rows["protocol"] == protocol) & (rows["option"] == "")]
    # Where a protocol prepares a dataset in its own way, that variant is meant.
    has_own = rows["dataset"].isin(rows.loc[rows["variant"] == protocol, "dataset"])
    rows = rows[(rows["variant"] == protocol) | ~has_own].rename(columns={"performance": "perf"})
    rows = rows.assign(perf_name=rows["task"].map({"classification": "acc", "regression": "mse"}))
    return {"title": f"our runs, {OWN_PROTOCOLS[protocol]}", **points(rows, OWN_METRICS)}


@cache
def frontier_data() -> dict[str, Any]:
    """Return the book's own runs under both protocols, then the authors' sweep."""
    rows = stored_rows("main")
    sources = {protocol: own_runs(rows, protocol) for protocol in OWN_PROTOCOLS} | {
        "authors": authors_sweep()
    }
    return {
        "sources": sources,
        "names": NAMES,
        "colors": COLORS,
        "titles": TITLES,
        "text_grid": TEXT_GRID,
    }
