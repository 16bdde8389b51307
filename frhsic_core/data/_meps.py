"""MEPS: did a person of Panel 19 use health care at least ten times in 2015? S is age.

There are two possible files, which give the same data: an extract of Panel 19 with the published
label, and the official file HC-181.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd

from frhsic_core.data._files import CorruptFile, FormatError, Link, RawFile, member_of, open_archive
from frhsic_core.data._recipes import Card, Recipe, Source, Table, numeric, require_columns

SENSITIVE = "AGE15X"
WEIGHT = "PERWT15F"
DIAGNOSES = (
    "DIABDX", "ARTHDX", "ASTHDX", "CANCERDX", "MIDX", "STRKDX", "HIBPDX", "CHDDX", "ANGIDX", "OHRTDX",
)  # fmt: skip
PANEL_19_FEATURES = (
    "SEX", "RACEV1X", "MARRY15X", "EDRECODE", "REGION53", "POVCAT15", "INSCOV15", *DIAGNOSES, "FAMINC15",
)  # fmt: skip
EXACT_LABEL = "UTILIZATION_GE_10"
VISITS = ("OBTOTV15", "OPTOTV15", "ERTOT15", "IPNGTD15", "HHTOTD15")
VISITS_CUT = 10
OFFICIAL_ROWS = 35_427
PANEL_19_ROWS = 15_830
URL = "https://meps.ahrq.gov/mepsweb/data_files/pufs/h181ssp.zip"
_MINUS_NINE = (
    "Home-health days are coded -9 (not ascertained) in a few rows; the sum of visits counts that as minus nine, "
    "as the published label does."
)


def _check_zip(path: Path) -> None:
    with open_archive(path) as archive, archive.open(member_of(archive, "h181.ssp")) as handle:
        if not handle.read(80).startswith(b"HEADER RECORD*******LIBRARY HEADER RECORD"):
            raise CorruptFile(f"{path.name}: h181.ssp is not a SAS transport file.")


JOINED = RawFile(
    dataset="meps",
    name="meps_panel19_joined.csv.gz",
    sha256=("0e04ac13d0569201114b229697557cd7e35fbf4f9a00604fd797a1b4f6989739",),
)
OFFICIAL = RawFile(
    dataset="meps",
    name="h181ssp.zip",
    links=(Link(URL), Link(URL.replace("mepsweb/", ""))),
    check=_check_zip,
    by_hand=f"{URL} (HC-181; its data use agreement allows statistical use only and forbids re-identification)",
)


def complete_table(
    raw: pd.DataFrame,
    y: np.ndarray,
    features: tuple[str, ...],
    *,
    file: str,
    source: str,
    steps: list[tuple[str, int]],
    notes: list[str],
) -> Table:
    """Keep rows whose used codes are all present (MEPS writes -1, -7, -8 or -9 for missing values)."""
    values = numeric(raw[[SENSITIVE, *features]], file=file)
    weights = numeric(raw[[WEIGHT]], file=file)[WEIGHT].to_numpy()
    present = (values >= 0).all(axis=1).to_numpy()  # NaN compares False, so it goes as well
    if not np.isfinite(weights[present]).all():
        raise FormatError(f"{file}: {WEIGHT} is missing in a row that is used.")
    return Table(
        columns=values[present].reset_index(drop=True),
        y=y[present],
        source=source,
        steps=[
            *steps,
            (
                f"age and all {len(features)} features present (no negative code)",
                int(present.sum()),
            ),
        ],
        notes=[*notes, "Codes are used as numbers, as in the paper's code.", _MINUS_NINE],
        weights=weights[present],
    )


def read_joined(path: Path) -> Table:
    """Read the Panel 19 extract: 18 features and the exact label."""
    raw = pd.read_csv(path)
    steps = [("rows of the Panel 19 extract", len(raw))]
    raw = raw[raw["PANEL"] == 19]
    steps.append(("Panel 19", len(raw)))
    notes = [
        "The paper counts 19 features and about 13,000 rows; person income (TTLP15X) is not in this extract."
    ]
    y = numeric(raw[[EXACT_LABEL]], file=path.name)[EXACT_LABEL].to_numpy()
    source = "Panel 19 of MEPS HC-181, joined from two extracts"
    return complete_table(
        raw, y, PANEL_19_FEATURES, file=path.name, source=source, steps=steps, notes=notes
    )


def read_transport_file(path: Path, features: tuple[str, ...]) -> tuple[pd.DataFrame, pd.Series]:
    """Return the used columns of the official SAS transport file, and the number of visits of each person."""
    needed = ["PANEL", SENSITIVE, WEIGHT, *features, *VISITS]
    pieces = []
    # All 1,800 columns at once would need gigabytes, so the file is read in pieces and only the
    # used columns are kept.
    with (
        open_archive(path) as archive,
        archive.open(member_of(archive, "h181.ssp")) as handle,
        pd.read_sas(handle, format="xport", chunksize=5_000) as reader,
    ):
        for piece in reader:
            piece = piece.rename(columns=lambda name: str(name).strip().upper())
            require_columns(piece.columns, needed, file="h181.ssp")
            pieces.append(piece[needed])
    raw = pd.concat(pieces, ignore_index=True)
    # pandas reads a zero of the transport format as 5.4e-79
    raw = raw.mask(raw.abs() < 1e-70, 0.0)
    return raw, numeric(raw[list(VISITS)], file="h181.ssp").fillna(0.0).sum(axis=1)


def read_official(path: Path) -> Table:
    """Read Panel 19 of the official file, with the columns of the extract."""
    raw, visits = read_transport_file(path, PANEL_19_FEATURES)
    steps = [("rows of HC-181", len(raw))]
    panel = (raw["PANEL"] == 19).to_numpy()
    raw, visits = raw[panel], visits[panel]
    steps.append(("Panel 19", len(raw)))
    return complete_table(
        raw,
        (visits >= VISITS_CUT).to_numpy(),
        PANEL_19_FEATURES,
        file="h181.ssp",
        source="the official file MEPS HC-181",
        steps=steps,
        notes=[
            "The same 18 columns as from the Panel 19 extract, so that both give the same data."
        ],
    )


RECIPE = Recipe(
    task="classification",
    sensitive=SENSITIVE,
    sources=(
        Source("extract", JOINED, read_joined, (PANEL_19_ROWS, 11_276), 18),
        Source("official", OFFICIAL, read_official, (OFFICIAL_ROWS, PANEL_19_ROWS, 11_276), 18),
    ),
    card=Card(
        measured="Each row is a person in the Medical Expenditure Panel Survey of 2015 (file HC-181).",
        by="The US Agency for Healthcare Research and Quality (AHRQ) collected the data.",
        sensitive="S is the age in years at the end of 2015 (AGE15X). Ages above 85 are recorded as 85.",
        target=(
            "Y is 1 if the person had at least ten visits in the year. The count adds office, outpatient, emergency "
            "and home-health visits and inpatient nights."
        ),
        problems=(
            "The paper's text names Panel 19, but the released code selects no panel. The code uses an education "
            "variable that is missing for most of Panel 19, so that almost only Panel 20 is left.",
            "Our two extracts do not contain the income of the person. The extract with both panels also has no "
            "inpatient nights, no region and no poverty level.",
            "If the number of home-health days is unknown, the file contains -9. The published label adds this -9 to "
            "the count of visits, and so does the recipe.",
            "The sample is not the population. The survey weights (kept beside the data) change the rate of Y by "
            "several points.",
        ),
        terms=(
            "The data use agreement of AHRQ allows statistical use only. The law forbids the re-identification of "
            "persons."
        ),
        not_for=(
            "Nothing follows about the need for care, because the use of care also depends on access, insurance and "
            "trust.",
            "Nothing follows about single persons.",
        ),
        facts={"year": 2015, "visits_cut": VISITS_CUT},
    ),
)
