# SHIM: lambda_tests -> experiments.lambda_selection.critical_values
from frhsic_core.paper.experiments.lambda_selection.critical_values import (
    ALPHA,
    BANDWIDTH_ROWS,
    TESTS,
    permuted_statistics,
    released_moments,
    released_threshold,
    thresholds,
)

__all__ = [
    "ALPHA",
    "BANDWIDTH_ROWS",
    "TESTS",
    "permuted_statistics",
    "released_moments",
    "released_threshold",
    "thresholds",
]
