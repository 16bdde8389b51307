"""Compare what groups of an attribute show with what its curve shows."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from frhsic_core.audit.curve import Array, Curve

GROUPS = (2, 4, 10)


@dataclass(frozen=True)
class Groups:
    """An attribute cut into groups with about equal numbers of people.

    Attributes
    ----------
    groups : int
        Number of groups; fewer than asked for where values are tied.
    edges : array
        ``(groups + 1,)``: smallest and largest S of the groups.
    means : array
        ``(groups,)``: mean score of each group.
    shares : array
        ``(groups,)``: share of people in each group.
    difference : float
        Largest difference between two group means, which a table of groups reports.
    range : float
        Largest certain difference along the curve.
    inside : float
        The largest certain difference along the curve *within* one group: what the table hides.
    where : tuple of float
        The group in which that is.
    hidden : float
        Share of the variance of the curve that lies within groups.
    gdp : float
        GDP of the groups: Σ share·|mean − overall mean|.
    """

    groups: int
    edges: Array
    means: Array
    shares: Array
    difference: float
    range: float
    inside: float
    where: tuple[float, float]
    hidden: float
    gdp: float


def group_means(curve: Curve, groups: int) -> Groups:
    """Return what a table of ``groups`` groups of equal size shows of a curve, and what it hides.

    Examples
    --------
    >>> from frhsic_core.audit.curve import cut, fit_curve
    >>> s = np.linspace(0, 1, 800)
    >>> wave = fit_curve(np.cos(4 * np.pi * s), cut(s))
    >>> found = group_means(wave, 2)
    >>> found.difference < 0.01, found.inside > 1.9
    (True, True)
    """
    below = np.cumsum(curve.share) - 0.5 * curve.share
    group = np.minimum((below * groups).astype(int), groups - 1)
    _, group = np.unique(group, return_inverse=True)  # ties can leave a group empty
    count = int(group.max()) + 1
    shares: Array = np.bincount(group, curve.share).astype(np.float64)
    means = np.bincount(group, curve.share * curve.mean) / shares
    overall = float(curve.share @ curve.mean)
    total = float(curve.share @ (curve.mean - overall) ** 2)
    within = float(curve.share @ (curve.mean - means[group]) ** 2)
    spans = [curve.certain_difference(group == k) if curve.inside[group == k].any() else 0.0 for k in range(count)]
    worst = int(np.argmax(spans))
    first = [int(np.argmax(group == k)) for k in range(count)]
    edges = np.append(curve.s[first], curve.s[-1])
    return Groups(
        groups=count,
        edges=edges,
        means=means,
        shares=shares,
        difference=float(np.ptp(means)),
        range=curve.certain_difference(),
        inside=float(spans[worst]),
        where=(float(edges[worst]), float(curve.s[np.flatnonzero(group == worst)[-1]])),
        hidden=within / total if total > 0 else 0.0,
        gdp=float(shares @ np.abs(means - overall)),
    )
