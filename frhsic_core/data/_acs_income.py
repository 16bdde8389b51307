"""ACS Income: does a Californian of the 2018 American Community Survey earn more than 50,000 dollars? S is age."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

import numpy as np
import pandas as pd

from frhsic_core.data._files import CorruptFile, Link, RawFile, member_of, open_archive
from frhsic_core.data._recipes import Card, Recipe, Source, Table, filtered, numeric

SENSITIVE = "AGEP"
FEATURES = ("COW", "SCHL", "MAR", "OCCP", "POBP", "RELP", "WKHP", "SEX", "RAC1P")
EXTRACT_TARGET = "PINCP_gt_50000"
OFFICIAL = (SENSITIVE, *FEATURES, "PINCP", "PWGTP")
MEMBER = "psam_p06.csv"
INCOME_CUT = 50_000
SAMPLE = 20_000
SAMPLE_SEED = 42
#: Rows of the task before sampling, for all of California and the 40 % of it that the extract holds.
TASK_ROWS = 195_665
EXTRACT_ROWS = 78_266
URL = "https://www2.census.gov/programs-surveys/acs/data/pums/2018/1-Year/csv_pca.zip"


@contextmanager
def _person_file(path: Path) -> Iterator[IO[bytes]]:
    """Open the person file, or the member of the archive that contains it."""
    if path.suffix == ".zip":
        with open_archive(path) as archive, archive.open(member_of(archive, MEMBER)) as member:
            yield member
    else:
        with path.open("rb") as handle:
            yield handle


def check_person_file(path: Path) -> None:
    """Raise `CorruptFile` unless the first line of the person file names the columns that are used."""
    with _person_file(path) as handle:
        header = handle.readline(1 << 16).decode("utf-8", errors="replace").strip().split(",")
    if missing := [column for column in OFFICIAL if column not in header]:
        raise CorruptFile(
            f"{path.name} is not the person file of 2018: it has no column {', '.join(missing)}."
        )


EXTRACT = RawFile(
    dataset="acs_income",
    name="acs_income_2018_ca_40pct.csv.gz",
    sha256=("461ef709b1d38003fbeef33e2d2aca7cb147a317d99a2cc84ceecf392d52e095",),
)
OFFICIAL_ZIP = RawFile(
    dataset="acs_income",
    name="csv_pca.zip",
    links=(Link(URL),),
    check=check_person_file,
    by_hand=URL,
)
#: The path that folktables uses, so that a file downloaded by it is found.
OFFICIAL_CSV = RawFile(dataset="acs_income", name=f"2018/1-Year/{MEMBER}", check=check_person_file)


def _table(values: pd.DataFrame, y: pd.Series, steps: list[tuple[str, int]], source: str) -> Table:
    notes = [
        "The nine codes are used as numbers, as in the paper's code: an occupation becomes a magnitude.",
        "Text and released code agree on this dataset; which 20,000 rows were drawn depends on the file sampled from.",
    ]
    weighted = "PWGTP" in values
    if not weighted:
        notes.append("The extract carries no survey weights (PWGTP); the official file does.")
    if len(values) > SAMPLE:
        steps.append((f"drawn without replacement, seed {SAMPLE_SEED}", SAMPLE))
        values = values.iloc[
            np.random.RandomState(SAMPLE_SEED).choice(len(values), SAMPLE, replace=False)
        ]
    return Table(
        columns=values[[SENSITIVE, *FEATURES]].fillna(0.0).reset_index(drop=True),
        y=y[values.index].to_numpy(),
        source=source,
        steps=steps,
        notes=notes,
        weights=values["PWGTP"].to_numpy() if weighted else None,
    )


def read_extract(path: Path) -> Table:
    """Read the 40 % extract, whose rows are already filtered, and draw 20,000."""
    needed = [SENSITIVE, *FEATURES, EXTRACT_TARGET]
    values = numeric(pd.read_csv(path)[needed], file=path.name)
    steps = [("rows of the 40 % extract (the task's filter already applied)", len(values))]
    return _table(
        values,
        values[EXTRACT_TARGET],
        steps,
        "a 40 % extract of the ACSIncome task, California 2018",
    )


def read_official(path: Path) -> Table:
    """Read the Census Bureau's person file, apply the filter of ACSIncome and draw 20,000.

    The filter of Ding et al. (2021): older than 16, income above 100 dollars, at least one hour a
    week, weight at least 1; the target is income above 50,000. A missing code becomes 0: folktables
    means -1, but its call of ``nan_to_num`` passes it as another argument, so 0 is what every user
    of it has.
    """
    with _person_file(path) as handle:
        values = numeric(
            pd.read_csv(handle, usecols=list(OFFICIAL))[list(OFFICIAL)], file=path.name
        )
    steps = [("rows of the person file", len(values))]
    filters = {
        "older than 16": values["AGEP"] > 16,
        "income above 100 dollars": values["PINCP"] > 100,
        "at least one hour of work a week": values["WKHP"] > 0,
        "weight at least 1": values["PWGTP"] >= 1,
    }
    values = values[filtered(filters, steps)]
    return _table(
        values, values["PINCP"] > INCOME_CUT, steps, "the official person file, California 2018"
    )


RECIPE = Recipe(
    task="classification",
    sensitive=SENSITIVE,
    sources=(
        Source("official", OFFICIAL_ZIP, read_official, (TASK_ROWS, SAMPLE), 9),
        Source("official", OFFICIAL_CSV, read_official, (TASK_ROWS, SAMPLE), 9),
        Source("extract", EXTRACT, read_extract, (EXTRACT_ROWS, SAMPLE), 9),
    ),
    card=Card(
        measured="Each row is an employed Californian (17 or older) in the American Community Survey of 2018.",
        by=(
            "The US Census Bureau collected the data. Ding, Hardt, Miller and Schmidt (2021) defined the task in their "
            "package folktables."
        ),
        sensitive="S is the age in years (AGEP). The highest ages are recorded as 94.",
        target="Y is 1 if the yearly income is above 50,000 dollars of 2018.",
        problems=(
            "The nine features are codes that are used as numbers. The codes of occupations (more than 500) and of "
            "birthplaces (more than 200) become magnitudes without meaning.",
            "The recipe draws 20,000 rows at random. The rows drawn from the 40 % extract are not the rows drawn from "
            "the official file.",
            "The extract has no survey weights, so it supports no statement about the population of California.",
        ),
        terms=(
            "The data are public use microdata of the Census Bureau. Their use is free, but nobody may try to identify "
            "a person."
        ),
        not_for=(
            "Nothing follows about other states or years.",
            "The data do not show the effect of age on pay.",
        ),
        facts={"year": 2018, "income_cut": INCOME_CUT},
    ),
)
