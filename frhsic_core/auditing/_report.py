"""Write an audit as one self-contained HTML page with inline SVG, as JSON and as Markdown.

The page has no script and loads nothing. A content security policy forbids both, so that text from the data could do
nothing even if it were not escaped.
"""

from __future__ import annotations

import html
import itertools
import json
import math
import os
from collections.abc import Iterable, Sequence
from dataclasses import asdict, replace
from datetime import UTC, datetime
from functools import partial
from importlib import resources
from operator import methodcaller
from pathlib import Path
from string import Template
from typing import Any

import numpy as np
import pandas as pd

from frhsic_core.atomic_files import write_atomically
from frhsic_core.auditing._input import MIN_ROWS, Column
from frhsic_core.auditing._results import (
    MEANING,
    AttributeAudit,
    Audit,
    attribute_sentences,
    decision_sentences,
    group_names,
    interval,
    judged,
    magnitude,
    number,
    other_findings,
    other_sentences,
    percent,
    rows_used,
    selection_rates,
    short,
    smallest,
    trend,
    value_name,
)
from frhsic_core.conditional._curve import Array, Curve, Smoother

FORMAT = 5
LIMITS = "A number below a threshold does not make a decision fair. The audit describes these rows and attributes only."
WIDTH, HEIGHT = 640, 420
_LEFT, _RIGHT, _TOP = 62, 14, 16
_SPLIT, _FLOOR = 302, 366  # the curve ends and the density starts; the density ends
_POINTS = 160
_INTERVALS = 40
_LETTER, _TILTED = 10, 60  # width of a letter on a narrow screen; more height for tilted names


def _file(name: str) -> str:
    return resources.files("frhsic_core.auditing").joinpath(name).read_text(encoding="utf-8")


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    top = "".join(f'<th scope="col">{clean(cell)}</th>' for cell in head)
    body = "".join("<tr>" + "".join(f"<td>{clean(cell)}</td>" for cell in row) + "</tr>" for row in rows)
    return f"<table><thead><tr>{top}</tr></thead><tbody>{body}</tbody></table>"


def _details(title: str, inside: str) -> str:
    return f"<details><summary>{clean(title)}</summary>{inside}</details>"


def _list(sentences: Iterable[str]) -> str:
    return "<ul>" + "".join(f"<li>{clean(sentence)}</li>" for sentence in sentences) + "</ul>"


def _figure(attribute: AttributeAudit | Column, curve: Curve, label: str, caption: str, **options: Any) -> str:
    drawn = curve_svg(attribute, curve, label=label, **options)
    return f"<figure>{drawn}<figcaption>{clean(caption)}</figcaption></figure>"


def title(audit: Audit) -> str:
    """Return the title of a report."""
    return f"Audit of {short(audit.score)} by {', '.join(short(attribute.name) for attribute in audit.attributes)}"


def facts(audit: Audit) -> dict[str, str]:
    """Return where a report is from, with the date of today if the audit has none."""
    from frhsic_core import __version__

    today = {"date": datetime.now(UTC).date().isoformat()}
    return today | audit.provenance | {"library": f"frhsic-core {__version__}", "random_state": str(audit.random_state)}


def fragment(audit: Audit) -> str:
    """Return the report as one HTML element with its style, as a notebook shows it."""
    source = f" from {short(audit.provenance['file'])}" if "file" in audit.provenance else ""
    gate = "".join(
        f'<li class="{verdict.outcome}"><strong>{clean(verdict)}</strong></li>' for verdict in audit.verdicts
    )
    said = other_sentences(audit)
    parts = [
        f'<style>{_file("report.css")}</style><div class="frhsic-audit"><h1>{clean(title(audit))}</h1>',
        f'<p class="soft">{clean(rows_used(audit, source))}.</p>',
        f"<ul>{gate}</ul>" if gate else "",
        *(_attribute(audit, attribute) for attribute in audit.attributes),
        "<h2>All rows</h2>" + _list(said) if said else "",
    ]
    if audit.joint is not None:
        parts.append(_details("All attributes together: numbers", _numbers(audit, audit.joint.name)))
    parts.append("<h2>How to read this</h2>" + _list(_method(audit)))
    parts.append("<h2>Where this is from</h2>" + _list(f"{name}: {value}" for name, value in facts(audit).items()))
    return "\n".join([*parts, "</div>"])


