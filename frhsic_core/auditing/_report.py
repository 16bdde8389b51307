"""The result of an audit: sentences, numbers, a page of HTML, a card in Markdown, and JSON.

The page is self-contained. It has no script and loads nothing, and a content security policy
forbids both: text from the data could do nothing even if it were not escaped.
"""

from __future__ import annotations

import json
import os
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from operator import methodcaller
from pathlib import Path
from typing import Any

import pandas as pd

from frhsic_core._atomic_files import write_atomically
from frhsic_core.auditing import _about_rows, _sentences
from frhsic_core.auditing._facts import cells, facts
from frhsic_core.auditing._gate import Verdict, compare
from frhsic_core.auditing._results import AttributeAudit, Missing
from frhsic_core.auditing._rows import Copies, LeftOut
from frhsic_core.auditing._status import Status, statuses
from frhsic_core.auditing._templates import fill_html, fill_markdown
from frhsic_core.auditing._words import short

FORMAT = 5
_MARKS = {"pass": "✅", "fail": "❌", "open": "❔", "none": "⚪"}


def _of_the_only(name: str) -> Any:
    """Return a property of an audit that is one of its only attribute."""

    def value(audit: Audit) -> Any:
        if len(audit.attributes) > 1:
            names = [attribute.name for attribute in audit.attributes]
            raise ValueError(
                f"this audit has the attributes {names}: name one, such as "
                f"result[{names[0]!r}].{name}."
            )
        return getattr(audit.attributes[0], name)

    return property(value, doc=f"``{name}`` of the only attribute.")


