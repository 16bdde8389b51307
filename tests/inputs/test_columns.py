"""One column has one reading, whatever holds it; what could be misread is refused."""

from __future__ import annotations

import datetime
from decimal import Decimal
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from column_kinds import dates, durations, labels, numbers, words
from scipy import sparse

from frhsic_core.inputs.arrays import as_array
from frhsic_core.inputs.columns import as_column, as_columns, read_columns, read_sample
from frhsic_core.inputs.tables import as_table

AGES = np.random.default_rng(0).integers(18, 90, 60)
GROUPS = [f"group {value % 4}" for value in AGES.tolist()]


def read(given: Any, name: str = "s") -> Any:
    """Return a column as an audit reads it."""
    (column,) = as_columns(given, argument=name, default=name, categorical=True)
    return column


@pytest.mark.parametrize("kind", numbers(AGES))
def test_numbers_are_numbers(kind: str) -> None:
    given = numbers(AGES)[kind]
    column = read(given)
    np.testing.assert_array_equal(column.values, AGES)
    assert column.categories == ()
    assert not column.labels
    values, places = read_sample(given, name="s", words=True)
    np.testing.assert_array_equal(values.reshape(-1), AGES)
    assert places == ()


@pytest.mark.parametrize("kind", labels(AGES))
def test_written_numbers_and_categories_of_numbers_are_numbers(kind: str) -> None:
    column = read(labels(AGES)[kind])
    np.testing.assert_array_equal(column.values, AGES)
    assert column.categories == ()
    assert column.labels  # as a variable that is given they are groups


@pytest.mark.parametrize("kind", words(GROUPS))
def test_words_are_categories(kind: str) -> None:
    column = read(words(GROUPS)[kind])
    assert [column.categories[int(code)] for code in column.values] == GROUPS
    assert column.categories == tuple(sorted(set(GROUPS)))
    values, places = read_sample(words(GROUPS)[kind], name="s", words=True)
    np.testing.assert_array_equal(values.reshape(-1), column.values)
    assert places == (0,)
    with pytest.raises(ValueError, match=r"has words, such as 'group 0', where numbers are needed"):
        read_sample(words(GROUPS)[kind], name="s", words=False)


@pytest.mark.parametrize("kind", dates(AGES))
def test_dates_are_years(kind: str) -> None:
    column = read(dates(AGES)[kind])
    np.testing.assert_allclose(column.values, 1970 + AGES / 365.2425, rtol=1e-15)


@pytest.mark.parametrize("kind", durations(AGES))
def test_durations_are_days(kind: str) -> None:
    np.testing.assert_array_equal(read(durations(AGES)[kind]).values, AGES)


def test_truth_values_are_numbers_and_labels() -> None:
    truth = AGES > 50
    for given in (truth, truth.tolist(), pd.Series(truth), torch.tensor(truth)):
        np.testing.assert_array_equal(read(given).values, truth)
    for given in (truth, truth.tolist(), pd.Series(truth, dtype="boolean"), torch.tensor(truth)):
        assert read(given).labels
    answers = [True, False, "maybe"] * 20  # a part of a file may have truth values only
    assert read(answers).categories == ("False", "True", "maybe")


def test_ordered_categories_of_words_keep_their_order() -> None:
    degree = pd.Categorical(["high", "low", None] * 4, categories=["low", "middle", "high"])
    column = read(degree.as_ordered())
    assert column.categories == ("low", "high")
    np.testing.assert_array_equal(column.values[:3], [1.0, 0.0, np.nan])
    assert read(degree).categories == ("high", "low")


def test_the_order_of_the_rows_does_not_change_the_codes() -> None:
    order = np.random.default_rng(1).permutation(60)
    column, moved = read(GROUPS), read([GROUPS[row] for row in order])
    assert column.categories == moved.categories
    np.testing.assert_array_equal(column.values[order], moved.values)


MISSING: dict[str, Any] = {
    "NaN": [30.0, np.nan, 40.0],
    "None": [30, None, 40],
    "NA": pd.Series([30, pd.NA, 40], dtype="Int64"),
    "NaN in an object": [30, float("nan"), Decimal(40)],
    "Decimal NaN": [Decimal(30), Decimal("NaN"), Decimal(40)],
    "infinity": [30.0, np.inf, 40.0],
    "a mask": np.ma.array([30, -999, 40], mask=[False, True, False]),
    "a mask over objects": np.ma.array(np.array([30, "?", 40], dtype=object), mask=[0, 1, 0]),
    "NaT": np.array([30, "NaT", 40], dtype="timedelta64[D]"),
    "masked NaT": np.ma.array(np.array([30, 7, 40], dtype="timedelta64[D]"), mask=[0, 1, 0]),
    "None among durations": [datetime.timedelta(30), None, datetime.timedelta(40)],
    "NaN among text": ["30", float("nan"), "40"],
    "no category": pd.Categorical([30, None, 40]),
    "a tensor": torch.tensor([30, torch.nan, 40]),
}


