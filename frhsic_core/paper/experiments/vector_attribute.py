# SHIM: vector_attribute -> experiments.high_dimensional.vector_attribute
from frhsic_core.paper.experiments.high_dimensional.vector_attribute import (
    RANK,
    SIGMA_Z,
    SPREAD,
    eipm_values,
    errors,
    hsic_values,
    leave_one_out,
    median_distance,
    power,
    prepared,
    sample,
    silverman,
    truth,
)

__all__ = [
    "RANK",
    "SIGMA_Z",
    "SPREAD",
    "eipm_values",
    "errors",
    "hsic_values",
    "leave_one_out",
    "median_distance",
    "power",
    "prepared",
    "sample",
    "silverman",
    "truth",
]
