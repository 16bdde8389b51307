"""One and the same column as everything that a user may pass."""

from __future__ import annotations

import datetime
from collections.abc import Iterable
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import torch


class Polars:
    """What polars offers a reader: a conversion to pandas."""

    def __init__(self, values: np.ndarray) -> None:
        self.values = values

    def __len__(self) -> int:
        return len(self.values)

    def to_pandas(self) -> pd.Series:
        return pd.Series(self.values, name="age")


class Dask:
    """What Dask offers a reader: the values on demand."""

    def __init__(self, values: np.ndarray) -> None:
        self.values = values

    def __len__(self) -> int:
        return len(self.values)

    def compute(self) -> pd.Series:
        return pd.Series(self.values, name="age")


def arrays(x: np.ndarray) -> dict[str, Any]:
    """Return a column of small whole numbers as NumPy arrays."""
    kinds = {
        name: x.astype(name)
        for name in (
            "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64",
            "float16", "float32", "float64", "longdouble", ">i4", ">i8", ">f4", ">f8", "object",
        )
    }  # fmt: skip
    kinds["every second row"] = np.repeat(x, 2)[::2]
    kinds["one column"] = x[:, None].astype(np.float64)
    kinds["in Fortran's order"] = np.asfortranarray(x[:, None])
    kinds["masked"] = np.ma.array(x)
    kinds["masked, no value hidden"] = np.ma.array(x, mask=np.zeros(len(x), dtype=bool))
    read_only = x.astype(np.float64)
    read_only.setflags(write=False)
    kinds["read-only"] = read_only
    return kinds


def sequences(x: np.ndarray) -> dict[str, Any]:
    """Return the column as sequences of Python."""
    return {
        "list": x.tolist(),
        "tuple": tuple(x.tolist()),
        "list of lists": [[value] for value in x.tolist()],
        "list of NumPy numbers": list(x),
        "list of tensors": [torch.tensor(value) for value in x.tolist()],
        "Decimal": [Decimal(value) for value in x.tolist()],
        "Fraction": [Fraction(value) for value in x.tolist()],
        "numbers of several kinds": [
            float(value) if place % 2 else Fraction(value) for place, value in enumerate(x.tolist())
        ],
        "mapping": {"age": x},
        "mapping of a list": {"age": x.tolist()},
        "mapping of a tensor": {"age": torch.tensor(x)},
    }


def tensors(x: np.ndarray) -> dict[str, Any]:
    """Return the column as tensors."""
    kinds = {
        str(dtype): torch.tensor(x, dtype=dtype)
        for dtype in (
            torch.float16, torch.bfloat16, torch.float32, torch.float64,
            torch.int16, torch.int32, torch.int64, torch.uint8,
        )
    }  # fmt: skip
    kinds["a tensor with a gradient"] = torch.tensor(x, dtype=torch.float64, requires_grad=True)
    return kinds


def tables(x: np.ndarray) -> dict[str, Any]:
    """Return the column as objects of pandas, pyarrow and other tables."""
    series = pd.Series(x, name="age")
    decimals = [Decimal(value) for value in x.tolist()]
    return {
        "Series": series,
        "Series without a name": pd.Series(x),
        "Series of objects": series.astype(object),
        "Series of Decimal": pd.Series(decimals, name="age"),
        "DataFrame": series.to_frame(),
        "Index": pd.Index(x),
        "Int64": series.astype("Int64"),
        "UInt8": series.astype("UInt8"),
        "Float64": series.astype("Float64"),
        "array of pandas": pd.array(x, dtype="Int64"),
        "sparse Series": pd.Series(pd.arrays.SparseArray(x), name="age"),
        "int64[pyarrow]": series.astype("int64[pyarrow]"),
        "double[pyarrow]": series.astype("double[pyarrow]"),
        "decimal[pyarrow]": pd.Series(
            decimals, dtype=pd.ArrowDtype(pa.decimal128(10, 2)), name="age"
        ),
        "array of pyarrow": pa.array(x),
        "chunks of pyarrow": pa.chunked_array([x[:10], x[10:]]),
        "table of pyarrow": pa.table({"age": x}),
        "Decimal of pyarrow": pa.array(decimals),
        "polars": Polars(x),
        "Dask": Dask(x),
    }


def numbers(x: np.ndarray) -> dict[str, Any]:
    """Return every kind of a column that holds numbers."""
    return {**arrays(x), **sequences(x), **tensors(x), **tables(x)}


