"""Measure what FRHSIC costs: epochs beside FREM's, operations, and exact HSIC of up to a million samples.

Units of part

- ``epoch``: timed epochs on the paper's synthetic law, against n (Section 6.5, ``fig:runtime``);
- ``dimension``: timed epochs on Adult, S made of d columns (``fig:highdim``);
- ``operations``: operations of one evaluation of HSIC or EIPM on n rows, counted;
- ``large``: HSIC of up to a million samples with 50 columns on a GPU.

Each method of an epoch is timed in its plain form and in the library's. ``frhsic run cost_cpu`` measures one CPU
thread, ``frhsic run cost_gpu`` a GPU, both into one table; ``--store FOLDER`` measures another machine than the one of
the stored results. Other libraries are in :mod:`~frhsic_core.paper.experiments.peers`.
"""

from __future__ import annotations

import math
import statistics
import time
import warnings
from collections.abc import Mapping
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from frhsic_core.paper.claims.answers import Answer, Interval, Spread, query, rows_of
from frhsic_core.paper.runs.plan import Experiment, Unit, units_of

if TYPE_CHECKING:
    from frhsic_core.data._recipes import Dataset
    from frhsic_core.learning.penalties import Penalty

SIZES = (500, 1_000, 2_000, 5_000, 10_000, 20_000)
DIMENSIONS = (1, 2, 3, 4, 5)
COUNTED_SIZES = (1_024, 2_048, 4_096)
COUNTED = ("hsic", "eipm_loop", "eipm_product", "eipm_loop_32", "eipm_product_32")
LARGE = (10_000, 30_000, 100_000, 300_000, 1_000_000)
BATCH = 256
EPOCHS = 5
# Epochs of the loops would take seconds: at most this many of their steps are timed and scaled to the epoch.
LOOP_STEPS = {"loop, all anchors": 8, "loop, 32 anchors": 20}
# A step that runs eagerly first is captured at the second call and replayed from the third.
WARM_UP = {False: 1, True: 3}
LAM = {"epoch": 1.0, "dimension": 10.0}
# The appendix (``sec:highdim_S``) fixes these for the comparison of dimensions.
SIGMA_S = 1.0
SMOOTHING = 0.5
ADULT_ROWS = 2_000
# As the paper names them; the released code takes others by position.
ATTRIBUTES = ("age", "capital-gain", "capital-loss", "hours-per-week")
# Method, form: plain forms are written as one would first write them, the others are the library's.
CASES = (
    ("unfair", "library"),
    ("frhsic", "plain, centred"),
    ("frhsic", "library"),
    ("frhsic", "library, bandwidth of every batch"),
    ("frem", "loop, all anchors"),
    ("frem", "loop, 32 anchors"),
    ("frem", "library, all anchors"),
    ("frem", "library, 32 anchors"),
    ("reg_gdp", "library"),
)
Case = tuple[str, str]
#: The paper's error bars are mean ± this many standard deviations over repeats.
BARS = 1.0
LOOPS = {"text": "loop, 32 anchors", "reference": "loop, all anchors"}
# The released code sums the product of both centered matrices under autograd.
PLAIN = ("frhsic", "plain, centred")
DEVICES = {"cuda": "GPU", "cpu": "CPU"}


def plan_cost_cpu() -> Experiment:
    """Return the units of one CPU thread and the counts."""
    # Operations are counted for each form against n, and for the loop against the number of anchors.
    counts = units_of("cost", part="operations", form=COUNTED, n=COUNTED_SIZES)
    anchors = units_of(
        "cost", part="operations", form="eipm_loop_32", n=4_096, anchors=COUNTED_SIZES
    )
    return Experiment("cost", counts + anchors + _epochs("cpu", "eager"))


def plan_cost_gpu() -> Experiment:
    """Return the units of a GPU, which has epochs both eager and captured; they belong to the same table."""
    large = units_of("cost", part="large", device="cuda", n=LARGE, precision="tf32x3")
    return Experiment("cost", _epochs("cuda", "eager") + _epochs("cuda", "captured") + large)


