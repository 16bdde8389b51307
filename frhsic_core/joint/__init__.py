"""The joint route: one discrepancy between P(Z, S) and P(Z) ⊗ P(S)."""

from frhsic_core.joint.centring import centre, contraction_weights
from frhsic_core.joint.gram import product_kernel, resolve_kernel
from frhsic_core.joint.hsic import contract, hsic, normalized_hsic
from frhsic_core.joint.loss import HSICLoss
from frhsic_core.joint.streaming import streaming_hsic

__all__ = [
    "HSICLoss",
    "centre",
    "contract",
    "contraction_weights",
    "hsic",
    "normalized_hsic",
    "product_kernel",
    "resolve_kernel",
    "streaming_hsic",
]
