"""Draw the ideas of the paper: the two routes, HSIC from two Gram matrices, and the method."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

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
    if weights is None:
        weights = np.ones(len(values))
    kernel = np.exp(-0.5 * ((at[:, None] - values) / width) ** 2)
    return kernel @ weights


def draw_two_routes(
    z: np.ndarray, s: np.ndarray, *, values: tuple[float, ...], window: float
) -> Figure:
    """Draw both routes for one sample: Z at some values of S, and the joint against the product.

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
    conditional_axis, joint_axis, product_axis = axes
    everyone = _smoothed(z, grid, width=width)
    tallest = everyone.max()
    everyone = everyone / tallest
    for i, value in enumerate(values):
        weights = np.exp(-0.5 * ((s - value) / window) ** 2)
        here = _smoothed(z, grid, width=width, weights=weights / weights.sum() * len(z))
        here = 0.8 * here / tallest
        conditional_axis.fill_between(grid, i, i + here, color=OKABE_ITO["blue"], alpha=0.6, lw=0)
        conditional_axis.plot(grid, i + 0.8 * everyone, color="0.35", lw=1, ls="--")
    conditional_axis.set_yticks(range(len(values)), [f"{value:g}" for value in values])
    conditional_axis.set(
        xlabel="Z", ylabel="S", title="Conditional route:\nZ at each S, against all Z"
    )

    low, high = np.quantile(z, [0.005, 0.995])
    youngest, oldest = s.min(), s.max()
    box = [[low, high], [youngest, oldest]]
    joint, _, _ = np.histogram2d(z, s, bins=16, range=box, density=True)
    product = np.outer(joint.mean(1), joint.mean(0)) / joint.mean()
    options: dict[str, Any] = {
        "origin": "lower",
        "aspect": "auto",
        "extent": [low, high, youngest, oldest],
        "vmax": joint.max(),
    }
    joint_axis.imshow(joint.T, cmap="Blues", **options)
    joint_axis.set(title="Joint route:\nthe joint of (Z, S) …", xlabel="Z")
    product_axis.imshow(product.T, cmap="Blues", **options)
    product_axis.set(title="… against\nthe product", xlabel="Z")
    for axis in axes:
        axis.title.set_fontsize(9)
    return figure


def _centered_gram(x: np.ndarray, sigma: float | None) -> np.ndarray:
    """Return the centered matrix of a Gaussian kernel, or of equal values if there is no sigma."""
    gap = x[:, None] - x
    if sigma is None:
        gram = (gap == 0).astype(float)
    else:
        gram = np.exp(-0.5 * (gap / sigma) ** 2)
    return gram - gram.mean(0) - gram.mean(1)[:, None] + gram.mean()


def _draw_matrix(axis: Axes, matrix: np.ndarray, *, title: str, by: str, printed: bool) -> None:
    """Draw a matrix in colors and, if ``printed``, write its entries."""
    limit = np.abs(matrix).max()
    axis.imshow(matrix, cmap="RdBu_r", vmin=-limit, vmax=limit)
    axis.set(title=title, xticks=[], yticks=[], xlabel=by)
    if not printed:
        return
    for (i, j), value in np.ndenumerate(matrix):
        is_dark = abs(value) > 0.7 * limit
        color = "white" if is_dark else "black"
        words = f"{value:.4g}".replace("-", "−")
        axis.text(j, i, words, ha="center", va="center", fontsize=8, color=color)


