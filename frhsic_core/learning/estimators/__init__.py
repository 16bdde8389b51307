"""FRHSIC and its rivals as scikit-learn estimators, with their warnings."""

from __future__ import annotations

from typing import Any
from warnings import warn  # by name, because the package has a submodule called warnings

from frhsic_core.learning.estimators.fair import FairClassifier, FairEncoder, FairRegressor
from frhsic_core.learning.estimators.warnings import (
    ConstantPredictionWarning,
    InterruptedWarning,
    MissingAttributeWarning,
    NoGainWarning,
    OutlierWarning,
    PositiveClassWarning,
    SmallBatchWarning,
    UndertrainedWarning,
    UnmetRuleWarning,
    UnpenalizedWarning,
)

__all__ = [
    "ConstantPredictionWarning",
    "FairClassifier",
    "FairEncoder",
    "FairRegressor",
    "InterruptedWarning",
    "MissingAttributeWarning",
    "NoGainWarning",
    "OutlierWarning",
    "PositiveClassWarning",
    "SmallBatchWarning",
    "UndertrainedWarning",
    "UnmetRuleWarning",
    "UnpenalizedWarning",
]


def __getattr__(name: str) -> Any:
    if name == "UnpenalisedWarning":
        warn("UnpenalisedWarning is now called UnpenalizedWarning: use the new name.", DeprecationWarning, stacklevel=2)
        return UnpenalizedWarning
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
