"""What an audit found about each attribute: its numbers, its comparison with thresholds, and pictures of its curves."""

from __future__ import annotations

import html
import itertools
import math
import re
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd

from frhsic_core.bounds import DependenceBound
from frhsic_core.conditional._curve import Array, Curve
from frhsic_core.conditional.neighbors import GroupScan
from frhsic_core.inputs.columns import Column

PERMUTATIONS = 499  # of the tests of independence
KHGR_RIDGE = 0.01
# The numbers with an interval, which a threshold can be compared with.
MEASURES = (
    "gdp",
    "gdp_over_sd",
    "impact_gap",
    "equal_opportunity",
    "equalized_odds",
    "calibration",
    "gdp_given",
    "max_gap",
)
_NAME = 60
WIDTH, HEIGHT = 640, 420
_LEFT, _RIGHT, _TOP = 62, 14, 16
_SPLIT, _FLOOR = 302, 366  # the curve ends and the density starts; the density ends
_POINTS = 160
_INTERVALS = 40
_LETTER, _TILTED = 10, 60  # width of a letter on a narrow screen; more height for tilted names


@dataclass(frozen=True)
class Measure:
    """One number with the rows behind it, and where they are known its interval and what chance alone would give."""

    value: float
    rows: int
    low: float = math.nan
    high: float = math.nan
    floor: float = math.nan


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
        Standard deviation of the scores, with their weights.
    scan : GroupScan or None
        The largest gap of any group of people with neighboring values of the attribute.
    explained_by : dict of str to float
        How much of the attribute each control explains, and all of them together (cross-fitted R²).
    hidden : float
        The correlation of what the curve leaves of neighbors, if it hides a dependence; otherwise 0.
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
    scan: GroupScan | None = None
    explained_by: dict[str, float] = field(default_factory=dict)
    hidden: float = 0.0

    @property
    def control_r2(self) -> float:
        """The largest part of the attribute that a control, or all of them, explain."""
        return max(self.explained_by.values(), default=0.0)

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

    def value_name(self, s: float) -> str:
        """Return a value of the attribute as a reader knows it: a category, or a number."""
        if self.categories:
            return short(self.categories[int(s)])
        size = max(abs(self.curve.s[0]), abs(self.curve.s[-1]))
        if float(s).is_integer() or size >= 1e9:
            return f"{s:,.0f}" if abs(s) >= 10_000 and size < 1e9 else f"{s:g}"
        return number(s, unit=float(np.ptp(self.curve.s[self.curve.inside])) or 1.0)

    def range_name(self, first: float, last: float) -> str:
        """Return a range of values, or the one value that it is."""
        if first == last:
            return self.value_name(first)
        return f"{self.value_name(first)} to {self.value_name(last)}"

    def group_names(self, groups: pd.DataFrame) -> list[str]:
        """Return the range of each group of a table."""
        ends = zip(groups.start, groups.end, strict=True)
        return [f"{self.value_name(a)} to {self.value_name(b)}" for a, b in ends]

    def selection_rates(self) -> list[tuple[str, float]]:
        """Return the groups, or the categories, with the share of people that the threshold selects."""
        if (groups := self.selected_groups) is not None:
            return list(zip(self.group_names(groups), groups.means.tolist(), strict=True))
        curve = self.curves["selected"]
        return [
            (self.value_name(s), rate) for s, rate in zip(curve.s, curve.mean.tolist(), strict=True)
        ]


# Numbers and names in words ------------------------------------------------------------------------------------------


def number(value: float, *, unit: float | None = None) -> str:
    """Return a number with a useful number of digits: about three, or those of its ``unit``.

    Examples
    --------
    >>> number(0.12345), number(1234567.0), number(0.0000123), number(25.0)
    ('0.123', '1,234,567', '1.23e-05', '25')
    """
    if not math.isfinite(value):
        return "not known"
    if unit is not None and unit > 0:
        digits = max(0, 2 - math.floor(math.log10(unit)))
        return f"{value:,.{digits}f}" if digits <= 6 else f"{value:.3g}"
    if abs(value) < 1e-12:
        return "0"
    if not 1e-4 <= abs(value) < 1e9:
        return f"{value:.3g}"
    digits = max(0, 2 - math.floor(math.log10(abs(value))))
    text = f"{value:,.{digits}f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def at_most(value: float) -> str:
    """Return a number as :func:`number` does, but never below ``value``: for an upper bound.

    Examples
    --------
    >>> number(0.12341), at_most(0.12341), at_most(0.1), at_most(0.00001234)
    ('0.123', '0.124', '0.1', '1.24e-05')
    """
    text = number(value)
    if not math.isfinite(value) or float(text.replace(",", "")) >= value:
        return text
    last_digit = 10.0 ** (math.floor(math.log10(abs(value))) - 2)
    if last_digit > 1.0 and value < 1e9:  # these are written without a fraction, to the last digit
        last_digit = 1.0
    return number(value + 0.500001 * last_digit)


