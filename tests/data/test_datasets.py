"""The public face: names, the sensitive attribute, immutability, the synthetic laws."""

from __future__ import annotations

import os
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import raw_formats as raw
import torch
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from frhsic_core.data import (
    Dataset,
    FormatError,
    Provenance,
    _adult,
    _crime,
    _loading,
    load_dataset,
)
from frhsic_core.data._files import Folders, sha256_of
from frhsic_core.data._recipes import Source, Table, assemble


@pytest.mark.data
def test_the_age_in_compas_is_that_of_april_2016() -> None:
    """What the card and the chapter say: the column fits the day of collection, never the day of the screening."""
    path = Path(os.environ["FRHSIC_DATA"]) / "compas" / "compas-scores-two-years.csv"
    file = pd.read_csv(
        path,
        usecols=["age", "dob", "compas_screening_date"],
        parse_dates=["dob", "compas_screening_date"],
    )

    def age_on(day: pd.Series) -> pd.Series:
        birthday_to_come = (file["dob"].dt.month * 100 + file["dob"].dt.day) > (
            day.dt.month * 100 + day.dt.day
        )
        return day.dt.year - file["dob"].dt.year - birthday_to_come

    collected = pd.Series(pd.Timestamp("2016-04-15"), index=file.index)
    assert (age_on(collected) == file["age"]).mean() > 0.98
    gap = file["age"] - age_on(file["compas_screening_date"])
    assert gap.min() >= 1
    assert gap.max() <= 4


@pytest.mark.data
def test_people_screened_too_late_for_two_years_are_in_compas_only_if_charged_again() -> None:
    """The figures of the chapter, on the rows the recipe keeps."""
    path = Path(os.environ["FRHSIC_DATA"]) / "compas" / "compas-scores-two-years.csv"
    used = ["age", "compas_screening_date", "days_b_screening_arrest", "two_year_recid"]
    file = pd.read_csv(path, usecols=used, parse_dates=["compas_screening_date"])
    file = file[file["days_b_screening_arrest"].between(-30, 30)]
    assert len(file) == load_dataset("compas", download=False).n
    late = file["compas_screening_date"] >= "2014-04-01"
    assert round(late.mean(), 2) == 0.14
    assert round(file["two_year_recid"][late].mean(), 3) == 0.997
    assert round(file["two_year_recid"][~late].mean(), 3) == 0.366
    assert file["age"][late].mean() < file["age"][~late].mean() - 2
    both, early = (part["age"].corr(part["two_year_recid"]) for part in (file, file[~late]))
    assert 1.02 * early > both > 1.08 * early  # both are negative: a little more dependence


@pytest.mark.data
def test_crime_names_are_those_of_the_documentation() -> None:
    listed = pd.read_csv(Path(os.environ["FRHSIC_DATA"]) / "crime" / "communities_attributes.csv")[
        "attributes"
    ]
    assert tuple(listed.str.strip()) == _crime.COLUMNS


@pytest.mark.parametrize(("name", "options", "error", "text"), [
    ("adlut", {}, ValueError, r"dataset is 'adlut' .*'adult'"),
    ("adult", {"source": "extract"}, ValueError, "source of adult"),
    ("synthetic", {"n": 0}, ValueError, "at least one row"),
    ("synthetic", {"rho": 0.5}, TypeError, "synthetic has no setting rho: it takes signal"),
    ("adult", {"signal": "strong"}, TypeError, "adult has no setting signal"),
])  # fmt: skip
def test_what_is_said_of_a_wrong_one(
    name: str, options: dict, error: type[Exception], text: str
) -> None:
    with pytest.raises(error, match=text):
        load_dataset(name, **options)


