"""Measure what FRHSIC costs: epochs beside FREM's, operations, and exact HSIC beside other libraries.

The units of these parts belong to the paper's runtime figure (Section 6.5, ``fig:runtime``) and to the time part of its
high-dimensional figure (``fig:highdim``). Each method is timed in its plain form and in the library's:

- ``epoch``: timed epochs on the paper's synthetic law, against n;
- ``dimension``: timed epochs on Adult, S made of d columns;
- ``operations``: arithmetic operations of one evaluation of HSIC or EIPM on n rows, counted.

Units of the other parts time all implementations of one computation in turns
(:mod:`~frhsic_core.paper.experiments.cost.libraries`):

- ``gradient``: HSIC and its gradient in Z, n × 50 in float32, against the trace of four matrices;
- ``value``: one statistic in float64, against hyppo, dcor, causal-learn and the trace, on the CPU;
- ``test``: the test of independence by permutations, against hyppo's;
- ``large``: HSIC of up to a million samples on a GPU;
- ``training``: a training step with each form of the penalty, against the step without one.

``frhsic run cost_cpu`` measures one CPU thread, ``frhsic run cost_gpu`` a GPU, both into one table; ``--store FOLDER``
measures another machine than the one of the stored results.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from frhsic_core.paper.runs.plan import Settings, Study, units_of

if TYPE_CHECKING:
    from frhsic_core.data.dataset import Dataset
    from frhsic_core.learning.penalties import Penalty

SIZES = (500, 1_000, 2_000, 5_000, 10_000, 20_000)
DIMENSIONS = (1, 2, 3, 4, 5)
COUNTED_SIZES = (256, 512, 1_024, 2_048, 4_096, 8_192)
ANCHORS = (8, 32, 128, 512, 1_024, 2_048, 4_096)
COUNTED = ("hsic", "hsic_trace", "eipm_loop", "eipm_product", "eipm_loop_32", "eipm_product_32")
BATCH = 256
EPOCHS = 5
# Epochs of the loops would take seconds: at most this many of their steps are timed and scaled to the epoch.
LOOP_STEPS = {"loop, all anchors": 8, "loop, 32 anchors": 20}
# A CUDA graph cannot hold their steps: the loop copies from the host, the gradient of the trace waits for the device.
NOT_CAPTURED = ("plain, trace", *LOOP_STEPS)
LAM = {"epoch": 1.0, "dimension": 10.0}
# The appendix (``sec:highdim_S``) fixes these for the comparison of dimensions.
SIGMA_S = 1.0
SMOOTHING = 0.5
ADULT_ROWS = 2_000
# Method, form: plain forms are written as one would first write them, the others are the library's.
CASES = (
    ("unfair", "library"),
    ("frhsic", "plain, trace"),
    ("frhsic", "plain, centred"),
    ("frhsic", "library"),
    ("frhsic", "library, bandwidth of every batch"),
    ("frem", "loop, all anchors"),
    ("frem", "loop, 32 anchors"),
    ("frem", "library, all anchors"),
    ("frem", "library, 32 anchors"),
    ("reg_gdp", "library"),
    ("dcor", "library"),
    ("adv", "library"),
)
# There FREM has 32 anchors.
DIMENSION_CASES = tuple(
    case for case in CASES if case[0] in ("unfair", "frhsic", "frem") and case[1] != "loop, all anchors"
)
MILLION = 1_000_000


def plan_cost_cpu(preset: str) -> Study:
    """Return the units of one CPU thread and the counts; ``text`` has the parts of the paper's figures only."""
    if preset == "smoke":
        small = {"device": "cpu", "mode": "eager", "n": 500}
        units = (
            *units_of(part="epoch", method="frhsic", form=("plain, trace", "library"), **small),
            *units_of(part="epoch", method="frem", form="loop, 32 anchors", **small),
            *units_of(part="operations", form=("hsic", "eipm_loop"), n=(64, 128)),
            *units_of(part=("gradient", "value", "test"), device="cpu", n=100),
            *units_of(part="training", device="cpu", models=1, d=4),
        )
        return Study("cost_smoke", "cost", units)
    # Operations are counted for each form against n, and for the loop against the number of anchors.
    units = (
        *units_of(part="operations", form=COUNTED, n=COUNTED_SIZES),
        *units_of(part="operations", form="eipm_loop_32", n=4_096, anchors=ANCHORS),
        *_epochs("cpu", "eager"),
    )
    libraries = (
        *units_of(part="gradient", device="cpu", n=(256, 1_024)),
        *units_of(part="value", device="cpu", n=(2_000, 5_000, 20_000)),
        *units_of(part="training", device="cpu", models=1, d=(4, 50)),
        *units_of(part="test", device="cpu", n=5_000),
    )
    return Study("cost", "cost", units if preset == "text" else (*units, *libraries))


