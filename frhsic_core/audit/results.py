"""What an audit of predictions found: its numbers, its sentences and its report."""

from __future__ import annotations

import importlib
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from frhsic_core.audit.binning import Groups
from frhsic_core.audit.curve import Curve
from frhsic_core.audit.measures import Effect, Test

if TYPE_CHECKING:
    import os

Array = NDArray[np.float64]

# The numbers with an interval, which a threshold can be compared with.
MEASURES = {
    "gdp": "mean distance between the mean score at one value of the attribute and the overall mean",
    "equal_opportunity": "the same among people with label 1",
    "equalized_odds": "the larger of the numbers for people with label 1 and with label 0",
    "calibration": "mean distance from zero of label minus score along the attribute",
    "gdp_given": "GDP of what is left of the scores after the control features",
}


def _module(name: str) -> Any:
    """Return a module that describes an audit; it needs the classes of this one."""
    return importlib.import_module(f"frhsic_core.audit.{name}")


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
    conventions : dict of str to float
        GDP in the conventions of :func:`frhsic_core.gdp`, computed from the bins.
    labels : dict of str to Curve
        With labels: ``"equal_opportunity"``, ``"label_0"`` (curves of the score among people with label 1 and 0) and
        ``"calibration"`` (curve of label minus score).
    label_test : Test or None
        With labels: test of independence given the label (equalized odds, separation).
    given : Given or None
        With control features: what they leave.
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
    conventions: dict[str, float]
    labels: dict[str, Curve] = field(default_factory=dict)
    label_test: Test | None = None
    given: Given | None = None

    def interval(self, measure: str) -> tuple[float, float, float] | None:
        """Return estimate, lower and upper end of one of the measures; ``None`` if it was not measured."""
        if measure == "gdp":
            found = [self.curve]
        elif measure == "gdp_given":
            found = [self.given.curve] if self.given else []
        elif measure == "equalized_odds":
            found = [self.labels[name] for name in ("equal_opportunity", "label_0") if name in self.labels]
            found = found if len(found) == 2 else []
        else:
            found = [self.labels[measure]] if measure in self.labels else []
        if not found:
            return None
        # The larger of two numbers lies between the larger lower end and the larger upper end.
        return tuple(max(values) for values in zip(*[(c.gdp, c.gdp_low, c.gdp_high) for c in found], strict=True))


@dataclass(frozen=True)
class Joint:
    """All attributes together: the test of joint independence and the effect sizes."""

    names: tuple[str, ...]
    rows: int
    test: Test
    effects: dict[str, Effect]


@dataclass(frozen=True)
class Audit:
    """The result of :func:`frhsic_core.audit.audit`. It prints as sentences, and a notebook shows it as a report.

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
    level : float
        Coverage of intervals and bands.
    seed : int
        Seed of everything random.
    notes : tuple of str
        What a reader must know, such as few rows or a sample of a larger file.
    source : str
        Where the rows came from, for the title.
    unit : str
        What a row is, for the sentences.
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
    level: float
    seed: int
    notes: tuple[str, ...] = ()
    source: str = ""
    unit: str = "people"

    def __getitem__(self, name: str) -> AttributeAudit:
        """Return the audit of one attribute by its name."""
        for attribute in self.attributes:
            if attribute.name == name:
                return attribute
        raise KeyError(f"no attribute {name!r}: there are {', '.join(repr(a.name) for a in self.attributes)}.")

    @property
    def sentences(self) -> list[str]:
        """What the audit says, in sentences."""
        return _module("sentences").summary(self)

    def __str__(self) -> str:
        return "\n".join(self.sentences)

    def __repr__(self) -> str:
        names = ", ".join(attribute.name for attribute in self.attributes)
        return f"<Audit of {', '.join(self.scores[:3])} by {names}: {self.rows:,} rows>"

    def _repr_html_(self) -> str:
        return _module("report").fragment(self)

    def as_dict(self) -> dict[str, Any]:
        """Return everything as a dict of JSON values, with the sentences first."""
        return _module("report").as_dict(self)

    def table(self) -> pd.DataFrame:
        """Return one row for each attribute and measure, with its interval or what chance alone gives."""
        lines: list[tuple[Any, ...]] = []
        for attribute in self.attributes:
            for measure in MEASURES:
                found = attribute.interval(measure)
                if found is not None:
                    by_chance = attribute.curve.floor if measure == "gdp" else np.nan
                    lines.append((attribute.name, measure, *found, by_chance, attribute.rows))
            lines.append((attribute.name, "pvalue", attribute.test.pvalue, *[np.nan] * 3, attribute.test.rows))
            if attribute.label_test is not None:
                test = attribute.label_test
                lines.append((attribute.name, "pvalue_given_label", test.pvalue, *[np.nan] * 3, test.rows))
            if attribute.given is not None:
                test = attribute.given.test
                lines.append((attribute.name, "pvalue_given", test.pvalue, *[np.nan] * 3, test.rows))
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
        return _module("pictures").draw(self.attributes[0] if name is None else self[name], ax)

    def to_html(self) -> str:
        """Return the report as one self-contained HTML page."""
        return _module("report").page(self)

    def to_markdown(self) -> str:
        """Return a short summary in Markdown, for a pull request."""
        return _module("report").markdown(self)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the report to ``path``, and the JSON and the Markdown beside it; all of them whole or none."""
        _module("report").save(self, path)
