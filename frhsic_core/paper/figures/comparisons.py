"""Draw comparisons: differences and verdicts of paired tests, variants by factor, and a summary along one setting."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

import pandas as pd

from frhsic_core.paper.experiments.shared.paired import corrected_half_width
from frhsic_core.paper.figures.plots import (
    DATASET_TITLES,
    OKABE_ITO,
    OPTION_WORDS,
    STYLES,
    dataset_style,
    dataset_title,
    panels,
    style_of,
)

if TYPE_CHECKING:
    from matplotlib.figure import Figure

VERDICT_COLORS = {"better": OKABE_ITO["bluish green"], "worse": OKABE_ITO["vermillion"], "not_significant": "#e8e8e8"}
# Used where only the signed-rank test, which assumes independent splits, finds a difference.
PALE_COLORS = {"better": "#b3e2d5", "worse": "#f6d3b8", "not_significant": "#e8e8e8"}
WORDS = {"better": "better", "worse": "worse", "not_significant": "no significant difference"}


# The segments of a bar: verdict of the corrected test, verdict of the signed-rank test, color and words.
SEGMENTS = (
    ("better", "better", VERDICT_COLORS["better"], "better"),
    ("not_significant", "better", PALE_COLORS["better"], "better by the signed-rank test only"),
    ("not_significant", "not_significant", VERDICT_COLORS["not_significant"], "not significant"),
    ("not_significant", "worse", PALE_COLORS["worse"], "worse by the signed-rank test only"),
    ("worse", "worse", VERDICT_COLORS["worse"], "worse"),
)


def draw_forest(
    tables: Mapping[str, pd.DataFrame],
    *,
    xlabel: str | Mapping[str, str],
    scale: Mapping[str, Mapping[str, float]] | None = None,
) -> Figure:
    """Draw mean paired differences with their 95 % intervals, a column of panels for each key of ``tables``.

    A panel has one dataset and one row for each rival. A full mark with a color is a significant difference
    (``verdict_corrected``); the others are hollow and gray. The half-width of an interval is the column ``half``, or
    else that of the corrected resampled t-test for a single comparison. ``scale`` has, for each key and dataset, what a
    difference is divided by. ``xlabel`` is one label, or one for each key.
    """
    from matplotlib.lines import Line2D

    first = next(iter(tables.values()))
    order = [name for name in DATASET_TITLES if name in set(first["dataset"])]
    rivals = in_order(first["rival"])
    figure, axes = panels(len(order) * len(tables), len(tables), height=0.19 * len(rivals) + 0.42, more=0.5,
                          sharex="col", sharey=True)  # fmt: skip
    for column, (title, table) in enumerate(tables.items()):
        for axis, dataset in zip(axes[:, column], order, strict=True):
            part = table[table["dataset"] == dataset].set_index("rival")
            unit = 1.0 if scale is None else scale[title][dataset]
            for line in part.itertuples():
                significant = line.verdict_corrected != "not_significant"
                color = VERDICT_COLORS[line.verdict_corrected] if significant else OKABE_ITO["gray"]
                half = line.half if "half" in part else corrected_half_width(line.sd, line.splits)
                axis.errorbar(
                    line.mean / unit, rivals.index(line.Index), xerr=half / unit, color=color, marker="o",
                    elinewidth=1.8 if significant else 1.0, markersize=5.5 if significant else 4.5,
                    markerfacecolor=color if significant else "white",
                )  # fmt: skip
            axis.axvline(0.0, color="black", linewidth=0.8, zorder=0)
            axis.set_title(f"{title}: {dataset_title(dataset)}", fontsize=9.5, loc="left", pad=3)
            axis.set_yticks(range(len(rivals)), [style_of(name).label for name in rivals], fontsize=8.5)
            axis.set_ylim(len(rivals) - 0.4, -0.6)
            axis.tick_params(axis="x", labelsize=8.5)
            axis.grid(axis="x", linewidth=0.4, alpha=0.5)
        axes[-1, column].set_xlabel(xlabel if isinstance(xlabel, str) else xlabel[title], fontsize=9)
    marks = [
        Line2D([], [], color=VERDICT_COLORS["better"], marker="o", label="FRHSIC significantly better"),
        Line2D([], [], color=OKABE_ITO["gray"], marker="o", markerfacecolor="white", label="not significant"),
        Line2D([], [], color=VERDICT_COLORS["worse"], marker="o", label="FRHSIC significantly worse"),
    ]
    figure.legend(handles=marks, loc="lower center", ncol=3, frameon=False, fontsize=9)
    figure.tight_layout(rect=(0, 0.32 / figure.get_figheight(), 1, 1))
    return figure


def in_order(names: Iterable[str]) -> list[str]:
    """Return the methods in the order of the registry, then the others in their own order."""
    found = list(dict.fromkeys(names))
    known = [name for name in STYLES if name in found]
    return [*known, *(name for name in found if name not in known)]


def verdict_segments(table: pd.DataFrame) -> list[int]:
    """Count a family of comparisons in the five classes of ``SEGMENTS``; the two tests must not contradict each other.

    Examples
    --------
    >>> cautious, plain = ["better", "not_significant"], ["better", "worse"]
    >>> verdict_segments(pd.DataFrame({"verdict_corrected": cautious, "verdict": plain}))
    [1, 0, 0, 1, 0]
    """
    counts = [
        int(((table["verdict_corrected"] == cautious) & (table["verdict"] == plain)).sum())
        for cautious, plain, _, _ in SEGMENTS
    ]
    if sum(counts) != len(table):
        raise ValueError("the corrected test finds a difference that the signed-rank test does not find.")
    return counts


def draw_counts(bars: Mapping[str, Mapping[str, pd.DataFrame]]) -> Figure:
    """Draw how many comparisons are better, not significant and worse: one stacked bar for each family.

    ``bars`` maps the title of a panel to its bars, and these map a label to a family of comparisons.
    """
    from matplotlib.patches import Patch

    longest = max(len(part) for part in bars.values())
    figure, axes = panels(len(bars), 2, height=0.34 * longest + 0.75, more=0.6, sharey=True)
    for axis, (title, part) in zip(axes.flat, bars.items(), strict=True):
        for y, table in enumerate(part.values()):
            left = 0
            for count, (_, _, color, _) in zip(verdict_segments(table), SEGMENTS, strict=True):
                axis.barh(y, count, left=left, color=color, edgecolor="white", linewidth=0.8, height=0.78)
                if count:
                    axis.text(left + count / 2, y, f"{count}", ha="center", va="center", fontsize=8.5)
                left += count
        axis.set_yticks(range(len(part)), list(part), fontsize=9)
        axis.set_ylim(longest - 0.4, -0.6)
        axis.set_title(title, fontsize=10.5)
        axis.set_xlabel("comparisons", fontsize=9)
        axis.tick_params(axis="x", labelsize=8.5)
        axis.tick_params(axis="y", length=0)
    key = [Patch(facecolor=color, label=words) for _, _, color, words in SEGMENTS]
    figure.legend(handles=key, loc="lower center", ncol=3, frameon=False, fontsize=8.5)
    figure.tight_layout(rect=(0, 0.55 / figure.get_figheight(), 1, 1))
    return figure


def draw_changes(tables: Mapping[str, pd.DataFrame], *, xlabel: str) -> Figure:
    """Draw changes against a base as dots with bars of one standard deviation, with one panel for each measure.

    A table has rows (factor, level) and the columns ``mean`` and ``sd``. All panels have the order of the first.
    """
    first = next(iter(tables.values()))
    keys = [(f"{factor} {level}".strip(), f"{factor}: {level}" if level else factor) for factor, level in first.index]
    labels = [OPTION_WORDS.get(option, shown) for option, shown in keys]
    figure, axes = panels(len(tables), len(tables), height=0.24 * len(first) + 1.1, sharey=True)
    for axis, (title, table) in zip(axes[0], tables.items(), strict=True):
        part = table.loc[first.index]
        place = range(len(part))
        color = OKABE_ITO["blue"]
        axis.errorbar(part["mean"], place, xerr=part["sd"], fmt="o", color=color, markersize=4, elinewidth=1)
        axis.axvline(0.0, color="black", linewidth=0.8)
        axis.set_title(title, fontsize=11)
        axis.set_xlabel(xlabel, fontsize=9)
        axis.grid(axis="y", linewidth=0.4, alpha=0.5)
    axes[0, 0].set_yticks(range(len(labels)), labels, fontsize=9)
    axes[0, 0].invert_yaxis()
    figure.tight_layout()
    return figure


def draw_levels(
    tables: Mapping[str, pd.DataFrame], *, ylabel: str, published: Mapping[str, str] | None = None
) -> Figure:
    """Draw a summary along the levels of a setting, with one panel for each setting and one line for each dataset.

    A panel's table has the columns ``dataset``, ``level`` (ordered categories), ``mean`` and ``sd``; bars are one sd.
    ``published`` names the level of each panel that has a gray band. A level "median" is no point of a numeric scale:
    no line leads to it.
    """
    figure, axes = panels(len(tables), 2, height=2.6, more=0.3, sharey=True)
    for axis, (title, table) in zip(axes.flat, tables.items(), strict=False):
        levels: Sequence[str] = list(table["level"].cat.categories)
        for k, (dataset, part) in enumerate(table.groupby("dataset")):
            name = str(dataset)
            place = [levels.index(level) + 0.08 * (k - 0.5) for level in part["level"]]
            style = dataset_style(name)
            axis.errorbar(
                place, part["mean"], yerr=part["sd"], color=style.color, marker=style.marker,
                markersize=5, linestyle="none", elinewidth=0.7,
                label=style.label,
            )  # fmt: skip
            scale = [x for x, level in zip(place, part["level"], strict=True) if level != "median"]
            axis.plot(scale, part["mean"][: len(scale)], color=style.color, linewidth=1.2)
        if published is not None:
            center = levels.index(published[title])
            axis.axvspan(center - 0.3, center + 0.3, color="gray", alpha=0.2, linewidth=0)
        axis.set_xticks(range(len(levels)), levels, fontsize=9, rotation=20 if max(map(len, levels)) > 5 else 0)
        axis.set_title(title, fontsize=11)
        axis.grid(axis="y", linewidth=0.4, alpha=0.5)
        axis.tick_params(labelsize=9)
    for axis in axes[:, 0]:
        axis.set_ylabel(ylabel, fontsize=9.5)
    axes[0, 0].legend(frameon=False, fontsize=9)
    figure.tight_layout()
    return figure
