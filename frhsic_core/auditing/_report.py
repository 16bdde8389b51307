"""The result of an audit, in sentences, as one self-contained HTML page with inline SVG, as JSON and as Markdown.

The page has no script and loads nothing. A content security policy forbids both, so that text from the data could do
nothing even if it were not escaped.
"""

from __future__ import annotations

import json
import math
import os
import re
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, datetime
from functools import partial
from importlib import resources
from operator import methodcaller
from pathlib import Path
from string import Template
from typing import Any

import numpy as np
import pandas as pd

from frhsic_core._atomic_files import write_atomically
from frhsic_core._choices import one_of
from frhsic_core.auditing._input import MIN_ROWS, Column
from frhsic_core.auditing._results import (
    MEANING,
    MEASURES,
    PERMUTATIONS,
    AttributeAudit,
    Measure,
    Missing,
    Verdict,
    bound_figure,
    certain_difference,
    clean,
    curve_svg,
    extremes,
    largest_gap,
    number,
    percent,
    short,
)
from frhsic_core.conditional._curve import Array, Curve, Smoother

FORMAT = 5
LIMITS = "A number below a threshold does not make a decision fair. The audit describes these rows and attributes only."
_SUBJECT = {"scores": "Scores", "hard": "Shares of positive predictions", "values": "Predictions"}
# Bounds of the distance correlation between which a dependence is called by a word.
_WORDS = ((0.1, "very weak"), (0.3, "weak"), (0.5, "moderate"), (math.inf, "strong"))


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
            parts = re.fullmatch(r"\s*(\w+)\s*(?:\[(.+)\])?\s*=\s*(\d*\.?\d+(?:e-?\d+)?)\s*", text)
            if parts is None:
                advice = "write a measure and a number, such as gdp=0.05 or gdp[age]=0.05."
                raise ValueError(f"--fail-above is {text!r}: {advice}")
            measure, name, limit = one_of("measure", parts[1], MEASURES), parts[2], float(parts[3])
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
        return f"<{self._title}: {self.rows:,} rows>"

    @property
    def _title(self) -> str:
        return f"Audit of {short(self.score)} by {', '.join(short(attribute.name) for attribute in self.attributes)}"

    def _facts(self) -> dict[str, str]:
        """Return where a report is from, with the date of today if the audit has none."""
        from frhsic_core import __version__

        today = {"date": datetime.now(UTC).date().isoformat()}
        always = {"library": f"frhsic-core {__version__}", "random_state": str(self.random_state)}
        return today | self.provenance | always

    def table(self) -> pd.DataFrame:
        """Return one row for each attribute and measure, with its interval and what chance alone gives.

        With several attributes, the last rows are about all of them together.
        """
        parts = [*self.attributes, *([self.joint] if self.joint else [])]
        each = [(part.name, name, found) for part in parts for name, found in part.numbers.items()]
        lines = [(part, name, it.value, it.low, it.high, it.floor, it.rows) for part, name, it in each]
        return pd.DataFrame(lines, columns=["attribute", "measure", "value", "low", "high", "by_chance", "rows"])

    def as_dict(self) -> dict[str, Any]:
        """Return everything as a dict of JSON values; ``format`` is raised when a name changes its meaning."""
        outcomes = [asdict(verdict) | {"outcome": verdict.outcome} for verdict in self.verdicts]
        value = asdict(self) | {"provenance": self._facts(), "verdicts": outcomes}
        for entry, attribute in zip(value["attributes"], self.attributes, strict=True):
            entry["sentences"] = attribute_sentences(self, attribute)
        return _json({"format": FORMAT, "title": self._title, "sentences": self.sentences} | value)

    def _repr_html_(self) -> str:
        """Return the report as one HTML element with its style, as a notebook shows it."""
        source = f" from {short(self.provenance['file'])}" if "file" in self.provenance else ""
        gate = "".join(
            f'<li class="{verdict.outcome}"><strong>{clean(verdict)}</strong></li>' for verdict in self.verdicts
        )
        said = other_sentences(self)
        parts = [
            f'<style>{_file("report.css")}</style><div class="frhsic-audit"><h1>{clean(self._title)}</h1>',
            f'<p class="soft">{clean(rows_used(self, source))}.</p>',
            f"<ul>{gate}</ul>" if gate else "",
            *(_attribute(self, attribute) for attribute in self.attributes),
            "<h2>All rows</h2>" + _list(said) if said else "",
        ]
        if self.joint is not None:
            parts.append(_details("All attributes together: numbers", _numbers(self, self.joint.name)))
        parts.append("<h2>How to read this</h2>" + _list(_method(self)))
        parts.append("<h2>Where this is from</h2>" + _list(f"{name}: {value}" for name, value in self._facts().items()))
        return "\n".join([*parts, "</div>"])

    def to_html(self) -> str:
        """Return the report as one self-contained HTML page."""
        return page(self._title, self._repr_html_())

    def to_markdown(self) -> str:
        """Return a model card in Markdown, to be pasted into the documentation of a model or a pull request.

        It has where it is from, the verdicts, the sentences, one table, and the limits.
        """
        marks = {"below": "✅", "above": "❌", "inconclusive": "❔"}
        say = escape_markdown
        lines = [f"## {say(self._title)}", ""]
        lines += [f"- **{name}**: {say(value)}" for name, value in {"rows": rows_used(self), **self._facts()}.items()]
        lines += ["", *(f"- {marks[verdict.outcome]} {say(verdict)}" for verdict in self.verdicts), ""]
        for attribute in self.attributes:
            first, *others = attribute_sentences(self, attribute)
            lines += [f"### {say(short(attribute.name))}", "", f"**{say(first)}**", ""]
            lines += [*(f"- {say(sentence)}" for sentence in others), ""]
        lines += [f"- {say(sentence)}" for sentence in other_sentences(self)]
        lines += ["", "| attribute | measure | value | interval | by chance | rows |", "|---|---|--:|--:|--:|--:|"]
        for line in self.table().itertuples(index=False):
            lines.append(f"| {' | '.join((say(short(line.attribute)), say(line.measure), *_cells(line)))} |")
        return "\n".join([*lines, "", LIMITS]) + "\n"

    def save(self, path: str | os.PathLike[str]) -> list[Path]:
        """Write the page to ``path``, and the JSON and the Markdown beside it, and return their paths.

        Everything is rendered before the first file is written, and the files are written whole and together or not at
        all. In a folder the page is ``audit.html``.
        """
        path = Path(path)
        path = path / "audit.html" if path.is_dir() else path
        page_path = path if path.suffix.lower() in (".html", ".htm") else path.with_name(path.name + ".html")
        numbers = json.dumps(self.as_dict(), allow_nan=False, ensure_ascii=False, indent=1) + "\n"
        files = {
            page_path.with_suffix(".json"): numbers,
            page_path.with_suffix(".md"): self.to_markdown(),
            page_path: self.to_html(),
        }
        write_atomically({place: methodcaller("write", text.encode(errors="replace")) for place, text in files.items()})
        return list(files)


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
        picture = bound_figure(curve.gdp, (curve.gdp_low, curve.gdp_high), bound.bound, level)
        if bound.own_values:
            limit, why, picture = "none", f"guarantee: most {audit.unit} have a value of their own", ""
    sure = "p-value: more than chance would give" if test.value <= 0.05 else "p-value: chance could give this"
    cards = ((number(curve.gdp), gap), (limit, why), (f"p = {number(test.value)}", f"{sure}{smallest(test)}"))
    shown = "".join(f"<div><strong>{clean(value)}</strong> <span>{clean(what)}</span></div>" for value, what in cards)
    return f'<div class="cards">{shown}</div>{picture}'


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
    rates = attribute.selection_rates()
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
    numbers = zip(attribute.group_names(groups), groups.rows, groups.means, groups.low, groups.high, strict=True)
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


