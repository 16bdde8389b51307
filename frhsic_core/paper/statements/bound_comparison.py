# SHIM: frhsic_core.paper.statements.bound_comparison -> frhsic_core.paper.statements.sharper
"""Temporary alias."""

from frhsic_core.paper.statements.sharper import compare_bounds  # noqa: F401
