"""Draw curves with their bands, levels with their intervals, and a bound, as inline SVG.

Every text and every attribute of an element is escaped where the element is written.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
from markupsafe import Markup

from frhsic_core.auditing._results import AttributeAudit
from frhsic_core.auditing._templates import without_controls
from frhsic_core.auditing._words import at_most, number, rounded, short
from frhsic_core.conditional._curve import Array, Curve
from frhsic_core.inputs.columns import Column

WIDTH, HEIGHT = 640, 420
_LEFT, _RIGHT, _TOP = 62, 14, 16
_SPLIT, _FLOOR = 302, 366  # the curve ends and the density starts; the density ends
_POINTS = 160  # of a line
_INTERVALS = 40  # of the density
_LABELS = 12  # levels with a name below the axis
_LETTERS = 12  # of such a name
_LETTER, _TILTED = 10, 60  # width of a letter on a narrow screen; more height for tilted names


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
    if max(map(abs, (*values, step))) < 1e6 and digits <= 5:
        return values, [f"{value:,.{digits}f}" for value in values]
    return values, [f"{value:.3g}" for value in values]


def _element(name: str, *inside: str, kind: str = "", **given: Any) -> Markup:
    """Return an SVG element; ``kind`` is its class, and numbers have one decimal."""
    attributes = {"class": kind} if kind else {}
    attributes |= {key.replace("_", "-"): value for key, value in given.items()}
    shown = Markup("")
    for key, value in attributes.items():
        if isinstance(value, float):
            value = f"{value:.1f}"
        shown += Markup(' {}="{}"').format(key, without_controls(value))
    content = Markup("").join(without_controls(part) for part in inside)
    return Markup("<{0}{1}>{2}</{0}>").format(name, shown, content)


class Frame:
    """The two panels of a picture on one axis: the curve above, the number of people below."""

    def __init__(self, x: tuple[float, float], y: tuple[float, float]) -> None:
        self.x0, self.x1 = x
        if self.x1 <= self.x0:
            self.x0, self.x1 = x[0] - 0.5, x[0] + 0.5
        margin = 0.06 * (y[1] - y[0]) or 0.5
        self.y0 = y[0] - margin
        self.y1 = y[1] + margin

    def x(self, s: float) -> float:
        """Return the place of a value of the attribute."""
        return float(_LEFT + (s - self.x0) / (self.x1 - self.x0) * (WIDTH - _LEFT - _RIGHT))

    def y(self, value: float) -> float:
        """Return the height of a mean."""
        return float(_SPLIT - 8 - (value - self.y0) / (self.y1 - self.y0) * (_SPLIT - 8 - _TOP))

    def path(self, xs: Array, ys: Array) -> str:
        """Return the points of a line."""
        return " ".join(f"{self.x(a):.1f},{self.y(b):.1f}" for a, b in zip(xs, ys, strict=True))

    def across(self, kind: str, at: float) -> Markup:
        """Return a line from the left to the right."""
        return _element("line", kind=kind, x1=_LEFT, x2=WIDTH - _RIGHT, y1=at, y2=at)

    def vertical_axis(self, label: str, kind: str = "label") -> list[Markup]:
        """Return the grid with its numbers, and the label above them.

        There no number of the axis is in its way on a narrow screen.
        """
        parts = []
        for value, text in zip(*ticks(self.y0, self.y1), strict=True):
            height = self.y(value)
            parts.append(self.across("grid", height))
            parts.append(_element("text", text, x=_LEFT - 6, y=height + 4, text_anchor="end"))
        return [*parts, _element("text", label, kind=kind, x=_LEFT, y=_TOP - 5)]

    def bar(self, left: float, right: float, share: float) -> Markup:
        """Return a bar of the lower panel; a share of one fills it."""
        size = float(share) * (_FLOOR - _SPLIT - 6)
        return _element(
            "rect",
            x=self.x(left),
            y=_FLOOR - size,
            width=self.x(right) - self.x(left) + 0.3,
            height=size,
        )


class Line:
    """A curve along a number: a line with its band, and the density of people."""

    def __init__(self, curve: Curve) -> None:
        self.curve = curve
        self.inside = np.flatnonzero(curve.inside)

    @property
    def ends(self) -> tuple[float, float]:
        """The first and the last value in the picture."""
        s = self.curve.s
        return float(s[self.inside[0]]), float(s[self.inside[-1]])

    def marks(self, frame: Frame, curve: Curve, mark: str) -> list[Markup]:
        """Return the band and the line of a curve; another curve has bins of its own."""
        first, last = self.ends
        inside = np.flatnonzero(curve.inside & (curve.s >= first) & (curve.s <= last))
        places = np.linspace(0, len(inside) - 1, _POINTS).round().astype(int)
        shown = inside[np.unique(places)]
        s = curve.s[shown]
        upper = frame.path(s, curve.high[shown])
        lower = frame.path(s[::-1], curve.low[shown][::-1])
        line = frame.path(s, curve.mean[shown])
        return [
            _element("polygon", kind=f"band{mark}", points=f"{upper} {lower}"),
            _element("polyline", kind=f"curve{mark}", points=line),
        ]

    def examples(
        self, attribute: AttributeAudit, frame: Frame, values: Sequence[float]
    ) -> list[Markup]:
        """Return a few people with their mean, above the band and inside of the picture."""
        curve = self.curve
        parts = []
        for value in values:
            mean = float(np.interp(value, curve.s, curve.mean))
            high = float(np.interp(value, curve.s, curve.high))
            x = frame.x(value)
            words = f"{attribute.value_name(value)}: {rounded(mean, unit=frame.y1 - frame.y0)}"
            parts.append(_element("circle", kind="point", cx=x, cy=frame.y(mean), r=4.5))
            anchor = "start" if x < (_LEFT + WIDTH) / 2 else "end"
            height = max(frame.y(high) - 7, _TOP + 12)
            parts.append(_element("text", words, kind="example", x=x, y=height, text_anchor=anchor))
        return parts

    def bars(self) -> tuple[list[tuple[float, float]], Array]:
        """Return the sides and heights of the bars of the density."""
        curve = self.curve
        edges = np.linspace(*self.ends, _INTERVALS + 1)
        below = np.cumsum(curve.share) - 0.5 * curve.share
        heights = np.diff(np.interp(edges, curve.s, below)) / np.diff(edges)
        return list(itertools.pairwise(edges)), heights

    def axis(self, attribute: AttributeAudit | Column) -> tuple[list[float], list[str], bool]:
        """Return the places and names of the ticks, and whether the names are tilted."""
        places, names = ticks(*self.ends, 9)
        return places, names, False


class Levels:
    """Means of a few values or categories: points with their intervals, and numbers of people."""

    def __init__(self, curve: Curve) -> None:
        self.curve = curve

    @property
    def ends(self) -> tuple[float, float]:
        """The first and the last place in the picture, in which level k stands at k."""
        return -0.6, len(self.curve.s) - 0.4

    def marks(self, frame: Frame, curve: Curve, mark: str) -> list[Markup]:
        """Return the points with their intervals; another curve may lack some of the levels."""
        aside = 0.2 if mark else 0.0
        places = np.searchsorted(self.curve.s, curve.s)
        parts = []
        for place, value, low, mean, high in zip(
            places, curve.s, curve.low, curve.mean, curve.high, strict=True
        ):
            if place == len(self.curve.s) or self.curve.s[place] != value:
                continue
            x = frame.x(place - aside)
            y1 = frame.y(low)
            y2 = frame.y(high)
            parts.append(_element("line", kind=f"interval{mark}", x1=x, x2=x, y1=y1, y2=y2))
            parts.append(_element("circle", kind=f"point{mark}", cx=x, cy=frame.y(mean), r=4))
        return parts

    def examples(
        self, attribute: AttributeAudit, frame: Frame, values: Sequence[float]
    ) -> list[Markup]:
        """Return nothing: every level has its point."""
        return []

    def bars(self) -> tuple[list[tuple[float, float]], Array]:
        """Return the sides and heights of the bars, one for each level."""
        return [(k - 0.35, k + 0.35) for k in range(len(self.curve.s))], self.curve.share

    def axis(self, attribute: AttributeAudit | Column) -> tuple[list[float], list[str], bool]:
        """Return the places and names of the ticks, and whether the names are tilted."""
        count = len(self.curve.s)
        every = max(1, math.ceil(count / _LABELS))
        places = [float(k) for k in range(0, count, every)]
        values = self.curve.s[::every].tolist()
        if attribute.categories:
            names = [_cut(attribute.categories[int(s)]) for s in values]
        else:
            names = [_cut(number(s)) for s in values]
        first, last = self.ends
        room = every / (last - first) * (WIDTH - _LEFT - _RIGHT)
        longest = max(len(name) for name in names)
        return places, names, len(places) > 1 and longest * _LETTER > room


def _cut(name: str) -> str:
    """Return the beginning of a name."""
    if len(name) <= _LETTERS:
        return name
    return name[: _LETTERS - 1] + "…"


def curve_svg(
    attribute: AttributeAudit | Column,
    curve: Curve,
    *,
    label: str,
    groups: pd.DataFrame | None = None,
    before: Curve | None = None,
    label_before: str = "",
    examples: Sequence[float] = (),
    heights: Sequence[float] = (),
) -> Markup:
    """Return the curve with its band (or levels with their intervals) above the number of people.

    It may show means of ``groups``, the curve ``before``, and a few values as ``examples``. With
    ``label_before`` both labels have the colors of their curves.
    ``heights`` are means that the axis reaches, so that pictures have the same scale.
    """
    kind: Line | Levels = Levels(curve)
    if curve.smooth and not attribute.categories:
        kind = Line(curve)
    reached = [*heights, *height_range(curve)]
    if before is not None:
        reached += height_range(before)
    frame = Frame(kind.ends, (min(reached), max(reached)))
    if label_before:
        parts = frame.vertical_axis(label, kind="label now")
        right = {"x": WIDTH - _RIGHT, "y": _TOP - 5, "text_anchor": "end"}
        parts.append(_element("text", label_before, kind="label before", **right))
    else:
        parts = frame.vertical_axis(label, kind="label")
    if groups is not None:
        parts += _group_lines(frame, groups)
    parts.append(frame.across("center", frame.y(curve.center)))
    if before is not None:
        parts += kind.marks(frame, before, " before")
    parts += kind.marks(frame, curve, "")
    if isinstance(attribute, AttributeAudit):
        parts += kind.examples(attribute, frame, examples)
    parts.append(_people(frame, kind))
    places, names, tilted = kind.axis(attribute)
    parts += _horizontal_axis(frame, places, names, tilted)
    name = short(attribute.name)
    height = HEIGHT
    if tilted:
        height += _TILTED
    middle = (_LEFT + WIDTH - _RIGHT) / 2
    parts.append(
        _element("text", name, kind="label", x=middle, y=height - 14, text_anchor="middle")
    )
    return _picture(parts, height, f"{label} along {name}", preserveAspectRatio="xMidYMid meet")


def height_range(curve: Curve) -> tuple[float, float]:
    """Return the lowest and the highest mean that a picture of a curve shows."""
    low = min(float(curve.low[curve.inside].min()), curve.center)
    high = max(float(curve.high[curve.inside].max()), curve.center)
    return low, high


def _picture(parts: Sequence[Markup], height: int, words: str, **given: str) -> Markup:
    """Return the whole picture with the words for those who cannot see it."""
    box = f"0 0 {WIDTH} {height}"
    return _element("svg", *parts, viewBox=box, role="img", aria_label=words, **given)


def _group_lines(frame: Frame, groups: pd.DataFrame) -> list[Markup]:
    """Return the means of groups as thick lines, and the edges between them."""
    parts = []
    for first, last, value in zip(groups.start, groups.end, groups.means, strict=True):
        x1 = frame.x(max(first, frame.x0))
        x2 = frame.x(min(last, frame.x1))
        y = frame.y(value)
        parts.append(_element("line", kind="group", x1=x1, x2=x2, y1=y, y2=y))
        parts.append(_element("line", kind="edge", x1=x2, x2=x2, y1=_TOP, y2=_SPLIT - 8))
    return parts


def _people(frame: Frame, kind: Line | Levels) -> Markup:
    """Return the bars of the lower panel; one opacity for all of them hides their seams."""
    sides, heights = kind.bars()
    tallest = float(heights.max()) or 1.0
    bars = [frame.bar(*side, height / tallest) for side, height in zip(sides, heights, strict=True)]
    return _element("g", *bars, kind="people")


def _horizontal_axis(
    frame: Frame, places: list[float], names: list[str], tilted: bool
) -> list[Markup]:
    """Return the names of the ticks and the line above them."""
    turn = " rotate(-35)" if tilted else ""
    anchor = "end" if tilted else "middle"
    parts = []
    for place, name in zip(places, names, strict=True):
        at = f"translate({frame.x(place):.1f} {_FLOOR + 17}){turn}"
        parts.append(_element("text", name, transform=at, text_anchor=anchor))
    return [*parts, frame.across("axis", _FLOOR)]


def bound_svg(
    gdp: float, interval: tuple[float, float], bound: float, *, by_chance: float
) -> Markup:
    """Return estimate, interval, guaranteed bound and what chance gives on one axis from zero."""
    frame = Frame((0.0, 1.05 * max(bound, interval[1])), (0.0, 1.0))
    parts = [frame.across("axis", 30)]
    for place, name in zip(*ticks(0.0, frame.x1, 6), strict=True):
        x = frame.x(place)
        parts.append(_element("text", name, x=x, y=51, text_anchor="middle"))
        parts.append(_element("line", kind="axis", x1=x, x2=x, y1=30, y2=34))
    x = frame.x(by_chance)
    parts.append(_element("line", kind="chance", x1=x, x2=x, y1=4, y2=26))
    low = frame.x(interval[0])
    high = frame.x(interval[1])
    parts.append(_element("line", kind="interval wide", x1=low, x2=high, y1=15, y2=15))
    parts.append(_element("circle", kind="point", cx=frame.x(gdp), cy=15, r=6))
    end = frame.x(bound)
    diamond = f"{end - 7:.1f},15 {end:.1f},7 {end + 7:.1f},15 {end:.1f},23"
    parts.append(_element("polygon", kind="bound", points=diamond))
    words = f"mean gap {rounded(gdp)}, guaranteed at most {at_most(bound, digits=2)}"
    return _picture(parts, 57, words)
