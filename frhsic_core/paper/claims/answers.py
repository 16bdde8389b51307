"""What a query of the ledger answers, and the register of queries, which claims name.

An experiment registers its own queries with :func:`query`, beside its tables. An answer has our value and two
:class:`Spread`: where a number of the paper would lie, a mean over its few splits, and where our own expected value
lies, by the error of its mean over our splits. The rule (:mod:`frhsic_core.paper.claims.rules`) tests with both.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib import import_module
from typing import Any

import numpy as np
import pandas as pd
from scipy import special

from frhsic_core.paper.claims.formulas import value_of
from frhsic_core.paper.experiments import modules as experiment_modules
from frhsic_core.paper.stored import authors_file, data_summary, stored_rows

Interval = tuple[float, float]
PROTOCOLS = ("text", "reference")
DRAWS = 1000
# Splits behind a mean of the paper.
RUNS = 5
# The ends of a spread leave out on each side what a normal variable has beyond two sd.
TAIL = math.erfc(math.sqrt(2.0)) / 2.0
# Fewer runs have no quantiles to speak of: Student's t instead.
ENOUGH_FOR_QUANTILES = 19


@dataclass(frozen=True)
class Spread:
    """A distribution with its own scale on each side of the middle: what lies beyond an end has probability ``TAIL``.

    Between and beyond the ends it is Student's t with ``dof`` degrees of freedom.
    """

    low: float
    middle: float
    high: float
    dof: float = math.inf

    def beyond(self, limit: float) -> float:
        """Return the probability of values on the far side of ``limit``, seen from the middle.

        Examples
        --------
        >>> one = Spread(-2.0, 0.0, 4.0)
        >>> round(one.beyond(4.0), 4), round(one.beyond(-1.0), 4), one.beyond(0.0)
        (0.0228, 0.1587, 0.5)
        """
        distance = abs(limit - self.middle)
        half = self.half(limit)
        if distance == 0.0 or half <= 0.0:
            return 0.5 if distance == 0.0 else 0.0
        return float(special.stdtr(self.dof, distance / half * special.stdtrit(self.dof, TAIL)))

    def half(self, value: float) -> float:
        """Return the distance from the middle to the end on the side of ``value``."""
        return self.high - self.middle if value >= self.middle else self.middle - self.low

    def scaled(self, factor: float, dof: float) -> Spread:
        """Return the spread with both ends at ``factor`` times their distance from the middle."""
        low, high = (self.middle + factor * (end - self.middle) for end in (self.low, self.high))
        return Spread(low, self.middle, high, dof)


@dataclass(frozen=True)
class Answer:
    """Our value for a claim.

    ``values`` are by protocol, or under ``"any"`` where there is one value for both; ``prints`` say for the same keys
    where a number over as many runs as the paper's would lie, ``means`` where our expected value lies. ``why`` says why
    the claim cannot be judged, and is empty where it can be; ``note`` is what a reader should know beside the numbers.
    ``measure`` names the quantity, a key of ``RELEVANT`` in :mod:`frhsic_core.paper.claims.rules`. ``runs`` and
    ``splits`` are the numbers of runs behind the paper's number and ours.
    """

    values: dict[str, Any] = field(default_factory=dict)
    prints: dict[str, Spread] = field(default_factory=dict)
    means: dict[str, Spread] = field(default_factory=dict)
    why: str = ""
    note: str = ""
    measure: str = "other"
    runs: int = RUNS
    splits: int = 0


Query = Callable[..., Answer]
QUERIES: dict[str, Query] = {}


def query(function: Query) -> Query:
    """Enter a function in ``QUERIES`` under its own name."""
    if function.__name__ in QUERIES:
        raise ValueError(f"There are two queries called {function.__name__!r}.")
    QUERIES[function.__name__] = function
    return function


@cache
def queries() -> dict[str, Query]:
    """Return every query by name, after importing the modules that answer them."""
    for own in ("settings", "stored"):
        import_module(f"frhsic_core.paper.claims.{own}")
    experiment_modules()
    return QUERIES


@cache
def rows_of(experiment: str, part: str = "") -> pd.DataFrame:
    """Return the stored rows of an experiment, or of one part of it."""
    rows = stored_rows(experiment)
    return rows[rows["part"] == part] if part else rows


def computed(rows: pd.DataFrame, formula: str) -> Any:
    """Return an expression over the columns of ``rows``: a number, yes or no, or the values in order.

    A column has the mean of its values, and a single value is no list.

    Examples
    --------
    >>> rows = pd.DataFrame({"n": [20, 10, 10], "error": [0.5, 1.0, 3.0]})
    >>> computed(rows, "error"), computed(rows, "n.unique()"), computed(rows[1:], "n.unique()")
    (1.5, (10.0, 20.0), 10.0)
    >>> computed(rows, "(error < 1).any()")
    True
    """
    found = value_of(rows, formula)
    if isinstance(found, pd.Series):
        found = found.mean()
    if isinstance(found, np.ndarray):
        values = tuple(sorted(map(float, found[~pd.isna(found)])))
        return values[0] if len(values) == 1 else values
    if isinstance(found, bool | np.bool_):
        return bool(found)
    return float(found)


def joined(*notes: str) -> str:
    """Return the notes that are not empty as one."""
    return "; ".join(note for note in notes if note)


@cache
def weights(splits: int, runs: int) -> np.ndarray:
    """Return the share of each split in ``DRAWS`` means over ``runs`` splits, always the same ones."""
    return np.random.default_rng(0).multinomial(runs, np.full(splits, 1.0 / splits), DRAWS) / runs


@cache
def print_weights(splits: int, runs: int, shared: float = 0.0) -> np.ndarray:
    """Return the share of each split in ``DRAWS`` numbers as the paper would print them.

    ``shared`` is the correlation of two runs on one split. The paper's splits are our first ``runs``: its mean follows
    ours over them as far as it is shared, and has the noise of a mean over any ``runs`` splits for the rest. The shares
    of a draw sum to one; some can be negative.
    """
    own = np.where(np.arange(splits) < runs, 1.0 / runs, 0.0)
    return partly_shared(np.full(splits, 1.0 / splits), own, weights(splits, runs), shared)


def partly_shared(
    mean: np.ndarray, own: np.ndarray, fresh: np.ndarray, shared: float
) -> np.ndarray:
    """Return weights that deviate from ``mean`` as ``own`` does, as far as noise is shared, and as ``fresh`` does."""
    return mean + shared * (own - mean) + math.sqrt(1.0 - shared**2) * (fresh - mean)


def spread(
    draws: np.ndarray, *, splits: int, runs: int | None = None, shared: float = 0.0
) -> Spread:
    """Return the spread of some draws: of numbers of the paper over ``runs`` splits, or of our mean without ``runs``.

    The ends are quantiles of the draws, so that a skewed distribution has a skewed spread. They are moved away from
    the median: the draws scatter as the sample with divisor n does, our own mean has an error in what is not shared,
    and the scale is estimated (Student's t).
    """
    draws = draws[~np.isnan(draws)]
    if draws.size < 2:
        return Spread(math.nan, math.nan, math.nan)
    low, middle, high = np.quantile(draws, [TAIL, 0.5, 1.0 - TAIL])
    own_error = 0.0 if runs is None else (1.0 - shared) / (1.0 + shared) * runs / splits
    stretch = (
        -math.sqrt(splits / (splits - 1) * (1.0 + own_error))
        * float(special.stdtrit(splits - 1, TAIL))
        / 2.0
    )
    return Spread(float(low), float(middle), float(high)).scaled(stretch, splits - 1)


def mean_of_runs(
    values: np.ndarray, *, runs: int, shared: float = 0.0
) -> tuple[float, Spread, Spread]:
    """Return the mean of our runs, where a mean over ``runs`` of the paper's would lie, and where our expectation lies.

    Examples
    --------
    >>> mean, prints, means = mean_of_runs(np.array([1.0, 2.0, 3.0]), runs=3)
    >>> mean, round(prints.high - mean, 3), round(means.high - mean, 3)
    (2.0, 3.696, 2.613)
    """
    values = np.asarray(values, float)
    n = len(values)
    mean = float(values.mean())
    if n < ENOUGH_FOR_QUANTILES:
        reach = float(-special.stdtrit(n - 1, TAIL) * values.std(ddof=1))
        found = [reach * math.sqrt(share) for share in (1.0 / runs + 1.0 / n, 1.0 / n)]
        prints, means = (Spread(mean - one, mean, mean + one, n - 1) for one in found)
        return mean, prints, means
    prints = spread(print_weights(n, runs, shared) @ values, splits=n, runs=runs, shared=shared)
    return mean, prints, spread(weights(n, n) @ values, splits=n)


def answer_of_runs(
    values: Mapping[str, np.ndarray],
    *,
    runs: int,
    shared: Mapping[str, float] | None = None,
    **options: Any,
) -> Answer:
    """Answer with :func:`mean_of_runs` of our runs under each key; ``options`` are the other fields of the answer."""
    found = {
        key: mean_of_runs(one, runs=runs, shared=(shared or {}).get(key, 0.0))
        for key, one in values.items()
    }
    mean = {key: one[0] for key, one in found.items()}
    prints, means = (
        {key: one[1] for key, one in found.items()},
        {key: one[2] for key, one in found.items()},
    )
    *_, last = values.values()
    return Answer(mean, prints, means, runs=runs, splits=len(last), **options)


@cache
def data_note(dataset: str) -> str:
    """Return how the rows behind our reference runs differ from those of the authors' runs, if they do."""
    ours = data_summary(dataset, "reference")
    sweep = authors_file("sweep")
    theirs = sweep[sweep["dataset"] == dataset].iloc[0]
    if (ours["n"], ours["d"]) != (theirs["n"], theirs["d"]):
        here = f"n = {ours['n']:,}, d = {ours['d']} here"
        return f"other data: {here}, {theirs['n']:,} and {theirs['d']} in the authors' runs"
    drawn = [note for note in ours["provenance"]["notes"] if "rows were drawn" in note]
    return "a different draw of 20,000 rows" if drawn else ""
