"""Draw columns of every kind, and say which numbers they hold.

A column is drawn in four steps: its values, their unit and offset, the object that holds them, and
what spoils it. All values are multiples of 1/64 with few digits, so that units and offsets that are
powers of two change no digit.
"""

from __future__ import annotations

import datetime
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import torch
from numpy.typing import NDArray

Array = NDArray[np.float64]
Generator = np.random.Generator
GRID = 64.0
HIDDEN = -999.0  # what stands under a mask


@dataclass(frozen=True)
class Drawn:
    """A column that was drawn.

    Attributes
    ----------
    given : object
        What a user passes.
    truth : array
        The numbers that it holds, NaN where one is missing; of words, the number of the word.
    unit : float
        A power of two by which the numbers were multiplied.
    odd : bool
        Whether a cell is no number, so that the column has no right answer.
    words : bool
        Whether it has words.
    about : str
        What was drawn.
    """

    given: Any
    truth: Array
    unit: float
    odd: bool
    words: bool
    about: str

    @property
    def complete(self) -> bool:
        """Whether every cell has a value."""
        return not self.odd and bool(np.isfinite(self.truth).all())

    @property
    def single(self) -> bool:
        """Whether it is a tensor of single or half precision, in which statistics compute."""
        return isinstance(self.given, torch.Tensor) and self.given.dtype in SINGLE


SINGLE = (torch.float32, torch.float16, torch.bfloat16)


# Values -----------------------------------------------------------------------------------------


def rounded(values: Array) -> Array:
    return np.rint(values * GRID) / GRID


def one_far_row(rng: Generator, n: int) -> Array:
    values = rounded(rng.normal(size=n))
    values[-1] = 2.0 ** rng.choice([10, 20, 33, 40])
    return values


def half_ties(rng: Generator, n: int) -> Array:
    return np.where(rng.random(n) < 0.5, 3.0, rounded(rng.normal(size=n)))


FORMS: dict[str, Callable[[Generator, int], Array]] = {
    "ages": lambda rng, n: rng.integers(18, 90, n).astype(np.float64),
    "normal": lambda rng, n: rounded(rng.normal(size=n)),
    "heavy tails": lambda rng, n: rounded(np.clip(rng.standard_cauchy(n), -1e4, 1e4)),
    "four values": lambda rng, n: rng.integers(0, 4, n).astype(np.float64),
    "two values": lambda rng, n: 1.0 + 3.0 * rng.integers(0, 2, n),
    "a constant": lambda rng, n: np.full(n, 7.0),
    "half of them equal": half_ties,
    "one far row": one_far_row,
}
# Units and offsets, both powers of two; most columns have none.
PLACES = [
    *[(1.0, 0.0)] * 8, (1.0, 2.0**20), (1.0, 2.0**24), (1.0, -(2.0**40)), (2.0**-30, 0.0),
    (2.0**-30, 2.0**20), (2.0**30, 0.0), (2.0**-200, 0.0), (2.0**200, 0.0), (2.0**-600, 0.0),
    (2.0**-1060, 0.0),
]  # fmt: skip


# What holds them --------------------------------------------------------------------------------


def whole(name: str) -> Callable[[Array], Any]:
    """Return a holder of whole numbers of one type; others do not fit."""

    def hold(values: Array) -> Any:
        limits = np.iinfo(name)
        if (values != np.rint(values)).any():
            return None
        if values.min() < limits.min or values.max() > min(limits.max, 2**62):
            return None
        return values.astype(name)

    return hold


def masked(values: Array) -> np.ma.MaskedArray:
    return np.ma.array(values)


def cast(name: str) -> Callable[[Array], Any]:
    def hold(values: Array) -> Any:
        with np.errstate(over="ignore"):
            return values.astype(name)

    return hold


HOLDERS: dict[str, Callable[[Array], Any]] = {
    "float64": lambda values: values.copy(),
    "list": lambda values: values.tolist(),
    "tuple": lambda values: tuple(values.tolist()),
    "float32": cast("float32"),
    "float16": cast("float16"),
    "longdouble": cast("longdouble"),
    "other byte order": cast(">f8"),
    "int64": whole("int64"),
    "int8": whole("int8"),
    "uint16": whole("uint16"),
    "every second row": lambda values: np.repeat(values, 2)[::2],
    "one column": lambda values: values[:, None],
    "masked": masked,
    "objects": lambda values: values.astype(object),
    "Decimals": lambda values: [Decimal(value) for value in values.tolist()],
    "Fractions": lambda values: [Fraction(value) for value in values.tolist()],
    "text": lambda values: [repr(value) for value in values.tolist()],
    "categories": lambda values: pd.Series(pd.Categorical(values)),
    "ordered categories": lambda values: pd.Series(
        pd.Categorical(values, np.unique(values)[::-1], ordered=True)
    ),
    "Series": pd.Series,
    "Series of objects": lambda values: pd.Series(values.tolist(), dtype=object),
    "Float64": lambda values: pd.Series(values, dtype="Float64"),
    "DataFrame": lambda values: pd.DataFrame({"age": values}),
    "pyarrow": lambda values: pa.array(values),
    "tensor": torch.tensor,
    "tensor of float32": lambda values: torch.tensor(values, dtype=torch.float32),
    "tensor of bfloat16": lambda values: torch.tensor(values, dtype=torch.bfloat16),
    "tensor of whole numbers": lambda values: (
        None if whole("int64")(values) is None else torch.tensor(values.astype(np.int64))
    ),
}


