"""What an audit of predictions found: its numbers, its sentences, its report, and its comparison with thresholds."""

from __future__ import annotations

import importlib
import math
import os
import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy import ndimage

from frhsic_core.bounds import DependenceBound
from frhsic_core.choices import one_of
from frhsic_core.conditional import Curve
from frhsic_core.registry import labels

PERMUTATIONS = 499  # of the tests of independence
KHGR_RIDGE = 0.01
# The numbers with an interval, which a threshold can be compared with.
MEASURES = ("gdp", "equal_opportunity", "equalized_odds", "calibration", "gdp_given")
MEANING = {
    "gdp": "mean distance between the mean score at one value of the attribute and the overall mean",
    "equal_opportunity": "GDP among people with label 1",
    "equalized_odds": "the larger of the numbers for people with label 1 and with label 0",
    "calibration": "mean distance from zero of label minus score along the attribute",
    "gdp_given": "GDP of what is left of the scores after the control features",
    "gdp_bound": "guaranteed upper bound on GDP",
    "pvalue": "p-value of the test of independence",
    "pvalue_given_label": "p-value given the label (equalized odds)",
    "pvalue_given": "p-value given the control features",
    "impact_ratio": "lowest selection rate over the highest, along the attribute",
    "impact_ratio_groups": "the same of the groups",
    "khgr": f"kernel HGR (ridge {KHGR_RIDGE:g})",
    **labels(("linear_r2", "nonlinear_r2")),
}
STATUS = {"below": 0, "above": 1, "inconclusive": 3}  # exit status of the command for each outcome
_SUBJECT = {"scores": "Scores", "hard": "Shares of positive predictions", "values": "Predictions"}
# Bounds of the distance correlation between which a dependence is called by a word.
_WORDS = ((0.1, "very weak"), (0.3, "weak"), (0.5, "moderate"), (math.inf, "strong"))
_NAME = 60


def _report() -> Any:
    """Return the module that writes reports; it needs the names of this one."""
    return importlib.import_module("frhsic_core.auditing._report")


@dataclass(frozen=True)
class Measure:
    """One number with the rows behind it, and where they are known its interval and what chance alone would give."""

    value: float
    rows: int
    low: float = math.nan
    high: float = math.nan
    floor: float = math.nan


@dataclass(frozen=True)
class Missing:
    """Rows without a usable value in one column, and their mean score beside that of the other rows."""

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
        ``"gdp"``: E[score | S = s] with its band. With labels: ``"equal_opportunity"`` and ``"label_0"`` (the score
        among people with label 1 and 0) and ``"calibration"`` (label minus score). With control features:
        ``"gdp_given"`` (what they leave of the score). With a threshold: ``"selected"`` (the share of people), and with
        labels ``"true_positives"`` and ``"false_positives"``.
    numbers : dict of str to Measure
        Every number with the rows behind it, and where there are any its interval and what chance gives: GDP of the
        curves, the bound, p-values, impact ratios, effect sizes. The report, the table and the JSON show these.
    groups, selected_groups : DataFrame or None
        What four groups show and hide of the scores, and of the people that a threshold selects; None for categories.
    bound : DependenceBound or None
        An upper bound on GDP over the values of the attribute, with what it assumes.
    unbounded : str
        Why there is no bound: weights, bins such as "(20, 30]", or scores outside of [0, 1], whose limits are unknown.
    spread : float
        Standard deviation of the scores.
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

    @property
    def curve(self) -> Curve:
        """The curve of the mean score along the attribute."""
        return self.curves["gdp"]

    @property
    def gdp(self) -> float:
        """GDP, the mean distance between the mean score at a person's value of the attribute and the overall mean."""
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