@pytest.mark.parametrize("name", ["synthetic", "people"])
def test_the_synthetic_laws_need_nothing(
    name: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("FRHSIC_CACHE", str(tmp_path / "nowhere"))
    data = load_dataset(name)
    assert data.n == {"synthetic": 5_000, "people": 1_000}[name]
    assert not data.provenance.files
    assert not (tmp_path / "nowhere").exists()


def test_the_synthetic_sample_is_that_of_the_authors() -> None:
    """Their last 1,000 rows hold 62 % ones, and the Bayes rule is right on 60.5 %: facts of their stored run."""
    data = load_dataset("synthetic")
    y, x1 = data.y[4_000:], data.X[4_000:, 0]
    assert y.mean() == 0.62
    assert ((x1 > 0) == y).mean() == 0.605


@pytest.mark.parametrize("seeded", [True, False])
def test_the_classification_law(seeded: bool) -> None:
    data = load_dataset(
        "synthetic", n=20_000, random_state=42 if seeded else torch.Generator().manual_seed(1)
    )
    assert stats.kstest(data.s, "uniform").pvalue > 0.001
    assert stats.kstest((data.X[:, 0] - data.s) / 0.3, "norm").pvalue > 0.001
    assert stats.kstest(data.X[:, 1], "norm").pvalue > 0.001
    residual = data.y - 1 / (1 + np.exp(-data.X[:, 0]))
    assert abs(residual.mean()) < 4 * 0.5 / np.sqrt(data.n)
    assert abs((residual * data.X[:, 1]).mean()) < 4 * 0.5 / np.sqrt(data.n)


@pytest.mark.parametrize("seeded", [True, False])
def test_the_running_example(seeded: bool) -> None:
    data = load_dataset("people", n=20_000, random_state=42 if seeded else np.random.default_rng(4))
    assert data.feature_names == ("test_score", "habit_1", "habit_2")
    t = (data.s - 20) / 50
    assert stats.kstest(t, "uniform").pvalue > 0.001
    for column, mean in ((1, np.cos(np.pi * t)), (2, np.sin(np.pi * t))):
        assert stats.kstest((data.X[:, column] - mean) / 0.2, "norm").pvalue > 0.001
    score, spread = data.X[:, 0], np.sqrt(1 + 0.3**2)
    assert stats.kstest(score / spread, "norm").pvalue > 0.001
    # Given the score, skill is N(score/1.09, 0.09/1.09), so the chance of being hired is a normal
    # probability.
    chance = stats.norm.cdf(
        (score / spread**2 + 1.5 * (t - 0.5)) / np.sqrt(0.3**2 / spread**2 + 0.5**2)
    )
    residual = data.y - chance
    for column in (np.ones(data.n), t, score):
        assert abs((residual * column).mean()) < 4 * 0.5 * column.std(ddof=0) / np.sqrt(
            data.n
        ) + 4 * 0.5 * abs(column.mean()) / np.sqrt(data.n)


def test_draws_repeat_and_differ() -> None:
    first, again, other = (load_dataset("synthetic", n=50, random_state=seed) for seed in (1, 1, 2))
    np.testing.assert_array_equal(first.X, again.X)
    assert not np.array_equal(first.X, other.X)
    state = torch.get_rng_state()
    load_dataset("synthetic", n=50, random_state=torch.Generator().manual_seed(3))
    assert torch.equal(state, torch.get_rng_state())


@pytest.fixture(scope="module")
def adult_table(tmp_path_factory: pytest.TempPathFactory) -> Table:
    return _adult.read(
        raw.adult(tmp_path_factory.mktemp("adult") / "adult.data"), keep_missing=True
    )


def test_choosing_the_sensitive_attribute(adult_table: Table) -> None:
    load = partial(assemble, adult_table, _adult.RECIPE, name="adult")
    assert load().s.ndim == 1
    two = load(sensitive=("age", "sex"))
    assert two.sensitive_names == ("age", "sex_Male")
    assert two.s.tolist() == [[25, 1], [50, 0], [33, 0], [71, 1]]
    assert not {"age", "sex_Male", "sex_Female"} & set(two.feature_names)
    levels = load(sensitive="workclass")
    assert levels.sensitive_names == ("workclass_?", "workclass_Private", "workclass_State-gov")
    with pytest.raises(ValueError, match=r"sensitive is 'wealth'.*hours-per-week.*sex"):
        load(sensitive="wealth")
    with pytest.raises(ValueError, match="only once"):
        load(sensitive=("age", "age"))


@given(
    st.permutations(["age", "fnlwgt", "education-num", "hours-per-week", "sex", "race"]),
    st.integers(1, 6),
)
def test_no_column_is_lost_or_doubled(adult_table: Table, order: list[str], count: int) -> None:
    data = assemble(adult_table, _adult.RECIPE, name="adult", sensitive=order[:count])
    leaving = {column for name in order[:count] for column in adult_table.groups.get(name, (name,))}
    assert set(data.feature_names) == set(adult_table.columns) - leaving
    assert data.s.reshape(data.n, -1).shape[1] == len(data.sensitive_names)
    for index, name in enumerate(data.sensitive_names):
        np.testing.assert_array_equal(
            data.s.reshape(data.n, -1)[:, index], adult_table.columns[name]
        )


def test_a_dataset_cannot_be_changed_and_does_not_freeze_what_it_was_given() -> None:
    x, s, y = np.ones((3, 2)), np.arange(3), np.zeros(3)
    data = Dataset("toy", x, s, y, "classification", ("a", "b"), ("s",), Provenance("toy", "made"))
    for array in (data.X, data.s, data.y):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 5
    with pytest.raises(AttributeError):
        data.X = x
    x[0, 0] = 7
    assert data.X[0, 0] == 1


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"y": np.array([0, 1, 2])}, "must be 0 or 1"),
        ({"s": np.array([0.0, np.nan, 1.0])}, "s contains NaN"),
        ({"s": np.zeros(4)}, "s has 4 rows but X has 3"),
        ({"feature_names": ("a",)}, "1 feature names"),
        ({"sensitive_names": ("a", "b")}, "s has 1 columns but 2 names"),
        ({"weights": np.ones(2)}, "weights has 2 rows"),
    ],
)
def test_what_a_dataset_refuses(change: dict[str, object], message: str) -> None:
    given_: dict[str, object] = {
        "name": "toy", "X": np.ones((3, 2)), "s": np.arange(3), "y": np.zeros(3), "task": "classification",
        "feature_names": ("a", "b"), "sensitive_names": ("s",), "provenance": Provenance("toy", "made"),
    }  # fmt: skip
    with pytest.raises(ValueError, match=message):
        Dataset(**(given_ | change))


