# SHIM: frhsic_core.paper.statements.bandwidth_scaling -> frhsic_core.paper.statements.spectral
"""Temporary alias."""

from frhsic_core.paper.statements.spectral import (  # noqa: F401
    centred_eigenvalues,
    enclosed_eigenvalues,
    kept_eigenvalue,
    limits,
    power_law,
)
