"""Remedies for any scikit-learn model: remove what predicts S before training, or adjust the scores afterwards.

:class:`~frhsic_core.AttributeEraser` and :class:`~frhsic_core.KernelEraser` change X and do not need S to predict.
:class:`~frhsic_core.AdjustedClassifier` and :class:`~frhsic_core.AdjustedRegressor` mostly do.
:func:`~frhsic_core.adjust_scores` needs scores and S only. :func:`~frhsic_core.compare_remedies` fits all of them and
the trained encoders on your own data.
"""

from __future__ import annotations

from frhsic_core.remedies.column_remover import ColumnRemover
from frhsic_core.remedies.comparison import compare_remedies
from frhsic_core.remedies.kernel_eraser import KernelEraser
from frhsic_core.remedies.leace import AttributeEraser
from frhsic_core.remedies.models import AdjustedClassifier, AdjustedRegressor
from frhsic_core.remedies.remedied import RemediedClassifier, RemediedModel, RemediedRegressor
from frhsic_core.remedies.result import RemedyComparison
from frhsic_core.remedies.scores import ScoreAdjuster, adjust_scores

__all__ = [
    "AdjustedClassifier",
    "AdjustedRegressor",
    "AttributeEraser",
    "ColumnRemover",
    "KernelEraser",
    "RemediedClassifier",
    "RemediedModel",
    "RemediedRegressor",
    "RemedyComparison",
    "ScoreAdjuster",
    "adjust_scores",
    "compare_remedies",
]
