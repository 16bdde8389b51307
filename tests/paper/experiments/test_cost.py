"""The cost: plain and library forms are the same numbers, operations are counted right, peers compute the same."""

from __future__ import annotations

import math
import subprocess
import warnings

import numpy as np
import pandas as pd
import pytest
import torch
from samples import with_squares
from scipy import stats

from frhsic_core.joint.hsic import hsic
from frhsic_core.kernels import Gaussian
from frhsic_core.learning import Trainer
from frhsic_core.paper.experiments import cost, peers
from frhsic_core.paper.experiments.cost import counted_exponent, epoch_exponent, speed_up
from frhsic_core.paper.experiments.cost.plain_forms import count_operations


@pytest.mark.parametrize(
    ("method", "plain", "library", "sigma_s"),
    [
        ("frem", "loop, all anchors", "library, all anchors", "median"),
        ("frem", "loop, 32 anchors", "library, 32 anchors", "median"),
        ("frhsic", "plain, centred", "library", "median"),
        ("frhsic", "plain, centred", "library", 1.0),
    ],
)
@pytest.mark.filterwarnings("ignore:.*escaped its kernel")
def test_plain_and_library_forms_train_the_same_model(method, plain, library, sigma_s) -> None:
    z, s = with_squares(1, 150, 3)
    y = (z[:, 0] > 0.5).double()
    trained = [
        Trainer(z, y, s, penalty=penalty, lam=5.0, seeds=3, epochs=3, batch_size=64, dtype=torch.float64, device="cpu")
        .fit().encode(z)
        for penalty in (cost.penalty_of(method, form, sigma_s=sigma_s) for form in (plain, library))
    ]  # fmt: skip
    torch.testing.assert_close(*trained, rtol=1e-6, atol=1e-8)


@pytest.mark.slow  # the first count imports for seconds
def test_operations_are_those_of_the_products_by_hand() -> None:
    n, d = 96, 50
    # Two Gram matrices of 50 and one columns, and for each anchor w @ gram, w @ gram @ w and w @ rows.
    grams = 2 * n * n * (d + 1)
    assert count_operations("eipm_loop", n) == grams + n * (2 * n * n + 4 * n)
    assert count_operations("eipm_loop_32", n) == grams + 32 * (2 * n * n + 4 * n)
    few = {"part": "operations", "form": "eipm_loop_32", "n": n, "anchors": 5}
    assert cost.measure_unit(few, "cpu")[0]["operations"] == grams + 5 * (2 * n * n + 4 * n)
    # The loop does the work of the product, one row at a time.
    assert count_operations("eipm_product", 160) == pytest.approx(
        count_operations("eipm_loop", 160), rel=0.05
    )
    assert count_operations("eipm_product_32", 160) == pytest.approx(
        count_operations("eipm_loop_32", 160), rel=0.05
    )


def test_devices_are_kept_apart() -> None:
    cpu, cuda = cost.plan_cost_cpu(), cost.plan_cost_gpu()
    assert cuda.name == cpu.name
    assert not cuda.keys() & cpu.keys()
    units = [dict(unit.settings) for unit in cuda.jobs]
    unit = next(unit for unit in units if unit["part"] == "epoch")
    with pytest.raises(ValueError, match="the device is cpu"):
        cost.measure_unit(unit, "cpu")
    captured = {unit["form"] for unit in units if unit.get("mode") == "captured"}
    assert not captured & set(cost.LOOP_STEPS)


def test_scaled_epochs_say_so_and_train_on_columns_from_zero_to_one(monkeypatch) -> None:
    given = []

    class Seen(Trainer):
        def __init__(self, *parts: object, **options: object) -> None:
            given.append((parts, options))
            super().__init__(*parts, **options)

        def fit(self, **options):
            if self.fails:
                warnings.warn("The step could not be captured.", stacklevel=1)
            return super().fit(**options)

        fails = False

    monkeypatch.setattr("frhsic_core.learning.Trainer", Seen)
    monkeypatch.setattr(cost, "LOOP_STEPS", {"loop, 32 anchors": 1})
    unit = {
        "part": "epoch",
        "device": "cpu",
        "mode": "eager",
        "method": "frem",
        "form": "loop, 32 anchors",
        "n": 700,
    }
    rows = cost.measure_unit(unit, "cpu")
    assert [(row["repeat"], row["steps"], row["epoch_steps"]) for row in rows] == [
        (k, 1, 3) for k in range(cost.EPOCHS)
    ]
    ((data,), options) = given[0]
    for part in (data.x[0], data.s[0]):
        assert (part.amin(0).unique().tolist(), part.amax(0).unique().tolist()) == ([0.0], [1.0])
    named = ("lam", "seeds", "protocol", "batch_size", "epochs", "capture", "device")
    assert [options[name] for name in named] == [
        1.0,
        42,
        "text",
        256,
        1 + cost.EPOCHS,
        False,
        "cpu",
    ]
    monkeypatch.setattr(Seen, "fails", True)
    with pytest.raises(RuntimeError, match="no captured time"):
        cost.measure_unit(unit, "cpu")


