"""The bound on HSIC: what one row, or one pair of rows, can do to a covariance operator."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from frhsic_core._arrays import ArrayLike, as_pair, same_kind
from frhsic_core._choices import one_of
from frhsic_core.bounds.features import (
    change_square,
    check_promise,
    features_of,
    is_unit,
    largest_hsic,
    plain,
)
from frhsic_core.bounds.inequalities import mixture_radius
from frhsic_core.bounds.result import (
    ALWAYS,
    FIXED,
    INDEPENDENT,
    DependenceBound,
    check_count,
    check_delta,
)
from frhsic_core.joint import hsic
from frhsic_core.joint.factors import thin_pair
from frhsic_core.kernels import Kernel

if TYPE_CHECKING:
    from torch import Tensor

# The three errors of the bound for all n: the mean, and the two small means.
SHARES = (0.8, 0.1, 0.1)
KERNELS_FIXED = "The kernels, with their bandwidths, were fixed before these rows were seen."
PROMISE = "No two values have features farther apart than was promised."


@dataclass(frozen=True)
class Difference:
    r"""√HSIC − n/(n−1)·√HSIC_n ≤ c√(L/2n), by McDiarmid's inequality."""

    change: float
    level: float

    def root(self, estimate: float, n: int) -> float:
        """Return the bound on √HSIC."""
        return n / (n - 1) * math.sqrt(estimate) + self.change * math.sqrt(self.level / (2.0 * n))


@dataclass(frozen=True)
class PairVariance:
    """The bound with the mean of (1 − k)(1 − l) over pairs of rows."""

    variance: float
    delta: float

    def root(self, estimate: float, n: int) -> float:
        """Return the bound on √HSIC."""
        slack = float(pair_slack(self.variance, n, self.delta))
        return n / (n - 1) * math.sqrt(estimate) + slack