def _cards(audit: Audit, attribute: AttributeAudit) -> str:
    """Return the three main numbers: the mean gap, what is guaranteed, and how sure the dependence is."""
    curve, bound, test = attribute.curve, attribute.bound, attribute.numbers["pvalue"]
    level = percent(1.0 - audit.alpha)
    gap = f"mean gap (GDP) between {audit.unit} of one {attribute.name} and all {audit.unit}, {level} interval "
    gap += f"{number(curve.gdp_low)} to {number(curve.gdp_high)}"
    limit, why, picture = "none", f"guarantee: {attribute.unbounded}", ""
    if bound is not None:
        limit = f"≤ {number(bound.bound)}"
        why = f"guaranteed: with {percent(1.0 - bound.delta)} confidence GDP is not larger in the population"
        picture = _scale(curve.gdp, (curve.gdp_low, curve.gdp_high), bound.bound, level)
        if bound.own_values:
            limit, why, picture = "none", f"guarantee: most {audit.unit} have a value of their own", ""
    sure = "p-value: more than chance would give" if test.value <= 0.05 else "p-value: chance could give this"
    cards = ((number(curve.gdp), gap), (limit, why), (f"p = {number(test.value)}", f"{sure}{smallest(test)}"))
    shown = "".join(f"<div><strong>{clean(value)}</strong> <span>{clean(what)}</span></div>" for value, what in cards)
    return f'<div class="cards">{shown}</div>{picture}'


def _scale(gdp: float, interval: tuple[float, float], bound: float, level: str) -> str:
    """Return the picture of the estimate, its interval and the guaranteed bound on one axis that starts at zero."""
    frame = _Frame((0.0, 1.05 * max(bound, interval[1])), (0.0, 1.0))
    low, at, high, end = map(frame.x, (interval[0], gdp, interval[1], bound))
    parts = [frame.across("axis", 30)]
    for place, name in zip(*ticks(0.0, frame.x1, 6), strict=True):
        parts.append(_tag("text", name, x=frame.x(place), y=51, text_anchor="middle"))
        parts.append(_tag("line", kind="axis", x1=frame.x(place), x2=frame.x(place), y1=30, y2=34))
    parts.append(_tag("line", kind="interval wide", x1=low, x2=high, y1=15, y2=15))
    parts.append(_tag("circle", kind="point", cx=at, cy=15, r=6))
    parts.append(_tag("polygon", kind="bound", points=f"{end - 7:.1f},15 {end:.1f},7 {end + 7:.1f},15 {end:.1f},23"))
    what = {"role": "img", "aria_label": f"GDP {number(gdp)}, guaranteed at most {number(bound)}"}
    words = f"GDP: the estimate (circle) with its {level} interval (line), and what is guaranteed (diamond)."
    svg = _tag("svg", "".join(parts), viewBox=f"0 0 {WIDTH} 57", **what)
    return f"<figure>{svg}<figcaption>{words}</figcaption></figure>"


