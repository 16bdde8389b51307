"""Write and draw methods and datasets the same way everywhere, and draw performance against dependence.

Labels, titles, colors and markers come from :mod:`frhsic_core.registry`. Nothing here imports torch.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pandas as pd

from frhsic_core.registry import DATASETS, DEPENDENCE, METHODS, OKABE_ITO, titles

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# A figure is as wide as the text column, so that its letters keep their size; the resolution allows enlarging it.
WIDTH = 7.4  # inches
DPI = 150
DATASET_TITLES = titles()


class Style(NamedTuple):
    """The label, the color and the marker of a method."""

    label: str
    color: str
    marker: str


UNKNOWN = Style("", OKABE_ITO["gray"], "h")


def dataset_style(name: str) -> Style:
    """Return the style of a dataset; one that is not registered is gray.

    Examples
    --------
    >>> dataset_style("compas").label, dataset_style("my_own").label
    ('COMPAS', 'my own')
    """
    row = DATASETS.get(name)
    if row is None:
        return UNKNOWN._replace(label=name.replace("_", " "))
    return Style(row.title, row.color, row.marker)


def dataset_title(name: str) -> str:
    """Return the title of a dataset.

    Examples
    --------
    >>> dataset_title("acs_income"), dataset_title("my_own")
    ('ACS Income', 'my own')
    """
    return dataset_style(name).label


STYLES = {key: Style(row.label, row.color, row.marker) for key, row in METHODS.items()}


# Labels of options whose stored key does not read well.
OPTION_WORDS = {
    "estimator biased": "biased",
    "estimator unbiased": "unbiased",
    "kernel imq": "inverse multiquadric kernel",
    "kernel laplacian": "Laplacian kernel",
    "normalised, both": "normalized",
    "scale none": "Z not standardized",
    "scale whiten": "Z whitened",
    "where output": "head term alone",
    "where representation": "no head term",
}


def style_of(method: str) -> Style:
    """Return the style of a method, or of a variant ``"method:option"``, whose label names the option.

    Examples
    --------
    >>> style_of("frhsic:estimator unbiased").label, style_of("reg_gdp:points 10").label, style_of("my_method").label
    ('FRHSIC, unbiased', 'Reg-GDP, points 10', 'my method')
    """
    name, _, option = method.partition(":")
    style = STYLES.get(name, UNKNOWN._replace(label=name.replace("_", " ")))
    words = OPTION_WORDS.get(option, option.replace("_", " "))
    return style._replace(label=f"{style.label}, {words}") if option else style


# How much accuracy (or R² of a regression) below Unfair a frontier shows: three points.
SHOWN_LOSS = 0.03


def draw_frontiers(
    rows: pd.DataFrame, *, dependence: str = "gdp_reference", xlabel: str | None = None, method: str = "frhsic"
) -> Figure:
    """Draw performance against dependence along λ, with one panel for each dataset.

    Points are means over splits. ``method`` has its color and bars of one standard deviation; the others are gray and
    named below the panel. The axis ends three points below Unfair (of accuracy, or of R² in a regression, where the
    rows need ``constant``, the variance of y); an arrow marks a curve that goes on below. ``rows`` belong to one
    protocol. Up and to the left is better: the axis of a regression's error points down. ``xlabel`` is the measure's
    label by default.
    """
    xlabel = DEPENDENCE.get(dependence, dependence) if xlabel is None else xlabel
    shown = [name for name in DATASET_TITLES if (rows["dataset"] == name).any()]
    if not shown:
        raise ValueError("rows contain no dataset of the registry: there is nothing to draw.")
    figure, axes = panels(len(shown), 2, height=3.1)
    for axis, name in zip(axes.flat, shown, strict=False):
        _frontier(axis, rows[rows["dataset"] == name], dependence, method)
        axis.set_title(dataset_title(name), fontsize=11)
        axis.set_xlabel(xlabel, fontsize=9.5)
    figure.tight_layout()
    return figure


def _frontier(axis: Axes, rows: pd.DataFrame, dependence: str, chosen: str) -> None:
    from matplotlib.patches import Rectangle

    regression = "task" in rows and (rows["task"] == "regression").all()
    groups = rows.groupby(["method", "lam"])[["performance", dependence]]
    means = groups.mean()
    spreads = groups.std(ddof=0).fillna(0.0)
    star = means.loc["unfair"].iloc[0]
    sign = -1.0 if regression else 1.0  # worse is down: an error grows, an accuracy falls
    depth = SHOWN_LOSS * (float(rows["constant"].mean()) if regression and "constant" in rows else 1.0)
    cut = star["performance"] - sign * depth
    ends = []
    artists: list[Any] = []
    for name in (m for m in STYLES if m in means.index.get_level_values(0) and m != "unfair"):
        style, mean = style_of(name), means.loc[name].sort_index()
        path = pd.concat([star.to_frame().T, mean])
        inside = sign * (path["performance"] - cut) >= 0
        color = style.color if name == chosen else "#9a9a9a"
        order = 4 if name == chosen else 2
        drawn: list[Any] = axis.plot(path[dependence], path["performance"], color=color, zorder=order,
                          linewidth=1.8 if name == chosen else 0.9)  # fmt: skip
        if name == chosen:
            sd = spreads.loc[name].sort_index()
            bars = axis.errorbar(mean[dependence], mean["performance"], xerr=sd[dependence], yerr=sd["performance"],
                                 linestyle="none", color=color, elinewidth=0.6, alpha=0.55, zorder=order)  # fmt: skip
            drawn += bars.get_children()
        drawn += axis.plot(mean[dependence], mean["performance"], linestyle="none", marker=style.marker, color=color,
                           markersize=5 if name == chosen else 3.5, zorder=order, label=style.label)  # fmt: skip
        artists += drawn
        ends.append((*_last_seen(path[dependence].to_numpy(), path["performance"].to_numpy(), inside, cut), name))
    axis.plot(star[dependence], star["performance"], marker="*", color="black", markersize=11, zorder=5, label="Unfair")
    seen = means.loc[sign * (means["performance"] - cut) >= 0, dependence]
    right = 1.05 * max(float(star[dependence]), float(seen.max()))
    near = min(float(seen.min()), min(x for x, _, _, _ in ends))
    left = -0.03 * right if near < 0.5 * right else 0.9 * near
    axis.set_xlim(left, right)
    top = sign * max(sign * value for value in means["performance"])
    high = top + sign * 0.12 * depth
    low = cut - sign * 0.9 * abs(high - cut)  # the strip below the cut holds the names
    axis.set_ylim(low, high)
    window = Rectangle((left, min(cut, high)), right - left, abs(high - cut), transform=axis.transData)
    for artist in artists:
        artist.set_clip_path(window)
    axis.axhline(cut, color="black", linewidth=0.6, linestyle=(0, (1, 2)))
    _name_ends(axis, ends, cut=cut, low=low, chosen=chosen)
    ticks = [tick for tick in axis.get_yticks() if sign * (tick - cut) >= 0 and sign * (high - tick) >= 0]
    axis.set_yticks(ticks)
    axis.set_ylabel("mean squared error" if regression else "accuracy", fontsize=9.5)
    axis.tick_params(labelsize=9)


def _last_seen(x: np.ndarray, y: np.ndarray, inside: pd.Series, cut: float) -> tuple[float, float, bool]:
    """Return where a curve first crosses the cut, or its point of least dependence, and whether it crosses."""
    outside = np.flatnonzero(~inside.to_numpy())
    if not len(outside):
        least = int(np.argmin(x))
        return float(x[least]), float(y[least]), False
    i = int(outside[0])
    part = (cut - y[i - 1]) / (y[i] - y[i - 1])
    return float(x[i - 1] + part * (x[i] - x[i - 1])), cut, True


def _name_ends(axis: Axes, ends: list[tuple[float, float, bool, str]], *, cut: float, low: float, chosen: str) -> None:
    """Write the names of the curves below the cut, side by side, each joined to the end of its curve."""
    left, right = axis.get_xlim()
    gap = 0.062 * (right - left)
    ends = sorted(ends)
    place = np.array([x for x, _, _, _ in ends])
    for i in range(1, len(place)):
        place[i] = max(place[i], place[i - 1] + gap)
    place -= max(0.0, place[-1] - (right - 0.5 * gap))
    for i in range(len(place) - 2, -1, -1):
        place[i] = min(place[i], place[i + 1] - gap)
    start = cut + 0.22 * (low - cut)
    for (x, y, leaves, name), at in zip(ends, place, strict=True):
        color = style_of(name).color if name == chosen else "#555555"
        arrow = {"arrowstyle": "-|>" if leaves else "-", "color": color, "linewidth": 0.7, "shrinkA": 0, "shrinkB": 0,
                 "linestyle": "-" if leaves else ":"}  # fmt: skip
        axis.annotate("", xy=(at, start), xytext=(x, y), arrowprops=arrow, zorder=1)
        axis.text(at, start + 0.03 * (low - cut), style_of(name).label, rotation=90, ha="center", va="top",
                  fontsize=8, color=color, fontweight="bold" if name == chosen else "normal")  # fmt: skip


def draw_areas(tables: Mapping[str, pd.DataFrame]) -> Figure:
    """Draw nAUP with its bootstrap interval, with one panel for each dataset.

    The first entry of ``tables`` has full marks and the next one hollow marks, so that two protocols, or our values and
    the published ones, can be compared. The tables are those of ``pareto_table``; without intervals only marks appear.
    """
    from matplotlib.lines import Line2D

    names = [name for name in DATASET_TITLES if any((table["dataset"] == name).any() for table in tables.values())]
    figure, axes = panels(len(names), 3, height=2.6, sharey=True)
    methods = [m for m in STYLES if m != "unfair" and any((t["method"] == m).any() for t in tables.values())]
    for axis, name in zip(axes.flat, names, strict=False):
        for k, (title, table) in enumerate(tables.items()):
            for i, method in enumerate(methods):
                line = table[(table["dataset"] == name) & (table["method"] == method)]
                if line.empty or pd.isna(line["naup"].iloc[0]):
                    continue
                style, value = style_of(method), float(line["naup"].iloc[0])
                y = i + 0.22 * (k - (len(tables) - 1) / 2)
                if "naup_low" in line:
                    axis.plot(line[["naup_low", "naup_high"]].iloc[0], [y, y], color=style.color, linewidth=1.6)
                axis.plot(
                    value, y, marker=style.marker, color=style.color if k == 0 else "white", markersize=6,
                    markeredgecolor="black" if k == 0 else style.color, markeredgewidth=0.6 if k == 0 else 1.4,
                    linestyle="none", label=title if i == 0 else None,
                )  # fmt: skip
        axis.set_title(dataset_title(name), fontsize=11)
        axis.set_xlabel("nAUP", fontsize=9.5)
        axis.set_xlim(-0.04, 1.04)
        axis.set_xticks([0.0, 0.25, 0.5, 0.75, 1.0], ["0", "¼", "½", "¾", "1"])
        axis.tick_params(labelsize=9)
        axis.grid(axis="x", linewidth=0.4, alpha=0.5)
    axes[0, 0].set_yticks(range(len(methods)), [style_of(m).label for m in methods], fontsize=9.5)
    axes[0, 0].set_ylim(len(methods) - 0.4, -0.6)
    gray: dict[str, Any] = {"marker": "o", "linestyle": "none", "markeredgecolor": "#777777"}
    marks = [Line2D([], [], color="#777777" if k == 0 else "white", **gray) for k in range(len(tables))]
    several = len(tables) > 1
    _legend(figure, axes, len(names), marks if several else [], list(tables) if several else [])
    return figure


def frontier_alt_text(rows: pd.DataFrame) -> str:
    """Return a text for a figure of frontiers: the two ends of each method's sweep, for each dataset.

    Examples
    --------
    >>> rows = pd.DataFrame({"dataset": ["adult"] * 2, "method": ["frem"] * 2, "lam": [1.0, 10.0],
    ...                      "performance": [0.85, 0.84], "gdp_reference": [0.7, 0.2]})
    >>> frontier_alt_text(rows)
    'Adult: FREM from (0.700, 0.850) at λ = 1 to (0.200, 0.840) at λ = 10.'
    """
    sentences = []
    for name in [name for name in DATASET_TITLES if (rows["dataset"] == name).any()]:
        means = rows[rows["dataset"] == name].groupby(["method", "lam"])[["gdp_reference", "performance"]].mean()
        parts = []
        for method in [m for m in STYLES if m in means.index.get_level_values(0)]:
            sweep = means.loc[method].sort_index()
            points = [f"({a:.3f}, {b:.3f})" for a, b in sweep.to_numpy()[[0, -1]]]
            if len(sweep) == 1:
                parts.append(f"{style_of(method).label} at {points[0]}")
            else:
                ends = [f"{point} at λ = {lam:g}" for point, lam in zip(points, sweep.index[[0, -1]], strict=True)]
                parts.append(f"{style_of(method).label} from {ends[0]} to {ends[1]}")
        sentences.append(f"{DATASET_TITLES[name]}: {'; '.join(parts)}.")
    return " ".join(sentences)


def panels(count: int, columns: int, *, height: float, more: float = 0.0, **options: Any) -> tuple[Figure, np.ndarray]:
    """Return a figure of ``count`` panels as wide as the text; ``height`` is that of a line of panels, in inches."""
    import matplotlib.pyplot as plt

    columns = min(columns, count)
    lines = -(-count // columns)
    size = (WIDTH, height * lines + more)
    figure, axes = plt.subplots(lines, columns, figsize=size, squeeze=False, dpi=DPI, **options)
    for axis in axes.flat:
        axis.spines[["top", "right"]].set_visible(False)
    for axis in axes.flat[count:]:
        axis.set_axis_off()
    return figure, axes


def _legend(figure: Figure, axes: np.ndarray, used: int, handles: list[Any], labels: list[str]) -> None:
    """Put the legend into the first unused panel, or below all panels."""
    spare = list(axes.flat[used:])
    if spare and handles:
        spare[0].legend(handles, labels, loc="center", frameon=False, fontsize=10)
    figure.tight_layout()
    if handles and not spare:
        rows = -(-len(labels) // 4)
        figure.legend(handles, labels, loc="lower center", ncol=min(4, len(labels)), frameon=False, fontsize=10)
        figure.tight_layout(rect=(0, (0.1 + 0.25 * rows) / figure.get_figheight(), 1, 1))
