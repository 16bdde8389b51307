# SHIM: frhsic_core.learning.penalties.gram -> frhsic_core.joint.contraction
"""Re-export terms with a known gradient from their new home."""

from frhsic_core.joint.contraction import GradientTerm

Pull = GradientTerm  # SHIM

__all__ = ["Pull"]
