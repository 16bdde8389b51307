"""How methods and datasets are written and drawn, the same in every figure and table.

Every method has one colour (of the palette of Okabe and Ito, which colour-blind readers can tell apart) and one marker.
"""

from __future__ import annotations

from typing import NamedTuple

__all__ = [
    "DATASET_TITLES",
    "DPI",
    "OKABE_ITO",
    "OPTION_WORDS",
    "STYLES",
    "WIDTH",
    "Style",
    "dataset_title",
    "style_of",
]

# As wide as a page's column, so that letters are read in the size they are written in; fine enough to be enlarged.
WIDTH = 7.4  # inches
DPI = 150
OKABE_ITO = {
    "black": "#000000",
    "orange": "#E69F00",
    "sky blue": "#56B4E9",
    "bluish green": "#009E73",
    "yellow": "#F0E442",
    "blue": "#0072B2",
    "vermillion": "#D55E00",
    "reddish purple": "#CC79A7",
}
DATASET_TITLES = {
    "adult": "Adult",
    "acs_income": "ACS Income",
    "meps": "MEPS",
    "crime": "Crime",
    "compas": "COMPAS",
    "synthetic": "Synthetic",
}


def dataset_title(name: str) -> str:
    """Return a dataset's name as a reader writes it.

    Examples
    --------
    >>> dataset_title("acs_income"), dataset_title("my_own")
    ('ACS Income', 'my own')
    """
    return DATASET_TITLES.get(name, name.replace("_", " "))


class Style(NamedTuple):
    """How a method is written and drawn."""

    label: str
    colour: str
    marker: str


STYLES = {
    "unfair": Style("Unfair", OKABE_ITO["black"], "*"),
    "frhsic": Style("FRHSIC", OKABE_ITO["vermillion"], "o"),
    "frem": Style("FREM", OKABE_ITO["blue"], "s"),
    "reg_gdp": Style("Reg-GDP", OKABE_ITO["bluish green"], "^"),
    "adv": Style("ADV", OKABE_ITO["reddish purple"], "v"),
    "mmd_binned": Style("MMD (binned)", OKABE_ITO["orange"], "D"),
    "laftr": Style("LAFTR", OKABE_ITO["sky blue"], "P"),
    "dcor": Style("dCor", OKABE_ITO["yellow"], "X"),
}


# Options whose stored key is not how one would say it.
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
    """Return the style of a method; a variant ``method:option`` has the method's with its option in the label.

    Examples
    --------
    >>> style_of("frhsic:estimator unbiased").label, style_of("reg_gdp:points 10").label, style_of("my_method").label
    ('FRHSIC, unbiased', 'Reg-GDP, points 10', 'my method')
    """
    name, _, option = method.partition(":")
    style = STYLES.get(name, Style(name.replace("_", " "), "#777777", "h"))
    words = OPTION_WORDS.get(option, option.replace("_", " "))
    return style._replace(label=f"{style.label}, {words}") if option else style
