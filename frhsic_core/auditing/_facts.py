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
from frhsic_core.auditing._gate import Verdict
from frhsic_core.auditing._pictures import bound_svg, curve_svg
from frhsic_core.auditing._results import AttributeAudit
from frhsic_core.auditing._sentences import MEANING, rows_used, smallest
from frhsic_core.auditing._words import at_most, number, percent, short
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
class Decisions:
    """What the threshold decides."""

    sentences: list[str]
    picture: Picture
    rates: Table


@dataclass(frozen=True)
class AttributeFacts:
    """Everything that a page shows about one attribute, in its order."""

    name: str
    trend: str
    cards: list[Card]
    bound: Picture | None
    curve: Picture
    magnitude: list[str]
    decisions: Decisions | None
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
    verdicts: tuple[Verdict, ...]
    attributes: list[AttributeFacts]
    all_rows: list[str]
    joint: Table | None
    method: list[str]
    provenance: dict[str, str]


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
        verdicts=audit.verdicts,
        attributes=[_attribute(audit, attribute) for attribute in audit.attributes],
        all_rows=_sentences.other_sentences(audit),
        joint=joint,
        method=_sentences.method(audit),
        provenance=audit.origin,
    )


def _attribute(audit: Audit, attribute: AttributeAudit) -> AttributeFacts:
    curve = attribute.curve
    mean = f"mean {short(audit.score)}"
    main = Picture(
        svg=curve_svg(attribute, curve, label=mean, examples=True),
        caption=_main_caption(audit, attribute),
    )
    groups = None
    if attribute.groups is not None:
        groups = _groups_table(audit, attribute, attribute.groups)
    return AttributeFacts(
        name=short(attribute.name),
        trend=_sentences.trend(audit, attribute),
        cards=_cards(audit, attribute),
        bound=_bound_picture(audit, attribute),
        curve=main,
        magnitude=_sentences.magnitude(audit, attribute),
        decisions=_decisions(audit, attribute),
        findings=_sentences.other_findings(audit, attribute),
        pictures=_more_pictures(audit, attribute),
        labeled=_labeled_pictures(audit, attribute),
        numbers=numbers_table(audit, attribute.name),
        groups=groups,
    )


def _main_caption(audit: Audit, attribute: AttributeAudit) -> str:
    curve = attribute.curve
    name = short(attribute.name)
    level = percent(1.0 - curve.alpha)
    if curve.smooth and not attribute.categories:
        what = (
            f"along {name} (line) with a band that contains the whole curve with a probability "
            f"of about {level}"
        )
        ends = " The picture leaves out the lowest and the highest percent."
    else:
        what = (
            f"for every value of {name}, with intervals that together have a level of about {level}"
        )
        ends = ""
    return (
        f"The mean of {short(audit.score)} {what}; the dashed line is the overall mean. "
        f"Below: how many {audit.unit} there are.{ends}"
    )


def _cards(audit: Audit, attribute: AttributeAudit) -> list[Card]:
    """Return the main numbers: the mean gap, what is guaranteed, how sure the dependence is."""
    curve = attribute.curve
    test = attribute.numbers["pvalue"]
    gap = (
        f"mean gap (GDP) between {audit.unit} of one {attribute.name} and all {audit.unit}, "
        f"{percent(1.0 - audit.alpha)} interval {number(curve.gdp_low)} to {number(curve.gdp_high)}"
    )
    sure = "p-value: chance could give this"
    if test.value <= 0.05:
        sure = "p-value: more than chance would give"
    return [
        Card(number(curve.gdp), gap),
        _guarantee_card(audit, attribute),
        Card(f"p = {number(test.value)}", f"{sure}{smallest(test)}"),
    ]


def _guarantee_card(audit: Audit, attribute: AttributeAudit) -> Card:
    bound = attribute.bound
    if bound is None:
        return Card("none", f"guarantee: {attribute.unbounded}")
    if bound.own_values:
        return Card("none", f"guarantee: most {audit.unit} have a value of their own")
    return Card(
        f"≤ {at_most(bound.bound)}",
        f"guaranteed: with {percent(1.0 - bound.delta)} confidence GDP is not larger in the "
        "population",
    )


