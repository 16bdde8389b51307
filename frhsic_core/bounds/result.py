"""A bound with everything that it assumes, how it is printed, and how many rows a smaller one needs."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np

INDEPENDENT = "The rows are independent draws from one distribution."
FIXED = "The {what} fixed before these rows were seen, so not trained, chosen or tuned on them."
ALWAYS = (
    "The bound holds at every number of rows at once, so that you may look as often as you like. "
    "It is tuned to {rows:,} rows, a number that was fixed before the first row was seen."
)
_MOST_ROWS = 2**50  # more rows than anybody will ever have


class Projection(Protocol):
    """What a bound would be with another number of rows and the same estimates."""

    def bound(self, n: int) -> float:
        """Return the bound at n rows."""
        ...


@dataclass(frozen=True)
class DependenceBound:
    """An upper bound on a measure of dependence, with everything that it assumes.

    Attributes
    ----------
    bound : float
        At least the population value, with probability 1 − ``delta`` over the rows.
    estimate : float
        The sample value that the bound starts from: GDP over the groups, HSIC or EIPM.
    measure : str
        What is bounded, in words.
    delta : float
        Largest probability that the bound is too small.
    n : int
        Number of rows.
    candidates : int
        Number of models among which the rows may have chosen.
    method : str
        ``"difference"`` (McDiarmid) or ``"variance"`` (Bernstein).
    assumptions : tuple of str
        What must hold. The bound claims nothing if one of them fails.
    slack : float
        The part of the bound that more rows would make smaller (for HSIC, of the bound on √HSIC).
    floor : float
        What would be left of the bound with infinitely many rows and this estimate.
    values : int
        Number of groups of the attribute among the rows; 0 for HSIC.
    anytime : bool
        Whether the bound holds for all numbers of rows at once.
    """

    bound: float
    estimate: float
    measure: str
    delta: float
    n: int
    candidates: int
    method: str
    assumptions: tuple[str, ...]
    slack: float
    floor: float
    values: int = 0
    anytime: bool = False
    projection: Projection | None = field(default=None, repr=False, compare=False)

    @property
    def own_values(self) -> bool:
        """Whether most rows have a value of the attribute of their own, so that groups say nothing."""
        return 2 * self.values > self.n

    def rows_needed(self, threshold: float) -> int | None:
        """Return the fewest rows with which the bound is ``threshold``, if the estimates stay.

        None means that no number of rows would be enough. A search with the bound itself, which
        falls with the number of rows: about a hundred evaluations.

        Examples
        --------
        >>> from frhsic_core import gdp_bound
        >>> scores = np.tile([0.3, 0.7], 500)
        >>> found = gdp_bound(scores, sensitive_features=np.repeat([0, 1], 500))
        >>> found.bound > 0.02, found.rows_needed(0.02)
        (True, 2853)
        """
        if self.projection is None:
            return None
        return fewest_rows(self.projection.bound, threshold)

    def more_rows(self, threshold: float) -> int | None:
        """Return how many rows more would bring the bound to ``threshold``; None if none would."""
        needed = self.rows_needed(threshold)
        return None if needed is None else max(0, needed - self.n)

    def __float__(self) -> float:
        return self.bound

    def __str__(self) -> str:
        share = f"{100 * (1 - self.delta):.6g}"
        said = (
            f"With {share} % confidence {self.measure} is at most {rounded_up(self.bound)} "
            f"(sample: {self.estimate:.4f})."
        )
        return "\n".join([said, "This assumes:", *(f"- {line}" for line in self.assumptions)])


def fewest_rows(bound: Callable[[int], float], threshold: float) -> int | None:
    """Return the smallest n ≥ 2 with ``bound(n) <= threshold``, for a bound that falls with n.

    Examples
    --------
    >>> fewest_rows(lambda n: 1 / n, 0.001), fewest_rows(lambda n: 1 / n, 0.0)
    (1000, None)
    """
    high = 2
    while bound(high) > threshold:
        high *= 2
        if high > _MOST_ROWS:
            return None
    low = high // 2
    while high - low > 1:
        middle = (low + high) // 2
        if bound(middle) <= threshold:
            high = middle
        else:
            low = middle
    return high


def rounded_up(value: float, digits: int = 4) -> str:
    """Return a number with this many digits after the point that is not below ``value``.

    Printed with the usual rounding, "at most 0.1234" could be smaller than the bound, and a bound
    of .00004 would be "at most 0.0000". The comparison with the printed number decides.

    Examples
    --------
    >>> rounded_up(0.12341), rounded_up(0.00004), rounded_up(0.25), rounded_up(0.0)
    ('0.1235', '0.0001', '0.2500', '0.0000')
    """
    if not math.isfinite(value):
        return f"{value:.{digits}f}"
    text = f"{value:.{digits}f}"
    if float(text) < value:
        text = f"{float(text) + 10.0**-digits:.{digits}f}"
    return text


def rounded_down(value: float, digits: int = 4) -> str:
    """Return a number with this many digits after the point that is not above ``value``.

    Examples
    --------
    >>> rounded_down(0.12349), rounded_down(0.25), rounded_down(-0.00004)
    ('0.1234', '0.2500', '-0.0001')
    """
    up = rounded_up(-value, digits)
    return up.removeprefix("-") if up.startswith("-") else _negative(up)


def _negative(text: str) -> str:
    return text if float(text) == 0.0 else f"-{text}"


def check_delta(delta: float, candidates: int) -> None:
    """Raise an error unless 0 < delta < 1 and the number of candidates is a positive integer."""
    if not 0.0 < delta < 1.0:
        raise ValueError(f"delta is {delta}: it must lie between 0 and 1.")
    check_count("candidates", candidates)


def check_count(name: str, count: int) -> None:
    """Raise an error unless ``count`` is a positive whole number."""
    whole = isinstance(count, int | np.integer) and not isinstance(count, bool)
    if not whole or count < 1:
        raise ValueError(f"{name} is {count!r}: it must be a positive whole number.")