def _attribute(audit: Audit, attribute: AttributeAudit) -> str:
    name, score, curve = short(attribute.name), short(audit.score), attribute.curve
    level = percent(1.0 - curve.alpha)
    mean = f"mean {score}"
    figure = partial(_figure, attribute)
    if curve.smooth and not attribute.categories:
        what = f"along {name} (line) with a band that contains the whole curve with a probability of about {level}"
        ends = " The picture leaves out the lowest and the highest percent."
    else:
        what, ends = f"for every value of {name}, with intervals that together have a level of about {level}", ""
    ends = f"Below: how many {audit.unit} there are.{ends}"
    caption = f"The mean of {score} {what}; the dashed line is the overall mean. {ends}"
    parts = [
        f'<h2>{clean(name)}</h2><p class="verdict">{clean(trend(audit, attribute))}</p>',
        _cards(audit, attribute),
        figure(curve, mean, caption, examples=True),
        "<h3>Is this much?</h3>" + _list(magnitude(audit, attribute)),
        _decisions(audit, attribute),
        "<h3>What else was found</h3>" + _list(other_findings(audit, attribute)),
    ]
    groups = attribute.groups
    if groups is not None and curve.smooth and groups.inside.max() > 0.0:
        caption = f"What a table of {len(groups)} groups shows (thick lines), and the same curve."
        parts.append(figure(curve, mean, caption, groups=groups))
    if "gdp_given" in attribute.curves:
        caption = f"What is left of {score} after {' and '.join(map(short, audit.controls))}: zero would mean no gap."
        parts.append(figure(attribute.curves["gdp_given"], "what is left", caption))
    captions = {
        "equal_opportunity": (mean, f"The same among {audit.unit} with label 1 (equal opportunity)."),
        "label_0": (mean, f"The same among {audit.unit} with label 0 (with the picture before: equalized odds)."),
        "calibration": (
            "mean error", f"Label minus prediction along {name}: zero means that predictions are right on average.",
        ),
    }  # fmt: skip
    labeled = [(attribute.curves[key], *words) for key, words in captions.items() if key in attribute.curves]
    if labeled:
        pictures = [figure(one, label, f"{caption} {_limits(one)}") for one, label, caption in labeled]
        parts.append(_details("With labels: equal opportunity, equalized odds and calibration", "".join(pictures)))
    parts.append(_details("All numbers", _numbers(audit, attribute.name)))
    if groups is not None:
        parts.append(_details(f"The table of {len(groups)} groups", _groups(audit, attribute, groups)))
    return "\n".join(parts)


def _decisions(audit: Audit, attribute: AttributeAudit) -> str:
    """Return what the threshold decides: sentences, the curve of selection rates, and rates by group."""
    if "selected" not in attribute.curves:
        return ""
    caption = f"The share of {audit.unit} with a score of at least {number(audit.threshold or 0.0)}."
    said = "<h3>At the threshold</h3>" + _list(decision_sentences(audit, attribute))
    curve = attribute.curves["selected"]
    inside = {name: np.clip(getattr(curve, name), 0.0, 1.0) for name in ("low", "mean", "high")}  # a share
    said += _figure(attribute, replace(curve, **inside), "share selected", caption)
    rates = selection_rates(attribute)
    most = max(rate for _, rate in rates)
    cells = [(place, percent(rate), number(rate / most) if most else "") for place, rate in rates]
    return said + _table((short(attribute.name), "share selected", "impact ratio"), cells)


def _limits(curve: Curve) -> str:
    """Return the gap of a curve, how large it would be by chance, and how much the curve is smoothed."""
    width = f" The curve is smoothed over {percent(2.0 * curve.bandwidth)} of the central range."
    return f"The mean gap is {judged(curve)}.{width if curve.smooth else ''}"


def _cells(line: Any) -> tuple[str, str, str, str]:
    """Return the value, the interval, the value by chance and the rows of a line of the table of an audit."""
    ends = f"{number(line.low)} to {number(line.high)}" if math.isfinite(line.low) else ""
    return number(line.value), ends, "" if pd.isna(line.by_chance) else number(line.by_chance), f"{line.rows:,}"


def _numbers(audit: Audit, name: str) -> str:
    table = audit.table()
    lines = table[table["attribute"] == name].itertuples(index=False)
    rows = [
        (f"{line.measure}: {MEANING[line.measure]}" if line.measure in MEANING else line.measure, *_cells(line))
        for line in lines
    ]
    return _table(("measure", "value", f"{percent(1.0 - audit.alpha)} interval", "by chance", "rows"), rows)