def _of_the_only(name: str) -> Any:
    """Return a property of an audit that is one of its only attribute."""

    def value(audit: Audit) -> Any:
        if len(audit.attributes) > 1:
            names = [attribute.name for attribute in audit.attributes]
            raise ValueError(f"this audit has the attributes {names}: name one, such as result[{names[0]!r}].{name}.")
        return getattr(audit.attributes[0], name)

    return property(value, doc=f"``{name}`` of the only attribute.")


@dataclass(frozen=True)
class Audit:
    """The result of :func:`frhsic_core.audit`. It prints as sentences, and a notebook shows it as a report.

    Attributes
    ----------
    attributes : tuple of AttributeAudit
        One audit for each sensitive attribute. Of several categorical attributes the last is about their intersections.
    joint : AttributeAudit or None
        The test and the effect sizes of all attributes together, if there are several and some are numbers.
    rows : int
        Number of rows given.
    missing : tuple of Missing
        Columns with missing or infinite values.
    score, label, weight : str
        Their names; empty if they were not given.
    controls : tuple of str
        Names of the control features.
    task : str
        ``"scores"`` (numbers from 0 to 1), ``"hard"`` (two values) or ``"values"`` (real numbers).
    alpha : float
        One minus the coverage of intervals and bands.
    random_state : int
        Seed of everything random.
    notes : tuple of str
        What a reader must know, such as few rows or a sample of a larger file.
    unit : str
        What a row is, for the sentences.
    threshold : float or None
        Scores from which on people are selected.
    performance : dict of str to float
        How good the scores are: ``mean_score``, and where they can be computed ``mean_label``, ``auc``, ``accuracy``
        and ``selection_rate``.
    provenance : dict of str to str
        What the report is about: date, model, file with its size and SHA-256.
    verdicts : tuple of Verdict
        Comparisons with thresholds that the report shows; see :meth:`check`.
    """

    attributes: tuple[AttributeAudit, ...]
    joint: AttributeAudit | None
    rows: int
    missing: tuple[Missing, ...]
    score: str
    label: str
    weight: str
    controls: tuple[str, ...]
    task: str
    alpha: float
    random_state: int
    notes: tuple[str, ...] = ()
    unit: str = "people"
    threshold: float | None = None
    performance: dict[str, float] = field(default_factory=dict)
    provenance: dict[str, str] = field(default_factory=dict)
    verdicts: tuple[Verdict, ...] = ()

    def __getitem__(self, name: str) -> AttributeAudit:
        """Return the audit of one attribute by its name."""
        for attribute in self.attributes:
            if attribute.name == name:
                return attribute
        raise KeyError(f"no attribute {name!r}: there are {', '.join(repr(a.name) for a in self.attributes)}.")

    gdp, interval, floor, pvalue, bound, curve = map(
        _of_the_only, ("gdp", "interval", "floor", "pvalue", "bound", "curve")
    )

    def check(self, *thresholds: str, guaranteed: bool = False) -> list[Verdict]:
        """Compare measures with thresholds such as ``"gdp=0.05"`` or, for one attribute, ``"gdp[age]=0.05"``.

        With ``guaranteed``, GDP is below its threshold only if the bound is, and not if only the interval is.
        """
        verdicts = []
        for text in thresholds:
            measure, name, limit = parse_threshold(text)
            if guaranteed and measure != "gdp":
                raise ValueError(f"{measure} has no guaranteed bound: a guarantee is for gdp only.")
            for attribute in [self[name]] if name else self.attributes:
                found = attribute.numbers.get(measure)
                if found is None:
                    needed = "--control" if measure == "gdp_given" else "--label with two values"
                    if measure == "calibration":
                        needed = "--label (if it has two values, also predictions between 0 and 1)"
                    raise ValueError(
                        f"{measure} of {attribute.name!r} was not measured: it needs {needed} and enough people."
                    )
                if guaranteed and attribute.bound is None:
                    raise ValueError(f"gdp of {attribute.name!r} has no guaranteed bound: {attribute.unbounded}.")
                bound = attribute.bound if guaranteed else None
                verdicts.append(Verdict(measure, attribute.name, limit, found.value, found.low, found.high, bound))
        return verdicts

    @property
    def sentences(self) -> list[str]:
        """What the audit says, in sentences."""
        said = [one for attribute in self.attributes for one in attribute_sentences(self, attribute)]
        return said + other_sentences(self)

    def __str__(self) -> str:
        return "\n".join(self.sentences)

    def __repr__(self) -> str:
        names = ", ".join(attribute.name for attribute in self.attributes)
        return f"<Audit of {self.score} by {names}: {self.rows:,} rows>"

    def _repr_html_(self) -> str:
        return _report().fragment(self)

    def as_dict(self) -> dict[str, Any]:
        """Return everything as a dict of JSON values, with the sentences first."""
        return _report().as_dict(self)

    def table(self) -> pd.DataFrame:
        """Return one row for each attribute and measure, with its interval and what chance alone gives.

        With several attributes, the last rows are about all of them together.
        """
        parts = [*self.attributes, *([self.joint] if self.joint else [])]
        each = [(part.name, name, found) for part in parts for name, found in part.numbers.items()]
        lines = [(part, name, it.value, it.low, it.high, it.floor, it.rows) for part, name, it in each]
        return pd.DataFrame(lines, columns=["attribute", "measure", "value", "low", "high", "by_chance", "rows"])

    def to_html(self) -> str:
        """Return the report as one self-contained HTML page."""
        return _report().page(_report().title(self), self._repr_html_())

    def to_markdown(self) -> str:
        """Return a model card in Markdown, to be pasted into the documentation of a model or a pull request."""
        return _report().markdown(self)

    def save(self, path: str | os.PathLike[str]) -> list[Path]:
        """Write the report to ``path``, and the JSON and the Markdown beside it; all of them whole or none."""
        return _report().save(self, path)


