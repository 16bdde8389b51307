# SHIM: synthetic -> experiments.synthetic_validation.tables
from frhsic_core.paper.experiments.synthetic_validation.tables import (
    BASE,
    CELL,
    GROUP,
    along_lambda,
    cell_table,
    compared_cells,
    dimension_steps,
    falling,
    is_constant,
)

__all__ = [
    "BASE",
    "CELL",
    "GROUP",
    "along_lambda",
    "cell_table",
    "compared_cells",
    "dimension_steps",
    "falling",
    "is_constant",
]