def _groups(audit: Audit, attribute: AttributeAudit, groups: pd.DataFrame) -> str:
    """Return the table that most reports show: the mean score of each group with its interval."""
    level = percent(1.0 - attribute.curve.alpha)
    numbers = zip(group_names(attribute, groups), groups.rows, groups.means, groups.low, groups.high, strict=True)
    each = [(place, f"{n:,.0f}", number(mean), f"{number(a)} to {number(b)}") for place, n, mean, a, b in numbers]
    return _table((short(attribute.name), "rows", f"mean {short(audit.score)}", f"{level} interval"), each)


def _method(audit: Audit) -> list[str]:
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


def page(heading: str, inside: str) -> str:
    """Return a whole HTML page."""
    return Template(_file("report.html")).substitute(title=clean(heading), inside=inside)


def change_report(
    before: Column, after: Array, columns: Sequence[Column], known: np.ndarray, *, fitted_on: str
) -> tuple[list[str], str]:
    """Return the sentences about an adjustment, and a page with the curves before and after in one picture.

    The adjustment was ``fitted_on`` other rows (``"others"``), on the half that is missing in ``after`` (``"half"``),
    or on these rows (``"itself"``). The page is empty if the rows are too few.
    """
    score = short(before.name)
    heading = f"{score} before and after the adjustment"
    said, figures = [], []
    kept = known & np.isfinite(after)
    for column in columns:
        parts = [(column.values[rows], values[rows]) for rows, values in ((known, before.values), (kept, after))]
        if any(len(s) < MIN_ROWS or np.ptp(s) == 0 for s, _ in parts):
            continue
        old, new = (Smoother(s, nominal=bool(column.categories)).curve(values) for s, values in parts)
        name = short(column.name)
        now = {
            "others": "It is now {}.",
            "half": "Fitted on one half of the rows, the adjustment leaves {} in the other half (in the picture); "
            "fitted on all rows, as here, it usually leaves less.",
            "itself": "It is now {}. This looks too good: these rows fitted the adjustment; no half could be left out.",
        }[fitted_on].format(interval(new))
        said.append(f"The mean gap along {name} was {interval(old)}. {now}")
        caption = f"The mean along {name} before (orange) and after (blue), each with its 95% band."
        figures.append(_figure(column, new, f"mean {score}", caption, before=old))
    if not known.all():
        said.append(f"Rows without a score or an attribute, which have no adjusted score: {(~known).sum():,}.")
    inside = f'<div class="frhsic-audit"><h1>{clean(heading)}</h1>{_list(said)}{"".join(figures)}</div>'
    return said, page(heading, f"<style>{_file('report.css')}</style>{inside}") if figures else ""


def escape_markdown(text: object) -> str:
    """Return text in which nothing is read as Markdown or HTML."""
    plain = " ".join(str(text).split())
    return "".join(f"\\{c}" if c in "\\`*_{}[]<>#|~$@" else c for c in plain)


def markdown(audit: Audit) -> str:
    """Return a model card in Markdown: where it is from, the verdicts, the sentences, one table, and the limits."""
    marks = {"below": "✅", "above": "❌", "inconclusive": "❔"}
    say = escape_markdown
    lines = [f"## {say(title(audit))}", ""]
    lines += [f"- **{name}**: {say(value)}" for name, value in {"rows": rows_used(audit), **facts(audit)}.items()]
    lines += ["", *(f"- {marks[verdict.outcome]} {say(verdict)}" for verdict in audit.verdicts), ""]
    for attribute in audit.attributes:
        first, *others = attribute_sentences(audit, attribute)
        lines += [f"### {say(short(attribute.name))}", "", f"**{say(first)}**", ""]
        lines += [*(f"- {say(sentence)}" for sentence in others), ""]
    lines += [f"- {say(sentence)}" for sentence in other_sentences(audit)]
    lines += ["", "| attribute | measure | value | interval | by chance | rows |", "|---|---|--:|--:|--:|--:|"]
    for line in audit.table().itertuples(index=False):
        lines.append(f"| {' | '.join((say(short(line.attribute)), say(line.measure), *_cells(line)))} |")
    return "\n".join([*lines, "", LIMITS]) + "\n"


