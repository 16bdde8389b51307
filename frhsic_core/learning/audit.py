# SHIM: frhsic_core.learning.audit -> frhsic_core.audit
"""Re-export the audit of a representation from its new home."""

from frhsic_core.audit.representation import RepresentationAudit, audit_representation

__all__ = ["RepresentationAudit", "audit_representation"]
