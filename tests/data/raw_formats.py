"""Small made-up files in each raw format. No line of them is real."""

from __future__ import annotations

import gzip
import io
import struct
import zipfile
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pandas as pd

from frhsic_core.data import _acs_income, _compas, _crime, _meps
from frhsic_core.paper.datasets import REFERENCE_FEATURES, VISITS_IN_EXTRACT

ADULT_LINES = (
    "25, Private, 1000, Bachelors, 13, Never-married, Sales, Not-in-family, White, Male, 0, 0, 40, Atlantis, <=50K",
    "50, ?, 2000, HS-grad, 9, Divorced, ?, Unmarried, Black, Female, 10, 0, 20, Atlantis, >50K",
    "33, State-gov, 3000, Bachelors, 13, Never-married, Sales, Husband, White, Female, 0, 5, 60, Lemuria, >50K",
    "71, Private, 1500, HS-grad, 9, Widowed, Craft-repair, Unmarried, White, Male, 0, 0, 8, ?, <=50K",
)


def adult(path: Path, *, lines: Sequence[str] = ADULT_LINES, end: str = "\n") -> Path:
    """Write an adult.data; the real one ends in an empty line."""
    path.write_bytes((end.join(lines) + end + end).encode())
    return path


def compas_frame() -> pd.DataFrame:
    """Return six invented defendants, of whom the filter keeps the first two."""
    rows = 6
    frame = pd.DataFrame(
        {
            "id": range(rows),
            "name": [f"invented person {i}" for i in range(rows)],
            "first": ["invented"] * rows,
            "last": ["person"] * rows,
            "dob": ["1901-01-01"] * rows,
            "age": [20, 45, 30, 31, 32, 33],
            "sex": ["Male", "Female"] * 3,
            "race": ["Other", "Hispanic"] * 3,
            "juv_fel_count": [0, 1] * 3,
            "juv_misd_count": [0] * rows,
            "juv_other_count": [2] * rows,
            "priors_count": [3, 4] * 3,
            "days_b_screening_arrest": [-1, 30, 31, 0, 0, None],
            "c_days_from_compas": [1, 2, 3, 4, 5, 6],
            "c_charge_degree": ["F", "M", "F", "O", "F", "F"],
            "is_recid": [1, 0, 1, 1, -1, 0],
            "score_text": ["Low", "High", "Low", "Low", "Low", "N/A"],
            "two_year_recid": [1, 0, 1, 1, 0, 0],
        }
    )
    assert set(_compas.READ) <= set(frame.columns)
    return frame