@dataclass(frozen=True)
class Verdict:
    """One number of an audit beside the limit that it should not exceed, and the bound if a guarantee was asked for."""

    measure: str
    attribute: str
    limit: float
    estimate: float
    low: float
    high: float
    bound: DependenceBound | None = None

    @property
    def outcome(self) -> str:
        """``"below"`` or ``"above"`` if the whole interval is, ``"inconclusive"`` if it contains the threshold.

        If a guarantee was asked for, ``"below"`` means that the bound is.
        """
        highest = self.high if self.bound is None else self.bound.bound
        if highest <= self.limit:
            return "below"
        return "above" if self.low > self.limit else "inconclusive"

    @property
    def status(self) -> int:
        """The exit status of the command: 0 below, 1 above, 3 inconclusive."""
        return STATUS[self.outcome]

    def __str__(self) -> str:
        name, bound = short(self.attribute), self.bound
        unsure = "is not significantly different from" if bound is None else "is not guaranteed to be below"
        verb = {"below": "is below", "above": "is above", "inconclusive": unsure}[self.outcome]
        said = f"{self.measure} of {name} {verb} the threshold {number(self.limit)}: estimate {number(self.estimate)}, "
        said += f"interval {number(self.low)} to {number(self.high)}"
        caveat = "This holds for rows that neither trained nor chose the model."
        if bound is None or self.outcome == "above":
            return f"{said}. {caveat}"
        rows = bound.rows_needed(self.limit)
        if self.outcome == "inconclusive" and rows is None and bound.own_values:
            why = f"No guarantee is possible: most people have a value of {name} of their own."
            return f"{said}. {why} Round {name}, or use gdp_bound with groups and variation."
        said += f", guaranteed to be at most {number(bound.bound)}."
        if self.outcome == "inconclusive" and rows is None:
            said += f" No number of rows would be enough, since GDP over the values is {number(bound.estimate)} here."
        elif self.outcome == "inconclusive":
            said += f" About {rows:,} rows with the same scores would be enough to guarantee it."
        return f"{said} {caveat}"


