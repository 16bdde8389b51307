# SHIM: results -> experiments.main_table, claims.answers, experiments.paired_tests
from frhsic_core.paper.claims.answers import (
    DRAWS,
    PROTOCOLS,
    RUNS,
    WIDTH,
    data_note,
    predicted,
    weights,
)
from frhsic_core.paper.claims.answers import (
    FULL_GRID as GRID,
)
from frhsic_core.paper.experiments.main_table import (
    area,
    area_gap,
    area_rank,
    frontiers,
    matched,
    matched_draws,
    middle_ranks,
    no_area,
    no_matched,
    point,
)
from frhsic_core.paper.experiments.paired_tests import (
    FIVE_RANGE,
)

__all__ = [
    "DRAWS",
    "FIVE_RANGE",
    "GRID",
    "PROTOCOLS",
    "RUNS",
    "WIDTH",
    "area",
    "area_gap",
    "area_rank",
    "data_note",
    "frontiers",
    "matched",
    "matched_draws",
    "middle_ranks",
    "no_area",
    "no_matched",
    "point",
    "predicted",
    "weights",
]
