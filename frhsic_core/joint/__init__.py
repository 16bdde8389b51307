"""The joint route: one discrepancy between P(Z, S) and P(Z) ⊗ P(S)."""

from frhsic_core.joint.approximations import nystrom_hsic, random_feature_hsic
from frhsic_core.joint.centring import centre, contraction_weights
from frhsic_core.joint.coco import centred_eigensystem, coco, cross_covariance_spectrum
from frhsic_core.joint.distance import distance_correlation, distance_covariance
from frhsic_core.joint.gram import product_kernel, resolve_kernel
from frhsic_core.joint.hsic import contract, hsic, normalized_hsic
from frhsic_core.joint.independence import IndependenceTest, hsic_test
from frhsic_core.joint.information import mutual_information
from frhsic_core.joint.khgr import khgr
from frhsic_core.joint.loss import HSICLoss
from frhsic_core.joint.streaming import streaming_hsic

__all__ = [
    "HSICLoss",
    "IndependenceTest",
    "centre",
    "centred_eigensystem",
    "coco",
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
