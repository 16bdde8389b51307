# SHIM: variants_best -> experiments.variants
from frhsic_core.paper.experiments.variants import (
    BEST,
    NARROW,
    RETUNED,
    UNSEEN,
    best_rows,
)
from frhsic_core.paper.experiments.variants import (
    plan_variants_best as plan,
)

__all__ = ["BEST", "NARROW", "RETUNED", "UNSEEN", "best_rows", "plan"]
