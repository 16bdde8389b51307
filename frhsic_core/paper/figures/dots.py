"""Draw the comparison of remedies: the dependence that two sides leave, as dots joined by a line."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, NamedTuple

from frhsic_core.paper.figures.strip import MISSED, OURS

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_PEER = "#777777"
_STEP = 0.22  # the distance of the lines of one table, in units of the distance of two tables


class _Mark(NamedTuple):
    """How a comparison is drawn, and what the legend says about it."""

    color: str
    width: float
    words: str


_MARKS = {
    "lower": _Mark(OURS, 3.5, "ours significantly lower"),
    "level": _Mark("0.75", 1.0, "no significant difference"),
    "higher": _Mark(MISSED, 3.5, "best peer significantly lower"),
}


def _draw_half(axis: Axes, found: pd.DataFrame, names: list[str], limits: list[float]) -> None:
    """Draw a table as a group of lines, the smallest allowed loss on top."""
    middle = (len(limits) - 1) / 2
    for line in found.itertuples():
        height = names.index(line.dataset) + _STEP * (limits.index(line.limit) - middle)
        mark = _MARKS[line.verdict]
        axis.plot([line.ours, line.peer], [height, height], color=mark.color, linewidth=mark.width)
        axis.plot(line.ours, height, "o", color=OURS, markersize=4)
        axis.plot(line.peer, height, "D", color=_PEER, markersize=3.5)


def draw_dots(found: pd.DataFrame, titles: Mapping[str, str]) -> Figure:
    """Draw the verdicts on remedies, predictions without the attribute left and with it right.

    Parameters
    ----------
    found : DataFrame
        The verdicts: columns ``dataset``, ``needs_s``, ``limit``, ``ours``, ``peer`` and
        ``verdict`` (``lower``, ``level`` or ``higher``).
    titles : mapping
        What to call a dataset; one that is missing keeps its name.
    """
    import matplotlib.pyplot as plt
    from matplotlib.lines import Line2D

    names = list(dict.fromkeys(found["dataset"]))
    limits = sorted(set(found["limit"]))
    figure, axes = plt.subplots(
        1, 2, figsize=(7.2, 0.55 * len(names) + 1.4), sharey=True, sharex=True, layout="constrained"
    )
    for axis, needs_s in zip(axes, (False, True), strict=True):
        _draw_half(axis, found[found["needs_s"] == needs_s], names, limits)
        axis.set_xlabel("dependence on age (dCor) that is left")
        axis.grid(axis="x", color="0.9")
        axis.set_axisbelow(True)
        axis.spines[["top", "right", "left"]].set_visible(False)
        axis.tick_params(axis="y", length=0)
        for border in range(1, len(names)):
            axis.axhline(border - 0.5, color="0.93", linewidth=0.8)
    axes[0].set_title("S is not used to predict", fontsize=11)
    axes[1].set_title("S is used to predict", fontsize=11)
    widest = found[["ours", "peer"]].to_numpy().max()
    axes[0].set_xlim(0, 1.05 * widest)
    axes[0].set_ylim(len(names) - 0.4, -0.6)
    axes[0].set_yticks(range(len(names)), [titles.get(name, name) for name in names])
    handles = [
        Line2D([], [], marker="o", color=OURS, linestyle="", label="our remedies"),
        Line2D([], [], marker="D", color=_PEER, linestyle="", markersize=4, label="best peer"),
    ]
    for mark in _MARKS.values():
        handles.append(Line2D([], [], color=mark.color, linewidth=mark.width, label=mark.words))
    figure.legend(handles=handles, loc="outside lower center", ncols=3, frameon=False, fontsize=8.5)
    return figure
