"""What a query of the ledger answers, and the register of queries, which claims name.

An experiment registers its own queries with :func:`query`, beside its tables. Where the paper prints a mean over five
splits and we have 25, the interval of an answer says where another mean over five splits would lie
(:func:`predicted`); where it prints a single run, where another run would lie (:func:`one_run`).

A query also says what its answer rests on, which is the *kind* of the line (``KINDS``): a setting that our code
copied from the paper, a number measured on data or runs, or a statement that was proved or checked.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache, partial, wraps
from importlib import import_module
from typing import Any

import numpy as np
import pandas as pd

from frhsic_core.paper.experiments import query_modules
from frhsic_core.paper.runs.stored import book_folder, stored_rows

Interval = tuple[float, float]
PROTOCOLS = ("text", "reference")
DRAWS = 1000
# Splits behind a mean of the paper.
RUNS = 5
# Share of new values that an interval leaves outside on each side: that of a normal variable beyond two sd.
TAIL = math.erfc(math.sqrt(2.0)) / 2.0
# The range of n runs leaves one new run outside with probability 2/(n + 1), whatever the distribution: from this many
# runs on, that is at most a tenth.
ENOUGH_FOR_RANGE = 19
IMPLEMENTED = "implemented as printed"
MEASURED = "measured"
CHECKED = "proved or checked"
KINDS = (MEASURED, IMPLEMENTED, CHECKED)
# The λ of both protocols, the same nine for every method: the authors' sweep has these for all of its methods (and nine
# more for FRHSIC), the main table of the book has them too. The text names five of them.
FULL_GRID = "full"


@dataclass(frozen=True)
class Answer:
    """Our value for a claim.

    ``values`` are by protocol, or under ``"any"`` where there is one value for both; ``intervals`` say for the same
    keys where a mean over as many runs as the paper's would lie. ``why`` says why the claim cannot be judged, and is
    empty where it can be; ``note`` is what a reader should know beside the numbers. ``measure`` names the quantity, a
    key of ``RELEVANT`` in :mod:`frhsic_core.paper.claims.relevance`. ``level`` is the probability that an interval
    calls a value from the same distribution different.
    """

    values: dict[str, Any] = field(default_factory=dict)
    intervals: dict[str, Interval] = field(default_factory=dict)
    why: str = ""
    note: str = ""
    measure: str = "other"
    level: float = 2.0 * TAIL


class NotRun(Exception):
    """The rows that a query needs are not stored."""


Query = Callable[..., Answer]
QUERIES: dict[str, Query] = {}
KIND_OF: dict[str, str] = {}


def query(function: Query | None = None, *, kind: str = MEASURED) -> Any:
    """Enter a function in ``QUERIES`` under its own name; without the rows it needs, its answer says so.

    ``kind`` is one of ``KINDS``: what the answer rests on.
    """
    if function is None:
        return partial(query, kind=kind)
    if kind not in KINDS:
        raise ValueError(f"kind is {kind!r}: choose one of {', '.join(KINDS)}.")
    if function.__name__ in QUERIES:
        raise ValueError(f"There are two queries called {function.__name__!r}.")
    called = function

    @wraps(called)
    def answered(*args: Any, **kwargs: Any) -> Answer:
        try:
            return called(*args, **kwargs)
        except NotRun as error:
            return Answer(why=str(error))

    QUERIES[called.__name__] = answered
    KIND_OF[called.__name__] = kind
    return answered


@cache
def queries() -> dict[str, Query]:
    """Return every query by name, after importing the modules that answer them."""
    own = [f"frhsic_core.paper.claims.{name}" for name in ("settings", "stored")]
    for module in (*own, *query_modules()):
        import_module(module)
    return QUERIES


@cache
def rows_of(experiment: str, part: str = "") -> pd.DataFrame:
    """Return the stored rows of an experiment, or of one part of it.

    Raises
    ------
    NotRun
        There are none.
    """
    rows = stored_rows(experiment)
    if part and not rows.empty:
        rows = rows[rows["part"] == part]
    if rows.empty:
        raise NotRun(f"not run yet (no stored rows of {experiment!r}{f', part {part!r}' if part else ''})")
    return rows


def computed(rows: pd.DataFrame, formula: str) -> Any:
    """Return an expression of pandas over the columns of ``rows``: a number, yes or no, or the values in order.

    A column has the mean of its values, and a single value is no list.

    Examples
    --------
    >>> rows = pd.DataFrame({"n": [20, 10, 10], "error": [0.5, 1.0, 3.0]})
    >>> computed(rows, "error"), computed(rows, "n.unique()"), computed(rows[1:], "n.unique()")
    (1.5, (10.0, 20.0), 10.0)
    >>> computed(rows, "(error < 1).any()")
    True
    """
    found = rows.eval(formula, engine="python")
    if isinstance(found, pd.Series):
        found = found.mean()
    if isinstance(found, np.ndarray):
        values = tuple(sorted(map(float, found[~pd.isna(found)])))
        return values if len(values) != 1 else values[0]
    return bool(found) if isinstance(found, bool | np.bool_) else float(found)


def joined(*notes: str) -> str:
    """Return the notes that are not empty as one."""
    return "; ".join(note for note in notes if note)


def weights(splits: int, runs: int) -> np.ndarray:
    """Return the share of each split in ``DRAWS`` means over ``runs`` splits, always the same ones."""
    return np.random.default_rng(0).multinomial(runs, np.full(splits, 1.0 / splits), DRAWS) / runs


def predicted(draws: np.ndarray, *, runs: int, splits: int) -> Interval:
    """Return where another mean over ``runs`` splits would lie, from bootstrap draws of such means.

    The ends are quantiles of the draws, so that a skewed distribution has a skewed interval. They are moved away from
    the median by √(splits/(splits − 1) · (1 + runs/splits)): the draws scatter as the sample with divisor n does, and
    our own mean has an error too. A quantity that is never negative in the draws has no interval below zero.
    """
    draws = draws[~np.isnan(draws)]
    if draws.size < 2:
        return math.nan, math.nan
    low, middle, high = np.quantile(draws, [TAIL, 0.5, 1.0 - TAIL])
    stretch = math.sqrt(splits / (splits - 1) * (1.0 + runs / splits))
    lower = middle - stretch * (middle - low)
    if draws.min() >= 0.0:
        lower = max(lower, 0.0)
    return float(lower), float(middle + stretch * (high - middle))


def few_runs(values: np.ndarray, *, runs: int) -> tuple[float, Interval]:
    """Return the mean of a few runs and where the mean of ``runs`` others would lie if they were normal.

    Five runs have no quantiles to speak of: the interval is that of Student's t, not below zero for a quantity that is
    never negative.

    Examples
    --------
    >>> few_runs(np.array([1.0, 1.0, 1.0]), runs=1)
    (1.0, (1.0, 1.0))
    """
    from scipy import stats

    values = np.asarray(values, float)
    n = len(values)
    reach = float(stats.t.isf(TAIL, n - 1) * values.std(ddof=1)) * math.sqrt(1.0 / runs + 1.0 / n)
    mean = float(values.mean())
    low = mean - reach
    return mean, (max(low, 0.0) if values.min() >= 0.0 else low, mean + reach)


def one_run(values: np.ndarray, *, skewed: bool = False) -> tuple[float, Interval, float]:
    """Return the middle of some runs, where one further run would lie, and how often it would not.

    For a ``skewed`` quantity the interval is the range of the runs, which assumes no distribution, and the middle is
    the median. Otherwise, and where there are too few runs for their range, it is the interval of :func:`few_runs`.

    Examples
    --------
    >>> one_run(np.arange(24.0), skewed=True)
    (11.5, (0.0, 23.0), 0.08)
    """
    values = np.asarray(values, float)
    if skewed and len(values) >= ENOUGH_FOR_RANGE:
        return float(np.median(values)), (float(values.min()), float(values.max())), 2.0 / (len(values) + 1)
    mean, interval = few_runs(values, runs=1)
    return mean, interval, 2.0 * TAIL


@cache
def data_note(dataset: str) -> str:
    """Return how the rows behind our reference runs differ from those of the authors' runs, if they do."""
    ours = json.loads(book_folder("data_summaries", f"{dataset}-reference.json").read_text(encoding="utf-8"))
    sweep = pd.read_csv(book_folder("claims", "reference", "sweep.csv"))
    theirs = sweep[sweep["dataset"] == dataset].iloc[0]
    if (ours["n"], ours["d"]) != (theirs["n"], theirs["d"]):
        here = f"n = {ours['n']:,}, d = {ours['d']} here"
        return f"other data: {here}, {theirs['n']:,} and {theirs['d']} in the authors' runs"
    drawn = [note for note in ours["provenance"]["notes"] if "rows were drawn" in note]
    return "a different draw of 20,000 rows" if drawn else ""