@dataclass(frozen=True)
class Audit:
    """The result of :func:`frhsic_core.audit`, which prints as sentences.

    A notebook shows it as a report.

    Attributes
    ----------
    attributes : tuple of AttributeAudit
        One audit for each sensitive attribute. Of several categorical attributes the last is about
        their intersections.
    joint : AttributeAudit or None
        The test and the effect sizes of all attributes together, if there are several and some are
        numbers.
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
        How good the scores are: ``mean_score``, and where they can be computed ``mean_label``,
        ``auc``, ``accuracy`` and ``selection_rate``.
    provenance : dict of str to str
        What the report is about: date, model, file with its size and SHA-256.
    verdicts : tuple of Verdict
        Comparisons with thresholds that the report shows; see :meth:`check`.
    range : tuple of float
        The smallest and largest possible score: 0 and 1 of probabilities, otherwise those of these
        rows.
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

    gdp = _of_the_only("gdp")
    interval = _of_the_only("interval")
    floor = _of_the_only("floor")
    pvalue = _of_the_only("pvalue")
    bound = _of_the_only("bound")
    curve = _of_the_only("curve")

    def check(
        self, *thresholds: str, guaranteed: bool = False, strict: bool = False
    ) -> list[Verdict]:
        """Compare measures with thresholds such as ``"gdp=0.05"`` or ``"gdp[age]=0.05"``.

        With ``guaranteed``, GDP is below its threshold only if the bound is, and not if only the
        interval is. With ``strict`` a verdict is not accepted if there is a doubt: people were left
        out who differ from the others, rows are copies of others, or a control is nearly the
        attribute. A threshold that can never fail is an error.
        """
        return compare(self, thresholds, guaranteed=guaranteed, strict=strict)

    @property
    def status(self) -> list[Status]:
        """One line for each limit, and an example where none was set."""
        return statuses(self)

    @property
    def sentences(self) -> list[str]:
        """What the audit says, in sentences."""
        found = []
        for attribute in self.attributes:
            found += _sentences.attribute_sentences(self, attribute)
        return found + _about_rows.other_sentences(self)

    def __str__(self) -> str:
        return "\n".join(self.sentences)

    def __repr__(self) -> str:
        return f"<{self.title}: {self.rows:,} rows>"

    @property
    def title(self) -> str:
        """The title of the report."""
        names = ", ".join(short(attribute.name) for attribute in self.attributes)
        model = self.provenance.get("model", "the scores")
        return f"Audit of {short(model)} by {names}"

    @property
    def origin(self) -> dict[str, str]:
        """Where the report is from, with the date of today if the audit has none."""
        from frhsic_core import __version__

        today = {"date": datetime.now(UTC).date().isoformat()}
        columns = {"score": self.score}
        if self.label:
            columns["label"] = self.label
        always = {"library": f"frhsic-core {__version__}", "random_state": str(self.random_state)}
        return today | self.provenance | columns | always

    def table(self) -> pd.DataFrame:
        """Return a row for each attribute and measure, with its interval and what chance gives.

        With several attributes, the last rows are about all of them together.
        """
        parts = list(self.attributes)
        if self.joint is not None:
            parts.append(self.joint)
        lines = []
        for part in parts:
            for name, found in part.numbers.items():
                ends = (found.low, found.high)
                lines.append((part.name, name, found.value, *ends, found.floor, found.rows))
        return pd.DataFrame(
            lines, columns=["attribute", "measure", "value", "low", "high", "by_chance", "rows"]
        )

    def as_dict(self) -> dict[str, Any]:
        """Return everything as JSON values; ``format`` rises when a name changes its meaning."""
        outcomes = [
            asdict(verdict, dict_factory=_fields) | {"outcome": verdict.outcome}
            for verdict in self.verdicts
        ]
        value = asdict(self, dict_factory=_fields)
        value |= {"provenance": self.origin, "verdicts": outcomes}
        value["status"] = [asdict(line) for line in self.status]
        for entry, attribute in zip(value["attributes"], self.attributes, strict=True):
            entry["sentences"] = _sentences.attribute_sentences(self, attribute)
        return _json({"format": FORMAT, "title": self.title, "sentences": self.sentences} | value)

    def _repr_html_(self) -> str:
        """Return the report as one HTML element with its style, as a notebook shows it."""
        return fill_html("report.html", facts=facts(self))

    def to_html(self) -> str:
        """Return the report as one self-contained HTML page."""
        return fill_html("report_page.html", title=self.title, facts=facts(self))

    def to_markdown(self) -> str:
        """Return a model card in Markdown, for the documentation of a model or a pull request.

        It has where it is from, the verdicts, the sentences, one table, and the limits.
        """
        stated = {status.text for status in self.status}
        attributes = []
        for attribute in self.attributes:
            found = _sentences.attribute_sentences(self, attribute)
            others = [sentence for sentence in found if sentence not in stated]
            attributes.append({"name": short(attribute.name), "sentences": others})
        table = [
            (short(line.attribute), line.measure, *cells(line))
            for line in self.table().itertuples(index=False)
        ]
        return fill_markdown(
            "card.md",
            title=self.title,
            origin={"rows": _about_rows.rows_used(self), **self.origin},
            statuses=self.status,
            marks=_MARKS,
            attributes=attributes,
            all_rows=_about_rows.other_sentences(self),
            table=table,
            limits=_about_rows.LIMITS,
        )

    def save(self, path: str | os.PathLike[str]) -> list[Path]:
        """Write the page to ``path``, JSON and Markdown beside it, and return their paths.

        Everything is rendered before the first file is written, and the files are written whole and
        together or not at all. In a folder the page is ``audit.html``.
        """
        path = Path(path)
        if path.is_dir():
            path = path / "audit.html"
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


def _fields(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return the fields of a part without the way to the bound with other numbers of rows."""
    return {name: value for name, value in pairs if name != "projection"}


def _json(value: Any) -> Any:
    """Return lists and dicts of JSON values; a number that is not finite becomes None."""

    def plain(found: Any) -> Any:
        if isinstance(found, pd.DataFrame):
            return found.to_dict("list")
        return found.tolist()

    return json.loads(json.dumps(value, default=plain), parse_constant=lambda _: None)
