"""How fast is exact HSIC: seconds and memory beside other libraries, and the limits of the device.

``frhsic bench`` measures the machine that it runs on. Each unit times all implementations of one computation in turns,
in one process, after one call of each to warm up, and stores medians, so that a ratio compares like with like. On the
CPU and from 1,000 samples, the first call of each runs in a process of its own, which measures its memory. A call of
more than five seconds is not repeated. The computations are:

- ``gradient``: HSIC and its gradient in Z, n × 50 in float32, against the trace of four matrices;
- ``value``: one statistic in float64, against hyppo, dcor, causal-learn and the trace, on the CPU;
- ``test``: the test of independence by permutations, against hyppo's;
- ``large``: HSIC of up to a million samples on a GPU at each precision, against KeOps;
- ``training``: a training step of 125 models, against the step without a penalty;
- ``limit``: what the device can do: products, exponentials, bytes.

Libraries that are not installed, or need more than half of the free memory, are left out. On the CPU everything runs
with one thread.
"""

from __future__ import annotations

import math
from contextlib import suppress
from functools import partial
from typing import Any

import pandas as pd

from frhsic_core.paper.experiments.how_fast.implementations import FORMS as FORMS
from frhsic_core.paper.experiments.how_fast.implementations import OURS, PARTS
from frhsic_core.paper.experiments.how_fast.implementations import TRACE as TRACE
from frhsic_core.paper.experiments.how_fast.timing import first_call_alone, first_call_of, one_thread, timed
from frhsic_core.paper.runs.plan import Settings, Study, units_of

MILLION = 1_000_000
# The matrices of fewer samples are too small to be seen in the memory of a process.
ALONE = 1_000


def plan_bench_cpu(preset: str) -> Study:
    """Return the units of one CPU thread."""
    if preset == "smoke":
        units = (
            *units_of(part="gradient", n=64), *units_of(part="value", n=100), *units_of(part="test", n=100),
            *units_of(part="training", models=1, d=4), *units_of(part="limit"),
        )  # fmt: skip
        return Study("bench_cpu_smoke", "bench_cpu", units)
    return Study("bench_cpu", "bench_cpu", (
        *units_of(part="limit"), *units_of(part="gradient", n=(256, 1_024)), *units_of(part="value", n=(2_000, 5_000)),
        *units_of(part="training", models=1, d=(4, 50)), *units_of(part="value", n=20_000),
        *units_of(part="test", n=5_000),
    ))  # fmt: skip


def plan_bench_gpu(preset: str) -> Study:
    """Return the units of a GPU."""
    if preset == "smoke":  # what a machine without a GPU can run of it
        return Study("bench_gpu_smoke", "bench_gpu", units_of(part="gradient", n=64))
    large: tuple[Settings, ...] = units_of(
        part="large", n=(10_000, 30_000, 100_000, 300_000, MILLION), precision=("tf32x3", "tf32")
    )
    return Study("bench_gpu", "bench_gpu", (
        *units_of(part="limit"), *units_of(part="gradient", n=(256, 2_000, 20_000)), *large,
        *units_of(part="large", n=(10_000, 30_000), precision="float64"),
        *units_of(part="test", n=(5_000, 100_000, MILLION)), *units_of(part="training", models=125, d=(4, 50)),
    ))  # fmt: skip


def measure_unit_bench_cpu(unit: dict[str, Any], device: str) -> list[dict[str, Any]]:
    """Measure a unit with one CPU thread, whatever the device."""
    with one_thread():
        return _measured(unit, "cpu")


def measure_unit_bench_gpu(unit: dict[str, Any], device: str) -> list[dict[str, Any]]:
    """Measure a unit on a GPU."""
    if not device.startswith("cuda") and unit["n"] > 1_000:
        raise ValueError(f"device is {device!r}, but this experiment times a GPU. Without one, run bench_cpu.")
    return _measured(unit, device)


def _measured(unit: dict[str, Any], device: str) -> list[dict[str, Any]]:
    part = PARTS[unit["part"]]
    if "n" in unit:  # imports and compilers belong to no measurement
        for call in part({**unit, "n": 64}, device)[0].values():
            with suppress(Exception):
                call()
    calls, facts = part(unit, device)
    alone = device == "cpu" and unit.get("n", 0) >= ALONE
    first_call = partial(first_call_alone, unit) if alone else lambda name: first_call_of(calls[name], device)
    rows = [{**facts, **row} for row in timed(calls, device, first_call)]
    if device == "cpu" and not alone:  # a process that has computed before says nothing about memory
        rows = [{**row, "mebibytes": math.nan} for row in rows]
    import torch

    threads = torch.get_num_threads() if device == "cpu" else 0
    return [{**row, "threads": threads} for row in rows]


def ratios(rows: pd.DataFrame, part: str, *, to: str = OURS) -> pd.DataFrame:
    """Return how many times as long each implementation takes as ``to``, for each n of a part.

    Examples
    --------
    >>> rows = pd.DataFrame({"part": "value", "n": 10, "implementation": ["a", "b"], "seconds": [1.0, 3.0]})
    >>> ratios(rows, "value", to="a")["ratio"].tolist()
    [1.0, 3.0]
    """
    kept = rows[rows["part"] == part].copy()
    keys = [name for name in ("n", "models", "d", "precision") if name in kept and kept[name].notna().any()]
    base = kept[kept["implementation"] == to].set_index(keys)["seconds"]
    kept["ratio"] = [
        row["seconds"] / base.loc[tuple(row[key] for key in keys) if len(keys) > 1 else row[keys[0]]]
        for _, row in kept.iterrows()
    ]
    return kept.reset_index(drop=True)


def rates(rows: pd.DataFrame) -> dict[str, float]:
    """Return what the device does in a second: operations of products, exponentials, bytes copied."""
    limit = rows[rows["part"] == "limit"].set_index("implementation")
    size = float(limit["size"].iloc[0])
    work = {
        name: 2.0 * size**3 if name.startswith("product") else size**2 * (8.0 if name == "copy" else 1.0)
        for name in limit.index
    }
    for name in ("product float64", "exponential float64"):
        work[name] /= 16.0 if name.startswith("product") else 4.0
    return {name: work[name] / limit.loc[name, "seconds"] for name in limit.index}


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


# In a second, by the data sheet: dense float16 products with tensor cores; 132 multiprocessors, each with 16 special
# function units at 1.98 GHz.
H200 = {"products": 989e12, "exponentials": 132 * 16 * 1.98e9}
