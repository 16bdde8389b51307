# SHIM: frhsic_core.paper.runs.sweep -> frhsic_core.paper.runs.runner
"""Keep the old name of the runner until its importers are rewritten."""

import sys

from frhsic_core.paper.runs import runner
from frhsic_core.paper.runs.jobs import OutOfTime, Samples, run_job
from frhsic_core.paper.runs.runner import Report, run_experiment

__all__ = ["OutOfTime", "Report", "Samples", "run_experiment", "run_job"]
sys.modules[__name__] = runner  # so that a test which replaces sweep.run_job replaces the one that is used
