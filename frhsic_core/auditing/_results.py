"""What an audit of predictions found: its numbers, its sentences, its report, and its comparison with thresholds."""

from __future__ import annotations

import importlib
import math
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from frhsic_core.auditing._measures import Decisions, Effect, Groups, Test
from frhsic_core.bounds import DependenceBound
from frhsic_core.choices import one_of
from frhsic_core.conditional import Curve

if TYPE_CHECKING:
    import os

Array = NDArray[np.float64]

# The numbers with an interval, which a threshold can be compared with.
MEASURES = {
    "gdp": "mean distance between the mean score at one value of the attribute and the overall mean",
    "equal_opportunity": "GDP among people with label 1",
    "equalized_odds": "the larger of the numbers for people with label 1 and with label 0",
    "calibration": "mean distance from zero of label minus score along the attribute",
    "gdp_given": "GDP of what is left of the scores after the control features",
}


STATUS = {"below": 0, "above": 1, "inconclusive": 3}  # exit status of the command for each outcome


def _module(name: str) -> Any:
    """Return a module that describes an audit; it needs the classes of this one."""
    return importlib.import_module(f"frhsic_core.auditing.{name}")


@dataclass(frozen=True)
class Missing:
    """Rows without a usable value in one column, and their mean score beside that of the other rows."""

    column: str
    missing: int
    infinite: int
    mean_missing: float | None
    mean_known: float | None


@dataclass(frozen=True)
class Given:
    """The audit given the control features: the curve of what they leave of the scores, and the conditional test."""

    controls: tuple[str, ...]
    curve: Curve
    test: Test


class Measure(NamedTuple):
    """One number with its interval, and the value to expect by chance alone."""

    value: float
    low: float
    high: float
    floor: float


@dataclass(frozen=True)
class AttributeAudit:
    """The audit of one attribute.

    Attributes
    ----------
    name : str
        Name of the attribute.
    categories : tuple of str
        Names of its categories; empty for a numeric attribute.
    rows : int
        Number of rows with a score and a value of the attribute.
    score : str
        The score column that the curves show: of several, the one with the largest GDP in standard deviations.
    curve : Curve
        E[score | S = s] with its band; GDP with its interval.
    columns : dict of str to float
        With several score columns, GDP of each one in standard deviations of the column.
    test : Test
        Test of independence.
    effects : dict of str to Effect
        Effect sizes.
    groups : tuple of Groups
        What 2, 4 and 10 groups show and hide; empty for categories.
    labels : dict of str to Curve
        With labels: ``"equal_opportunity"``, ``"label_0"`` (curves of the score among people with label 1 and 0) and
        ``"calibration"`` (curve of label minus score).
    label_test : Test or None
        With labels: test of independence given the label (equalized odds, separation).
    given : Given or None
        With control features: what they leave.
    bound : DependenceBound or None
        An upper bound on GDP over the values of the attribute, with what it assumes. None with weights, and for scores
        outside of [0, 1], whose possible values are not known.
    spread : float
        Standard deviation of the scores.
    decisions : Decisions or None
        With a threshold: selection rates, impact ratios, true and false positive rates along the attribute.
    """

    name: str
    categories: tuple[str, ...]
    rows: int
    score: str
    curve: Curve
    columns: dict[str, float]
    test: Test
    effects: dict[str, Effect]
    groups: tuple[Groups, ...]
    labels: dict[str, Curve] = field(default_factory=dict)
    label_test: Test | None = None
    given: Given | None = None
    bound: DependenceBound | None = None
    spread: float = math.nan
    decisions: Decisions | None = None

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
        return self.test.pvalue

    def curves(self, measure: str) -> list[Curve]:
        """Return the curves behind one of the measures; of equalized odds there are two, of what is missing none."""
        if measure == "gdp":
            return [self.curve]
        if measure == "gdp_given":
            return [self.given.curve] if self.given else []
        if measure == "equalized_odds":
            found = [self.labels[name] for name in ("equal_opportunity", "label_0") if name in self.labels]
            return found if len(found) == 2 else []
        return [self.labels[measure]] if measure in self.labels else []

    def measure(self, name: str) -> Measure | None:
        """Return one of the measures with its interval and what chance gives; ``None`` if it was not measured."""
        found = [(c.gdp, c.gdp_low, c.gdp_high, c.floor) for c in self.curves(name)]
        # The larger of two numbers lies between the larger lower end and the larger upper end.
        return Measure(*(max(values) for values in zip(*found, strict=True))) if found else None


