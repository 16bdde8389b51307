"""What the frontier explorer draws: the authors' stored sweep, or this book's own runs when they are stored."""

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
METRICS = {"gdp": "GDP, as the authors' code computes it", "mi_sk": "mutual information (scikit-learn)",
           "mi": "mutual information (authors' estimate)"}  # fmt: skip


def _number(text: str) -> float | None:
    try:
        value = float(text)
    except ValueError:
        return None
    return value if value == value else None


@cache
def frontier_data() -> dict[str, Any] | None:
    """Return points by dataset and method, or None where no sweep is stored."""
    path = BOOK / "claims" / "reference" / "sweep.csv"
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
    return {"datasets": datasets, "metrics": METRICS, "names": NAMES, "titles": TITLES, "text_grid": TEXT_GRID,
            "source": "the authors' stored sweep"}  # fmt: skip
