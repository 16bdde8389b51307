"""Training of fair representations: FRHSIC and its rivals in one loop that trains a whole sweep at once.

:class:`Trainer` takes data, a penalty, a stack of λ and seeds, and :class:`TrainingSettings`. It returns a
:class:`TrainedStack`, which encodes and predicts. The estimators ``FairClassifier``, ``FairRegressor`` and
``FairEncoder`` follow scikit-learn. Names load on first use.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

_EXPORTS = {
    "_data": ("TrainingData",),
    "_estimators": ("FairClassifier", "FairEncoder", "FairRegressor", "FitWarning", "MissingAttributeWarning"),
    "_penalties": (
        "ADV", "FREM", "FRHSIC", "LAFTR", "METHODS", "PROTOCOLS", "DCor", "MMDBinned", "Penalty", "RegGDP", "Unfair",
        "make_penalty", "whiten",
    ),
    "_penalties.base": ("BandwidthPolicy", "EscapeWarning"),
    "_selection": ("LambdaChoice", "LambdaSelection", "choose_lambda", "select_lambda", "validation_table"),
    "_stack": ("ModelStack", "StackedLinear", "StackedMLP", "TrainedStack"),
    "_trainer": ("Progress", "Trainer", "TrainingSettings"),
}  # fmt: skip
_HOME = {name: module for module, names in _EXPORTS.items() for name in names}

__all__ = sorted(_HOME)


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(importlib.import_module(f"{__name__}.{_HOME[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})


if TYPE_CHECKING:
    from frhsic_core.learning._penalties import METHODS as METHODS
    from frhsic_core.learning._penalties import Penalty as Penalty
    from frhsic_core.learning._penalties import make_penalty as make_penalty
    from frhsic_core.learning._stack import TrainedStack as TrainedStack
    from frhsic_core.learning._trainer import Progress as Progress
    from frhsic_core.learning._trainer import Trainer as Trainer
