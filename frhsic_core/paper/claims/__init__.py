"""The ledger: every number of the paper beside ours, with a verdict computed from data.

:mod:`~frhsic_core.paper.claims.verdicts` judges; :mod:`~frhsic_core.paper.claims.rules` has its rules,
:mod:`~frhsic_core.paper.claims.answers` the register of queries, and the other modules the queries themselves.
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
