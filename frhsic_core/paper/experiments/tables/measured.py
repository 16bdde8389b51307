"""Tables of the measured studies: seconds and their ratios, exponents, slopes with bootstrap intervals; no torch."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd
from scipy import stats

__all__ = [
    "Case",
    "best_smoothing",
    "cost_exponents",
    "counted_exponent",
    "loglog_exponent",
    "mean_slope",
    "seconds_table",
    "slope_interval",
    "speed_up",
]

Case = tuple[str, str]  # method and form
Span = tuple[float, float]
#: Error bars of the runtime figure: mean ± so many standard deviations over repeats, as in the paper's.
BARS = 1.0


def seconds_table(rows: pd.DataFrame, *, part: str = "epoch", by: str = "n") -> pd.DataFrame:
    """Return median, quartiles, mean and sd of the timed repeats: one line per device, mode, method, form and size."""
    kept = rows[rows["part"] == part]
    names = [name for name in ("device", "mode", "method", "form", by) if kept[name].notna().all()]
    groups = kept.groupby(names, sort=False)["seconds"]
    table = groups.agg(["median", "mean", "std", "size"]).rename(columns={"std": "sd", "size": "repeats"})
    table["low"], table["high"] = groups.quantile(0.25), groups.quantile(0.75)
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
) -> tuple[float, Span]:
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
            raise ValueError(f"there are no times of {method} ({form}) on {device}, {mode}, at {at}.")
        times.append(rows.loc[keep, "seconds"])
    above, below = times
    logs = [np.log(one.to_numpy(float)) for one in times]
    middle = float(logs[0].mean() - logs[1].mean())
    reach = 2.0 * math.sqrt(sum(one.var(ddof=1) for one in logs))
    return float(above.median() / below.median()), (math.exp(middle - reach), math.exp(middle + reach))


def loglog_exponent(sizes: Sequence[float], values: Sequence[float], *, confidence: float = 0.95) -> tuple[float, Span]:
    """Slope of log(value) on log(size) by least squares, with the interval of the residuals.

    Examples
    --------
    >>> slope, (low, high) = loglog_exponent([1, 2, 4, 8], [1, 4.1, 15.9, 64.3])
    >>> low < 2 < high, round(slope, 2)
    (True, 2.0)
    """
    found = stats.linregress(np.log(sizes), np.log(values))
    reach = float(stats.t.isf((1.0 - confidence) / 2.0, len(sizes) - 2)) * found.stderr
    return float(found.slope), (float(found.slope - reach), float(found.slope + reach))


def counted_exponent(rows: pd.DataFrame, form: str, *, by: str = "n") -> float:
    """Exponent of the counted operations over the last doubling of n (or of the anchors) up to 4,096.

    There the lower orders count least. Beyond, the library's HSIC goes through the matrix in blocks and uses its
    symmetry: fewer operations once, at the same order.
    """
    kept = rows[(rows["part"] == "operations") & (rows["form"] == form) & (rows["n"] <= 4096)]
    kept = kept[kept["anchors"].isna()] if by == "n" else kept[kept["anchors"].notna()]
    (a, x), (b, y) = kept.sort_values(by)[[by, "operations"]].to_numpy(float)[-2:]
    return math.log(y / x) / math.log(b / a)


def cost_exponents(rows: pd.DataFrame, *, largest: int = 4) -> pd.DataFrame:
    """Return for each form of a full-batch evaluation the exponent of its operations and of its seconds by device.

    ``seconds`` is fitted over the ``largest`` sizes; ``last doubling`` is log₂ of the last two medians' ratio, where a
    device that was waiting for launches begins to compute.
    """
    lines = []
    times = seconds_table(rows, part="full_batch")
    for (device, form), part in times.groupby(["device", "form"], sort=False):
        tail = part.sort_values("n").tail(largest)
        slope, (low, high) = loglog_exponent(tail["n"].tolist(), tail["median"].tolist())
        lines.append(
            {
                "form": form,
                "device": device,
                "operations": counted_exponent(rows, str(form)),
                "seconds": slope,
                "low": low,
                "high": high,
                "last doubling": math.log2(tail["median"].iloc[-1] / tail["median"].iloc[-2]),
                "largest n": int(tail["n"].max()),
                "at the largest": float(tail["median"].iloc[-1]),
            }
        )
    return pd.DataFrame(lines)


def mean_slope(sizes: Sequence[float], errors: Sequence[np.ndarray]) -> float:
    """Slope of log(mean error) on log n by ordinary least squares, as the paper fits it."""
    return float(np.polyfit(np.log(sizes), np.log([np.mean(one) for one in errors]), 1)[0])


def slope_interval(
    sizes: Sequence[float], errors: Sequence[np.ndarray], *, draws: int = 2000, seed: int = 0
) -> tuple[float, Span]:
    """:func:`mean_slope` with its 95 % percentile bootstrap over replications, drawn anew at each n.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> sizes = [100, 1000, 10000]
    >>> slope, (low, high) = slope_interval(sizes, [np.abs(rng.normal(size=400)) / n**0.5 for n in sizes])
    >>> low < -0.5 < high
    True
    """
    rng = np.random.default_rng(seed)
    means = np.stack([one[rng.integers(len(one), size=(draws, len(one)))].mean(1) for one in map(np.asarray, errors)])
    drawn = np.polyfit(np.log(sizes), np.log(means), 1)[0]
    low, high = np.quantile(drawn, [0.025, 0.975])
    return mean_slope(sizes, errors), (float(low), float(high))


def best_smoothing(rows: pd.DataFrame, estimator: str) -> pd.DataFrame:
    """Return for each p and n the smoothing bandwidth with the least root mean squared error, among those tried.

    Nobody can choose it who does not know the truth: it flatters the estimator, on purpose.
    """
    kept = rows[(rows["estimator"] == estimator) & (rows["rho"] > 0) & (rows["rule"] != "silverman")].copy()
    kept["rmse"] = np.hypot(kept["mean"] - kept["truth"], kept["sd"])
    return kept.loc[kept.groupby(["p", "n"])["rmse"].idxmin()].reset_index(drop=True)