def parse_threshold(text: str) -> tuple[str, str, float]:
    """Return the measure, the attribute (empty for all of them) and the limit of ``gdp[age]=0.05``.

    Examples
    --------
    >>> parse_threshold("gdp[age]=0.05"), parse_threshold("gdp=0.1")
    (('gdp', 'age', 0.05), ('gdp', '', 0.1))
    """
    found = re.fullmatch(r"\s*(\w+)\s*(?:\[(.+)\])?\s*=\s*(\d*\.?\d+(?:e-?\d+)?)\s*", text)
    if found is None:
        raise ValueError(f"--fail-above is {text!r}: write a measure and a number, such as gdp=0.05 or gdp[age]=0.05.")
    return one_of("measure", found[1], MEASURES), found[2] or "", float(found[3])


def exit_status(verdicts: Iterable[Verdict]) -> int:
    """Return 1 if a number is above its threshold, 3 if one is inconclusive, 0 otherwise."""
    return max((verdict.status for verdict in verdicts), key=(0, 3, 1).index, default=0)


# What a curve shows --------------------------------------------------------------------------------------------------


def largest_gap(curve: Curve) -> tuple[int, slice]:
    """Return the bin with the largest gap, and the bins around it in which the gap is at least 80 % of it.

    The largest gap is the one that is certainly largest, by its band; if no gap is certain, that of the curve.
    """
    size = np.where(curve.inside, np.abs(curve.gap), -1.0)
    certain = np.where(curve.inside, np.maximum(curve.gap_low, -curve.gap_high), -1.0)
    top = int(np.argmax(certain if certain.max() > 0 else size))
    if not curve.smooth:  # levels have no neighbors
        return top, slice(top, top + 1)
    near = curve.inside & (np.sign(curve.gap) == np.sign(curve.gap[top])) & (size >= 0.8 * size[top])
    runs = ndimage.label(near)[0]
    return top, ndimage.find_objects(runs)[runs[top] - 1][0]


def extremes(curve: Curve, where: NDArray[np.bool_] | None = None) -> tuple[int, int]:
    """Return the bins between which the difference is most certain, the lower first.

    These are the least upper end and the largest lower end of the band. The extremes of the curve itself are often at
    the ends of S, where there are few people and the band is wide.
    """
    chosen = curve.inside if where is None else curve.inside & where
    low = np.where(chosen, curve.high, np.inf)
    high = np.where(chosen, curve.low, -np.inf)
    return int(np.argmin(low)), int(np.argmax(high))


def certain_difference(curve: Curve, where: NDArray[np.bool_] | None = None) -> float:
    """Return the difference between the :func:`extremes`; zero if a constant lies inside the band."""
    if where is not None and not curve.inside[where].any():
        return 0.0
    low, high = extremes(curve, where)
    rounding = 1e-12 * float(np.abs(curve.mean).max())
    certain = curve.low[high] > curve.high[low] + rounding
    return float(curve.mean[high] - curve.mean[low]) if certain else 0.0


# Sentences -----------------------------------------------------------------------------------------------------------


def number(value: float, *, unit: float | None = None) -> str:
    """Return a number with a useful number of digits: about three, or those of its ``unit``.

    Examples
    --------
    >>> number(0.12345), number(1234567.0), number(0.0000123), number(25.0)
    ('0.123', '1,234,567', '1.23e-05', '25')
    """
    if not math.isfinite(value):
        return "not known"
    if unit is not None and unit > 0:
        digits = max(0, 2 - math.floor(math.log10(unit)))
        return f"{value:,.{digits}f}" if digits <= 6 else f"{value:.3g}"
    if abs(value) < 1e-12:
        return "0"
    if not 1e-4 <= abs(value) < 1e9:
        return f"{value:.3g}"
    digits = max(0, 2 - math.floor(math.log10(abs(value))))
    text = f"{value:,.{digits}f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def short(name: str) -> str:
    """Return a name of at most 60 characters on one line."""
    name = " ".join(name.split()) or "(no name)"
    return name if len(name) <= _NAME else name[: _NAME - 1] + "…"


