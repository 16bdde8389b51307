# SHIM: frhsic_core.paper.statements.complexity -> frhsic_core.paper.statements.concentration
"""Temporary alias."""

from frhsic_core.paper.statements.concentration import as_printed, linear_complexity, linear_complexity_bound  # noqa: F401
