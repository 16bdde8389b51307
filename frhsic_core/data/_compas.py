"""COMPAS: is a defendant of Broward County charged again within two years? S is age."""

from __future__ import annotations

from pathlib import Path

import pandas as pd

from frhsic_core.data._files import Link, RawFile
from frhsic_core.data._recipes import Card, Recipe, Source, Table, filtered, numeric, one_hot

NUMERIC = (
    "juv_fel_count", "juv_misd_count", "juv_other_count", "priors_count", "days_b_screening_arrest",
    "c_days_from_compas",
)  # fmt: skip
CATEGORICAL = ("c_charge_degree", "sex", "race")
#: Every column that is read. Names, birth dates and case numbers, which the file contains, are not among them.
READ = ("age", *NUMERIC, *CATEGORICAL, "is_recid", "score_text", "two_year_recid")

FILE = RawFile(
    dataset="compas",
    name="compas-scores-two-years.csv",
    sha256=("c451db85908b2f7fef1d83203bedf6b71ecda0d5af468d82ae62178f91d0cc7d",),
    links=(
        Link(
            "https://raw.githubusercontent.com/propublica/compas-analysis/master/compas-scores-two-years.csv"
        ),
    ),
    by_hand="compas-scores-two-years.csv from https://github.com/propublica/compas-analysis",
)


def read(path: Path) -> Table:
    """Read the used columns of the two-year file and apply ProPublica's filter.

    The filter keeps screenings within 30 days of the arrest, drops unknown recidivism (-1),
    ordinary traffic charges ("O") and missing scores.
    """
    # usecols keeps names and birth dates out of memory; "N/A" is a score in this file, not a
    # missing value.
    raw = pd.read_csv(path, usecols=list(READ), keep_default_na=False, na_values=[""], dtype="str")
    numbers = numeric(raw[["age", *NUMERIC, "is_recid", "two_year_recid"]], file=path.name)
    steps = [("rows of the two-year file", len(raw))]
    filters = {
        "screened within 30 days of the arrest": numbers["days_b_screening_arrest"].between(
            -30, 30
        ),
        "recidivism known": numbers["is_recid"] != -1,
        "no ordinary traffic charge": raw["c_charge_degree"] != "O",
        "a score is given": raw["score_text"].notna() & (raw["score_text"] != "N/A"),
        "no missing value in a used column": numbers.notna().all(axis=1)
        & raw[list(CATEGORICAL)].notna().all(axis=1),
    }
    keep = filtered(filters, steps)
    raw, numbers = raw[keep], numbers[keep]
    dummies, groups = one_hot(raw, CATEGORICAL)
    return Table(
        columns=pd.concat([numbers[["age", *NUMERIC]], dummies], axis=1),
        y=numbers["two_year_recid"].to_numpy(),
        source="the original file compas-scores-two-years.csv",
        groups=groups,
        steps=steps,
        notes=[
            "Text and released code agree on this dataset.",
            "Only the columns used are read: no names, birth dates or case numbers.",
        ],
    )


RECIPE = Recipe(
    task="classification",
    sensitive="age",
    sources=(Source("official", FILE, read, (7_214, 6_172), 16),),
    card=Card(
        measured=(
            "Each row is a defendant in Broward County, Florida, who was scored by the COMPAS tool in 2013 or 2014."
        ),
        by="ProPublica (Larson, Mattu, Kirchner and Angwin, 2016) compiled the data from public records.",
        sensitive="S is the age in years in April 2016 (see the known problems).",
        target="Y is 1 if ProPublica recorded a new charge within two years.",
        problems=(
            "Some people were screened too late to be followed for two years. They are in the file only if they were "
            "charged again. The rate of Y is therefore 45 %, although about 36 % would be right (Barenstein, 2019).",
            "The column age contains the age when the data were collected. In 99 % of rows it is the age in the middle "
            "of April 2016. In no row is it the age on the day of the screening, which was one to four years earlier.",
            "A new charge is not the same as a new offense, because policing differs between people and places.",
            "Younger defendants are charged again more often, so the attribute to be hidden is itself a strong "
            "predictor.",
            "The raw file contains names and birth dates of real people. The loader reads only the columns it uses.",
        ),
        terms=(
            "ProPublica published these public records without a stated license. Do not redistribute rows of the file."
        ),
        not_for=(
            "The data are no basis for building or defending a risk score.",
            "Nothing follows about other counties or years.",
            "The data do not show who is guilty.",
        ),
    ),
)
