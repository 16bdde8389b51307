"""Define how figures write and draw methods and datasets.

Labels, titles, colors and markers come from :mod:`frhsic_core.registry`.
"""

from __future__ import annotations

from typing import NamedTuple

from frhsic_core.registry import DATASETS, METHODS, OKABE_ITO, titles

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
    "scale none": "Z not standardised",
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
