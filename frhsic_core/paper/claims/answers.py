"""What a query of the ledger answers, and the register of queries, which claims name.

An experiment registers its own queries with :func:`query`, beside its tables. Where the paper prints a mean over five
splits and we have 25, the interval of an answer says where another mean over five splits would lie
(:func:`predicted`); where it prints a single run, where another run would lie (:func:`one_run`).
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache, wraps
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
WIDTH = 2.0
# The λ of both protocols, the same nine for every method: the authors' sweep has these for all of its methods (and nine
# more for FRHSIC), the main table of the book has them too. The text names five of them.
FULL_GRID = "full"


@dataclass(frozen=True)
class Answer:
    """Our value for a claim.

    ``values`` are by protocol, or under ``"any"`` where there is one value for both; ``intervals`` say for the same
    keys where a mean over as many runs as the paper's would lie. ``why`` says why the claim cannot be judged, and is
    empty where it can be; ``note`` is what a reader should know beside the numbers.
    """

    values: dict[str, Any] = field(default_factory=dict)
    intervals: dict[str, Interval] = field(default_factory=dict)
    why: str = ""
    note: str = ""


class NotRun(Exception):
    """The rows that a query needs are not stored."""


Query = Callable[..., Answer]
QUERIES: dict[str, Query] = {}


def query(function: Query) -> Query:
    """Enter a function in ``QUERIES`` under its own name; without the rows it needs, its answer says so."""
    if function.__name__ in QUERIES:
        raise ValueError(f"There are two queries called {function.__name__!r}.")

    @wraps(function)
    def answered(*args: Any, **kwargs: Any) -> Answer:
        try:
            return function(*args, **kwargs)
        except NotRun as error:
            return Answer(why=str(error))

    QUERIES[function.__name__] = answered
    return answered


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


def joined(*notes: str) -> str:
    """Return the notes that are not empty as one."""
    return "; ".join(note for note in notes if note)


def weights(splits: int, runs: int) -> np.ndarray:
    """Return the share of each split in ``DRAWS`` means over ``runs`` splits, always the same ones."""
    return np.random.default_rng(0).multinomial(runs, np.full(splits, 1.0 / splits), DRAWS) / runs


def predicted(draws: np.ndarray, *, runs: int, splits: int) -> Interval:
    """Return where another mean over ``runs`` splits would lie, from bootstrap draws of such means."""
    draws = draws[~np.isnan(draws)]
    if draws.size < 2:
        return math.nan, math.nan
    # The bootstrap's spread is that of the sample with divisor n.
    spread = draws.std(ddof=1) * math.sqrt(splits / (splits - 1) * (1.0 + runs / splits))
    return float(draws.mean() - WIDTH * spread), float(draws.mean() + WIDTH * spread)


def one_run(values: np.ndarray, *, logarithm: bool = False) -> tuple[float, tuple[float, float]]:
    """Return the mean of some runs and where one further run would lie; with ``logarithm`` the geometric mean.

    Examples
    --------
    >>> one_run(np.array([1.0, 1.0, 1.0]))
    (1.0, (1.0, 1.0))
    """
    values = np.asarray(values, float)
    if logarithm:
        mean, (low, high) = one_run(np.log(values))
        return math.exp(mean), (math.exp(low), math.exp(high))
    return float(values.mean()), predicted(weights(len(values), 1) @ values, runs=1, splits=len(values))


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
