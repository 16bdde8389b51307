# SHIM: frhsic_core.paper.statements.finite_attribute -> frhsic_core.paper.statements.decomposition
"""Temporary alias."""

from frhsic_core.paper.statements.decomposition import (  # noqa: F401
    binary_parity,
    discrete_lemma,
    exact_gdp,
    exact_squared_integral,
    fubini,
)
