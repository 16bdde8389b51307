"""A bound with everything that it assumes, and what all bounds check."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

INDEPENDENT = "The rows are independent draws from one distribution."
FIXED = "The {what} fixed before these rows were seen, so not trained, chosen or tuned on them."


@dataclass(frozen=True)
class DependenceBound:
    """An upper bound on a measure of dependence, with everything that it assumes.

    Attributes
    ----------
    bound : float
        At least the population value, with probability 1 − ``delta`` over the rows.
    estimate : float
        The sample value that the bound starts from: GDP over the groups, or HSIC.
    measure : str
        What is bounded, in words.
    delta : float
        Largest probability that the bound is too small.
    n : int
        Number of rows.
    candidates : int
        Number of models among which the rows may have chosen.
    method : str
        ``"difference"`` (McDiarmid) or ``"variance"`` (Bernstein), whichever was smaller.
    assumptions : tuple of str
        What must hold. The bound claims nothing if one of them fails.
    slack : float
        The part of the bound that more rows would make smaller (for HSIC, of the bound on √HSIC).
    values : int
        Number of groups of the attribute among the rows; 0 for HSIC.
    floor : float
        What would be left of the bound with infinitely many rows and this estimate.
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

    @property
    def own_values(self) -> bool:
        """True if most rows have a value of the attribute of their own, so that the groups say nothing."""
        return 2 * self.values > self.n

    def rows_needed(self, threshold: float) -> int | None:
        """Return a number of rows that would bring the bound to ``threshold`` if the estimate stayed as it is.

        None means that no number would. The slack falls at least as fast as 1/√n, so the number may be too large.

        Examples
        --------
        >>> scores = np.tile([0.3, 0.7], 500)
        >>> found = gdp_bound(scores, sensitive_features=np.repeat([0, 1], 500))
        >>> found.bound > 0.03, found.rows_needed(0.03)
        (True, 4707)
        """
        left = threshold - self.floor
        if self.measure == "HSIC":
            left = math.sqrt(max(threshold, 0.0)) - math.sqrt(self.floor)
        return None if left <= 0 else max(2, math.ceil(self.n * (self.slack / left) ** 2))

    def __float__(self) -> float:
        return self.bound

    def __str__(self) -> str:
        share = f"{100 * (1 - self.delta):.6g}"
        lines = [
            f"With {share} % confidence {self.measure} is at most {self.bound:.4f} (sample: {self.estimate:.4f})."
        ]
        return "\n".join([*lines, "This assumes:", *(f"- {line}" for line in self.assumptions)])


def check_delta(delta: float, candidates: int) -> None:
    if not 0.0 < delta < 1.0:
        raise ValueError(f"delta is {delta}: it must lie between 0 and 1.")
    if (
        isinstance(candidates, bool)
        or not isinstance(candidates, int | np.integer)
        or candidates < 1
    ):
        raise ValueError(f"candidates is {candidates!r}: it must be a positive whole number.")
