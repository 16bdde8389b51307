"""The ledger: every number of the paper beside ours, with a verdict computed from data.

:mod:`~frhsic_core.experiments.ledger.verdicts` judges; :mod:`~frhsic_core.experiments.ledger.rules` has its rules,
:mod:`~frhsic_core.experiments.ledger.answers` the register of queries, and the other modules the queries themselves.
"""

from frhsic_core.experiments.ledger.verdicts import (
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