def _json(value: Any) -> Any:
    if isinstance(value, dict):
        return {str(key): _json(entry) for key, entry in value.items()}
    if isinstance(value, pd.DataFrame):
        return _json(value.to_dict("list"))
    if isinstance(value, list | tuple):
        return [_json(entry) for entry in value]
    if isinstance(value, np.ndarray | np.generic):
        return _json(value.tolist())
    return None if isinstance(value, float) and not math.isfinite(value) else value


def as_dict(audit: Audit) -> dict[str, Any]:
    """Return an audit as JSON values; ``format`` is raised when a name changes its meaning."""
    outcomes = [asdict(verdict) | {"outcome": verdict.outcome} for verdict in audit.verdicts]
    value = asdict(audit) | {"provenance": facts(audit), "verdicts": outcomes}
    for entry, attribute in zip(value["attributes"], audit.attributes, strict=True):
        entry["sentences"] = attribute_sentences(audit, attribute)
    return _json({"format": FORMAT, "title": title(audit), "sentences": audit.sentences} | value)


def save(audit: Audit, path: str | os.PathLike[str]) -> list[Path]:
    """Write the page, and the JSON and the Markdown beside it, and return their paths.

    Everything is rendered before the first file is written, and the files are written whole and together or not at all.
    In a folder the page is ``audit.html``.
    """
    path = Path(path)
    path = path / "audit.html" if path.is_dir() else path
    page_path = path if path.suffix.lower() in (".html", ".htm") else path.with_name(path.name + ".html")
    numbers = json.dumps(as_dict(audit), allow_nan=False, ensure_ascii=False, indent=1) + "\n"
    files = {
        page_path.with_suffix(".json"): numbers,
        page_path.with_suffix(".md"): markdown(audit),
        page_path: audit.to_html(),
    }
    contents = {place: text.encode("utf-8", errors="replace") for place, text in files.items()}
    write_atomically({place: methodcaller("write", content) for place, content in contents.items()})
    return list(files)


def clean(text: object) -> str:
    """Return text for HTML and SVG: escaped, and without characters that XML does not allow."""
    plain = "".join(
        c if c >= " " and c not in "\x7f\ufffe\uffff" and not "\ud800" <= c <= "\udfff" else "\ufffd" for c in str(text)
    )
    return html.escape(plain, quote=True)


# Pictures -------------------------------------------------------------------------------------------------------------


def ticks(low: float, high: float, count: int = 5) -> tuple[list[float], list[str]]:
    """Return round numbers between two ends, and how to write them.

    Examples
    --------
    >>> ticks(17, 71)
    ([20.0, 40.0, 60.0], ['20', '40', '60'])
    """
    span = high - low
    if not (math.isfinite(span) and span > 0):
        return [low], [f"{low:.3g}"]
    raw = span / count
    size = 10.0 ** math.floor(math.log10(raw))
    step = next(factor * size for factor in (1.0, 2.0, 5.0, 10.0) if factor * size >= raw * 0.999)
    first = math.ceil(low / step - 1e-9)
    last = math.floor(high / step + 1e-9)
    values = [k * step for k in range(first, last + 1)]
    digits = max(0, -math.floor(math.log10(step) + 1e-9))
    plain = max(map(abs, (*values, step))) < 1e6 and digits <= 5
    return values, [f"{value:,.{digits}f}" if plain else f"{value:.3g}" for value in values]


def density(curve: Curve) -> tuple[Array, Array]:
    """Return the edges of intervals over the range of the band, and the density of people in each."""
    s = curve.s[curve.inside]
    edges = np.linspace(s[0], s[-1], _INTERVALS + 1)
    below = np.cumsum(curve.share) - 0.5 * curve.share
    return edges, np.diff(np.interp(edges, curve.s, below)) / np.diff(edges)


