"""Time one training step of a stack of models on a GPU, eagerly and captured as a CUDA graph.

The data have the size of Adult (26,048 samples, 107 features), the mini-batch has 256 samples. The stored rows were
measured on an H200; ``frhsic run training_step --store FOLDER`` measures another GPU.
"""

from __future__ import annotations

import statistics
from typing import TYPE_CHECKING, Any

from frhsic_core.paper.runs.plan import Study, units_of
from frhsic_core.registry import METHODS

if TYPE_CHECKING:
    from torch import Tensor

# Method of each case, and its settings where they depart from the recommended ones.
_ON_Z = {"on": "representation"}
CASES: dict[str, tuple[str, dict[str, Any]]] = {
    "unfair": ("unfair", {}),
    "frhsic fixed bandwidth": ("frhsic", {"estimator": "biased", "scale": None, "bandwidth": 1.0, **_ON_Z}),
    "frhsic every batch": ("frhsic", {"estimator": "biased", "scale": None, "bandwidth": "every_batch", **_ON_Z}),
    "frhsic standardised": ("frhsic", {"estimator": "normalized", "scale": "standardize", **_ON_Z}),
    # What was recommended when this was measured. Today's form has the biased estimator.
    "frhsic recommended": ("frhsic", {"estimator": "normalized", **_ON_Z}),
    "frhsic recommended, on both": ("frhsic", {"estimator": "normalized", "on": "both"}),
    "frem": ("frem", {}),
    "reg_gdp": ("reg_gdp", {}),
    "adv": ("adv", {}),
    "laftr": ("laftr", {}),
    "mmd_binned": ("mmd_binned", {}),
    "dcor": ("dcor", {}),
}
# Names of the cases in tables: the words of ``how_fast`` for the forms of FRHSIC, else the label of the method.
LABELS = {case: METHODS[method].label for case, (method, _) in CASES.items()} | {
    "frhsic fixed bandwidth": "FRHSIC, fixed bandwidth",
    "frhsic every batch": "FRHSIC, bandwidth of every batch",
    "frhsic standardised": "FRHSIC, standardized",
    "frhsic recommended": "FRHSIC, whitened",
    "frhsic recommended, on both": "FRHSIC, whitened, on Z and output",
}
ROWS, FEATURES, BATCH = 26_048, 107, 256
EPOCHS = 3


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
    from frhsic_core.paper.experiments.shared.timing import timed_epochs

    if "n" not in unit and not device.startswith("cuda"):
        raise ValueError(f"device is {device!r}, but this experiment times a GPU: run it with --device cuda.")
    n = unit.get("n", ROWS)
    method, settings = CASES[unit["case"]]
    seconds = timed_epochs(
        *_samples(n, device), penalty=make_penalty(method, protocol="recommended", **settings), lam=1.0,
        seeds=list(range(unit["models"])), batch_size=BATCH, epochs=EPOCHS, mode=unit["mode"], device=device,
    )  # fmt: skip
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
