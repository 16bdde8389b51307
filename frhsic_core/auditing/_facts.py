"""The facts that the templates of a report show: sentences, cards, pictures and tables."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd
from markupsafe import Markup

from frhsic_core.auditing import _sentences
from frhsic_core.auditing._about_rows import method, other_sentences, rows_used
from frhsic_core.auditing._curves import telling_pair
from frhsic_core.auditing._pictures import bound_svg, curve_svg, height_range
from frhsic_core.auditing._results import AttributeAudit
from frhsic_core.auditing._sentences import MEANING, level, mean_name, smallest
from frhsic_core.auditing._status import Status, attribute_statuses
from frhsic_core.auditing._words import at_most, number, percent, rounded, short
from frhsic_core.conditional import Curve

Audit = Any  # the result as a whole; its module imports this one


@dataclass(frozen=True)
class Card:
    """A number in large letters, and what it means."""

    value: str
    meaning: str


@dataclass(frozen=True)
class Picture:
    """A picture and its caption."""

    svg: Markup
    caption: str


@dataclass(frozen=True)
class Table:
    """The headings and the cells of a table."""

    headings: tuple[str, ...]
    rows: Sequence[tuple[str, ...]]


@dataclass(frozen=True)
class Part:
    """Sentences with a picture and perhaps a table."""

    sentences: list[str]
    picture: Picture
    table: Table | None = None


@dataclass(frozen=True)
class AttributeFacts:
    """Everything that a page shows about one attribute, in its order."""

    name: str
    headline: str
    statuses: list[Status]
    cards: list[Card]
    curve: Picture
    in_fact: Part | None
    magnitude: list[str]
    bound: Picture | None
    decisions: Part | None
    findings: list[str]
    pictures: list[Picture]
    labeled: list[Picture]
    numbers: Table
    groups: Table | None


@dataclass(frozen=True)
class Facts:
    """Everything that a page shows, in its order."""

    title: str
    rows: str
    attributes: list[AttributeFacts]
    all_rows: list[str]
    joint: Table | None
    method: list[str]
    origin: dict[str, str]


def facts(audit: Audit) -> Facts:
    """Return what the page of an audit shows."""
    source = ""
    if "file" in audit.provenance:
        source = f" from {short(audit.provenance['file'])}"
    joint = None
    if audit.joint is not None:
        joint = numbers_table(audit, audit.joint.name)
    return Facts(
        title=audit.title,
        rows=rows_used(audit, source),
        attributes=[_attribute(audit, attribute) for attribute in audit.attributes],
        all_rows=other_sentences(audit),
        joint=joint,
        method=method(audit),
        origin=audit.origin,
    )


def _attribute(audit: Audit, attribute: AttributeAudit) -> AttributeFacts:
    groups = None
    if attribute.groups is not None:
        groups = _groups_table(audit, attribute, attribute.groups)
    return AttributeFacts(
        name=short(attribute.name),
        headline=_sentences.headline(audit, attribute),
        statuses=attribute_statuses(audit, attribute),
        cards=_cards(audit, attribute),
        curve=_main_picture(audit, attribute),
        in_fact=_in_fact(audit, attribute),
        magnitude=[*_sentences.magnitude(audit, attribute), _sentences.guarantee(attribute)],
        bound=_bound_picture(audit, attribute),
        decisions=_decisions(audit, attribute),
        findings=_sentences.other_findings(audit, attribute),
        pictures=_more_pictures(audit, attribute),
        labeled=_labeled_pictures(audit, attribute),
        numbers=numbers_table(audit, attribute.name),
        groups=groups,
    )


# Cards ----------------------------------------------------------------------------------------


def _cards(audit: Audit, attribute: AttributeAudit) -> list[Card]:
    """Return the main numbers: the mean gap, what is guaranteed, how sure the dependence is."""
    return [_gap_card(audit, attribute), _guarantee_card(audit, attribute), _test_card(attribute)]


def _gap_card(audit: Audit, attribute: AttributeAudit) -> Card:
    curve = attribute.curve
    unit = max(curve.gdp_high, curve.gdp)
    low = rounded(curve.gdp_low, unit=unit)
    high = rounded(curve.gdp_high, unit=unit)
    return Card(
        rounded(curve.gdp, unit=unit),
        f"mean gap: the {mean_name(audit)} of {audit.unit} of one {short(attribute.name)} is on "
        f"average so far from that of all {audit.unit} ({level(audit)} interval {low} to {high}; "
        f"by chance alone {rounded(curve.floor, unit=unit)})",
    )


def _guarantee_card(audit: Audit, attribute: AttributeAudit) -> Card:
    bound = attribute.bound
    if bound is None:
        return Card("none", f"guarantee: {attribute.unbounded}")
    if bound.own_values:
        return Card("none", f"guarantee: most {audit.unit} have a value of their own")
    return Card(
        f"≤ {at_most(bound.bound, digits=2)}",
        f"guaranteed limit of the mean gap, with {percent(1.0 - bound.delta)} confidence, if these "
        f"{audit.unit} neither trained, adjusted nor chose the model",
    )


def _test_card(attribute: AttributeAudit) -> Card:
    test = attribute.numbers["pvalue"]
    meaning = "p-value: chance could give this"
    if test.value <= 0.05:
        meaning = "p-value: more than chance would give"
    return Card(f"p = {rounded(test.value)}", f"{meaning}{smallest(test)}")


# Pictures -------------------------------------------------------------------------------------


def _within_range(audit: Audit, curve: Curve) -> Curve:
    """Return a curve of scores as it is drawn: a mean of scores from 0 to 1 is no larger."""
    if audit.task == "values":
        return curve
    return replace(
        curve,
        low=np.clip(curve.low, 0.0, 1.0),
        mean=np.clip(curve.mean, 0.0, 1.0),
        high=np.clip(curve.high, 0.0, 1.0),
    )


def _main_picture(audit: Audit, attribute: AttributeAudit) -> Picture:
    """Return the curve of the scores; two people of the headline are marked."""
    curve = attribute.curve
    pair = telling_pair(curve)
    marked = [] if pair is None else sorted((pair.lower, pair.higher))
    name = short(attribute.name)
    mean = mean_name(audit)
    shown = percent(1.0 - curve.alpha)
    if curve.smooth and not attribute.categories:
        what = (
            f"along {name} (line) with a band that contains the whole curve with a probability "
            f"of about {shown}"
        )
        ends = " The picture leaves out the lowest and the highest percent."
    else:
        what = (
            f"for every value of {name}, with intervals that together have a level of about {shown}"
        )
        ends = ""
    caption = (
        f"The {mean} {what}; the dashed line is the overall mean. Below: how many {audit.unit} "
        f"there are.{ends}"
    )
    drawn = curve_svg(attribute, _within_range(audit, curve), label=mean, examples=marked)
    return Picture(drawn, caption)


def _in_fact(audit: Audit, attribute: AttributeAudit) -> Part | None:
    """Return outcomes beside scores."""
    outcomes = attribute.curves.get("outcomes")
    if outcomes is None:
        return None
    if "mean_label" in audit.performance:
        outcomes = _within_range(audit, outcomes)
    drawn = curve_svg(
        attribute,
        _within_range(audit, attribute.curve),
        label=mean_name(audit),
        before=outcomes,
        label_before=_sentences.outcome_name(audit),
    )
    caption = (
        f"Along {short(attribute.name)}: the {mean_name(audit)} (blue) and "
        f"{_sentences.outcome_name(audit)} (orange), each with its band."
    )
    return Part(_sentences.in_fact(audit, attribute), Picture(drawn, caption))


def _bound_picture(audit: Audit, attribute: AttributeAudit) -> Picture | None:
    curve = attribute.curve
    bound = attribute.bound
    if bound is None or bound.own_values:
        return None
    ends = (curve.gdp_low, curve.gdp_high)
    return Picture(
        svg=bound_svg(curve.gdp, ends, bound.bound, by_chance=curve.floor),
        caption=f"The mean gap: the estimate (circle) with its {level(audit)} interval (line), "
        "what is guaranteed (diamond), and what chance alone would give (upright line).",
    )


def _decisions(audit: Audit, attribute: AttributeAudit) -> Part | None:
    """Return what the threshold decides: sentences, the curve of rates, and rates by group."""
    curve = attribute.curves.get("selected")
    if curve is None:
        return None
    shares = replace(
        curve,
        low=np.clip(curve.low, 0.0, 1.0),
        mean=np.clip(curve.mean, 0.0, 1.0),
        high=np.clip(curve.high, 0.0, 1.0),
    )
    limit = _sentences.rounded_threshold(audit)
    picture = Picture(
        svg=curve_svg(attribute, shares, label="share selected"),
        caption=f"The share of {audit.unit} with a score of at least {limit}.",
    )
    # The first sentence stands at the top of the page.
    sentences = _sentences.decisions(audit, attribute)[1:]
    return Part(sentences, picture, _rates_table(attribute))


def _rates_table(attribute: AttributeAudit) -> Table:
    rates = attribute.selection_rates()
    most = max(rate for _, rate in rates)
    rows = []
    for place, rate in rates:
        ratio = ""
        if most:
            ratio = rounded(rate / most)
        rows.append((place, percent(rate), ratio))
    return Table((short(attribute.name), "share selected", "impact ratio"), rows)


def _more_pictures(audit: Audit, attribute: AttributeAudit) -> list[Picture]:
    """Return what a table of groups hides, and what the control features leave."""
    found = []
    curve = attribute.curve
    groups = attribute.groups
    if groups is not None and curve.smooth and groups.inside.max() > 0.0:
        shown = _within_range(audit, curve)
        drawn = curve_svg(attribute, shown, label=mean_name(audit), groups=groups)
        words = f"What a table of {len(groups)} groups shows (thick lines), and the same curve."
        found.append(Picture(drawn, words))
    if "gdp_given" in attribute.curves:
        drawn = curve_svg(attribute, attribute.curves["gdp_given"], label="what is left")
        controls = " and ".join(map(short, audit.controls))
        words = f"What is left of the scores after {controls}: zero would mean no gap."
        found.append(Picture(drawn, words))
    return found


def _labeled_pictures(audit: Audit, attribute: AttributeAudit) -> list[Picture]:
    """Return the pictures that need labels: among label 1, among label 0, and the errors."""
    name = short(attribute.name)
    label_1 = f"The same among {audit.unit} with label 1 (equal opportunity)."
    label_0 = f"The same among {audit.unit} with label 0 (with the picture before: equalized odds)."
    errors = (
        f"Label minus prediction along {name}: zero means that predictions are right on average."
    )
    both = []
    for key, words in (("equal_opportunity", label_1), ("label_0", label_0)):
        if key in attribute.curves:
            both.append((_within_range(audit, attribute.curves[key]), words))
    heights: list[float] = []
    for curve, _ in both:
        heights += height_range(curve)
    pictures = []
    for curve, words in both:
        drawn = curve_svg(attribute, curve, label=mean_name(audit), heights=heights)
        pictures.append(Picture(drawn, f"{words} {_sentences.limits(curve)}"))
    if "calibration" in attribute.curves:
        curve = attribute.curves["calibration"]
        drawn = curve_svg(attribute, curve, label="mean error")
        pictures.append(Picture(drawn, f"{errors} {_sentences.limits(curve)}"))
    return pictures


# Tables ---------------------------------------------------------------------------------------


def cells(line: Any) -> tuple[str, str, str, str]:
    """Return value, interval, value by chance and rows of a line of the table of an audit."""
    ends = ""
    if math.isfinite(line.low):
        ends = f"{number(line.low)} to {number(line.high)}"
    by_chance = ""
    if not pd.isna(line.by_chance):
        by_chance = number(line.by_chance)
    return number(line.value), ends, by_chance, f"{line.rows:,}"


def numbers_table(audit: Audit, name: str) -> Table:
    """Return all numbers of one attribute, each with its meaning."""
    table = audit.table()
    rows = []
    for line in table[table["attribute"] == name].itertuples(index=False):
        measure = line.measure
        if measure in MEANING:
            measure = f"{measure}: {MEANING[measure]}"
        rows.append((measure, *cells(line)))
    return Table(("measure", "value", f"{level(audit)} interval", "by chance", "rows"), rows)


def _groups_table(audit: Audit, attribute: AttributeAudit, groups: pd.DataFrame) -> Table:
    """Return the table that most reports show: the mean score of each group with its interval."""
    rows = []
    for place, group in zip(
        attribute.group_names(groups), groups.itertuples(index=False), strict=True
    ):
        ends = f"{number(group.low)} to {number(group.high)}"
        rows.append((place, f"{group.rows:,.0f}", number(group.means), ends))
    headings = (short(attribute.name), "rows", mean_name(audit), f"{level(audit)} interval")
    return Table(headings, rows)
