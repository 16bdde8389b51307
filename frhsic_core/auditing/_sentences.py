"""The sentences of an audit: what it found about each attribute, about all rows, and how its numbers are to be read.

:func:`attribute_sentences` and :func:`other_sentences` give all of them in their order; each function after them is
about one result.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from frhsic_core.auditing._curves import certain_difference, extremes, largest_gap
from frhsic_core.auditing._results import KHGR_RIDGE, PERMUTATIONS, AttributeAudit, Measure
from frhsic_core.auditing._words import at_most, number, percent, short
from frhsic_core.conditional._curve import Curve
from frhsic_core.registry import labels

Audit = Any  # the result as a whole; its module imports this one
MEANING = {
    "gdp": "mean distance between the mean score at one value of the attribute and the overall mean",
    "gdp_over_sd": "GDP divided by the standard deviation of the scores",
    "equal_opportunity": "GDP among people with label 1",
    "equalized_odds": "the larger of the numbers for people with label 1 and with label 0",
    "calibration": "mean distance from zero of label minus score along the attribute",
    "gdp_given": "GDP of what is left of the scores after the control features",
    "gdp_bound": "guaranteed upper bound on GDP",
    "max_gap": "largest distance of the mean score from the overall mean in any group of neighbors",
    "pvalue": "p-value of the test of independence",
    "pvalue_given_label": "p-value given the label (equalized odds)",
    "pvalue_given": "p-value given the control features",
    "impact_ratio": "lowest selection rate over the highest, along the attribute",
    "impact_ratio_groups": "the same of the groups",
    "impact_gap": "one minus the impact ratio of the groups",
    "khgr": f"kernel HGR (ridge {KHGR_RIDGE:g})",
    **labels(("linear_r2", "nonlinear_r2")),
}
LIMITS = "A number below a threshold does not make a decision fair. The audit describes these rows and attributes only."
_SUBJECT = {"scores": "Scores", "hard": "Shares of positive predictions", "values": "Predictions"}


def attribute_sentences(audit: Audit, attribute: AttributeAudit) -> list[str]:
    """Return the sentences about one attribute, the most important first."""
    curve = attribute.curve
    ends = f"{percent(1.0 - audit.alpha)} interval from {number(curve.gdp_low)} to {number(curve.gdp_high)}"
    main = [
        f"The mean gap over all {audit.unit} (GDP) is {number(curve.gdp)}, with a {ends}. Without any dependence the "
        f"estimate would be about {number(curve.floor)}.",
        f"The dependence {chance(attribute.numbers['pvalue'])}.",
    ]
    found = [
        trend(audit, attribute),
        *main,
        *magnitude(audit, attribute),
        *decision_sentences(audit, attribute),
    ]
    return found + other_findings(audit, attribute)


def other_findings(audit: Audit, attribute: AttributeAudit) -> list[str]:
    """Return what else is found about one attribute: size, then where, given the label, and given the controls."""
    curve = attribute.curve
    name = short(attribute.name)
    test = attribute.numbers["pvalue"]
    said = []
    strength, probe = (
        attribute.numbers.get(measure) for measure in ("distance_correlation", "nonlinear_r2")
    )
    if strength is not None and probe is not None and test.value <= 0.05:
        said.append(
            f"The distance correlation, from 0 (independent) to 1, is {number(strength.value)}. A nonlinear model "
            f"explains {percent(max(0.0, probe.value))} of the variance of {name} from the predictions."
        )
    said.append(guarantee(attribute))
    if certain_difference(curve) > 0.0 or test.value <= 0.05:
        said.append(f"The gap is largest around {_where(audit, attribute, curve)}")
    return [
        *said,
        *_hidden(attribute),
        *_label_sentences(audit, attribute),
        *_given_sentences(audit, attribute),
    ]


def other_sentences(audit: Audit) -> list[str]:
    """Return the sentences about the scores, all attributes together, missing values and notes."""
    found, said = audit.performance, list[str]()
    if "auc" in found:
        below = (
            ": lower scores go with label 1. Is its meaning right?" if found["auc"] < 0.5 else ""
        )
        at = (
            f" At the threshold the accuracy is {number(found['accuracy'])}."
            if "accuracy" in found
            else ""
        )
        said.append(
            f"The AUC of the scores is {number(found['auc'])}{below}.{at} The mean score is "
            f"{number(found['mean_score'])}, and the share of label 1 is {number(found['mean_label'])}."
        )
    if "selection_rate" in found:
        said.append(f"{percent(found['selection_rate'])} of all {audit.unit} are selected.")
    if audit.joint is not None:
        test, strength = (
            audit.joint.numbers["pvalue"],
            audit.joint.numbers.get("distance_correlation"),
        )
        size = "" if strength is None else f"; the distance correlation is {number(strength.value)}"
        said.append(
            f"Taken together, the dependence on {short(audit.joint.name)} {chance(test)}{size}."
        )
    for entry in audit.missing:
        name, share = short(entry.column), f"{entry.missing:,} of {audit.rows:,} rows"
        sentence = (
            f"{name} is missing or infinite in {share}, which are left out where it is needed."
        )
        if entry.mean_missing is not None and entry.mean_known is not None:
            means = number(entry.mean_missing), number(entry.mean_known)
            sentence += " Their mean is {}; that of the other rows is {}.".format(*means)
        said.append(sentence)
    return [*said, *audit.notes]


def trend(audit: Audit, attribute: AttributeAudit) -> str:
    """Return the sentence about the difference along the curve."""
    curve = attribute.curve
    name = short(attribute.name)
    what = _SUBJECT[audit.task]
    difference = certain_difference(curve)
    if difference == 0.0:
        if attribute.pvalue > 0.05:
            return (
                f"No dependence on {name} was found: a constant lies inside the band of the curve."
            )
        return f"{what} depend on {name}, but no difference of the mean between two values of {name} is certain."
    low, high = extremes(curve)
    size = number(difference)
    verb, ends = ("rise", (low, high)) if low < high else ("fall", (high, low))
    places = [attribute.value_name(curve.s[k]) for k in ends]
    means = [number(float(curve.mean[k])) for k in ends]
    if attribute.categories:
        top, bottom = places if verb == "fall" else places[::-1]
        return (
            f"{what} are highest for {name} {top!r} and lowest for {bottom!r}; "
            f"the difference of the means is {size}."
        )
    said = f"{what} {verb} by {size} between {name} {places[0]} and {places[1]}, from {means[0]} to {means[1]}."
    at = np.arange(len(curve.mean))
    for part in (at <= ends[0], at >= ends[1]):  # the other side of a hump or a valley
        if (more := certain_difference(curve, part)) > difference / 2:
            k, m = sorted(extremes(curve, part))
            verb = "rise" if curve.mean[k] < curve.mean[m] else "fall"
            said += f" They also {verb} by {number(more)} between {name} {attribute.value_name(curve.s[k])} and "
            said += f"{attribute.value_name(curve.s[m])}."
    return said


def chance(test: Measure) -> str:
    """Return whether a dependence is more than chance, with the p-value."""
    verdict = "is more than chance would give" if test.value <= 0.05 else "could be chance"
    return f"{verdict} (p = {number(test.value)}{smallest(test)})"


def smallest(test: Measure) -> str:
    """Return the end of a sentence if the number of permutations allows no smaller p-value."""
    least = test.value <= (1.0 + 1e-9) / (PERMUTATIONS + 1)
    return f", the smallest possible with {PERMUTATIONS} permutations" if least else ""


def magnitude(audit: Audit, attribute: AttributeAudit) -> list[str]:
    """Return how much the gap is: against chance, against the spread of the scores, and between two people."""
    curve = attribute.curve
    name = short(attribute.name)
    said = []
    if curve.is_flat and attribute.pvalue > 0.05:
        said.append("The mean gap is not distinguishable from chance.")
    elif curve.floor > 0:
        said.append(
            f"The mean gap is {number(curve.gdp / curve.floor)} times what chance alone would give."
        )
    if attribute.spread > 0:
        said.append(
            f"It is {percent(curve.gdp / attribute.spread)} of the standard deviation of {short(audit.score)}, and "
            f"{name} explains {percent(curve.explained)} of its variance."
        )
    pair = two_people(attribute)
    if pair is not None and certain_difference(curve) > 0.0:
        places = sorted(pair, key=lambda value: float(np.interp(value, curve.s, curve.mean)))
        first, last = (attribute.value_name(value) for value in places)
        factor, points = (
            (100.0, " points of 100") if audit.task in ("scores", "hard") else (1.0, "")
        )
        size, *ends = (number(factor * value) for value in difference(curve, *places))
        said.append(
            f"On average, {audit.unit} with {name} {last} get {size}{points} more than {audit.unit} with {name} "
            f"{first} ({percent(1.0 - curve.alpha)} interval {' to '.join(ends)}, by the band)."
        )
    return said


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
    low, mean, high = (
        np.interp([first, last], curve.s, line) for line in (curve.low, curve.mean, curve.high)
    )
    return float(mean[1] - mean[0]), float(low[1] - high[0]), float(high[1] - low[0])


def decision_sentences(audit: Audit, attribute: AttributeAudit) -> list[str]:
    """Return what the threshold decides: impact ratios, and true and false positive rates."""
    if "selected" not in attribute.curves:
        return []
    name = short(attribute.name)
    ratio, along = attribute.numbers["impact_ratio_groups"], attribute.numbers["impact_ratio"]
    rule = (
        "below"
        if ratio.high < 0.8
        else "not below"
        if ratio.low >= 0.8
        else "not clearly below or above"
    )
    places, rates = zip(*attribute.selection_rates(), strict=True)
    low, high = int(np.argmin(rates)), int(np.argmax(rates))
    said = [
        f"At the threshold {number(audit.threshold or 0.0)} (selected: at least this {short(audit.score)}), "
        f"{percent(rates[low])} of the {audit.unit} with {name} {places[low]} are selected, and {percent(rates[high])} "
        f"of those with {name} {places[high]}. The impact ratio is {number(ratio.value)} ({percent(1.0 - audit.alpha)} "
        f"interval {number(ratio.low)} to {number(ratio.high)}), {rule} four fifths."
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


def guarantee(attribute: AttributeAudit) -> str:
    """Return the sentence about the upper bound on GDP, or why there is none."""
    bound = attribute.bound
    if bound is None:
        return f"GDP has no guaranteed bound: {attribute.unbounded}."
    if bound.own_values:
        return (
            f"Most people have a value of {short(attribute.name)} of their own, so GDP has no useful guaranteed "
            f"bound, only {at_most(bound.bound)}. To get one, round {short(attribute.name)} and audit again."
        )
    return (
        f"With {percent(1.0 - bound.delta)} confidence GDP over the {bound.values} values of {short(attribute.name)} "
        f"is at most {at_most(bound.bound)}. This assumes independent rows that neither trained nor chose the "
        "model, and nothing else."
    )


def _where(audit: Audit, attribute: AttributeAudit, curve: Curve) -> str:
    top, there = largest_gap(curve)
    gap, low, high = (float(values[top]) for values in (curve.gap, curve.gap_low, curve.gap_high))
    doubt = ""
    if low <= 0 <= high:
        doubt = f" This is not certain: the band is from {number(low)} to {number(high)}."
    name = short(attribute.name)
    first, last = (attribute.value_name(curve.s[there][k]) for k in (0, -1))
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
        low, high = (attribute.value_name(most[end]) for end in ("start", "end"))
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
            said.append(
                f"Among the {people} the mean gap along {name} is {interval(curve, judged=True)}."
            )
    if "pvalue_given_label" in attribute.numbers:
        test = attribute.numbers["pvalue_given_label"]
        said.append(f"The dependence that is left given the label {chance(test)}.")
    if "calibration" in attribute.curves:
        curve = attribute.curves["calibration"]
        top, _ = largest_gap(curve)
        place = attribute.value_name(curve.s[top])
        side = "too low" if curve.gap[top] > 0 else "too high"
        if curve.is_flat:
            said.append(
                f"No error of the mean prediction is certain at any {name}: zero lies inside the band."
            )
        else:
            said.append(
                f"Predictions are on average off by {interval(curve)} along {name}; around {place} they are "
                f"{number(abs(float(curve.gap[top])))} {side}."
            )
    return said


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


def interval(curve: Curve, *, judged: bool = False) -> str:
    """Return the gap of a curve with its interval and what chance gives; ``judged`` adds whether chance explains it."""
    ends = (
        f"{percent(1.0 - curve.alpha)} interval {number(curve.gdp_low)} to {number(curve.gdp_high)}"
    )
    flat = ", not distinguishable from chance" if judged and curve.is_flat else ""
    return f"{number(curve.gdp)} ({ends}; chance alone gives about {number(curve.floor)}){flat}"


def limits(curve: Curve) -> str:
    """Return the gap of a curve, how large it would be by chance, and how much the curve is smoothed."""
    width = f" The curve is smoothed over {percent(2.0 * curve.bandwidth)} of the central range."
    return f"The mean gap is {interval(curve, judged=True)}.{width if curve.smooth else ''}"


def rows_used(audit: Audit, source: str = "") -> str:
    """Return the number of rows, and if some are left out how many each attribute uses."""
    used = [
        f"{short(a.name)}: {a.rows:,} used, {audit.rows - a.rows:,} left out"
        for a in audit.attributes
    ]
    some = any(attribute.rows < audit.rows for attribute in audit.attributes)
    return f"{audit.rows:,} rows{source}" + (f" ({'; '.join(used)})" if some else "")


def adjusted(name: str, old: Curve, new: Curve, *, fitted_on: str) -> str:
    """Return the sentence about the gap before and after an adjustment; ``fitted_on`` as in ``change_report``."""
    now = {
        "others": "It is now {}. If these rows fitted the adjustment, too, this looks too good.",
        "half": "Fitted on one half of the rows, the adjustment leaves {} in the other half (in the picture); "
        "fitted on all rows, as here, it usually leaves less.",
        "itself": "It is now {}. This looks too good: these rows fitted the adjustment; no half could be left out.",
    }[fitted_on].format(interval(new))
    return f"The mean gap along {name} was {interval(old)}. {now}"


def method(audit: Audit) -> list[str]:
    """Return how the numbers of a report are to be read."""
    level = percent(1.0 - audit.alpha)
    weights = f" Rows are weighted by {short(audit.weight)}." if audit.weight else ""
    return [
        "GDP is E|E[f | S] − E f|: the distance between the mean prediction at a person's value of the attribute and "
        "the overall mean, averaged over all rows. It has the unit of the predictions. The attribute is not cut into "
        "groups." + weights,
        "The curve is a local quadratic fit; an attribute with at most 20 values or with categories is not smoothed. "
        f"The band contains the whole curve between the first and the last percent of the attribute with a "
        f"probability of about {level}. The interval of GDP takes into account that GDP is overestimated near zero.",
        "The test is exact under independence. With many rows every dependence is significant, so read the effect "
        "sizes: each is shown beside the value that chance alone gives. In a large table some of them, and the test of "
        "an attribute with several columns, use a random sample of the rows; the tables say of how many.",
        "Given control features, the part of the predictions that they explain (cross-fitted splines, added) is "
        "subtracted first. The conditional test asks whether predictions and attribute are independent given them.",
        LIMITS,
    ]
