"""The columns of X as numbers: categories, missing values, and scaling that a few extreme values cannot spoil.

A DataFrame may have columns of text, categories and truth values, and any X may have missing
values:

* A number stays one column. A missing value becomes the median of the training samples, and a
  column with missing values in training gets a second column that is 1 where the value is missing.
* A category becomes one column for each of its levels. A level that was not seen in training is
  zero in all of them. Missing is a level of its own if it occurs in training.

This part is our own, because the medians of scikit-learn's imputer know no sample weights.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

MOST_LEVELS = 100  # a column of text with more levels is an identifier or free text
MOST_CODES = (
    5  # words beside more numbers than this are no codes, but a mistake in a column of numbers
)

Plan = list[dict[str, Any]]
"""One entry per column of X, ``{"median", "missing"}`` for numbers and ``{"levels", "missing"}`` for categories."""


def is_categorical(column: pd.Series) -> bool:
    """Return whether a column of X has categories or words; text that reads as numbers is numbers.

    Unlike an attribute, a column of X that was declared as categories stays so if they are numbers.
    """
    if isinstance(column.dtype, pd.CategoricalDtype):
        return True
    if column.dtype.kind in "biufcmM":  # numbers, booleans, dates and durations
        return False
    kinds = pd.Series(column.dropna().unique(), dtype=object)
    is_word = pd.to_numeric(kinds, errors="coerce").isna()
    if not is_word.any():
        return False
    _require_no_odd_cells(kinds, is_word, str(column.name))
    return True


def _require_no_odd_cells(kinds: pd.Series, is_word: pd.Series, name: str) -> None:
    """Raise ``ValueError`` for a column of numbers with a few words among its distinct values.

    Codes such as 0, 1, 2, "3+" are categories.
    """
    numbers = int((~is_word).sum())
    if numbers > MOST_CODES and numbers > 0.5 * len(kinds):
        example = str(kinds[is_word].iloc[0])[:40]
        raise ValueError(
            f"column {name} of X mixes numbers and words, such as {example!r}: write missing "
            "values as None or NaN and numbers without units, or convert the column with "
            "astype('category') if its numbers are codes."
        )


def has_categories(X: Any) -> bool:
    """Return whether X is a DataFrame with a column that is not a number."""
    return isinstance(X, pd.DataFrame) and any(
        is_categorical(X.iloc[:, i]) for i in range(X.shape[1])
    )


def coded(X: pd.DataFrame) -> pd.DataFrame:
    """Return X with the number of its level for each category, for the checks that need numbers."""
    columns = [X.iloc[:, i] for i in range(X.shape[1])]
    codes = [
        pd.Series(pd.factorize(c)[0], index=X.index, name=c.name) if is_categorical(c) else c
        for c in columns
    ]
    return pd.concat(codes, axis=1)


def fit_columns(X: pd.DataFrame | np.ndarray, weights: np.ndarray | None = None) -> Plan | None:
    """Return how the columns of X become numbers, or None if all are numbers without a missing value.

    Raises
    ------
    ValueError
        A column has no value at all, or more than 100 different texts.
    """
    if isinstance(X, np.ndarray) and not np.isnan(X).any():
        return None
    frame = X if isinstance(X, pd.DataFrame) else pd.DataFrame(X)
    plan: Plan = []
    for name, column in _named(frame):
        missing = bool(column.isna().any())
        if bool(column.isna().all()):
            raise ValueError(f"column {name} of X has only missing values (NaN): drop it.")
        if is_categorical(column):
            levels = sorted(column.dropna().unique(), key=lambda value: (str(type(value)), value))
            if len(levels) > MOST_LEVELS:
                raise ValueError(
                    f"column {name} of X has {len(levels)} different texts, and at most {MOST_LEVELS} can become "
                    "columns: drop it if it is an identifier, or group its values."
                )
            plan.append({"levels": levels, "missing": missing})
        else:
            values = _numbers(column)
            kept = ~np.isnan(values)
            share = None if weights is None else weights[kept]
            plan.append(
                {"median": float(quantiles(values[kept], (0.5,), share)[0]), "missing": missing}
            )
    return plan


def columns_of(X: pd.DataFrame | np.ndarray, plan: Plan | None) -> np.ndarray:
    """Return X as numbers ``(n, columns)`` by a plan of :func:`fit_columns`."""
    if plan is None:
        return np.asarray(X, dtype=np.float64)
    frame = X if isinstance(X, pd.DataFrame) else pd.DataFrame(X)
    parts: list[np.ndarray] = []
    for entry, (_, column) in zip(plan, _named(frame), strict=True):
        gone = column.isna().to_numpy()
        if "levels" in entry:
            found = pd.Index(entry["levels"], dtype=object).get_indexer(column.astype(object))
            parts.append((found[:, None] == np.arange(len(entry["levels"]))).astype(float))
        else:
            parts.append(np.where(gone, entry["median"], _numbers(column)))
        if entry["missing"]:
            parts.append(gone.astype(float))
    return np.column_stack(parts)


def _named(frame: pd.DataFrame) -> list[tuple[str, pd.Series]]:
    return [(repr(name), frame.iloc[:, i]) for i, name in enumerate(frame.columns)]


def _numbers(column: pd.Series) -> np.ndarray:
    return pd.to_numeric(column, errors="coerce").to_numpy(dtype=np.float64, na_value=np.nan)


# Scaling ------------------------------------------------------------------------------------------


def quantiles(
    values: np.ndarray, shares: tuple[float, ...], weights: np.ndarray | None = None
) -> np.ndarray:
    """Return quantiles that are sample values; a sample of weight two counts as two samples.

    Examples
    --------
    >>> quantiles(np.array([3.0, 1.0, 2.0]), (0.5,)).item()
    2.0
    >>> quantiles(np.array([3.0, 1.0, 2.0]), (0.5,), np.array([5.0, 1.0, 1.0])).item()
    3.0
    """
    order = values.argsort(kind="stable")
    total = np.cumsum(np.ones(len(values)) if weights is None else weights[order])
    # Rounding of the sum must not move a quantile to the next value.
    places = np.searchsorted(total, np.asarray(shares) * total[-1] * (1 - 1e-12))
    return values[order][places]


def fit_scaling(x: np.ndarray, weights: np.ndarray | None = None) -> tuple[np.ndarray, np.ndarray]:
    """Return offset and scale of each column.

    They are the median and twice the standard deviation of a normal distribution with the same
    interquartile range, or twice the standard deviation where half of the values are equal. The
    scale of a constant column is 1.
    """
    first, median, third = np.stack(
        [quantiles(column, (0.25, 0.5, 0.75), weights) for column in x.T], axis=1
    )
    mean = np.average(x, axis=0, weights=weights)
    # Squares of large numbers leave the range: divide by a power of two first, which is exact.
    unit = np.exp2(np.frexp(np.abs(x - mean).max(axis=0))[1])
    variance = np.average(((x - mean) / unit) ** 2, axis=0, weights=weights)
    deviation = unit * np.sqrt(variance)
    spread = np.where(third > first, (third - first) / 1.349, deviation)
    return median, np.where(spread > 0, 2.0 * spread, 1.0)


def scaled(x: np.ndarray, offset: np.ndarray, scale: np.ndarray) -> np.ndarray:
    """Return the input of the encoder: the inverse hyperbolic sine of ``(x − offset)/scale``.

    The inverse hyperbolic sine is the identity near zero and a logarithm far from it, so an extreme
    value neither squeezes the others together nor dominates them.
    """
    return np.arcsinh((x - offset) / scale)
