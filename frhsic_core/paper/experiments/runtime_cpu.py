# SHIM: runtime_cpu -> experiments.runtime
from frhsic_core.paper.experiments.runtime import (
    plan_runtime_cpu as plan,
)

__all__ = ["plan"]