def percent(share: float) -> str:
    """Return a share in percent, with one digit below ten percent."""
    return f"{share:.0%}" if share >= 0.0995 or share == 0 else f"{share:.1%}"


def smallest(test: Measure) -> str:
    """Return the end of a sentence if the number of permutations allows no smaller p-value."""
    least = test.value <= (1.0 + 1e-9) / (PERMUTATIONS + 1)
    return f", the smallest possible with {PERMUTATIONS} permutations" if least else ""


def chance(test: Measure) -> str:
    """Return whether a dependence is more than chance, with the p-value."""
    verdict = "is more than chance would give" if test.value <= 0.05 else "could be chance"
    return f"{verdict} (p = {number(test.value)}{smallest(test)})"


def value_name(attribute: AttributeAudit, s: float) -> str:
    """Return a value of the attribute as a reader knows it: a category, or a number."""
    if attribute.categories:
        return short(attribute.categories[int(s)])
    size = max(abs(attribute.curve.s[0]), abs(attribute.curve.s[-1]))
    if float(s).is_integer() or size >= 1e9:
        return f"{s:,.0f}" if abs(s) >= 10_000 and size < 1e9 else f"{s:g}"
    return number(s, unit=float(np.ptp(attribute.curve.s[attribute.curve.inside])) or 1.0)


def trend(audit: Audit, attribute: AttributeAudit) -> str:
    """Return the sentence about the difference along the curve."""
    curve = attribute.curve
    name = short(attribute.name)
    what = _SUBJECT[audit.task]
    difference = certain_difference(curve)
    if difference == 0.0:
        if attribute.pvalue > 0.05:
            return f"No dependence on {name} was found: a constant lies inside the band of the curve."
        return f"{what} depend on {name}, but no difference of the mean between two values of {name} is certain."
    low, high = extremes(curve)
    size = number(difference)
    verb, ends = ("rise", (low, high)) if low < high else ("fall", (high, low))
    places = [value_name(attribute, curve.s[k]) for k in ends]
    means = [number(float(curve.mean[k])) for k in ends]
    if attribute.categories:
        top, bottom = places if verb == "fall" else places[::-1]
        return (
            f"{what} are highest for {name} {top!r} and lowest for {bottom!r}; the difference of the means is {size}."
        )
    return f"{what} {verb} by {size} between {name} {places[0]} and {places[1]}, from {means[0]} to {means[1]}."


def guarantee(attribute: AttributeAudit) -> str:
    """Return the sentence about the upper bound on GDP, or why there is none."""
    bound = attribute.bound
    if bound is None:
        return f"GDP has no guaranteed bound: {attribute.unbounded}."
    if bound.own_values:
        return (
            f"Most people have a value of {short(attribute.name)} of their own, so GDP has no useful guaranteed "
            f"bound. To get one, round {short(attribute.name)} and audit again."
        )
    return (
        f"With {percent(1.0 - bound.delta)} confidence GDP over the {bound.values} values of {short(attribute.name)} "
        f"is at most {number(bound.bound)}. This assumes independent rows that neither trained nor chose the "
        "model, and nothing else."
    )


def two_people(attribute: AttributeAudit) -> tuple[float, float] | None:
    """Return two values of the attribute to compare: round numbers near its ends, or the lowest and highest level."""
    curve = attribute.curve
    if not curve.smooth:
        low, high = extremes(curve)
        return float(curve.s[low]), float(curve.s[high])
    below = np.cumsum(curve.share) - 0.5 * curve.share
    ends = np.interp([0.1, 0.9], below, curve.s)
    digits = -math.floor(math.log10(float(np.diff(ends)[0]) / 10.0)) if ends[1] > ends[0] else 0
    first, last = (float(round(end, digits)) for end in ends)
    return (first, last) if first < last else None


