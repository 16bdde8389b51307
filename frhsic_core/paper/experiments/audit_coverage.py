"""Measure whether the audit of predictions keeps its promises on distributions with known answers.

Each unit draws samples of one law and counts how often the band of the curve contains the whole true curve, and how
often the interval of GDP contains the true GDP (``kind="curve"``), or how often a test rejects a true hypothesis
(``kind="test"`` and ``kind="given"``). The laws include tied and heavy-tailed attributes, scores and hard labels.

``frhsic run audit_coverage`` measures what is missing and resumes; ``python -m
frhsic_core.paper.experiments.audit_coverage FOLDER`` does the same without the command-line extras.
"""

from __future__ import annotations

import sys
import zlib
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from frhsic_core.paper.runs.plan import Study, units_of

if TYPE_CHECKING:
    from frhsic_core.audit.curve import Array

LEVEL = 0.95
ALPHA = 0.05
LAWS = ("ages", "five values", "Cauchy", "normal", "log-normal")
SHAPES = ("flat", "weak", "slope", "wave")
SIZES = (200, 2000, 20_000)
DRAWS = 200
ERROR_DRAWS = 500  # draws of the error process inside one fit; the audit uses more
_TRUTH = 400_000


def plan(preset: str) -> Study:
    """Return one unit for each kind, law, shape and size; ``smoke`` has few draws of small samples."""
    name = "audit_coverage"
    if preset == "smoke":
        units = units_of(kind="curve", law=("ages", "Cauchy"), shape="slope", score="probability", n=200, draws=4)
        units += units_of(kind=("test", "given"), law="ages", shape="flat", score="probability", n=60, draws=2)
        return Study(f"{name}_smoke", name, units)
    common = {"draws": DRAWS}
    units = units_of(kind="curve", law=LAWS, shape=SHAPES, score="probability", n=SIZES, **common)
    units += units_of(kind="curve", law=("ages", "Cauchy"), shape=("flat", "slope"), score="hard", n=SIZES, **common)
    for kind in ("test", "given"):
        units += units_of(kind=kind, law=("ages", "Cauchy"), shape="flat", score="probability", n=SIZES, **common)
    return Study(name, name, units)


def attribute(law: str, n: int, generator: np.random.Generator) -> Array:
    """Return a sample of S."""
    normal = generator.standard_normal(n)
    if law == "ages":
        return np.round(40.0 + 15.0 * normal)
    if law == "five values":
        return np.clip(np.round(1.2 * normal), -2.0, 2.0)
    if law == "Cauchy":
        return normal / generator.standard_normal(n)
    return np.exp(1.2 * normal) if law == "log-normal" else normal


def conditional_mean(law: str, shape: str, s: Array) -> Array:
    """Return E[score | S = s]."""
    x = {"ages": (s - 40.0) / 15.0, "Cauchy": s / 2.0, "log-normal": np.log(s) / 1.2 if law == "log-normal" else s}
    t = 2.5 * np.tanh(x.get(law, s) / 2.5)
    height = {
        "flat": np.zeros_like(t),
        "weak": 0.02 * np.tanh(t),
        "slope": 0.2 * np.tanh(t / 2.0),
        "wave": 0.1 * np.sin(2 * t),
    }
    return 0.4 + height[shape]


@cache
def true_gdp(law: str, shape: str) -> float:
    """Return E|E[f | S] − E f| by averaging over equally likely values of S."""
    from scipy import stats

    at = (np.arange(_TRUTH) + 0.5) / _TRUTH
    normal = stats.norm.ppf(at)
    values = {
        "ages": np.round(40.0 + 15.0 * normal),
        "five values": np.clip(np.round(1.2 * normal), -2.0, 2.0),
        "Cauchy": stats.cauchy.ppf(at),
        "log-normal": np.exp(1.2 * normal),
    }.get(law, normal)
    mean = conditional_mean(law, shape, values)
    return float(np.abs(mean - mean.mean()).mean())


def sample(unit: dict[str, Any], draw: int) -> tuple[Array, Array]:
    """Return the scores and the attribute of one draw."""
    seed = zlib.crc32(f"{unit['law']} {unit['shape']} {unit['score']} {unit['n']}".encode())
    generator = np.random.default_rng([seed, draw])
    s = attribute(unit["law"], unit["n"], generator)
    p = conditional_mean(unit["law"], unit["shape"], s)
    if unit["score"] == "hard":
        return (generator.random(len(s)) < p).astype(np.float64), s
    return generator.beta(4.0 * p, 4.0 * (1.0 - p)), s


