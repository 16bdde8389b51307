"""Turn a column of dates into the names of periods, in an order that is that of time."""

from __future__ import annotations

import numpy as np
import pandas as pd

LENGTHS = ("day", "week", "month", "quarter", "year")
_NUMBERS = {4: "%Y", 6: "%Y%m", 8: "%Y%m%d"}


def period_names(dates: pd.Series, every: str, *, name: str) -> np.ndarray:
    """Return the period of each row, such as ``"2025-03"`` or ``"2025-W07"``.

    Examples
    --------
    >>> days = pd.Series(["2025-03-31", "2025-04-01"])
    >>> [period_names(days, every, name="date").tolist() for every in ("month", "week", "quarter")]
    [['2025-03', '2025-04'], ['2025-W14', '2025-W14'], ['2025-Q1', '2025-Q2']]
    """
    moments = _moments(dates, name)
    missing = int(moments.isna().sum())
    if missing:
        raise ValueError(
            f"{name} has {missing:,} dates that are missing or cannot be read: write them as "
            "2025-03-31."
        )
    if every == "quarter":
        quarters = moments.dt.quarter.astype(str)
        return (moments.dt.strftime("%Y") + "-Q" + quarters).to_numpy()
    form = {"day": "%Y-%m-%d", "week": "%G-W%V", "month": "%Y-%m", "year": "%Y"}[every]
    return moments.dt.strftime(form).to_numpy()


def _moments(dates: pd.Series, name: str) -> pd.Series:
    if pd.api.types.is_datetime64_any_dtype(dates):
        return dates
    if not pd.api.types.is_numeric_dtype(dates):
        return pd.to_datetime(dates, format="ISO8601", errors="coerce")
    digits = dates.map("{:.15g}".format)
    lengths = set(digits.str.len())
    if len(lengths) != 1 or not lengths <= set(_NUMBERS):
        raise ValueError(f"{name} has numbers: write dates as 2025-03-31, 20250331 or 202503.")
    return pd.to_datetime(digits, format=_NUMBERS[lengths.pop()], errors="coerce")
