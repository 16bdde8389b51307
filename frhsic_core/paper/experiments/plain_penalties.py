# SHIM: plain_penalties -> experiments.runtime.plain_forms
from frhsic_core.paper.experiments.runtime.plain_forms import (
    LoopFREM,
    TraceFRHSIC,
    loop_eipm,
    plain_gram,
    trace_hsic,
)

__all__ = ["LoopFREM", "TraceFRHSIC", "loop_eipm", "plain_gram", "trace_hsic"]
