# SHIM: frhsic_core.paper.statements.null_law -> frhsic_core.paper.statements.rates
"""Temporary alias."""

from frhsic_core.paper.statements.rates import CHECKS, null_mean  # noqa: F401
