# SHIM: frhsic_core.paper.statements.any_head -> frhsic_core.paper.statements.gap_remarks
"""Temporary alias."""

from frhsic_core.paper.statements.gap_remarks import head_bound  # noqa: F401
