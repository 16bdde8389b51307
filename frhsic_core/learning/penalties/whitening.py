# SHIM: frhsic_core.learning.penalties.whitening -> frhsic_core.learning.penalties.base
"""Re-export whitening from its new home."""

from frhsic_core.learning.penalties.base import RIDGE, whiten

__all__ = ["RIDGE", "whiten"]
