"""Decide what the cells of a column in a text file mean: numbers, truth values, dates or words.

A text file does not say what a cell is. The rule is the same for every file and every size:

- An empty cell is missing. In a column of words nothing else is: "None" can be a religion.
- In a column of numbers the words "NA", "null" and the like are missing too, and the report says
  how often each was read in this way.
- A column that has only "True" and "False" holds truth values, and one that has only dates of the
  form 1980-12-31 holds dates.
- Cells that look like numbers to a person and not to a program are an error.
"""

from __future__ import annotations

import numpy as np
import pandas as pd

# In small letters. These words stand for a missing value in a column of numbers.
MISSING_WORDS = frozenset(
    {
        "#n/a",
        "#n/a n/a",
        "#na",
        "-1.#ind",
        "-1.#qnan",
        "-nan",
        "1.#ind",
        "1.#qnan",
        "<na>",
        "n/a",
        "na",
        "nan",
        "none",
        "null",
    }
)
_TRUTH = {"true": True, "false": False}
_QUOTED_NUMBER = r"""=?\s*["'’]+\s*[-+]?\d[\d.,]*\s*["'’]*"""
_PROGRAM_NUMBER = r"[-+]?(?:0[xX][0-9a-fA-F]+|\d+(?:_\d+)+)"  # 0x3e and 1_000
_ISO_DATE = r"\d{4}-\d{2}-\d{2}(?:[T ].*)?"
_OTHER_DATE = r"\d{1,2}[./-]\d{1,2}[./-]\d{2,4}|\d{4}[./]\d{1,2}[./]\d{1,2}"
_THOUSANDS = r"[-+]?[1-9]\d{0,2}(?:\.\d{3})+"
_POINT_AND_THOUSAND = 1e-3  # the last of three digits after the point


def read_cells(column: pd.Series, name: str) -> tuple[pd.Series, str]:
    """Return the meaning of the cells of one column, and a note about missing values or "".

    Parameters
    ----------
    column : Series
        Numbers, or cells as they are written, or both (from different parts of one file).
    name : str
        Name of the column in messages.

    Examples
    --------
    >>> read_cells(pd.Series(["1.5", "", "NA"]), "age")[0].tolist()
    [1.5, nan, nan]
    >>> read_cells(pd.Series(["Muslim", "", "None"]), "religion")[0].tolist()
    ['Muslim', nan, 'None']
    """
    if pd.api.types.is_numeric_dtype(column) and not pd.api.types.is_bool_dtype(column):
        return column, ""
    text = column.astype("string").str.strip()
    text = text.mask(text == "")
    numbers = pd.to_numeric(text, errors="coerce").astype(np.float64)
    is_word = (text.notna() & np.isnan(numbers)).to_numpy(dtype=bool)
    if not is_word.any():
        return numbers, ""
    words = text[is_word]
    if is_word.sum() == text.notna().sum():
        return _read_words(text, words, name), ""
    if not words.str.lower().isin(MISSING_WORDS).all():
        return numbers.astype(object).where(~is_word, text), ""
    return numbers, _about_missing(words, name)


def _about_missing(words: pd.Series, name: str) -> str:
    counts = words.value_counts()
    shown = ", ".join(f"{word!r} ({count:,})" for word, count in counts.head(5).items())
    more = ", …" if len(counts) > 5 else ""
    return (
        f"{name} is a column of numbers; in {len(words):,} rows it has a word that was read as a "
        f"missing value: {shown}{more}."
    )


def _read_words(text: pd.Series, words: pd.Series, name: str) -> pd.Series:
    """Return truth values, dates or words of a column that has no number."""
    truth = words.str.lower().map(_TRUTH)
    if truth.notna().all():
        return truth.astype(object).reindex(text.index)
    distinct = pd.Series(words.unique())
    _refuse_hidden_numbers(distinct, name)
    if distinct.str.fullmatch(_ISO_DATE).all():
        return _read_dates(words, name).reindex(text.index)
    spelled = truth.map({True: "True", False: "False"})  # alike in every part of a long file
    return spelled.where(truth.notna(), words).astype(object).reindex(text.index)


def _refuse_hidden_numbers(distinct: pd.Series, name: str) -> None:
    example = distinct.iloc[0][:40]
    if distinct.str.fullmatch(_QUOTED_NUMBER).all():
        raise ValueError(
            f"{name!r} has numbers inside quotes, such as {example}: write them without quotes."
        )
    if distinct.str.fullmatch(_PROGRAM_NUMBER).all():
        raise ValueError(
            f"{name!r} has numbers as a program writes them, such as {example}: write decimals."
        )
    if distinct.str.fullmatch(_OTHER_DATE).all():
        raise ValueError(
            f"{name!r} has dates, such as {example}: write them as 1980-12-31, or write the age."
        )


def _read_dates(words: pd.Series, name: str) -> pd.Series:
    try:
        return pd.to_datetime(words, format="ISO8601", utc=True).dt.tz_localize(None)
    except (ValueError, OverflowError):
        dates = pd.to_datetime(words, format="ISO8601", utc=True, errors="coerce")
        example = words[dates.isna()].iloc[0][:40]
        raise ValueError(
            f"{name!r} has a date that does not exist, {example!r}: write dates as 1980-12-31."
        ) from None


def may_have_thousands(numbers: pd.Series) -> bool:
    """Return whether numbers could have been written with points that separate thousands.

    "950" and "1.200" are read as 950 and 1.2, and "29.000" as 29. Then no number reaches 1000,
    those that are not whole have at most three digits after the point, and none of them is less
    than one.
    """
    if not pd.api.types.is_float_dtype(numbers):
        return False
    values = np.abs(numbers.to_numpy(dtype=np.float64))
    values = values[np.isfinite(values)]
    if len(values) == 0 or values.max() >= 1000.0:
        return False
    broken = values[values != np.rint(values)]
    if len(broken) == 0:
        return True
    if broken.min() < 1.0:
        return False
    digits = broken / _POINT_AND_THOUSAND
    return bool(np.allclose(digits, np.rint(digits), rtol=0.0, atol=1e-6))


def check_thousands(text: pd.Series, name: str) -> str:
    """Refuse cells such as "950" and "1.200", whose points separate thousands.

    If every cell is like "1.200", nothing in the column tells the two meanings apart, and the
    result is a note; otherwise it is "".
    """
    text = text.dropna().astype("string").str.strip()
    text = text[text != ""]
    has_point = text.str.contains(".", regex=False)
    grouped = text[has_point]
    if len(grouped) == 0 or not grouped.str.fullmatch(_THOUSANDS).all():
        return ""
    example = grouped.iloc[0]
    plain = example.replace(".", "")
    whole = text[~has_point]
    if len(whole) == 0:
        return (
            f"{name} is read with decimal points, such as {float(example):g} from {example!r}: if "
            f"the points separate thousands, write {plain}."
        )
    if not whole.str.fullmatch(r"[-+]?\d{1,3}").all():
        return ""
    raise ValueError(
        f"{name!r} has points that seem to separate thousands, such as {example!r} beside "
        f"{whole.iloc[0]!r}: write {plain}, or {float(example):g} if it is a decimal point."
    )