def draw_gram_matrices(
    z: np.ndarray,
    s: np.ndarray,
    *,
    sigma_z: float | None = None,
    sigma_s: float | None = None,
    by: str = "people by S",
) -> Figure:
    """Draw the centered Gram matrices K̃ and L̃ of a sample, and the products of their entries.

    People are sorted by S. HSIC is the mean of the entries of the last picture.

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
    z = z[order]
    s = s[order]
    printed = len(z) <= 10
    panels, height = (3, 2.9) if printed else (4, 2.35)
    figure, axes = plt.subplots(1, panels, figsize=(WIDTH, height), dpi=DPI, layout="constrained")
    if not printed:
        axes[0].scatter(s, z, s=5, color=OKABE_ITO["blue"])
        axes[0].set(xlabel="S", ylabel="Z", title="the sample", box_aspect=1)
    of_z = _centered_gram(z, sigma_z)
    of_s = _centered_gram(s, sigma_s)
    both = of_z * of_s
    _draw_matrix(axes[-3], of_z, title="K̃: alike in Z", by=by, printed=printed)
    _draw_matrix(axes[-2], of_s, title="L̃: alike in S", by=by, printed=printed)
    _draw_matrix(axes[-1], both, title=f"K̃∘L̃, mean {both.mean():.4f}", by=by, printed=printed)
    for axis in axes:
        axis.title.set_fontsize(9)
    return figure


def _box(
    axis: Axes, x: float, y: float, text: str, *, color: str = "0.93", width: float = 1.5
) -> None:
    from matplotlib.patches import FancyBboxPatch

    style = "round,pad=0.02,rounding_size=0.12"
    corner = (x - width / 2, y - 0.32)
    axis.add_patch(FancyBboxPatch(corner, width, 0.64, boxstyle=style, fc=color, ec="0.3", lw=1))
    axis.text(x, y, text, ha="center", va="center", fontsize=9, color="black")


def _arrow(
    axis: Axes, start: tuple[float, float], end: tuple[float, float], *, color: str = "0.3"
) -> None:
    style = {"arrowstyle": "-|>", "color": color, "lw": 1.2}
    axis.annotate("", xy=end, xytext=start, arrowprops=style)


def draw_architecture() -> Figure:
    """Draw the method: encoder, representation, head, and the two terms of the objective."""
    import matplotlib.pyplot as plt

    figure, axis = plt.subplots(figsize=(WIDTH, 2.3), dpi=DPI, layout="constrained")
    penalty = OKABE_ITO["vermillion"]
    _box(axis, 0.9, 2.0, "person X")
    _box(axis, 3.0, 2.0, "encoder h")
    _box(axis, 5.1, 2.0, "Z = h(X)", color="#dceaf6")
    _box(axis, 7.2, 2.0, "head f")
    _box(axis, 9.3, 2.0, "prediction")
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
    if abs(value) < 0.005:
        return "0"
    return f"{value:+.2f}".replace("-", "−")


def draw_two_orders(
    panels: Mapping[str, Mapping[str, tuple[float, ...]]], *, columns: tuple[str, ...]
) -> Figure:
    """Draw tables of contrasts with two arrows.

    One leads to the largest of the row means, the other to the mean of the columns' largest.

    Parameters
    ----------
    panels : mapping
        Title of each panel, with a mapping from the name of a function to its contrasts, one for
        each column.
    columns : tuple of str
        Names of the columns, the values of S. They have equal weights.
    """
    import matplotlib.pyplot as plt

    most = max(len(rows) for rows in panels.values())
    size = (WIDTH, 0.55 * most + 1.9)
    figure, axes = plt.subplots(1, len(panels), figsize=size, dpi=DPI, layout="constrained")
    for axis, (title, rows) in zip(axes, panels.items(), strict=True):
        _draw_contrasts(axis, rows, columns)
        axis.set_title(title, fontsize=10)
        axis.set(xlim=(-1.5, len(columns) + 1.4), ylim=(-most - 1.35, 1.25))
        axis.axis("off")
    return figure


def _draw_contrasts(
    axis: Axes, rows: Mapping[str, tuple[float, ...]], columns: tuple[str, ...]
) -> None:
    """Draw one table of contrasts: right and then down, and down and then right."""
    joint = OKABE_ITO["vermillion"]
    conditional = OKABE_ITO["blue"]
    centered: dict[str, Any] = {"ha": "center", "va": "center"}
    # Where names and results stand; entry (i, j) is at (j, −i).
    left = -0.95
    top = 0.9
    right = len(columns) + 0.15
    bottom = -len(rows)
    table = np.array(list(rows.values()))
    means = table.mean(1)
    largest = table.max(0)

    axis.text(left, top, "function", fontsize=8.5, color="0.35", **centered)
    axis.text(right, top, "mean", fontsize=8.5, color=joint, **centered)
    axis.text(left, bottom, "largest", fontsize=8.5, color=conditional, **centered)
    for j, name in enumerate(columns):
        axis.text(j, top, name, fontsize=8.5, color="0.35", **centered)
        axis.text(j, bottom, _signed(largest[j]), color=conditional, **centered)
    for i, name in enumerate(rows):
        axis.text(left, -i, name, fontsize=9, **centered)
        axis.text(right, -i, _signed(means[i]), color=joint, **centered)
    for (i, j), value in np.ndenumerate(table):
        color = conditional if np.isclose(value, largest[j]) else None
        _draw_entry(axis, i, j, value, frame=color)

    _arrow(axis, (right, bottom + 0.65), (right, bottom - 0.62), color=joint)
    below = bottom - 0.95
    axis.text(right, below, _signed(means.max()), color=joint, size=14, **centered)
    axis.text(right - 0.55, below, "largest mean", ha="right", va="center", fontsize=9, color=joint)
    _arrow(axis, (right - 0.77, bottom), (right + 0.4, bottom), color=conditional)
    beside = right + 0.8
    axis.text(beside, bottom, _signed(largest.mean()), color=conditional, size=14, **centered)
    axis.text(beside, bottom + 0.62, "mean of\nlargest", fontsize=9, color=conditional, **centered)


def _draw_entry(axis: Axes, i: int, j: int, value: float, *, frame: str | None) -> None:
    """Draw an entry of a table of contrasts, with a frame of a color if one is given."""
    from matplotlib.patches import Rectangle

    border: dict[str, Any] = {"ec": "none"}
    if frame is not None:
        border = {"ec": frame, "lw": 1.6}
    axis.add_patch(Rectangle((j - 0.44, -i - 0.36), 0.88, 0.72, fc="0.94", **border))
    axis.text(j, -i, _signed(value), ha="center", va="center")
