"""Write and draw methods and datasets the same way everywhere.

Labels, titles, colors and markers come from :mod:`frhsic_core.registry`. Nothing here imports
torch.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from frhsic_core.registry import DATASETS, METHODS, OKABE_ITO, labels

if TYPE_CHECKING:
    import numpy as np
    import pandas as pd
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# A figure is as wide as the text column, so that its letters keep their size; the resolution allows
# enlarging it.
WIDTH = 7.4  # inches
DPI = 150
DATASET_TITLES = labels(DATASETS)


class Style(NamedTuple):
    """The label, the color and the marker of a method or a dataset."""

    label: str
    color: str
    marker: str


STYLES = {key: Style(row.label, row.color, row.marker) for key, row in (METHODS | DATASETS).items()}


def style_of(name: str) -> Style:
    """Return the style of a method or a dataset; one that is not registered is gray.

    Examples
    --------
    >>> style_of("reg_gdp").label, style_of("compas").label, style_of("my_method").label
    ('Reg-GDP', 'COMPAS', 'my method')
    """
    return STYLES.get(name, Style(name.replace("_", " "), OKABE_ITO["gray"], "h"))


def panels(
    count: int, columns: int, *, height: float, more: float = 0.0, **options: Any
) -> tuple[Figure, np.ndarray]:
    """Return a figure of ``count`` panels as wide as the text.

    ``height`` is that of a line of panels, and ``more`` that of what stands around them, in inches.
    """
    import matplotlib.pyplot as plt

    columns = min(columns, count)
    lines = math.ceil(count / columns)
    size = (WIDTH, height * lines + more)
    figure, axes = plt.subplots(lines, columns, figsize=size, squeeze=False, dpi=DPI, **options)
    for axis in axes.flat:
        axis.spines[["top", "right"]].set_visible(False)
    for axis in axes.flat[count:]:
        axis.set_axis_off()
    return figure, axes


VERDICT_COLORS = {
    "better": OKABE_ITO["bluish green"],
    "worse": OKABE_ITO["vermillion"],
    "not_significant": "#e8e8e8",
}
WORDS = {
    "better": "FRHSIC significantly better",
    "not_significant": "no significant difference",
    "worse": "FRHSIC significantly worse",
}


def _draw_tile(axis: Axes, line: Any, *, x: int, y: int) -> None:
    """Draw the verdict of one comparison and how many splits were won and lost."""
    from matplotlib.patches import Rectangle

    verdict = line.verdict_corrected
    tile = Rectangle((x - 0.5, y - 0.5), 1, 1, edgecolor="white", linewidth=1.5)
    tile.set_facecolor(VERDICT_COLORS[verdict])
    axis.add_patch(tile)
    weight = "normal" if verdict == "not_significant" else "bold"
    words = f"{line.wins}:{line.losses}"
    axis.text(x, y, words, ha="center", va="center", fontsize=8.5, weight=weight)


def draw_verdicts(families: Mapping[str, pd.DataFrame], *, title: str = "") -> Figure:
    """Draw families of paired comparisons as tiles: a panel for each family, a row for each rival.

    A column of a panel is a dataset. The color of a tile is ``verdict_corrected``; its text counts
    the splits on which the method is better and worse than the rival. The title of a panel ends
    with the counts of the verdicts.
    """
    from matplotlib.patches import Patch

    longest = max(table["rival"].nunique() for table in families.values())
    figure, axes = panels(
        len(families), 2, height=0.27 * longest + 1.1, more=0.65, sharex=True, sharey=True
    )
    for axis, (name, table) in zip(axes.flat, families.items(), strict=False):
        compared = set(table["rival"].str.partition(":")[0])
        rivals = [name for name in METHODS if name in compared]
        datasets = [key for key in DATASET_TITLES if key in set(table["dataset"])]
        for line in table.itertuples():
            rival, _, _ = line.rival.partition(":")
            _draw_tile(axis, line, x=datasets.index(line.dataset), y=rivals.index(rival))
        counts = table["verdict_corrected"].value_counts()
        better = int(counts.get("better", 0))
        worse = int(counts.get("worse", 0))
        rest = len(table) - better - worse
        title_of_panel = f"{name}\n{better} better, {worse} worse, {rest} not significant"
        axis.set_title(title_of_panel, fontsize=9)
        axis.set_xlim(-0.5, len(datasets) - 0.5)
        axis.set_ylim(len(rivals) - 0.5, -0.5)
        methods = [style_of(rival).label for rival in rivals]
        axis.set_yticks(range(len(rivals)), methods, fontsize=8.5)
        titles = [DATASET_TITLES[key] for key in datasets]
        axis.set_xticks(range(len(datasets)), titles, fontsize=8.5, rotation=25, ha="right")
        axis.tick_params(length=0)
        axis.spines[:].set_visible(False)
    figure.suptitle(title, fontsize=11, weight="bold")
    key = []
    for verdict, words in WORDS.items():
        key.append(Patch(facecolor=VERDICT_COLORS[verdict], label=words))
    figure.legend(handles=key, loc="lower center", ncol=3, frameon=False, fontsize=8.5)
    figure.tight_layout(rect=(0, 0.3 / figure.get_figheight(), 1, 1))
    return figure
