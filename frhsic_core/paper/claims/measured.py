"""Queries of the ledger on the measured studies: runtime, convergence and the vector attribute."""

from __future__ import annotations

from functools import cache
from typing import Any

import pandas as pd

from frhsic_core.paper.claims.answers import Answer, Interval, query
from frhsic_core.paper.experiments.presets import experiment_for
from frhsic_core.paper.experiments.tables.measured import counted_exponent, loglog_exponent, seconds_table, speed_up
from frhsic_core.paper.runs.reference import stored_rows
from frhsic_core.paper.runs.study import Study

__all__ = ["measured"]

LOOPS = {"text": "loop, 32 anchors", "reference": "loop, all anchors"}
# The released code sums the product of both centred matrices under autograd.
PLAIN = ("frhsic", "plain, centred")
DEVICES = {"cuda": "GPU", "cpu": "CPU"}


@cache
def measured(study: str) -> pd.DataFrame:
    """Return the rows of a study."""
    return stored_rows(study)


def _missing(study: str, part: str) -> Answer | None:
    rows = measured(study)
    if rows.empty or not (rows["part"] == part).any():
        return Answer(why=f"not run yet (no stored rows of {study!r}, part {part!r})")
    return None


@query
def unit_setting(study: str, name: str, end: str, where: dict[str, Any] | None = None) -> Answer:
    """A setting of a study as planned: the smallest, the largest, the only or all of its values over the units."""
    chosen = experiment_for(study, "text")
    assert isinstance(chosen, Study)
    units = [dict(unit) for unit in chosen.units]
    found = {unit[name] for unit in units if name in unit and all(unit.get(k) == v for k, v in (where or {}).items())}
    values = tuple(sorted(found))
    if not values or (end == "only" and len(values) > 1):
        raise ValueError(f"{name} of {study} has the values {values} where {where}: not one.")
    return Answer({"any": {"min": values[0], "max": values[-1], "only": values[0], "all": values}[end]})


@query
def printed_slope(estimator: str) -> Answer:
    """Slope of the printed study, with the interval of one such study: its mean and spread over a thousand."""
    if open_one := _missing("convergence", "printed"):
        return open_one
    rows = measured("convergence")
    rows = rows[rows["part"] == "printed"]
    slopes, exact = rows[f"slope_{estimator}"], rows[f"slope_{estimator}_exact"]
    low, high = slopes.mean() - 2 * slopes.std(), slopes.mean() + 2 * slopes.std()
    target = "its smoothed limit" if estimator == "eipm" else "the exact HSIC"
    note = f"interval of one study among {len(rows)}; against {target} the mean slope is {exact.mean():.3f}"
    return Answer({"any": float(slopes.mean())}, {"any": (float(low), float(high))}, note=note)


def _ratios(form: str, *, part: str, at: dict[str, float]) -> dict[str, tuple[float, Interval]]:
    rows = measured("runtime")
    here = [device for device in DEVICES if ((rows["device"] == device) & (rows["part"] == part)).any()]
    return {device: speed_up(rows, ("frem", form), PLAIN, device=device, part=part, at=at) for device in here}


def _spanned(found: dict[str, tuple[float, Interval]]) -> tuple[float, Interval]:
    """The first device's ratio, and the range over devices and repeats: another machine may lie anywhere in it."""
    spans = [span for _, span in found.values()]
    return next(iter(found.values()))[0], (min(low for low, _ in spans), max(high for _, high in spans))


def _said(name: str, found: dict[str, tuple[float, Interval]]) -> str:
    return f"{name}: " + ", ".join(f"{value:.3g} on the {DEVICES[device]}" for device, (value, _) in found.items())


@query
def frem_speed_up(n: int) -> Answer:
    """Seconds of an epoch of FREM by those of FRHSIC, both plain: 32 anchors (text), every row an anchor (reference).

    The interval spans our devices.
    """
    if open_one := _missing("runtime", "epoch"):
        return open_one
    values, intervals = {}, {}
    for protocol, form in LOOPS.items():
        values[protocol], intervals[protocol] = _spanned(_ratios(form, part="epoch", at={"n": n}))
    said = [_said(f"FREM, {form}", _ratios(form, part="epoch", at={"n": n})) for form in LOOPS.values()]
    fast = {
        device: speed_up(measured("runtime"), ("frem", "library, all anchors"), ("frhsic", "library"),
                         device=device, part="epoch", at={"n": n})
        for device in _ratios(LOOPS["text"], part="epoch", at={"n": n})
    }  # fmt: skip
    said.append(_said("without the loop, every row an anchor, both in library form", fast))
    return Answer(values, intervals, note="; ".join(said))


@query
def dimension_speed_up(end: str) -> Answer:
    """The same ratio on Adult with 32 anchors over the dimensions of S: its smallest, largest or median value."""
    if open_one := _missing("runtime", "dimension"):
        return open_one
    dimensions = unit_setting("runtime", "d", "all", {"part": "dimension"}).values["any"]
    by_d = [_ratios(LOOPS["text"], part="dimension", at={"d": d}) for d in dimensions]
    picked: dict[str, tuple[float, Interval]] = {}
    for device in by_d[0]:
        ordered = sorted((found[device] for found in by_d), key=lambda pair: pair[0])
        picked[device] = ordered[{"min": 0, "max": -1, "median": len(ordered) // 2}[end]]
    value, interval = _spanned(picked)
    return Answer({"any": value}, {"any": interval}, note=_said("FREM, loop over 32 anchors", picked))


@query
def epoch_seconds(method: str, form: str, n: int) -> Answer:
    """Median seconds of an epoch on our devices; not comparable with another machine's."""
    if open_one := _missing("runtime", "epoch"):
        return open_one
    table = seconds_table(measured("runtime"))
    table = table[(table["method"] == method) & (table["form"] == form) & (table["n"] == n)]
    found = table[table["mode"] == "eager"].set_index("device")["median"]
    first = next(device for device in DEVICES if device in found)
    note = ", ".join(f"{found[device]:.3g} s on our {name}" for device, name in DEVICES.items() if device in found)
    return Answer({"any": float(found[first])}, why=f"it is a fact about the authors' machine; {note}")


@query
def cost_order(forms: list[str]) -> Answer:
    """Exponents of the operations counted, in n; a form followed by ``/anchors`` in the number of anchors."""
    if open_one := _missing("runtime", "operations"):
        return open_one
    rows = measured("runtime")
    values = []
    for form in forms:
        name, _, by = form.partition("/")
        values.append(counted_exponent(rows, name, by=by or "n"))
    trace = counted_exponent(rows, "hsic_trace")
    note = f"operations counted; as a product of four matrices HSIC has exponent {trace:.2f}" if "hsic" in forms else ""
    return Answer({"any": tuple(values)}, note=note or "operations counted, as a loop and as matrix products alike")


@query
def epoch_order(method: str, form: str) -> Answer:
    """Exponent in n of the seconds of an epoch of mini-batches, from the four largest n, on each device."""
    if open_one := _missing("runtime", "epoch"):
        return open_one
    table = seconds_table(measured("runtime"))
    table = table[(table["method"] == method) & (table["form"] == form) & (table["mode"] == "eager")]
    found = {}
    for device, part in table.groupby("device", sort=False):
        tail = part.sort_values("n").tail(4)
        found[device] = loglog_exponent(tail["n"].tolist(), tail["median"].tolist())
    first = next(device for device in DEVICES if device in found)
    note = f"seconds of an epoch at batch size 256: {_said('exponent in n', found)}"
    return Answer({"any": (found[first][0],)}, note=note)
