# SHIM: frhsic_core.paper.statements.coverage -> concentration (clopper_pearson), rates (loglog_slope)
"""Temporary alias."""

from frhsic_core.paper.statements.concentration import clopper_pearson  # noqa: F401
from frhsic_core.paper.statements.rates import loglog_slope  # noqa: F401