def labels(x: np.ndarray) -> dict[str, Any]:
    """Return the column as text or as categories of numbers: the same numbers, but labels too."""
    series = pd.Series(x, name="age")
    text = series.astype(str)
    return {
        "text": text.tolist(),
        "array of text": text.to_numpy(dtype=str),
        "bytes": text.to_numpy(dtype="S"),
        "list of bytes": [value.encode() for value in text],
        "Series of text": text,
        "text with spaces": (" " + text + " ").tolist(),
        "text with a point": (text + ".0").tolist(),
        "string": text.astype("string"),
        "string[pyarrow]": text.astype("string[pyarrow]"),
        "array of text of pyarrow": pa.array(text.tolist()),
        "categories": series.astype("category"),
        "ordered categories": pd.Series(pd.Categorical(x, ordered=True), name="age"),
        "categories in another order": pd.Series(
            pd.Categorical(x, categories=np.unique(x)[::-1], ordered=True), name="age"
        ),
        "categories with unused ones": pd.Series(pd.Categorical(x, categories=range(200))),
        "categories of text": text.astype("category"),
        "dictionary of pyarrow": pa.array(x).dictionary_encode(),
    }


def words(x: Iterable[str]) -> dict[str, Any]:
    """Return a column of words as everything that can hold words."""
    x = list(x)
    series = pd.Series(x, name="group")
    return {
        "list": x,
        "tuple": tuple(x),
        "list of lists": [[value] for value in x],
        "array": np.array(x),
        "array of objects": np.array(x, dtype=object),
        "bytes": np.array(x, dtype="S"),
        "list of bytes": [value.encode() for value in x],
        "masked": np.ma.array(x),
        "Series": series,
        "Series of objects": series.astype(object),
        "string": series.astype("string"),
        "string[pyarrow]": series.astype("string[pyarrow]"),
        "categories": series.astype("category"),
        "categories of other words": pd.Categorical(x, categories=[*sorted(set(x)), "never"]),
        "Index": pd.Index(x),
        "DataFrame": series.to_frame(),
        "mapping": {"group": x},
        "array of pyarrow": pa.array(x),
        "table of pyarrow": pa.table({"group": x}),
        "dictionary of pyarrow": pa.array(x).dictionary_encode(),
    }


def dates(days: Iterable[int]) -> dict[str, Any]:
    """Return dates as everything that can hold dates, some days after 1 January 1970."""
    first = datetime.date(1970, 1, 1)
    x = [first + datetime.timedelta(days=int(day)) for day in days]
    moments = [datetime.datetime(day.year, day.month, day.day) for day in x]
    series = pd.Series(pd.to_datetime(x), name="born")
    return {
        "array of days": np.array(x, dtype="datetime64[D]"),
        "array of nanoseconds": np.array(x, dtype="datetime64[ns]"),
        "masked": np.ma.array(np.array(x, dtype="datetime64[D]")),
        "dates": x,
        "datetimes": moments,
        "datetimes with a zone": [moment.replace(tzinfo=datetime.UTC) for moment in moments],
        "Timestamps": [pd.Timestamp(day) for day in x],
        "array of objects": np.array(x, dtype=object),
        "Series": series,
        "Series with a zone": series.dt.tz_localize("UTC"),
        "Series of dates": pd.Series(x, name="born"),
        "Series of periods": series.dt.to_period("D"),
        "Index": pd.DatetimeIndex(x),
        "timestamp[pyarrow]": series.astype("timestamp[us][pyarrow]"),
        "date32[pyarrow]": pd.Series(x, dtype=pd.ArrowDtype(pa.date32())),
        "array of pyarrow": pa.array(x),
        "categories": pd.Series(pd.Categorical(x)),
    }


def durations(days: Iterable[int]) -> dict[str, Any]:
    """Return durations as everything that can hold durations."""
    x = np.array([int(day) for day in days], dtype="timedelta64[D]")
    series = pd.Series(x, name="tenure")
    return {
        "array of days": x,
        "array of seconds": x.astype("timedelta64[s]"),
        "timedeltas": [datetime.timedelta(days=int(day)) for day in days],
        "Series": series,
        "Index": pd.TimedeltaIndex(x),
        "duration[pyarrow]": series.astype("duration[s][pyarrow]"),
    }
