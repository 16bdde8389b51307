# SHIM: lambda_levels -> experiments.lambda_selection
from frhsic_core.paper.experiments.lambda_selection import (
    DIMENSIONS,
    DRAWS,
)
from frhsic_core.paper.experiments.lambda_selection import (
    measure_unit_lambda_levels as measure_unit,
)
from frhsic_core.paper.experiments.lambda_selection import (
    plan_lambda_levels as plan,
)

__all__ = ["DIMENSIONS", "DRAWS", "measure_unit", "plan"]
