"""What a query of the ledger answers, and the register of queries: claims name them, so they are looked up by name."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

__all__ = ["QUERIES", "Answer", "Interval", "query"]

Interval = tuple[float, float]


@dataclass(frozen=True)
class Answer:
    """Our value for a claim.

    Parameters
    ----------
    values : dict
        By protocol (``"text"``, ``"reference"``), or under ``"any"`` where there is one value for both.
    intervals : dict
        For the same keys, where a mean over as many runs as the paper's would lie.
    why : str
        Why the claim cannot be judged; empty where it can.
    note : str
        What a reader should know beside the numbers.
    """

    values: dict[str, Any] = field(default_factory=dict)
    intervals: dict[str, Interval] = field(default_factory=dict)
    why: str = ""
    note: str = ""


Query = Callable[..., Answer]
QUERIES: dict[str, Query] = {}


def query(function: Query) -> Query:
    """Enter a function in ``QUERIES`` under its own name."""
    if function.__name__ in QUERIES:
        raise ValueError(f"There are two queries called {function.__name__!r}.")
    QUERIES[function.__name__] = function
    return function
