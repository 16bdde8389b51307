"""A certificate for every statement of the paper: what was claimed, both sides, the slack, the verdict.

One module per group of statements; each keeps a table ``CHECKS`` that :mod:`frhsic_core.paper.statements.registry`
collects and ``frhsic certify`` runs.
"""

from frhsic_core.paper.statements.certificate import Certificate, equality, inequality, strict_inequality

__all__ = ["Certificate", "equality", "inequality", "strict_inequality"]
