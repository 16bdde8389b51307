"""Time one training step of a stack of models on a GPU, eagerly and captured as a CUDA graph.

The data have the size of Adult (26,048 samples, 107 features), the mini-batch has 256 samples. The stored rows were
measured on an H200; ``frhsic run training_step --store FOLDER`` measures another GPU.
"""

from __future__ import annotations

import statistics
import time
import warnings
from collections.abc import Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from frhsic_core.paper.runs.plan import Study, units_of

if TYPE_CHECKING:
    from torch import Tensor

    from frhsic_core.learning.penalties import Penalty

# Method of each case, and its settings where they depart from the recommended ones.
CASES: dict[str, tuple[str, dict[str, Any]]] = {
    "unfair": ("unfair", {}),
    "frhsic fixed bandwidth": ("frhsic", {"estimator": "biased", "scale": None, "bandwidth": 1.0}),
    "frhsic every batch": ("frhsic", {"estimator": "biased", "scale": None, "bandwidth": "every_batch"}),
    "frhsic standardised": ("frhsic", {"scale": "standardize"}),
    "frhsic recommended": ("frhsic", {}),
    "frhsic recommended, on both": ("frhsic", {"on": "both"}),
    "frem": ("frem", {}),
    "reg_gdp": ("reg_gdp", {}),
    "adv": ("adv", {}),
    "laftr": ("laftr", {}),
    "mmd_binned": ("mmd_binned", {}),
    "dcor": ("dcor", {}),
}
ROWS, FEATURES, BATCH = 26_048, 107, 256
EPOCHS = 3
# The first epoch of a captured run captures the graph of a full batch, the next two that of the last, smaller batch.
WARM_UP = {"eager": 1, "captured": 3}


def plan(preset: str) -> Study:
    """Return one unit for each case, number of models and mode."""
    if preset == "smoke":
        units = units_of(case=("unfair", "frhsic recommended"), models=2, mode="eager", n=512)
        return Study("training_step_smoke", "training_step", units)
    units = units_of(case=tuple(CASES), models=(25, 125), mode=("captured", "eager"))
    return Study("training_step_h200", "training_step", units)


def measure_unit(unit: dict[str, Any], device: str) -> list[dict[str, Any]]:
    """Return the milliseconds of one step: the median over epochs of the seconds of an epoch by its steps."""
    from frhsic_core.learning import make_penalty

    if "n" not in unit and not device.startswith("cuda"):
        raise ValueError(f"device is {device!r}, but this experiment times a GPU: run it with --device cuda.")
    n = unit.get("n", ROWS)
    x, y, s = _samples(n, device)
    method, settings = CASES[unit["case"]]
    penalty = make_penalty(method, protocol="recommended", **settings)
    seeds = list(range(unit["models"]))
    seconds = epoch_seconds(x, y, s, penalty=penalty, lam=1.0, seeds=seeds, mode=unit["mode"], device=device)
    steps = -(-n // BATCH)
    step = f"{unit['case']}, {unit['models']} models, {unit['mode']}"
    return [{"step": step, "ms": round(1e3 * statistics.median(seconds) / steps, 4)}]


def _samples(n: int, device: str) -> tuple[Tensor, Tensor, Tensor]:
    """Return x, y and s; the first feature is S with noise."""
    import torch

    generator = torch.Generator().manual_seed(8)
    s = torch.rand(n, generator=generator)
    x = torch.rand(n, FEATURES, generator=generator)
    x[:, 0] = s + 0.1 * torch.randn(n, generator=generator)
    y = (torch.rand(n, generator=generator) < torch.sigmoid(4 * (x[:, 0] + x[:, 1] - 1))).float()
    return x.to(device), y.to(device), s.to(device)


def epoch_seconds(
    x: Tensor,
    y: Tensor,
    s: Tensor,
    *,
    penalty: Penalty,
    lam: float,
    seeds: Sequence[int],
    mode: str,
    device: str,
) -> list[float]:
    """Return the seconds of each timed epoch after the warm-up; the GPU is synchronized at both ends."""
    import torch

    from frhsic_core.learning import Trainer

    stamps: list[float] = []

    def stamp(progress: Any) -> None:
        if device.startswith("cuda"):
            torch.cuda.synchronize()
        stamps.append(time.perf_counter())

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        trainer = Trainer(
            x,
            y,
            s,
            penalty=penalty,
            lam=lam,
            seeds=seeds,
            batch_size=BATCH,
            epochs=WARM_UP[mode] + EPOCHS,
            device=device,
            capture=mode == "captured",
        )
        trainer.fit(callback=stamp)
    if any("could not be captured" in str(w.message) for w in caught):
        raise RuntimeError("The step could not be captured, so there is no captured time of this case.")
    timed = stamps[WARM_UP[mode] - 1 :]
    return [end - begin for begin, end in pairwise(timed)]
