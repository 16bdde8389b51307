"""Training of fair representations: FRHSIC and its rivals in one loop that trains a whole sweep at once.

:class:`Trainer` takes arrays, a penalty and a stack of λ and seeds. It returns a :class:`TrainedStack`, which encodes
and predicts. The estimators ``FairClassifier``, ``FairRegressor`` and ``FairEncoder`` follow
scikit-learn. Names load on first use.
"""

from __future__ import annotations

import importlib
import sys
import warnings
from types import ModuleType
from typing import TYPE_CHECKING, Any

_EXPORTS = {
    "bandwidth": ("EscapeWarning", "EveryBatch", "EveryEpochs", "FixedBandwidth", "MovingAverage", "ReferenceSchedule"),
    "estimators": (
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
    ),
    "history": ("History", "Progress", "progress_bar"),
    "penalties": ("ADV", "FREM", "FRHSIC", "LAFTR", "DCor", "MMDBinned", "Penalty", "RegGDP", "Unfair", "whiten"),
    "protocols": ("METHODS", "PROTOCOLS", "make_penalty"),
    "residualize": ("Residualizer",),
    "selection": ("LambdaChoice", "LambdaSelection", "choose_lambda", "select_lambda"),
    "stack": ("ModelStack", "StackedLinear", "StackedMLP", "TrainedStack"),
    "trainer": ("Trainer",),
}
_HOME = {name: module for module, names in _EXPORTS.items() for name in names}
_RENAMED = {"Residualiser": "Residualizer", "UnpenalisedWarning": "UnpenalizedWarning"}
_MOVED = {"RepresentationAudit": "frhsic_core.audit", "audit_representation": "frhsic_core.audit"}

__all__ = sorted(_HOME)


def __getattr__(name: str) -> Any:
    if name in _RENAMED:
        warnings.warn(f"{name} is now called {_RENAMED[name]}: use the new name.", DeprecationWarning, stacklevel=2)
        return __getattr__(_RENAMED[name])
    if name in _MOVED:
        warnings.warn(f"{name} is now in {_MOVED[name]}: import it from there.", DeprecationWarning, stacklevel=2)
        return getattr(importlib.import_module(_MOVED[name]), name)
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(importlib.import_module(f"{__name__}.{_HOME[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})


class _FormerModule(ModuleType):
    """A module that was merged into another one; a pickle of version 0.1 still finds its classes here."""

    def __init__(self, name: str, home: str) -> None:
        super().__init__(f"{__name__}.{name}", f"Merged into {__name__}.{home}.")
        self._home = f"{__name__}.{home}"

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return getattr(importlib.import_module(self._home), name)


# Pickled estimators name the modules of these classes: FairEncoder, LambdaChoice.
for _name, _home in (("fair_encoder", "estimators"), ("choice", "selection")):
    sys.modules[f"{__name__}.{_name}"] = _FormerModule(_name, _home)


if TYPE_CHECKING:
    from frhsic_core.learning.history import History as History
    from frhsic_core.learning.history import Progress as Progress
    from frhsic_core.learning.penalties import Penalty as Penalty
    from frhsic_core.learning.protocols import METHODS as METHODS
    from frhsic_core.learning.protocols import make_penalty as make_penalty
    from frhsic_core.learning.stack import TrainedStack as TrainedStack
    from frhsic_core.learning.trainer import Trainer as Trainer
