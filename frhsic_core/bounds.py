r"""Upper bounds on dependence that hold with probability 1 − δ, from the sample to the population.

An estimate of GDP or HSIC can be too small by chance. The bounds of this module are at least as large as the population
value with probability 1 − ``delta``, for every distribution and every number of samples, if the rows are independent
draws and the scores (or the kernels) were fixed before these rows were seen. Nothing else is assumed, and nothing is
asymptotic.

**Covariances.** GDP over groups is the ℓ₁ norm of the covariances of the score with the indicators of the groups, and
√HSIC is the norm of the covariance operator. n/(n−1) times the sample version is unbiased, so by Jensen's inequality
its norm is on average at least the population's. One row changes it by at most 2/n (GDP, scores in [0, 1]) and √6/n
(HSIC, non-negative kernels with k(x, x) ≤ 1), and McDiarmid's inequality bounds the rest.

**Variance.** An upper bound needs one direction only. With the signs ε of the true covariances, GDP = Cov(f, ε(S)),
while GDP_n is at least the sample covariance of f and ε(S). This is a mean of bounded variables, up to a product of
two small means, and Bernstein's inequality bounds it by the standard deviation of the scores. In the same way √HSIC is
the mean of the covariance in one direction, and the mean of (1 − k)(1 − l) over pairs of rows bounds its variance.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from scipy.stats import beta
from torch import Tensor

from frhsic_core._arrays import ArrayLike, as_pair, as_tensor, require_same_rows, same_kind
from frhsic_core._choices import one_of
from frhsic_core.joint import hsic
from frhsic_core.joint._factors import thin_pair
from frhsic_core.kernels import (
    Categorical,
    Gaussian,
    InverseMultiquadric,
    Kernel,
    Laplacian,
    MultiScale,
    Product,
)

__all__ = ["DependenceBound", "gdp_bound", "hsic_bound"]

INDEPENDENT = "The rows are independent draws from one distribution."
FIXED = "The {what} fixed before these rows were seen, so not trained, chosen or tuned on them."
# The four errors that the variance bound adds up, as shares of its δ: the mean, the standard deviation of the scores,
# and the two small means. The first decides the size of the bound, and the others enter at order 1/n.
SHARES = (0.7, 0.1, 0.1, 0.1)
NON_NEGATIVE = (Gaussian, MultiScale, Laplacian, InverseMultiquadric, Categorical)


@dataclass(frozen=True)
class DependenceBound:
    """An upper bound on a measure of dependence, with everything that it assumes.

    Attributes
    ----------
    bound : float
        At least the population value, with probability 1 − ``delta`` over the rows.
    estimate : float
        The sample value that the bound starts from: GDP over the groups, or HSIC.
    measure : str
        What is bounded, in words.
    delta : float
        Largest probability that the bound is too small.
    n : int
        Number of rows.
    candidates : int
        Number of models among which the rows may have chosen.
    method : str
        ``"difference"`` (McDiarmid) or ``"variance"`` (Bernstein), whichever was smaller.
    assumptions : tuple of str
        What must hold. The bound claims nothing if one of them fails.
    slack : float
        The part of the bound that more rows would make smaller (for HSIC, of the bound on √HSIC).
    values : int
        Number of groups of the attribute among the rows; 0 for HSIC.
    floor : float
        What would be left of the bound with infinitely many rows and this estimate.
    """

    bound: float
    estimate: float
    measure: str
    delta: float
    n: int
    candidates: int
    method: str
    assumptions: tuple[str, ...]
    slack: float
    floor: float
    values: int = 0

    @property
    def own_values(self) -> bool:
        """True if most rows have a value of the attribute of their own, so that the groups say nothing."""
        return 2 * self.values > self.n

    def rows_needed(self, threshold: float) -> int | None:
        """Return a number of rows that would bring the bound to ``threshold`` if the estimate stayed as it is.

        None means that no number would. The slack falls at least as fast as 1/√n, so the number may be too large.

        Examples
        --------
        >>> scores = np.tile([0.3, 0.7], 500)
        >>> found = gdp_bound(scores, sensitive_features=np.repeat([0, 1], 500))
        >>> found.bound > 0.03, found.rows_needed(0.03)
        (True, 4707)
        """
        left = threshold - self.floor
        if self.measure == "HSIC":
            left = math.sqrt(max(threshold, 0.0)) - math.sqrt(self.floor)
        return None if left <= 0 else max(2, math.ceil(self.n * (self.slack / left) ** 2))

    def __float__(self) -> float:
        return self.bound

    def __str__(self) -> str:
        share = f"{100 * (1 - self.delta):.6g}"
        lines = [
            f"With {share} % confidence {self.measure} is at most {self.bound:.4f} (sample: {self.estimate:.4f})."
        ]
        return "\n".join([*lines, "This assumes:", *(f"- {line}" for line in self.assumptions)])


@same_kind
def gdp_bound(
    y_pred: ArrayLike,
    *,
    sensitive_features: ArrayLike,
    delta: float = 0.05,
    groups: Sequence[float] | None = None,
    variation: float | None = None,
    bounds: tuple[float, float] = (0.0, 1.0),
    candidates: int = 1,
) -> DependenceBound:
    r"""Return an upper bound on GDP = E|E[f | S] − E f| that holds with probability 1 − ``delta``.

    .. math:: \mathrm{GDP} \le \tfrac{n}{n-1}\mathrm{GDP}_n + \sqrt{2\log(1/\delta)/n},\qquad
        \mathrm{GDP}_n = \sum_g \hat\pi_g\,|\bar f_g - \bar f|

    The groups are the distinct values of S, of which there may be any number, or the bins between fixed edges. The
    smaller of this bound and the one with the variance of the scores is returned, each at δ/2. For a continuous S no
    bound without an assumption can be useful. If s ↦ E[f | S = s] has total variation of at most V, then GDP is at most
    that of the bins plus V/2 times the largest mass of a bin. V ≤ 1 if the mean score only rises or only falls. O(n
    log n) time.

    No weights and no clusters: the proof needs independent rows that count alike. Of people who belong together, such
    as a household, keep one at random (``table.groupby("household").sample(1)``).

    Parameters
    ----------
    y_pred : array_like
        ``(n,)``, scores of a model that did not see these rows.
    sensitive_features : array_like
        ``(n,)``, the attribute.
    delta : float
        Largest probability that the bound is too small.
    groups : sequence of float, optional
        Inner edges of bins of S, fixed before the rows were seen. Without them each value of S is a group.
    variation : float, optional
        V, the assumed total variation of the mean score along S, in the units of the score. Needs ``groups``. Without
        it, the bound is one for GDP over the groups.
    bounds : tuple of float
        Smallest and largest possible score.
    candidates : int
        Number of models, fixed in advance, from which one was chosen with the help of these rows.

    Returns
    -------
    DependenceBound
        The bound and what it assumes.

    Examples
    --------
    >>> age = np.repeat(np.arange(20, 70), 40)
    >>> found = gdp_bound(np.where(age > 45, 0.6, 0.4), sensitive_features=age)
    >>> round(found.estimate, 3), round(found.bound, 3)
    (0.1, 0.127)
    """
    f, groups_of, unit = _read_scores(y_pred, sensitive_features, groups, bounds)
    n = len(f)
    _check_delta(delta, candidates)
    if variation is not None and groups is None:
        raise ValueError(
            "variation is given without groups: pass the inner edges of bins that were fixed in advance."
        )
    if variation is not None and not 0.0 <= variation < math.inf:
        raise ValueError(f"variation is {variation}: it must be a finite number of at least 0.")
    share = delta / candidates if variation is None else 0.8 * delta / candidates
    counts = np.bincount(groups_of, minlength=0 if groups is None else len(groups) + 1)
    means = np.bincount(groups_of, f, len(counts)) / np.maximum(counts, 1)
    estimate = float((counts / n * np.abs(means - f.mean())).sum())
    slacks = {
        "difference": math.sqrt(2.0 * math.log(2.0 / share) / n) + estimate / (n - 1),
        "variance": variance_slack(f, share / 2.0),
    }
    method = min(slacks, key=lambda name: slacks[name])
    slack = unit * slacks[method]
    floor = unit * estimate
    values = int((counts > 0).sum())
    assumptions = [
        INDEPENDENT,
        FIXED.format(what="scores were" if candidates == 1 else "candidate models were"),
    ]
    if groups is None:
        measure = f"GDP over the {values} values of the attribute"
    else:
        measure = f"GDP over {len(groups) + 1} bins of the attribute"
        assumptions.append("The edges of the bins were fixed before these rows were seen.")
    if variation is not None:
        # With probability 1 − δ/5 no bin has more mass than the largest of these exact (Clopper–Pearson) limits.
        limits = beta.ppf(1.0 - 0.2 * delta / len(counts), counts + 1, np.maximum(n - counts, 0.5))
        largest = float(np.where(counts < n, limits, 1.0).max())
        floor += 0.5 * largest * variation
        measure = "GDP"
        assumptions.append(
            f"Along the attribute, the mean score has a total variation of at most {variation:g}."
        )
    # |E[f | S] − E f| averages to at most half of the range of the scores.
    bound = min(floor + slack, 0.5 * unit)
    return DependenceBound(
        bound,
        unit * estimate,
        measure,
        delta,
        n,
        candidates,
        method,
        tuple(assumptions),
        slack,
        floor,
        values,
    )


def variance_slack(f: np.ndarray, delta: float) -> float:
    r"""Return what the variance bound adds to GDP_n, for scores in [0, 1].

    With μ = E f, ν = E ε and X = (f − μ)(ε − ν), the sample covariance is mean(X) − (f̄ − μ)(ε̄ − ν), and E X = GDP.

    .. math:: \sqrt{2v\log(1/\delta_1)/n} + \tfrac{2}{3n}\log(1/\delta_1)
        + \tfrac1n\sqrt{\log(2/\delta_3)\log(2/\delta_4)},
        \qquad \sqrt v = \min\big(1,\; 2\,\mathrm{sd}_n(f) + 2\sqrt{2\log(1/\delta_2)/(n-1)}\big)

    The first two terms are Bernstein's inequality: X has a range of at most 2, and Var X ≤ min(1, 4 Var f). √v is the
    bound of Maurer and Pontil (2009) for the standard deviation. The last term is Hoeffding's inequality for f̄ and ε̄.

    Examples
    --------
    >>> round(variance_slack(np.tile([0.3, 0.7], 5000), 0.05), 4)
    0.0129
    """
    n = len(f)
    one, two, three, four = (math.log(1.0 / (share * delta)) for share in SHARES)
    spread = min(1.0, 2.0 * float(f.std(ddof=1)) + 2.0 * math.sqrt(2.0 * two / (n - 1)))
    product = math.sqrt((three + math.log(2.0)) * (four + math.log(2.0))) / n
    return spread * math.sqrt(2.0 * one / n) + 2.0 * one / (3.0 * n) + product


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
) -> DependenceBound:
    r"""Return an upper bound on HSIC that holds with probability 1 − ``delta``, for kernels that are fixed in advance.

    .. math:: \sqrt{\mathrm{HSIC}} \le \tfrac{n}{n-1}\sqrt{\mathrm{HSIC}_n} + \sqrt{3\log(K/\delta)/n}

    There is no bias term, and near zero the bound falls like 1/n. The covariance of g(Z) and h(S)
    is then at most ‖g‖·‖h‖·√HSIC in absolute value, for all functions g and h of the two RKHS at once. Time and
    memory are those of :func:`frhsic_core.hsic`.

    With ``method="variance"`` the last term is :math:`\tfrac43 q+\sqrt{2\hat vq+q^2}`, where q = log(2K/δ)/⌊n/2⌋ and
    :math:`\hat v` is the mean of (1 − k)(1 − l) over pairs of rows. It is smaller from some hundreds of rows on if most
    pairs are similar in Z or in S.

    Parameters
    ----------
    z, s : array_like
        ``(n, d)`` and ``(n, p)`` or ``(n,)``. The encoder of Z did not see these rows.
    kernel_z, kernel_s : Kernel
        Non-negative kernels with k(x, x) ≤ 1, with bandwidths that do not come from these rows.
    delta : float
        Largest probability that the bound is too small.
    candidates : int
        K, the number of encoders, fixed in advance, from which one was chosen with the help of these rows.
    method : {"difference", "variance"}
        Which bound. Choose it before you see the rows.

    Returns
    -------
    DependenceBound
        The bound on HSIC and what it assumes.

    Examples
    --------
    >>> from frhsic_core.laws import GaussianPair
    >>> law = GaussianPair(0.0)
    >>> z, s = law.sample(10_000, random_state=0)
    >>> found = hsic_bound(z, s, kernel_z=Gaussian(1.0), kernel_s=Gaussian(1.0))
    >>> bool(law.hsic(Gaussian(1.0), Gaussian(1.0)) <= found.bound < 0.002)
    True
    """
    _check_delta(delta, candidates)
    z, s = as_pair(z, s, min_rows=2)
    for name, kernel in (("kernel_z", kernel_z), ("kernel_s", kernel_s)):
        _check_kernel(name, kernel)
    one_of("method", method, ("difference", "variance"))
    if z.dim() != 2:
        raise ValueError(
            f"z has shape {tuple(z.shape)}: a bound is one of a single sample, so pass (n, d)."
        )
    n = len(z)
    estimate = float(hsic(z, s, kernel_z=kernel_z, kernel_s=kernel_s))
    if method == "variance":
        added = float(pair_slack(pair_variance(z, s, kernel_z, kernel_s), n, delta / candidates))
    else:
        added = math.sqrt(3.0 * math.log(candidates / delta) / n)
    slack = math.sqrt(estimate) / (n - 1) + added
    kernels = "The kernels, with their bandwidths, were fixed before these rows were seen."
    encoder = FIXED.format(
        what="representation was" if candidates == 1 else "candidate representations were"
    )
    # k and l lie in [0, 1], so HSIC, the squared norm of a covariance operator, is at most 1/4 (two equal groups).
    bound = min((math.sqrt(estimate) + slack) ** 2, 0.25)
    assumptions = (INDEPENDENT, encoder, kernels)
    return DependenceBound(
        bound, estimate, "HSIC", delta, n, candidates, method, assumptions, slack, estimate
    )


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


def _read_scores(
    y_pred: ArrayLike, s: ArrayLike, groups: Sequence[float] | None, bounds: tuple[float, float]
) -> tuple[np.ndarray, np.ndarray, float]:
    """Return scores scaled to [0, 1], the number of each row's group, and the unit of the scores."""
    require_same_rows(y_pred, s, names=("y_pred", "sensitive_features"))
    f = _column(y_pred, "y_pred")
    low, high = (float(value) for value in bounds)
    if not (math.isfinite(low) and math.isfinite(high) and low < high):
        raise ValueError(f"bounds is {bounds}: give the smallest and the largest possible score.")
    if len(f) < 2:
        raise ValueError(f"y_pred has {len(f)} rows: a bound needs at least 2.")
    if f.min() < low or f.max() > high:
        raise ValueError(
            f"y_pred has values from {f.min():g} to {f.max():g}, outside of [{low:g}, {high:g}]: pass bounds=, the "
            "smallest and the largest value that a score can have (not those of this sample)."
        )
    if groups is None:
        column = np.asarray(s.detach().cpu() if isinstance(s, Tensor) else s)
        column = _flat(column, "sensitive_features")
        if pd.api.types.infer_dtype(column) == "interval":
            raise TypeError(
                "sensitive_features holds bins: pass the numbers themselves, and the inner edges as groups=. Edges "
                "that come from these rows, as those of pandas.qcut do, are chosen by them; take them from other rows."
            )
        groups_of = pd.factorize(column)[0]  # −1 stands for a missing value
        if (groups_of < 0).any():
            raise ValueError("sensitive_features contains missing values: remove these rows first.")
    elif isinstance(groups, int | np.integer):
        raise TypeError(
            f"groups is {groups}: bins must be fixed before the rows are seen, so pass their inner edges. Quantiles of "
            "the same rows are chosen by them; take the edges from other rows or round numbers."
        )
    else:
        edges = np.asarray(groups, dtype=np.float64)
        if edges.ndim != 1 or not np.isfinite(edges).all() or (np.diff(edges) <= 0).any():
            raise ValueError(
                "groups must be finite numbers in rising order, the inner edges of the bins."
            )
        groups_of = np.searchsorted(edges, _column(s, "sensitive_features"), side="right")
    if len(groups_of) != len(f):
        raise ValueError(f"sensitive_features has {len(groups_of)} rows but y_pred has {len(f)}.")
    return (f - low) / (high - low), groups_of, high - low


