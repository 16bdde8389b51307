# SHIM: frhsic_core.learning.probes -> frhsic_core.audit.probes
"""Re-export the probes from their new home."""

from frhsic_core.audit.probes import linear_features, probe_r2, random_features

__all__ = ["linear_features", "probe_r2", "random_features"]
