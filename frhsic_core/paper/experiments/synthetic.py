# SHIM: synthetic -> experiments.synthetic_validation
from frhsic_core.paper.experiments.synthetic_validation import (
    ARMS,
    DIMENSION,
    DRAWS,
    LAMS,
    ROWS,
    SIGNALS,
)
from frhsic_core.paper.experiments.synthetic_validation import (
    measure_unit_synthetic as measure_unit,
)
from frhsic_core.paper.experiments.synthetic_validation import (
    plan_synthetic as plan,
)

__all__ = ["ARMS", "DIMENSION", "DRAWS", "LAMS", "ROWS", "SIGNALS", "measure_unit", "plan"]