def _tag(tag: str, inside: str = "", **given: Any) -> str:
    """Return an SVG element; ``kind`` is its class, and numbers have one decimal."""
    named = {"class" if key == "kind" else key.replace("_", "-"): value for key, value in given.items()}
    shown = (
        f' {key}="{value:.1f}"' if isinstance(value, float) else f' {key}="{value}"' for key, value in named.items()
    )
    return f"<{tag}{''.join(shown)}>{inside}</{tag}>"


class _Frame:
    """The two panels of a picture: the curve above, the number of people below, on one horizontal axis."""

    def __init__(self, x: tuple[float, float], y: tuple[float, float]) -> None:
        self.x0, self.x1 = x if x[1] > x[0] else (x[0] - 0.5, x[0] + 0.5)
        margin = 0.06 * (y[1] - y[0]) or 0.5
        self.y0, self.y1 = y[0] - margin, y[1] + margin

    def x(self, s: float) -> float:
        return float(_LEFT + (s - self.x0) / (self.x1 - self.x0) * (WIDTH - _LEFT - _RIGHT))

    def y(self, value: float) -> float:
        return float(_SPLIT - 8 - (value - self.y0) / (self.y1 - self.y0) * (_SPLIT - 8 - _TOP))

    def path(self, xs: Array, ys: Array) -> str:
        return " ".join(f"{self.x(a):.1f},{self.y(b):.1f}" for a, b in zip(xs, ys, strict=True))

    def across(self, kind: str, at: float) -> str:
        return _tag("line", kind=kind, x1=_LEFT, x2=WIDTH - _RIGHT, y1=at, y2=at)

    def vertical_axis(self, label: str) -> list[str]:
        parts = []
        for value, text in zip(*ticks(self.y0, self.y1), strict=True):
            parts.append(self.across("grid", self.y(value)))
            parts.append(_tag("text", text, x=_LEFT - 6, y=self.y(value) + 4, text_anchor="end"))
        # Above the picture, where no number of the axis is in its way on a narrow screen.
        return [*parts, _tag("text", clean(label), kind="label", x=_LEFT, y=_TOP - 5)]

    def bar(self, left: float, right: float, share: float) -> str:
        size = float(share) * (_FLOOR - _SPLIT - 6)
        return _tag("rect", x=self.x(left), y=_FLOOR - size, width=self.x(right) - self.x(left) + 0.3, height=size)


