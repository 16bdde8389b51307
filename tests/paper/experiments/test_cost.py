"""The cost: plain and library forms are the same numbers, operations are counted right, calls are timed in turns."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch

from frhsic_core.conditional import eipm
from frhsic_core.joint.hsic import hsic
from frhsic_core.kernels import Gaussian
from frhsic_core.learning import FREM, FRHSIC, Trainer
from frhsic_core.paper.experiments import cost
from frhsic_core.paper.experiments.cost import libraries
from frhsic_core.paper.experiments.cost.libraries import OURS, TRACE
from frhsic_core.paper.experiments.cost.plain_forms import (
    LoopFREM,
    OperationCount,
    TraceFRHSIC,
    count_operations,
    loop_eipm,
    plain_gram,
    trace_hsic,
)
from frhsic_core.paper.experiments.cost.tables import (
    counted_exponent,
    loglog_exponent,
    ratios,
    seconds_table,
    smallest_seconds,
    speed_up,
)
from frhsic_core.paper.runs.runner import run_experiment
from frhsic_core.paper.runs.store import ResultStore


def sample(n: int = 40, d: int = 3) -> tuple[torch.Tensor, torch.Tensor]:
    generator = torch.Generator().manual_seed(1)
    s = torch.rand(n, 1, generator=generator, dtype=torch.float64)
    return s + torch.randn(n, d, generator=generator, dtype=torch.float64), s


def test_the_loop_is_the_product() -> None:
    z, s = sample()
    for anchors in (7, 40):
        loop = loop_eipm(plain_gram(z, 1.3), plain_gram(s, 0.5), anchors)
        product = eipm(z, s, kernel_z=Gaussian(1.3), bandwidth=0.5, anchors=torch.arange(anchors))
        assert loop.item() == pytest.approx(product.item(), rel=1e-10)


def test_the_trace_is_hsic() -> None:
    z, s = sample()
    exact = hsic(z, s, kernel_z=Gaussian(1.3), kernel_s=Gaussian(0.4)).item()
    grams = plain_gram(z, 1.3), plain_gram(s, 0.4)
    for form in ("trace", "centred"):
        assert trace_hsic(*grams, form=form).item() == pytest.approx(exact, rel=1e-10)


ON_Z = {"estimator": "biased", "scale": None, "bandwidth": 1.0, "on": "representation"}


@pytest.mark.parametrize(
    ("plain", "library"),
    [
        (LoopFREM(anchors=None), FREM(anchors=None, bandwidth=1.0, scale=None)),
        (LoopFREM(anchors=32), FREM(anchors=32, bandwidth=1.0, scale=None)),
        (TraceFRHSIC(form="trace"), FRHSIC(**ON_Z, bandwidth_s="median")),
        (
            TraceFRHSIC(form="centred", bandwidth_s=1.0),
            FRHSIC(**ON_Z, bandwidth_s=1.0),
        ),
    ],
)
@pytest.mark.filterwarnings("ignore:.*escaped its kernel")
def test_plain_and_library_forms_train_the_same_model(plain, library) -> None:
    z, s = sample(150)
    y = (z[:, 0] > 0.5).double()
    trained = [
        Trainer(z, y, s, penalty=penalty, lam=5.0, seeds=3, epochs=3, batch_size=64, dtype=torch.float64, device="cpu")
        .fit().encode(z)
        for penalty in (plain, library)
    ]  # fmt: skip
    torch.testing.assert_close(*trained, rtol=1e-6, atol=1e-8)


def test_operations_of_a_matrix_product() -> None:
    with OperationCount() as counter:
        a = torch.ones(3, 4)
        _ = a @ torch.ones(4, 5)
    # The products and sums, and the 12 + 20 numbers that were made.
    assert counter.operations == 2 * 3 * 4 * 5 + 12 + 20


def test_counted_operations_have_the_orders_of_the_algorithms() -> None:
    def exponent(form: str) -> float:
        return math.log2(count_operations(form, 4096) / count_operations(form, 2048))

    assert exponent("hsic") == pytest.approx(2, abs=0.02)
    assert exponent("hsic_trace") == pytest.approx(3, abs=0.03)
    assert exponent("eipm_loop") == pytest.approx(3, abs=0.03)
    assert exponent("eipm_product") == pytest.approx(3, abs=0.03)
    assert exponent("eipm_product_32") == pytest.approx(2, abs=0.02)
    # The loop does the work of the product, one row at a time.
    assert count_operations("eipm_loop", 512) == pytest.approx(count_operations("eipm_product", 512), rel=0.05)


@pytest.mark.slow
def test_smoke_runs_from_end_to_end(tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(libraries, "PATIENCE", 0.0)
    study = cost.plan_cost_cpu("smoke")
    store = ResultStore(tmp_path, study.name)
    assert run_experiment(study, store, device="cpu").left == 0
    rows = store.read()
    assert (rows.loc[rows["part"] != "operations", "seconds"] > 0).all()
    assert (rows["part"] == "epoch").sum() == 3 * cost.EPOCHS
    assert (ratios(rows, "training", to="no penalty")["implementation"] == list(libraries.PENALTIES)).all()


def test_devices_are_kept_apart() -> None:
    cpu, cuda = cost.plan_cost_cpu("full"), cost.plan_cost_gpu("full")
    assert cuda.name == cpu.name
    assert not cuda.keys() & cpu.keys()
    for build, whole in ((cost.plan_cost_cpu, cpu), (cost.plan_cost_gpu, cuda)):
        assert build("text").keys() < whole.keys()
    for part in ("epoch", "gradient"):
        unit = next(unit for unit in map(dict, cuda.units) if unit["part"] == part)
        with pytest.raises(ValueError, match="the device is cpu"):
            cost.measure_unit(unit, "cpu")


def test_scaled_epochs_say_so(monkeypatch) -> None:
    monkeypatch.setattr(cost, "LOOP_STEPS", {"loop, 32 anchors": 1})
    unit = {"part": "epoch", "device": "cpu", "mode": "eager", "method": "frem", "form": "loop, 32 anchors", "n": 700}
    rows = cost.measure_unit(unit, "cpu")
    assert {row["steps"] for row in rows} == {1}
    assert {row["epoch_steps"] for row in rows} == {3}


@pytest.mark.data
def test_attributes_are_the_named_ones() -> None:
    data = cost.attributes(5)
    assert data.sensitive_names == ("age", "capital-gain", "capital-loss", "hours-per-week", "gaussian")
    assert data.n == 2000
    assert not set(data.sensitive_names) & set(data.feature_names)
    assert abs(np.corrcoef(data.s[:, 0], data.s[:, 4])[0, 1]) < 0.1


def test_tables_by_hand() -> None:
    rows = pd.DataFrame(
        [
            {"part": "epoch", "device": "cpu", "mode": "eager", "method": m, "form": f, "n": n, "seconds": c * n * r}
            for m, f, c in (("frem", "slow", 8.0), ("frhsic", "fast", 2.0))
            for n in (100, 200, 400)
            for r in (0.9, 1.0, 1.1)
        ]
    )
    table = seconds_table(rows)
    assert table.loc[(table["method"] == "frem") & (table["n"] == 200), "median"].item() == pytest.approx(1600)
    value, (low, high) = speed_up(rows, ("frem", "slow"), ("frhsic", "fast"), at={"n": 400}, device="cpu")
    assert value == pytest.approx(4)
    sd = np.log([0.9, 1.0, 1.1]).std(ddof=1)
    assert (low, high) == (pytest.approx(4 * math.exp(-2 * 2**0.5 * sd)), pytest.approx(4 * math.exp(2 * 2**0.5 * sd)))
    with pytest.raises(ValueError, match="no times of frem"):
        speed_up(rows, ("frem", "fast"), ("frhsic", "fast"), at={"n": 400}, device="cpu")
    counted = pd.DataFrame(
        {"part": "operations", "form": "x", "n": [1, 2, 4], "operations": [5, 8, 64], "anchors": np.nan}
    )
    assert counted_exponent(counted, "x") == pytest.approx(3)
    slope, (low, high) = loglog_exponent([1, 2, 4, 8], [3, 12, 48, 192])
    assert slope == pytest.approx(2)
    assert high - low < 1e-6


def test_the_limits_of_a_gpu() -> None:
    once = smallest_seconds(1000, precision="tf32")
    thrice = smallest_seconds(2000, precision="tf32x3")
    assert thrice["products"] == pytest.approx(12 * once["products"])
    assert thrice["exponentials"] == pytest.approx(4 * once["exponentials"])


def measured(n: int) -> dict[str, dict[str, Any]]:
    rows = cost.measure_unit({"part": "gradient", "device": "cpu", "n": n}, "cpu")
    return {row["implementation"]: row for row in rows}


def test_implementations_agree_and_are_timed() -> None:
    rows = measured(128)
    assert rows[OURS]["value"] == pytest.approx(rows[TRACE]["value"], rel=1e-3)
    assert all(math.isnan(row["mebibytes"]) for row in rows.values())
    assert all(row["seconds"] > 0 and 1 <= row["repeats"] <= 15 and row["threads"] == 1 for row in rows.values())


def test_the_gradient_of_the_trace_is_that_of_the_library() -> None:
    z, s = libraries.sample(100, "cpu", "float64")
    gradients = []
    for function in (libraries.by_library, libraries.by_trace):
        at = z.clone().requires_grad_()
        gradients += torch.autograd.grad(function(at, s), at)
    torch.testing.assert_close(*gradients, rtol=1e-9, atol=1e-14)


def test_another_library_that_fails_is_left_out() -> None:
    def broken() -> None:
        raise RuntimeError("no compiler")

    def timed(calls: libraries.Calls) -> list[dict[str, Any]]:
        return libraries.timed(calls, "cpu", lambda name: libraries.first_call_of(calls[name], "cpu"), rounds=2)

    with pytest.warns(UserWarning, match="hyppo is left out"):
        rows = timed({OURS: lambda: 1.0, "hyppo": broken})
    assert [row["implementation"] for row in rows] == [OURS]
    with pytest.raises(RuntimeError, match="no compiler"):
        timed({OURS: broken})


@pytest.mark.slow
def test_memory_does_not_depend_on_what_ran_before() -> None:
    used = torch.ones(2**24)  # 64 MiB: most allocators keep them when they are freed
    del used
    matrix = 1_024**2 * 4 / 2**20
    # K, H, L and the three products of the trace exist at once, and the gradient needs some more.
    assert 6 * matrix <= measured(1_024)[TRACE]["mebibytes"] <= 24 * matrix


def test_what_fails_in_its_own_process_says_why() -> None:
    with pytest.raises(RuntimeError, match="KeyError: 'nothing'"):
        libraries.first_call_alone({"part": "gradient", "n": 64}, "nothing")
