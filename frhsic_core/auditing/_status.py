"""Say at once how an audit ends: each limit, or an example where none was set."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from frhsic_core.auditing._gate import Verdict, verdict_of
from frhsic_core.auditing._results import AttributeAudit
from frhsic_core.auditing._sentences import four_fifths, level, selection
from frhsic_core.auditing._words import at_most, short, with_interval

Audit = Any  # the result as a whole; its module imports this one
_VERDICTS = {
    "below": ("pass", "Below the limit"),
    "above": ("fail", "Above the limit"),
    "doubtful": ("fail", "Not accepted"),
    "inconclusive": ("open", "Open"),
}
_FOUR_FIFTHS = {
    "below": ("fail", "Below four fifths"),
    "not below": ("pass", "Not below four fifths"),
    "not clearly below or above": ("open", "Open"),
}
_EXAMPLES = {"scores": ("gdp", 0.05), "hard": ("gdp", 0.05), "values": ("gdp_over_sd", 0.1)}
_WOULD = {
    "below": "it would be below",
    "above": "it would be above",
    "inconclusive": "it would not be significantly different from it",
}


@dataclass(frozen=True)
class Status:
    """One line about a limit.

    Attributes
    ----------
    kind : str
        ``"pass"``, ``"fail"``, ``"open"``, or ``"none"`` if no limit was set.
    badge : str
        The same in two or three words.
    attribute : str
        What it is about.
    text : str
        The whole sentence.
    """

    kind: str
    badge: str
    attribute: str
    text: str

    def __str__(self) -> str:
        joint = " " if self.kind == "none" else ": "
        return f"{self.badge}{joint}{self.text}"


def statuses(audit: Audit) -> list[Status]:
    """Return the lines about all attributes."""
    found = []
    for attribute in audit.attributes:
        found += attribute_statuses(audit, attribute)
    return found


def attribute_statuses(audit: Audit, attribute: AttributeAudit) -> list[Status]:
    """Return a line about four fifths, and for each verdict, or for an example of a limit."""
    found = []
    if "impact_ratio_groups" in attribute.numbers:
        found.append(_of_impact(audit, attribute))
    verdicts = [one for one in audit.verdicts if one.attribute == attribute.name]
    if not verdicts:
        return [*found, _without_limit(audit, attribute)]
    return [*found, *map(_of_verdict, verdicts)]


def _of_verdict(verdict: Verdict) -> Status:
    kind, badge = _VERDICTS[verdict.outcome]
    return Status(kind, badge, verdict.attribute, str(verdict))


def _of_impact(audit: Audit, attribute: AttributeAudit) -> Status:
    kind, badge = _FOUR_FIFTHS[four_fifths(attribute.numbers["impact_ratio_groups"])]
    return Status(kind, badge, attribute.name, selection(audit, attribute))


def _without_limit(audit: Audit, attribute: AttributeAudit) -> Status:
    """Return what an example of a limit would decide."""
    measure, limit = _EXAMPLES[audit.task]
    verdict = verdict_of(audit, attribute, measure, limit)
    value = with_interval(verdict.estimate, verdict.low, verdict.high, level(audit))
    unit = " standard deviations" if measure == "gdp_over_sd" else ""
    text = (
        f"for the mean gap along {short(attribute.name)}. With a limit of {limit:g}{unit} "
        f"{_WOULD[verdict.outcome]}: {value}."
    )
    if measure == "gdp" and verdict.outcome == "below":
        text += _guarantee(attribute, limit)
    for doubt in verdict.doubts:
        text += f" But {doubt}"
    return Status("none", "No limit was set", attribute.name, text)


def _guarantee(attribute: AttributeAudit, limit: float) -> str:
    """Return whether the guaranteed bound would be below a limit, too, or with how many people."""
    bound = attribute.bound
    if bound is None or bound.own_values:
        return ""
    most = at_most(bound.bound, digits=2)
    if bound.bound <= limit:
        return f" So would the guaranteed bound, {most}."
    more = bound.more_rows(limit)
    if more is None:
        return f" The guaranteed bound, {most}, would not be, with any number of people."
    return (
        f" The guaranteed bound, {most}, would be with {more:,} more people and the same estimates."
    )
