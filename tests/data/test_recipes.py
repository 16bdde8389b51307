"""Each recipe on a made-up file of its raw format, against counts worked out by hand or by another library."""

from __future__ import annotations

import inspect
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import raw_formats as raw
from records import Records

from frhsic_core.data import FormatError, _acs_income, _adult, _compas, _crime, _meps, load_dataset
from frhsic_core.data._files import locate
from frhsic_core.data._loading import RECIPES, load_recipe
from frhsic_core.data._recipes import Source


def described(folder: Path) -> dict[str, Any]:
    """Return every recipe with its files and numbers, what is read of made-up files, and a few rows of each law."""
    found: dict[str, Any] = {name: asdict(recipe) for name, recipe in RECIPES.items()}
    found |= {
        call.__name__: str(inspect.signature(call)) for call in (load_dataset, load_recipe, locate)
    }
    raw.compas_frame().to_csv(folder / "compas.csv", index=False)
    tables = {
        "adult.data": _adult.read(raw.adult(folder / "adult.data")),
        "adult.data with missing words": _adult.read(folder / "adult.data", keep_missing=True),
        "compas.csv": _compas.read(folder / "compas.csv"),
        "communities.data": _crime.read(
            raw.crime_file(folder / "communities.data", raw.crime_table())
        ),
        "csv_pca.zip": _acs_income.read_official(
            raw.acs_zip(folder / "csv_pca.zip", raw.acs_official())
        ),
        "h181ssp.zip": _meps.read_official(raw.meps_zip(folder / "h181ssp.zip", raw.meps_frame())),
        "joined.csv.gz": _meps.read_joined(
            raw.gzipped_csv(folder / "joined.csv.gz", raw.meps_frame())
        ),
    }
    for name, table in tables.items():
        numbers = {"columns": table.columns.sum().round(6).to_dict(), "y": table.y.tolist()}
        found[name] = (
            vars(table)
            | numbers
            | {"weights": None if table.weights is None else sum(table.weights)}
        )
    for name, settings in (("people", {}), ("synthetic", {}), ("synthetic", {"signal": "strong"})):
        data = load_dataset(name, n=4, random_state=7, **settings)
        rows = np.column_stack([data.X, data.s, data.y]).round(6).tolist()
        found[f"{name} {settings}"] = [repr(data), str(data.provenance), rows]
    return found


def test_recipes_and_what_they_read_are_on_record(tmp_path: Path, recorded: Records) -> None:
    recorded(described(tmp_path))


def test_crime_keeps_a_column_with_exactly_a_fifth_missing(tmp_path: Path) -> None:
    table = raw.crime_table()
    table.loc[:1, "PolicBudgPerPop"] = "?"
    table.loc[:2, "LemasSwornFT"] = "?"
    result = _crime.read(raw.crime_file(tmp_path / "communities.data", table))
    assert "PolicBudgPerPop" in result.columns
    assert "LemasSwornFT" not in result.columns


def test_acs_official_filter_is_that_of_folktables(tmp_path: Path) -> None:
    folktables = pytest.importorskip("folktables")
    frame = raw.acs_official()
    ours = _acs_income.read_official(raw.acs_zip(tmp_path / "csv_pca.zip", frame))
    features, label, _ = folktables.ACSIncome.df_to_numpy(frame)
    assert 0 < len(features) < len(frame)
    np.testing.assert_array_equal(
        ours.columns[list(folktables.ACSIncome.features)].to_numpy(), features
    )
    np.testing.assert_array_equal(ours.y, label)
    assert ours.weights is not None
    assert ours.weights.min() >= 1


