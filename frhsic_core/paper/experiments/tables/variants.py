# SHIM: variants -> experiments.variants.tables
from frhsic_core.paper.experiments.variants.tables import (
    LEVELS,
    MEASURES,
    all_rows,
    best,
    best_headline,
    factor_table,
    floored,
    left_out,
    level_tables,
    ranking,
    rivals_of,
    to_train,
    variant_areas,
)

__all__ = [
    "LEVELS",
    "MEASURES",
    "all_rows",
    "best",
    "best_headline",
    "factor_table",
    "floored",
    "left_out",
    "level_tables",
    "ranking",
    "rivals_of",
    "to_train",
    "variant_areas",
]
