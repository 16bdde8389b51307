"""ACS Travel Time: does a Californian of the 2018 American Community Survey commute for more than 20 minutes? S is age.

The task is that of Ding, Hardt, Miller and Schmidt (2021). It needs columns that the extract of ACS Income lacks, so it
is read from the Census Bureau's person file, the same file that ACS Income uses.
"""

from __future__ import annotations

from functools import partial
from pathlib import Path

import numpy as np

from frhsic_core.data.acs_income import MEMBER, SAMPLE, URL, check_person_file, read_person_file, sampled
from frhsic_core.data.files import Link, RawFile
from frhsic_core.data.recipes import Card, Recipe, Source, Table, filtered

SENSITIVE = "AGEP"
FEATURES = (
    "SCHL", "MAR", "SEX", "DIS", "ESP", "MIG", "RELP", "RAC1P", "PUMA", "ST", "CIT", "OCCP", "JWTR", "POWPUMA",
    "POVPIP",
)  # fmt: skip
TARGET = "JWMNP"
MINUTES = 20
COLUMNS = (SENSITIVE, *FEATURES, TARGET, "ESR", "PWGTP")

_CHECK = partial(check_person_file, columns=COLUMNS)
OFFICIAL_ZIP = RawFile("acs_income", "csv_pca.zip", links=(Link(URL),), check=_CHECK, by_hand=URL)
OFFICIAL_CSV = RawFile("acs_income", f"2018/1-Year/{MEMBER}", check=_CHECK)


def read(path: Path) -> Table:
    """Read the person file, apply the filter of ACSTravelTime and draw 20,000.

    The filter: older than 16, weight at least 1, employed and at work (ESR is 1). A missing code becomes 0, as in
    folktables (see ``acs_income``).
    """
    values = read_person_file(path, COLUMNS)
    steps = [("rows of the person file", len(values))]
    filters = {
        "older than 16": values["AGEP"] > 16,
        "weight at least 1": values["PWGTP"] >= 1,
        "employed and at work": values["ESR"] == 1,
    }
    values = sampled(values[filtered(filters, steps)], steps)
    return Table(
        columns=values[[SENSITIVE, *FEATURES]].fillna(0.0).reset_index(drop=True),
        # folktables compares NaN, the people who work at home, with 20: they count as not above.
        y=(values[TARGET] > MINUTES).to_numpy(np.float64),
        source="the official person file, California 2018",
        steps=steps,
        notes=["The codes are used as numbers, as in folktables: an occupation becomes a magnitude."],
        weights=values["PWGTP"].to_numpy(),
    )


RECIPE = Recipe(
    task="classification",
    sensitive=SENSITIVE,
    sources=tuple(Source("official", file, read, (SAMPLE,), 15) for file in (OFFICIAL_ZIP, OFFICIAL_CSV)),
    card=Card(
        measured="Each row is an employed Californian (17 or older) in the American Community Survey of 2018.",
        by=(
            "The US Census Bureau collected the data. Ding, Hardt, Miller and Schmidt (2021) defined the task in their "
            "package folktables."
        ),
        sensitive="S is the age in years (AGEP). The highest ages are recorded as 94.",
        target="Y is 1 if the way to work takes more than 20 minutes.",
        problems=(
            "The place of living, the place of work and the occupation are codes that are used as numbers.",
            "People who work at home have no travel time. Their Y is 0, as for a way of at most 20 minutes.",
        ),
        terms=(
            "The data are public use microdata of the Census Bureau. Their use is free, but nobody may try to identify "
            "a person."
        ),
        not_for=(
            "Nothing follows about other states or years.",
            "The data do not show the effect of age on commuting.",
        ),
        facts={"year": 2018, "minutes": MINUTES},
    ),
)
