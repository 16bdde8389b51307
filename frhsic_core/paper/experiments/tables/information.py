# SHIM: information -> experiments.mutual_information
from frhsic_core.paper.experiments.mutual_information import (
    ESTIMATES,
    above_zero,
    at_matched_point,
    information_gap,
    rank_agreement,
)

__all__ = ["ESTIMATES", "above_zero", "at_matched_point", "information_gap", "rank_agreement"]
