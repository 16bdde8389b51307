# SHIM: arms -> experiments.eo_and_several.tables, experiments.lambda_selection.tables, claims.settings
from frhsic_core.paper.claims.settings import (
    PRESET_OF,
    plan_fact,
)
from frhsic_core.paper.experiments.eo_and_several.tables import (
    ESCAPE,
    arm_not_worse,
    arm_point,
    attributes_fall,
)
from frhsic_core.paper.experiments.lambda_selection.tables import (
    rejects_everywhere,
    selected_end,
    selected_keeps,
    selection_gdp_near_zero,
)

__all__ = [
    "ESCAPE",
    "PRESET_OF",
    "arm_not_worse",
    "arm_point",
    "attributes_fall",
    "plan_fact",
    "rejects_everywhere",
    "selected_end",
    "selected_keeps",
    "selection_gdp_near_zero",
]
