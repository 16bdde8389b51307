# SHIM: measured -> experiments.runtime.tables, experiments.convergence, experiments.high_dimensional
from frhsic_core.paper.experiments.convergence import (
    mean_slope,
    slope_interval,
)
from frhsic_core.paper.experiments.high_dimensional import (
    best_smoothing,
)
from frhsic_core.paper.experiments.runtime.tables import (
    BARS,
    Case,
    cost_exponents,
    counted_exponent,
    loglog_exponent,
    seconds_table,
    speed_up,
)

__all__ = [
    "BARS",
    "Case",
    "best_smoothing",
    "cost_exponents",
    "counted_exponent",
    "loglog_exponent",
    "mean_slope",
    "seconds_table",
    "slope_interval",
    "speed_up",
]
