"""Compare the numbers of an audit with thresholds, and say what speaks against a verdict.

A threshold that no table could exceed is refused. A *remark* is what a reader should know beside a
verdict. A *doubt* is a reason why the rows may not be the people: with ``strict`` a verdict with a
doubt is not accepted.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from frhsic_core._choices import one_of
from frhsic_core.auditing._results import MEASURES, AttributeAudit
from frhsic_core.auditing._rows import LeftOut
from frhsic_core.auditing._words import at_most, number, percent, short
from frhsic_core.bounds import DependenceBound

Audit = Any  # the result as a whole; its module imports this one
STATUS = {"below": 0, "above": 1, "doubtful": 1, "inconclusive": 3}
_THRESHOLD = re.compile(r"\s*(\w+)\s*(?:\[(.+)\])?\s*=\s*(\d*\.?\d+(?:e-?\d+)?)\s*")
_NEEDS = {
    "gdp_given": "--control",
    "impact_gap": "--threshold",
    "max_gap": "a group of neighbors that is large enough and not everybody (--min-group)",
}
_NEEDS_LABEL = "--label with two values (calibration: and predictions between 0 and 1)"
_NAMES = {"gdp": "the mean gap (gdp)"}
_LABELED = ("equal_opportunity", "equalized_odds", "calibration")
_MOSTLY = 0.5  # of the rows: one value of an attribute decides a mean over all rows
_WIDE = 0.2  # GDP in standard deviations that is no small gap
_SMALL = 0.0001  # a p-value below this is not printed
EXPLAINED = 0.9  # a control with this R² is nearly the attribute
HELD_OUT = "This holds only if these rows neither trained, adjusted nor chose the model."


@dataclass(frozen=True)
class Verdict:
    """One number of an audit beside its limit, and the bound if a guarantee was asked for.

    Attributes
    ----------
    measure, attribute : str
        What was compared.
    limit : float
        The threshold.
    estimate, low, high : float
        The number with its interval.
    bound : DependenceBound or None
        The guaranteed bound, if a guarantee was asked for.
    remarks : tuple of str
        What a reader should know beside the verdict.
    doubts : tuple of str
        Why the rows may not be the people: people left out who differ, copies, a control that is
        the attribute.
    strict : bool
        Whether a verdict with a doubt is not accepted.
    """

    measure: str
    attribute: str
    limit: float
    estimate: float
    low: float
    high: float
    bound: DependenceBound | None = None
    remarks: tuple[str, ...] = ()
    doubts: tuple[str, ...] = ()
    strict: bool = False

    @property
    def outcome(self) -> str:
        """``"below"`` or ``"above"`` if the whole interval is, otherwise ``"inconclusive"``.

        If a guarantee was asked for, ``"below"`` means that the bound is. ``"doubtful"`` is a
        strict verdict that would be ``"below"`` without its doubts.
        """
        highest = self.high if self.bound is None else self.bound.bound
        if highest <= self.limit:
            doubtful = self.strict and len(self.doubts) > 0
            return "doubtful" if doubtful else "below"
        if self.low > self.limit:
            return "above"
        return "inconclusive"

    @property
    def status(self) -> int:
        """Exit status of the command, which is 0 below, 1 above or doubtful and 3 inconclusive."""
        return STATUS[self.outcome]

    def __str__(self) -> str:
        parts = [f"{self._comparison()}{self._guarantee()}"]
        if self.doubts and self.outcome in ("below", "doubtful"):
            parts.append("But " + " And ".join(self.doubts))
        if self.outcome != "above":
            parts += self.remarks
        return " ".join([*parts, HELD_OUT])

    def _comparison(self) -> str:
        """Return the number beside the threshold, without a full stop."""
        verbs = {
            "below": "is below",
            "above": "is above",
            "doubtful": "is not accepted: it is below",
            "inconclusive": "is not significantly different from",
        }
        if self.bound is not None:
            verbs["inconclusive"] = "is not guaranteed to be below"
        name = _NAMES.get(self.measure, self.measure)
        return (
            f"{name} of {short(self.attribute)} {verbs[self.outcome]} the threshold "
            f"{number(self.limit)}: estimate {number(self.estimate)}, "
            f"interval {number(self.low)} to {number(self.high)}"
        )

    def _guarantee(self) -> str:
        """Return what is guaranteed, and how many rows would be enough."""
        bound = self.bound
        name = short(self.attribute)
        if bound is None or self.outcome == "above":
            return "."
        rows = bound.rows_needed(self.limit)
        guaranteed = f", guaranteed to be at most {at_most(bound.bound)}."
        if self.outcome != "inconclusive":
            return guaranteed
        if rows is not None:
            return (
                f"{guaranteed} With {rows - bound.n:,} more people and the same estimates, "
                f"{rows:,} rows in all, the guarantee would pass at {number(self.limit)}."
            )
        if bound.own_values:
            return (
                f". No guarantee is possible: most people have a value of {name} of their own. "
                f"Round {name}, which asks about groups of ages instead of ages, or use "
                "gdp_bound with groups and variation."
            )
        return (
            f"{guaranteed} No number of rows would be enough, since the mean gap over the values "
            f"is {number(bound.estimate)} here."
        )


def compare(
    audit: Audit, thresholds: tuple[str, ...], *, guaranteed: bool, strict: bool
) -> list[Verdict]:
    """Return the verdicts of :meth:`frhsic_core.auditing.Audit.check`."""
    verdicts = []
    for text in thresholds:
        measure, name, limit = _read(text)
        if guaranteed and measure != "gdp":
            raise ValueError(f"{measure} has no guaranteed bound: a guarantee is for gdp only.")
        _refuse_unreachable(audit, measure, limit, text)
        attributes = [audit[name]] if name else audit.attributes
        for attribute in attributes:
            verdict = verdict_of(
                audit, attribute, measure, limit, guaranteed=guaranteed, strict=strict
            )
            verdicts.append(verdict)
    return verdicts


def _read(text: str) -> tuple[str, str | None, float]:
    """Return measure, attribute or None, and limit of a text such as ``"gdp[age]=0.05"``."""
    parts = _THRESHOLD.fullmatch(text)
    if parts is None:
        raise ValueError(
            f"--fail-above is {text!r}: write a measure and a number, such as gdp=0.05 or "
            "gdp[age]=0.05."
        )
    return one_of("measure", parts[1], MEASURES), parts[2], float(parts[3])


def largest_possible(audit: Audit, measure: str) -> float:
    """Return the largest value of a measure: half of the range of the scores for a mean gap."""
    if measure in ("impact_gap", "gdp_over_sd"):
        return 1.0
    low, high = audit.range
    if measure in ("max_gap", "gdp_given"):
        return high - low
    if measure == "calibration":
        return float("inf") if audit.task == "values" else 1.0
    return 0.5 * (high - low)


def _refuse_unreachable(audit: Audit, measure: str, limit: float, text: str) -> None:
    """Raise an error for a threshold that no scores of this range could exceed."""
    most = largest_possible(audit, measure)
    if limit < most:
        return
    if measure in ("impact_gap", "gdp_over_sd"):
        range_of = ""
    else:
        low, high = audit.range
        range_of = f" for scores from {number(low)} to {number(high)}"
    percents = ""
    if limit / 100.0 < most:
        percents = f" If {number(limit)} are percent, write {measure}={number(limit / 100.0)}."
    raise ValueError(
        f"--fail-above {text.strip()} can never fail: {measure} is at most {number(most)}"
        f"{range_of}. Give a smaller number.{percents}"
    )


def verdict_of(
    audit: Audit,
    attribute: AttributeAudit,
    measure: str,
    limit: float,
    *,
    guaranteed: bool = False,
    strict: bool = False,
) -> Verdict:
    """Return the verdict on one number of one attribute."""
    found = attribute.numbers.get(measure)
    if found is None:
        needed = _NEEDS.get(measure, _NEEDS_LABEL)
        raise ValueError(f"{measure} of {attribute.name!r} needs {needed} and enough people.")
    if guaranteed and attribute.bound is None:
        raise ValueError(
            f"gdp of {attribute.name!r} has no guaranteed bound: {attribute.unbounded}."
        )
    return Verdict(
        measure=measure,
        attribute=attribute.name,
        limit=limit,
        estimate=found.value,
        low=found.low,
        high=found.high,
        bound=attribute.bound if guaranteed else None,
        remarks=tuple(_remarks(audit, attribute, measure, limit)),
        doubts=tuple(_doubts(audit, attribute, measure)),
        strict=strict,
    )


def _doubts(audit: Audit, attribute: AttributeAudit, measure: str) -> list[str]:
    """Return the reasons why the rows behind a number may not be the people."""
    found = [difference_said(entry, audit) for entry in _relevant(audit, attribute, measure)]
    if audit.copies.pasted:
        found.append(copies_said(audit))
    if measure == "gdp_given" and attribute.control_r2 >= EXPLAINED:
        found.append(control_said(attribute))
    if attribute.hidden > 0.0 and measure in ("gdp", "gdp_over_sd"):
        found.append(hidden_said(attribute))
    return found


def _relevant(audit: Audit, attribute: AttributeAudit, measure: str) -> list[LeftOut]:
    """Return the differences between rows left out and rows used that concern one number."""
    behind = {audit.score, audit.weight, *attribute.name.split(" × ")}
    if measure in _LABELED:
        behind.add(audit.label)
    if measure == "gdp_given":
        behind.update(audit.controls)
    compared = {audit.score, *attribute.name.split(" × ")}
    return [
        entry
        for entry in audit.left_out
        if entry.differs and entry.column in behind and entry.compared in compared
    ]


def difference_said(entry: LeftOut, audit: Audit) -> str:
    """Return the clause about people left out who differ from the others."""
    why = {
        "missing": "{} is missing in {:,} of {:,} rows",
        "zero": "{} is zero in {:,} of {:,} rows",
        "tiny": "{} is below 1 % of its mean in {:,} of {:,} rows",
    }[entry.reason].format(short(entry.column), entry.rows, audit.rows)
    if entry.mean_left_out is None or entry.mean_used is None:
        means = ""
    else:
        means = f": their mean is {number(entry.mean_left_out)} and not {number(entry.mean_used)}"
    return (
        f"{why}, and these {audit.unit} differ from the others in {short(entry.compared)}{means} "
        f"({_pvalue_said(entry.pvalue)})."
    )


def _pvalue_said(pvalue: float) -> str:
    """Return a p-value; one that is printed as 0 would be certain."""
    if pvalue < _SMALL:
        return f"p < {_SMALL}"
    return f"p = {number(pvalue)}"


def copies_said(audit: Audit) -> str:
    """Return the clause about a table that was pasted several times."""
    copies = audit.copies
    return (
        f"the {copies.rows:,} rows are only {copies.distinct:,} different ones, and most of them "
        f"occur {copies.times} times: copies make every interval and test too sure."
    )


def control_said(attribute: AttributeAudit) -> str:
    """Return the clause about a control that is nearly the attribute."""
    control, share = max(attribute.explained_by.items(), key=lambda item: item[1])
    return (
        f"{short(control)} explains {percent(share)} of {short(attribute.name)} (R² {share:.3f}): "
        f"given {short(control)}, hardly anything of {short(attribute.name)} is left that scores "
        "could depend on."
    )


def hidden_said(attribute: AttributeAudit) -> str:
    """Return the clause about changes over short distances."""
    return (
        f"neighbors in {short(attribute.name)} are more alike than the curve explains "
        f"(correlation {number(attribute.hidden)}): the scores change over distances that the "
        "curve smooths away, so GDP is too small."
    )


def _remarks(audit: Audit, attribute: AttributeAudit, measure: str, limit: float) -> list[str]:
    """Return what a reader of a verdict should know."""
    name = short(attribute.name)
    found = []
    scan = attribute.scan
    if measure == "gdp" and scan is not None and scan.low > limit:
        group = scan.surest
        found.append(
            f"It is a mean over all {audit.unit}: the mean score of the {group.rows:,} with {name} "
            f"{attribute.range_name(group.first, group.last)} is certainly more than the "
            f"threshold away from the overall mean, by {number(abs(group.gap))}; see max_gap."
        )
    if measure == "gdp" and attribute.numbers["gdp_over_sd"].low > _WIDE:
        share = percent(attribute.numbers["gdp_over_sd"].value)
        found.append(
            f"It is {share} of the standard deviation of the scores; gdp_over_sd does not depend "
            "on their unit."
        )
    if measure in ("gdp", "gdp_over_sd"):
        found += _odd_values(audit, attribute)
    if attribute.curve.is_flat and attribute.pvalue <= audit.alpha:
        found.append(
            f"The scores do depend on {name} (p = {number(attribute.pvalue)}), in another way than "
            "in their mean."
        )
    return found


def _odd_values(audit: Audit, attribute: AttributeAudit) -> list[str]:
    """Return remarks on values that decide a mean over all people."""
    name = short(attribute.name)
    found = list(audit.far)
    share = attribute.curve.share
    if attribute.categories:
        return found
    if len(share) == 2:
        found.append(f"{name} has only two values: differences inside them cannot be seen.")
    elif (share.max() > _MOSTLY and not attribute.curve.smooth) or share.max() > _MOSTLY:
        found.append(_mostly(audit, attribute))
    return found


def _mostly(audit: Audit, attribute: AttributeAudit) -> str:
    """Return the remark on a value that most people have."""
    place = int(attribute.curve.share.argmax())
    share = percent(float(attribute.curve.share[place]))
    value = attribute.value_name(float(attribute.curve.s[place]))
    return (
        f"{share} of the {audit.unit} have {short(attribute.name)} {value}: a mean over all "
        "of them says little about the others."
    )
