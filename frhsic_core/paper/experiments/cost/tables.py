"""Tables and queries of the cost: seconds and their ratios, exponents, limits of a GPU; torch is not needed."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd

from frhsic_core.paper.claims.answers import Answer, Interval, Spread, query, rows_of
from frhsic_core.paper.experiments.cost import DIMENSIONS
from frhsic_core.paper.experiments.cost.libraries import OURS

Case = tuple[str, str]  # method and form
#: The paper's error bars are mean ± this many standard deviations over repeats; so is the spread of ``seconds_table``.
BARS = 1.0
LOOPS = {"text": "loop, 32 anchors", "reference": "loop, all anchors"}
# The released code sums the product of both centred matrices under autograd.
PLAIN = ("frhsic", "plain, centred")
#: Names of forms in figures, where they are not the stored words.
FORM_NAMES = {"plain, centred": "plain, centered"}
DEVICES = {"cuda": "GPU", "cpu": "CPU"}
# In a second, by the data sheet: dense float16 products with tensor cores; 132 multiprocessors, each with 16 special
# function units at 1.98 GHz.
H200 = {"products": 989e12, "exponentials": 132 * 16 * 1.98e9}


def seconds_table(rows: pd.DataFrame, *, part: str = "epoch", by: str = "n") -> pd.DataFrame:
    """Return median, mean and sd of the timed repeats: one line per device, mode, method, form and size."""
    kept = rows[rows["part"] == part]
    names = [name for name in ("device", "mode", "method", "form", by) if kept[name].notna().all()]
    groups = kept.groupby(names, sort=False)["seconds"]
    table = groups.agg(["median", "mean", "std", "size"]).rename(columns={"std": "sd", "size": "repeats"})
    return table.reset_index()


def speed_up(
    rows: pd.DataFrame,
    top: Case,
    bottom: Case,
    *,
    at: Mapping[str, float],
    device: str,
    mode: str = "eager",
    part: str = "epoch",
) -> tuple[float, Interval]:
    """Return how many times longer ``top`` takes than ``bottom`` at a size: ratio of medians, and where one run lies.

    The range is that of a single epoch of each: mean ± 2 sd of the logarithm of the ratio over repeats.
    """
    times = []
    for method, form in (top, bottom):
        keep = (rows["part"] == part) & (rows["device"] == device) & (rows["mode"] == mode)
        keep &= (rows["method"] == method) & (rows["form"] == form)
        for name, value in at.items():
            keep &= rows[name] == value
        if not keep.any():
            raise ValueError(f"There are no times of {method} ({form}) on {device}, {mode}, at {at}.")
        times.append(rows.loc[keep, "seconds"])
    above, below = times
    logs = [np.log(one.to_numpy(float)) for one in times]
    middle = float(logs[0].mean() - logs[1].mean())
    reach = 2.0 * math.sqrt(sum(one.var(ddof=1) for one in logs))
    return float(above.median() / below.median()), (math.exp(middle - reach), math.exp(middle + reach))


def loglog_exponent(sizes: Sequence[float], values: Sequence[float]) -> tuple[float, Interval]:
    """Return the slope of log(value) on log(size) by least squares, with the 95 % interval of the residuals.

    Examples
    --------
    >>> slope, (low, high) = loglog_exponent([1, 2, 4, 8], [1, 4.1, 15.9, 64.3])
    >>> low < 2 < high, round(slope, 2)
    (True, 2.0)
    """
    from scipy import stats

    found = stats.linregress(np.log(sizes), np.log(values))
    reach = float(stats.t.isf(0.025, len(sizes) - 2)) * found.stderr
    return float(found.slope), (float(found.slope - reach), float(found.slope + reach))


def counted_exponent(rows: pd.DataFrame, form: str, *, by: str = "n") -> float:
    """Return the exponent of the counted operations over the last doubling of n (or of the anchors) up to 4,096.

    There the lower orders count least. Beyond, the library's HSIC goes through the matrix in blocks and uses its
    symmetry: fewer operations once, at the same order.
    """
    kept = rows[(rows["part"] == "operations") & (rows["form"] == form) & (rows["n"] <= 4096)]
    kept = kept[kept["anchors"].isna()] if by == "n" else kept[kept["anchors"].notna()]
    (a, x), (b, y) = kept.sort_values(by)[[by, "operations"]].to_numpy(float)[-2:]
    return math.log(y / x) / math.log(b / a)


def ratios(rows: pd.DataFrame, part: str, *, to: str = OURS) -> pd.DataFrame:
    """Return how many times as long each implementation takes as ``to``, in each unit of a part on one device.

    Examples
    --------
    >>> rows = pd.DataFrame({"part": "value", "unit": "u", "implementation": ["a", "b"], "seconds": [1.0, 3.0]})
    >>> ratios(rows, "value", to="a")["ratio"].tolist()
    [1.0, 3.0]
    """
    kept = rows[rows["part"] == part].reset_index(drop=True)
    base = kept[kept["implementation"] == to].set_index("unit")["seconds"]
    return kept.assign(ratio=kept["seconds"] / kept["unit"].map(base))


def smallest_seconds(n: int, *, precision: str) -> dict[str, float]:
    """Return the least seconds of HSIC of n rows of 50 columns on an H200, by what limits it; all pairs are counted.

    A pair needs two exponentials, and a product of 64 columns (to which the kernels pad 50), three times for
    ``"tf32x3"``. With symmetric tiles half of each would do.

    Examples
    --------
    >>> {name: round(seconds, 2) for name, seconds in smallest_seconds(1_000_000, precision="tf32x3").items()}
    {'products': 0.39, 'exponentials': 0.48}
    """
    pairs = float(n) ** 2
    products = 3 if precision == "tf32x3" else 1
    return {
        "products": pairs * 2.0 * 64.0 * products / H200["products"],
        "exponentials": pairs * 2.0 / H200["exponentials"],
    }


def _ratios(top: Case, bottom: Case, *, part: str, at: dict[str, float]) -> dict[str, tuple[float, Interval]]:
    rows = rows_of("cost", part)
    here = [device for device in DEVICES if (rows["device"] == device).any()]
    return {device: speed_up(rows, top, bottom, device=device, part=part, at=at) for device in here}


def _judged_on(found: dict[str, tuple[float, Interval]]) -> tuple[float, Interval]:
    """Return the ratio and its range on the device that the paper used, a GPU; without one, on the CPU.

    Devices are not put together: a range over both would hold values that neither shows.
    """
    return next(found[device] for device in DEVICES if device in found)


def _described(name: str, found: dict[str, tuple[float, Interval]]) -> str:
    shown = [f"{v:.3g} ({low:.3g} to {high:.3g}) on the {DEVICES[key]}" for key, (v, (low, high)) in found.items()]
    return f"{name}: {', '.join(shown)}"


def _spread(value: float, ends: Interval) -> Spread:
    # The error of our ratio is that of single epochs on this device: another device can have another ratio.
    return Spread(ends[0], value, ends[1])


@query
def frem_speed_up(n: int) -> Answer:
    """Return seconds of an epoch of FREM by those of FRHSIC, both plain: 32 anchors (text) or all (reference).

    The verdict is that of the GPU; the note has the CPU's.
    """
    values = {}
    spreads = {}
    notes = []
    for protocol, form in LOOPS.items():
        found = _ratios(("frem", form), PLAIN, part="epoch", at={"n": n})
        values[protocol], ends = _judged_on(found)
        spreads[protocol] = _spread(values[protocol], ends)
        notes.append(_described(f"FREM, {form}", found))
    fast = _ratios(("frem", "library, all anchors"), ("frhsic", "library"), part="epoch", at={"n": n})
    notes.append(_described("without the loop, every row an anchor, both in library form", fast))
    return Answer(values, spreads, spreads, note="; ".join(notes))


@query
def dimension_speed_up(end: str) -> Answer:
    """Return the same ratio on Adult with 32 anchors by dimension of S, on a GPU: smallest, largest or median."""
    by_d = [_ratios(("frem", LOOPS["text"]), PLAIN, part="dimension", at={"d": d}) for d in DIMENSIONS]
    picked: dict[str, tuple[float, Interval]] = {}
    for device in by_d[0]:
        ordered = sorted((found[device] for found in by_d), key=lambda pair: pair[0])
        picked[device] = ordered[{"min": 0, "max": -1, "median": len(ordered) // 2}[end]]
    value, ends = _judged_on(picked)
    both = {"any": _spread(value, ends)}
    return Answer({"any": value}, both, both, note=_described("FREM, loop over 32 anchors", picked))


@query
def cost_order(forms: list[str]) -> Answer:
    """Return the exponents of the operations counted, in n; with ``/anchors`` in the number of anchors."""
    rows = rows_of("cost", "operations")
    values = []
    for form in forms:
        name, _, by = form.partition("/")
        values.append(counted_exponent(rows, name, by=by or "n"))
    trace = counted_exponent(rows, "hsic_trace")
    note = f"operations counted; as a product of four matrices HSIC has exponent {trace:.2f}" if "hsic" in forms else ""
    return Answer({"any": tuple(values)}, note=note or "operations counted, as a loop and as matrix products alike")


@query
def epoch_order(method: str, form: str) -> Answer:
    """Return the exponent in n of the seconds of an epoch of mini-batches, from the four largest n, on each device."""
    table = seconds_table(rows_of("cost", "epoch"))
    table = table[(table["method"] == method) & (table["form"] == form) & (table["mode"] == "eager")]
    found = {}
    for device in (device for device in DEVICES if (table["device"] == device).any()):
        tail = table[table["device"] == device].sort_values("n").tail(4)
        found[device] = loglog_exponent(tail["n"].tolist(), tail["median"].tolist())
    first = next(device for device in DEVICES if device in found)
    note = f"seconds of an epoch at batch size 256: {_described('exponent in n', found)}"
    return Answer({"any": (found[first][0],)}, note=note)