def _bound_picture(audit: Audit, attribute: AttributeAudit) -> Picture | None:
    curve = attribute.curve
    bound = attribute.bound
    if bound is None or bound.own_values:
        return None
    return Picture(
        svg=bound_svg(curve.gdp, (curve.gdp_low, curve.gdp_high), bound.bound),
        caption=f"GDP: the estimate (circle) with its {percent(1.0 - audit.alpha)} interval "
        "(line), and what is guaranteed (diamond).",
    )


def _decisions(audit: Audit, attribute: AttributeAudit) -> Decisions | None:
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
    limit = number(audit.threshold or 0.0)
    return Decisions(
        sentences=_sentences.decision_sentences(audit, attribute),
        picture=Picture(
            svg=curve_svg(attribute, shares, label="share selected"),
            caption=f"The share of {audit.unit} with a score of at least {limit}.",
        ),
        rates=_rates_table(attribute),
    )


def _rates_table(attribute: AttributeAudit) -> Table:
    rates = attribute.selection_rates()
    most = max(rate for _, rate in rates)
    rows = []
    for place, rate in rates:
        ratio = number(rate / most) if most else ""
        rows.append((place, percent(rate), ratio))
    return Table((short(attribute.name), "share selected", "impact ratio"), rows)


def _more_pictures(audit: Audit, attribute: AttributeAudit) -> list[Picture]:
    """Return what a table of groups hides, and what the control features leave."""
    found = []
    curve = attribute.curve
    groups = attribute.groups
    if groups is not None and curve.smooth and groups.inside.max() > 0.0:
        drawn = curve_svg(attribute, curve, label=f"mean {short(audit.score)}", groups=groups)
        words = f"What a table of {len(groups)} groups shows (thick lines), and the same curve."
        found.append(Picture(drawn, words))
    if "gdp_given" in attribute.curves:
        drawn = curve_svg(attribute, attribute.curves["gdp_given"], label="what is left")
        controls = " and ".join(map(short, audit.controls))
        words = f"What is left of {short(audit.score)} after {controls}: zero would mean no gap."
        found.append(Picture(drawn, words))
    return found


def _labeled_pictures(audit: Audit, attribute: AttributeAudit) -> list[Picture]:
    """Return the pictures that need labels: among label 1, among label 0, and the errors."""
    mean = f"mean {short(audit.score)}"
    name = short(attribute.name)
    label_1 = f"The same among {audit.unit} with label 1 (equal opportunity)."
    label_0 = f"The same among {audit.unit} with label 0 (with the picture before: equalized odds)."
    errors = (
        f"Label minus prediction along {name}: zero means that predictions are right on average."
    )
    pictures = [
        _labeled(attribute, "equal_opportunity", mean, label_1),
        _labeled(attribute, "label_0", mean, label_0),
        _labeled(attribute, "calibration", "mean error", errors),
    ]
    return [picture for picture in pictures if picture is not None]


def _labeled(attribute: AttributeAudit, key: str, label: str, caption: str) -> Picture | None:
    curve: Curve | None = attribute.curves.get(key)
    if curve is None:
        return None
    drawn = curve_svg(attribute, curve, label=label)
    return Picture(drawn, f"{caption} {_sentences.limits(curve)}")


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
    level = percent(1.0 - audit.alpha)
    return Table(("measure", "value", f"{level} interval", "by chance", "rows"), rows)


def _groups_table(audit: Audit, attribute: AttributeAudit, groups: pd.DataFrame) -> Table:
    """Return the table that most reports show: the mean score of each group with its interval."""
    rows = []
    for place, group in zip(
        attribute.group_names(groups), groups.itertuples(index=False), strict=True
    ):
        ends = f"{number(group.low)} to {number(group.high)}"
        rows.append((place, f"{group.rows:,.0f}", number(group.means), ends))
    level = percent(1.0 - attribute.curve.alpha)
    headings = (short(attribute.name), "rows", f"mean {short(audit.score)}", f"{level} interval")
    return Table(headings, rows)
