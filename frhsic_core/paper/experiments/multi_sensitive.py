# SHIM: multi_sensitive -> experiments.eo_and_several
from frhsic_core.paper.experiments.eo_and_several import (
    FORMS,
    GRIDS,
    PAIR,
)
from frhsic_core.paper.experiments.eo_and_several import (
    measure_multi_sensitive as measure,
)
from frhsic_core.paper.experiments.eo_and_several import (
    plan_multi_sensitive as plan,
)

__all__ = ["FORMS", "GRIDS", "PAIR", "measure", "plan"]
