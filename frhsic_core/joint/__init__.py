"""The joint route: one discrepancy between P(Z, S) and P(Z) ⊗ P(S)."""

from __future__ import annotations

from frhsic_core.joint.given import conditional_hsic
from frhsic_core.joint.hsic import HSICLoss, distance_correlation, hsic, normalized_hsic
from frhsic_core.joint.independence.decision import IndependenceTest, hsic_test
from frhsic_core.joint.information import mutual_information
from frhsic_core.joint.operator_norms import coco, khgr

__all__ = [
    "HSICLoss",
    "IndependenceTest",
    "coco",
    "conditional_hsic",
    "distance_correlation",
    "hsic",
    "hsic_test",
    "khgr",
    "mutual_information",
    "normalized_hsic",
]
