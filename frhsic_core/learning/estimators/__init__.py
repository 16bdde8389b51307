"""FRHSIC and its rivals as scikit-learn estimators, with their warnings."""

from __future__ import annotations

from frhsic_core.learning.estimators.fair import FairClassifier as FairClassifier
from frhsic_core.learning.estimators.fair import FairEncoder as FairEncoder
from frhsic_core.learning.estimators.fair import FairRegressor as FairRegressor
from frhsic_core.learning.estimators.warnings import ConstantPredictionWarning as ConstantPredictionWarning
from frhsic_core.learning.estimators.warnings import InterruptedWarning as InterruptedWarning
from frhsic_core.learning.estimators.warnings import MissingAttributeWarning as MissingAttributeWarning
from frhsic_core.learning.estimators.warnings import NoGainWarning as NoGainWarning
from frhsic_core.learning.estimators.warnings import OutlierWarning as OutlierWarning
from frhsic_core.learning.estimators.warnings import PositiveClassWarning as PositiveClassWarning
from frhsic_core.learning.estimators.warnings import SmallBatchWarning as SmallBatchWarning
from frhsic_core.learning.estimators.warnings import UndertrainedWarning as UndertrainedWarning
from frhsic_core.learning.estimators.warnings import UnmetRuleWarning as UnmetRuleWarning
from frhsic_core.learning.estimators.warnings import UnpenalizedWarning as UnpenalizedWarning
