"""A picture of paired comparisons: datasets down, rivals across, a panel for each measure of dependence."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import pandas as pd

from frhsic_core.plots import DATASET_TITLES, OKABE_ITO, STYLES, style_of

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["draw_verdicts", "verdict_words"]

COLOURS = {"ahead": OKABE_ITO["bluish green"], "behind": OKABE_ITO["vermillion"], "undecided": "#e8e8e8"}


def draw_verdicts(tables: Mapping[str, pd.DataFrame], *, columns: int = 3, digits: int = 2) -> Figure:
    """Draw families of :func:`frhsic_core.experiments.paired_tables.family`, titled by their keys.

    A cell holds the median difference; its colour is the verdict after Holm. A frame marks the verdicts that the
    corrected resampled t-test shares.
    """
    import matplotlib.pyplot as plt
    from matplotlib.patches import Rectangle

    columns = min(columns, len(tables))
    lines = -(-len(tables) // columns)
    first = next(iter(tables.values()))
    order = [name for name in DATASET_TITLES if name in set(first["dataset"])]
    known = [name for name in STYLES if name in set(first["rival"])]
    rivals = [*known, *(name for name in dict.fromkeys(first["rival"]) if name not in known)]
    size = (3.5 * columns, (0.36 * len(order) + 1.25) * lines)
    figure, axes = plt.subplots(lines, columns, figsize=size, squeeze=False)
    for axis, (title, table) in zip(axes.flat, tables.items(), strict=False):
        for line in table.itertuples():
            x, y = rivals.index(line.rival), order.index(line.dataset)
            axis.add_patch(Rectangle((x, y), 1, 1, facecolor=COLOURS[line.verdict], edgecolor="white", linewidth=1.5))
            if line.verdict == line.verdict_corrected != "undecided":
                axis.add_patch(Rectangle((x + 0.06, y + 0.08), 0.88, 0.84, fill=False, edgecolor="black"))
            axis.text(
                x + 0.5, y + 0.5, f"{line.median:+.{digits}f}".replace("-", "−"), ha="center", va="center", fontsize=7,
                color="white" if line.verdict == "behind" else "black",
            )  # fmt: skip
        axis.set_xlim(0, len(rivals))
        axis.set_ylim(len(order), 0)
        labels = [style_of(name).label for name in rivals]
        axis.set_xticks([i + 0.5 for i in range(len(rivals))], labels, rotation=35, ha="right", fontsize=8)
        axis.set_yticks([i + 0.5 for i in range(len(order))], [DATASET_TITLES[name] for name in order], fontsize=8)
        axis.tick_params(length=0)
        for side in axis.spines.values():
            side.set_visible(False)
        axis.set_title(title, fontsize=10)
    for axis in axes.flat[len(tables) :]:
        axis.set_axis_off()
    figure.tight_layout()
    return figure


def verdict_words(tables: Mapping[str, pd.DataFrame]) -> str:
    """Return the picture in words: for each panel, which rivals the method is ahead of and behind, by dataset."""
    sentences = []
    for title, table in tables.items():
        parts = []
        for verdict in ("ahead", "behind"):
            chosen = table[table["verdict"] == verdict]
            named = [
                f"{', '.join(style_of(r).label for r in part['rival'])} on {DATASET_TITLES.get(str(name), name)}"
                for name, part in chosen.groupby("dataset", sort=False)
            ]
            of = "ahead of " if verdict == "ahead" else "behind "
            parts.append(of + ("; ".join(named) or ("none" if verdict == "ahead" else "nobody")))
        sentences.append(f"{title}: {'. '.join(parts)}.")
    return "\n".join(sentences)