@pytest.mark.parametrize("kind", MISSING)
def test_a_missing_value_is_missing(kind: str) -> None:
    column = read(MISSING[kind])
    np.testing.assert_array_equal(column.values, [30.0, np.nan, 40.0])
    assert column.missing == 1
    values, _ = read_sample(MISSING[kind], name="s", words=False)
    np.testing.assert_array_equal(np.isfinite(values).reshape(-1), [True, False, True])


@pytest.mark.parametrize("missing", [None, float("nan"), pd.NA, np.datetime64("NaT", "ns")])
def test_a_missing_word_is_missing(missing: object) -> None:
    given = ["f", missing, "m"] * 4
    assert read(given).missing == 4
    assert read(given).categories == ("f", "m")
    with pytest.raises(ValueError, match="'s' has 4 missing values: drop those rows or name a"):
        read_sample(given, name="s", words=True)


REFUSED: dict[str, tuple[Any, str]] = {
    "one odd cell": ([*range(59), "unknown"], "mixes numbers and words: 1 of 60 values"),
    "one question mark": ([*map(str, range(59)), "?"], r"mixes numbers and words.*such as '\?'"),
    "a word for NaN": (["30", "nan", "40"], "mixes numbers and words: 1 of 3"),
    "separators": (["12,345.67", "1,000.00", "950"] * 9, "mixes numbers and words"),
    "only separators": (["12,345.67", "1,000.00"] * 9, "numbers that are written as text"),
    "percent": (["45 %", "50 %"] * 9, "numbers that are written as text, such as '45 %'"),
    "mostly percent": (["45 %", "50 %", "all"] * 9, "numbers that are written as text"),
    "units": (["3 rooms", "4 rooms", "5 rooms"] * 9, "numbers that are written as text"),
    "quotes": (["'62'", '"63"'] * 9, "numbers that are written as text"),
    "formulas": (['="62"', '="63"'] * 9, "numbers that are written as text"),
    "hexadecimal": (["0x1F", "0x20"] * 9, "numbers that are written as text"),
    "written dates": (["1980-01-01", "1981-12-31"] * 9, "dates that are written as text"),
    "German dates": (["1.1.1980", "31.12.1981"] * 9, "dates that are written as text"),
    "dates and words": ([datetime.date(1980, 1, 1), "never"] * 9, "mixes dates or durations"),
    "dates and numbers": ([datetime.date(1980, 1, 1), 1981] * 9, "mixes dates or durations"),
    "an identifier": ([f"P{row}" for row in range(60)], "60 distinct words.*an identifier"),
    "few people": (list("abcdefg"), "7 distinct words.*in one row only"),
    "lost digits": (
        np.arange(60) + 2**60,
        "whole numbers up to 1152921504606847035, of which the last digits would be lost",
    ),
    "lost digits in pandas": (pd.Series([2**60, 2**60 + 1], dtype="Int64"), "would be lost"),
    "lost missing values": (np.array(["a", "b", "nan"] * 9), "the text 'nan' in 9 of 27 values"),
    "complex": (np.array([1j, 2.0]), "is complex: pass the real and the imaginary part"),
    "complex cells": ([1j, None], "is complex: pass the real"),
    "a sparse tensor": (torch.eye(3).to_sparse(), "s is sparse: pass a dense one"),
    "a sparse matrix": (sparse.eye(3), "s is sparse: pass a dense one"),
    "a structured array": (np.zeros(3, dtype=[("a", "i4")]), "s is a structured array"),
    "lists in cells": (pd.Series([[1, 2], [3]]), "has lists or other collections"),
    "tuples in cells": (pd.Series([(1, 2), (3, 4)]), "has lists or other collections"),
    "dictionaries": ([{"age": 3}], "has lists or other collections"),
    "rows of different lengths": ([[1], [2, 3]], "could not be read as a table"),
    "a generator": ((row for row in range(3)), "s is a generator: pass a list or an array"),
    "a set": ({1, 2}, "s is a set: pass a list or an array"),
    "a name": ("age", "s is a str: pass a list or an array"),
    "times of a day": ([datetime.time(9), datetime.time(10)], "has times of a day"),
    "three dimensions of text": (np.full((2, 2, 2), "a"), r"shape \(2, 2, 2\)"),
    "an empty mapping": ({}, "s has no columns: pass at least one"),
    "a table without columns": (pd.DataFrame(index=range(3)), "s has no columns"),
    "columns of two lengths": ({"a": [1, 2], "b": [1, 2, 3]}, "columns with 2 and 3 rows"),
}


@pytest.mark.parametrize("kind", REFUSED)
def test_what_could_be_misread_is_refused(kind: str) -> None:
    given, text = REFUSED[kind]
    if kind == "a generator":
        given = (row for row in range(3))
    with pytest.raises((TypeError, ValueError), match=text):
        as_columns(given, argument="s", default="s", categorical=True)
    if kind == "a generator":
        given = (row for row in range(3))
    with pytest.raises((TypeError, ValueError), match=text):
        read_sample(given, name="s", words=True)


