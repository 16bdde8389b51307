"""Measure how strongly predictions, or a representation, depend on a sensitive attribute.

:func:`~frhsic_core.audit` audits predictions and writes a report;
:func:`~frhsic_core.audit_representation` audits a representation with measures that it was not
trained on. The metrics have the arguments of scikit-learn and fairlearn.
"""

from __future__ import annotations

from frhsic_core.auditing._gate import Verdict
from frhsic_core.auditing._metric import gdp_score
from frhsic_core.auditing._predictions import audit
from frhsic_core.auditing._report import Audit
from frhsic_core.auditing._representation import RepresentationAudit, audit_representation
from frhsic_core.auditing._results import AttributeAudit

__all__ = [
    "AttributeAudit",
    "Audit",
    "RepresentationAudit",
    "Verdict",
    "audit",
    "audit_representation",
    "gdp_score",
]
