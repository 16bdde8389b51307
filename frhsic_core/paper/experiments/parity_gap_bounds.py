"""Compare the bounds of Theorem 4.7 on the five datasets, with the features as Z.

Each unit draws samples of a dataset at random, scales their features to [0, 1] and averages the printed bound and its
sharper forms over twenty heads; see :func:`~frhsic_core.paper.statements.parity_gap.compare_bounds`.
"""

from __future__ import annotations

from typing import Any

from frhsic_core.paper.runs.plan import Study, units_of
from frhsic_core.registry import PAPER_DATASETS

ROWS = 1_500


def plan(preset: str) -> Study:
    """Return one unit for each dataset."""
    if preset == "smoke":
        units = units_of(dataset="synthetic", variant="text", rows=60)
        return Study("parity_gap_bounds_smoke", "parity_gap_bounds", units)
    return Study("parity_gap_bounds", "parity_gap_bounds", units_of(dataset=PAPER_DATASETS, variant="text", rows=ROWS))


def measure_unit(unit: dict[str, Any], device: str) -> list[dict[str, Any]]:
    """Return the bounds of one dataset, to six significant digits."""
    import torch

    from frhsic_core.data import load_dataset
    from frhsic_core.paper.statements.parity_gap import compare_bounds

    data = load_dataset(unit["dataset"], unit["variant"])
    drawn = torch.randperm(data.n, generator=torch.Generator().manual_seed(0))[: unit["rows"]].numpy()
    features = data.X[drawn]
    span = features.max(0) - features.min(0)
    span[span < 1e-12] = 1.0  # a constant feature becomes zero
    found = compare_bounds((features - features.min(0)) / span, data.s[drawn])
    numbers = {name: float(f"{value:.6g}") for name, value in found.items() if name not in ("rows", "kept")}
    return [{"kept": int(found["kept"]), **numbers}]
