# SHIM: frhsic_core.paper.statements.encoder_suprema -> frhsic_core.paper.statements.uniform_coverage
"""Temporary alias."""

from frhsic_core.paper.statements.uniform_coverage import any_class, linear_class, mlp_class, two_column_inputs  # noqa: F401
