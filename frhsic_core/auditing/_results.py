"""What an audit found about each attribute: its numbers and its curves."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np
import pandas as pd

from frhsic_core.auditing._words import number, short
from frhsic_core.bounds import DependenceBound
from frhsic_core.conditional import Curve
from frhsic_core.conditional.neighbors import GroupScan

PERMUTATIONS = 499  # of the tests of independence
KHGR_RIDGE = 0.01
# The numbers with an interval, which a threshold can be compared with.
MEASURES = (
    "gdp",
    "gdp_over_sd",
    "impact_gap",
    "equal_opportunity",
    "equalized_odds",
    "calibration",
    "gdp_given",
    "max_gap",
)


@dataclass(frozen=True)
class Measure:
    """A number with its rows, and where they are known its interval and what chance gives."""

    value: float
    rows: int
    low: float = math.nan
    high: float = math.nan
    floor: float = math.nan


@dataclass(frozen=True)
class Missing:
    """Rows without a usable value in one column, and their mean score beside that of others."""

    column: str
    missing: int
    mean_missing: float | None
    mean_known: float | None


@dataclass(frozen=True)
class AttributeAudit:
    """The audit of one attribute, or of several together, which has tests and effect sizes only.

    Attributes
    ----------
    name : str
        Name of the attribute.
    categories : tuple of str
        Names of its categories; empty for a numeric attribute.
    rows : int
        Number of rows with a score and a value of the attribute.
    curves : dict of str to Curve
        ``"gdp"``: E[score | S = s] with its band. With labels: ``"equal_opportunity"`` and
        ``"label_0"`` (the score among people with label 1 and 0) and ``"calibration"`` (label minus
        score). With control features: ``"gdp_given"`` (what they leave of the score). With a
        threshold: ``"selected"`` (the share of people), and with labels ``"true_positives"`` and
        ``"false_positives"``.
    numbers : dict of str to Measure
        Every number with the rows behind it, and where there are any its interval and what chance
        gives: GDP of the curves, the bound, p-values, impact ratios, effect sizes. The report, the
        table and the JSON show these.
    groups, selected_groups : DataFrame or None
        What four groups show and hide of the scores, and of the people that a threshold selects;
        None for categories.
    bound : DependenceBound or None
        An upper bound on GDP over the values of the attribute, with what it assumes.
    unbounded : str
        Why there is no bound: weights, bins such as "(20, 30]", or scores outside of [0, 1], whose
        limits are unknown.
    spread : float
        Standard deviation of the scores, with their weights.
    scan : GroupScan or None
        The largest gap of any group of people with neighboring values of the attribute.
    explained_by : dict of str to float
        How much of the attribute each control explains, and all of them together (cross-fitted R²).
    hidden : float
        The correlation of what the curve leaves of neighbors, if it hides a dependence; otherwise
        0.
    """

    name: str
    categories: tuple[str, ...] = ()
    rows: int = 0
    curves: dict[str, Curve] = field(default_factory=dict)
    numbers: dict[str, Measure] = field(default_factory=dict)
    groups: pd.DataFrame | None = None
    selected_groups: pd.DataFrame | None = None
    bound: DependenceBound | None = None
    unbounded: str = ""
    spread: float = math.nan
    scan: GroupScan | None = None
    explained_by: dict[str, float] = field(default_factory=dict)
    hidden: float = 0.0

    @property
    def control_r2(self) -> float:
        """The largest part of the attribute that a control, or all of them, explain."""
        return max(self.explained_by.values(), default=0.0)

    @property
    def curve(self) -> Curve:
        """The curve of the mean score along the attribute."""
        return self.curves["gdp"]

    @property
    def gdp(self) -> float:
        """The mean distance between the mean score at one value and the overall mean."""
        return self.curve.gdp

    @property
    def interval(self) -> tuple[float, float]:
        """The interval of GDP."""
        return self.curve.gdp_low, self.curve.gdp_high

    @property
    def floor(self) -> float:
        """What chance alone gives for GDP."""
        return self.curve.floor

    @property
    def pvalue(self) -> float:
        """The p-value of the test of independence."""
        return self.numbers["pvalue"].value

    def value_name(self, s: float) -> str:
        """Return a value of the attribute as a reader knows it: a category, or a number."""
        if self.categories:
            return short(self.categories[int(s)])
        size = max(abs(self.curve.s[0]), abs(self.curve.s[-1]))
        if float(s).is_integer() or size >= 1e9:
            if abs(s) >= 10_000 and size < 1e9:
                return f"{s:,.0f}"
            return f"{s:g}"
        return number(s, unit=float(np.ptp(self.curve.s[self.curve.inside])) or 1.0)

    def range_name(self, first: float, last: float) -> str:
        """Return a range of values, or the one value that it is."""
        if first == last:
            return self.value_name(first)
        return f"{self.value_name(first)} to {self.value_name(last)}"

    def group_names(self, groups: pd.DataFrame) -> list[str]:
        """Return the range of each group of a table, or its one value."""
        ends = zip(groups.start, groups.end, strict=True)
        return [self.range_name(first, last) for first, last in ends]

    def selection_rates(self) -> list[tuple[str, float]]:
        """Return the groups, or the categories, with the share of people who are selected."""
        if (groups := self.selected_groups) is not None:
            return list(zip(self.group_names(groups), groups.means.tolist(), strict=True))
        curve = self.curves["selected"]
        return [
            (self.value_name(s), rate) for s, rate in zip(curve.s, curve.mean.tolist(), strict=True)
        ]