def measure_unit(unit: dict[str, Any], device: str) -> list[dict[str, Any]]:
    """Return how many of the draws kept their promise."""
    if unit["kind"] == "curve":
        return [_coverage(unit)]
    return [{"rejected": sum(_rejects(unit, draw) for draw in range(unit["draws"]))}]


def _coverage(unit: dict[str, Any]) -> dict[str, Any]:
    from frhsic_core.audit.curve import cut, fit_curve

    truth = true_gdp(unit["law"], unit["shape"])
    found = {"band": 0, "interval": 0, "above": 0, "below": 0}
    widths = []
    for draw in range(unit["draws"]):
        f, s = sample(unit, draw)
        curve = fit_curve(f, cut(s), level=LEVEL, draws=ERROR_DRAWS, seed=draw)
        mean = conditional_mean(unit["law"], unit["shape"], curve.s)
        found["band"] += bool(((curve.low <= mean) & (mean <= curve.high))[curve.inside].all())
        found["above"] += curve.gdp_low > truth + 1e-12
        found["below"] += curve.gdp_high < truth
        widths.append(curve.gdp_high - curve.gdp_low)
    found["interval"] = unit["draws"] - found["above"] - found["below"]
    return found | {"truth": truth, "width": float(np.mean(widths))}


def _rejects(unit: dict[str, Any], draw: int) -> bool:
    """Return whether a test rejects; for ``given`` scores and S depend on a third column only."""
    from frhsic_core.audit.measures import conditional_test, independence_test

    f, s = sample(unit, draw)
    if unit["kind"] == "test":
        found = independence_test(f[:, None], s[:, None], seed=draw)
    else:
        generator = np.random.default_rng([7, draw])
        control = np.tanh((s - np.median(s)) / 20.0) + 0.5 * generator.standard_normal(len(s))
        f = np.clip(f + 0.1 * control, 0.0, 1.0)
        found = conditional_test(f[:, None], s[:, None], control[:, None], seed=draw)
    return found.pvalue <= ALPHA * (1 + 1e-12)


def exact_interval(count: int, draws: int, *, confidence: float = 0.95) -> tuple[float, float]:
    """Return the exact (Clopper–Pearson) interval of a share.

    Examples
    --------
    >>> low, high = exact_interval(190, 200)
    >>> round(low, 3), round(high, 3)
    (0.91, 0.976)
    """
    from scipy.stats import beta

    tail = 0.5 * (1.0 - confidence)
    low = 0.0 if count == 0 else float(beta.ppf(tail, count, draws - count + 1))
    high = 1.0 if count == draws else float(beta.ppf(1.0 - tail, count + 1, draws - count))
    return low, high


def coverage(rows: pd.DataFrame) -> pd.DataFrame:
    """Return the share of draws in which band and interval cover, with exact intervals, a row for each law."""
    lines = []
    for row in rows[rows["kind"] == "curve"].itertuples():
        band = exact_interval(int(row.band), row.draws)
        gdp = exact_interval(int(row.interval), row.draws)
        lines.append((row.law, row.shape, row.score, row.n, row.band / row.draws, *band,
                      row.interval / row.draws, *gdp, row.width))  # fmt: skip
    names = ["law", "shape", "score", "n", "band", "band_low", "band_high", "interval", "interval_low",
             "interval_high", "width"]  # fmt: skip
    return pd.DataFrame(lines, columns=names).sort_values(["score", "law", "shape", "n"], ignore_index=True)


def levels(rows: pd.DataFrame) -> pd.DataFrame:
    """Return the share of rejected draws under a true hypothesis, with exact intervals."""
    lines = []
    for row in rows[rows["kind"] != "curve"].itertuples():
        low, high = exact_interval(int(row.rejected), row.draws)
        lines.append((row.kind, row.law, row.n, row.rejected / row.draws, low, high))
    return pd.DataFrame(lines, columns=["test", "law", "n", "level", "low", "high"])


def main(arguments: list[str]) -> int:
    """Run the study with the packages of the library alone, and print its tables."""
    import argparse

    from frhsic_core.paper.runs.runner import run_experiment
    from frhsic_core.paper.runs.store import ResultStore

    parser = argparse.ArgumentParser(description="Measure the coverage of the audit of predictions.")
    parser.add_argument("folder", type=Path, help="folder of the results")
    parser.add_argument("--preset", default="full", help="smoke or full")
    given = parser.parse_args(arguments)
    study = plan(given.preset)
    store = ResultStore(given.folder, study.name)
    report = run_experiment(study, store, device="cpu", threads=1, say=print)
    store.compact(study)
    print(coverage(store.read()).round(3).to_string())
    print(levels(store.read()).round(3).to_string())
    return report.exit_status


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
