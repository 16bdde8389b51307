"""Draw the pictures of an audit as inline SVG, colored by the style sheet of the page, and as matplotlib axes."""

from __future__ import annotations

import html
import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from frhsic_core.audit.binning import Groups
from frhsic_core.audit.curve import Array, Curve
from frhsic_core.audit.sentences import number, short

if TYPE_CHECKING:
    from frhsic_core.audit.results import AttributeAudit

WIDTH, HEIGHT = 560, 400
_LEFT, _RIGHT, _TOP = 62, 14, 16
_SPLIT, _FLOOR = 282, 346  # the curve ends and the density starts; the density ends
_POINTS = 160
_INTERVALS = 40
_LETTER, _TILTED = 10, 60  # width of a letter on a narrow screen; more height for tilted names


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
        found = ticks(self.x0, self.x1)
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


def curve_svg(attribute: AttributeAudit, curve: Curve, *, label: str, title: str, groups: Groups | None = None) -> str:
    """Return the curve with its band above the density of S; with ``groups`` also their means."""
    if attribute.categories or not curve.smooth:
        return _levels_svg(attribute, curve, label=label, title=title)
    inside = np.flatnonzero(curve.inside)
    shown = inside[np.unique(np.linspace(0, len(inside) - 1, _POINTS).round().astype(int))]
    s, mean, low, high = curve.s[shown], curve.mean[shown], curve.low[shown], curve.high[shown]
    bottom, top = min(float(low.min()), curve.center), max(float(high.max()), curve.center)
    frame = _Frame((float(s[0]), float(s[-1])), (bottom, top))
    parts = frame.vertical_axis(label)
    band = frame.line(s, high) + " " + frame.line(s[::-1], low[::-1])
    if groups is not None:
        for left, right, value in zip(groups.edges[:-1], groups.edges[1:], groups.means, strict=True):
            a, b = frame.x(max(left, frame.x0)), frame.x(min(right, frame.x1))
            at = frame.y(float(value))
            parts.append(f'<line class="group" x1="{a:.1f}" x2="{b:.1f}" y1="{at:.1f}" y2="{at:.1f}"/>')
            parts.append(f'<line class="edge" x1="{b:.1f}" x2="{b:.1f}" y1="{_TOP}" y2="{_SPLIT - 8}"/>')
    parts.append(f'<polygon class="band" points="{band}"/>')
    center = frame.y(curve.center)
    parts.append(f'<line class="center" x1="{_LEFT}" x2="{WIDTH - _RIGHT}" y1="{center:.1f}" y2="{center:.1f}"/>')
    parts.append(f'<polyline class="curve" points="{frame.line(s, mean)}"/>')
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


def _levels_svg(attribute: AttributeAudit, curve: Curve, *, label: str, title: str) -> str:
    """Return a point with its interval for every level, above the share of people in it."""
    bottom, top = min(float(curve.low.min()), curve.center), max(float(curve.high.max()), curve.center)
    count = len(curve.s)
    frame = _Frame((-0.6, count - 0.4), (bottom, top))
    parts = frame.vertical_axis(label)
    center = frame.y(curve.center)
    parts.append(f'<line class="center" x1="{_LEFT}" x2="{WIDTH - _RIGHT}" y1="{center:.1f}" y2="{center:.1f}"/>')
    tallest = float(curve.share.max())
    every = max(1, math.ceil(count / 12))
    for k in range(count):
        x = frame.x(k)
        low, high, mean = (frame.y(float(values[k])) for values in (curve.low, curve.high, curve.mean))
        parts.append(f'<line class="interval" x1="{x:.1f}" x2="{x:.1f}" y1="{low:.1f}" y2="{high:.1f}"/>')
        parts.append(f'<circle class="point" cx="{x:.1f}" cy="{mean:.1f}" r="4"/>')
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


def draw(attribute: AttributeAudit, ax: Any = None, *, groups: int | None = None) -> Any:
    """Draw the curve of one attribute on matplotlib axes; ``groups`` adds the means of 2, 4 or 10 groups."""
    if ax is None:
        import matplotlib.pyplot as plt

        ax = plt.subplots(figsize=(6.4, 3.6), layout="constrained")[1]
    curve = attribute.curve
    inside = curve.inside
    s = curve.s[inside]
    if groups is not None:
        found = next(entry for entry in attribute.groups if entry.groups == groups)
        left, right = found.edges[:-1], found.edges[1:]
        bars = {"color": "#e69f00", "alpha": 0.35, "edgecolor": "#e69f00", "label": f"means of {groups} groups"}
        ax.bar(left, found.means, width=right - left, align="edge", **bars)
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
