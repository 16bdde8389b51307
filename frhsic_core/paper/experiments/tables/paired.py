# SHIM: paired -> experiments.shared.paired
from frhsic_core.paper.experiments.shared.paired import (
    Paired,
    compare,
    corrected_t,
    holm,
    median_interval,
    rank_biserial,
    signed_rank,
)

__all__ = ["Paired", "compare", "corrected_t", "holm", "median_interval", "rank_biserial", "signed_rank"]
