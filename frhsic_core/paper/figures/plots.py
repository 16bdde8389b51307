"""Write and draw methods and datasets the same way everywhere.

Labels, titles, colors and markers come from :mod:`frhsic_core.registry`. Nothing here imports torch.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from frhsic_core.registry import DATASETS, METHODS, OKABE_ITO, titles

if TYPE_CHECKING:
    import numpy as np
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
