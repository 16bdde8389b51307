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

from frhsic_core.auditing._measures import MEASURES, Measure
from frhsic_core.bounds import DependenceBound
from frhsic_core.choices import one_of
from frhsic_core.conditional import Curve

Array = NDArray[np.float64]

STATUS = {"below": 0, "above": 1, "inconclusive": 3}  # exit status of the command for each outcome


def _module(name: str) -> Any:
    """Return a module that describes an audit; it needs the names of this one."""
    return importlib.import_module(f"frhsic_core.auditing.{name}")


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
        module = _module("_sentences")
        said = [one for attribute in self.attributes for one in module.attribute_sentences(self, attribute)]
        return said + module.other_sentences(self)

    def __str__(self) -> str:
        return "\n".join(self.sentences)

    def __repr__(self) -> str:
        names = ", ".join(attribute.name for attribute in self.attributes)
        return f"<Audit of {self.score} by {names}: {self.rows:,} rows>"

    def _repr_html_(self) -> str:
        return _module("_report").fragment(self)

    def as_dict(self) -> dict[str, Any]:
        """Return everything as a dict of JSON values, with the sentences first."""
        return _module("_report").as_dict(self)

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
        report = _module("_report")
        return report.page(report.title(self), report.fragment(self))

    def to_markdown(self) -> str:
        """Return a model card in Markdown, to be pasted into the documentation of a model or a pull request."""
        return _module("_report").markdown(self)

    def save(self, path: str | os.PathLike[str]) -> list[Path]:
        """Write the report to ``path``, and the JSON and the Markdown beside it; all of them whole or none."""
        return _module("_report").save(self, path)


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
        sentences = _module("_sentences")
        number, name, bound = sentences.number, sentences.short(self.attribute), self.bound
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