@pytest.mark.data
def test_attributes_are_the_named_ones() -> None:
    data = cost.attributes(5)
    assert data.sensitive_names == (
        "age",
        "capital-gain",
        "capital-loss",
        "hours-per-week",
        "gaussian",
    )
    assert data.n == 2000
    assert not set(data.sensitive_names) & set(data.feature_names)
    assert abs(np.corrcoef(data.s[:, 0], data.s[:, 4])[0, 1]) < 0.1


def test_tables_by_hand() -> None:
    rows = pd.DataFrame(
        [
            {
                "part": "epoch",
                "device": "cpu",
                "mode": "eager",
                "method": m,
                "form": f,
                "n": n,
                "seconds": c * n**2 * r,
            }
            for m, f, c in (("frem", "slow", 8.0), ("frhsic", "fast", 2.0))
            for n in (50, 100, 200, 400)
            for r in (0.9, 1.0, 1.1)
        ]
    )
    value, (low, high) = speed_up(
        rows, ("frem", "slow"), ("frhsic", "fast"), at={"n": 400}, device="cpu"
    )
    assert value == pytest.approx(4)
    sd = np.log([0.9, 1.0, 1.1]).std(ddof=1)
    assert (low, high) == (
        pytest.approx(4 * math.exp(-2 * 2**0.5 * sd)),
        pytest.approx(4 * math.exp(2 * 2**0.5 * sd)),
    )
    with pytest.raises(ValueError, match="no times of frem"):
        speed_up(rows, ("frem", "fast"), ("frhsic", "fast"), at={"n": 400}, device="cpu")
    bent = rows.assign(
        seconds=rows["seconds"] * rows["n"].map({50: 1.0, 100: 1.1, 200: 1.0, 400: 1.1})
    )
    slope, ends = epoch_exponent(bent, ("frem", "slow"), device="cpu")
    logs = np.log([50, 100, 200, 400]), np.log([50.0**2, 1.1 * 100**2, 200.0**2, 1.1 * 400**2])
    (fitted, _), covariance = np.polyfit(*logs, 1, cov=True)
    reach = stats.t.ppf(0.975, 2) * covariance[0, 0] ** 0.5
    assert (slope, *ends) == pytest.approx((fitted, fitted - reach, fitted + reach))
    counted = pd.DataFrame(
        {
            "part": "operations",
            "form": "x",
            "n": [1, 2, 4],
            "operations": [5, 8, 64],
            "anchors": np.nan,
        }
    )
    assert counted_exponent(counted, "x") == pytest.approx(3)


@pytest.mark.slow  # importing the other libraries takes seconds
@pytest.mark.usefixtures("uncompiled")
@pytest.mark.filterwarnings("ignore")  # of the other libraries
def test_peers_compute_the_same_quantities() -> None:
    z, s = peers.sample(400)
    found = {
        (quantity, library.removesuffix("*")): float(peers.call_of(quantity, library.removesuffix("*"), z, s)())
        for quantity, libraries in peers.QUANTITIES.items() for library in libraries
    }  # fmt: skip
    own = found["distance correlation", peers.OURS]
    for library in ("dcor", "hyppo", "statsmodels"):
        assert found["distance correlation", library] == pytest.approx(own, rel=1e-8)
    assert found["mutual information", "scikit-learn"] == pytest.approx(
        found["mutual information", peers.OURS], abs=0.02
    )
    assert min(found["HSIC", name] for name in (peers.OURS, "hyppo", "causal-learn")) > 0


@pytest.mark.slow  # two processes
def test_a_measurement_in_its_own_process(monkeypatch) -> None:
    unit = {"quantity": "HSIC", "implementation": peers.OURS, "n": 2000}
    ballast = np.ones(
        2**27
    )  # a GiB of this process, beside which ru_maxrss of the other would not change
    (row,) = peers.measure_unit(unit, "cpu")
    assert 0 < row["mebibytes"] < ballast.nbytes / 2**20
    z, s = peers.sample(2000)
    assert row["value"] == pytest.approx(
        float(hsic(z, s, kernel_z=Gaussian(1.0), kernel_s=Gaussian(1.5))), rel=1e-4
    )
    assert 0 < row["seconds"] < 60
    assert row["repeats"] >= 1
    monkeypatch.setattr(peers, "LIMIT", 0.01)
    assert peers.measure_unit(unit, "cpu")[0]["note"] == "more than 0 s"
    broken = subprocess.CompletedProcess([], 1, "", "Traceback\nMemoryError: too large")
    monkeypatch.setattr(peers.subprocess, "run", lambda *_, **__: broken)
    assert (
        peers.measure_unit({**unit, "implementation": "scikit-learn"}, "cpu")[0]["note"]
        == "MemoryError: too large"
    )
    with pytest.raises(RuntimeError, match="too large"):
        peers.measure_unit(unit, "cpu")
    monkeypatch.setattr(peers.importlib.util, "find_spec", lambda name: None)
    assert peers.measure_unit(unit, "cpu")[0]["note"] == "not installed"
