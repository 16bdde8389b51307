# SHIM: drawn -> experiments.synthetic_validation
from frhsic_core.paper.experiments.synthetic_validation import (
    FIRST_DRAW,
    TRAIN_SHARE,
    Arm,
    drawn_splits,
    train_draws,
)

__all__ = ["FIRST_DRAW", "TRAIN_SHARE", "Arm", "drawn_splits", "train_draws"]
