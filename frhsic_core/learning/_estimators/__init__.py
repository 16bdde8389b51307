"""FRHSIC and its rivals as scikit-learn estimators, with their warnings."""

from __future__ import annotations

from frhsic_core.learning._estimators.fair import FairClassifier as FairClassifier
from frhsic_core.learning._estimators.fair import FairEncoder as FairEncoder
from frhsic_core.learning._estimators.fair import FairRegressor as FairRegressor
from frhsic_core.learning._estimators.warnings import FitWarning as FitWarning
from frhsic_core.learning._estimators.warnings import (
    MissingAttributeWarning as MissingAttributeWarning,
)
