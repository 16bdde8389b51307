# SHIM: frhsic_core.joint.centring -> frhsic_core.joint.contraction
"""Re-export centering from its new home."""

from frhsic_core.joint.contraction import center, contraction_weights, require_estimator

centre = center  # SHIM

__all__ = ["centre", "contraction_weights", "require_estimator"]