def crime_table(rows: int = 10) -> pd.DataFrame:
    """Return invented communities as text; ``PolicCars`` is missing in most rows, ``OtherPerCap`` in one."""
    rng = np.random.RandomState(0)
    table = pd.DataFrame(
        rng.uniform(size=(rows, len(_crime.COLUMNS))).round(2), columns=list(_crime.COLUMNS)
    ).astype("str")
    table["communityname"] = [f"Invented{i}city" for i in range(rows)]
    table["county"] = "?"
    table.loc[: rows // 2, "PolicCars"] = "?"
    table.loc[0, "OtherPerCap"] = "?"
    return table


def crime_file(path: Path, table: pd.DataFrame, *, end: str = "\n") -> Path:
    """Write a communities.data: no header."""
    path.write_bytes(table.to_csv(header=False, index=False, lineterminator=end).encode())
    return path


def acs_official(rows: int = 400) -> pd.DataFrame:
    """Return an invented person file with the columns of the Census Bureau's."""
    rng = np.random.RandomState(1)
    frame = pd.DataFrame(
        {name: rng.randint(1, 9, size=rows).astype(float) for name in (*_acs_income.FEATURES, "ST")}
    )
    frame["AGEP"] = rng.randint(0, 95, size=rows)
    frame["WKHP"] = rng.choice([np.nan, 0, 1, 20, 40, 99], size=rows)
    frame["PINCP"] = rng.choice([np.nan, -50, 100, 101, 50_000, 50_001, 90_000], size=rows)
    frame["PWGTP"] = rng.choice([0, 1, 17], size=rows)
    frame.loc[rng.uniform(size=rows) < 0.1, "COW"] = np.nan
    return frame


def acs_zip(path: Path, frame: pd.DataFrame) -> Path:
    """Write the archive that the Census Bureau serves."""
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(_acs_income.MEMBER, frame.to_csv(index=False))
        archive.writestr("ACS2018_PUMS_README.pdf", b"%PDF")
    return path


def meps_frame(rows: int = 60) -> pd.DataFrame:
    """Return invented persons of two panels with every column the three recipes use."""
    rng = np.random.RandomState(2)
    names = {*_meps.PANEL_19_FEATURES, *REFERENCE_FEATURES, *_meps.VISITS, *VISITS_IN_EXTRACT}
    frame = pd.DataFrame({name: rng.randint(0, 6, size=rows) for name in sorted(names)})
    frame[_meps.SENSITIVE] = rng.randint(0, 86, size=rows)
    frame[_meps.WEIGHT] = rng.uniform(0, 9_000, size=rows).round(3)
    frame["PANEL"] = [19] * (rows // 2) + [20] * (rows - rows // 2)
    for code, name in zip(
        (-1, -7, -8, -9), ("EDUCYR", "EDRECODE", "ARTHDX", "FAMINC15"), strict=True
    ):
        frame.loc[rng.choice(rows, 4, replace=False), name] = code
    frame.loc[0, "HHTOTD15"] = -9
    frame[_meps.EXACT_LABEL] = (frame[list(_meps.VISITS)].sum(axis=1) >= 10).astype(int)
    return frame


def gzipped_csv(path: Path, frame: pd.DataFrame, *, end: str = "\n") -> Path:
    """Write a gzip-compressed CSV with a fixed time stamp."""
    path.write_bytes(gzip.compress(frame.to_csv(index=False, lineterminator=end).encode(), mtime=0))
    return path


def _ibm_double(value: float) -> bytes:
    """Encode one number as the eight-byte IBM hexadecimal float of a SAS transport file."""
    if value == 0:
        return bytes(8)
    sign, value, exponent = (0x80 if value < 0 else 0), abs(value), 64
    while value >= 1:
        value, exponent = value / 16, exponent + 1
    while value < 1 / 16:
        value, exponent = value * 16, exponent - 1
    return bytes([sign | exponent]) + int(value * 2**56).to_bytes(7, "big")


def sas_transport(frame: pd.DataFrame) -> bytes:
    """Encode a numeric frame as a SAS transport file, version 5 (the format of TS-140)."""
    stamp = b"01JAN26:00:00:00"

    def card(text: str) -> bytes:
        return text.encode().ljust(80)

    out = io.BytesIO()
    out.write(card("HEADER RECORD*******LIBRARY HEADER RECORD!!!!!!!" + "0" * 30))
    out.write(b"SAS     SAS     SASLIB  9.4     LINUX   ".ljust(64) + stamp)
    out.write(stamp.ljust(80))
    out.write(
        card("HEADER RECORD*******MEMBER  HEADER RECORD!!!!!!!000000000000000001600000000140")
    )
    out.write(card("HEADER RECORD*******DSCRPTR HEADER RECORD!!!!!!!" + "0" * 30))
    out.write(b"SAS     H181    SASDATA 9.4     LINUX   ".ljust(64) + stamp)
    out.write(stamp.ljust(80))
    out.write(
        card(
            f"HEADER RECORD*******NAMESTR HEADER RECORD!!!!!!!000000{len(frame.columns):04d}"
            + "0" * 20
        )
    )
    names = b"".join(
        struct.pack(">hhhh8s40s8shhh2s8shhl52s", 1, 0, 8, i + 1, name.encode().ljust(8), b" " * 40, b" " * 8,
                    0, 0, 0, b"  ", b" " * 8, 0, 0, 8 * i, bytes(52))
        for i, name in enumerate(frame.columns)
    )  # fmt: skip
    out.write(names.ljust(-(-len(names) // 80) * 80))
    out.write(card("HEADER RECORD*******OBS     HEADER RECORD!!!!!!!" + "0" * 30))
    rows = b"".join(_ibm_double(float(value)) for row in frame.to_numpy() for value in row)
    out.write(rows.ljust(-(-len(rows) // 80) * 80))
    return out.getvalue()


def meps_zip(path: Path, frame: pd.DataFrame) -> Path:
    """Write the archive that AHRQ serves."""
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("h181.ssp", sas_transport(frame))
    return path


ERROR_PAGE = (
    b"<!DOCTYPE html>\n<html><head><title>Request Rejected</title></head><body>No.</body></html>\n"
)