def difference(curve: Curve, first: float, last: float) -> tuple[float, float, float]:
    """Return how much the mean changes between two values, and the interval that the band of the curve allows.

    The band covers both values at once, so the interval has at least its coverage.
    """
    low, mean, high = (np.interp([first, last], curve.s, line) for line in (curve.low, curve.mean, curve.high))
    return float(mean[1] - mean[0]), float(low[1] - high[0]), float(high[1] - low[0])


def magnitude(audit: Audit, attribute: AttributeAudit) -> list[str]:
    """Return how much the gap is: against chance, against the spread of the scores, and between two people."""
    curve = attribute.curve
    name = short(attribute.name)
    said = []
    if curve.is_flat and attribute.pvalue > 0.05:
        said.append("The mean gap is not distinguishable from chance.")
    elif curve.floor > 0:
        said.append(f"The mean gap is {number(curve.gdp / curve.floor)} times what chance alone would give.")
    if attribute.spread > 0:
        said.append(
            f"It is {percent(curve.gdp / attribute.spread)} of the standard deviation of {short(audit.score)}, and "
            f"{name} explains {percent(curve.explained)} of its variance."
        )
    pair = two_people(attribute)
    if pair is not None and certain_difference(curve) > 0.0:
        places = sorted(pair, key=lambda value: float(np.interp(value, curve.s, curve.mean)))
        first, last = (value_name(attribute, value) for value in places)
        factor, points = (100.0, " points of 100") if audit.task in ("scores", "hard") else (1.0, "")
        size, *ends = (number(factor * value) for value in difference(curve, *places))
        said.append(
            f"On average, {audit.unit} with {name} {last} get {size}{points} more than {audit.unit} with {name} "
            f"{first} ({percent(1.0 - curve.alpha)} interval {' to '.join(ends)}, by the band)."
        )
    return said


def decision_sentences(audit: Audit, attribute: AttributeAudit) -> list[str]:
    """Return what the threshold decides: impact ratios, and true and false positive rates."""
    if "selected" not in attribute.curves:
        return []
    name = short(attribute.name)
    ratio, along = attribute.numbers["impact_ratio_groups"].value, attribute.numbers["impact_ratio"]
    rule = "below" if ratio < 0.8 else "not below"
    places, rates = zip(*selection_rates(attribute), strict=True)
    low, high = int(np.argmin(rates)), int(np.argmax(rates))
    said = [
        f"At the threshold {number(audit.threshold or 0.0)}, {percent(rates[low])} of the {audit.unit} with {name} "
        f"{places[low]} are selected, and {percent(rates[high])} of those with {name} {places[high]}. The impact ratio "
        f"is {number(ratio)}, {rule} four fifths."
    ]
    if attribute.curves["selected"].smooth:
        certain = " So it is below four fifths, by the band." if along.high < 0.8 else ""
        said.append(
            f"Along {name} the impact ratio, the lowest selection rate over the highest, is {number(along.value)}, and "
            f"the band allows at most {number(along.high)}.{certain}"
        )
    for what in ("true", "false"):
        if f"{what}_positives" in attribute.curves:
            gap = interval(attribute.curves[f"{what}_positives"])
            said.append(f"The mean gap of the {what} positive rate along {name} is {gap}.")
    return said


def group_names(attribute: AttributeAudit, groups: pd.DataFrame) -> list[str]:
    """Return the range of each group of a table."""
    ends = zip(groups.start, groups.end, strict=True)
    return [f"{value_name(attribute, a)} to {value_name(attribute, b)}" for a, b in ends]


def selection_rates(attribute: AttributeAudit) -> list[tuple[str, float]]:
    """Return the groups, or the categories, with the share of people that the threshold selects."""
    if (groups := attribute.selected_groups) is not None:
        return list(zip(group_names(attribute, groups), groups.means.tolist(), strict=True))
    curve = attribute.curves["selected"]
    return [(value_name(attribute, s), rate) for s, rate in zip(curve.s, curve.mean.tolist(), strict=True)]


