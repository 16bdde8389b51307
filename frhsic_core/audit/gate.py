"""Compare the numbers of an audit with thresholds: below, above, or not decided by the data."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

from frhsic_core.audit.results import MEASURES, Audit
from frhsic_core.audit.sentences import number, short
from frhsic_core.choices import one_of

STATUS = {"below": 0, "above": 1, "undecided": 3}


@dataclass(frozen=True)
class Threshold:
    """A largest acceptable value of one measure, for one attribute or (empty) for all of them."""

    measure: str
    value: float
    attribute: str = ""


@dataclass(frozen=True)
class Verdict:
    """One number of an audit beside its threshold."""

    threshold: Threshold
    attribute: str
    estimate: float
    low: float
    high: float

    @property
    def outcome(self) -> str:
        """``"below"`` or ``"above"`` if the whole interval is, ``"undecided"`` if it contains the threshold."""
        if self.high <= self.threshold.value:
            return "below"
        return "above" if self.low > self.threshold.value else "undecided"

    def __str__(self) -> str:
        words = {
            "below": "is below",
            "above": "is above",
            "undecided": "cannot be told from",
        }
        return (
            f"{self.threshold.measure} of {short(self.attribute)} {words[self.outcome]} the threshold "
            f"{number(self.threshold.value)}: estimate {number(self.estimate)}, interval {number(self.low)} to "
            f"{number(self.high)}."
        )


def parse_threshold(text: str) -> Threshold:
    """Read ``gdp=0.05`` or, for one attribute, ``gdp[age]=0.05``.

    Examples
    --------
    >>> parse_threshold("gdp[age]=0.05")
    Threshold(measure='gdp', value=0.05, attribute='age')
    """
    left, equals, right = text.rpartition("=")
    measure, bracket, attribute = left.strip().partition("[")
    try:
        value = float(right)
    except ValueError:
        value = math.nan
    if not equals or not (math.isfinite(value) and value >= 0) or (bracket and not attribute.endswith("]")):
        raise ValueError(f"--fail-above is {text!r}: write a measure and a number, such as gdp=0.05 or gdp[age]=0.05.")
    one_of("measure", measure, MEASURES)
    return Threshold(measure, value, attribute.removesuffix("]"))


def decide(audit: Audit, thresholds: Iterable[Threshold]) -> list[Verdict]:
    """Compare every threshold with the attributes it is for."""
    verdicts = []
    for threshold in thresholds:
        chosen = [audit[threshold.attribute]] if threshold.attribute else audit.attributes
        for attribute in chosen:
            found = attribute.interval(threshold.measure)
            if found is None:
                needed = "--control" if threshold.measure == "gdp_given" else "--label with two values"
                raise ValueError(
                    f"{threshold.measure} of {attribute.name!r} was not measured: it needs {needed} and enough people."
                )
            verdicts.append(Verdict(threshold, attribute.name, *found))
    return verdicts


def exit_status(verdicts: Iterable[Verdict]) -> int:
    """Return 1 if a number is above its threshold, 3 if one is undecided, 0 otherwise."""
    outcomes = {verdict.outcome for verdict in verdicts}
    return next((STATUS[outcome] for outcome in ("above", "undecided") if outcome in outcomes), 0)
