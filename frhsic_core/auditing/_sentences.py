"""The sentences of an audit about one attribute; each function is about one result.

:func:`attribute_sentences` gives all of them, the most important first: who gets lower scores, who
is selected, whether outcomes differ as much, how large the gap is, and what is guaranteed.
"""

from __future__ import annotations

from typing import Any

from frhsic_core.auditing._curves import (
    Difference,
    certain_difference,
    extremes,
    largest_gap,
    rise,
    telling_pair,
)
from frhsic_core.auditing._results import KHGR_RIDGE, PERMUTATIONS, AttributeAudit, Measure
from frhsic_core.auditing._words import at_most, percent, rounded, short, with_interval
from frhsic_core.conditional import Curve
from frhsic_core.registry import labels

Audit = Any  # the result as a whole; its module imports this one
MEANING = {
    "gdp": "mean gap: the mean distance between the mean score at one value of the attribute and "
    "the overall mean",
    "gdp_over_sd": "the mean gap divided by the standard deviation of the scores",
    "equal_opportunity": "the mean gap among people with label 1",
    "equalized_odds": "the larger of the mean gaps among people with label 1 and with label 0",
    "calibration": "mean distance from zero of label minus score along the attribute",
    "gdp_given": "the mean gap of what is left of the scores after the control features",
    "gdp_bound": "guaranteed upper bound on the mean gap",
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
_SUBJECT = {"scores": "Scores", "hard": "Shares of positive predictions", "values": "Predictions"}
_GET = {
    "scores": "get lower scores",
    "hard": "get a positive prediction less often",
    "values": "get lower predictions",
}
_MEAN = {"scores": "mean score", "hard": "share predicted positive", "values": "mean prediction"}


def attribute_sentences(audit: Audit, attribute: AttributeAudit) -> list[str]:
    """Return the sentences about one attribute, the most important first."""
    return [
        headline(audit, attribute),
        *decisions(audit, attribute),
        *in_fact(audit, attribute),
        gap(audit, attribute),
        f"The dependence {chance(attribute.numbers['pvalue'])}.",
        guarantee(attribute),
        *magnitude(audit, attribute),
        *other_findings(audit, attribute),
    ]


def mean_name(audit: Audit) -> str:
    """Return what the curve shows: the mean score, the mean prediction, or a share."""
    return _MEAN[audit.task]


def level(audit: Audit) -> str:
    """Return the level of the intervals."""
    return percent(1.0 - audit.alpha)


# The answer -----------------------------------------------------------------------------------


def headline(audit: Audit, attribute: AttributeAudit) -> str:
    """Return who gets lower scores than whom, and how much lower."""
    pair = telling_pair(attribute.curve)
    name = short(attribute.name)
    if pair is None:
        if attribute.pvalue > 0.05:
            return (
                f"No dependence on {name} was found: a constant lies inside the band of the curve."
            )
        return (
            f"{_SUBJECT[audit.task]} depend on {name}, but no difference of the mean between two "
            f"values of {name} is certain."
        )
    who = f"{audit.unit} with {name}"
    amount = with_interval(pair.size, pair.low, pair.high, level(audit))
    return (
        f"{_capital(who)} {attribute.value_name(pair.lower)} {_GET[audit.task]} than {who} "
        f"{attribute.value_name(pair.higher)}, by {amount} on average."
        f"{_other_side(attribute, pair)}"
    )


def _capital(words: str) -> str:
    """Return words as the beginning of a sentence."""
    return words[:1].upper() + words[1:]


def _other_side(attribute: AttributeAudit, pair: Difference) -> str:
    """Return what happens on the other side of a hump or valley, if it is half as much."""
    curve = attribute.curve
    if not curve.smooth or attribute.categories:
        return ""
    first, last = sorted((pair.lower, pair.higher))
    found = ""
    for part in (curve.s <= first, curve.s >= last):
        size = certain_difference(curve, part)
        if size > 0.5 * pair.size:
            start, end = sorted(extremes(curve, part))
            verb = "rise" if curve.mean[start] < curve.mean[end] else "fall"
            places = attribute.value_name(curve.s[start]), attribute.value_name(curve.s[end])
            found += (
                f" The means also {verb} by {rounded(size)} between {places[0]} and {places[1]}."
            )
    return found


def decisions(audit: Audit, attribute: AttributeAudit) -> list[str]:
    """Return what the threshold decides: impact ratios, and true and false positive rates."""
    selected = attribute.curves.get("selected")
    if selected is None:
        return []
    name = short(attribute.name)
    found = [selection(audit, attribute)]
    if selected.smooth:
        along = attribute.numbers["impact_ratio"]
        certain = " So it is below four fifths, by the band." if along.high < 0.8 else ""
        found.append(
            f"Along {name} the impact ratio, the lowest selection rate over the highest, is "
            f"{rounded(along.value)}, and the band allows at most {rounded(along.high)}.{certain}"
        )
    for what in ("true", "false"):
        curve = attribute.curves.get(f"{what}_positives")
        if curve is not None:
            found.append(f"The mean gap of the {what} positive rate along {name} is {size(curve)}.")
    return found


def selection(audit: Audit, attribute: AttributeAudit) -> str:
    """Return who is selected least and most often, and the impact ratio."""
    name = short(attribute.name)
    ratio = attribute.numbers["impact_ratio_groups"]
    rates = attribute.selection_rates()
    least, low = min(rates, key=lambda place: place[1])
    most, high = max(rates, key=lambda place: place[1])
    value = with_interval(ratio.value, ratio.low, ratio.high, level(audit))
    return (
        f"At the threshold {rounded_threshold(audit)}, {percent(low)} of the {audit.unit} with "
        f"{name} {least} are selected, and {percent(high)} of those with {name} {most}. The impact "
        f"ratio is {value}, {four_fifths(ratio)} four fifths."
    )


def rounded_threshold(audit: Audit) -> str:
    """Return the threshold as a user would write it."""
    return f"{audit.threshold or 0.0:,.10g}"


def four_fifths(ratio: Measure) -> str:
    """Return how an impact ratio compares with .8, by its interval."""
    if ratio.high < 0.8:
        return "below"
    if ratio.low >= 0.8:
        return "not below"
    return "not clearly below or above"


def in_fact(audit: Audit, attribute: AttributeAudit) -> list[str]:
    """Return whether outcomes differ as scores do, and where scores are wrong on average."""
    found = []
    outcomes = attribute.curves.get("outcomes")
    pair = telling_pair(attribute.curve)
    if outcomes is not None and pair is not None:
        found.append(_outcomes(audit, attribute, outcomes, pair))
    if "calibration" in attribute.curves:
        found.append(_errors(attribute))
    return found


def _outcomes(audit: Audit, attribute: AttributeAudit, outcomes: Curve, pair: Difference) -> str:
    """Return the difference of the outcomes between the same two values."""
    name = short(attribute.name)
    lower = attribute.value_name(pair.lower)
    higher = attribute.value_name(pair.higher)
    real = rise(outcomes, pair.lower, pair.higher)
    label = outcome_name(audit)
    amount = with_interval(real.size, real.low, real.high, level(audit))
    if real.low > 0.0:
        return (
            f"In fact {label} is lower, too, for {name} {lower} than for {name} {higher}: by "
            f"{amount}, and the scores by {rounded(pair.size, unit=pair.size)}."
        )
    if real.high < 0.0:
        amount = with_interval(-real.size, -real.high, -real.low, level(audit))
        return (
            f"In fact {label} is higher for {name} {lower} than for {name} {higher}, by {amount}: "
            "the scores go the other way."
        )
    return (
        f"Whether {label} is lower in fact for {name} {lower} than for {name} {higher} is not "
        f"certain: the difference is {amount}."
    )


def outcome_name(audit: Audit) -> str:
    """Return what the curve of outcomes shows: a share, or a mean."""
    if "mean_label" in audit.performance:
        return f"the share of label 1 of {short(audit.label)}"
    return f"the mean of {short(audit.label)}"


def _errors(attribute: AttributeAudit) -> str:
    """Return how wrong the predictions are on average along the attribute."""
    curve = attribute.curves["calibration"]
    name = short(attribute.name)
    if curve.is_flat:
        return (
            f"No error of the mean prediction is certain at any {name}: zero lies inside the band."
        )
    top, _ = largest_gap(curve)
    side = "too low" if curve.gap[top] > 0 else "too high"
    return (
        f"Predictions are on average off by {size(curve)} along {name}; around "
        f"{attribute.value_name(curve.s[top])} they are {rounded(abs(float(curve.gap[top])))} "
        f"{side}."
    )


# How much, and how sure -----------------------------------------------------------------------


def gap(audit: Audit, attribute: AttributeAudit) -> str:
    """Return the mean gap, and of the first attribute what it is and how it is called."""
    curve = attribute.curve
    value = with_interval(curve.gdp, curve.gdp_low, curve.gdp_high, level(audit))
    meaning = ""
    if attribute is audit.attributes[0]:
        meaning = (
            f": so far is the {mean_name(audit)} at the {short(attribute.name)} of a person from "
            "the overall mean, on average. Tables call it GDP"
        )
    return (
        f"The mean gap over all {audit.unit} is {value}{meaning}. Without any dependence the "
        f"estimate would be about {rounded(curve.floor)}."
    )


def chance(test: Measure) -> str:
    """Return whether a dependence is more than chance, with the p-value."""
    verdict = "is more than chance would give" if test.value <= 0.05 else "could be chance"
    return f"{verdict} (p = {rounded(test.value)}{smallest(test)})"


def smallest(test: Measure) -> str:
    """Return the end of a sentence if the number of permutations allows no smaller p-value."""
    if test.value > (1.0 + 1e-9) / (PERMUTATIONS + 1):
        return ""
    return f", the smallest possible with {PERMUTATIONS} permutations"


def guarantee(attribute: AttributeAudit) -> str:
    """Return the sentence about the upper bound on the mean gap, or why there is none."""
    bound = attribute.bound
    name = short(attribute.name)
    if bound is None:
        return f"The mean gap has no guaranteed bound: {attribute.unbounded}."
    most = at_most(bound.bound, digits=2)
    if bound.own_values:
        return (
            f"Most people have a value of {name} of their own, so the mean gap has no useful "
            f"guaranteed bound, only {most}. To get one, round {name} and audit again."
        )
    return (
        f"With {percent(1.0 - bound.delta)} confidence the mean gap over the {bound.values} values "
        f"of {name} is at most {most}. This assumes independent rows that neither trained nor "
        "chose the model, and nothing else."
    )


def magnitude(audit: Audit, attribute: AttributeAudit) -> list[str]:
    """Return how much the gap is, against chance and against the spread of the scores."""
    curve = attribute.curve
    found = []
    if curve.is_flat and attribute.pvalue > 0.05:
        found.append("The mean gap is not distinguishable from chance.")
    elif curve.floor > 0:
        times = rounded(curve.gdp / curve.floor)
        found.append(f"The mean gap is {times} times what chance alone would give.")
    if attribute.spread > 0:
        found.append(
            f"It is {percent(curve.gdp / attribute.spread)} of the standard deviation of the "
            f"scores, and {short(attribute.name)} explains {percent(curve.explained)} of their "
            "variance."
        )
    return found


# What else ------------------------------------------------------------------------------------


def other_findings(audit: Audit, attribute: AttributeAudit) -> list[str]:
    """Return what else is found: where, its strength, given the label, and given the controls."""
    return [
        *_places(audit, attribute),
        *_strength(attribute),
        *_hidden(attribute),
        *_given_label(audit, attribute),
        *_given_controls(audit, attribute),
    ]


def _places(audit: Audit, attribute: AttributeAudit) -> list[str]:
    """Return where the gap is largest, and the group of neighbors that differs most."""
    found = []
    curve = attribute.curve
    if certain_difference(curve) > 0.0 or attribute.pvalue <= 0.05:
        found.append(f"The gap is largest around {_where(audit, attribute, curve)}")
    scan = attribute.scan
    if scan is not None and curve.smooth and scan.low > 0.0:
        group = scan.surest
        side = "above" if group.gap > 0 else "below"
        place = f"{short(attribute.name)} {attribute.range_name(group.first, group.last)}"
        nearest, farthest = sorted((abs(group.low), abs(group.high)))
        amount = with_interval(abs(group.gap), nearest, farthest, level(audit))
        found.append(
            f"Of all groups of at least {scan.size} neighbors, the {group.rows:,} {audit.unit} "
            f"with {place} are most certainly apart: their mean is {amount} {side} the overall "
            "mean."
        )
    return found


def _where(audit: Audit, attribute: AttributeAudit, curve: Curve) -> str:
    """Return the place of the largest gap, its size and its people."""
    top, there = largest_gap(curve)
    found = float(curve.gap[top])
    low = float(curve.gap_low[top])
    high = float(curve.gap_high[top])
    doubt = ""
    if low <= 0 <= high:
        doubt = f" This is not certain: the band is from {rounded(low)} to {rounded(high)}."
    place = attribute.range_name(*curve.s[there][[0, -1]])
    side = "above" if found > 0 else "below"
    return (
        f"{short(attribute.name)} {place}: the mean is up to {rounded(abs(found))} {side} the "
        f"overall mean. {curve.rows[there].sum():,.0f} {audit.unit} "
        f"({percent(curve.share[there].sum())}) are there.{doubt}"
    )


def _strength(attribute: AttributeAudit) -> list[str]:
    """Return two effect sizes of a dependence."""
    strength = attribute.numbers.get("distance_correlation")
    probe = attribute.numbers.get("nonlinear_r2")
    if strength is None or probe is None or attribute.pvalue > 0.05:
        return []
    return [
        f"The distance correlation, from 0 (independent) to 1, is {rounded(strength.value)}. A "
        f"nonlinear model explains {percent(max(0.0, probe.value))} of the variance of "
        f"{short(attribute.name)} from the predictions."
    ]


def _hidden(attribute: AttributeAudit) -> list[str]:
    """Return what a table of groups shows of the scores, and what it hides of the curve."""
    table = attribute.groups
    certain = certain_difference(attribute.curve)
    if table is None or certain == 0.0:
        return []
    hidden = "Inside the groups no difference is certain."
    most = table.loc[table.inside.idxmax()]
    if most.inside > 0:
        place = attribute.range_name(most.start, most.end)
        hidden = (
            f"Inside the group from {place} alone the mean moves by {rounded(most.inside)}, which "
            "the table hides."
        )
    shown = rounded(float(table.means.max() - table.means.min()))
    return [
        f"A table with {len(table)} groups of {short(attribute.name)} shows a largest difference "
        f"of {shown} between two groups; along the curve it is {rounded(certain)}. {hidden}"
    ]


def _given_label(audit: Audit, attribute: AttributeAudit) -> list[str]:
    """Return the mean gap among people with each label, and the test given the label."""
    found = []
    name = short(attribute.name)
    for measure, label in (("equal_opportunity", 1), ("label_0", 0)):
        curve = attribute.curves.get(measure)
        if curve is not None:
            found.append(
                f"Among the {curve.n:,} {audit.unit} with label {label} the mean gap along {name} "
                f"is {size(curve, judged=True)}."
            )
    test = attribute.numbers.get("pvalue_given_label")
    if test is not None:
        found.append(f"The dependence that is left given the label {chance(test)}.")
    return found


def _given_controls(audit: Audit, attribute: AttributeAudit) -> list[str]:
    """Return the mean gap that the control features leave."""
    curve = attribute.curves.get("gdp_given")
    if curve is None:
        return []
    test = attribute.numbers["pvalue_given"]
    controls = " and ".join(map(short, audit.controls))
    found = (
        f"Given {controls}, the mean gap along {short(attribute.name)} that is left is "
        f"{size(curve)}. The dependence that is left {chance(test)}."
    )
    if test.value <= 0.05:
        found += f" It is largest around {_where(audit, attribute, curve)}"
    return [found]


def size(curve: Curve, *, judged: bool = False) -> str:
    """Return the gap of a curve with its interval and what chance gives.

    ``judged`` adds whether chance explains it.
    """
    ends = with_interval(curve.gdp, curve.gdp_low, curve.gdp_high, percent(1.0 - curve.alpha))
    flat = ", not distinguishable from chance" if judged and curve.is_flat else ""
    by_chance = rounded(curve.floor, unit=max(curve.gdp, curve.gdp_high / 1.1))
    return f"{ends[:-1]}; chance alone gives about {by_chance}){flat}"


def limits(curve: Curve) -> str:
    """Return the gap of a curve, how large it would be by chance, and how much it is smoothed."""
    found = f"The mean gap is {size(curve, judged=True)}."
    if curve.smooth:
        width = percent(2.0 * curve.bandwidth)
        found += f" The curve is smoothed over {width} of the central range."
    return found