def short(name: str) -> str:
    """Return a name of at most 60 characters on one line."""
    name = " ".join(name.split()) or "(no name)"
    return name if len(name) <= _NAME else name[: _NAME - 1] + "…"


def percent(share: float) -> str:
    """Return a share in percent, with one digit below ten percent."""
    return f"{share:.0%}" if share >= 0.0995 or share == 0 else f"{share:.1%}"


# Pictures -------------------------------------------------------------------------------------------------------------


def clean(text: object) -> str:
    """Return text for HTML and SVG: escaped, and without characters that XML does not allow."""
    return html.escape(
        re.sub("[\x00-\x1f\x7f\ufffe\uffff\ud800-\udfff]", "\ufffd", str(text)), quote=True
    )


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


def _tag(tag: str, inside: str = "", **given: Any) -> str:
    """Return an SVG element; ``kind`` is its class, and numbers have one decimal."""
    named = {
        "class" if key == "kind" else key.replace("_", "-"): value for key, value in given.items()
    }
    shown = (
        f' {key}="{value:.1f}"' if isinstance(value, float) else f' {key}="{value}"'
        for key, value in named.items()
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
        return _tag(
            "rect",
            x=self.x(left),
            y=_FLOOR - size,
            width=self.x(right) - self.x(left) + 0.3,
            height=size,
        )


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
    ends = (
        (float(curve.s[inside[0]]), float(curve.s[inside[-1]]))
        if smooth
        else (-0.6, len(curve.s) - 0.4)
    )
    frame = _Frame(ends, (low, high))
    parts = frame.vertical_axis(label)
    if groups is not None:
        for first, last, value in zip(groups.start, groups.end, groups.means, strict=True):
            a, b = frame.x(max(first, frame.x0)), frame.x(min(last, frame.x1))
            parts.append(
                _tag("line", kind="group", x1=a, x2=b, y1=frame.y(value), y2=frame.y(value))
            )
            parts.append(_tag("line", kind="edge", x1=b, x2=b, y1=_TOP, y2=_SPLIT - 8))
    parts.append(frame.across("center", frame.y(curve.center)))
    for one in curves:
        mark = " before" if one is before else ""
        parts += _band(frame, one, inside, mark) if smooth else _levels(frame, one, mark)
    below = np.cumsum(curve.share) - 0.5 * curve.share
    if examples and smooth and not isinstance(attribute, Column):
        for share, anchor in ((0.1, "start"), (0.5, "middle"), (0.9, "end")):
            k = inside[np.abs(below[inside] - share).argmin()]
            a, b = frame.x(curve.s[k]), frame.y(curve.mean[k])
            words = f"{attribute.value_name(float(curve.s[k]))}: {number(float(curve.mean[k]))}"
            parts.append(_tag("circle", kind="point", cx=a, cy=b, r=4.5))
            above = (
                frame.y(curve.high[k]) - 7
            )  # beside the curve and inside the picture on a narrow screen
            parts.append(
                _tag("text", clean(words), kind="example", x=a, y=above, text_anchor=anchor)
            )
    if smooth:
        edges = np.linspace(*ends, _INTERVALS + 1)
        heights = np.diff(np.interp(edges, curve.s, below)) / np.diff(
            edges
        )  # the density of people
        sides = list(itertools.pairwise(edges))
        places, names = ticks(*ends, 9)
    else:
        heights, sides = curve.share, [(k - 0.35, k + 0.35) for k in range(len(curve.s))]
        every = max(1, math.ceil(len(curve.s) / 12))
        values = curve.s[::every].tolist()
        places = [float(k) for k in range(0, len(curve.s), every)]
        names = [
            attribute.categories[int(s)] if attribute.categories else number(s) for s in values
        ]
        names = [name if len(name) <= 12 else name[:11] + "…" for name in names]
    tallest = float(heights.max()) or 1.0
    bars = [frame.bar(*side, height / tallest) for side, height in zip(sides, heights, strict=True)]
    parts.append(
        _tag("g", "".join(bars), kind="people")
    )  # one opacity for all bars hides their seams
    room = frame.x(places[1]) - frame.x(places[0]) if len(places) > 1 else math.inf
    tilted = not smooth and max(map(len, names)) * _LETTER > room
    turn, anchor, height = (
        (" rotate(-35)", "end", HEIGHT + _TILTED) if tilted else ("", "middle", HEIGHT)
    )
    for place, name in zip(places, names, strict=True):
        at = f"translate({frame.x(place):.1f} {_FLOOR + 17}){turn}"
        parts.append(_tag("text", clean(name), transform=at, text_anchor=anchor))
    parts.append(frame.across("axis", _FLOOR))
    name = clean(short(attribute.name))
    middle = (_LEFT + WIDTH - _RIGHT) / 2
    parts.append(_tag("text", name, kind="label", x=middle, y=height - 14, text_anchor="middle"))
    what = {
        "role": "img",
        "aria_label": f"{clean(label)} along {name}",
        "preserveAspectRatio": "xMidYMid meet",
    }
    return _tag("svg", "".join(parts), viewBox=f"0 0 {WIDTH} {height}", **what)


def _band(frame: _Frame, curve: Curve, inside: np.ndarray, mark: str) -> list[str]:
    shown = inside[np.unique(np.linspace(0, len(inside) - 1, _POINTS).round().astype(int))]
    s, low, high = curve.s[shown], curve.low[shown], curve.high[shown]
    band = frame.path(s, high) + " " + frame.path(s[::-1], low[::-1])
    line = frame.path(s, curve.mean[shown])
    return [
        _tag("polygon", kind=f"band{mark}", points=band),
        _tag("polyline", kind=f"curve{mark}", points=line),
    ]


def _levels(frame: _Frame, curve: Curve, mark: str) -> list[str]:
    parts = []
    for k, (low, high, mean) in enumerate(zip(curve.low, curve.high, curve.mean, strict=True)):
        x = frame.x(k - (0.2 if mark else 0.0))
        parts.append(
            _tag("line", kind=f"interval{mark}", x1=x, x2=x, y1=frame.y(low), y2=frame.y(high))
        )
        parts.append(_tag("circle", kind=f"point{mark}", cx=x, cy=frame.y(mean), r=4))
    return parts


def bound_figure(gdp: float, interval: tuple[float, float], bound: float, level: str) -> str:
    """Return the picture of the estimate, its interval and the guaranteed bound on one axis that starts at zero."""
    frame = _Frame((0.0, 1.05 * max(bound, interval[1])), (0.0, 1.0))
    low, at, high, end = map(frame.x, (interval[0], gdp, interval[1], bound))
    parts = [frame.across("axis", 30)]
    for place, name in zip(*ticks(0.0, frame.x1, 6), strict=True):
        parts.append(_tag("text", name, x=frame.x(place), y=51, text_anchor="middle"))
        parts.append(_tag("line", kind="axis", x1=frame.x(place), x2=frame.x(place), y1=30, y2=34))
    parts.append(_tag("line", kind="interval wide", x1=low, x2=high, y1=15, y2=15))
    parts.append(_tag("circle", kind="point", cx=at, cy=15, r=6))
    parts.append(
        _tag(
            "polygon",
            kind="bound",
            points=f"{end - 7:.1f},15 {end:.1f},7 {end + 7:.1f},15 {end:.1f},23",
        )
    )
    what = {"role": "img", "aria_label": f"GDP {number(gdp)}, guaranteed at most {at_most(bound)}"}
    words = f"GDP: the estimate (circle) with its {level} interval (line), and what is guaranteed (diamond)."
    svg = _tag("svg", "".join(parts), viewBox=f"0 0 {WIDTH} 57", **what)
    return f"<figure>{svg}<figcaption>{words}</figcaption></figure>"
