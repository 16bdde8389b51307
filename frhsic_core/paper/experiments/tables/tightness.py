# SHIM: tightness -> experiments.bound_tightness.tables
from frhsic_core.paper.experiments.bound_tightness.tables import (
    GROUP,
    TRIVIAL,
    bound_curves,
    head_table,
    scaling_table,
    slopes,
    tightness_table,
    with_bounds,
)

__all__ = [
    "GROUP",
    "TRIVIAL",
    "bound_curves",
    "head_table",
    "scaling_table",
    "slopes",
    "tightness_table",
    "with_bounds",
]
