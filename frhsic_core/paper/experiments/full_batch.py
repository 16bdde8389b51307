# SHIM: full_batch -> experiments.runtime.plain_forms
from frhsic_core.paper.experiments.runtime.plain_forms import (
    ANCHORS,
    FORMS,
    PART,
    SMOOTHING,
    WIDTH,
    OperationCount,
    count_operations,
    time_evaluation,
)

__all__ = ["ANCHORS", "FORMS", "PART", "SMOOTHING", "WIDTH", "OperationCount", "count_operations", "time_evaluation"]
