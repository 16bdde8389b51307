"""Test the independence of scores and attribute, and measure the strength of the dependence on samples of the rows.

With many rows every dependence is significant, so an audit reports a test *and* effect sizes. Each of them is measured
on at most the number of rows that its cost allows. The rows are a random sample, and the report names their number.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray

from frhsic_core.audit.representation import audit_representation
from frhsic_core.joint import distance_correlation, hsic_test, khgr

Array = NDArray[np.float64]

TEST_ROWS = 2000
PROBE_ROWS = 20_000
KERNEL_ROWS = 2000
KHGR_ROWS = 500
KHGR_RIDGE = 0.01
_SHUFFLES = 3


@dataclass(frozen=True)
class Test:
    """A test of independence: the p-value, and the number of rows and permutations behind it."""

    pvalue: float
    rows: int
    permutations: int
    method: str


@dataclass(frozen=True)
class Effect:
    """One effect size, what chance alone gives, and the number of rows behind it."""

    value: float
    floor: float
    rows: int


def sample_rows(n: int, rows: int, *, weight: Array | None = None, seed: int = 0) -> NDArray[np.intp]:
    """Return the numbers of at most ``rows`` rows, drawn without replacement.

    With weights a row is kept with a probability that is proportional to its weight. The rows kept are then independent
    draws from the weighted population, and no row occurs twice, so the tests keep their level.

    Examples
    --------
    >>> sample_rows(3, 10)
    array([0, 1, 2])
    >>> sample_rows(4, 10, weight=np.array([1.0, 0.0, 1.0, 1.0]))
    array([0, 2, 3])
    """
    generator = np.random.default_rng(seed)
    kept = np.arange(n)
    if weight is not None:
        kept = kept[generator.random(n) < weight / weight.max()]
    if len(kept) > rows:
        kept = np.sort(generator.choice(kept, rows, replace=False))
    return kept


def independence_test(z: Array, s: Array, *, weight: Array | None = None, seed: int = 0) -> Test:
    """Test whether scores ``(n, k)`` and attributes ``(n, p)`` are independent, with the aggregated test."""
    rows = sample_rows(len(z), TEST_ROWS, weight=weight, seed=seed)
    return _test(rows, z[rows], s[rows], None, seed)


def conditional_test(z: Array, s: Array, given: Array, *, weight: Array | None = None, seed: int = 0) -> Test:
    """Test whether scores and attributes are independent given the control features."""
    rows = sample_rows(len(z), TEST_ROWS, weight=weight, seed=seed)
    return _test(rows, z[rows], s[rows], given[rows], seed)


def _test(rows: NDArray[np.intp], z: Array, s: Array, given: Array | None, seed: int) -> Test:
    # Up to 1,024 rows every permutation costs n²; above, all of them together cost about one statistic.
    permutations = 199 if len(rows) <= 512 else 99 if len(rows) <= 1024 else 499
    if len(rows) < 4:  # weights can leave hardly any row
        return Test(1.0, len(rows), 0, "aggregated")
    generator = torch.Generator().manual_seed(seed)
    found = hsic_test(z, s, given=given, method="aggregated", n_permutations=permutations, random_state=generator)
    return Test(float(found.pvalue), len(rows), permutations, "aggregated")


def effect_sizes(z: Array, s: Array, *, weight: Array | None = None, seed: int = 0) -> dict[str, Effect]:
    """Return normalized HSIC, distance correlation, kernel HGR and the R² of two probes, each with its floor.

    The floor is the mean of the same number if the rows of S are shuffled.
    """
    rows = sample_rows(len(z), PROBE_ROWS, weight=weight, seed=seed)
    z, s = z[rows], s[rows]
    s = s[:, np.ptp(s, axis=0) > 0] if len(s) else s[:, :0]
    if s.shape[1] == 0 or len(s) < 10:  # a rare value can be absent from the sample
        return {}
    audited = audit_representation(z, s, max_rows=KERNEL_ROWS, random_state=seed)
    middle = audited.bandwidths.index(1.0)
    few = min(audited.rows, len(z))
    first = np.linspace(0, len(z) - 1, few).round().astype(int)
    tiny = np.linspace(0, len(z) - 1, min(KHGR_ROWS, len(z))).round().astype(int)
    generator = np.random.default_rng(seed)
    shuffled = [generator.permutation(len(tiny)) for _ in range(_SHUFFLES)]
    moved = [generator.permutation(few) for _ in range(_SHUFFLES)]
    distance = [distance_correlation(z[first], s[first][order]) for order in (slice(None), *moved)]
    canonical = [khgr(z[tiny], s[tiny][order], ridge=KHGR_RIDGE) for order in (slice(None), *shuffled)]
    return {
        "normalized_hsic": Effect(float(audited.normalized_hsic[middle]), float(audited.floor[middle]), audited.rows),
        "distance_correlation": Effect(float(distance[0]), float(np.mean([float(x) for x in distance[1:]])), few),
        "khgr": Effect(float(canonical[0]), float(np.mean([float(x) for x in canonical[1:]])), len(tiny)),
        "linear_r2": Effect(float(audited.linear_r2), 0.0, len(z)),
        "nonlinear_r2": Effect(float(audited.nonlinear_r2), 0.0, len(z)),
    }
