"""Measure how strongly a representation depends on S, with measures that it was not trained on.

Names load on first use.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

__all__ = ["RepresentationAudit", "audit_representation"]


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(importlib.import_module(f"{__name__}.representation"), name)
    globals()[name] = value
    return value


if TYPE_CHECKING:
    from frhsic_core.audit.representation import RepresentationAudit as RepresentationAudit
    from frhsic_core.audit.representation import audit_representation as audit_representation
