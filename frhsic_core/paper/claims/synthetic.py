# SHIM: synthetic -> experiments.synthetic_validation.tables, experiments.bound_tightness.tables, claims.answers
from frhsic_core.paper.claims.answers import (
    one_run,
)
from frhsic_core.paper.experiments.bound_tightness.tables import (
    PRECISION,
    scaling_end,
    scaling_factor,
    tightness,
)
from frhsic_core.paper.experiments.synthetic_validation.tables import (
    COLUMNS,
    ablation_cell,
    synthetic_accuracy,
    synthetic_falls,
    synthetic_network,
)

__all__ = [
    "COLUMNS",
    "PRECISION",
    "ablation_cell",
    "one_run",
    "scaling_end",
    "scaling_factor",
    "synthetic_accuracy",
    "synthetic_falls",
    "synthetic_network",
    "tightness",
]