def _epochs(device: str, mode: str) -> tuple[Unit, ...]:
    """Return the units that time epochs; a CUDA graph cannot hold the loops, which copy from the host."""
    cases = [case for case in CASES if mode == "eager" or case[1] not in LOOP_STEPS]
    few = [case for case in cases if case[0] != "reg_gdp" and case[1] != "loop, all anchors"]
    units: tuple[Unit, ...] = ()
    for part, timed, sizes in (
        ("epoch", cases, {"n": SIZES}),
        ("dimension", few, {"n": ADULT_ROWS, "d": DIMENSIONS}),
    ):
        for method, form in timed:
            units += units_of(
                "cost", part=part, device=device, mode=mode, method=method, form=form, **sizes
            )
    return units


def measure_unit(unit: dict[str, Any], device: str) -> list[dict[str, Any]]:
    """Measure a unit on its own device; ``device`` names the CUDA device."""
    from frhsic_core.learning.stack import cpu_threads

    if unit["part"] == "operations":
        from frhsic_core.paper.experiments.cost.plain_forms import count_operations

        operations = count_operations(unit["form"], unit["n"], anchors=unit.get("anchors"))
        return [{"repeat": 0, "operations": operations}]
    measured = _measure_large if unit["part"] == "large" else _measure_epochs
    if unit["device"] == "cuda":
        if not device.startswith("cuda"):
            raise ValueError(
                f"This unit is timed on CUDA, but the device is {device}. Without a GPU, run cost_cpu."
            )
        return measured(unit, device)
    with cpu_threads(1):
        return measured(unit, "cpu")


def _clock(device: str) -> float:
    """Return the time when the device has finished what it was given."""
    if device.startswith("cuda"):
        import torch

        torch.cuda.synchronize()
    return time.perf_counter()