@dataclass(frozen=True)
class AllTimes:
    r"""√HSIC ≤ √HSIC_n + h_n(c) + h_n(2√r_Z)·h_n(2√r_S) for all n at once, h_n a mixture.

    √HSIC is E X with X = ⟨(φ − E φ) ⊗ (ψ − E ψ), W⟩, W = C/‖C‖, and √HSIC_n is at least the mean of
    X minus ‖φ̄ − E φ‖‖ψ̄ − E ψ‖. X has a range of at most c, as in :mod:`~frhsic_core.bounds.features`,
    and features are at most √r from their mean.
    """

    change: float
    diameters: tuple[float, float]
    delta: float
    rows: int

    def root(self, estimate: float, n: int) -> float:
        """Return the bound on √HSIC."""
        return math.sqrt(estimate) + float(self.slack(n))

    def slack(self, n: ArrayLike) -> Any:
        """Return what is added to √HSIC_n."""
        one, two, three = (math.log(1.0 / (share * self.delta)) for share in SHARES)
        few = max(2, self.rows // 20)
        z, s = self.diameters
        small = mixture_radius(2.0 * z, n, two, rows=few)
        small = small * mixture_radius(2.0 * s, n, three, rows=few)
        return mixture_radius(self.change, n, one, rows=self.rows) + small


@dataclass(frozen=True)
class RootProjection:
    """The bound on HSIC with another number of rows and the same estimates."""

    estimate: float
    largest: float
    method: Difference | PairVariance | AllTimes

    def bound(self, n: int) -> float:
        """Return the bound at n rows."""
        return min(self.method.root(self.estimate, n) ** 2, self.largest)


@same_kind
def hsic_bound(
    z: ArrayLike,
    s: ArrayLike,
    *,
    kernel_z: Kernel,
    kernel_s: Kernel,
    delta: float = 0.05,
    candidates: int = 1,
    method: str = "difference",
    anytime: bool = False,
    planned_rows: int = 10_000,
) -> DependenceBound:
    r"""Return an upper bound on HSIC that holds with probability 1 − ``delta``.

    .. math:: \sqrt{\mathrm{HSIC}} \le \tfrac{n}{n-1}\sqrt{\mathrm{HSIC}_n} + c\sqrt{\log(K/\delta)/(2n)}

    One row changes the right side's first term by at most c/n. For kernels with values in [0, 1],
    c² = 6; see :mod:`frhsic_core.bounds.features` for others. There is no bias term, and near zero
    the bound falls like 1/n. The covariance of g(Z) and h(S) is then at most ‖g‖·‖h‖·√HSIC in
    absolute value, for all functions g and h of the two RKHS at once. Time and memory are those of
    :func:`frhsic_core.hsic`.

    With ``method="variance"`` the last term is :math:`\tfrac43 q+\sqrt{2\hat vq+q^2}`, where
    q = log(2K/δ)/⌊n/2⌋ and :math:`\hat v` is the mean of (1 − k)(1 − l) over pairs of rows. It is
    smaller from some hundreds of rows on if most pairs are similar in Z or in S.

    Parameters
    ----------
    z, s : array_like
        ``(n, d)`` and ``(n, p)`` or ``(n,)``. The encoder of Z did not see these rows.
    kernel_z, kernel_s : Kernel
        Non-negative kernels with k(x, x) = 1 and a bandwidth that does not come from these rows, or
        any kernel with a promise, such as ``Bounded.distance(72.0)``. With the kernels of distance
        covariance on both sides, dCov = 2√HSIC.
    delta : float
        Largest probability that the bound is too small.
    candidates : int
        K, the number of encoders, fixed in advance, from which one was chosen with the help of these
        rows.
    method : {"difference", "variance"}
        Which bound. Choose it before you see the rows.
    anytime : bool
        Whether the bound holds for all n at once, so that you may look as often as you like and stop
        when you like. The rows must come in a fixed order, such as that of their dates.
    planned_rows : int
        With ``anytime``: the number of rows for which the bound is tightest, fixed before the first
        row.

    Returns
    -------
    DependenceBound
        The bound on HSIC and what it assumes.

    Examples
    --------
    >>> from frhsic_core.kernels import Gaussian
    >>> from frhsic_core.laws import GaussianPair
    >>> law = GaussianPair(0.0)
    >>> z, s = law.sample(10_000, random_state=0)
    >>> found = hsic_bound(z, s, kernel_z=Gaussian(1.0), kernel_s=Gaussian(1.0))
    >>> bool(law.hsic(Gaussian(1.0), Gaussian(1.0)) <= found.bound < 0.002)
    True
    """
    check_delta(delta, candidates)
    check_count("planned_rows", planned_rows)
    z, s = as_pair(z, s, min_rows=2)
    features_z, features_s = features_of("kernel_z", kernel_z), features_of("kernel_s", kernel_s)
    unit = is_unit(kernel_z) and is_unit(kernel_s)
    one_of("method", method, ("difference", "variance"))
    if z.dim() != 2:
        raise ValueError(
            f"z has shape {tuple(z.shape)}: a bound is one of a single sample, so pass (n, d)."
        )
    check_promise("z", kernel_z, z)
    check_promise("s", kernel_s, s)
    n, share = len(z), delta / candidates
    estimate = float(hsic(z, s, kernel_z=plain(kernel_z), kernel_s=plain(kernel_s)))
    change = math.sqrt(change_square(features_z, features_s))
    way: Difference | PairVariance | AllTimes = Difference(change, math.log(1.0 / share))
    if method == "variance":
        _check_variance(unit, anytime)
        way = PairVariance(pair_variance(z, s, kernel_z, kernel_s), share)
    elif anytime:
        pair = (features_z.squared_diameter, features_s.squared_diameter)
        diameters = (math.sqrt(pair[0]), math.sqrt(pair[1]))
        way = AllTimes(change, diameters, share, int(planned_rows))
    what = "representation was" if candidates == 1 else "candidate representations were"
    assumptions = [INDEPENDENT, FIXED.format(what=what), KERNELS_FIXED]
    if not unit:
        assumptions.append(PROMISE)
    if anytime:
        assumptions.append(ALWAYS.format(rows=int(planned_rows)))
    projection = RootProjection(estimate, largest_hsic(features_z, features_s, unit=unit), way)
    return DependenceBound(
        projection.bound(n),
        estimate,
        "HSIC",
        delta,
        n,
        candidates,
        method,
        tuple(assumptions),
        way.root(estimate, n) - math.sqrt(estimate),
        estimate,
        anytime=anytime,
        projection=projection,
    )


def _check_variance(unit: bool, anytime: bool) -> None:
    if anytime:
        raise ValueError('method is "variance": with anytime=True only "difference" is proved.')
    if not unit:
        raise ValueError('method is "variance": it needs kernels with values in [0, 1].')


def pair_variance(z: Tensor, s: Tensor, kernel_z: Kernel, kernel_s: Kernel) -> float:
    r"""Return the mean of (1 − k)(1 − l) over all pairs of rows, in the time and memory of :func:`frhsic_core.hsic`.

    With centered features of unit-diagonal kernels, 1 − k is half the squared distance of two features, and

    .. math:: \tfrac14\sum_{ij}\|\varphi_i-\varphi_j\|^2\|\psi_i-\psi_j\|^2 = \tfrac n2\sum_i\|\varphi_i\|^2\|\psi_i\|^2
        + \tfrac12\sum_i\|\varphi_i\|^2\sum_i\|\psi_i\|^2 + \Big\|\sum_i\varphi_i\otimes\psi_i\Big\|^2 .
    """
    n, total = len(z), 0.0
    pair = thin_pair(z, s, kernel_z, kernel_s)
    if pair is not None:
        both, d, e, cross = pair.over_rows(_squares)
        total = float(0.5 * (n * both + d * e) + cross.square().sum())
        return total / (n * (n - 1))
    size = max(1, 2**22 // n)
    for start in range(0, n, size):
        rows = slice(start, start + size)
        total += float(((1.0 - kernel_z(z[rows], z)) * (1.0 - kernel_s(s[rows], s))).sum())
    return total / (n * (n - 1))


def _squares(phi: Tensor, psi: Tensor, _: Tensor) -> tuple[Tensor, ...]:
    d, e = phi.square().sum(-1), psi.square().sum(-1)
    return d @ e, d.sum(), e.sum(), phi.mT @ psi


def pair_slack(variance: ArrayLike, n: int, delta: float) -> Any:
    r"""Return what the variance bound adds to n/(n − 1)·√HSIC_n, from the mean of (1 − k)(1 − l) over pairs of n rows.

    Examples
    --------
    >>> round(float(pair_slack(0.18, 10_000, 0.05)), 4)
    0.0173
    """
    q = math.log(2.0 / delta) / (n // 2)
    return 4.0 * q / 3.0 + np.sqrt(2.0 * np.asarray(variance) * q + q * q)
