# SHIM: bandwidth_scaling -> experiments.bound_tightness
from frhsic_core.paper.experiments.bound_tightness import (
    BITS,
    CUTOFF,
    SIGMAS,
    WHOLE,
    exact_matrix,
    float_eigenvalues,
    rational_values,
    smallest_enclosed,
)
from frhsic_core.paper.experiments.bound_tightness import (
    SCALING_DATASETS as DATASETS,
)
from frhsic_core.paper.experiments.bound_tightness import (
    SUBSAMPLE as ROWS,
)
from frhsic_core.paper.experiments.bound_tightness import (
    measure_unit_bandwidth_scaling as measure_unit,
)
from frhsic_core.paper.experiments.bound_tightness import (
    plan_bandwidth_scaling as plan,
)

__all__ = [
    "BITS",
    "CUTOFF",
    "DATASETS",
    "ROWS",
    "SIGMAS",
    "WHOLE",
    "exact_matrix",
    "float_eigenvalues",
    "measure_unit",
    "plan",
    "rational_values",
    "smallest_enclosed",
]