def test_acs_official_bounds_and_the_weights_of_a_sample(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    frame = raw.acs_official(12).assign(AGEP=17, PINCP=101, WKHP=1, PWGTP=np.arange(1, 13))
    outside = {"AGEP": 16, "PINCP": 100, "WKHP": 0, "PWGTP": 0}
    for row, (name, value) in enumerate(outside.items()):
        frame.loc[row, name] = value
    path = raw.acs_zip(tmp_path / "csv_pca.zip", frame)
    np.testing.assert_array_equal(_acs_income.read_official(path).weights, range(5, 13))
    monkeypatch.setattr(_acs_income, "SAMPLE", 3)
    rows = np.random.RandomState(42).choice(8, 3, replace=False)
    np.testing.assert_array_equal(_acs_income.read_official(path).weights, 5 + rows)


def test_acs_official_income_threshold(tmp_path: Path) -> None:
    """Exactly 50,000 dollars is not above the threshold, and the next dollar is."""
    frame = raw.acs_official(3).assign(AGEP=40, WKHP=40, PWGTP=1, PINCP=[49_999, 50_000, 50_001])
    table = _acs_income.read_official(raw.acs_zip(tmp_path / "csv_pca.zip", frame))
    assert table.y.tolist() == [0, 0, 1]
    with pytest.raises(FormatError, match="column WKHP contains 'many' in 2 rows"):
        _acs_income.read_official(
            raw.acs_zip(tmp_path / "csv_pca.zip", frame.assign(WKHP=["many", 40, "many"]))
        )


def test_acs_official_is_found_where_folktables_keeps_it(tmp_path: Path) -> None:
    folktables = pytest.importorskip("folktables")
    path = _acs_income.OFFICIAL_CSV.under(tmp_path)
    path.parent.mkdir(parents=True)
    raw.acs_official().to_csv(path, index=False)
    source = folktables.ACSDataSource(
        survey_year="2018", horizon="1-Year", survey="person", root_dir=str(tmp_path / "acs_income")
    )
    theirs = source.get_data(states=["CA"], download=False)
    assert len(theirs) == len(pd.read_csv(path))
    _acs_income.OFFICIAL_CSV.check(path)


def test_acs_extract_draws_the_rows_of_the_legacy_generator(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    frame = raw.acs_official().fillna(1).rename(columns={"PINCP": _acs_income.EXTRACT_TARGET})
    frame[_acs_income.EXTRACT_TARGET] = (frame[_acs_income.EXTRACT_TARGET] > 50_000).astype(int)
    path = raw.gzipped_csv(tmp_path / "extract.csv.gz", frame, end="\r\n")
    monkeypatch.setattr(_acs_income, "SAMPLE", 100)
    table = _acs_income.read_extract(path)
    rows = np.random.RandomState(42).choice(len(frame), 100, replace=False)
    np.testing.assert_array_equal(table.columns["AGEP"], frame["AGEP"].to_numpy()[rows])
    np.testing.assert_array_equal(table.y, frame[_acs_income.EXTRACT_TARGET].to_numpy()[rows])


def test_meps_is_the_same_from_the_official_file_and_from_the_extract(tmp_path: Path) -> None:
    frame = raw.meps_frame()
    path = raw.meps_zip(tmp_path / "h181ssp.zip", frame)
    _meps.OFFICIAL.check(path)
    official = _meps.read_official(path)
    joined = _meps.read_joined(
        raw.gzipped_csv(tmp_path / "joined.csv.gz", frame[frame["PANEL"] == 19])
    )
    np.testing.assert_array_equal(official.columns, joined.columns)
    np.testing.assert_array_equal(official.y, joined.y)
    np.testing.assert_allclose(official.weights, joined.weights, rtol=1e-12)
    with pytest.raises(FormatError, match="lacks the columns FAMINC15"):
        _meps.read_official(raw.meps_zip(path, frame.drop(columns="FAMINC15")))


def test_a_recipe_that_gives_other_counts_is_refused(tmp_path: Path) -> None:
    path = raw.adult(tmp_path / "adult.data")
    table = _adult.read(path)
    d = table.columns.shape[1] - 1
    Source("official", _adult.FILE, _adult.read, (4, 2), d).check(table)
    for counts, features in (((4, 3), d), ((2, 4), d), ((4, 2), d + 1), ((4,), d), ((5, 2), d)):
        with pytest.raises(FormatError, match=r"expected .* rows and d"):
            Source("official", _adult.FILE, _adult.read, counts, features).check(table)


def test_adult_text_drops_rows_with_a_question_mark(tmp_path: Path) -> None:
    table = _adult.read(raw.adult(tmp_path / "adult.data"))
    assert table.steps == [("rows of adult.data", 4), ('rows without "?"', 2)]
    assert table.columns["age"].tolist() == [25, 33]
    assert table.y.tolist() == [0, 1]
    assert table.weights is not None
    assert table.weights.tolist() == [1000, 3000]
    assert not [name for name in table.columns if name.endswith("?")]


def test_adult_reference_keeps_the_question_mark_as_a_level(tmp_path: Path) -> None:
    table = _adult.read(raw.adult(tmp_path / "adult.data"), keep_missing=True)
    assert len(table.columns) == 4
    assert list(table.columns)[: len(_adult.NUMERIC) + 1] == ["age", *_adult.NUMERIC]
    assert table.columns["workclass_?"].tolist() == [0, 1, 0, 0]
    assert table.columns["native-country_?"].tolist() == [0, 0, 0, 1]
    assert table.groups["sex"] == ("sex_Female", "sex_Male")


def test_compas_applies_the_filter_and_reads_no_name(tmp_path: Path) -> None:
    path = tmp_path / "compas.csv"
    raw.compas_frame().to_csv(path, index=False)
    table = _compas.read(path)
    assert [rows for _, rows in table.steps] == [6, 4, 3, 2, 2, 2]
    assert table.columns["age"].tolist() == [20, 45]
    assert table.y.tolist() == [1, 0]
    held = {*table.columns.columns, *table.groups}
    assert not held & {"name", "first", "last", "dob", "id", "c_case_number"}
    assert "invented" not in table.columns.to_csv()


@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_crime_drops_sparse_columns_and_fills_the_rest_with_medians(
    tmp_path: Path, end: str
) -> None:
    table = raw.crime_table()
    result = _crime.read(raw.crime_file(tmp_path / "communities.data", table, end=end))
    assert "PolicCars" not in result.columns
    assert not {*_crime.IDENTIFIERS, _crime.TARGET} & set(result.columns)
    assert result.columns.shape == (10, 128 - 5 - 1 - 1)
    assert result.columns["OtherPerCap"][0] == np.median(table["OtherPerCap"][1:].astype(float))
    np.testing.assert_array_equal(result.y, table[_crime.TARGET].astype(float))


def test_meps_joined_keeps_complete_rows_of_panel_19(tmp_path: Path) -> None:
    frame = raw.meps_frame()
    table = _meps.read_joined(raw.gzipped_csv(tmp_path / "joined.csv.gz", frame))
    wanted = frame[
        (frame["PANEL"] == 19)
        & (frame[[*_meps.PANEL_19_FEATURES, _meps.SENSITIVE]] >= 0).all(axis=1)
    ]
    assert 0 < len(wanted) < 30
    np.testing.assert_array_equal(table.columns["AGE15X"], wanted["AGE15X"])
    np.testing.assert_array_equal(table.y, wanted[_meps.EXACT_LABEL])
    np.testing.assert_allclose(table.weights, wanted[_meps.WEIGHT])
    assert table.columns.shape[1] == 19


def test_a_code_of_zero_is_a_value_in_meps_and_a_negative_one_is_missing() -> None:
    people = raw.meps_frame(rows=4)
    people[[*_meps.PANEL_19_FEATURES, _meps.SENSITIVE]] = 1.0
    people["AGE15X"] = [0, 1, -1, 85]
    label = np.array([0.0, 1.0, 1.0, 0.0])
    given = {"file": "panel.csv", "source": "a test", "steps": [], "notes": []}
    table = _meps.complete_table(people, label, _meps.PANEL_19_FEATURES, **given)
    assert table.columns["AGE15X"].tolist() == [0.0, 1.0, 85.0]
    assert table.y.tolist() == [0.0, 1.0, 0.0]
    words = people.astype({"AGE15X": object})
    words.loc[1, "AGE15X"] = "one"
    with pytest.raises(FormatError, match=r"panel\.csv: column AGE15X contains 'one' in 1 rows"):
        _meps.complete_table(words, label, _meps.PANEL_19_FEATURES, **given)
