"""The result of an audit as one self-contained HTML page with inline SVG, as JSON and as Markdown.

The page has no script and loads nothing. A content security policy forbids both, so that text from the data could do
nothing even if it were not escaped. The sentences come from ``_sentences``.
"""

from __future__ import annotations

import json
import math
import os
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
from frhsic_core.auditing import _sentences
from frhsic_core.auditing._gate import Verdict, compare
from frhsic_core.auditing._results import (
    AttributeAudit,
    Missing,
    at_most,
    bound_figure,
    clean,
    curve_svg,
    number,
    percent,
    short,
)
from frhsic_core.auditing._rows import Copies, LeftOut
from frhsic_core.auditing._sentences import MEANING, rows_used, smallest
from frhsic_core.conditional._curve import Array, Curve, Smoother
from frhsic_core.inputs.columns import MIN_ROWS, Column
from frhsic_core.inputs.visible import visible

FORMAT = 5


def _of_the_only(name: str) -> Any:
    """Return a property of an audit that is one of its only attribute."""

    def value(audit: Audit) -> Any:
        if len(audit.attributes) > 1:
            names = [attribute.name for attribute in audit.attributes]
            raise ValueError(
                f"this audit has the attributes {names}: name one, such as result[{names[0]!r}].{name}."
            )
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
    range : tuple of float
        The smallest and largest possible score: 0 and 1 of probabilities, otherwise those of these rows.
    left_out : tuple of LeftOut
        Rows that are left out or hardly count, compared with the others.
    copies : Copies
        Rows that are equal in every column.
    effective : float or None
        With weights, the number of people of equal weight that would be as sure.
    far : tuple of str
        Notes on values far from all others.
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
    range: tuple[float, float] = (0.0, 1.0)
    left_out: tuple[LeftOut, ...] = ()
    copies: Copies = field(default_factory=lambda: Copies(0, 0, 1))
    effective: float | None = None
    far: tuple[str, ...] = ()

    def __getitem__(self, name: str) -> AttributeAudit:
        """Return the audit of one attribute by its name."""
        for attribute in self.attributes:
            if attribute.name == name:
                return attribute
        raise KeyError(
            f"no attribute {name!r}: there are {', '.join(repr(a.name) for a in self.attributes)}."
        )

    gdp, interval, floor, pvalue, bound, curve = map(
        _of_the_only, ("gdp", "interval", "floor", "pvalue", "bound", "curve")
    )

    def check(
        self, *thresholds: str, guaranteed: bool = False, strict: bool = False
    ) -> list[Verdict]:
        """Compare measures with thresholds such as ``"gdp=0.05"`` or, for one attribute, ``"gdp[age]=0.05"``.

        With ``guaranteed``, GDP is below its threshold only if the bound is, and not if only the interval is. With
        ``strict`` a verdict is not accepted if there is a doubt: people were left out who differ from the others, rows
        are copies of others, or a control is nearly the attribute. A threshold that can never fail is an error.
        """
        return compare(self, thresholds, guaranteed=guaranteed, strict=strict)

    @property
    def sentences(self) -> list[str]:
        """What the audit says, in sentences."""
        said = [
            one
            for attribute in self.attributes
            for one in _sentences.attribute_sentences(self, attribute)
        ]
        return said + _sentences.other_sentences(self)

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
        lines = [
            (part, name, it.value, it.low, it.high, it.floor, it.rows) for part, name, it in each
        ]
        return pd.DataFrame(
            lines, columns=["attribute", "measure", "value", "low", "high", "by_chance", "rows"]
        )

    def as_dict(self) -> dict[str, Any]:
        """Return everything as a dict of JSON values; ``format`` is raised when a name changes its meaning."""
        outcomes = [
            asdict(verdict, dict_factory=_fields) | {"outcome": verdict.outcome}
            for verdict in self.verdicts
        ]
        value = asdict(self, dict_factory=_fields)
        value |= {"provenance": self._facts(), "verdicts": outcomes}
        for entry, attribute in zip(value["attributes"], self.attributes, strict=True):
            entry["sentences"] = _sentences.attribute_sentences(self, attribute)
        return _json({"format": FORMAT, "title": self._title, "sentences": self.sentences} | value)

    def _repr_html_(self) -> str:
        """Return the report as one HTML element with its style, as a notebook shows it."""
        source = f" from {short(self.provenance['file'])}" if "file" in self.provenance else ""
        gate = "".join(
            f'<li class="{verdict.outcome}"><strong>{clean(verdict)}</strong></li>'
            for verdict in self.verdicts
        )
        said = _sentences.other_sentences(self)
        parts = [
            f'<style>{_file("report.css")}</style><div class="frhsic-audit"><h1>{clean(self._title)}</h1>',
            f'<p class="soft">{clean(rows_used(self, source))}.</p>',
            f"<ul>{gate}</ul>" if gate else "",
            *(_attribute(self, attribute) for attribute in self.attributes),
            "<h2>All rows</h2>" + _list(said) if said else "",
        ]
        if self.joint is not None:
            parts.append(
                _details("All attributes together: numbers", _numbers(self, self.joint.name))
            )
        parts.append("<h2>How to read this</h2>" + _list(_sentences.method(self)))
        parts.append(
            "<h2>Where this is from</h2>"
            + _list(f"{name}: {value}" for name, value in self._facts().items())
        )
        return "\n".join([*parts, "</div>"])

    def to_html(self) -> str:
        """Return the report as one self-contained HTML page."""
        return page(self._title, self._repr_html_())

    def to_markdown(self) -> str:
        """Return a model card in Markdown, to be pasted into the documentation of a model or a pull request.

        It has where it is from, the verdicts, the sentences, one table, and the limits.
        """
        marks = {"below": "✅", "above": "❌", "doubtful": "❌", "inconclusive": "❔"}
        say = escape_markdown
        lines = [f"## {say(self._title)}", ""]
        lines += [
            f"- **{name}**: {say(value)}"
            for name, value in {"rows": rows_used(self), **self._facts()}.items()
        ]
        lines += [
            "",
            *(f"- {marks[verdict.outcome]} {say(verdict)}" for verdict in self.verdicts),
            "",
        ]
        for attribute in self.attributes:
            first, *others = _sentences.attribute_sentences(self, attribute)
            lines += [f"### {say(short(attribute.name))}", "", f"**{say(first)}**", ""]
            lines += [*(f"- {say(sentence)}" for sentence in others), ""]
        lines += [f"- {say(sentence)}" for sentence in _sentences.other_sentences(self)]
        lines += [
            "",
            "| attribute | measure | value | interval | by chance | rows |",
            "|---|---|--:|--:|--:|--:|",
        ]
        for line in self.table().itertuples(index=False):
            lines.append(
                f"| {' | '.join((say(short(line.attribute)), say(line.measure), *_cells(line)))} |"
            )
        return "\n".join([*lines, "", _sentences.LIMITS]) + "\n"

    def save(self, path: str | os.PathLike[str]) -> list[Path]:
        """Write the page to ``path``, and the JSON and the Markdown beside it, and return their paths.

        Everything is rendered before the first file is written, and the files are written whole and together or not at
        all. In a folder the page is ``audit.html``.
        """
        path = Path(path)
        path = path / "audit.html" if path.is_dir() else path
        page_path = (
            path
            if path.suffix.lower() in (".html", ".htm")
            else path.with_name(path.name + ".html")
        )
        numbers = json.dumps(self.as_dict(), allow_nan=False, ensure_ascii=False, indent=1) + "\n"
        files = {
            page_path.with_suffix(".json"): numbers,
            page_path.with_suffix(".md"): self.to_markdown(),
            page_path: self.to_html(),
        }
        write_atomically(
            {
                place: methodcaller("write", text.encode(errors="replace"))
                for place, text in files.items()
            }
        )
        return list(files)


