"""What the frontier explorer draws: this book's own runs, when they are stored, and the authors' stored sweep."""

from __future__ import annotations

import csv
from functools import cache
from pathlib import Path
from typing import Any

BOOK = Path(__file__).resolve().parents[1]
TEXT_GRID = [0.1, 1.0, 10.0, 100.0, 500.0]  # the λ of the paper's Section 6
NAMES = {"frhsic": "FRHSIC", "frem": "FREM", "reg_gdp": "Reg-GDP", "adv": "Adversary", "mmd_binned": "MMD, binned",
         "laftr": "LAFTR", "dcor": "distance correlation"}  # fmt: skip
TITLES = {"adult": "Adult", "acs_income": "ACS Income", "meps": "MEPS", "crime": "Crime", "compas": "COMPAS"}
AUTHORS_METRICS = {"gdp": "GDP, as the authors' code computes it", "mi_sk": "mutual information (scikit-learn)",
                   "mi": "mutual information (authors' estimate)"}  # fmt: skip
OWN_METRICS = {"gdp_reference": "GDP, as the authors' code computes it", "gdp_sample": "GDP of the predictions",
               "nonlinear_r2": "R² of a nonlinear probe of S", "linear_r2": "R² of a linear probe of S",
               "normalized_hsic_1": "normalised HSIC", "distance_correlation": "distance correlation"}  # fmt: skip


def _number(text: str) -> float | None:
    try:
        value = float(text)
    except ValueError:
        return None
    return value if value == value else None


def authors_sweep(book: Path = BOOK) -> dict[str, Any] | None:
    """Return the authors' points by dataset and method, or None where they are not stored."""
    path = book / "claims" / "reference" / "sweep.csv"
    if not path.is_file():
        return None
    datasets: dict[str, Any] = {}
    with path.open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            part = datasets.setdefault(
                row["dataset"],
                {"perf_name": row["perf_name"], "higher": row["perf_name"] != "mse", "unfair": None, "methods": {}},
            )
            point = {"lam": float(row["lambda"]), "perf": float(row["perf_mean"]), "gdp": float(row["gdp_mean"]),
                     "mi": _number(row["mi"]), "mi_sk": _number(row["mi_sk"])}  # fmt: skip
            if row["method"] == "unfair":
                part["unfair"] = point
            else:
                part["methods"].setdefault(row["method"], []).append(point)
    return {"title": "the authors' stored sweep", "datasets": datasets, "metrics": AUTHORS_METRICS}


def summarise(frame: Any) -> dict[str, Any]:
    """Return the means over splits of a table of runs, in the same form; methods without options only."""
    frame = frame[(frame["protocol"] == "reference") & (frame["option"] == "")]
    metrics = {key: text for key, text in OWN_METRICS.items() if key in frame.columns}
    datasets: dict[str, Any] = {}
    for name, part in frame.groupby("dataset", sort=False):
        variant = "reference" if (part["variant"] == "reference").any() else part["variant"].iloc[0]
        part = part[part["variant"] == variant]
        higher = part["task"].iloc[0] == "classification"
        means = part.groupby(["method", "lam"], sort=True)[["performance", *metrics]].mean()
        found: dict[str, Any] = {
            "perf_name": "acc" if higher else "mse",
            "higher": bool(higher),
            "unfair": None,
            "methods": {},
        }
        for (method, lam), row in means.iterrows():
            values = {key: None if row[key] != row[key] else round(float(row[key]), 5) for key in metrics}
            point = {"lam": float(lam), "perf": round(float(row["performance"]), 5), **values}
            if method == "unfair":
                found["unfair"] = point
            else:
                found["methods"].setdefault(str(method), []).append(point)
        if found["unfair"] and found["methods"]:
            datasets[str(name)] = found
    return {"title": "this book's runs", "datasets": datasets, "metrics": metrics}


def own_runs(book: Path = BOOK) -> dict[str, Any] | None:
    """Return this book's points, or None where they are not stored or cannot be read."""
    path = book / "results" / "main.parquet"
    if not path.is_file():
        return None
    try:
        import pandas as pd

        frame = pd.read_parquet(path)
    except ImportError:  # pyarrow is an extra
        return None
    data = summarise(frame)
    return data if data["datasets"] else None


def _in_order(data: dict[str, Any] | None) -> dict[str, Any] | None:
    """Put datasets and methods in the order of the paper's tables, FRHSIC first."""
    if data is None:
        return None

    def ordered(parts: dict[str, Any], names: dict[str, str]) -> dict[str, Any]:
        places = list(names)
        return dict(sorted(parts.items(), key=lambda item: places.index(item[0]) if item[0] in places else len(places)))

    datasets = {
        name: {**part, "methods": ordered(part["methods"], NAMES)}
        for name, part in ordered(data["datasets"], TITLES).items()
    }
    return {**data, "datasets": datasets}


@cache
def frontier_data() -> dict[str, Any] | None:
    """Return every source that is stored, the book's own first, or None."""
    both = {"own": _in_order(own_runs()), "authors": _in_order(authors_sweep())}
    sources = {key: data for key, data in both.items() if data is not None}
    return {"sources": sources, "names": NAMES, "titles": TITLES, "text_grid": TEXT_GRID} if sources else None