@dataclass(frozen=True)
class Joint:
    """All attributes together: the test of joint independence and the effect sizes."""

    names: tuple[str, ...]
    rows: int
    test: Test
    effects: dict[str, Effect]


@dataclass(frozen=True)
class Audit:
    """The result of :func:`frhsic_core.audit`. It prints as sentences, and a notebook shows it as a report.

    Attributes
    ----------
    attributes : tuple of AttributeAudit
        One audit for each sensitive attribute.
    joint : Joint or None
        All attributes together, if there are several.
    rows : int
        Number of rows given.
    missing : tuple of Missing
        Columns with missing or infinite values.
    scores : tuple of str
        Names of the score columns.
    label, weight : str
        Their names; empty if they were not given.
    controls : tuple of str
        Names of the control features.
    task : str
        ``"scores"`` (numbers from 0 to 1), ``"hard"`` (two values), ``"values"`` (real numbers) or ``"embedding"``.
    alpha : float
        One minus the coverage of intervals and bands.
    random_state : int
        Seed of everything random.
    notes : tuple of str
        What a reader must know, such as few rows or a sample of a larger file.
    source : str
        Where the rows came from, for the title.
    unit : str
        What a row is, for the sentences.
    threshold : float or None
        Scores from which on people are selected.
    performance : dict of str to float
        How good the scores are: ``mean_score``, and where they can be computed ``mean_label``, ``auc``, ``accuracy``
        and ``selection_rate``.
    provenance : dict of str to str
        What the report is about: date, model, file with its size and SHA-256.
    """

    attributes: tuple[AttributeAudit, ...]
    joint: Joint | None
    rows: int
    missing: tuple[Missing, ...]
    scores: tuple[str, ...]
    label: str
    weight: str
    controls: tuple[str, ...]
    task: str
    alpha: float
    random_state: int
    notes: tuple[str, ...] = ()
    source: str = ""
    unit: str = "people"
    threshold: float | None = None
    performance: dict[str, float] = field(default_factory=dict)
    provenance: dict[str, str] = field(default_factory=dict)

    def __getitem__(self, name: str) -> AttributeAudit:
        """Return the audit of one attribute by its name."""
        for attribute in self.attributes:
            if attribute.name == name:
                return attribute
        raise KeyError(f"no attribute {name!r}: there are {', '.join(repr(a.name) for a in self.attributes)}.")

    @property
    def _only(self) -> AttributeAudit:
        if len(self.attributes) > 1:
            names = [attribute.name for attribute in self.attributes]
            raise ValueError(f"this audit has the attributes {names}: name one, such as result[{names[0]!r}].gdp.")
        return self.attributes[0]

    @property
    def gdp(self) -> float:
        """GDP of the only attribute."""
        return self._only.gdp

    @property
    def interval(self) -> tuple[float, float]:
        """The interval of GDP of the only attribute."""
        return self._only.interval

    @property
    def floor(self) -> float:
        """What chance alone gives for GDP of the only attribute."""
        return self._only.floor

    @property
    def pvalue(self) -> float:
        """The p-value of the test of independence of the only attribute."""
        return self._only.pvalue

    @property
    def bound(self) -> DependenceBound | None:
        """The upper bound on GDP of the only attribute, if there is one."""
        return self._only.bound

    @property
    def curve(self) -> Curve:
        """The curve of the mean score along the only attribute."""
        return self._only.curve

    def check(self, *thresholds: str, guaranteed: bool = False) -> list[Verdict]:
        """Compare measures with thresholds such as ``"gdp=0.05"`` or, for one attribute, ``"gdp[age]=0.05"``.

        With ``guaranteed``, GDP is below its threshold only if the bound is, and not if only the interval is.
        """
        return decide(self, [parse_threshold(text) for text in thresholds], guaranteed=guaranteed)

    @property
    def sentences(self) -> list[str]:
        """What the audit says, in sentences."""
        return _module("_sentences").summary(self)

    def __str__(self) -> str:
        return "\n".join(self.sentences)

    def __repr__(self) -> str:
        names = ", ".join(attribute.name for attribute in self.attributes)
        return f"<Audit of {', '.join(self.scores[:3])} by {names}: {self.rows:,} rows>"

    def _repr_html_(self) -> str:
        return _module("_report").fragment(self)

    def as_dict(self) -> dict[str, Any]:
        """Return everything as a dict of JSON values, with the sentences first."""
        return _module("_report").as_dict(self)

    def table(self) -> pd.DataFrame:
        """Return one row for each attribute and measure, with its interval and what chance alone gives."""
        lines: list[tuple[Any, ...]] = []
        for attribute in self.attributes:
            for measure in MEASURES:
                found = attribute.measure(measure)
                if found is not None:
                    rows = sum(curve.n for curve in attribute.curves(measure))
                    lines.append((attribute.name, measure, *found, rows))
                if measure == "gdp" and attribute.bound is not None:
                    lines.append((attribute.name, "gdp_bound", attribute.bound.bound, *[np.nan] * 3, attribute.rows))
            lines.append((attribute.name, "pvalue", attribute.test.pvalue, *[np.nan] * 3, attribute.test.rows))
            if attribute.label_test is not None:
                test = attribute.label_test
                lines.append((attribute.name, "pvalue_given_label", test.pvalue, *[np.nan] * 3, test.rows))
            if attribute.given is not None:
                test = attribute.given.test
                lines.append((attribute.name, "pvalue_given", test.pvalue, *[np.nan] * 3, test.rows))
            if attribute.decisions is not None:
                made = attribute.decisions
                chance = [np.nan, made.impact_high, np.nan, attribute.rows]
                lines.append((attribute.name, "impact_ratio", made.impact, *chance))
                lines.append((attribute.name, "impact_ratio_groups", made.group_impact, *[np.nan] * 3, attribute.rows))
            for name, effect in attribute.effects.items():
                lines.append((attribute.name, name, effect.value, np.nan, np.nan, effect.floor, effect.rows))
        return pd.DataFrame(lines, columns=["attribute", "measure", "value", "low", "high", "by_chance", "rows"])

    def plot(self, name: str | None = None, *, ax: Any = None) -> Any:
        """Draw the curve of one attribute (the first by default) with its band; needs matplotlib.

        Returns
        -------
        matplotlib.axes.Axes
            The axes, a new one unless ``ax`` is given.
        """
        return _module("_report").draw(self.attributes[0] if name is None else self[name], ax)

    def to_html(self) -> str:
        """Return the report as one self-contained HTML page."""
        return _module("_report").page(self)

    def to_markdown(self) -> str:
        """Return a model card in Markdown, to be pasted into the documentation of a model or a pull request."""
        return _module("_report").markdown(self)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the report to ``path``, and the JSON and the Markdown beside it; all of them whole or none."""
        _module("_report").save(self, path)


@dataclass(frozen=True)
class Threshold:
    """A largest acceptable value of one measure, for one attribute or (empty) for all of them."""

    measure: str
    value: float
    attribute: str = ""


@dataclass(frozen=True)
class Verdict:
    """One number of an audit beside its threshold, and the bound if a guarantee was asked for."""

    threshold: Threshold
    attribute: str
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
        if highest <= self.threshold.value:
            return "below"
        return "above" if self.low > self.threshold.value else "inconclusive"

    @property
    def status(self) -> int:
        """The exit status of the command: 0 below, 1 above, 3 inconclusive."""
        return STATUS[self.outcome]

    def __str__(self) -> str:
        sentences = _module("_sentences")
        number, short = sentences.number, sentences.short
        words = {"below": "is below", "above": "is above", "inconclusive": "is not significantly different from"}
        said = (
            f"{self.threshold.measure} of {short(self.attribute)} {words[self.outcome]} the threshold "
            f"{number(self.threshold.value)}: estimate {number(self.estimate)}, interval {number(self.low)} to "
            f"{number(self.high)}"
        )
        if self.bound is None or self.outcome == "above":
            return f"{said}."
        said = said.replace(words["inconclusive"], "is not guaranteed to be below")
        rows = self.bound.rows_needed(self.threshold.value)
        if self.outcome == "below":
            return f"{said}, guaranteed to be at most {number(self.bound.bound)}."
        if rows is None and self.bound.own_values:
            name = short(self.attribute)
            why = f"No guarantee is possible: most people have a value of {name} of their own. Round {name}, or"
            return f"{said}. {why} use gdp_bound with groups and variation."
        enough = (
            f"About {rows:,} rows with the same scores would be enough to guarantee it."
            if rows is not None
            else f"No number of rows would be enough, since GDP over the values is {number(self.bound.estimate)} here."
        )
        return f"{said}, guaranteed to be at most {number(self.bound.bound)}. {enough}"


def parse_threshold(text: str) -> Threshold:
    """Read ``gdp=0.05`` or, for one attribute, ``gdp[age]=0.05``.

    Examples
    --------
    >>> parse_threshold("gdp[age]=0.05")
    Threshold(measure='gdp', value=0.05, attribute='age')
    """
    left, equals, right = text.rpartition("=")
    measure, bracket, attribute = left.strip().partition("[")
    try:
        value = float(right)
    except ValueError:
        value = math.nan
    if not equals or not (math.isfinite(value) and value >= 0) or (bracket and not attribute.endswith("]")):
        raise ValueError(f"--fail-above is {text!r}: write a measure and a number, such as gdp=0.05 or gdp[age]=0.05.")
    one_of("measure", measure, MEASURES)
    return Threshold(measure, value, attribute.removesuffix("]"))


def decide(audit: Audit, thresholds: Iterable[Threshold], *, guaranteed: bool = False) -> list[Verdict]:
    """Compare every threshold with the attributes it is for."""
    verdicts = []
    for threshold in thresholds:
        if guaranteed and threshold.measure != "gdp":
            raise ValueError(f"{threshold.measure} has no guaranteed bound: a guarantee is for gdp only.")
        chosen = [audit[threshold.attribute]] if threshold.attribute else audit.attributes
        for attribute in chosen:
            found = attribute.measure(threshold.measure)
            if found is None:
                needed = "--control" if threshold.measure == "gdp_given" else "--label with two values"
                raise ValueError(
                    f"{threshold.measure} of {attribute.name!r} was not measured: it needs {needed} and enough people."
                )
            if guaranteed and attribute.bound is None:
                raise ValueError(
                    f"gdp of {attribute.name!r} has no guaranteed bound: it needs scores from 0 to 1, and no weights."
                )
            bound = attribute.bound if guaranteed else None
            verdicts.append(Verdict(threshold, attribute.name, found.value, found.low, found.high, bound))
    return verdicts


def exit_status(verdicts: Iterable[Verdict]) -> int:
    """Return 1 if a number is above its threshold, 3 if one is inconclusive, 0 otherwise."""
    statuses = {verdict.status for verdict in verdicts}
    return next((status for status in (1, 3) if status in statuses), 0)
