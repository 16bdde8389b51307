# SHIM: paired -> experiments.paired_tests
from frhsic_core.paper.experiments.paired_tests import (
    TITLES,
    spread_and_pairs,
)

__all__ = ["TITLES", "spread_and_pairs"]
