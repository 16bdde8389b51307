"""The validation on synthetic data: λ from 0 to 50 on the paper's law, and on one whose label can be predicted."""

from __future__ import annotations

from typing import Any

from frhsic_core.paper.experiments.drawn import FIRST_DRAW, Arm, train_draws
from frhsic_core.paper.runs.study import Study

__all__ = ["ARMS", "DIMENSION", "DRAWS", "LAMS", "ROWS", "SIGNALS", "measure_unit", "plan"]

LAMS = (0.0, 0.1, 0.5, 1.0, 5.0, 10.0, 50.0)
SIGNALS = ("paper", "strong")
ROWS, DRAWS, DIMENSION = 5000, 25, 8
# The released script fixes σ_Z at the median of the untrained encoder on its first 1,000 rows; ``"fixed"`` takes the
# first mini-batch, 256 random rows. σ_S is that of the first 1,000 rows in both.
_FIXED = (("bandwidth", "fixed"), ("bandwidth_s", "first_1000"))
ARMS = {
    "text": Arm("text", (64,), "selu", 200),
    "reference": Arm("reference", (64, 64), "relu", 100, _FIXED),
    # Not in the paper: a penalty that neither shrinking nor rescaling Z can lower, with the reference's network.
    "normalised": Arm(
        "reference",
        (64, 64),
        "relu",
        100,
        (
            ("estimator", "normalized"),
            ("scale", "standardise"),
            ("bandwidth", "every_batch"),
            ("bandwidth_s", "first_1000"),
        ),
    ),
}


def plan(preset: str) -> Study:
    """One unit for each arm: 2 laws × 25 draws × 7 λ as one stack. ``text`` trains the text's arm only."""
    if preset == "smoke":
        units = tuple((("arm", arm), ("n", 300), ("draws", 2), ("epochs", 2)) for arm in ARMS)
        return Study("synthetic_smoke", "synthetic", units)
    arms = ("text",) if preset == "text" else tuple(ARMS)
    units = tuple((("arm", arm), ("n", ROWS), ("draws", DRAWS), ("epochs", ARMS[arm].epochs)) for arm in arms)
    return Study("synthetic", "synthetic", units)


def measure_unit(unit: dict[str, Any], device: str) -> list[dict[str, Any]]:
    """Train one arm on every draw of both laws."""
    return train_draws(
        ARMS[unit["arm"]],
        dimension=DIMENSION,
        lams=LAMS,
        signals=SIGNALS,
        draws=range(FIRST_DRAW, FIRST_DRAW + unit["draws"]),
        n=unit["n"],
        epochs=unit["epochs"],
        device=device,
    )
