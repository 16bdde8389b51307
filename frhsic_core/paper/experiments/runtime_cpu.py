"""The CPU part of :mod:`frhsic_core.paper.experiments.runtime`: the same cases, eagerly, into the same table."""

from __future__ import annotations

from frhsic_core.paper.experiments import runtime
from frhsic_core.paper.runs.study import Study

__all__ = ["plan"]


def plan(preset: str) -> Study:
    """Return the units that are timed on the CPU, one thread; run it on a quiet machine."""
    if preset == "smoke":
        return runtime.plan(preset)
    return Study("runtime", "runtime", runtime.units_for("cpu", modes=("eager",)))
