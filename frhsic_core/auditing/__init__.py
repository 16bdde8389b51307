"""Measure how strongly predictions, or a representation, depend on a sensitive attribute.

:func:`~frhsic_core.audit` audits predictions and writes a report; :func:`~frhsic_core.audit_representation` audits a
representation with measures that it was not trained on. The metrics have the arguments of scikit-learn and fairlearn.
Names load on first use.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

_HOME = {
    "Audit": "_results",
    "AttributeAudit": "_results",
    "RepresentationAudit": "_representation",
    "Verdict": "_results",
    "audit": "_predictions",
    "audit_representation": "_representation",
    "calibration_gap": "_metrics",
    "equal_opportunity_gap": "_metrics",
    "equalized_odds_gap": "_metrics",
    "gap_scorer": "_metrics",
    "gdp_score": "_metrics",
}

__all__ = sorted(_HOME)


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(importlib.import_module(f"{__name__}.{_HOME[name]}"), name)
    globals()[name] = value
    return value


if TYPE_CHECKING:
    from frhsic_core.auditing._metrics import calibration_gap as calibration_gap
    from frhsic_core.auditing._metrics import equal_opportunity_gap as equal_opportunity_gap
    from frhsic_core.auditing._metrics import equalized_odds_gap as equalized_odds_gap
    from frhsic_core.auditing._metrics import gap_scorer as gap_scorer
    from frhsic_core.auditing._metrics import gdp_score as gdp_score
    from frhsic_core.auditing._predictions import audit as audit
    from frhsic_core.auditing._representation import RepresentationAudit as RepresentationAudit
    from frhsic_core.auditing._representation import audit_representation as audit_representation
    from frhsic_core.auditing._results import AttributeAudit as AttributeAudit
    from frhsic_core.auditing._results import Audit as Audit
    from frhsic_core.auditing._results import Verdict as Verdict
