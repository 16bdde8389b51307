# SHIM: pareto -> experiments.shared.pareto
from frhsic_core.paper.experiments.shared.pareto import (
    BAND,
    GRID,
    Frontiers,
    UnequalGrids,
    matched_index,
    naup,
    on_common_grid,
)

__all__ = ["BAND", "GRID", "Frontiers", "UnequalGrids", "matched_index", "naup", "on_common_grid"]
