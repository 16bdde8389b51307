"""Queries on the spread over splits: what the paper calls equivalent, and what 25 paired splits tell apart."""

from __future__ import annotations

from typing import Any

import numpy as np

from frhsic_core.paper.claims.answers import Answer, query
from frhsic_core.paper.claims.results import FIVE_RANGE, PROTOCOLS, frontiers
from frhsic_core.paper.experiments.tables.families import TOLERANCES, equivalence, main_rows
from frhsic_core.paper.experiments.tables.pareto import matched_index

__all__: list[str] = []

# Crime's performance is an error of a few hundredths: a tolerance of accuracy does not concern it.
DATASETS = {
    "performance": ("adult", "acs_income", "meps", "compas"),
    "dependence": ("adult", "acs_income", "meps", "compas", "crime"),
}
TITLES = {"adult": "Adult", "acs_income": "ACS Income", "meps": "MEPS", "compas": "COMPAS", "crime": "Crime"}


@query
def spread_and_pairs(measure: str) -> Answer:
    """Expected range of five splits at the matched points, one number for each dataset (the median over methods).

    The note counts the pairs of methods within the tolerance that 25 paired splits tell apart.
    """
    values: dict[str, Any] = {}
    notes = []
    for protocol in PROTOCOLS:
        found = []
        for dataset in DATASETS[measure]:
            sweep = frontiers(dataset, protocol)
            mean = sweep.performance.mean(-1), sweep.dependence.mean(-1)
            place = matched_index(*mean, sweep.unfair_performance.mean(), higher=sweep.higher)
            chosen = np.stack([getattr(sweep, measure)[i, j] for i, j in enumerate(place) if j >= 0])
            found.append(float(np.median(chosen.std(-1, ddof=1) * FIVE_RANGE)))
        values[protocol] = tuple(found)
        counts = equivalence(main_rows(protocol)).loc[measure].sum()
        notes.append(
            f"{protocol}: {counts['resolved']:.0f} of {counts['within']:.0f} pairs within the tolerance told apart by "
            f"paired tests, {counts['resolved_corrected']:.0f} by the corrected one"
        )
    names = [TITLES[name] for name in DATASETS[measure]]
    narrow = [name for i, name in enumerate(names) if min(values[p][i] for p in PROTOCOLS) < TOLERANCES[measure]]
    below = f"narrower than the tolerance on {', '.join(narrow)} alone; " if narrow else ""
    order = f"{', '.join(names)}: largest minus smallest of five splits, on average"
    return Answer(values, note=f"{order}; {below}{'; '.join(notes)}")
