# SHIM: fresh_heads -> experiments.transfer.fresh_heads
from frhsic_core.paper.experiments.transfer.fresh_heads import (
    BATCH_SIZE,
    EPOCHS,
    HEADS,
    HIDDEN,
    LEARNING_RATE,
    SEED,
    SVM_ROWS,
    TREES,
    Prediction,
    forest_head,
    from_score,
    logistic_curve,
    neural_heads,
    svm_head,
)

__all__ = [
    "BATCH_SIZE",
    "EPOCHS",
    "HEADS",
    "HIDDEN",
    "LEARNING_RATE",
    "SEED",
    "SVM_ROWS",
    "TREES",
    "Prediction",
    "forest_head",
    "from_score",
    "logistic_curve",
    "neural_heads",
    "svm_head",
]
