"""Write an audit as one self-contained HTML page with inline SVG, as JSON and as Markdown.

The page has no script and loads nothing. A content security policy forbids both, so that text from the data could do
nothing even if it were not escaped.
"""

from __future__ import annotations

import html
import json
import math
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from functools import partial
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from frhsic_core.atomic_files import write_together
from frhsic_core.auditing._input import MIN_ROWS, Column
from frhsic_core.auditing._measures import KHGR_RIDGE, Effect, Groups, gap_below, largest_gap
from frhsic_core.auditing._results import MEASURES
from frhsic_core.auditing._sentences import (
    attribute_sentences,
    decision_sentences,
    interval,
    magnitude,
    number,
    other_findings,
    other_sentences,
    p_value,
    percent,
    short,
    trend,
    value_name,
)
from frhsic_core.conditional._curve import Smoother
from frhsic_core.registry import labels

if TYPE_CHECKING:
    from frhsic_core.auditing._results import AttributeAudit, Audit, Verdict
    from frhsic_core.bounds import DependenceBound
    from frhsic_core.conditional._curve import Array, Curve

FORMAT = 2
EFFECTS = {
    "normalized_hsic": "normalized HSIC",
    "distance_correlation": "distance correlation",
    "khgr": f"kernel HGR (ridge {KHGR_RIDGE:g})",
    **labels(("linear_r2", "nonlinear_r2")),
}
WIDTH, HEIGHT = 640, 420
_LEFT, _RIGHT, _TOP = 62, 14, 16
_SPLIT, _FLOOR = 302, 366  # the curve ends and the density starts; the density ends
_POINTS = 160
_INTERVALS = 40
_LETTER, _TILTED = 10, 60  # width of a letter on a narrow screen; more height for tilted names
PAGE_STYLE = """
html { color-scheme: light dark; } body { margin: 0; background: #fff; }
@media (prefers-color-scheme: dark) { body { background: #16181b; } }
@media print { html, body { background: #fff; } }
"""


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    top = "".join(f'<th scope="col">{clean(cell)}</th>' for cell in head)
    body = "".join("<tr>" + "".join(f"<td>{clean(cell)}</td>" for cell in row) + "</tr>" for row in rows)
    return f"<table><thead><tr>{top}</tr></thead><tbody>{body}</tbody></table>"


def _details(title: str, inside: str) -> str:
    return f"<details><summary>{clean(title)}</summary>{inside}</details>"


def _list(sentences: Iterable[str]) -> str:
    return "<ul>" + "".join(f"<li>{clean(sentence)}</li>" for sentence in sentences) + "</ul>"


def _figure(picture: str, caption: str) -> str:
    return f"<figure>{picture}<figcaption>{clean(caption)}</figcaption></figure>"


def title(audit: Audit) -> str:
    """Return the title of a report."""
    scores = short(audit.scores[0]) if len(audit.scores) == 1 else f"{len(audit.scores)} score columns"
    return f"Audit of {scores} by {', '.join(short(attribute.name) for attribute in audit.attributes)}"


def fragment(audit: Audit, verdicts: Sequence[Verdict] = (), provenance: Mapping[str, str] | None = None) -> str:
    """Return the report as one HTML element with its style, as a notebook shows it."""
    parts = [f'<style>{_style()}</style><div class="frhsic-audit">', f"<h1>{clean(title(audit))}</h1>"]
    source = f" from {short(audit.source)}" if audit.source else ""
    parts.append(f'<p class="soft">{audit.rows:,} rows{clean(source)}.</p>')
    if verdicts:
        rows = "".join(f'<li class="{verdict.outcome}"><strong>{clean(verdict)}</strong></li>' for verdict in verdicts)
        parts.append(f"<ul>{rows}</ul>")
    for attribute in audit.attributes:
        parts.append(_attribute(audit, attribute))
    said = other_sentences(audit)
    if said:
        parts.append("<h2>All rows</h2>" + _list(said))
    if audit.joint is not None:
        parts.append(_details("All attributes together: numbers", _effects(audit.joint.effects)))
    parts.append("<h2>How to read this</h2>" + _method(audit))
    facts = {**(provenance or audit.provenance), "library": f"frhsic-core {_version()}"}
    facts["random_state"] = str(audit.random_state)
    parts.append("<h2>Where this is from</h2>" + _list(f"{name}: {value}" for name, value in facts.items()))
    parts.append("</div>")
    return "\n".join(parts)