def curve_svg(
    attribute: AttributeAudit | Column,
    curve: Curve,
    *,
    label: str,
    groups: pd.DataFrame | None = None,
    before: Curve | None = None,
    examples: bool = False,
) -> str:
    """Return the curve with its band (or levels with their intervals) above the number of people.

    It may show means of ``groups``, the curve ``before``, or a few people as ``examples``.
    """
    curves = [curve] if before is None else [before, curve]
    smooth = curve.smooth and not attribute.categories
    low = min(min(float(one.low[one.inside].min()), one.center) for one in curves)
    high = max(max(float(one.high[one.inside].max()), one.center) for one in curves)
    inside = np.flatnonzero(curve.inside)
    ends = (float(curve.s[inside[0]]), float(curve.s[inside[-1]])) if smooth else (-0.6, len(curve.s) - 0.4)
    frame = _Frame(ends, (low, high))
    parts = frame.vertical_axis(label)
    if groups is not None:
        for first, last, value in zip(groups.start, groups.end, groups.means, strict=True):
            a, b = frame.x(max(first, frame.x0)), frame.x(min(last, frame.x1))
            parts.append(_tag("line", kind="group", x1=a, x2=b, y1=frame.y(value), y2=frame.y(value)))
            parts.append(_tag("line", kind="edge", x1=b, x2=b, y1=_TOP, y2=_SPLIT - 8))
    parts.append(frame.across("center", frame.y(curve.center)))
    for one in curves:
        mark = " before" if one is before else ""
        parts += _band(frame, one, inside, mark) if smooth else _levels(frame, one, mark)
    if examples and smooth and not isinstance(attribute, Column):
        below = np.cumsum(curve.share) - 0.5 * curve.share
        for share, anchor in ((0.1, "start"), (0.5, "middle"), (0.9, "end")):
            k = inside[np.abs(below[inside] - share).argmin()]
            a, b = frame.x(curve.s[k]), frame.y(curve.mean[k])
            words = f"{value_name(attribute, float(curve.s[k]))}: {number(float(curve.mean[k]))}"
            parts.append(_tag("circle", kind="point", cx=a, cy=b, r=4.5))
            above = frame.y(curve.high[k]) - 7  # beside the curve and inside the picture on a narrow screen
            parts.append(_tag("text", clean(words), kind="example", x=a, y=above, text_anchor=anchor))
    if smooth:
        edges, heights = density(curve)
        sides = list(itertools.pairwise(edges))
        places, names = ticks(*ends, 9)
    else:
        heights, sides = curve.share, [(k - 0.35, k + 0.35) for k in range(len(curve.s))]
        every = max(1, math.ceil(len(curve.s) / 12))
        values = curve.s[::every].tolist()
        places = [float(k) for k in range(0, len(curve.s), every)]
        names = [attribute.categories[int(s)] if attribute.categories else number(s) for s in values]
        names = [name if len(name) <= 12 else name[:11] + "…" for name in names]
    tallest = float(heights.max()) or 1.0
    bars = [frame.bar(*side, height / tallest) for side, height in zip(sides, heights, strict=True)]
    parts.append(_tag("g", "".join(bars), kind="people"))  # one opacity for all bars hides their seams
    room = frame.x(places[1]) - frame.x(places[0]) if len(places) > 1 else math.inf
    tilted = not smooth and max(map(len, names)) * _LETTER > room
    turn, anchor, height = (" rotate(-35)", "end", HEIGHT + _TILTED) if tilted else ("", "middle", HEIGHT)
    for place, name in zip(places, names, strict=True):
        at = f"translate({frame.x(place):.1f} {_FLOOR + 17}){turn}"
        parts.append(_tag("text", clean(name), transform=at, text_anchor=anchor))
    parts.append(frame.across("axis", _FLOOR))
    name = clean(short(attribute.name))
    middle = (_LEFT + WIDTH - _RIGHT) / 2
    parts.append(_tag("text", name, kind="label", x=middle, y=height - 14, text_anchor="middle"))
    what = {"role": "img", "aria_label": f"{clean(label)} along {name}", "preserveAspectRatio": "xMidYMid meet"}
    return _tag("svg", "".join(parts), viewBox=f"0 0 {WIDTH} {height}", **what)


def _band(frame: _Frame, curve: Curve, inside: np.ndarray, mark: str) -> list[str]:
    shown = inside[np.unique(np.linspace(0, len(inside) - 1, _POINTS).round().astype(int))]
    s, low, high = curve.s[shown], curve.low[shown], curve.high[shown]
    band = frame.path(s, high) + " " + frame.path(s[::-1], low[::-1])
    line = frame.path(s, curve.mean[shown])
    return [_tag("polygon", kind=f"band{mark}", points=band), _tag("polyline", kind=f"curve{mark}", points=line)]


def _levels(frame: _Frame, curve: Curve, mark: str) -> list[str]:
    parts = []
    for k, (low, high, mean) in enumerate(zip(curve.low, curve.high, curve.mean, strict=True)):
        x = frame.x(k - (0.2 if mark else 0.0))
        parts.append(_tag("line", kind=f"interval{mark}", x1=x, x2=x, y1=frame.y(low), y2=frame.y(high)))
        parts.append(_tag("circle", kind=f"point{mark}", cx=x, cy=frame.y(mean), r=4))
    return parts
