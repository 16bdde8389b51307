# SHIM: main_table -> experiments.main_table
from frhsic_core.paper.experiments.main_table import (
    DEPENDENCE,
    MAIN_METHODS,
    PARETO_METHODS,
    areas_by_measure,
    beside_paper,
    comparisons,
    extremes,
    pareto_table,
    short_table,
)

__all__ = [
    "DEPENDENCE",
    "MAIN_METHODS",
    "PARETO_METHODS",
    "areas_by_measure",
    "beside_paper",
    "comparisons",
    "extremes",
    "pareto_table",
    "short_table",
]
