# SHIM: minority -> experiments.variants
from frhsic_core.paper.experiments.variants import (
    CELLS,
    FEWEST,
    RARE,
    cell_statistics,
)
from frhsic_core.paper.experiments.variants import (
    measure_minority as measure,
)
from frhsic_core.paper.experiments.variants import (
    plan_minority as plan,
)

__all__ = ["CELLS", "FEWEST", "RARE", "cell_statistics", "measure", "plan"]
