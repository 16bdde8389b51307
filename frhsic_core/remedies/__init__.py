"""Remedies for any scikit-learn model: remove what predicts S before training, or adjust the scores afterwards.

:class:`~frhsic_core.AttributeEraser` and :class:`~frhsic_core.KernelEraser` change X and do not need S to predict.
:class:`~frhsic_core.CorrelationRemover`, :class:`~frhsic_core.AdjustedClassifier` and
:class:`~frhsic_core.AdjustedRegressor` do need it. :func:`~frhsic_core.compare_remedies` fits all of them and the
trained encoders on your own data. Names load on first use.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

_EXPORTS = {
    "adjustment": ("AdjustedClassifier", "AdjustedRegressor"),
    "comparison": ("RemedyComparison", "compare_remedies"),
    "erasure": ("AttributeEraser", "CorrelationRemover", "KernelEraser"),
    "frontier": ("AttainableFrontier", "attainable_frontier"),
}
_HOME = {name: module for module, names in _EXPORTS.items() for name in names}

__all__ = sorted(_HOME)


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(importlib.import_module(f"{__name__}.{_HOME[name]}"), name)
    globals()[name] = value
    return value


if TYPE_CHECKING:
    from frhsic_core.remedies.adjustment import AdjustedClassifier as AdjustedClassifier
    from frhsic_core.remedies.adjustment import AdjustedRegressor as AdjustedRegressor
    from frhsic_core.remedies.comparison import RemedyComparison as RemedyComparison
    from frhsic_core.remedies.comparison import compare_remedies as compare_remedies
    from frhsic_core.remedies.erasure import AttributeEraser as AttributeEraser
    from frhsic_core.remedies.erasure import CorrelationRemover as CorrelationRemover
    from frhsic_core.remedies.erasure import KernelEraser as KernelEraser
    from frhsic_core.remedies.frontier import AttainableFrontier as AttainableFrontier
    from frhsic_core.remedies.frontier import attainable_frontier as attainable_frontier
