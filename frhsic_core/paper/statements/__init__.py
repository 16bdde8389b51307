"""Certificates for the statements of the paper: the claim, both sides, the slack and the verdict.

Each module checks a group of statements. :mod:`frhsic_core.paper.statements.registry` collects the
checks, and ``frhsic certify`` runs them.
"""

from frhsic_core.paper.statements.certificate import (
    Certificate,
    equality,
    inequality,
    strict_inequality,
)
from frhsic_core.paper.statements.registry import check

__all__ = ["Certificate", "check", "equality", "inequality", "strict_inequality"]
