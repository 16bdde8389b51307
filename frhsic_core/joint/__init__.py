"""The joint route: one discrepancy between P(Z, S) and P(Z) ⊗ P(S)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from frhsic_core._lazy import import_for
from frhsic_core.joint.given import conditional_hsic
from frhsic_core.joint.hsic import distance_correlation, hsic, normalized_hsic
from frhsic_core.joint.independence.decision import IndependenceTest, hsic_test
from frhsic_core.joint.information import mutual_information
from frhsic_core.joint.operator_norms import coco, khgr

if TYPE_CHECKING:
    from frhsic_core.joint.loss import HSICLoss

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


def __getattr__(name: str) -> Any:
    """Import the loss on first use: it is a module of torch, which nothing else here needs."""
    if name != "HSICLoss":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return import_for("HSICLoss", "frhsic_core.joint.loss").HSICLoss
