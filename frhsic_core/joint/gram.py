# SHIM: frhsic_core.joint.gram -> frhsic_core.kernels
"""Re-export the choice of a kernel from its new home."""

from frhsic_core.kernels import product_kernel, resolve_kernel

__all__ = ["product_kernel", "resolve_kernel"]
