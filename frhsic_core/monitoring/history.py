"""What a monitor knows after each period: estimate, interval, guarantee, changes, and the verdict of a gate."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from frhsic_core.bounds.result import rounded_down, rounded_up
from frhsic_core.monitoring.windows import Batch, Windows, all_windows

STATUS = {"below": 0, "above": 1, "inconclusive": 3}


@dataclass(frozen=True)
class Change:
    """Rows that certainly do not come from the distribution of the rows before.

    Attributes
    ----------
    since : str
        The first period of the new rows.
    noticed : str
        The period in which they were enough.
    what : str
        The sentence with both numbers.
    """

    since: str
    noticed: str
    what: str


@dataclass(frozen=True)
class Period:
    """One period and what was known at its end, in the unit of the scores.

    Attributes
    ----------
    name : str
        For example ``"2025-03"``.
    rows, total : int
        Rows of this period, and of the stretch to which the guarantee belongs.
    estimate, low, high : float
        GDP of the rows of this period, and an interval for GDP of its distribution.
    since : str
        The first period of the stretch: that of the first row, or of the latest certain change.
    overall, guarantee : float
        GDP of the rows of the stretch, and the bound that holds at every look.
    at_least : float
        GDP is certainly at least this since some period of the stretch, ``at_least_since``.
    mean, mean_error : float
        The mean score of this period, and how far it can be from that of its distribution.
    attribute : float
        The mean of the attribute, if it is a number.
    moved : float
        The share of people that would have to change their group to give the shares of the first period.
    """

    name: str
    rows: int
    total: int
    estimate: float
    low: float
    high: float
    since: str
    overall: float
    guarantee: float
    at_least: float
    at_least_since: str
    mean: float
    mean_error: float
    attribute: float
    moved: float

    def outcome(self, limit: float) -> str:
        """Return ``"above"`` if GDP certainly is, ``"below"`` if the guarantee is not above the limit."""
        if self.at_least > limit:
            return "above"
        return "below" if self.guarantee <= limit else "inconclusive"


@dataclass(frozen=True)
class History:
    """All periods with all changes."""

    periods: tuple[Period, ...]
    changes: tuple[Change, ...]

    @property
    def last(self) -> Period:
        """The latest period."""
        return self.periods[-1]

    def status(self, limit: float) -> int:
        """Return the exit status of a gate, as that of an audit: 0 below, 1 above, 3 undecided."""
        return STATUS[self.last.outcome(limit)]


def history_of(
    batches: Sequence[Batch], *, delta: float, planned_rows: int, low: float, unit: float
) -> History:
    """Return what was known at the end of each period, from the batches in the order of their arrival."""
    windows = all_windows(batches, delta=delta, planned_rows=planned_rows)
    names = list(dict.fromkeys(batch.period for batch in batches))
    start = 0
    periods: list[Period] = []
    changes: list[Change] = []
    first = _shares(batches, names[0])
    for end, name in enumerate(names):
        found = _change(windows, names, start, end, low, unit)
        if found is not None:
            start, change = found
            changes.append(change)
        surest = start + int(np.argmax(windows.lower[start : end + 1, end]))
        own = [batch for batch in batches if batch.period == name]
        period = Period(
            name=name,
            rows=int(windows.rows[end, end]),
            total=int(windows.rows[start, end]),
            estimate=unit * float(windows.gap[end, end]),
            low=unit * float(windows.lower[end, end]),
            high=unit * float(windows.upper[end, end]),
            since=names[start],
            overall=unit * float(windows.gap[start, end]),
            guarantee=unit * float(windows.upper[start, end]),
            at_least=unit * float(windows.lower[surest, end]),
            at_least_since=names[surest],
            mean=low + unit * float(windows.mean[end, end]),
            mean_error=unit * float(windows.error[end, end]),
            attribute=sum(batch.attribute for batch in own) / sum(batch.rows for batch in own),
            moved=_moved(first, _shares(batches, name)),
        )
        periods.append(period)
    return History(tuple(periods), tuple(changes))


def _change(
    windows: Windows, names: Sequence[str], start: int, end: int, low: float, unit: float
) -> tuple[int, Change] | None:
    """Return the period with which the rows have certainly changed, and the sentence; None if there is none.

    Under one distribution all bounds of all windows hold together, so two that contradict each other show a change.
    """
    later = np.arange(start + 1, end + 1)
    if len(later) == 0:
        return None
    smallest = float(windows.upper[start, start : end + 1].min())
    excess = windows.lower[later, end] - smallest
    if excess.max() > 0.0:
        since = int(later[excess.argmax()])
        least = rounded_down(unit * float(windows.lower[since, end]))
        most = rounded_up(unit * smallest)
        what = f"the gap is certainly at least {least} since {names[since]}, and before it was at most {most}"
        return since, Change(names[since], names[end], what)
    before, error_before = windows.mean[start, later - 1], windows.error[start, later - 1]
    after, error_after = windows.mean[later, end], windows.error[later, end]
    excess = np.abs(after - before) - error_before - error_after
    if excess.max() <= 0.0:
        return None
    since = int(later[excess.argmax()])
    place = since - start - 1
    old, new = low + unit * before[place], low + unit * after[place]
    what = f"the mean score is {new:.4f} since {names[since]}, and before it was {old:.4f}, which is no chance"
    return since, Change(names[since], names[end], what)


def _shares(batches: Sequence[Batch], period: str) -> dict[str, float]:
    counts: dict[str, int] = {}
    for batch in batches:
        if batch.period == period:
            for group, count in batch.counts.items():
                counts[group] = counts.get(group, 0) + count
    total = sum(counts.values())
    return {group: count / total for group, count in counts.items()}


def _moved(one: dict[str, float], other: dict[str, float]) -> float:
    groups = one.keys() | other.keys()
    return 0.5 * sum(abs(one.get(group, 0.0) - other.get(group, 0.0)) for group in groups)
