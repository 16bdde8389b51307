# SHIM: transfer -> experiments.transfer.tables
from frhsic_core.paper.experiments.transfer.tables import (
    CONVENTIONS,
    HEAD_NAMES,
    PAPER_LAMS,
    PAPER_METHODS,
    across_heads,
    authors_heads,
    by_head,
    own_and_fresh,
    paired_difference,
    places,
    preserving,
    spread_table,
)

__all__ = [
    "CONVENTIONS",
    "HEAD_NAMES",
    "PAPER_LAMS",
    "PAPER_METHODS",
    "across_heads",
    "authors_heads",
    "by_head",
    "own_and_fresh",
    "paired_difference",
    "places",
    "preserving",
    "spread_table",
]
