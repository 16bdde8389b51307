"""The ledger: every number of the paper beside ours, with a verdict computed from data.

:mod:`~frhsic_core.paper.claims.rules` states the rule and the differences that matter,
:mod:`~frhsic_core.paper.claims.verdicts` applies them to every line, and
:mod:`~frhsic_core.paper.claims.simulated` tests the rule on papers whose truth is known.
:mod:`~frhsic_core.paper.claims.answers` has the register of queries. An experiment answers the queries on its own
results (:mod:`frhsic_core.paper.experiments`); those on settings and on stored data stand here.
"""

from frhsic_core.paper.claims.rules import RELEVANT
from frhsic_core.paper.claims.verdicts import (
    CONTRADICTED,
    KINDS,
    MEASURED,
    PAPER,
    VERDICTS,
    claims,
    counts,
    heading,
    headline,
    held_out,
    judge,
    ledger,
)

__all__ = [
    "CONTRADICTED", "KINDS", "MEASURED", "PAPER", "RELEVANT", "VERDICTS", "claims", "counts", "heading", "headline",
    "held_out", "judge", "ledger",
]  # fmt: skip
