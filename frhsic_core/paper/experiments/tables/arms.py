# SHIM: arms -> experiments.eo_and_several.tables
from frhsic_core.paper.experiments.eo_and_several.tables import (
    arm_rows,
    compare_arms,
    compare_matched,
    fall_shares,
    matched_arms,
    order_share,
    printed_arms,
    restart_spread,
    values_at,
)

__all__ = [
    "arm_rows",
    "compare_arms",
    "compare_matched",
    "fall_shares",
    "matched_arms",
    "order_share",
    "printed_arms",
    "restart_spread",
    "values_at",
]
