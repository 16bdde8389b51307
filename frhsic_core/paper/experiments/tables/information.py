"""Tables of the experiment on mutual information, from stored rows."""

from __future__ import annotations

import numpy as np
import pandas as pd

from frhsic_core.paper.experiments.tables.main_table import PARETO_METHODS, pareto_table

__all__ = ["ESTIMATES", "above_zero", "at_matched_point", "information_gap", "rank_agreement"]

ESTIMATES = {
    "mi_reference": "as in the released code",
    "mi_strict": "KSG as published",
    "mi_standardised": "KSG, standardised components",
    "mi_output": "the head's output",
    "mi_probe": "the linear guess of S",
}


def above_zero(rows: pd.DataFrame, name: str) -> pd.Series:
    """Return an estimate less what it shows with S permuted: zero in expectation where Z and S are independent."""
    return (rows[name] - rows[f"{name}_zero"]).astype(float)


def at_matched_point(rows: pd.DataFrame, *, methods: tuple[str, ...] = PARETO_METHODS) -> pd.DataFrame:
    """Return the rows at each method's matched point (lowest GDP within one per cent of Unfair's performance).

    The point is chosen from the means over the same splits; Unfair's own rows are kept. A method without a matched
    point is missing.
    """
    points = pareto_table(rows, methods=methods, resamples=1)
    chosen = points[["dataset", "protocol", "method", "lam"]].dropna()
    return rows.merge(chosen, on=["dataset", "protocol", "method", "lam"])


def information_gap(
    rows: pd.DataFrame, name: str, *, method: str = "frhsic", other: str = "reg_gdp", level: float = 0.95
) -> pd.DataFrame:
    """Return the paired difference of an estimate between two methods at their matched points, by dataset.

    Mean over splits with its t interval, and in how many splits the first is lower.
    """
    from scipy.stats import t

    found = at_matched_point(rows)
    lines = []
    for dataset, part in found.groupby("dataset"):
        wide = part[part["method"].isin([method, other])].pivot(index="split", columns="method", values=name)
        if not {method, other} <= set(wide.columns):
            continue
        gap = (wide[method] - wide[other]).to_numpy(float)
        n = len(gap)
        half = float(t.ppf((1 + level) / 2, n - 1) * gap.std(ddof=1) / np.sqrt(n)) if n > 1 else np.nan
        lines.append(
            {
                "dataset": dataset,
                method: wide[method].mean(),
                other: wide[other].mean(),
                "gap": gap.mean(),
                "low": gap.mean() - half,
                "high": gap.mean() + half,
                "lower in": int((gap < 0).sum()),
                "splits": n,
            }
        )
    return pd.DataFrame(lines, columns=["dataset", method, other, "gap", "low", "high", "lower in", "splits"])


def rank_agreement(rows: pd.DataFrame, names: list[str], *, against: str = "nonlinear_r2") -> pd.DataFrame:
    """Return Spearman's rank correlation of each estimate with a probe over the sweep's models, for each dataset."""
    means = rows.groupby(["dataset", "method", "lam"])[[*names, against]].mean()
    lines = {
        dataset: {name: part[name].rank().corr(part[against].rank()) for name in names}
        for dataset, part in means.groupby(level="dataset")
    }
    return pd.DataFrame(lines).T