def plan_cost_gpu(preset: str) -> Study:
    """Return the units of a GPU, which has epochs both eager and captured; they belong to the same table."""
    if preset == "smoke":
        return plan_cost_cpu(preset)
    if preset == "text":
        return Study("cost", "cost", _epochs("cuda", "eager"))
    sizes = (10_000, 30_000, 100_000, 300_000, MILLION)
    libraries = (
        *units_of(part="gradient", device="cuda", n=(256, 2_000, 20_000)),
        *units_of(part="large", device="cuda", n=sizes, precision="tf32x3"),
        *units_of(part="test", device="cuda", n=(5_000, 100_000, MILLION)),
        *units_of(part="training", device="cuda", models=125, d=(4, 50)),
    )
    return Study("cost", "cost", (*_epochs("cuda", "eager"), *_epochs("cuda", "captured"), *libraries))


def _epochs(device: str, mode: str) -> tuple[Settings, ...]:
    """Return the units that time epochs."""
    units: list[Settings] = []
    for part, cases in (("epoch", CASES), ("dimension", DIMENSION_CASES)):
        sizes = {"n": SIZES} if part == "epoch" else {"n": ADULT_ROWS, "d": DIMENSIONS}
        for method, form in cases:
            if mode == "eager" or form not in NOT_CAPTURED:
                units += units_of(part=part, device=device, mode=mode, method=method, form=form, **sizes)
    return tuple(units)


def measure_unit(unit: dict[str, Any], device: str) -> list[dict[str, Any]]:
    """Measure a unit on its own device; ``device`` names the CUDA device."""
    from frhsic_core.paper.experiments.cost import libraries, plain_forms

    if unit["part"] == "operations":
        operations = plain_forms.count_operations(unit["form"], unit["n"], anchors=unit.get("anchors"))
        return [{"repeat": 0, "operations": operations}]
    measured = _measure_epochs if unit["part"] in LAM else libraries.measure
    if unit["device"] == "cpu":
        with libraries.one_thread():
            return measured(unit, "cpu")
    if not device.startswith("cuda"):
        raise ValueError(f"This unit is timed on CUDA, but the device is {device}. Without a GPU, run cost_cpu.")
    return measured(unit, device)


def _measure_epochs(unit: dict[str, Any], device: str) -> list[dict[str, Any]]:
    from frhsic_core.data import load_dataset
    from frhsic_core.paper.experiments.cost.libraries import timed_epochs
    from frhsic_core.paper.splits import tensors_of

    n: int = unit["n"]
    if unit["part"] == "epoch":
        data = load_dataset("synthetic", n=min(n, LOOP_STEPS.get(unit["form"], 10**9) * BATCH))
        penalty = penalty_of(unit["method"], unit["form"])
    else:
        data = attributes(unit["d"], n=n)
        penalty = penalty_of(unit["method"], unit["form"], sigma_s=SIGMA_S)
    x, s, y = tensors_of(data)
    x, s = ((v - v.amin(0)) / (v.amax(0) - v.amin(0)).clamp_min(1e-12) for v in (x, s))
    seconds = timed_epochs(
        x, y, s, penalty=penalty, lam=LAM[unit["part"]], seeds=42, task=data.task, protocol="text", batch_size=BATCH,
        epochs=EPOCHS, captured=unit["mode"] == "captured", device=device,
    )  # fmt: skip
    steps = -(-data.n // BATCH)
    whole = -(-n // BATCH)
    return [
        {"repeat": i, "seconds": float(f"{t * whole / steps:.6g}"), "steps": steps, "epoch_steps": whole}
        for i, t in enumerate(seconds)
    ]


def penalty_of(method: str, form: str, *, sigma_s: float | str = "median") -> Penalty:
    """Return the penalty of a case; σ_Z = 1 where it is fixed, γ = 0.5."""
    from frhsic_core.learning import make_penalty
    from frhsic_core.learning.penalties import FREM, FRHSIC
    from frhsic_core.paper.experiments.cost.plain_forms import LoopFREM, TraceFRHSIC

    if method == "frem":
        anchors = None if form.endswith("all anchors") else 32
        if form.startswith("loop"):
            return LoopFREM(anchors=anchors, smoothing=SMOOTHING)
        return FREM(anchors=anchors, smoothing=SMOOTHING, bandwidth=1.0, scale=None, power=1)
    if method == "frhsic":
        if form.startswith("plain"):
            fixed = None if isinstance(sigma_s, str) else sigma_s
            return TraceFRHSIC(form=form.removeprefix("plain, "), bandwidth_s=fixed)
        policy: float | str = "every_batch" if form.endswith("every batch") else 1.0
        return FRHSIC(estimator="biased", on="representation", scale=None, bandwidth=policy, bandwidth_s=sigma_s)
    return make_penalty(method, protocol="text")


def attributes(d: int, *, n: int | None = ADULT_ROWS) -> Dataset:
    """Return Adult with S made of the first d of age, capital gain, capital loss, hours and a Gaussian column.

    The paper names the columns (``sec:highdim_S``); they leave X. The Gaussian column is independent of everything.
    """
    from dataclasses import replace

    import numpy as np

    from frhsic_core.data import load_dataset
    from frhsic_core.paper.datasets import HIGH_DIMENSIONAL

    names = HIGH_DIMENSIONAL["text"][:d]
    data = load_dataset("adult", n=n, sensitive=names)
    if d <= len(names):
        return data
    column = np.random.default_rng(0).standard_normal((data.n, 1))
    s = np.concatenate([data.s.reshape(data.n, -1), column], axis=1)
    return replace(data, s=s, sensitive_names=(*data.sensitive_names, "gaussian"))