def attribute_sentences(audit: Audit, attribute: AttributeAudit) -> list[str]:
    """Return the sentences about one attribute, the most important first."""
    curve = attribute.curve
    ends = f"{percent(1.0 - audit.alpha)} interval from {number(curve.gdp_low)} to {number(curve.gdp_high)}"
    main = [
        f"The mean gap over all {audit.unit} (GDP) is {number(curve.gdp)}, with a {ends}. Without any dependence the "
        f"estimate would be about {number(curve.floor)}.",
        f"The dependence {chance(attribute.numbers['pvalue'])}.",
    ]
    found = [trend(audit, attribute), *main, *magnitude(audit, attribute), *decision_sentences(audit, attribute)]
    return found + other_findings(audit, attribute)


def other_findings(audit: Audit, attribute: AttributeAudit) -> list[str]:
    """Return what else is found about one attribute: size, then where, given the label, and given the controls."""
    curve = attribute.curve
    name = short(attribute.name)
    test = attribute.numbers["pvalue"]
    said = []
    strength = attribute.numbers.get("distance_correlation")
    probe = attribute.numbers.get("nonlinear_r2")
    if strength is not None and probe is not None and test.value <= 0.05:
        word = next(word for bound, word in _WORDS if strength.value < bound)
        said.append(
            f"The dependence is {word}: the distance correlation is {number(strength.value)}, and a nonlinear model "
            f"explains {percent(max(0.0, probe.value))} of the variance of {name} from the predictions."
        )
    said.append(guarantee(attribute))
    if certain_difference(curve) > 0.0 or test.value <= 0.05:
        said.append(f"The gap is largest around {_where(audit, attribute, curve)}")
    said += _hidden(attribute)
    said += _label_sentences(audit, attribute)
    said += _given_sentences(audit, attribute)
    return said


def _where(audit: Audit, attribute: AttributeAudit, curve: Curve) -> str:
    top, there = largest_gap(curve)
    gap, low, high = (float(values[top]) for values in (curve.gap, curve.gap_low, curve.gap_high))
    doubt = ""
    if low <= 0 <= high:
        doubt = f" This is not certain: the band is from {number(low)} to {number(high)}."
    name = short(attribute.name)
    first, last = (value_name(attribute, curve.s[there][k]) for k in (0, -1))
    place = f"{name} {first}" if first == last else f"{name} {first} to {last}"
    return (
        f"{place}: the mean is up to {number(abs(gap))} {'above' if gap > 0 else 'below'} the overall mean. "
        f"{curve.rows[there].sum():,.0f} {audit.unit} ({percent(curve.share[there].sum())}) are there.{doubt}"
    )


def _hidden(attribute: AttributeAudit) -> list[str]:
    """Return what a table of groups shows of the scores, and what it hides of the curve."""
    table, certain = attribute.groups, certain_difference(attribute.curve)
    if table is None or certain == 0.0:
        return []
    hidden = "Inside the groups no difference is certain."
    most = table.loc[table.inside.idxmax()]
    if most.inside > 0:
        low, high = (value_name(attribute, most[end]) for end in ("start", "end"))
        moved = number(most.inside)
        hidden = f"Inside the group from {low} to {high} alone the mean moves by {moved}, which the table hides."
    shown = number(table.means.max() - table.means.min())
    return [
        f"A table with {len(table)} groups of {short(attribute.name)} shows a largest difference of {shown} between "
        f"two groups; along the curve it is {number(certain)}. {hidden}"
    ]


