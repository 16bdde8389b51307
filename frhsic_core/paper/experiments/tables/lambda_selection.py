# SHIM: lambda_selection -> experiments.lambda_selection.tables
from frhsic_core.paper.experiments.lambda_selection.tables import (
    KEYS,
    acceptance,
    accepted,
    area_chosen,
    counted,
    matched_chosen,
    optimism,
    selected,
    summary_of,
    sweep_pair,
)

__all__ = [
    "KEYS",
    "acceptance",
    "accepted",
    "area_chosen",
    "counted",
    "matched_chosen",
    "optimism",
    "selected",
    "summary_of",
    "sweep_pair",
]
