"""Tables of the comparison of remedies: what each family reaches at equal score, and paired tests."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from frhsic_core.paper.experiments.remedies import DATASETS, TEST_SHARE, TITLES
from frhsic_core.paper.experiments.shared.paired import corrected_t, holm
from frhsic_core.registry import OKABE_ITO, titles
from frhsic_core.remedies.comparison import REMEDIES

if TYPE_CHECKING:
    from matplotlib.figure import Figure

#: How far below the best unadjusted score a remedy may lie.
TOLERANCE = 0.03
#: Other tolerances, which show how little the conclusion depends on this one.
TOLERANCES = (0.01, 0.02, 0.03, 0.05, 0.1)
LABELS = {key: label for key, (label, _) in REMEDIES.items()} | {
    "fairlearn": "fairlearn's correlation remover",
    "leace_bins": "LEACE on bins of S",
    "maxcorr": "network with maxcorr",
    "fairret": "network with fairret",
    "concept_erasure": "LEACE (concept-erasure)",
}
RIVALS = {True: ("fairlearn",), False: ("concept_erasure", "maxcorr", "fairret")}


def title(dataset: str) -> str:
    """Return the title of a table of this study."""
    return TITLES.get(dataset) or titles((dataset,))[dataset]


def complete(rows: pd.DataFrame) -> pd.DataFrame:
    """Return the rows of the splits that every dataset and group has."""
    cells = rows.groupby("split")[["dataset", "group"]].apply(lambda part: len(part.drop_duplicates()))
    return rows[rows["split"].isin(cells.index[cells == cells.max()])]


def means(rows: pd.DataFrame) -> pd.DataFrame:
    """Return means over splits for each dataset, group, method, learner and strength."""
    keys = ["dataset", "task", "group", "method", "learner", "strength", "needs_s"]
    columns = ["score", "dcor", "gdp", "linear_r2", "nonlinear_r2", "cpu_seconds"]
    return rows.groupby(keys, sort=False)[columns].mean().reset_index()


def chosen(rows: pd.DataFrame, *, tolerance: float = TOLERANCE) -> pd.DataFrame:
    """Return, for each split, what a family reaches when its method and strength are chosen on the other splits.

    ``rows`` are those of one dataset and family, and of the method ``"none"``, which is always a choice and sets the
    score to keep. The choice is the least dependent of those whose mean score on the other splits is high enough.
    """
    indexed = rows.set_index(["method", "learner", "strength", "split"], drop=False)
    by_split = {name: indexed[name].unstack("split") for name in ("score", "dcor")}
    lines = []
    for split in sorted(rows["split"].unique()):
        others = {name: values.drop(columns=split).mean(axis=1) for name, values in by_split.items()}
        limit = others["score"].loc["none"].max() - tolerance
        lines.append(indexed.loc[(*others["dcor"][others["score"] >= limit].idxmin(), split)])
    return pd.DataFrame(lines)


def families(rows: pd.DataFrame, *, needs_s: bool) -> dict[str, pd.DataFrame]:
    """Return the rows of each family of one dataset, with those of ``"none"``: ours first, then each rival."""
    plain = rows[rows["method"] == "none"]
    allowed = rows[(rows["needs_s"] == needs_s) & (rows["method"] != "none")]
    found = {"ours": allowed[allowed["group"] == "ours"]}
    found |= {group: allowed[allowed["group"] == group] for group in RIVALS[needs_s]}
    return {name: pd.concat([part, plain]) for name, part in found.items()}


def at_equal_score(rows: pd.DataFrame, *, tolerance: float = TOLERANCE) -> pd.DataFrame:
    """Return the dependence of each family at equal score and the corrected test of ours against each rival.

    One row for each dataset, need of S and family: mean score and distance correlation over the splits, the difference
    to ours (positive: ours depends less), its p-value by the corrected resampled t-test, and that after Holm's method
    over all rows.
    """
    lines = []
    for dataset in [name for name in DATASETS if (rows["dataset"] == name).any()]:
        for needs_s in (False, True):
            parts = families(rows[rows["dataset"] == dataset], needs_s=needs_s)
            picked = {name: chosen(part, tolerance=tolerance) for name, part in parts.items()}
            ours = picked["ours"]["dcor"].to_numpy()
            for name, part in picked.items():
                difference = part["dcor"].to_numpy() - ours
                p = 1.0 if name == "ours" else corrected_t(difference, test_share=TEST_SHARE)[1]
                usual = part.groupby(["method", "learner", "strength"]).size().idxmax()
                lines.append(
                    {
                        "dataset": dataset,
                        "needs_s": needs_s,
                        "family": name,
                        "choice": f"{LABELS[usual[0]]}, {usual[1]}, {usual[2]:g}",
                        "score": part["score"].mean(),
                        "dcor": part["dcor"].mean(),
                        "gdp": part["gdp"].mean(),
                        "cpu_seconds": part["cpu_seconds"].mean(),
                        "difference": difference.mean(),
                        "p": p,
                        "splits": len(part),
                    }
                )
    table = pd.DataFrame(lines)
    rivals = table["family"] != "ours"
    table.loc[rivals, "p_holm"] = holm(table.loc[rivals, "p"].to_numpy())
    return table


def verdicts(table: pd.DataFrame) -> pd.Series:
    """Return for each comparison whether ours depends ``"less"``, ``"more"``, or does not differ significantly."""
    significant = table["p_holm"] < 0.05
    return pd.Series(
        np.where(significant, np.where(table["difference"] > 0, "less", "more"), "no difference"), index=table.index
    )[table["family"] != "ours"]


def by_tolerance(rows: pd.DataFrame, tolerances: tuple[float, ...] = TOLERANCES) -> pd.DataFrame:
    """Count the verdicts for several tolerances of the score, so that no conclusion hangs on one of them.

    ``smallest_p`` is the smallest p-value, before Holm's correction, of the comparisons in which a rival depends less.
    """
    lines = []
    for tolerance in tolerances:
        table = at_equal_score(rows, tolerance=tolerance)
        counts = verdicts(table).value_counts()
        ahead = table[(table["family"] != "ours") & (table["difference"] < 0)]
        lines.append(
            {
                "tolerance": tolerance,
                **{word: int(counts.get(word, 0)) for word in ("less", "no difference", "more")},
                "smallest_p": ahead["p"].min() if len(ahead) else np.nan,
            }
        )
    return pd.DataFrame(lines)


# The label, color and marker of each family in a figure.
FAMILIES = {
    "ours": ("this library", "blue", "o"),
    "fairlearn": ("fairlearn", "orange", "v"),
    "concept_erasure": ("concept-erasure (LEACE)", "bluish green", "s"),
    "maxcorr": ("maxcorr", "reddish purple", "D"),
    "fairret": ("fairret", "vermillion", "^"),
}


def draw_equal(table: pd.DataFrame, rows: pd.DataFrame) -> Figure:
    """Draw :func:`at_equal_score`: for each table the dependence that each family leaves, without S and with S.

    A filled marker of another package means that ours depends significantly less.
    """
    import matplotlib.pyplot as plt

    plain = means(rows[rows["method"] == "none"])
    names = [name for name in DATASETS if (table["dataset"] == name).any()][::-1]
    verdict = verdicts(table)
    figure, axes = plt.subplots(1, 2, figsize=(7.4, 3.4), sharex=True, sharey=True, layout="constrained")
    for axis, needs_s in zip(axes, (False, True), strict=True):
        own = table[table["needs_s"] == needs_s]
        for place, name in enumerate(names):
            part = plain[plain["dataset"] == name]
            before = float(part.loc[part["score"].idxmax(), "dcor"])
            ours = float(own[(own["dataset"] == name) & (own["family"] == "ours")]["dcor"].iloc[0])
            axis.plot([ours, before], [place, place], color="0.85", linewidth=7, zorder=0, solid_capstyle="butt")
            axis.plot(before, place, "|", color="black", markersize=16, markeredgewidth=2)
        for number, (family, (_, color, marker)) in enumerate(FAMILIES.items()):
            part = own[own["family"] == family]
            shift = 0.0 if family == "ours" else 0.11 * (number - 2.5)
            for index, line in part.iterrows():
                filled = family == "ours" or verdict[index] == "less"
                axis.plot(line["dcor"], names.index(line["dataset"]) + shift, marker, color=OKABE_ITO[color],
                          markersize=9 if family == "ours" else 6.5, zorder=3 if family == "ours" else 2,
                          markerfacecolor=OKABE_ITO[color] if filled else "white")  # fmt: skip
        axis.set_title("S is used to predict" if needs_s else "S is not used to predict", fontsize=11)
        axis.set_xlabel("dependence on age at equal quality (dCor)", fontsize=9)
        axis.set_yticks(range(len(names)), [title(name) for name in names])
        axis.set_ylim(-0.6, len(names) - 0.4)
    axes[0].set_xlim(left=0)
    handles = [axes[0].plot([], [], "|", color="black", markersize=14, markeredgewidth=2)[0]]
    labels = ["no remedy"]
    for label, color, marker in FAMILIES.values():
        handles.append(axes[0].plot([], [], marker, color=OKABE_ITO[color], markersize=7)[0])
        labels.append(label)
    figure.legend(handles, labels, loc="outside lower center", ncols=6, fontsize=8, frameon=False, columnspacing=1.0)
    return figure


#: The groups of methods that the figure shows, with one color each.
DRAWN = {
    "without S: scores projected": (("project",), "blue", "o"),
    "without S: X erased (LEACE, kernel)": (("leace", "leace_spline", "kernel_eraser", "leace_bins"), "sky blue", "s"),
    "without S: penalized networks": (("maxcorr", "fairret"), "reddish purple", "D"),
    "with S: scores adjusted": (("adjust_mean", "adjust_rank"), "bluish green", "^"),
    "with S: correlation removed from X": (("correlation_remover", "residual_spline", "fairlearn"), "orange", "v"),
    "no remedy": (("none",), "black", "*"),
}


def draw(rows: pd.DataFrame, attainable: pd.DataFrame | None = None) -> Figure:
    """Draw score against dependence, one panel for each table: the mean of every setting, best settings filled.

    The gray line is the attainable frontier, where it is stored. Up and to the left is better.
    """
    import matplotlib.pyplot as plt

    from frhsic_core.remedies.comparison import non_dominated

    names = [name for name in DATASETS if (rows["dataset"] == name).any()]
    figure, axes = plt.subplots(2, 2, figsize=(7.4, 6.6), layout="constrained")
    for axis, name in zip(axes.flat, names, strict=False):
        part = means(rows[rows["dataset"] == name])
        if attainable is not None:
            curve = attainable[attainable["dataset"] == name].groupby("strength")[["score", "dcor"]].mean()
            axis.plot(curve["dcor"], curve["score"], color="0.8", linewidth=7, zorder=0, solid_capstyle="round",
                      label="attainable frontier (estimate)")  # fmt: skip
        for label, (methods, color, marker) in DRAWN.items():
            own = part[part["method"].isin(methods)]
            best = own[non_dominated(own["score"], own["dcor"])].sort_values("dcor")
            axis.plot(own["dcor"], own["score"], marker, color=OKABE_ITO[color], markersize=4, alpha=0.3)
            axis.plot(best["dcor"], best["score"], f"{marker}-", color=OKABE_ITO[color], markersize=6, linewidth=1.2,
                      label=label)  # fmt: skip
        plain = part[part["method"] == "none"]
        top = float(max(plain["score"].max(), part["score"].max()))
        axis.set_ylim(top - (0.14 if part["task"].iloc[0] == "classification" else 0.25), top + 0.02)
        axis.set_xlim(left=-0.01)
        axis.set_title(title(name), fontsize=11)
        axis.set_xlabel("dependence on age (dCor)", fontsize=9)
        axis.set_ylabel("AUC" if part["task"].iloc[0] == "classification" else "R²", fontsize=9)
    handles, labels = axes.flat[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=2, fontsize=8, frameon=False)
    return figure
