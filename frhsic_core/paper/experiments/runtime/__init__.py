"""Runtime: seconds per epoch against n, the cost of a full batch, and both again for a vector S.

The paper's runtime figure (Section 6.5, ``fig:runtime``) and its time part of the high-dimensional figure
(``fig:highdim``), with each method in its plain form and in the library's. Rows of part

- ``epoch``: one timed epoch on the paper's synthetic law;
- ``dimension``: one timed epoch on Adult, S made of d columns;
- ``full_batch``: one evaluation of HSIC or EIPM on n rows;
- ``operations``: arithmetic operations of that evaluation, counted.

Devices are part of the units: ``frhsic run runtime`` measures CUDA, ``frhsic run runtime_cpu`` the CPU, both into one
table.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from frhsic_core.paper.runs.plan import Settings, Study, units_of

if TYPE_CHECKING:
    from frhsic_core.data.dataset import Dataset
    from frhsic_core.learning.penalties import Penalty

SIZES = (500, 1_000, 2_000, 5_000, 10_000, 20_000)
FULL = (256, 512, 1_024, 2_048, 4_096, 8_192)
DIMENSIONS = (1, 2, 3, 4, 5)
ANCHORS = (8, 32, 128, 512, 1_024, 2_048, 4_096)
FULL_FORMS = ("hsic", "hsic_trace", "eipm_loop", "eipm_product", "eipm_loop_32", "eipm_product_32")
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


def penalty_of(method: str, form: str, *, sigma_s: float | str = "median") -> Penalty:
    """Return the penalty of a case; σ_Z = 1 where it is fixed, γ = 0.5."""
    from frhsic_core.learning import make_penalty
    from frhsic_core.learning.penalties import FREM, FRHSIC
    from frhsic_core.paper.experiments.runtime.plain_forms import LoopFREM, TraceFRHSIC

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
    from frhsic_core.data.adult import HIGH_DIMENSIONAL

    names = HIGH_DIMENSIONAL["text"][:d]
    data = load_dataset("adult", n=n, sensitive=names)
    if d <= len(names):
        return data
    column = np.random.default_rng(0).standard_normal((data.n, 1))
    s = np.concatenate([data.s.reshape(data.n, -1), column], axis=1)
    return replace(data, s=s, sensitive_names=(*data.sensitive_names, "gaussian"))


def _epoch(unit: dict[str, Any], device: str) -> list[dict[str, Any]]:
    import torch

    from frhsic_core.data import load_dataset
    from frhsic_core.paper.experiments.shared.timing import timed_epochs

    most = LOOP_STEPS.get(unit["form"], 10**9) * BATCH
    n: int = unit["n"]
    sigma_s: float | str = "median" if unit["part"] == "epoch" else SIGMA_S
    if unit["part"] == "epoch":
        data = load_dataset("runtime", n=min(n, most))
    else:
        data = attributes(unit["d"], n=n)
    penalty = penalty_of(unit["method"], unit["form"], sigma_s=sigma_s)
    x, s, y, _ = data.tensors(dtype=torch.float64)
    x, s = ((v - v.amin(0)) / (v.amax(0) - v.amin(0)).clamp_min(1e-12) for v in (x, s))
    seconds = timed_epochs(
        x, y, s, penalty=penalty, lam=LAM[unit["part"]], seeds=42, task=data.task, protocol="text", batch_size=BATCH,
        epochs=EPOCHS, mode=unit["mode"], device=device,
    )  # fmt: skip
    steps = -(-data.n // BATCH)
    whole = -(-n // BATCH)
    return [
        {"repeat": i, "seconds": float(f"{t * whole / steps:.6g}"), "steps": steps, "epoch_steps": whole}
        for i, t in enumerate(seconds)
    ]


def measure_unit(unit: dict[str, Any], device: str) -> list[dict[str, Any]]:
    """Measure a unit on its own device; ``device`` names the CUDA device."""
    if unit["part"] == "operations":
        from frhsic_core.paper.experiments.runtime.plain_forms import count_operations

        operations = count_operations(unit["form"], unit["n"], anchors=unit.get("anchors"))
        return [{"repeat": 0, "operations": operations}]
    if unit["device"] == "cpu":
        device = "cpu"
    elif not device.startswith("cuda"):
        raise ValueError(f"This unit is timed on CUDA, but the device is {device}. Without a GPU, run runtime_cpu.")
    if unit["part"] == "full_batch":
        from frhsic_core.paper.experiments.runtime.plain_forms import time_evaluation

        found, anchors = time_evaluation(unit["form"], unit["n"], device)
        return [{"repeat": i, "seconds": float(f"{t:.6g}"), "anchors": anchors} for i, t in enumerate(found)]
    return _epoch(unit, device)


def units_for(device: str, *, modes: tuple[str, ...]) -> tuple[Settings, ...]:
    """Return everything that is timed on a device."""
    units: list[Settings] = []
    for mode in modes:
        for method, form in _possible(CASES, mode):
            units += units_of(part="epoch", device=device, mode=mode, method=method, form=form, n=SIZES)
        for method, form in _possible(DIMENSION_CASES, mode):
            units += units_of(
                part="dimension", device=device, mode=mode, method=method, form=form, n=ADULT_ROWS, d=DIMENSIONS
            )
    for form in FULL_FORMS:
        # Products of 8,192 × 8,192 matrices take a CPU ten seconds and more.
        sizes = FULL[:-1] if device == "cpu" and form in ("hsic_trace", "eipm_product") else FULL
        units += units_of(part="full_batch", device=device, form=form, n=sizes)
    return tuple(units)


def _possible(cases: tuple[tuple[str, str], ...], mode: str) -> list[tuple[str, str]]:
    return [case for case in cases if mode == "eager" or case[1] not in NOT_CAPTURED]


def plan(preset: str) -> Study:
    """Return the units on CUDA, eager and captured; ``text`` has what the paper's figures show, run eagerly."""
    if preset == "smoke":
        small = [
            *units_of(
                part="epoch", device="cpu", mode="eager", method="frhsic", form=("plain, trace", "library"), n=500
            ),
            *units_of(part="epoch", device="cpu", mode="eager", method="frem", form=("loop, 32 anchors",), n=500),
            *units_of(part="full_batch", device="cpu", form=("hsic", "eipm_loop", "eipm_product"), n=256),
            *units_of(part="operations", form=("hsic", "eipm_loop"), n=(64, 128)),
        ]
        return Study("runtime_smoke", "runtime", tuple(small))
    # Operations are counted for each form against n, and for the loop against the number of anchors.
    everything = (
        *units_of(part="operations", form=FULL_FORMS, n=FULL),
        *units_of(part="operations", form="eipm_loop_32", n=4_096, anchors=ANCHORS),
        *units_for("cuda", modes=("eager", "captured")),
    )
    if preset == "full":
        return Study("runtime", "runtime", everything)
    shown = {("frhsic", "plain, centred"), ("frem", "loop, all anchors"), ("frem", "loop, 32 anchors"),
             ("reg_gdp", "library")}  # fmt: skip
    kept = [
        unit
        for unit, named in ((unit, dict(unit)) for unit in everything)
        if named["part"] == "operations" or (named.get("mode") == "eager" and (named["method"], named["form"]) in shown)
    ]
    return Study("runtime", "runtime", tuple(kept))


def plan_runtime_cpu(preset: str) -> Study:
    """Return the units that are timed on the CPU, one thread, into the same table; run it on a quiet machine."""
    return plan(preset) if preset == "smoke" else Study("runtime", "runtime", units_for("cpu", modes=("eager",)))
