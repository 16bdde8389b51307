# SHIM: measured -> experiments.runtime.tables, experiments.convergence, claims.settings
from frhsic_core.paper.claims.settings import (
    unit_setting,
)
from frhsic_core.paper.experiments.convergence import (
    printed_slope,
)
from frhsic_core.paper.experiments.runtime.tables import (
    DEVICES,
    LOOPS,
    PLAIN,
    cost_order,
    dimension_speed_up,
    epoch_order,
    epoch_seconds,
    frem_speed_up,
)

__all__ = [
    "DEVICES",
    "LOOPS",
    "PLAIN",
    "cost_order",
    "dimension_speed_up",
    "epoch_order",
    "epoch_seconds",
    "frem_speed_up",
    "printed_slope",
    "unit_setting",
]
