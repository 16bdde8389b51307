"""Timing implementations in turns: all agree on the value, one that fails is left out, memory is that of the call."""

from __future__ import annotations

import math
from typing import Any

import pandas as pd
import pytest
import torch

from frhsic_core.paper.experiments.how_fast import (
    OURS,
    TRACE,
    implementations,
    measure_unit_bench_cpu,
    measure_unit_bench_gpu,
    rates,
    smallest_seconds,
    timing,
)


def test_implementations_agree_and_are_timed() -> None:
    rows = {row["implementation"]: row for row in measure_unit_bench_cpu({"part": "gradient", "n": 128}, "cpu")}
    assert rows[OURS]["value"] == pytest.approx(rows[TRACE]["value"], rel=1e-3)
    assert all(math.isnan(row["mebibytes"]) for row in rows.values())
    assert all(row["seconds"] > 0 and 1 <= row["repeats"] <= 15 and row["threads"] == 1 for row in rows.values())


def test_the_gradient_of_the_trace_is_that_of_the_library() -> None:
    z, s = implementations._sample(100, "cpu", "float64")
    gradients = []
    for function in (implementations._ours, implementations._trace):
        at = z.clone().requires_grad_()
        gradients += torch.autograd.grad(function(at, s), at)
    torch.testing.assert_close(*gradients, rtol=1e-9, atol=1e-14)


def test_another_library_that_fails_is_left_out() -> None:
    def broken() -> None:
        raise RuntimeError("no compiler")

    def timed(calls: implementations.Calls) -> list[dict[str, Any]]:
        return timing.timed(calls, "cpu", lambda name: timing.first_call_of(calls[name], "cpu"), rounds=2)

    with pytest.warns(UserWarning, match="KeOps is left out"):
        rows = timed({OURS: lambda: 1.0, "KeOps": broken})
    assert [row["implementation"] for row in rows] == [OURS]
    with pytest.raises(RuntimeError, match="no compiler"):
        timed({OURS: broken})


def test_memory_does_not_depend_on_what_ran_before() -> None:
    used = torch.ones(2**24)  # 64 MiB: most allocators keep them when they are freed
    del used
    rows = {row["implementation"]: row for row in measure_unit_bench_cpu({"part": "gradient", "n": 1_024}, "cpu")}
    matrix = 1_024**2 * 4 / 2**20
    # K, H, L and the three products of the trace exist at once, and the gradient needs some more.
    assert 6 * matrix <= rows[TRACE]["mebibytes"] <= 24 * matrix


def test_what_fails_in_its_own_process_says_why() -> None:
    with pytest.raises(RuntimeError, match="KeyError: 'KeOps'"):
        timing.first_call_alone({"part": "gradient", "n": 64}, "KeOps")


def test_a_gpu_study_needs_a_gpu() -> None:
    with pytest.raises(ValueError, match="device is 'cpu'"):
        measure_unit_bench_gpu({"part": "gradient", "n": 20_000}, "cpu")


def test_rates_and_limits() -> None:
    rows = measure_unit_bench_cpu({"part": "limit"}, "cpu")
    found = rates(pd.DataFrame([{"part": "limit", **row} for row in rows]))
    seconds = {row["implementation"]: row["seconds"] for row in rows}
    assert found["product float32"] == pytest.approx(2 * 1024**3 / seconds["product float32"])
    assert found["product float64"] == pytest.approx(2 * 1024**3 / 16 / seconds["product float64"])
    assert found["copy"] == pytest.approx(8 * 1024**2 / seconds["copy"])
    once = smallest_seconds(1000, precision="tf32")
    thrice = smallest_seconds(2000, precision="tf32x3")
    assert thrice["products"] == pytest.approx(12 * once["products"])
    assert thrice["exponentials"] == pytest.approx(4 * once["exponentials"])