# Loading by name ----------------------------------------------------------------------------------


@pytest.fixture
def folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Folders:
    """Return a data folder with an invented adult.data, which the recipe for all rows expects."""
    (tmp_path / "adult").mkdir()
    path = raw.adult(tmp_path / "adult" / "adult.data")
    file = replace(_adult.FILE, sha256=(sha256_of(path),))
    read = partial(_adult.read, keep_missing=True)
    source = Source("official", file, read, (4,), read(path).columns.shape[1] - 1)
    monkeypatch.setitem(_loading.RECIPES, "adult", replace(_adult.RECIPE, sources=(source,)))
    return Folders(tmp_path, tmp_path / "cache")


def test_a_subsample_is_that_of_its_seed_and_keeps_rows_together(folders: Folders) -> None:
    whole = load_dataset("adult", folders=folders, download=False)
    np.testing.assert_array_equal(whole.weights, [1000, 2000, 3000, 1500])
    for seed in range(3):
        part = load_dataset("adult", folders=folders, download=False, n=3, random_state=seed)
        rows = np.random.RandomState(seed).choice(4, 3, replace=False)
        for name in ("X", "s", "y", "weights"):
            np.testing.assert_array_equal(getattr(part, name), getattr(whole, name)[rows])
        assert part.provenance.steps[-1] == ("3 drawn without replacement", 3)
    with pytest.raises(ValueError, match="n is 5, but adult has only 4 rows"):
        load_dataset("adult", folders=folders, download=False, n=5)
    source = replace(_loading.RECIPES["adult"].sources[0], counts=(5,))
    with pytest.raises(FormatError, match="expected 5 rows"):
        _loading.load_recipe(
            "adult", replace(_adult.RECIPE, sources=(source,)), folders=folders, download=False
        )
