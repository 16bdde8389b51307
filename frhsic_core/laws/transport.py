"""Wasserstein-1 distance between two laws on the same finite set, by linear programming."""

from __future__ import annotations

import numpy as np
from scipy.optimize import linprog
from scipy.sparse import coo_array

__all__ = ["wasserstein"]


def wasserstein(difference: np.ndarray, distance: np.ndarray) -> float:
    """W₁(P, Q) = sup{ Σ f_i(P_i − Q_i) : |f_i − f_j| ≤ d_ij } from ``difference`` = P − Q and the distance matrix.

    Under a metric, mass that both laws share stays where it is: only the positive part is carried to the negative one.
    A linear program with at most (n/2)² variables, solved by the simplex method (HiGHS), accurate to about 1e-10.

    Parameters
    ----------
    difference : ndarray
        ``(n,)``, sums to zero.
    distance : ndarray
        ``(n, n)``, a metric.

    Examples
    --------
    >>> line = np.abs(np.subtract.outer(np.arange(3.0), np.arange(3.0)))
    >>> wasserstein(np.array([0.5, 0.0, -0.5]), line)
    1.0
    """
    difference, distance = np.asarray(difference, dtype=np.float64), np.asarray(distance, dtype=np.float64)
    if not (np.isfinite(distance).all() and (distance >= 0.0).all()):
        raise ValueError("distance has negative, NaN or infinite entries: a metric is needed.")
    sources, targets = np.flatnonzero(difference > 0.0), np.flatnonzero(difference < 0.0)
    supply, demand = difference[sources], -difference[targets]
    if supply.size == 0 or demand.size == 0:
        return 0.0
    # Solve at total mass one: the solver's tolerances are absolute, and a small difference would fall below them.
    mass = 0.5 * (supply.sum() + demand.sum())
    supply, demand = supply / supply.sum(), demand / demand.sum()
    cost = distance[np.ix_(sources, targets)]
    rows, columns = np.indices(cost.shape)
    variables = np.arange(cost.size)
    index = np.concatenate([rows.ravel(), columns.ravel() + len(sources)])
    marginals = coo_array((np.ones(2 * cost.size), (index, np.tile(variables, 2)))).tocsr()
    # One marginal constraint follows from the others; dropping it keeps rounding from making the program infeasible.
    right = np.concatenate([supply, demand])[:-1]
    result = linprog(cost.ravel(), A_eq=marginals[:-1], b_eq=right, bounds=(0.0, None), method="highs-ds")
    if result.status != 0:
        raise ArithmeticError(f"the transport program was not solved: {result.message}")
    return float(result.fun * mass)
