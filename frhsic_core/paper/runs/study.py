# SHIM: frhsic_core.paper.runs.study -> frhsic_core.paper.runs.plan, store, runner
"""Keep the old names of studies until their importers are rewritten."""

from frhsic_core.paper.runs.plan import Study, units_of
from frhsic_core.paper.runs.runner import run_experiment as run_study
from frhsic_core.paper.runs.store import ResultStore as StudyStore

__all__ = ["Study", "StudyStore", "run_study", "units_of"]
