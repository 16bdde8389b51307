"""The ledger: every number of the paper beside ours, with a verdict computed from data.

:mod:`~frhsic_core.paper.claims.verdicts` computes the verdicts, :mod:`~frhsic_core.paper.claims.rules` has the rules
that compare two values, :mod:`~frhsic_core.paper.claims.relevance` the differences that matter, and
:mod:`~frhsic_core.paper.claims.answers` the register of queries. An experiment answers the
queries on its own results (:mod:`frhsic_core.paper.experiments`); those on settings and on stored data stand here.
"""

from frhsic_core.paper.claims.answers import CHECKED, IMPLEMENTED, KINDS, MEASURED
from frhsic_core.paper.claims.relevance import RELEVANT
from frhsic_core.paper.claims.verdicts import (
    CONTRADICTED,
    FORMS,
    PAPER,
    VERDICTS,
    calibration,
    claims,
    counts,
    detects,
    expected_false,
    heading,
    judge,
    ledger,
    swapped,
)

__all__ = [
    "CHECKED", "CONTRADICTED", "FORMS", "IMPLEMENTED", "KINDS", "MEASURED", "PAPER", "RELEVANT", "VERDICTS",
    "calibration", "claims", "counts", "detects", "expected_false", "heading", "judge", "ledger", "swapped",
]  # fmt: skip
