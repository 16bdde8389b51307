"""The ledger: every number of the paper beside ours, with a verdict computed from data.

:mod:`~frhsic_core.paper.claims.verdicts` computes the verdicts, :mod:`~frhsic_core.paper.claims.rules` has the rules
that compare two values, and :mod:`~frhsic_core.paper.claims.answers` the register of queries. An experiment answers the
queries on its own results (:mod:`frhsic_core.paper.experiments`); those on settings and on stored data stand here.
"""

from frhsic_core.paper.claims.verdicts import (
    KINDS,
    PAPER,
    VERDICTS,
    calibration,
    claims,
    expected_false,
    heading,
    judge,
    ledger,
)

__all__ = ["KINDS", "PAPER", "VERDICTS", "calibration", "claims", "expected_false", "heading", "judge", "ledger"]