def _label_sentences(audit: Audit, attribute: AttributeAudit) -> list[str]:
    said = []
    name = short(attribute.name)
    for measure, label in (("equal_opportunity", 1), ("label_0", 0)):
        if measure in attribute.curves:
            curve = attribute.curves[measure]
            people = f"{curve.n:,} {audit.unit} with label {label}"
            said.append(f"Among the {people} the mean gap along {name} is {judged(curve)}.")
    if "pvalue_given_label" in attribute.numbers:
        test = attribute.numbers["pvalue_given_label"]
        said.append(f"The dependence that is left given the label {chance(test)}.")
    if "calibration" in attribute.curves:
        curve = attribute.curves["calibration"]
        top, _ = largest_gap(curve)
        place = value_name(attribute, curve.s[top])
        side = "too low" if curve.gap[top] > 0 else "too high"
        if curve.is_flat:
            said.append(f"No error of the mean prediction is certain at any {name}: zero lies inside the band.")
        else:
            said.append(
                f"Predictions are on average off by {interval(curve)} along {name}; around {place} they are "
                f"{number(abs(float(curve.gap[top])))} {side}."
            )
    return said


def interval(curve: Curve) -> str:
    """Return the gap of a curve with its interval and what chance gives."""
    ends = f"{percent(1.0 - curve.alpha)} interval {number(curve.gdp_low)} to {number(curve.gdp_high)}"
    return f"{number(curve.gdp)} ({ends}; chance alone gives about {number(curve.floor)})"


def judged(curve: Curve) -> str:
    """Return the gap of a curve that has no test of its own, and whether chance explains it."""
    return f"{interval(curve)}, not distinguishable from chance" if curve.is_flat else interval(curve)


def _given_sentences(audit: Audit, attribute: AttributeAudit) -> list[str]:
    curve = attribute.curves.get("gdp_given")
    if curve is None:
        return []
    test = attribute.numbers["pvalue_given"]
    controls = " and ".join(map(short, audit.controls))
    said = (
        f"Given {controls}, the mean gap along {short(attribute.name)} that is left is {interval(curve)}. The "
        f"dependence that is left {chance(test)}."
    )
    if test.value <= 0.05:
        said += f" It is largest around {_where(audit, attribute, curve)}"
    return [said]


def rows_used(audit: Audit, source: str = "") -> str:
    """Return the number of rows, and if some are left out how many each attribute uses."""
    used = [f"{short(a.name)}: {a.rows:,} used, {audit.rows - a.rows:,} left out" for a in audit.attributes]
    some = any(attribute.rows < audit.rows for attribute in audit.attributes)
    return f"{audit.rows:,} rows{source}" + (f" ({'; '.join(used)})" if some else "")


def other_sentences(audit: Audit) -> list[str]:
    """Return the sentences about the scores, all attributes together, missing values and notes."""
    said = []
    found = audit.performance
    if "auc" in found:
        at = f" At the threshold the accuracy is {number(found['accuracy'])}." if "accuracy" in found else ""
        said.append(
            f"The AUC of the scores is {number(found['auc'])}.{at} The mean score is {number(found['mean_score'])}, "
            f"and the share of label 1 is {number(found['mean_label'])}."
        )
    if "selection_rate" in found:
        said.append(f"{percent(found['selection_rate'])} of all {audit.unit} are selected.")
    if audit.joint is not None:
        test, strength = audit.joint.numbers["pvalue"], audit.joint.numbers.get("distance_correlation")
        size = "" if strength is None else f"; the distance correlation is {number(strength.value)}"
        said.append(f"Taken together, the dependence on {short(audit.joint.name)} {chance(test)}{size}.")
    for entry in audit.missing:
        name = short(entry.column)
        sentence = f"{name} is missing or infinite in {entry.missing:,} of {audit.rows:,} rows, which are left out."
        if entry.mean_missing is not None and entry.mean_known is not None:
            sentence += (
                f" Their mean is {number(entry.mean_missing)}; that of the other rows is {number(entry.mean_known)}."
            )
        said.append(sentence)
    return [*said, *audit.notes]
