"""Measure how strongly predictions, or a representation, depend on a sensitive attribute.

:func:`audit` audits predictions and writes a report; :func:`~frhsic_core.audit_representation` audits a representation
with measures that it was not trained on. The module itself can be called: ``from frhsic_core import audit`` and
``audit(y_pred, sensitive_features=age)`` is the same as ``frhsic_core.audit.audit(...)``. Names load on first use.
"""

from __future__ import annotations

import importlib
import sys
from types import ModuleType
from typing import TYPE_CHECKING, Any

_HOME = {
    "Audit": "results",
    "RepresentationAudit": "representation",
    "audit": "predictions",
    "audit_representation": "representation",
    "calibration_gap": "metrics",
    "equal_opportunity_gap": "metrics",
    "equalized_odds_gap": "metrics",
    "parity_gap": "metrics",
    "parity_scorer": "metrics",
}

__all__ = sorted(_HOME)


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(importlib.import_module(f"{__name__}.{_HOME[name]}"), name)
    globals()[name] = value
    return value


class _CallableModule(ModuleType):
    """A module that audits when it is called.

    The package and its most important function have one name. Both ``frhsic_core.audit.audit_representation`` and
    ``frhsic_core.audit(...)`` are documented, and a module cannot be replaced by a function without breaking the first.
    """

    def __call__(self, y_pred: Any, **options: Any) -> Any:
        """Audit predictions; see :func:`frhsic_core.audit.audit`."""
        return self.audit(y_pred, **options)

    @property
    def __signature__(self) -> Any:
        import inspect

        return inspect.signature(self.audit)


sys.modules[__name__].__class__ = _CallableModule


if TYPE_CHECKING:
    from frhsic_core.audit.metrics import calibration_gap as calibration_gap
    from frhsic_core.audit.metrics import equal_opportunity_gap as equal_opportunity_gap
    from frhsic_core.audit.metrics import equalized_odds_gap as equalized_odds_gap
    from frhsic_core.audit.metrics import parity_gap as parity_gap
    from frhsic_core.audit.metrics import parity_scorer as parity_scorer
    from frhsic_core.audit.predictions import audit as audit
    from frhsic_core.audit.representation import RepresentationAudit as RepresentationAudit
    from frhsic_core.audit.representation import audit_representation as audit_representation
    from frhsic_core.audit.results import Audit as Audit
