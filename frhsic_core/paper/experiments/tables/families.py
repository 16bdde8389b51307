# SHIM: families -> experiments.paired_tests
from frhsic_core.paper.experiments.paired_tests import (
    CONVENTIONS,
    SUMMARIES,
    TOLERANCES,
    differences,
    equivalence,
    family,
    headline,
    main_family,
    main_rows,
    matched_dependence,
    per_split,
)

__all__ = [
    "CONVENTIONS",
    "SUMMARIES",
    "TOLERANCES",
    "differences",
    "equivalence",
    "family",
    "headline",
    "main_family",
    "main_rows",
    "matched_dependence",
    "per_split",
]
