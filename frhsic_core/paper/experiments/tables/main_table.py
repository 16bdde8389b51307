"""The tables of the paper from stored rows; torch is not needed."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import pandas as pd

from frhsic_core.paper.experiments.tables.pareto import Frontiers
from frhsic_core.paper.runs.reference import paper_table

__all__ = [
    "DEPENDENCE",
    "MAIN_METHODS",
    "PARETO_METHODS",
    "areas_by_measure",
    "beside_paper",
    "comparisons",
    "extremes",
    "pareto_table",
    "short_table",
]

# The methods of tab:real_data (in its order) and of tab:pareto_summary, which has one more.
MAIN_METHODS = ("frhsic", "frem", "reg_gdp", "adv", "mmd_binned", "laftr")
PARETO_METHODS = (*MAIN_METHODS, "dcor")
# Every measure of dependence a sweep stores, with its name in tables.
DEPENDENCE = {
    "gdp_reference": "GDP, as in the paper",
    "gdp_uniform": "GDP, probabilities",
    "gdp_sample": "GDP, as defined",
    "gdp_density": "GDP, Jiang et al.",
    "linear_r2": "linear probe R²",
    "nonlinear_r2": "nonlinear probe R²",
    "distance_correlation": "dCor², bias-corrected",
    "normalized_hsic_0.5": "HSIC, half the median",
    "normalized_hsic_1": "HSIC, median",
    "normalized_hsic_2": "HSIC, twice the median",
}
GROUP = ["dataset", "variant", "protocol"]


def comparisons(rows: pd.DataFrame) -> Iterator[tuple[tuple[str, str, str], pd.DataFrame]]:
    """Give the rows of each dataset, variant and protocol that can be compared: Unfair and at least one method."""
    for key, part in rows.groupby(GROUP, sort=True):
        if (part["method"] == "unfair").any() and (part["method"] != "unfair").any():
            yield (str(key[0]), str(key[1]), str(key[2])), part


def pareto_table(
    rows: pd.DataFrame,
    *,
    methods: tuple[str, ...] | None = PARETO_METHODS,
    dependence: str = "gdp_reference",
    lams: Iterable[float] | None = None,
    splits: Iterable[int] | None = None,
    unequal_grids: bool = False,
    resamples: int = 1000,
) -> pd.DataFrame:
    """Return matched points and nAUP for every comparison in ``rows``; see ``Frontiers.summary`` for the columns.

    Parameters
    ----------
    rows : pandas.DataFrame
        From a store.
    methods : tuple of str
        Those compared, and so those the utility is normalised over.
    dependence : str
        A key of ``DEPENDENCE``.
    lams, splits : iterable, optional
        Use these λ (and Unfair) and these splits only.
    unequal_grids, resamples
        As in :class:`~frhsic_core.paper.experiments.tables.pareto.Frontiers`.
    """
    if lams is not None:
        rows = rows[(rows["method"] == "unfair") | rows["lam"].isin(list(lams))]
    if splits is not None:
        rows = rows[rows["split"].isin(list(splits))]
    found = []
    for key, part in comparisons(rows):
        part = part.assign(name=part["method"].where(part["option"] == "", part["method"] + ":" + part["option"]))
        frontiers = Frontiers.from_rows(
            part, methods=methods, dependence=dependence, unequal_grids=unequal_grids, name="name"
        )
        summary = frontiers.summary(resamples=resamples)
        for column, value in zip(reversed(GROUP), reversed(key), strict=True):
            summary.insert(0, column, value)
        found.append(summary)
    return pd.concat(found, ignore_index=True) if found else pd.DataFrame(columns=[*GROUP, "method", "naup"])


def beside_paper(table: pd.DataFrame) -> pd.DataFrame:
    """Return the table with the paper's ``paper_performance``, ``paper_dependence`` and ``paper_naup`` in each line.

    dCor stands in the paper's Pareto summary only, which prints no nAUP. A variant of Crime whose attribute the paper's
    code did not use has no printed value.
    """
    printed = paper_table("tab:real_data").combine_first(paper_table("tab:pareto_summary").drop(columns="naup"))
    printed = printed.add_prefix("paper_").reset_index()
    joined = table.merge(printed, on=["dataset", "method"], how="left")
    other = (joined["dataset"] == "crime") & (joined["variant"] != "reference")
    joined.loc[other, [name for name in joined.columns if name.startswith("paper_")]] = float("nan")
    return joined


def areas_by_measure(rows: pd.DataFrame, *, methods: tuple[str, ...] = PARETO_METHODS) -> pd.DataFrame:
    """Return nAUP for every measure of dependence: a line for each comparison and method, a column for each measure."""
    columns = []
    for measure in DEPENDENCE:
        table = pareto_table(rows, methods=methods, dependence=measure, resamples=1)
        columns.append(table[table["method"] != "unfair"].set_index([*GROUP, "method"])["naup"].rename(measure))
    return pd.concat(columns, axis=1)


def extremes(rows: pd.DataFrame, *, near: float = 0.005, escape: float = 3.0) -> pd.DataFrame:
    """Return, for each comparison, method and λ, which share of models collapsed and which escaped their kernel.

    A classifier has *collapsed* when its accuracy is within ``near`` of the majority rate, a regression when its error
    is at least (1 − ``near``) of the variance of y. Z has *escaped* when its median distance is more than ``escape`` or
    less than 1/``escape`` bandwidths at the end (NaN for methods without a kernel on Z).
    """
    regression = rows["task"] == "regression"
    collapsed = (rows["performance"] - rows["constant"]).abs() <= near
    collapsed = collapsed.where(~regression, rows["performance"] >= (1 - near) * rows["constant"])
    outside = ((rows["ratio"] > escape) | (rows["ratio"] < 1 / escape)).where(rows["ratio"].notna())
    shares = rows.assign(collapsed=collapsed.astype(float), escaped=outside.astype(float))
    return shares.groupby([*GROUP, "method", "lam"])[["collapsed", "escaped"]].mean()


def short_table(rows: pd.DataFrame) -> str:
    """Return a few plain lines for the end of a run: matched GDP, probe R² and nAUP of what can be compared."""
    if rows.empty:
        return "no rows yet"
    lines = [
        f"{'dataset':12s}{'variant':11s}{'protocol':11s}{'method':12s}{'perf':>7s}{'GDP':>8s}{'nAUP':>7s}{'splits':>7s}"
    ]
    for key, part in comparisons(rows[rows["option"] == ""]):
        try:
            summary = Frontiers.from_rows(part, unequal_grids=True).summary(resamples=20)
        except ValueError as error:
            lines.append(f"{key[0]:12s}{key[1]:11s}{key[2]:11s}{error}")
            continue
        for line in summary.itertuples():
            area = "" if pd.isna(line.naup) else f"{line.naup:.3f}"
            lines.append(
                f"{key[0]:12s}{key[1]:11s}{key[2]:11s}{line.method:12s}{line.performance:7.4f}{line.dependence:8.4f}"
                f"{area:>7s}{line.splits:7d}"
            )
    return "\n".join(lines)
