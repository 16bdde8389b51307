# SHIM: ablation -> experiments.synthetic_validation
from frhsic_core.paper.experiments.synthetic_validation import (
    ABLATION_ARMS as ARMS,
)
from frhsic_core.paper.experiments.synthetic_validation import (
    ABLATION_LAM as LAM,
)
from frhsic_core.paper.experiments.synthetic_validation import (
    DIMENSION as DEFAULT_DIMENSION,
)
from frhsic_core.paper.experiments.synthetic_validation import (
    DIMENSIONS,
    KERNELS,
    cells,
)
from frhsic_core.paper.experiments.synthetic_validation import (
    measure_unit_ablation as measure_unit,
)
from frhsic_core.paper.experiments.synthetic_validation import (
    plan_ablation as plan,
)

__all__ = ["ARMS", "DEFAULT_DIMENSION", "DIMENSIONS", "KERNELS", "LAM", "cells", "measure_unit", "plan"]
