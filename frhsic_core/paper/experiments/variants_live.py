# SHIM: variants_live -> experiments.variants
from frhsic_core.paper.experiments.variants import (
    SHOWN,
)
from frhsic_core.paper.experiments.variants import (
    plan_variants_live as plan,
)

__all__ = ["SHOWN", "plan"]
