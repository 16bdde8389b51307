# SHIM: equal_opportunity -> experiments.eo_and_several
from frhsic_core.paper.experiments.eo_and_several import (
    ARMS,
    DATASETS,
    GRIDS,
    TEXT_ARMS,
    live_arms,
    positives_in,
)
from frhsic_core.paper.experiments.eo_and_several import (
    measure_equal_opportunity as measure,
)
from frhsic_core.paper.experiments.eo_and_several import (
    plan_equal_opportunity as plan,
)

__all__ = ["ARMS", "DATASETS", "GRIDS", "TEXT_ARMS", "live_arms", "measure", "plan", "positives_in"]