def test_whole_numbers_that_stay_apart_are_read() -> None:
    assert read(np.array([2**60, 2**61])).values.tolist() == [2.0**60, 2.0**61]
    assert read([10**400, 1, 2]).missing == 1  # larger than every float


def test_names_of_columns() -> None:
    assert list(as_table([[1, 2], [3, 4]], argument="s", default="a")) == ["a_0", "a_1"]
    assert list(as_table(pd.Series([1], name="age"), argument="s", default="a")) == ["age"]
    assert list(as_table(pd.array([1]), argument="s", default="a")) == ["a"]
    frame = pd.DataFrame([[1, 2]], columns=["a", "a"])
    with pytest.raises(ValueError, match="two columns named 'a'"):
        as_columns(frame, argument="s", default="s", categorical=True)
    with pytest.raises(ValueError, match="no columns"):
        as_columns(pd.DataFrame(index=[0]), argument="s", default="s", categorical=True)
    with pytest.raises(ValueError, match=r"s\['a'\] has 2 columns"):
        as_table({"a": [[1, 2]]}, argument="s", default="s")


def test_an_empty_column_says_so() -> None:
    for empty in ([], np.zeros(0), pd.Series([], dtype=float)):
        with pytest.raises(ValueError, match="'s' has no value in any of its 0 rows"):
            as_columns(empty, argument="s", default="s", categorical=True)
    assert as_array([], argument="s").shape == (0,)


# The positive class -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("values", "positive_class"),
    [
        (["approved", "rejected"], "approved"),
        (pd.Categorical(["approved", "rejected"], ordered=True), "approved"),
        ([1, 2], 1),
        ([1, 2], "1"),
        ([1.0, 2.0], 1),
        ([False, True], 0),
        (pd.Series([1, 2], dtype="category"), 1),
        (pd.Series([1, 2], dtype="Int64"), 1),
        (["1", "2"], 1),
    ],
)
def test_the_positive_class_is_looked_at_first(values: Any, positive_class: Any) -> None:
    column = as_column(
        pd.Series(values), name="y", categorical=False, positive_class=positive_class
    )
    assert column.values.tolist() == [1.0, 0.0]


@pytest.mark.parametrize("positive_class", ["good", 3, "yes", " 1"])
def test_a_positive_class_that_does_not_occur_is_an_error(positive_class: Any) -> None:
    label = np.tile([1, 2], 30)
    with pytest.raises(
        ValueError, match=r"'label' needs at most two values, one of them .*'1', '2'"
    ):
        read_columns(AGES / 100, AGES, label, positive_class=positive_class)


def test_scores_need_no_positive_class_where_a_label_has_it() -> None:
    label = np.tile(["good", "bad"], 30)
    good = (label == "good").astype(float)
    read = read_columns(AGES / 100, AGES, label, positive_class="good")
    np.testing.assert_array_equal(read.score.values, AGES / 100)
    np.testing.assert_array_equal(read.label.values, good)
    decisions = read_columns(good, AGES, label, positive_class="good")  # 0 and 1
    np.testing.assert_array_equal(decisions.score.values, good)
    named = read_columns(label, AGES, label, positive_class="good")
    np.testing.assert_array_equal(named.score.values, good)
    with pytest.raises(ValueError, match="'score' needs at most two values, one of them 'good'"):
        read_columns(2 - good, AGES, label, positive_class="good")  # codes 1 and 2
    with pytest.raises(ValueError, match="Leave positive_class out for numbers"):
        read_columns(AGES / 100, AGES, positive_class="good")


def test_numbers_whose_squares_are_zero_are_refused() -> None:
    assert read(AGES * 1e-140).values.max() == AGES.max() * 1e-140
    for unit in (1e-200, 1e-310, 5e-324):
        with pytest.raises(ValueError, match=r"'s' has no value above .* choose another unit"):
            read(AGES * unit)
    assert read(np.zeros(60)).values.max() == 0.0


def test_moments_of_numpy_in_a_list() -> None:
    day = np.timedelta64(1, "D")
    assert read([day, None, 3 * day]).values[[0, 2]].tolist() == [1.0, 3.0]
    found = read([np.datetime64("1970-01-01"), None, np.datetime64("1972-01-01")])
    np.testing.assert_allclose(found.values[[0, 2]], [1970.0, 1970.0 + 730 / 365.2425])


def test_ordered_words_are_labels_in_their_order() -> None:
    levels = ["low", "middle", "high"]
    column = read(pd.Series(pd.Categorical(levels * 3, levels, ordered=True)))
    assert (column.labels, column.categories) == (True, tuple(levels))
    assert column.values.tolist() == [0.0, 1.0, 2.0] * 3


def test_a_few_categories_of_one_person_are_no_identifier() -> None:
    given = [f"town {row % 8}" for row in range(40)] + ["village", "hamlet"]
    assert len(read(given).categories) == 10


def test_the_name_that_occurs_twice_is_named() -> None:
    table = pd.DataFrame(np.zeros((3, 3)), columns=["a", "b", "b"])
    with pytest.raises(ValueError, match="two columns named 'b'"):
        as_columns(table, argument="s", default="s", categorical=True)
