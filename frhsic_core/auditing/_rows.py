"""Look at the rows themselves: who is left out, and which rows are copies of others.

A number below a threshold says nothing about people who are not behind it. So every group of rows
that an audit leaves out is compared with the rows that it uses, in a test at the level of the
audit.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy import stats

from frhsic_core.inputs.columns import Array, Column, Columns

_LEVELS = 20  # a column with at most so many values is compared value by value
_DRAWS = 1999
_LEAST = 20  # distinct rows without which a pattern of copies means nothing
_TINY = 0.01  # of the mean weight: a row with less hardly counts

Rows = NDArray[np.bool_]


@dataclass(frozen=True)
class LeftOut:
    """Rows that an audit leaves out, compared with those that it uses.

    Attributes
    ----------
    column : str
        The column that is the reason.
    reason : str
        ``"missing"``, ``"zero"`` (a weight of zero) or ``"tiny"`` (a weight below 1 % of the mean
        weight).
    rows : int
        Number of such rows.
    compared : str
        The column in which they are compared with the others.
    mean_left_out, mean_used : float or None
        Means of this column; None for categories.
    pvalue : float
        Of a test whether both have the same distribution.
    differs : bool
        Whether the test rejects at the level of the audit, divided by the number of these tests.
    """

    column: str
    reason: str
    rows: int
    compared: str
    mean_left_out: float | None
    mean_used: float | None
    pvalue: float
    differs: bool


@dataclass(frozen=True)
class Copies:
    """Rows that are equal in every column that the audit reads.

    Attributes
    ----------
    rows, distinct : int
        Number of rows, and of different rows among them.
    times : int
        How often most rows occur, if that is a sign of a table that was pasted several times;
        otherwise 1.
    """

    rows: int
    distinct: int
    times: int

    @property
    def pasted(self) -> bool:
        """Whether most rows occur equally often, and more than once."""
        return self.times > 1


def left_out(columns: Columns, alpha: float, random_state: int) -> tuple[LeftOut, ...]:
    """Compare each group of rows that the audit leaves out with the rows that it uses."""
    compared = (columns.score, *columns.sensitive)
    found = []
    for column, reason, rows in _reasons(columns):
        for other in compared:
            used = columns.usable & column.known & ~rows
            if other is not column:
                entry = _compare(other, rows, used, column.name, reason, random_state)
                if entry is not None:
                    found.append(entry)
    level = alpha / max(len(found), 1)
    return tuple(replace(entry, differs=entry.pvalue <= level) for entry in found)


def _reasons(columns: Columns) -> list[tuple[Column, str, Rows]]:
    """Return why rows are left out: the column, the reason and the rows."""
    found = [(column, "missing", ~column.known) for column in columns.every()]
    if columns.weight is not None:
        weight = np.nan_to_num(columns.weight.values)
        positive = weight > 0.0
        tiny = positive & (weight < _TINY * weight[positive].mean())
        zero = columns.weight.known & (weight == 0.0)
        found += [(columns.weight, "zero", zero), (columns.weight, "tiny", tiny)]
    return [entry for entry in found if entry[2].any()]


def _compare(
    other: Column, rows: Rows, used: Rows, column: str, reason: str, random_state: int
) -> LeftOut | None:
    """Compare one column between rows left out and rows used; None if one has no value."""
    first = other.values[rows & other.known]
    second = other.values[used & other.known]
    if len(first) == 0 or len(second) == 0:
        return None
    if other.categories:
        means: tuple[float | None, float | None] = (None, None)
    else:
        means = (float(first.mean()), float(second.mean()))
    return LeftOut(
        column=column,
        reason=reason,
        rows=int(rows.sum()),
        compared=other.name,
        mean_left_out=means[0],
        mean_used=means[1],
        pvalue=two_sample_pvalue(first, second, random_state=random_state),
        differs=False,
    )


def two_sample_pvalue(first: Array, second: Array, *, random_state: int = 0) -> float:
    """Return the p-value of a test whether two samples have the same distribution.

    Few values are compared by their counts, with the distribution of χ² over the ways to draw the
    first sample; many values by the test of Kolmogorov and Smirnov.

    Examples
    --------
    >>> two_sample_pvalue(np.repeat(1.0, 30), np.repeat([1.0, 2.0], 30)) < 0.01
    True
    >>> two_sample_pvalue(np.arange(30.0), np.arange(30.0))
    1.0
    """
    values, place = np.unique(np.concatenate([first, second]), return_inverse=True)
    if len(values) == 1:
        return 1.0
    if len(values) > _LEVELS:
        # A warning says that a sample is too large for the exact distribution; the other one is
        # accurate there.
        return float(stats.ks_2samp(first, second, method="auto").pvalue)
    counts = np.bincount(place.reshape(-1))
    own = np.bincount(place.reshape(-1)[: len(first)], minlength=len(values))
    expected = counts * len(first) / counts.sum()
    generator = np.random.default_rng(random_state)
    draws = generator.multivariate_hypergeometric(
        counts, len(first), size=_DRAWS, method="marginals"
    )
    distance = ((own - expected) ** 2 / expected).sum()
    distances = ((draws - expected) ** 2 / expected).sum(1)
    as_far = int((distances >= distance * (1.0 - 1e-9)).sum())
    return (1.0 + as_far) / (1.0 + _DRAWS)


def find_copies(columns: Columns) -> Copies:
    """Look for rows that are equal in every column, and for a table that was pasted several times.

    Among different people the numbers of equal rows vary at least as much as Poisson's
    distribution, in which at most 37 % of the rows have the same number of twins, or else all are
    different. If more than half of the rows occur the same number of times, at least twice, or all
    numbers have a common divisor, somebody copied them.
    """
    used = columns.usable
    table = pd.DataFrame({k: column.values[used] for k, column in enumerate(columns.every())})
    hashes = pd.util.hash_pandas_object(table, index=False).to_numpy()
    times = np.unique(hashes, return_counts=True)[1]
    return Copies(len(table), len(times), _pasted(times))


def _pasted(times: NDArray[np.intp]) -> int:
    """Return how often a table was pasted, from how often its rows occur; 1 if it was not."""
    repeats, distinct = np.unique(times, return_counts=True)
    share = repeats * distinct / times.sum()
    most = int(np.argmax(share))
    if repeats[most] > 1 and share[most] > 0.5 and distinct[most] >= _LEAST:
        return int(repeats[most])
    if len(times) >= _LEAST:
        return int(np.gcd.reduce(times))
    return 1


def effective_rows(weight: Array) -> float:
    """Return Kish's effective number: so many rows of equal weight have means that are as sure.

    Examples
    --------
    >>> effective_rows(np.array([1.0, 1.0, 0.0])), round(effective_rows(np.array([9.0, 1.0])), 2)
    (2.0, 1.22)
    """
    weight = weight / weight.max()
    return float(weight.sum() ** 2 / (weight**2).sum())
