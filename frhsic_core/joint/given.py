"""Read what is conditioned on: groups of rows, continuous columns, or both.

Conditioning on C and on a one-to-one function of C is the same. Labels are therefore read as codes of groups, and a
continuous column as the normal scores of its ranks: an outlier of C then has no more influence than another row.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from scipy.special import ndtri
from scipy.stats import rankdata
from torch import Tensor

from frhsic_core.arrays import ArrayLike

# A numeric column with at most this many values, of at least so many rows each on average, is a set of labels.
LABELS = 20
ROWS_PER_LABEL = 5


@dataclass(frozen=True)
class Given:
    """The variable C in Z ⟂ S | C for n rows.

    Attributes
    ----------
    codes : Tensor
        ``(n,)``, long: the group of each row by its discrete columns; zero if there is none.
    numbers : Tensor
        ``(n, q)``, float64: normal scores of the continuous columns; q is zero if all columns are discrete.
    """

    codes: Tensor
    numbers: Tensor

    @property
    def discrete(self) -> bool:
        """Whether C is a label, so that rows with equal C form groups."""
        return self.numbers.shape[1] == 0

    @property
    def mixed(self) -> bool:
        """Whether there are groups beside continuous columns."""
        return not self.discrete and bool((self.codes != 0).any())

    @property
    def rows(self) -> Tensor:
        """``(n, q + 1)``, float64: the normal scores, then the code of the group."""
        return torch.cat([self.numbers, self.codes.unsqueeze(-1).double()], -1)

    @classmethod
    def of_rows(cls, rows: Tensor) -> Given:
        """Return what ``rows`` was made of."""
        return cls(rows[:, -1].long().cpu(), rows[:, :-1].double().cpu())

    def groups(self) -> list[Tensor]:
        """Return the rows of each group, in their order."""
        order = torch.argsort(self.codes, stable=True)
        return list(order.split(torch.bincount(self.codes).tolist()))


def read_given(given: ArrayLike, n: int, *, by_type: bool = False, name: str = "given") -> Given:
    """Read labels, strings, numbers or a table of them, ``(n,)`` or ``(n, columns)``.

    A column of strings, booleans, categories or other objects is discrete. A column of numbers is discrete if it has
    at most ``LABELS`` values with ``ROWS_PER_LABEL`` rows each on average, and continuous otherwise. Several discrete
    columns form one group for each combination of values. ``by_type`` looks at the type instead of the values: whole
    numbers are discrete and floating-point numbers are continuous.

    Examples
    --------
    >>> read_given(["a", "b", "a"], 3).codes
    tensor([0, 1, 0])
    >>> read_given(torch.arange(100) % 2, 100).discrete, read_given(torch.arange(100) / 7, 100).discrete
    (True, False)
    """
    if isinstance(given, Given):
        return given
    codes = np.zeros(n, dtype=np.int64)
    numbers = []
    for column in _columns(given, n, name):
        values, whole = _values(column, name)
        unique, inverse = np.unique(values, return_inverse=True)
        few = len(unique) <= LABELS and n >= ROWS_PER_LABEL * len(unique)
        if values.dtype.kind != "f" or len(unique) == 1 or (whole if by_type else few):
            codes = np.unique(codes * len(unique) + inverse, return_inverse=True)[1]
        else:
            numbers.append(ndtri((rankdata(values) - 0.5) / n))
    scores = np.stack(numbers, axis=1) if numbers else np.zeros((n, 0))
    return Given(torch.as_tensor(codes), torch.as_tensor(scores))


def _columns(given: ArrayLike, n: int, name: str) -> list[Any]:
    if isinstance(given, Tensor):
        given = given.detach().cpu().numpy()
    if hasattr(given, "columns"):  # a DataFrame: each column keeps its type
        columns = [given.iloc[:, i] for i in range(given.shape[1])]
        rows = len(given)
    elif hasattr(given, "iloc"):
        columns, rows = [given], len(given)
    else:
        array = np.asarray(given)
        if array.ndim not in (1, 2):
            raise ValueError(f"{name} has shape {array.shape}: pass one row per sample, (n,) or (n, columns).")
        columns, rows = ([array] if array.ndim == 1 else list(array.T)), len(array)
    if rows != n:
        raise ValueError(f"{name} has {rows} rows but z has {n}: both need one row per sample.")
    if not columns:
        raise ValueError(f"{name} has no columns: at least one is needed.")
    return columns


def _values(column: Any, name: str) -> tuple[np.ndarray, bool]:
    """Return numbers as float64 and everything else as codes, and whether the type is one of whole numbers."""
    import pandas as pd

    series = pd.Series(column)
    if bool(series.isna().any()):
        raise ValueError(f"{name} has {int(series.isna().sum())} missing values: drop those rows or name a category.")
    if pd.api.types.is_bool_dtype(series) or not (
        pd.api.types.is_numeric_dtype(series) or pd.api.types.is_datetime64_any_dtype(series)
    ):
        return np.asarray(pd.factorize(series)[0]), True
    numbers = series.astype("int64") if pd.api.types.is_datetime64_any_dtype(series) else series
    values = numbers.to_numpy(dtype=np.float64)
    if not np.isfinite(values).all():
        raise ValueError(f"{name} has infinite values: drop those rows first.")
    return values, pd.api.types.is_integer_dtype(series)
