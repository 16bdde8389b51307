"""Draw the ideas of the paper: the two routes, HSIC as a comparison of Gram matrices, and the method."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from frhsic_core.paper.figures.plots import DPI, WIDTH
from frhsic_core.registry import OKABE_ITO

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


def _smoothed(
    values: np.ndarray, at: np.ndarray, *, width: float, weights: np.ndarray | None = None
) -> np.ndarray:
    """Return a Gaussian kernel density estimate, up to a factor."""
    kernel = np.exp(-0.5 * ((at[:, None] - values) / width) ** 2)
    return kernel @ (np.ones(len(values)) if weights is None else weights)


def draw_two_routes(
    z: np.ndarray, s: np.ndarray, *, values: tuple[float, ...], window: float
) -> Figure:
    """Draw both routes for one sample: the distributions of Z at some values of S, and the joint against the product.

    Parameters
    ----------
    z, s : ndarray
        ``(n,)`` each.
    values : tuple of float
        The values of S at which the conditional distributions are drawn.
    window : float
        Standard deviation of the smoothing window in S.
    """
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(
        1, 3, figsize=(WIDTH, 2.9), dpi=DPI, layout="constrained", width_ratios=(1.25, 1, 1)
    )
    grid = np.linspace(z.min(), z.max(), 120)
    width = 0.25 * z.std()
    everyone = _smoothed(z, grid, width=width)
    everyone = everyone / everyone.max()
    for i, value in enumerate(values):
        weights = np.exp(-0.5 * ((s - value) / window) ** 2)
        here = _smoothed(z, grid, width=width, weights=weights / weights.sum() * len(z))
        here = 0.8 * here / _smoothed(z, grid, width=width).max()
        axes[0].fill_between(grid, i, i + here, color=OKABE_ITO["blue"], alpha=0.6, lw=0)
        axes[0].plot(grid, i + 0.8 * everyone, color="0.35", lw=1, ls="--")
    axes[0].set_yticks(range(len(values)), [f"{value:g}" for value in values])
    axes[0].set(xlabel="Z", ylabel="S", title="Conditional route:\nZ at each S, against all Z")
    low, high = np.quantile(z, [0.005, 0.995])
    box = [[low, high], [s.min(), s.max()]]
    joint = np.histogram2d(z, s, bins=16, range=box, density=True)[0]
    product = np.outer(joint.mean(1), joint.mean(0)) / joint.mean()
    for axis, density, title in (
        (axes[1], joint, "Joint route:\nthe joint of (Z, S) …"),
        (axes[2], product, "… against\nthe product"),
    ):
        axis.imshow(
            density.T,
            origin="lower",
            aspect="auto",
            cmap="Blues",
            extent=[low, high, *box[1]],
            vmax=joint.max(),
        )
        axis.set(title=title, xlabel="Z")
    for axis in axes:
        axis.title.set_fontsize(9)
    return figure


def draw_gram_matrices(
    z: np.ndarray,
    s: np.ndarray,
    *,
    sigma_z: float | None = None,
    sigma_s: float | None = None,
    by: str = "people by S",
) -> Figure:
    """Draw the centered Gram matrices K̃ and L̃ of a sample, sorted by S, and the products of their entries.

    HSIC is the mean of the entries of the last picture.

    Parameters
    ----------
    z, s : ndarray
        ``(n,)`` each. Up to ten people have their entries printed; for more the sample is drawn
        beside the matrices.
    sigma_z, sigma_s : float, optional
        Bandwidths of Gaussian kernels. By default the kernel is one for equal values and zero
        otherwise.
    by : str
        Label of the axes of the matrices.
    """
    import matplotlib.pyplot as plt

    order = np.argsort(s, kind="stable")
    z, s = z[order], s[order]
    printed = len(z) <= 10
    panels = 3 if printed else 4
    figure, axes = plt.subplots(
        1, panels, figsize=(WIDTH, 2.9 if printed else 2.35), dpi=DPI, layout="constrained"
    )
    if not printed:
        axes[0].scatter(s, z, s=5, color=OKABE_ITO["blue"])
        axes[0].set(xlabel="S", ylabel="Z", title="the sample", box_aspect=1)
    centered = []
    for x, sigma in ((z, sigma_z), (s, sigma_s)):
        gap = x[:, None] - x
        gram = (gap == 0).astype(float) if sigma is None else np.exp(-0.5 * (gap / sigma) ** 2)
        centered.append(gram - gram.mean(0) - gram.mean(1)[:, None] + gram.mean())
    both = centered[0] * centered[1]
    names = ("K̃: alike in Z", "L̃: alike in S", f"K̃∘L̃, mean {both.mean():.4f}")
    for axis, matrix, title in zip(axes[-3:], (*centered, both), names, strict=True):
        limit = np.abs(matrix).max()
        axis.imshow(matrix, cmap="RdBu_r", vmin=-limit, vmax=limit)
        axis.set(title=title, xticks=[], yticks=[], xlabel=by)
        if printed:
            for (i, j), value in np.ndenumerate(matrix):
                color = "white" if abs(value) > 0.7 * limit else "black"
                axis.text(
                    j,
                    i,
                    f"{value:.4g}".replace("-", "−"),
                    ha="center",
                    va="center",
                    fontsize=8,
                    color=color,
                )
    for axis in axes:
        axis.title.set_fontsize(9)
    return figure


def _box(
    axis: Axes, x: float, y: float, text: str, *, color: str = "0.93", width: float = 1.5
) -> None:
    from matplotlib.patches import FancyBboxPatch

    style = "round,pad=0.02,rounding_size=0.12"
    axis.add_patch(
        FancyBboxPatch(
            (x - width / 2, y - 0.32), width, 0.64, boxstyle=style, fc=color, ec="0.3", lw=1
        )
    )
    axis.text(x, y, text, ha="center", va="center", fontsize=9, color="black")


def _arrow(
    axis: Axes, start: tuple[float, float], end: tuple[float, float], *, color: str = "0.3"
) -> None:
    axis.annotate(
        "", xy=end, xytext=start, arrowprops={"arrowstyle": "-|>", "color": color, "lw": 1.2}
    )


def draw_architecture() -> Figure:
    """Draw the method: encoder, representation, head, and the two terms of the objective."""
    import matplotlib.pyplot as plt

    figure, axis = plt.subplots(figsize=(WIDTH, 2.3), dpi=DPI, layout="constrained")
    penalty = OKABE_ITO["vermillion"]
    for x, text in (
        (0.9, "person X"),
        (3.0, "encoder h"),
        (5.1, "Z = h(X)"),
        (7.2, "head f"),
        (9.3, "prediction"),
    ):
        _box(axis, x, 2.0, text, color="#dceaf6" if x == 5.1 else "0.93")
    for x in (0.9, 3.0, 5.1, 7.2):
        _arrow(axis, (x + 0.77, 2.0), (x + 1.33, 2.0))
    _box(axis, 9.3, 0.6, "loss, with Y")
    _box(axis, 5.1, 0.6, "λ · HSIC(Z, S)", color="#f9dccb", width=1.9)
    _box(axis, 2.2, 0.6, "attribute S (age)", width=1.9)
    _arrow(axis, (9.3, 1.66), (9.3, 0.95))
    _arrow(axis, (5.1, 1.66), (5.1, 0.95), color=penalty)
    _arrow(axis, (3.17, 0.6), (4.12, 0.6), color=penalty)
    axis.text(7.2, 0.6, "+", ha="center", va="center", fontsize=14)
    axis.set(xlim=(0, 10.2), ylim=(0.15, 2.45))
    axis.axis("off")
    return figure


def _signed(value: float) -> str:
    """Return a number with two decimals and a typographic sign; zero has no sign."""
    return "0" if abs(value) < 0.005 else f"{value:+.2f}".replace("-", "−")


def draw_two_orders(
    panels: Mapping[str, Mapping[str, tuple[float, ...]]], *, columns: tuple[str, ...]
) -> Figure:
    """Draw tables of contrasts with two arrows: the largest of the row means, and the mean of the columns' largest.

    Parameters
    ----------
    panels : mapping
        Title of each panel, with a mapping from the name of a function to its contrasts, one for
        each column.
    columns : tuple of str
        Names of the columns, the values of S. They have equal weights.
    """
    import matplotlib.pyplot as plt

    joint, conditional = OKABE_ITO["vermillion"], OKABE_ITO["blue"]
    last = len(columns)
    most = max(len(rows) for rows in panels.values())
    figure, axes = plt.subplots(
        1, len(panels), figsize=(WIDTH, 0.55 * most + 1.9), dpi=DPI, layout="constrained"
    )
    for axis, (title, rows) in zip(axes, panels.items(), strict=True):
        table = np.array(list(rows.values()))
        means, largest = table.mean(1), table.max(0)
        bottom = -len(rows)
        axis.text(-0.95, 0.9, "function", ha="center", va="center", fontsize=8.5, color="0.35")
        for j, name in enumerate(columns):
            axis.text(j, 0.9, name, ha="center", va="center", fontsize=8.5, color="0.35")
            axis.text(j, bottom, _signed(largest[j]), ha="center", va="center", color=conditional)
            for i, value in enumerate(table[:, j]):
                is_largest = np.isclose(value, largest[j])
                frame = {"ec": conditional, "lw": 1.6} if is_largest else {"ec": "none"}
                axis.add_patch(plt.Rectangle((j - 0.44, -i - 0.36), 0.88, 0.72, fc="0.94", **frame))
                axis.text(j, -i, _signed(value), ha="center", va="center")
        for i, name in enumerate(rows):
            axis.text(-0.95, -i, name, ha="center", va="center", fontsize=9)
            axis.text(last + 0.15, -i, _signed(means[i]), ha="center", va="center", color=joint)
        axis.text(last + 0.15, 0.9, "mean", ha="center", va="center", fontsize=8.5, color=joint)
        axis.text(
            -0.95, bottom, "largest", ha="center", va="center", fontsize=8.5, color=conditional
        )
        # The two ends: right and then down, down and then right.
        _arrow(axis, (last + 0.15, 1 - len(rows) - 0.35), (last + 0.15, bottom - 0.62), color=joint)
        _arrow(axis, (last - 0.62, bottom), (last + 0.55, bottom), color=conditional)
        axis.text(
            last + 0.15,
            bottom - 0.95,
            _signed(means.max()),
            ha="center",
            va="center",
            color=joint,
            size=14,
        )
        axis.text(
            last + 0.95,
            bottom,
            _signed(largest.mean()),
            ha="center",
            va="center",
            color=conditional,
            size=14,
        )
        axis.text(
            last - 0.4,
            bottom - 0.95,
            "largest mean",
            ha="right",
            va="center",
            fontsize=9,
            color=joint,
        )
        axis.text(
            last + 0.95,
            bottom + 0.62,
            "mean of\nlargest",
            ha="center",
            va="center",
            fontsize=9,
            color=conditional,
        )
        axis.set_title(title, fontsize=10)
        axis.set(xlim=(-1.5, last + 1.4), ylim=(-most - 1.35, 1.25))
        axis.axis("off")
    return figure
