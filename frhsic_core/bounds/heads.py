r"""The bound on EIPM, which holds for GDP of every head of an RKHS at once.

EIPM = E_S‖E[φ(Z) | S] − E φ(Z)‖ is the mean gap of the features. For f = ⟨w, φ(·)⟩ the gap of f is the
gap of the features in one direction, so **GDP(f) ≤ ‖f‖·EIPM for all f of the RKHS, whoever chooses f
and whenever**. Z has to be fixed before the rows are seen, heads do not.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from frhsic_core._arrays import ArrayLike, as_sample, require_same_rows, same_kind
from frhsic_core.bounds.columns import read_groups
from frhsic_core.bounds.features import check_promise, features_of, is_unit, plain
from frhsic_core.bounds.hsic import KERNELS_FIXED, PROMISE
from frhsic_core.bounds.inequalities import (
    bernstein,
    bernstein_radius,
    hoeffding,
    mixture_radius,
    product_moment,
)
from frhsic_core.bounds.result import (
    ALWAYS,
    FIXED,
    INDEPENDENT,
    DependenceBound,
    check_count,
    check_delta,
)
from frhsic_core.kernels import Kernel

if TYPE_CHECKING:
    from torch import Tensor

# The four errors: the mean, the spread of the features, and the two small means.
SHARES = (0.8, 0.06, 0.07, 0.07)
_PAIRS = 2**22  # entries of the Gram matrix in one block


@dataclass(frozen=True)
class HeadProjection:
    r"""The bound on EIPM with another number of rows and the same estimates.

    With r the largest ‖φ(x) − φ(y)‖² there are two bounds at one n. ``difference``: one row changes
    n/(n−1)·EIPM_n by at most (‖a‖ + ‖a′‖ + ‖a − a′‖)/n ≤ 3√r/n, where a and a′ are features minus the
    mean of the other rows, so the slack is 3√(rL/2n).

    ``variance``: let u(s) be the unit vector along E[φ | s] − E φ and X = ⟨φ − E φ, u(S) − E u⟩. Then
    E X = EIPM, and EIPM_n is at least mean(X) − ‖φ̄ − E φ‖‖ū − E u‖. E X² ≤ v(V, r), V = E‖φ − E φ‖²,
    and −X ≤ 2√r. The norms of the two means are on average at most √(V/n) and 1/√n, and one row
    changes them by at most √r/n and 2/n:

    .. math:: \sqrt{2\bar vL_1/n} + \tfrac23\sqrt rL_1/n
        + \big(\sqrt{\bar V}+\sqrt{rL_3/2}\big)\big(1+\sqrt{2L_4}\big)/n.

    V is the mean of ½‖φ − φ′‖² ≤ r/2 over pairs, so V̄ follows from the sample's V̂ as the variance of
    pairs does for HSIC: √V̄ = √(qr/4) + √(V̂ + qr/4), q = L₂/⌊n/2⌋.
    """

    estimate: float
    spread: float
    squared_diameter: float
    delta: float
    rows: int | None

    def bound(self, n: int) -> float:
        """Return the bound at n rows; EIPM is at most the root of V, and V at most r/2."""
        return min(self.estimate + self.slack(n), math.sqrt(0.5 * self.squared_diameter))

    def method(self, n: int) -> str:
        """Return which slack is smaller if V is as large as it can be."""
        worst = self._variance_slack(n, 0.5 * self.squared_diameter)
        best = self._difference_slack(n)
        return "variance" if self.rows is not None or worst < best else "difference"

    def slack(self, n: int) -> float:
        """Return what is added to EIPM_n."""
        if self.rows is not None:
            return self._always_slack(n, self.rows)
        if self.method(n) == "difference":
            return self._difference_slack(n) + self.estimate / (n - 1)
        r = self.squared_diameter
        part = 0.25 * r * self._levels()[1] / (n // 2)
        spread = (math.sqrt(part) + math.sqrt(self.spread + part)) ** 2
        return self._variance_slack(n, min(spread, 0.5 * r))

    def _levels(self) -> list[float]:
        return [math.log(1.0 / (share * self.delta)) for share in SHARES]

    def _difference_slack(self, n: int) -> float:
        width = 3.0 * math.sqrt(self.squared_diameter)
        return float(hoeffding(width, n, math.log(1.0 / self.delta)))

    def _variance_slack(self, n: int, spread: float) -> float:
        r = self.squared_diameter
        one, _, three, four = self._levels()
        mean = bernstein(product_moment(spread, r), 2.0 * math.sqrt(r), n, one)
        features = math.sqrt(spread) + math.sqrt(0.5 * r * three)
        directions = 1.0 + math.sqrt(2.0 * four)
        return float(mean) + features * directions / n

    def _always_slack(self, n: int, rows: int) -> float:
        r = self.squared_diameter
        one, _, three, four = self._levels()
        few = max(2, rows // 20)
        moment = product_moment(0.5 * r, r)
        mean = bernstein_radius(moment, 2.0 * math.sqrt(r), n, one, rows=rows)
        features = mixture_radius(2.0 * math.sqrt(r), n, three, rows=few)
        directions = mixture_radius(4.0, n, four, rows=few)
        return float(mean + features * directions)


@same_kind
def eipm_bound(
    z: ArrayLike,
    *,
    sensitive_features: ArrayLike,
    kernel_z: Kernel,
    delta: float = 0.05,
    groups: Sequence[float] | None = None,
    candidates: int = 1,
    anytime: bool = False,
    planned_rows: int = 10_000,
) -> DependenceBound:
    r"""Return an upper bound on EIPM that holds with probability 1 − ``delta``.

    .. math:: \mathrm{EIPM}_n = \sum_g \hat\pi_g\,\|\bar\varphi_g - \bar\varphi\|

    GDP of every head f of the RKHS is at most ‖f‖ times EIPM, for any number of groups, and so at
    most ‖f‖ times this bound, for all heads at once, also those that are trained on these rows. With
    ``kernel_z=Bounded.linear(diameter)`` the heads are f(z) = ⟨w, z⟩ + b, and ‖f‖ = ‖w‖. For
    f = Σ_a c_a k(z_a, ·), such as a support vector machine, ‖f‖² = Σ c_a c_b k(z_a, z_b). O(n²) time.

    Parameters
    ----------
    z : array_like
        ``(n, d)`` or ``(n,)``, a representation whose encoder did not see these rows.
    sensitive_features : array_like
        ``(n,)``, the attribute.
    kernel_z : Kernel
        A kernel as in :func:`frhsic_core.hsic_bound`.
    delta : float
        Largest probability that the bound is too small.
    groups : sequence of float, optional
        Inner edges of bins of S, fixed before the rows were seen. Without them each value of S is a
        group.
    candidates : int
        Number of encoders, fixed in advance, from which one was chosen with the help of these rows.
    anytime : bool
        Whether the bound holds for all n at once, for rows in a fixed order.
    planned_rows : int
        With ``anytime``: the number of rows for which the bound is tightest, fixed before the first
        row.

    Returns
    -------
    DependenceBound
        The bound on EIPM and what it assumes.

    Examples
    --------
    Two groups whose means of Z differ by .2, in a set of diameter 1. Any head with ‖w‖ = 1 has a GDP
    of at most the bound; the one along the difference has .1 here.

    >>> from frhsic_core.bounds import Bounded
    >>> z = np.tile([[0.0, 0.0], [0.2, 0.0]], (5000, 1))
    >>> found = eipm_bound(
    ...     z, sensitive_features=np.tile([0, 1], 5000), kernel_z=Bounded.linear(1.0)
    ... )
    >>> round(found.estimate, 3), round(found.bound, 3)
    (0.1, 0.107)
    """
    check_delta(delta, candidates)
    check_count("planned_rows", planned_rows)
    require_same_rows(z, sensitive_features, names=("z", "sensitive_features"))
    known = features_of("kernel_z", kernel_z)
    sample = as_sample(z, name="z", min_rows=2)
    if sample.dim() != 2:
        raise ValueError(
            f"z has shape {tuple(sample.shape)}: a bound is one of a single sample, so pass (n, d)."
        )
    check_promise("z", kernel_z, sample)
    n = len(sample)
    groups_of = read_groups(sensitive_features, groups)
    if len(groups_of) != n:
        raise ValueError(f"sensitive_features has {len(groups_of)} rows but z has {n}.")
    estimate, spread = feature_gap(sample, groups_of, plain(kernel_z))
    rows = int(planned_rows) if anytime else None
    projection = HeadProjection(estimate, spread, known.squared_diameter, delta / candidates, rows)
    what = "representation was" if candidates == 1 else "candidate representations were"
    assumptions = [INDEPENDENT, FIXED.format(what=what), KERNELS_FIXED]
    if not is_unit(kernel_z):
        assumptions.append(PROMISE)
    if groups is not None:
        assumptions.append("The edges of the bins were fixed before these rows were seen.")
    if rows is not None:
        assumptions.append(ALWAYS.format(rows=rows))
    values = len(np.unique(groups_of))
    return DependenceBound(
        projection.bound(n),
        estimate,
        f"EIPM over the {values} groups of the attribute",
        delta,
        n,
        candidates,
        projection.method(n),
        tuple(assumptions),
        projection.slack(n),
        estimate,
        values,
        anytime,
        projection,
    )


def feature_gap(z: Tensor, groups_of: np.ndarray, kernel: Kernel) -> tuple[float, float]:
    """Return EIPM_n and the mean of ½‖φ − φ′‖² over pairs of rows, from blocks of the Gram matrix."""
    n = len(z)
    order = np.argsort(groups_of, kind="stable")
    _, starts, codes = np.unique(groups_of[order], return_index=True, return_inverse=True)
    counts = np.diff(np.append(starts, n))
    z = z.double()[order]
    sums = np.zeros((len(counts), len(counts)))
    own = 0.0
    size = max(1, _PAIRS // n)
    for start in range(0, n, size):
        rows = slice(start, min(start + size, n))
        gram = kernel(z[rows], z).detach().cpu().numpy()
        of_groups = np.add.reduceat(gram, starts, axis=1)
        np.add.at(sums, codes[rows], of_groups)
        own += float(np.einsum("ii->", gram[:, rows]))
    shares = counts / n
    between = sums / np.outer(counts, counts)
    with_all = between @ shares
    squares = np.diag(between) - 2.0 * with_all + shares @ with_all
    gap = float(shares @ np.sqrt(np.maximum(squares, 0.0)))
    spread = own / n - (sums.sum() - own) / (n * (n - 1))
    return gap, max(0.0, float(spread))
