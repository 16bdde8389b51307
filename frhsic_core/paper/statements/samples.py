# SHIM: frhsic_core.paper.statements.samples -> frhsic_core.paper.statements.search
"""Temporary alias."""

from frhsic_core.paper.statements.search import worst_excess  # noqa: F401