def _cards(audit: Audit, attribute: AttributeAudit) -> str:
    """Return the three main numbers: the mean gap, what is guaranteed, and how sure the dependence is."""
    curve, bound, test = attribute.curve, attribute.bound, attribute.test
    level = percent(1.0 - audit.alpha)
    gap = f"mean gap (GDP), {level} interval {number(curve.gdp_low)} to {number(curve.gdp_high)}"
    limit, why = "none", "guarantee: it needs scores from 0 to 1 without weights"
    if bound is not None:
        limit, why = f"≤ {number(bound.bound)}", f"guaranteed GDP, with {percent(1.0 - bound.delta)} confidence"
        if bound.own_values:
            limit, why = "none", f"guarantee: most {audit.unit} have a value of their own"
    sure = "more than chance would give" if test.pvalue <= 0.05 else "chance could give this"
    cards = ((number(curve.gdp), gap), (limit, why), (f"p = {number(test.pvalue)}", sure))
    shown = "".join(f"<div><strong>{clean(value)}</strong> <span>{clean(what)}</span></div>" for value, what in cards)
    return f'<div class="cards">{shown}</div>'


def _style() -> str:
    return resources.files("frhsic_core.auditing").joinpath("report.css").read_text(encoding="utf-8")


def _attribute(audit: Audit, attribute: AttributeAudit) -> str:
    name = short(attribute.name)
    curve = attribute.curve
    level = percent(1.0 - curve.alpha)
    score = f"mean {short(attribute.score)}"
    parts = [f'<h2>{clean(name)}</h2><p class="verdict">{clean(trend(audit, attribute))}</p>']
    parts.append(_cards(audit, attribute))
    if curve.smooth and not attribute.categories:
        caption = (
            f"The mean of {short(attribute.score)} along {name} (line) with a band that contains the whole curve with "
            f"probability {level}; the dashed line is the overall mean. Below: how many {audit.unit} there are. The "
            "picture leaves out the lowest and the highest percent."
        )
    else:
        caption = (
            f"The mean of {short(attribute.score)} for every value of {name}, with intervals that hold together with "
            f"probability {level}; the dashed line is the overall mean. Below: how many {audit.unit} there are."
        )
    drawn = curve_svg(attribute, curve, label=score, title=f"{score} along {name}, with its band", examples=True)
    parts.append(_figure(drawn, caption))
    parts.append("<h3>Is this much?</h3>" + _list(magnitude(audit, attribute)))
    if attribute.decisions is not None:
        parts.append(_decisions(audit, attribute))
    parts.append("<h3>What else was found</h3>" + _list(other_findings(audit, attribute)))
    if attribute.bound is not None and not attribute.bound.own_values:
        caption = (
            f"GDP of {name}: the estimate (point) with its {level} interval, and the bound (bar) that GDP does not "
            "exceed with the same confidence."
        )
        parts.append(_figure(bound_svg(attribute, attribute.bound), caption))
    middle = attribute.groups[len(attribute.groups) // 2] if attribute.groups else None
    if middle is not None and curve.smooth and middle.inside > 0.0:
        picture = curve_svg(
            attribute, curve, label=score, title=f"means of {middle.groups} groups beside the curve", groups=middle
        )
        parts.append(
            _figure(picture, f"What a table of {middle.groups} groups shows (thick lines), and the same curve.")
        )
    if attribute.given is not None:
        controls = " and ".join(map(short, attribute.given.controls))
        picture = curve_svg(
            attribute, attribute.given.curve, label="what is left", title=f"what is left given {controls}"
        )
        parts.append(
            _figure(picture, f"What is left of {short(attribute.score)} after {controls}: zero would mean no gap.")
        )
    captions = {
        "equal_opportunity": f"The same among {audit.unit} with label 1 (equal opportunity).",
        "label_0": f"The same among {audit.unit} with label 0 (with the picture before: equalized odds).",
        "calibration": f"Label minus prediction along {name}: zero means that predictions are right on average.",
    }
    pictures = []
    for key, labeled in attribute.labels.items():
        axis = "mean error" if key == "calibration" else score
        picture = curve_svg(attribute, labeled, label=axis, title=captions[key])
        pictures.append(_figure(picture, f"{captions[key]} {_limits(labeled)}"))
    if pictures:
        parts.append(_details("With labels: equal opportunity, equalized odds and calibration", "".join(pictures)))
    parts.append(_details("All numbers", _numbers(audit, attribute)))
    if attribute.groups:
        parts.append(_details("What groups show and hide", _groups(attribute)))
    if attribute.columns:
        rows = sorted(attribute.columns.items(), key=lambda item: -item[1])[:50]
        table = _table(("column", "GDP in standard deviations"), [(short(key), number(value)) for key, value in rows])
        parts.append(_details("Every score column", table))
    return "\n".join(parts)


def _decisions(audit: Audit, attribute: AttributeAudit) -> str:
    """Return what the threshold decides: sentences, the curve of selection rates, and rates by group."""
    made = attribute.decisions
    assert made is not None
    said = "<h3>At the threshold</h3>" + _list(decision_sentences(audit, attribute))
    picture = curve_svg(attribute, made.selected, label="share selected", title="share selected, with its band")
    said += _figure(picture, f"The share of {audit.unit} with a score of at least {number(audit.threshold or 0.0)}.")
    if made.groups is None:
        rows = [(value_name(attribute, s), rate) for s, rate in zip(made.selected.s, made.selected.mean, strict=True)]
    else:
        ends = zip(made.groups.first, made.groups.last, made.groups.means, strict=True)
        rows = [(f"{value_name(attribute, a)} to {value_name(attribute, b)}", rate) for a, b, rate in ends]
    most = max(float(rate) for _, rate in rows)
    cells = [(place, percent(float(rate)), number(float(rate) / most) if most else "") for place, rate in rows]
    return said + _table((short(attribute.name), "share selected", "impact ratio"), cells)


def _limits(curve: Curve) -> str:
    """Return how large the gap of a curve would be by chance, and how much it is smoothed."""
    width = (
        f" The curve is smoothed over {percent(2.0 * curve.bandwidth)} of the central range." if curve.smooth else ""
    )
    verdict = " The gap is not distinguishable from chance." if curve.is_flat else ""
    return f"Mean gap {number(curve.gdp)}; chance alone gives about {number(curve.floor)}.{verdict}{width}"


def _numbers(audit: Audit, attribute: AttributeAudit) -> str:
    rows = []
    for name, meaning in MEASURES.items():
        found = attribute.measure(name)
        if found is not None:
            value, low, high, floor = map(number, found)
            rows.append((f"{name}: {meaning}", value, f"{low} to {high}", floor))
    parts = [_table(("measure", "value", f"{percent(1.0 - audit.alpha)} interval", "by chance"), rows)]
    tests = {"of independence": attribute.test, "given the label, equalized odds": attribute.label_test}
    tests["given the control features"] = attribute.given.test if attribute.given else None
    for name, test in tests.items():
        if test is not None:
            parts.append(f"<p>Test {name} ({clean(test.method)}, {test.rows:,} rows): {p_value(test)}.</p>")
    parts.append(_effects(attribute.effects))
    explained = percent(attribute.curve.explained)
    parts.append(f"<p>The curve explains {explained} of the variance of {clean(short(attribute.score))}.</p>")
    return "".join(parts)


def _effects(effects: dict[str, Effect]) -> str:
    rows = [
        (EFFECTS[key], number(effect.value), number(effect.floor), f"{effect.rows:,}")
        for key, effect in effects.items()
    ]
    return _table(("effect size", "value", "by chance", "rows"), rows)


def _certain(difference: float) -> str:
    """Return a difference along the curve, which is zero if its band allows none."""
    return number(difference) if difference else "not certain"


def _groups(attribute: AttributeAudit) -> str:
    rows = []
    for groups in attribute.groups:
        low, high = (value_name(attribute, ends[groups.where]) for ends in (groups.first, groups.last))
        rows.append((
            str(groups.groups), number(groups.gdp), number(groups.difference), _certain(groups.range),
            f"{_certain(groups.inside)} ({low} to {high})" if groups.inside else _certain(0.0), percent(groups.hidden),
        ))  # fmt: skip
    head = ("groups", "GDP", "largest difference of groups", "along the curve", "inside one group", "variance hidden")
    middle = attribute.groups[len(attribute.groups) // 2]
    level = percent(1.0 - attribute.curve.alpha)
    each = [
        (
            f"{value_name(attribute, a)} to {value_name(attribute, b)}",
            f"{n:,.0f}",
            number(mean),
            f"{number(x)} to {number(y)}",
        )
        for a, b, n, mean, x, y in zip(
            middle.first, middle.last, middle.rows, middle.means, middle.low, middle.high, strict=True
        )
    ]
    name = short(attribute.name)
    return _table(head, rows) + _table((name, "rows", f"mean {short(attribute.score)}", f"{level} interval"), each)


def _method(audit: Audit) -> str:
    level = percent(1.0 - audit.alpha)
    weights = f" Rows are weighted by {short(audit.weight)}." if audit.weight else ""
    said = [
        "GDP is E|E[f | S] − E f|: the distance between the mean prediction at a person's value of the attribute and "
        "the overall mean, averaged over all rows. It has the unit of the predictions. The attribute is not cut into "
        "groups." + weights,
        "The curve is a local quadratic fit; an attribute with at most 20 values or with categories is not smoothed. "
        f"The band contains the whole curve between the first and the last percent of the attribute with probability "
        f"{level}. The interval of GDP takes into account that GDP is overestimated near zero.",
        "The test is exact under independence. With many rows every dependence is significant, so read the effect "
        "sizes: each is shown beside the value that chance alone gives. They and the test use random samples of the "
        "rows; their numbers are in the tables.",
        "Given control features, the part of the predictions that they explain (cross-fitted splines, added) is "
        "subtracted first. The conditional test asks whether predictions and attribute are independent given them.",
        "A number below a threshold does not make a decision fair. The audit describes these rows only, and only "
        "the attributes that were named.",
    ]
    return _list(said)


def _version() -> str:
    from frhsic_core import __version__

    return __version__


def page(audit: Audit, verdicts: Sequence[Verdict] = ()) -> str:
    """Return the report as a whole HTML page."""
    return _page(title(audit), fragment(audit, verdicts, dated(audit)))


def dated(audit: Audit) -> dict[str, str]:
    """Return where a report is from, with the date of today if the audit has none."""
    return {"date": datetime.now(UTC).date().isoformat()} | audit.provenance


def change_report(before: Column, after: Array, columns: Sequence[Column], known: Array) -> tuple[list[str], str]:
    """Return the sentences about an adjustment, and a page with the curves before and after in one picture.

    The page is empty if the rows are too few for a curve.
    """
    score = short(before.name)
    heading = f"{score} before and after the adjustment"
    said, figures = [], []
    for column in columns:
        s = column.values[known]
        if len(s) < MIN_ROWS or np.ptp(s) == 0:
            continue
        smoother = Smoother(s, nominal=bool(column.categories))
        old, new = (smoother.curve(values[known]) for values in (before.values, after))
        name = short(column.name)
        said.append(f"The mean gap along {name} was {interval(old)} and is now {interval(new)}.")
        picture = curve_svg(column, new, label=f"mean {score}", title=f"{heading}, {name}", before=old)
        caption = f"The mean along {name} before (orange) and after (blue), each with its {percent(0.95)} band."
        figures.append(_figure(picture, caption))
    if not known.all():
        said.append(f"Rows without a score or an attribute, which have no adjusted score: {(~known).sum():,}.")
    inside = f'<div class="frhsic-audit"><h1>{clean(heading)}</h1>{_list(said)}{"".join(figures)}</div>'
    return said, _page(heading, f"<style>{_style()}</style>{inside}") if figures else ""


def _page(heading: str, inside: str) -> str:
    policy = "default-src 'none'; style-src 'unsafe-inline'; img-src data:"  # the empty icon
    return (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        '<link rel="icon" href="data:,">\n'
        f"<title>{clean(heading)}</title>\n<style>{PAGE_STYLE}</style>\n</head>\n<body>\n<main>"
        f"{inside}</main>\n</body>\n</html>\n"
    )


def escape_markdown(text: object) -> str:
    """Return text in which nothing is read as Markdown or HTML."""
    plain = " ".join(str(text).split())
    return "".join(f"\\{c}" if c in "\\`*_{}[]<>#|~$@" else c for c in plain)


def markdown(audit: Audit, verdicts: Sequence[Verdict] = ()) -> str:
    """Return a model card in Markdown: where it is from, the verdicts, the sentences, one table, and the limits."""
    marks = {"below": "✅", "above": "❌", "inconclusive": "❔"}
    lines = [f"## {escape_markdown(title(audit))}", ""]
    facts = {**dated(audit), "rows": f"{audit.rows:,}", "library": f"frhsic-core {_version()}"}
    lines += [f"- **{name}**: {escape_markdown(value)}" for name, value in facts.items()]
    lines.append("")
    lines += [f"- {marks[verdict.outcome]} {escape_markdown(verdict)}" for verdict in verdicts]
    lines += [""] if verdicts else []
    for attribute in audit.attributes:
        first, *others = attribute_sentences(audit, attribute)
        lines += [f"### {escape_markdown(short(attribute.name))}", "", f"**{escape_markdown(first)}**", ""]
        lines += [f"- {escape_markdown(sentence)}" for sentence in others]
        lines.append("")
    lines += [f"- {escape_markdown(sentence)}" for sentence in other_sentences(audit)]
    lines += ["", "| attribute | measure | value | interval or value by chance | rows |", "|---|---|--:|--:|--:|"]
    for row in audit.table().itertuples(index=False):
        if math.isfinite(row.low):
            beside = f"{number(row.low)} to {number(row.high)}"
        else:
            beside = number(row.by_chance) if math.isfinite(row.by_chance) else ""
        cells = (escape_markdown(short(row.attribute)), escape_markdown(row.measure), number(row.value), beside)
        lines.append(f"| {' | '.join(cells)} | {row.rows:,} |")
    limits = (
        "A number below a threshold does not make a decision fair. The audit describes these rows and attributes only."
    )
    return "\n".join([*lines, "", limits]) + "\n"


def _json(value: Any) -> Any:
    if isinstance(value, dict):
        return {str(key): _json(entry) for key, entry in value.items()}
    if isinstance(value, list | tuple):
        return [_json(entry) for entry in value]
    if isinstance(value, np.ndarray):
        return [_json(entry) for entry in value.tolist()]
    if isinstance(value, np.generic):
        return _json(value.item())
    return None if isinstance(value, float) and not math.isfinite(value) else value


def as_dict(audit: Audit, verdicts: Sequence[Verdict] = ()) -> dict[str, Any]:
    """Return an audit as JSON values; ``format`` is raised when a name changes its meaning."""
    value = asdict(audit)
    for entry, attribute in zip(value["attributes"], audit.attributes, strict=True):
        entry["sentences"] = attribute_sentences(audit, attribute)
        entry["measures"] = {
            name: found._asdict() for name in MEASURES if (found := attribute.measure(name)) is not None
        }
        curves = [(entry["curve"], attribute.curve)]
        curves += [(entry["labels"][name], curve) for name, curve in attribute.labels.items()]
        if attribute.given is not None:
            curves.append((entry["given"]["curve"], attribute.given.curve))
        if attribute.decisions is not None:
            entry["decisions"]["group_impact"] = attribute.decisions.group_impact
        for numbers, curve in curves:
            numbers["largest"] = asdict(largest_gap(curve))
            numbers["gap_below_90"] = gap_below(curve, 0.9)
            numbers["is_flat"] = curve.is_flat
    value["provenance"] = dated(audit)
    first = {"format": FORMAT, "frhsic_core": _version(), "title": title(audit), "sentences": audit.sentences}
    outcomes = [asdict(verdict) | {"outcome": verdict.outcome} for verdict in verdicts]
    return _json(first | {"verdicts": outcomes} | value)


def _write(content: bytes, file: Any) -> None:
    file.write(content)


def save(audit: Audit, path: str | os.PathLike[str], *, verdicts: Sequence[Verdict] = ()) -> list[Path]:
    """Write the page, and the JSON and the Markdown beside it, and return their paths.

    Everything is rendered before the first file is written, and the files are written whole and together or not at all.
    In a folder the page is ``audit.html``.
    """
    path = Path(path)
    path = path / "audit.html" if path.is_dir() else path
    page_path = path if path.suffix.lower() in (".html", ".htm") else path.with_name(path.name + ".html")
    files = {
        page_path.with_suffix(".json"): (
            json.dumps(as_dict(audit, verdicts), allow_nan=False, ensure_ascii=False, indent=1) + "\n"
        ),
        page_path.with_suffix(".md"): markdown(audit, verdicts),
        page_path: page(audit, verdicts),
    }
    write_together({place: partial(_write, text.encode("utf-8", errors="replace")) for place, text in files.items()})
    return list(files)


def clean(text: object) -> str:
    """Return text for HTML and SVG: escaped, and without characters that XML does not allow."""
    plain = "".join(c if c >= " " and c not in "\x7f￾￿" and not "\ud800" <= c <= "\udfff" else "�" for c in str(text))
    return html.escape(plain, quote=True)


def ticks(low: float, high: float, count: int = 5) -> list[float]:
    """Return round numbers between two ends.

    Examples
    --------
    >>> ticks(17, 71)
    [20.0, 40.0, 60.0]
    """
    span = high - low
    if not (math.isfinite(span) and span > 0):
        return [low]
    raw = span / count
    size = 10.0 ** math.floor(math.log10(raw))
    step = next(factor * size for factor in (1.0, 2.0, 5.0, 10.0) if factor * size >= raw * 0.999)
    first = math.ceil(low / step - 1e-9)
    last = math.floor(high / step + 1e-9)
    return [k * step for k in range(first, last + 1)]


def _tick(value: float, step: float) -> str:
    digits = max(0, -math.floor(math.log10(step) + 1e-9)) if 0 < step < 1 else 0
    if max(abs(value), step) >= 1e6 or digits > 5:
        return f"{value:.3g}"
    return f"{value:,.{digits}f}"


def density(curve: Curve) -> tuple[Array, Array]:
    """Return the edges of intervals over the range of the band, and the density of people in each."""
    s = curve.s[curve.inside]
    edges = np.linspace(s[0], s[-1], _INTERVALS + 1)
    below = np.cumsum(curve.share) - 0.5 * curve.share
    return edges, np.diff(np.interp(edges, curve.s, below)) / np.diff(edges)


class _Frame:
    """The two panels of a picture: the curve above, the density below, on one horizontal axis."""

    def __init__(self, x: tuple[float, float], y: tuple[float, float]) -> None:
        self.x0, self.x1 = x if x[1] > x[0] else (x[0] - 0.5, x[0] + 0.5)
        margin = 0.06 * (y[1] - y[0]) or 0.5
        self.y0, self.y1 = y[0] - margin, y[1] + margin

    def x(self, s: float) -> float:
        return _LEFT + (s - self.x0) / (self.x1 - self.x0) * (WIDTH - _LEFT - _RIGHT)

    def y(self, value: float) -> float:
        return _SPLIT - 8 - (value - self.y0) / (self.y1 - self.y0) * (_SPLIT - 8 - _TOP)

    def line(self, xs: Sequence[float] | Array, ys: Sequence[float] | Array) -> str:
        return " ".join(f"{self.x(a):.1f},{self.y(b):.1f}" for a, b in zip(xs, ys, strict=True))

    def vertical_axis(self, label: str) -> list[str]:
        found = ticks(self.y0, self.y1)
        step = found[1] - found[0] if len(found) > 1 else 1.0
        parts = []
        for value in found:
            at = self.y(value)
            parts.append(f'<line class="grid" x1="{_LEFT}" x2="{WIDTH - _RIGHT}" y1="{at:.1f}" y2="{at:.1f}"/>')
            parts.append(f'<text x="{_LEFT - 6}" y="{at + 4:.1f}" text-anchor="end">{_tick(value, step)}</text>')
        middle = (_TOP + _SPLIT) / 2
        parts.append(
            f'<text class="label" transform="translate(14 {middle:.0f}) rotate(-90)" text-anchor="middle">'
            f"{clean(label)}</text>"
        )
        return parts

    def horizontal_axis(self, label: str) -> list[str]:
        found = ticks(self.x0, self.x1, 9)
        step = found[1] - found[0] if len(found) > 1 else 1.0
        parts = [f'<line class="axis" x1="{_LEFT}" x2="{WIDTH - _RIGHT}" y1="{_FLOOR}" y2="{_FLOOR}"/>']
        for value in found:
            text = _tick(value, step)
            parts.append(f'<text x="{self.x(value):.1f}" y="{_FLOOR + 17}" text-anchor="middle">{text}</text>')
        parts.append(_axis_label(label))
        return parts


def _axis_label(label: str, extra: int = 0) -> str:
    middle = (_LEFT + WIDTH - _RIGHT) / 2
    return f'<text class="label" x="{middle:.0f}" y="{HEIGHT + extra - 14}" text-anchor="middle">{clean(label)}</text>'


def _svg(parts: list[str], title: str, extra: int = 0) -> str:
    return (
        f'<svg viewBox="0 0 {WIDTH} {HEIGHT + extra}" role="img" aria-label="{clean(title)}" '
        f'preserveAspectRatio="xMidYMid meet">{"".join(parts)}</svg>'
    )


def bound_svg(attribute: AttributeAudit, bound: DependenceBound) -> str:
    """Return the estimate, the interval and the bound of GDP on one line."""
    low, high = attribute.interval
    found = ticks(0.0, 1.35 * max(bound.bound, high))
    end = 1.35 * max(bound.bound, high)

    def x(value: float) -> float:
        return _LEFT + value / end * (WIDTH - _LEFT - _RIGHT)

    axis, middle = 62, 32
    parts = [f'<line class="axis" x1="{_LEFT}" x2="{WIDTH - _RIGHT}" y1="{axis}" y2="{axis}"/>']
    for value in found:
        text = _tick(value, found[1] - found[0])
        parts.append(f'<text x="{x(value):.1f}" y="{axis + 17}" text-anchor="middle">{text}</text>')
    parts.append(
        f'<line class="interval" x1="{x(low):.1f}" x2="{x(high):.1f}" y1="{middle}" y2="{middle}"/>'
        f'<circle class="point" cx="{x(attribute.gdp):.1f}" cy="{middle}" r="5"/>'
        f'<line class="group" x1="{x(bound.bound):.1f}" x2="{x(bound.bound):.1f}" y1="{middle - 14}" '
        f'y2="{middle + 14}"/>'
    )
    parts.append(f'<text x="{x(attribute.gdp):.1f}" y="12" text-anchor="middle">{number(attribute.gdp)}</text>')
    words = f"at most {number(bound.bound)}"
    parts.append(f'<text x="{x(bound.bound) + 6:.1f}" y="{middle + 5}">{words}</text>')
    title = f"GDP {number(attribute.gdp)}, interval {number(low)} to {number(high)}, {words}"
    return _svg(parts, title, extra=96 - HEIGHT)


def curve_svg(
    attribute: AttributeAudit | Column,
    curve: Curve,
    *,
    label: str,
    title: str,
    groups: Groups | None = None,
    before: Curve | None = None,
    examples: bool = False,
) -> str:
    """Return the curve with its band above the density of S.

    It may show means of ``groups``, the curve ``before``, or a few people as ``examples``.
    """
    both = [curve] if before is None else [before, curve]
    if attribute.categories or not curve.smooth:
        return _levels_svg(attribute, both, label=label, title=title)
    bottom, top = _reach(both)
    inside = np.flatnonzero(curve.inside)
    s = curve.s[inside]
    frame = _Frame((float(s[0]), float(s[-1])), (bottom, top))
    parts = frame.vertical_axis(label)
    if groups is not None:
        for left, right, value in zip(groups.first, groups.last, groups.means, strict=True):
            a, b = frame.x(max(left, frame.x0)), frame.x(min(right, frame.x1))
            at = frame.y(float(value))
            parts.append(f'<line class="group" x1="{a:.1f}" x2="{b:.1f}" y1="{at:.1f}" y2="{at:.1f}"/>')
            parts.append(f'<line class="edge" x1="{b:.1f}" x2="{b:.1f}" y1="{_TOP}" y2="{_SPLIT - 8}"/>')
    center = frame.y(curve.center)
    parts.append(f'<line class="center" x1="{_LEFT}" x2="{WIDTH - _RIGHT}" y1="{center:.1f}" y2="{center:.1f}"/>')
    for one in both:
        shown = inside[np.unique(np.linspace(0, len(inside) - 1, _POINTS).round().astype(int))]
        at, low, high = one.s[shown], one.low[shown], one.high[shown]
        mark = " before" if one is before else ""
        band = frame.line(at, high) + " " + frame.line(at[::-1], low[::-1])
        parts.append(f'<polygon class="band{mark}" points="{band}"/>')
        parts.append(f'<polyline class="curve{mark}" points="{frame.line(at, one.mean[shown])}"/>')
    below = np.cumsum(curve.share) - 0.5 * curve.share
    if examples and not isinstance(attribute, Column):
        for share in (0.1, 0.5, 0.9):
            k = inside[np.abs(below[inside] - share).argmin()]
            a, b = frame.x(float(curve.s[k])), frame.y(float(curve.mean[k]))
            words = f"{value_name(attribute, float(curve.s[k]))}: {number(float(curve.mean[k]))}"
            parts.append(f'<circle class="point" cx="{a:.1f}" cy="{b:.1f}" r="4.5"/>')
            parts.append(
                f'<text class="example" x="{a:.1f}" y="{b - 11:.1f}" text-anchor="middle">{clean(words)}</text>'
            )
    edges, heights = density(curve)
    tallest = float(heights.max()) or 1.0
    parts.append('<g class="people">')  # one opacity for all bars hides their seams
    for left, right, height in zip(edges[:-1], edges[1:], heights, strict=True):
        a, b = frame.x(left), frame.x(right)
        size = float(height) / tallest * (_FLOOR - _SPLIT - 6)
        parts.append(f'<rect x="{a:.1f}" y="{_FLOOR - size:.1f}" width="{b - a + 0.3:.1f}" height="{size:.1f}"/>')
    parts.append("</g>")
    parts += frame.horizontal_axis(short(attribute.name))
    return _svg(parts, title)


def _reach(curves: Sequence[Curve]) -> tuple[float, float]:
    """Return the lowest and the highest number of the bands and the overall means."""
    low = min(min(float(curve.low[curve.inside].min()), curve.center) for curve in curves)
    return low, max(max(float(curve.high[curve.inside].max()), curve.center) for curve in curves)


def _levels_svg(attribute: AttributeAudit | Column, curves: Sequence[Curve], *, label: str, title: str) -> str:
    """Return a point with its interval for every level and curve, above the share of people in it."""
    bottom, top = _reach(curves)
    curve = curves[-1]
    count = len(curve.s)
    frame = _Frame((-0.6, count - 0.4), (bottom, top))
    parts = frame.vertical_axis(label)
    center = frame.y(curve.center)
    parts.append(f'<line class="center" x1="{_LEFT}" x2="{WIDTH - _RIGHT}" y1="{center:.1f}" y2="{center:.1f}"/>')
    tallest = float(curve.share.max())
    every = max(1, math.ceil(count / 12))
    for k in range(count):
        for one in curves:
            mark = "" if one is curve else " before"
            x = frame.x(k - (0.0 if one is curve else 0.2))
            low, high, mean = (frame.y(float(values[k])) for values in (one.low, one.high, one.mean))
            parts.append(f'<line class="interval{mark}" x1="{x:.1f}" x2="{x:.1f}" y1="{low:.1f}" y2="{high:.1f}"/>')
            parts.append(f'<circle class="point{mark}" cx="{x:.1f}" cy="{mean:.1f}" r="4"/>')
        size = float(curve.share[k]) / tallest * (_FLOOR - _SPLIT - 6)
        width = 0.7 * (frame.x(1) - frame.x(0))
        parts.append(
            f'<rect class="people" x="{x - width / 2:.1f}" y="{_FLOOR - size:.1f}" width="{width:.1f}" '
            f'height="{size:.1f}"/>'
        )
    names = [attribute.categories[int(s)] if attribute.categories else number(float(s)) for s in curve.s]
    names = [name if len(name) <= 12 else name[:11] + "…" for name in names]
    tilted = max(map(len, names[::every])) * _LETTER > every * (frame.x(1) - frame.x(0))
    turn, anchor, extra = (" rotate(-35)", "end", _TILTED) if tilted else ("", "middle", 0)
    for k in range(0, count, every):
        place = f"translate({frame.x(k):.1f} {_FLOOR + 17}){turn}"
        parts.append(f'<text transform="{place}" text-anchor="{anchor}">{clean(names[k])}</text>')
    parts.append(f'<line class="axis" x1="{_LEFT}" x2="{WIDTH - _RIGHT}" y1="{_FLOOR}" y2="{_FLOOR}"/>')
    parts.append(_axis_label(short(attribute.name), extra))
    return _svg(parts, title, extra)


def draw(attribute: AttributeAudit, ax: Any = None) -> Any:
    """Draw the curve of one attribute on matplotlib axes."""
    if ax is None:
        import matplotlib.pyplot as plt

        ax = plt.subplots(figsize=(6.4, 3.6), layout="constrained")[1]
    curve = attribute.curve
    inside = curve.inside
    s = curve.s[inside]
    if curve.smooth and not attribute.categories:
        ax.fill_between(s, curve.low[inside], curve.high[inside], color="#0072b2", alpha=0.25, linewidth=0)
        ax.plot(s, curve.mean[inside], color="#0072b2", linewidth=2, label="curve with its band")
        ax.set_xlim(s[0], s[-1])
    else:
        reach = np.stack([curve.mean - curve.low, curve.high - curve.mean])
        ax.errorbar(range(len(s)), curve.mean, yerr=reach, fmt="o", color="#0072b2", label="mean with its interval")
        names = [attribute.categories[int(k)] for k in s] if attribute.categories else [number(k) for k in s]
        ax.set_xticks(range(len(s)), names)
    ax.axhline(curve.center, color="0.4", linewidth=1, linestyle="--", label="overall mean")
    ax.set(xlabel=short(attribute.name), ylabel=f"mean {short(attribute.score)}")
    return ax
