"""The ablations: kernels on Z and S, and the dimension of Z, at λ = 5, on the paper's law and on a stronger one."""

from __future__ import annotations

from itertools import product
from typing import Any

from frhsic_core.paper.experiments.drawn import FIRST_DRAW, Arm, train_draws
from frhsic_core.paper.experiments.synthetic import DRAWS, ROWS, SIGNALS
from frhsic_core.paper.runs.study import Study

__all__ = ["ARMS", "DEFAULT_DIMENSION", "DIMENSIONS", "KERNELS", "LAM", "cells", "measure_unit", "plan"]

LAM = 5.0
KERNELS = ("gaussian", "laplacian", "imq")
DIMENSIONS, DEFAULT_DIMENSION = (2, 8, 32, 64), 8
# The text names no network for the ablations: its arm is that of the synthetic validation. The released script has one
# hidden layer of 50, 80 epochs, and bandwidths of the untrained encoder (here: of its first mini-batch) throughout.
ARMS = {
    "text": Arm("text", (64,), "selu", 200),
    "reference": Arm("reference", (50,), "selu", 80, (("bandwidth", "fixed"), ("bandwidth_s", "first_1000"))),
}


def cells() -> tuple[tuple[str, str, int], ...]:
    """Return kernel on Z, kernel on S and dimension: all pairs at the default dimension, then the other dimensions.

    Examples
    --------
    >>> len(cells()), cells()[-1]
    (12, ('gaussian', 'gaussian', 64))
    """
    others = [dimension for dimension in DIMENSIONS if dimension != DEFAULT_DIMENSION]
    return (
        *((kz, ks, DEFAULT_DIMENSION) for kz, ks in product(KERNELS, KERNELS)),
        *(("gaussian", "gaussian", dimension) for dimension in others),
    )


def plan(preset: str) -> Study:
    """One unit for each arm and cell: 2 laws × 25 draws as one stack. ``text`` trains the text's arm only."""
    arms = ("text",) if preset == "text" else tuple(ARMS)
    n, draws = (300, 2) if preset == "smoke" else (ROWS, DRAWS)
    units = tuple(
        (
            ("arm", arm),
            ("kernel_z", kz),
            ("kernel_s", ks),
            ("dimension", dimension),
            ("n", n),
            ("draws", draws),
            ("epochs", 2 if preset == "smoke" else ARMS[arm].epochs),
        )
        for arm in arms
        for kz, ks, dimension in (cells()[::3] if preset == "smoke" else cells())
    )
    return Study("ablation_smoke" if preset == "smoke" else "ablation", "ablation", units)


def measure_unit(unit: dict[str, Any], device: str) -> list[dict[str, Any]]:
    """Train one cell of the tables on every draw of both laws; with Gaussian kernels also without the penalty."""
    gaussian = unit["kernel_z"] == unit["kernel_s"] == "gaussian"
    return train_draws(
        ARMS[unit["arm"]],
        dimension=unit["dimension"],
        lams=(0.0, LAM) if gaussian else (LAM,),
        signals=SIGNALS,
        draws=range(FIRST_DRAW, FIRST_DRAW + unit["draws"]),
        n=unit["n"],
        epochs=unit["epochs"],
        settings=(("kernel", unit["kernel_z"]), ("kernel_s", unit["kernel_s"])),
        device=device,
    )
