"""The joint route: one discrepancy between P(Z, S) and P(Z) ⊗ P(S)."""

from __future__ import annotations

import warnings
from typing import Any

from frhsic_core.joint.approximations import nystrom_hsic, random_feature_hsic
from frhsic_core.joint.coco import centered_eigensystem, coco, cross_covariance_spectrum
from frhsic_core.joint.contraction import center, contract, contraction_weights
from frhsic_core.joint.distance import distance_correlation, distance_covariance
from frhsic_core.joint.hsic import HSICLoss, hsic, normalized_hsic
from frhsic_core.joint.hsic_given import conditional_hsic
from frhsic_core.joint.independence import IndependenceTest, hsic_test
from frhsic_core.joint.information import mutual_information
from frhsic_core.joint.khgr import khgr
from frhsic_core.joint.streaming import streaming_hsic
from frhsic_core.kernels import product_kernel, resolve_kernel

__all__ = [
    "HSICLoss",
    "IndependenceTest",
    "center",
    "centered_eigensystem",
    "coco",
    "conditional_hsic",
    "contract",
    "contraction_weights",
    "cross_covariance_spectrum",
    "distance_correlation",
    "distance_covariance",
    "hsic",
    "hsic_test",
    "khgr",
    "mutual_information",
    "normalized_hsic",
    "nystrom_hsic",
    "product_kernel",
    "random_feature_hsic",
    "resolve_kernel",
    "streaming_hsic",
]

_OLD_NAMES = {"centre": "center", "centred_eigensystem": "centered_eigensystem"}


def __getattr__(name: str) -> Any:
    if name not in _OLD_NAMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    new = _OLD_NAMES[name]
    warnings.warn(f"{name} is now called {new}: use the new name.", DeprecationWarning, stacklevel=2)
    return globals()[new]
