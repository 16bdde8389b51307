"""A vector S: what it does to the estimators and to the power of a test.

The paper's appendix on high-dimensional attributes (``sec:highdim_S``) compares times (they are in
:mod:`frhsic_core.paper.experiments.cost`, part ``dimension``) and says that the conditional route loses statistically.
Units of part

- ``error``: estimators of HSIC and of the conditional integral against exact values, S Gaussian with p coordinates;
- ``power``: permutation tests at equal n.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from frhsic_core.paper.runs.plan import Study, units_of

COORDINATES = (1, 2, 3, 4, 5, 8, 12)
#: Rows of a sample, and how many samples: one estimate of EIPM takes n² exponentials for each of its bandwidths.
SIZES = {256: 200, 500: 100, 1_000: 48, 2_000: 24}
#: Smoothing bandwidths that EIPM may choose from.
GAMMAS = (0.1, 0.2, 0.3, 0.4, 0.5, 0.7, 1.0, 1.4, 2.0)


def plan(preset: str) -> Study:
    """Return the units; ``text`` and ``full`` are the same, since the paper measures none of them."""
    name = "high_dimensional"
    if preset == "smoke":
        units = units_of(part="error", rho=0.5, p=(1, 3), n=64, replications=4)
        units += units_of(part="power", rho=0.3, p=2, n=32, replications=5, permutations=19)
        return Study(f"{name}_smoke", name, units)
    units = ()
    for n, replications in SIZES.items():  # the null shows the floor of each estimator
        units += units_of(part="error", rho=(0.5, 0.0), p=COORDINATES, n=n, replications=replications)
    units += units_of(part="power", rho=(0.3, 0.0), p=COORDINATES, n=128, replications=400, permutations=99)
    return Study(name, name, units)


def measure_unit(unit: dict[str, Any], device: str) -> list[dict[str, Any]]:
    """Measure a unit of one of the two parts."""
    from frhsic_core.paper.experiments.high_dimensional.vector_attribute import errors, power

    settings = {name: value for name, value in unit.items() if name != "part"}
    if unit["part"] == "power":
        return power(**settings, device=device)
    return errors(**settings, gammas=GAMMAS, device=device)


def best_smoothing(rows: pd.DataFrame, estimator: str) -> pd.DataFrame:
    """Return for each p and n the smoothing bandwidth with the least root mean squared error, among those tried.

    Choosing it needs the truth, so that it flatters the estimator, on purpose.
    """
    kept = rows[(rows["estimator"] == estimator) & (rows["rho"] > 0) & (rows["rule"] != "silverman")].copy()
    kept["rmse"] = np.hypot(kept["mean"] - kept["truth"], kept["sd"])
    return kept.loc[kept.groupby(["p", "n"])["rmse"].idxmin()].reset_index(drop=True)