# Sentences -----------------------------------------------------------------------------------------------------------


def smallest(test: Measure) -> str:
    """Return the end of a sentence if the number of permutations allows no smaller p-value."""
    least = test.value <= (1.0 + 1e-9) / (PERMUTATIONS + 1)
    return f", the smallest possible with {PERMUTATIONS} permutations" if least else ""


def chance(test: Measure) -> str:
    """Return whether a dependence is more than chance, with the p-value."""
    verdict = "is more than chance would give" if test.value <= 0.05 else "could be chance"
    return f"{verdict} (p = {number(test.value)}{smallest(test)})"


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
    places = [attribute.value_name(curve.s[k]) for k in ends]
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
            f"bound, only {number(bound.bound)}. To get one, round {short(attribute.name)} and audit again."
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
        first, last = (attribute.value_name(value) for value in places)
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
    places, rates = zip(*attribute.selection_rates(), strict=True)
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
    strength, probe = (attribute.numbers.get(measure) for measure in ("distance_correlation", "nonlinear_r2"))
    if strength is not None and probe is not None and test.value <= 0.05:
        word = next(word for bound, word in _WORDS if strength.value < bound)
        said.append(
            f"The dependence is {word}: the distance correlation is {number(strength.value)}, and a nonlinear model "
            f"explains {percent(max(0.0, probe.value))} of the variance of {name} from the predictions."
        )
    said.append(guarantee(attribute))
    if certain_difference(curve) > 0.0 or test.value <= 0.05:
        said.append(f"The gap is largest around {_where(audit, attribute, curve)}")
    return [*said, *_hidden(attribute), *_label_sentences(audit, attribute), *_given_sentences(audit, attribute)]


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
            said.append(f"Among the {people} the mean gap along {name} is {judged(curve)}.")
    if "pvalue_given_label" in attribute.numbers:
        test = attribute.numbers["pvalue_given_label"]
        said.append(f"The dependence that is left given the label {chance(test)}.")
    if "calibration" in attribute.curves:
        curve = attribute.curves["calibration"]
        top, _ = largest_gap(curve)
        place = attribute.value_name(curve.s[top])
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
