"""Draw what a monitor knows as one HTML file without scripts, with three pictures over time."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from html import escape

from frhsic_core.bounds.result import rounded_down, rounded_up
from frhsic_core.monitoring.history import History, Period
from frhsic_core.monitoring.monitor import Monitor

WIDTH, LEFT, RIGHT, TOP, BOTTOM = 820.0, 56.0, 150.0, 12.0, 34.0
_LABELS = 8  # names of periods below a picture
STYLE = """
:root { color-scheme: light dark; --ink: #1a1a1a; --soft: #5c5c5c; --line: #c9c9c9; --page: #fff;
  --gap: #0072b2; --promise: #d55e00; --limit: #7a3e9d; }
@media (prefers-color-scheme: dark) { :root { --ink: #e8e8e8; --soft: #a8a8a8; --line: #4a4a4a;
  --page: #17181a; --gap: #56b4e9; --promise: #f0914a; --limit: #c99be6; } }
body { font: 16px/1.5 system-ui, sans-serif; max-width: 54rem; margin: 2rem auto; padding: 0 1rem;
  color: var(--ink); background: var(--page); }
h1 { font-size: 1.5rem; } h2 { font-size: 1.1rem; margin-top: 2rem; }
svg { width: 100%; height: auto; } text { fill: var(--soft); font: 12px system-ui, sans-serif; }
.axis { stroke: var(--line); } .gap { stroke: var(--gap); fill: var(--gap); }
.promise { stroke: var(--promise); fill: none; stroke-width: 2; }
.limit { stroke: var(--limit); stroke-dasharray: 6 4; } .change { stroke: var(--soft); stroke-dasharray: 2 3; }
text.gap, text.promise, text.limit { stroke: none; } text.gap { fill: var(--gap); }
text.promise { fill: var(--promise); } text.limit { fill: var(--limit); }
table { border-collapse: collapse; font-size: .85rem; } td, th { padding: .15rem .6rem; text-align: right; }
"""


@dataclass
class Picture:
    """One picture over the periods, as parts of an SVG."""

    names: Sequence[str]
    low: float
    high: float
    height: float = 260.0

    def __post_init__(self) -> None:
        self.parts: list[str] = []
        bottom = self.y(self.low)
        for value in _ticks(self.low, self.high):
            y = self.y(value)
            self.parts.append(
                f'<line class="axis" x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{y:.1f}" y2="{y:.1f}"/>'
                f'<text x="{LEFT - 6}" y="{y + 4:.1f}" text-anchor="end">{value:g}</text>'
            )
        step = max(1, math.ceil(len(self.names) / _LABELS))
        for k in range(0, len(self.names), step):
            self.parts.append(
                f'<text x="{self.x(k):.1f}" y="{bottom + 20:.1f}" text-anchor="middle">'
                f"{escape(self.names[k])}</text>"
            )

    def x(self, place: float) -> float:
        """Return where a period is."""
        room = WIDTH - LEFT - RIGHT - 40.0
        return LEFT + 20.0 + room * place / max(1, len(self.names) - 1)

    def y(self, value: float) -> float:
        """Return where a value is."""
        share = (value - self.low) / (self.high - self.low)
        return TOP + (self.height - TOP - BOTTOM) * (1.0 - min(1.0, max(0.0, share)))

    def line(self, values: Sequence[float], kind: str, *, first: int = 0) -> None:
        """Draw a line through periods that follow each other."""
        points = " ".join(f"{self.x(k):.1f},{self.y(v):.1f}" for k, v in enumerate(values, first))
        self.parts.append(f'<polyline class="{kind}" points="{points}" style="fill: none"/>')

    def interval(self, place: int, low: float, high: float, kind: str) -> None:
        """Draw an upright interval."""
        x = self.x(place)
        self.parts.append(
            f'<line class="{kind}" opacity=".4" stroke-width="5" x1="{x:.1f}" x2="{x:.1f}" '
            f'y1="{self.y(low):.1f}" y2="{self.y(high):.1f}"/>'
        )

    def dot(self, place: int, value: float, kind: str) -> None:
        """Draw an estimate."""
        x, y = self.x(place), self.y(value)
        self.parts.append(f'<circle class="{kind}" cx="{x:.1f}" cy="{y:.1f}" r="3"/>')

    def level(self, value: float, kind: str) -> None:
        """Draw a level across the picture."""
        y = self.y(value)
        self.parts.append(
            f'<line class="{kind}" x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{y:.1f}" y2="{y:.1f}"/>'
        )

    def mark(self, place: float, text: str) -> None:
        """Draw an upright line between two periods."""
        x = self.x(place)
        self.parts.append(
            f'<line class="change" x1="{x:.1f}" x2="{x:.1f}" y1="{TOP}" y2="{self.y(self.low):.1f}"/>'
            f'<text x="{x + 4:.1f}" y="{TOP + 10}">{escape(text)}</text>'
        )

    def label(self, value: float, text: str, kind: str) -> None:
        """Write what a line is, beside its end."""
        x = WIDTH - RIGHT + 6
        self.parts.append(
            f'<text class="{kind}" x="{x}" y="{self.y(value) + 4:.1f}">{escape(text)}</text>'
        )

    def svg(self, title: str) -> str:
        """Return the picture."""
        return (
            f'<h2>{escape(title)}</h2><svg role="img" aria-label="{escape(title, quote=True)}" '
            f'viewBox="0 0 {WIDTH:g} {self.height:g}">{"".join(self.parts)}</svg>'
        )


def sentences(monitor: Monitor, history: History, limit: float | None) -> list[str]:
    """Return what is known after the latest period, in words."""
    settings, last = monitor.settings, history.last
    share = f"{100 * (1 - settings.delta):.6g}"
    said = [
        f"{len(history.periods)} periods with {monitor.rows:,} rows. In {last.name} GDP along "
        f"{settings.sensitive} is {last.estimate:.4f} among {last.rows:,} rows.",
        f"Since {last.since} GDP is guaranteed to be at most {rounded_up(last.guarantee)} "
        f"(sample: {last.overall:.4f}, {last.total:,} rows). With {share} % confidence this and all "
        "statements below hold together, at every look.",
    ]
    if last.at_least > 0.0:
        said.append(
            f"Since {last.at_least_since} GDP is certainly at least {rounded_down(last.at_least)}."
        )
    for change in history.changes:
        said.append(
            f"Changed since {change.since}, noticed in {change.noticed}: {change.what}. The "
            f"guarantee begins again with {change.since}."
        )
    if limit is not None:
        said.append(_verdict(last, limit))
    return said


def _verdict(last: Period, limit: float) -> str:
    verbs = {
        "below": "is guaranteed not to be above",
        "above": "is certainly above",
        "inconclusive": "is not guaranteed to be below",
    }
    return f"GDP {verbs[last.outcome(limit)]} the threshold {limit:g}."


def page(
    monitor: Monitor, history: History, *, limit: float | None = None, notes: Sequence[str] = ()
) -> str:
    """Return the page: sentences, three pictures, the numbers, and what is assumed."""
    settings = monitor.settings
    said = [*sentences(monitor, history, limit), *notes]
    pictures = [_gap(history, limit), _scores(history, settings.score)]
    pictures.append(_people(history, settings.sensitive))
    title = f"{settings.model}: {settings.score} along {settings.sensitive}"
    return (
        '<!DOCTYPE html><html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width">'
        f"<title>{escape(title)}</title><style>{STYLE}</style></head><body>"
        f"<h1>{escape(title)}</h1>{_list(said)}{''.join(pictures)}"
        f"<details><summary>All numbers</summary>{_table(history)}</details>"
        f"<h2>What is assumed</h2>{_list(settings.assumptions)}</body></html>"
    )


def _gap(history: History, limit: float | None) -> str:
    periods = history.periods
    levels = [period.guarantee for period in periods[1:]] + [period.high for period in periods[-1:]]
    top = 1.15 * max([*levels, limit or 0.0, 1e-6])
    picture = _marked(history, 0.0, top)
    for k, period in enumerate(periods):
        picture.interval(k, period.low, period.high, "gap")
        picture.dot(k, period.estimate, "gap")
    for since in dict.fromkeys(period.since for period in periods):
        places = [k for k, period in enumerate(periods) if period.since == since]
        picture.line([periods[k].guarantee for k in places], "promise", first=places[0])
    last = periods[-1]
    air = 0.06 * top  # so that the words do not overlap
    picture.label(max(last.guarantee, last.estimate + air), "guarantee", "promise")
    picture.label(last.estimate, "one period, interval", "gap")
    if limit is not None:
        picture.level(limit, "limit")
        picture.label(limit, "threshold", "limit")
    return picture.svg("The gap: GDP of each period, and the guarantee")


def _scores(history: History, name: str) -> str:
    periods = history.periods
    lows = [period.mean - period.mean_error for period in periods]
    highs = [period.mean + period.mean_error for period in periods]
    picture = _marked(history, min(lows), max(highs))
    for k, period in enumerate(periods):
        picture.interval(k, lows[k], highs[k], "gap")
        picture.dot(k, period.mean, "gap")
    picture.label(periods[-1].mean, "mean, interval", "gap")
    return picture.svg(f"The mean of {name}")


def _people(history: History, name: str) -> str:
    numbers = not any(math.isnan(period.attribute) for period in history.periods)
    value: Callable[[Period], float] = _attribute if numbers else _moved
    values = [value(period) for period in history.periods]
    air = max(0.25 * (max(values) - min(values)), 0.02 * abs(max(values)), 1e-3)
    picture = _marked(history, min(values) - air, max(values) + air)
    picture.line(values, "gap")
    for k, found in enumerate(values):
        picture.dot(k, found, "gap")
    if numbers:
        return picture.svg(f"The mean of {name}")
    return picture.svg(f"Share of people in other groups of {name} than in the first period")


def _attribute(period: Period) -> float:
    return period.attribute


def _moved(period: Period) -> float:
    return period.moved


def _marked(history: History, low: float, high: float) -> Picture:
    """Return a picture in which the changes are marked."""
    names = [period.name for period in history.periods]
    picture = Picture(names, low, high if high > low else low + 1.0)
    for change in history.changes:
        picture.mark(names.index(change.since) - 0.5, "changed")
    return picture


def _table(history: History) -> str:
    heads = (
        "period", "rows", "GDP", "from", "to", "since", "rows since", "guarantee", "mean score",
        "mean attribute", "moved",
    )  # fmt: skip
    lines = []
    for period in history.periods:
        attribute = "" if math.isnan(period.attribute) else f"{period.attribute:.4g}"
        cells = (
            period.name, f"{period.rows:,}", f"{period.estimate:.4f}", rounded_down(period.low),
            rounded_up(period.high), period.since, f"{period.total:,}", rounded_up(period.guarantee),
            f"{period.mean:.4f}", attribute, f"{period.moved:.3f}",
        )  # fmt: skip
        lines.append("".join(f"<td>{escape(cell)}</td>" for cell in cells))
    head = "".join(f"<th>{text}</th>" for text in heads)
    rows = "".join(f"<tr>{line}</tr>" for line in lines)
    return f"<table><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table>"


def _list(lines: Sequence[str]) -> str:
    return "<ul>" + "".join(f"<li>{escape(line)}</li>" for line in lines) + "</ul>"


def _ticks(low: float, high: float) -> list[float]:
    """Return three to six round numbers between two numbers."""
    step = 10.0 ** math.floor(math.log10((high - low) / 2.0))
    if (high - low) / step > 10.0:
        step *= 5.0
    elif (high - low) / step > 5.0:
        step *= 2.0
    first = math.ceil(low / step - 1e-9)
    last = math.floor(high / step + 1e-9)
    return [round(k * step, 12) for k in range(first, last + 1)]