def _measure_epochs(unit: dict[str, Any], device: str) -> list[dict[str, Any]]:
    """Return the seconds of each epoch after the warm-up, waiting for the device at both ends."""
    from frhsic_core.data import load_dataset
    from frhsic_core.learning import Trainer, TrainingData
    from frhsic_core.paper.datasets import tensors_of

    n: int = unit["n"]
    if unit["part"] == "epoch":
        data = load_dataset("synthetic", n=min(n, LOOP_STEPS.get(unit["form"], n) * BATCH))
        penalty = penalty_of(unit["method"], unit["form"])
    else:
        data = attributes(unit["d"], n=n)
        penalty = penalty_of(unit["method"], unit["form"], sigma_s=SIGMA_S)
    x, s, y = tensors_of(data)
    x, s = ((v - v.amin(0)) / (v.amax(0) - v.amin(0)).clamp_min(1e-12) for v in (x, s))
    captured = unit["mode"] == "captured"
    first = WARM_UP[captured]
    stamps: list[float] = []
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        Trainer(
            TrainingData.from_arrays(x, y, s, task=data.task), penalty=penalty, lam=LAM[unit["part"]], seeds=42,
            protocol="text", batch_size=BATCH, epochs=first + EPOCHS, device=device, capture=captured,
        ).fit(callback=lambda progress: stamps.append(_clock(device)))  # fmt: skip
    if any("could not be captured" in str(w.message) for w in caught):
        raise RuntimeError(
            "The step could not be captured, so that this case has no captured time."
        )
    steps = -(-data.n // BATCH)
    whole = -(-n // BATCH)
    return [
        {
            "repeat": i,
            "seconds": float(f"{(end - begin) * whole / steps:.6g}"),
            "steps": steps,
            "epoch_steps": whole,
        }
        for i, (begin, end) in enumerate(pairwise(stamps[first - 1 :]))
    ]


def _measure_large(unit: dict[str, Any], device: str) -> list[dict[str, Any]]:
    """Return seconds and memory of HSIC and of HSIC with its gradient, by the fused kernels on a GPU."""
    import torch

    from frhsic_core.joint import hsic
    from frhsic_core.kernels import Gaussian

    generator = torch.Generator().manual_seed(unit["n"])
    z = torch.randn(unit["n"], 50, generator=generator)
    s = (z[:, :1] + torch.randn(unit["n"], 1, generator=generator)).to(device)
    z = z.to(device)
    rows = []
    for name, gradient in (("frhsic_core", False), ("frhsic_core, with gradient", True)):
        x = z.clone().requires_grad_(gradient)

        def call(x: torch.Tensor = x) -> float:
            value = hsic(x, s, kernel_z=Gaussian(10.0), kernel_s=Gaussian(1.5))
            if x.requires_grad:
                (x.grad,) = torch.autograd.grad(value, x)
            return float(value.detach())

        call()  # compiles
        if device.startswith("cuda"):
            torch.cuda.reset_peak_memory_stats()
        before = torch.cuda.memory_allocated() if device.startswith("cuda") else 0
        times = []
        for _ in range(5):
            begin = _clock(device)
            value = call()
            times.append(_clock(device) - begin)
        memory = (
            (torch.cuda.max_memory_allocated() - before) / 2**20
            if device.startswith("cuda")
            else math.nan
        )
        found = {"seconds": statistics.median(times), "mebibytes": memory, "value": value}
        rows.append(
            {
                "implementation": name,
                **{key: float(f"{number:.5g}") for key, number in found.items()},
            }
        )
    return rows


def penalty_of(method: str, form: str, *, sigma_s: float | str = "median") -> Penalty:
    """Return the penalty of a case; σ_Z = 1 where it is fixed, γ = 0.5."""
    from frhsic_core.learning import make_penalty
    from frhsic_core.learning.penalties import FREM, FRHSIC
    from frhsic_core.paper.experiments.cost.plain_forms import LoopFREM, PlainFRHSIC

    if method == "frem":
        anchors = None if form.endswith("all anchors") else 32
        if form.startswith("loop"):
            return LoopFREM(anchors=anchors, smoothing=SMOOTHING)
        return FREM(anchors=anchors, smoothing=SMOOTHING)
    if method == "frhsic":
        if form.startswith("plain"):
            return PlainFRHSIC(bandwidth_s=None if isinstance(sigma_s, str) else sigma_s)
        policy: float | str = "every_batch" if form.endswith("every batch") else 1.0
        return FRHSIC(
            estimator="biased",
            on="representation",
            scale=None,
            bandwidth=policy,
            bandwidth_s=sigma_s,
        )
    return make_penalty(method, protocol="text")


def attributes(d: int, *, n: int | None = ADULT_ROWS) -> Dataset:
    """Return Adult with S made of the first d of ``ATTRIBUTES`` and a Gaussian column, independent of everything."""
    from dataclasses import replace

    from frhsic_core.data import load_dataset

    names = ATTRIBUTES[:d]
    data = load_dataset("adult", n=n, sensitive=names)
    if d <= len(names):
        return data
    column = np.random.default_rng(0).standard_normal((data.n, 1))
    s = np.concatenate([data.s.reshape(data.n, -1), column], axis=1)
    return replace(data, s=s, sensitive_names=(*data.sensitive_names, "gaussian"))


# Tables and queries --------------------------------------------------------------------------------------------------


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
    where = {"part": part, "device": device, "mode": mode, **at}
    kept = rows[np.logical_and.reduce([rows[name] == value for name, value in where.items()])]
    times = []
    for method, form in (top, bottom):
        found = kept.loc[(kept["method"] == method) & (kept["form"] == form), "seconds"].astype(
            float
        )
        if found.empty:
            raise ValueError(
                f"There are no times of {method} ({form}) on {device}, {mode}, at {at}."
            )
        times.append(found)
    logs = [np.log(one) for one in times]
    middle = logs[0].mean() - logs[1].mean()
    reach = 2.0 * math.sqrt(sum(one.var() for one in logs))
    ratio = times[0].median() / times[1].median()
    return float(ratio), (math.exp(middle - reach), math.exp(middle + reach))


def epoch_exponent(
    rows: pd.DataFrame, case: Case, *, device: str, mode: str = "eager"
) -> tuple[float, Interval]:
    """Return the exponent in n of the median seconds of an epoch, over all sizes in ``rows``, and its 95 % interval.

    It is the slope of log(seconds) on log(n) by least squares, with the interval of the residuals.
    """
    from scipy import stats

    kept = rows[(rows["part"] == "epoch") & (rows["device"] == device) & (rows["mode"] == mode)]
    kept = kept[(kept["method"] == case[0]) & (kept["form"] == case[1])]
    medians = kept.groupby("n")["seconds"].median()
    found = stats.linregress(np.log(medians.index.to_numpy(float)), np.log(medians))
    reach = float(stats.t.isf(0.025, len(medians) - 2)) * found.stderr
    return float(found.slope), (float(found.slope - reach), float(found.slope + reach))


def counted_exponent(rows: pd.DataFrame, form: str, *, by: str = "n") -> float:
    """Return the exponent of the counted operations over the last doubling of n (or of the anchors)."""
    kept = rows[(rows["part"] == "operations") & (rows["form"] == form)]
    kept = kept[kept["anchors"].isna() == (by == "n")]
    (a, x), (b, y) = kept.sort_values(by)[[by, "operations"]].to_numpy(float)[-2:]
    return math.log(y / x) / math.log(b / a)


def _ratios(
    top: Case, bottom: Case, *, part: str, at: dict[str, float]
) -> dict[str, tuple[float, Interval]]:
    rows = rows_of("cost", part)
    here = [device for device in DEVICES if (rows["device"] == device).any()]
    return {device: speed_up(rows, top, bottom, device=device, part=part, at=at) for device in here}


def _judged(found: dict[str, tuple[float, Interval]]) -> Spread:
    """Return the ratio and its range on the device that the paper used, a GPU; without one, on the CPU.

    Devices are not put together: a range over both would hold values that neither shows. The error of our ratio is that
    of single epochs on this device: another device can have another ratio.
    """
    value, (low, high) = next(found[device] for device in DEVICES if device in found)
    return Spread(low, value, high)


def _described(name: str, found: dict[str, tuple[float, Interval]]) -> str:
    shown = [
        f"{v:.3g} ({low:.3g} to {high:.3g}) on the {DEVICES[key]}"
        for key, (v, (low, high)) in found.items()
    ]
    return f"{name}: {', '.join(shown)}"


@query
def frem_speed_up(n: int) -> Answer:
    """Return seconds of an epoch of FREM by those of FRHSIC, both plain: 32 anchors (text) or all (reference).

    The verdict is that of the GPU; the note has the CPU's.
    """
    found = {
        key: _ratios(("frem", form), PLAIN, part="epoch", at={"n": n})
        for key, form in LOOPS.items()
    }
    notes = [_described(f"FREM, {LOOPS[key]}", ratios) for key, ratios in found.items()]
    fast = _ratios(
        ("frem", "library, all anchors"), ("frhsic", "library"), part="epoch", at={"n": n}
    )
    notes.append(_described("without the loop, every row an anchor, both in library form", fast))
    spreads = {key: _judged(ratios) for key, ratios in found.items()}
    return Answer(
        {key: spread.middle for key, spread in spreads.items()},
        spreads,
        spreads,
        note="; ".join(notes),
    )


@query
def dimension_speed_up(end: str) -> Answer:
    """Return the same ratio on Adult with 32 anchors by dimension of S, on a GPU: smallest, largest or median."""
    by_d = [
        _ratios(("frem", LOOPS["text"]), PLAIN, part="dimension", at={"d": d}) for d in DIMENSIONS
    ]
    place = {"min": 0, "median": len(by_d) // 2, "max": -1}[end]
    picked = {device: sorted(found[device] for found in by_d)[place] for device in by_d[0]}
    both = {"any": _judged(picked)}
    return Answer(
        {"any": both["any"].middle},
        both,
        both,
        note=_described("FREM, loop over 32 anchors", picked),
    )


@query
def cost_order(forms: list[str]) -> Answer:
    """Return the exponents of the operations counted, in n; with ``/anchors`` in the number of anchors."""
    rows = rows_of("cost", "operations")
    parts = [form.partition("/") for form in forms]
    values = tuple(counted_exponent(rows, name, by=by or "n") for name, _, by in parts)
    return Answer({"any": values}, note="operations of matrix products counted")


@query
def epoch_order(method: str, form: str) -> Answer:
    """Return the exponent in n of the seconds of an epoch of mini-batches, from the four largest n, on each device.

    An order is about large n: at the smallest n the fixed cost of an epoch counts as well.
    """
    rows = rows_of("cost", "epoch")
    rows = rows[rows["n"].isin(SIZES[-4:])]
    here = [device for device in DEVICES if (rows["device"] == device).any()]
    found = {device: epoch_exponent(rows, (method, form), device=device) for device in here}
    note = f"seconds of an epoch at batch size 256: {_described('exponent in n', found)}"
    return Answer({"any": (found[here[0]][0],)}, note=note)