def _file(name: str) -> str:
    return resources.files("frhsic_core.auditing").joinpath(name).read_text(encoding="utf-8")


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    top = "".join(f'<th scope="col">{clean(cell)}</th>' for cell in head)
    body = "".join(
        "<tr>" + "".join(f"<td>{clean(cell)}</td>" for cell in row) + "</tr>" for row in rows
    )
    return f"<table><thead><tr>{top}</tr></thead><tbody>{body}</tbody></table>"


def _details(title: str, inside: str) -> str:
    return f"<details><summary>{clean(title)}</summary>{inside}</details>"


def _list(sentences: Iterable[str]) -> str:
    return "<ul>" + "".join(f"<li>{clean(sentence)}</li>" for sentence in sentences) + "</ul>"


def _figure(
    attribute: AttributeAudit | Column, curve: Curve, label: str, caption: str, **options: Any
) -> str:
    drawn = curve_svg(attribute, curve, label=label, **options)
    return f"<figure>{drawn}<figcaption>{clean(caption)}</figcaption></figure>"


def _fields(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return the fields of a part without the way to the bound with other numbers of rows."""
    return {name: value for name, value in pairs if name != "projection"}


def _cards(audit: Audit, attribute: AttributeAudit) -> str:
    """Return the three main numbers: the mean gap, what is guaranteed, and how sure the dependence is."""
    curve, bound, test = attribute.curve, attribute.bound, attribute.numbers["pvalue"]
    level = percent(1.0 - audit.alpha)
    gap = f"mean gap (GDP) between {audit.unit} of one {attribute.name} and all {audit.unit}, {level} interval "
    gap += f"{number(curve.gdp_low)} to {number(curve.gdp_high)}"
    limit, why, picture = "none", f"guarantee: {attribute.unbounded}", ""
    if bound is not None:
        limit = f"≤ {at_most(bound.bound)}"
        why = f"guaranteed: with {percent(1.0 - bound.delta)} confidence GDP is not larger in the population"
        picture = bound_figure(curve.gdp, (curve.gdp_low, curve.gdp_high), bound.bound, level)
        if bound.own_values:
            limit, why, picture = (
                "none",
                f"guarantee: most {audit.unit} have a value of their own",
                "",
            )
    sure = (
        "p-value: more than chance would give"
        if test.value <= 0.05
        else "p-value: chance could give this"
    )
    cards = (
        (number(curve.gdp), gap),
        (limit, why),
        (f"p = {number(test.value)}", f"{sure}{smallest(test)}"),
    )
    shown = "".join(
        f"<div><strong>{clean(value)}</strong> <span>{clean(what)}</span></div>"
        for value, what in cards
    )
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
        what, ends = (
            f"for every value of {name}, with intervals that together have a level of about {level}",
            "",
        )
    ends = f"Below: how many {audit.unit} there are.{ends}"
    caption = f"The mean of {score} {what}; the dashed line is the overall mean. {ends}"
    parts = [
        f'<h2>{clean(name)}</h2><p class="verdict">{clean(_sentences.trend(audit, attribute))}</p>',
        _cards(audit, attribute),
        figure(curve, mean, caption, examples=True),
        "<h3>Is this much?</h3>" + _list(_sentences.magnitude(audit, attribute)),
        _decisions(audit, attribute),
        "<h3>What else was found</h3>" + _list(_sentences.other_findings(audit, attribute)),
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
    labeled = [
        (attribute.curves[key], *words)
        for key, words in captions.items()
        if key in attribute.curves
    ]
    if labeled:
        pictures = [
            figure(one, label, f"{caption} {_sentences.limits(one)}")
            for one, label, caption in labeled
        ]
        parts.append(
            _details(
                "With labels: equal opportunity, equalized odds and calibration", "".join(pictures)
            )
        )
    parts.append(_details("All numbers", _numbers(audit, attribute.name)))
    if groups is not None:
        parts.append(
            _details(f"The table of {len(groups)} groups", _groups(audit, attribute, groups))
        )
    return "\n".join(parts)


def _decisions(audit: Audit, attribute: AttributeAudit) -> str:
    """Return what the threshold decides: sentences, the curve of selection rates, and rates by group."""
    if "selected" not in attribute.curves:
        return ""
    caption = (
        f"The share of {audit.unit} with a score of at least {number(audit.threshold or 0.0)}."
    )
    said = "<h3>At the threshold</h3>" + _list(_sentences.decision_sentences(audit, attribute))
    curve = attribute.curves["selected"]
    inside = {
        name: np.clip(getattr(curve, name), 0.0, 1.0) for name in ("low", "mean", "high")
    }  # a share
    said += _figure(attribute, replace(curve, **inside), "share selected", caption)
    rates = attribute.selection_rates()
    most = max(rate for _, rate in rates)
    cells = [(place, percent(rate), number(rate / most) if most else "") for place, rate in rates]
    return said + _table((short(attribute.name), "share selected", "impact ratio"), cells)


def _cells(line: Any) -> tuple[str, str, str, str]:
    """Return the value, the interval, the value by chance and the rows of a line of the table of an audit."""
    ends = f"{number(line.low)} to {number(line.high)}" if math.isfinite(line.low) else ""
    return (
        number(line.value),
        ends,
        "" if pd.isna(line.by_chance) else number(line.by_chance),
        f"{line.rows:,}",
    )


def _numbers(audit: Audit, name: str) -> str:
    table = audit.table()
    lines = table[table["attribute"] == name].itertuples(index=False)
    rows = [
        (
            f"{line.measure}: {MEANING[line.measure]}" if line.measure in MEANING else line.measure,
            *_cells(line),
        )
        for line in lines
    ]
    return _table(
        ("measure", "value", f"{percent(1.0 - audit.alpha)} interval", "by chance", "rows"), rows
    )


def _groups(audit: Audit, attribute: AttributeAudit, groups: pd.DataFrame) -> str:
    """Return the table that most reports show: the mean score of each group with its interval."""
    level = percent(1.0 - attribute.curve.alpha)
    numbers = zip(
        attribute.group_names(groups),
        groups.rows,
        groups.means,
        groups.low,
        groups.high,
        strict=True,
    )
    each = [
        (place, f"{n:,.0f}", number(mean), f"{number(a)} to {number(b)}")
        for place, n, mean, a, b in numbers
    ]
    return _table(
        (short(attribute.name), "rows", f"mean {short(audit.score)}", f"{level} interval"), each
    )


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
        parts = [
            (column.values[rows], values[rows])
            for rows, values in ((known, before.values), (kept, after))
        ]
        if any(len(s) < MIN_ROWS or np.ptp(s) == 0 for s, _ in parts):
            continue
        old, new = (
            Smoother(s, nominal=bool(column.categories)).curve(values) for s, values in parts
        )
        name = short(column.name)
        said.append(_sentences.adjusted(name, old, new, fitted_on=fitted_on))
        caption = f"The mean along {name} before (orange) and after (blue), each with its 95% band."
        figures.append(_figure(column, new, f"mean {score}", caption, before=old))
    if not known.all():
        said.append(
            f"Rows without a score or an attribute, which have no adjusted score: {(~known).sum():,}."
        )
    inside = (
        f'<div class="frhsic-audit"><h1>{clean(heading)}</h1>{_list(said)}{"".join(figures)}</div>'
    )
    return said, page(heading, f"<style>{_file('report.css')}</style>{inside}") if figures else ""


def escape_markdown(text: object) -> str:
    """Return text in which nothing is read as Markdown or HTML, nor obeyed by a terminal."""
    plain = visible(" ".join(str(text).split()))
    return "".join(f"\\{c}" if c in "\\`*_{}[]<>#|~$@" else c for c in plain)


def _json(value: Any) -> Any:
    """Return lists and dicts of JSON values; a number that is not finite becomes None."""

    def plain(found: Any) -> Any:
        return found.to_dict("list") if isinstance(found, pd.DataFrame) else found.tolist()

    return json.loads(json.dumps(value, default=plain), parse_constant=lambda _: None)