def numbers_in(given: Any) -> Array:
    """Return the numbers that a holder holds after it has rounded them, without the library."""
    if isinstance(given, torch.Tensor):
        return given.double().numpy().reshape(-1)
    if isinstance(given, pa.Array):
        return given.to_numpy(zero_copy_only=False)
    if isinstance(given, pd.DataFrame):
        return given.iloc[:, 0].to_numpy(np.float64)
    if isinstance(given, list | tuple):
        return np.array([float(value) for value in given])
    return np.asarray(given, dtype=np.float64).reshape(-1)


# What spoils them -------------------------------------------------------------------------------

ODD = ("unknown", "12,345.67", "45 %", "1980-01-01", datetime.date(1980, 1, 1), "60+", 3 + 2j)
MISSING = (None, float("nan"), np.datetime64("NaT", "ns"), pd.NA)
SPOILS = (*["nothing"] * 16, "a missing value", "a mask", "an odd cell", "infinity")


def spoil(rng: Generator, how: str, values: Array) -> tuple[Any, Array]:
    """Return a list or an array with one cell that is missing or no number, and the truth."""
    row = int(rng.integers(len(values)))
    truth = values.copy()
    truth[row] = np.nan
    if how == "a mask":
        hidden = np.where(np.isnan(truth), HIDDEN, values)
        return np.ma.array(hidden, mask=np.isnan(truth)), truth
    cells = values.astype(object).tolist()
    if how == "infinity":
        cells[row] = float("inf")
        return np.array(cells, dtype=np.float64), truth
    choices = MISSING if how == "a missing value" else ODD
    cells[row] = choices[int(rng.integers(len(choices)))]
    as_series = rng.random() < 0.5
    return pd.Series(cells, dtype=object) if as_series else cells, truth


# Columns ----------------------------------------------------------------------------------------


def pick(rng: Generator, choices: Any) -> Any:
    """Return one of some choices, or one of the names of a table."""
    names = list(choices)
    return names[int(rng.integers(len(names)))]


def draw_numbers(rng: Generator, n: int) -> Drawn:
    """Return a column of numbers."""
    form = pick(rng, FORMS)
    unit, offset = pick(rng, PLACES)
    values = (FORMS[form](rng, n) + offset) * unit
    how = pick(rng, SPOILS)
    if n == 1 and how == "an odd cell":
        how = "nothing"  # one cell that is a word is a column of words, and nothing is odd
    about = f"{n} rows, {form}, unit {unit:g}, offset {offset:g}"
    if how != "nothing":
        given, truth = spoil(rng, how, values)
        return Drawn(given, truth, unit, how == "an odd cell", False, f"{about}, {how}")
    holder = pick(rng, HOLDERS)
    given = HOLDERS[holder](values)
    if given is None:
        holder, given = "float64", values
    return Drawn(given, numbers_in(given), unit, False, False, f"{about}, {holder}")


LEVELS = ("Muslim", "None", "Christian", "NA")
WORDS: dict[str, Callable[[list[Any]], Any]] = {
    "list": list,
    "array": lambda cells: np.array(cells, dtype=object),
    "Series": lambda cells: pd.Series(cells, dtype=object),
    "text of pandas": lambda cells: pd.Series(cells, dtype="string"),
    "categories": lambda cells: pd.Series(pd.Categorical(cells)),
    "ordered categories": lambda cells: pd.Series(
        pd.Categorical(cells, LEVELS[::-1], ordered=True)
    ),
    "pyarrow": pa.array,
}


def draw_words(rng: Generator, n: int) -> Drawn:
    """Return a column of words, some of which are missing in one of four columns."""
    codes = rng.integers(0, len(LEVELS), n).astype(np.float64)
    missing = rng.random() < 0.25
    if missing:
        codes[int(rng.integers(n))] = np.nan
    absent = pick(rng, (None, float("nan")))
    cells = [absent if np.isnan(code) else LEVELS[int(code)] for code in codes]
    holder = pick(rng, WORDS)
    if holder in ("text of pandas", "categories", "ordered categories", "pyarrow"):
        cells = [None if np.isnan(code) else LEVELS[int(code)] for code in codes]
    about = f"{n} rows of words, {holder}{', one missing' * missing}"
    return Drawn(WORDS[holder](cells), codes, 1.0, False, True, about)


def exactly(values: Array) -> Array:
    """Return numbers from their median and in a unit near their size, as a plain array.

    Whatever does not depend on unit and offset has the same value for these numbers.
    """
    moved = values - np.sort(values)[len(values) // 2]
    largest = np.abs(moved).max()
    return moved if largest == 0.0 else moved / 2.0 ** np.floor(np.log2(largest))