def _column(x: ArrayLike, name: str) -> np.ndarray:
    values = _flat(as_tensor(x, name=name).detach().double().cpu().numpy(), name)
    if not np.isfinite(values).all():
        raise ValueError(f"{name} contains NaN or infinite values: remove these rows first.")
    return values


def _flat(values: np.ndarray, name: str) -> np.ndarray:
    if values.ndim != 1 and not (values.ndim == 2 and values.shape[1] == 1):
        raise ValueError(f"{name} has shape {values.shape}: a bound takes one column, (n,).")
    return values.reshape(-1)


def _check_delta(delta: float, candidates: int) -> None:
    if not 0.0 < delta < 1.0:
        raise ValueError(f"delta is {delta}: it must lie between 0 and 1.")
    if (
        isinstance(candidates, bool)
        or not isinstance(candidates, int | np.integer)
        or candidates < 1
    ):
        raise ValueError(f"candidates is {candidates!r}: it must be a positive whole number.")


def _check_kernel(name: str, kernel: Kernel) -> None:
    parts = kernel.factors if isinstance(kernel, Product) else (kernel,)
    if not all(isinstance(part, NON_NEGATIVE) for part in parts):
        raise TypeError(
            f"{name} is {kernel!r}: the bound needs a kernel object with values in [0, 1] and a bandwidth that was "
            "fixed before these rows were seen, for example Gaussian(1.0)."
        )
