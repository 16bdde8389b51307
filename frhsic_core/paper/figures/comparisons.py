"""Pictures of comparisons: verdicts of paired tests, variants by factor and measure, a summary along one setting."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from frhsic_core.paper.figures.styles import (
    DATASET_TITLES,
    DPI,
    OKABE_ITO,
    OPTION_WORDS,
    STYLES,
    WIDTH,
    dataset_title,
    style_of,
)

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["draw_factors", "draw_levels", "draw_verdicts", "verdict_words"]

VERDICT_COLOURS = {"ahead": OKABE_ITO["bluish green"], "behind": OKABE_ITO["vermillion"], "undecided": "#e8e8e8"}
# Where only the signed-rank test, which takes the splits for independent, decides.
PALE_COLOURS = {"ahead": "#b3e2d5", "behind": "#f6d3b8", "undecided": "#e8e8e8"}
SIDES = {"ahead": "Ahead of", "behind": "Behind"}
DATASET_COLOURS = {"compas": OKABE_ITO["vermillion"], "acs_income": OKABE_ITO["blue"]}
DATASET_MARKERS = {"compas": "o", "acs_income": "s"}


def draw_verdicts(tables: Mapping[str, pd.DataFrame], *, columns: int = 2, digits: int = 2) -> Figure:
    """Draw families of :func:`frhsic_core.paper.experiments.tables.families.family`, titled by their keys.

    A cell holds the median difference. Full colour and a frame: decided by the corrected resampled t-test after Holm;
    pale: by the signed-rank test alone; grey: by neither.
    """
    import matplotlib.pyplot as plt
    from matplotlib.patches import Patch, Rectangle

    columns = min(columns, len(tables))
    lines = -(-len(tables) // columns)
    first = next(iter(tables.values()))
    order = [name for name in DATASET_TITLES if name in set(first["dataset"])]
    known = [name for name in STYLES if name in set(first["rival"])]
    rivals = [*known, *(name for name in dict.fromkeys(first["rival"]) if name not in known)]
    size = (WIDTH, (0.36 * len(order) + 1.35) * lines)
    figure, axes = plt.subplots(lines, columns, figsize=size, squeeze=False, dpi=DPI)
    for axis, (title, table) in zip(axes.flat, tables.items(), strict=False):
        for line in table.itertuples():
            x, y = rivals.index(line.rival), order.index(line.dataset)
            cautious = line.verdict_corrected != "undecided"
            colour = VERDICT_COLOURS[line.verdict_corrected] if cautious else PALE_COLOURS[line.verdict]
            axis.add_patch(Rectangle((x, y), 1, 1, facecolor=colour, edgecolor="white", linewidth=1.5))
            if cautious:
                axis.add_patch(Rectangle((x + 0.04, y + 0.05), 0.92, 0.9, fill=False, edgecolor="black", linewidth=0.8))
            number = f"{line.median:+.{digits}f}".replace("-", "−")
            axis.text(x + 0.5, y + 0.5, number, ha="center", va="center", fontsize=8)
        axis.set_xlim(0, len(rivals))
        axis.set_ylim(len(order), 0)
        labels = [style_of(name).label for name in rivals]
        axis.set_xticks([i + 0.5 for i in range(len(rivals))], labels, rotation=35, ha="right", fontsize=9)
        axis.set_yticks([i + 0.5 for i in range(len(order))], [dataset_title(name) for name in order], fontsize=9)
        axis.tick_params(length=0)
        for side in axis.spines.values():
            side.set_visible(False)
        axis.set_title(title, fontsize=11)
    for axis in axes.flat[len(tables) :]:
        axis.set_axis_off()
    key = [
        *(
            Patch(facecolor=VERDICT_COLOURS[v], edgecolor="black", label=f"{v}, corrected test")
            for v in ("ahead", "behind")
        ),
        *(Patch(facecolor=PALE_COLOURS[v], label=f"{v}, signed-rank test only") for v in ("ahead", "behind")),
        Patch(facecolor=PALE_COLOURS["undecided"], label="undecided by both"),
    ]
    figure.tight_layout()
    if len(tables) < axes.size:
        axes.flat[len(tables)].legend(handles=key, loc="center", frameon=False, fontsize=9.5)
    else:
        figure.legend(handles=key, loc="lower center", ncol=2, frameon=False, fontsize=9)
        figure.tight_layout(rect=(0, 0.75 / figure.get_figheight(), 1, 1))
    return figure


def verdict_words(tables: Mapping[str, pd.DataFrame]) -> str:
    """Return the picture in words: for each panel, which rivals the method is ahead of and behind, by dataset.

    What the corrected test decides comes first, what the signed-rank test alone decides after it.
    """

    def named(chosen: pd.DataFrame) -> str:
        parts = [
            f"{', '.join(style_of(r).label for r in part['rival'])} on {dataset_title(str(name))}"
            for name, part in chosen.groupby("dataset", sort=False)
        ]
        return "; ".join(parts) or "none"

    sentences = []
    for title, table in tables.items():
        alone = table[table["verdict_corrected"] == "undecided"]
        for test, part, column in (
            ("corrected test", table, "verdict_corrected"),
            ("signed-rank test only", alone, "verdict"),
        ):
            sides = [f"{side} {named(part[part[column] == verdict])}." for verdict, side in SIDES.items()]
            sentences.append(f"{title}, {test}. {' '.join(sides)}")
    return "\n".join(sentences)


def draw_factors(table: pd.DataFrame, *, base: tuple[str, str] | None = None) -> Figure:
    """Draw nAUP of every level as shaded numbers, a panel for each dataset; the line of the base is framed.

    ``table`` has lines (factor, level) and columns (dataset, measure).
    """
    import matplotlib.pyplot as plt
    from matplotlib.patches import Rectangle

    datasets = list(dict.fromkeys(table.columns.get_level_values(0)))
    keys = [(f"{factor} {level}".strip(), f"{factor}: {level}" if level else factor) for factor, level in table.index]
    labels = [OPTION_WORDS.get(option, shown) for option, shown in keys]
    figure, axes = plt.subplots(
        1, len(datasets), figsize=(WIDTH, 0.29 * len(table) + 1.5), squeeze=False, sharey=True, dpi=DPI
    )
    for axis, dataset in zip(axes[0], datasets, strict=True):
        part = table[dataset]
        values = part.to_numpy(float)
        axis.imshow(np.ma.masked_invalid(values), cmap="cividis", vmin=0.0, vmax=1.0, aspect="auto")
        for (i, j), value in np.ndenumerate(values):
            text = "–" if np.isnan(value) else f"{value:.2f}"
            colour = "white" if value < 0.55 else "black"
            axis.text(j, i, text, ha="center", va="center", fontsize=8.5, color=colour)
        if base in set(table.index):
            place = list(table.index).index(base)
            axis.add_patch(Rectangle((-0.5, place - 0.5), values.shape[1], 1, fill=False, edgecolor="red", linewidth=2))
        axis.set_xticks(range(values.shape[1]), list(part.columns), rotation=35, ha="right", fontsize=9)
        axis.set_yticks(range(len(labels)), labels, fontsize=9)
        axis.set_title(dataset_title(dataset), fontsize=11)
        axis.tick_params(length=0)
    figure.tight_layout()
    return figure


def draw_levels(panels: Mapping[str, pd.DataFrame], *, ylabel: str, columns: int = 2) -> Figure:
    """Draw a summary along the levels of one setting, a panel for each setting, a line for each dataset.

    A panel's table has columns ``dataset``, ``level`` (its categories in order), ``mean`` and ``sd``; bars are one sd.
    """
    import matplotlib.pyplot as plt

    columns = min(columns, len(panels))
    lines = -(-len(panels) // columns)
    size = (WIDTH, 2.6 * lines + 0.3)
    figure, axes = plt.subplots(lines, columns, figsize=size, squeeze=False, sharey=True, dpi=DPI)
    for axis, (title, table) in zip(axes.flat, panels.items(), strict=False):
        levels: Sequence[str] = list(table["level"].cat.categories)
        for k, (dataset, part) in enumerate(table.groupby("dataset")):
            name = str(dataset)
            place = [levels.index(level) + 0.08 * (k - 0.5) for level in part["level"]]
            axis.errorbar(
                place, part["mean"], yerr=part["sd"], color=DATASET_COLOURS.get(name, "black"),
                marker=DATASET_MARKERS.get(name, "D"), markersize=5, linewidth=1.2, elinewidth=0.7,
                label=dataset_title(name),
            )  # fmt: skip
        axis.set_xticks(range(len(levels)), levels, fontsize=9, rotation=20 if max(map(len, levels)) > 5 else 0)
        axis.set_title(title, fontsize=11)
        axis.spines[["top", "right"]].set_visible(False)
        axis.grid(axis="y", linewidth=0.4, alpha=0.5)
        axis.tick_params(labelsize=9)
    for axis in axes[:, 0]:
        axis.set_ylabel(ylabel, fontsize=9.5)
    for axis in axes.flat[len(panels) :]:
        axis.set_axis_off()
    axes[0, 0].legend(frameon=False, fontsize=9)
    figure.tight_layout()
    return figure
