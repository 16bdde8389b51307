r"""How far a mean of independent bounded variables can be from its expectation, once or at all times.

Every function here is one inequality. ``level`` is log(1/δ), the price of a probability of error δ,
and a bound that adds up several errors gives each of them a share of δ.

**Once.** Hoeffding's and Bernstein's inequality hold at one number of rows that does not depend on
the rows.

**At all times.** Whoever looks every month and stops at a good moment needs an inequality that holds
for all n at once. Let e^{λ T_n − n c(λ)} have a mean of at most 1, for the sum T_n of n errors and a
rate λ. As n grows it is a non-negative supermartingale, and so is a mixture over rates. By Ville's
inequality it exceeds 1/δ at some n with probability at most δ. A normal mixture has a closed form,
and a mixture over a grid of rates is solved by bisection. The mixture decides for which n the bound
is tight; it must be fixed before the first row, and ``planned_rows`` says how.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

Array = NDArray[np.float64]

# The largest second moment that a score in [0, 1] leaves for the product with a sign: 2(5√5 − 11).
LARGEST_MOMENT = 2.0 * (5.0 * math.sqrt(5.0) - 11.0)
# Below this ratio r = V/m the worst sign function puts all of the variance into its smaller part.
_TURN = 1.0 - math.sqrt(0.5)
_RATES = 2.0 ** (-0.5 * np.arange(30.0))  # in units of 2/b, the largest rate that is of use
_SPREAD = 1.5  # weights fall like distance^−1.5 from the planned rate, so that other n cost little


def product_moment(variance: ArrayLike, square: ArrayLike) -> Any:
    r"""Return v(V, m) ≥ E[(f − μ)²(ε(S) − E ε(S))²], for every S and every ε with values in [−1, 1].

    V = Var f is at most ``variance``, and (f − μ)² is never more than m = ``square``. With r = V/m,

    .. math:: v = 4V(1-r)^2 \text{ if } r \le 1-\sqrt{1/2},\qquad v = m/(2-r) \text{ otherwise.}

    *Proof.* The expression is convex in ε, so ε is a sign; let ε = 1 on A, p = P(A) ≤ ½ (otherwise
    change its sign). Then ε − E ε = 2(1_A − p), and with a = E[(f − μ)² 1_A] the moment is
    4[(1 − p)²a + p²(V − a)]. It grows with a ≤ min(V, mp). For p ≥ r it is at most 4(1 − p)²V, largest
    at p = r. For p ≤ r it is at most 4m[p − (2 − r)p²], largest at p = 1/(2(2 − r)) if this is at most
    r, that is if r ≥ 1 − √½, and at p = r otherwise. v grows with V and with m.

    The same number bounds E⟨φ − μ, U − E U⟩² for vectors with E‖φ − μ‖² ≤ V, ‖φ − μ‖² ≤ m and ‖U‖ = 1:
    ‖U − E U‖² is linear in ⟨U, E U⟩, so a U with two values is the worst.

    Examples
    --------
    >>> float(product_moment(0.25, 0.25)), round(float(product_moment(0.01, 0.25)), 4)
    (0.25, 0.0369)
    """
    v, m = np.asarray(variance, dtype=float), np.asarray(square, dtype=float)
    ratio = np.minimum(v / m, 1.0)
    small = 4.0 * m * ratio * (1.0 - ratio) ** 2
    large = m / (2.0 - ratio)
    return np.where(ratio <= _TURN, small, large)[()]


def hoeffding(width: float, n: ArrayLike, level: float) -> Any:
    """Return the error of a mean of n variables in an interval of this width, on one side."""
    return width * np.sqrt(level / (2.0 * np.asarray(n)))


def bernstein(moment: ArrayLike, largest: ArrayLike, n: ArrayLike, level: float) -> Any:
    r"""Return by how much E X can exceed a mean of n copies of X ≥ −b with E X² ≤ v.

    .. math:: \sqrt{2vL/n} + bL/(3n)
    """
    n = np.asarray(n)
    return np.sqrt(2.0 * np.asarray(moment) * level / n) + np.asarray(largest) * level / (3.0 * n)


def variance_once(
    sample: ArrayLike, mean_error: ArrayLike, square: ArrayLike, n: ArrayLike, level: float
) -> Any:
    r"""Return an upper bound on Var f at one n, from the sample's variance (divisor n).

    W = (f − μ)² has E W = V and E W² ≤ mV, m = ``square``, and its mean is V_n + (f̄ − μ)². Bernstein's
    inequality for a mean from below, which has no second term for W ≥ 0, is V − √(2mVL/n) ≤ W̄, so

    .. math:: \sqrt V \le \sqrt{mL/(2n)} + \sqrt{V_n + (\bar f-\mu)^2 + mL/(2n)}.
    """
    part = np.asarray(square) * level / (2.0 * np.asarray(n))
    root = np.sqrt(part) + np.sqrt(np.asarray(sample) + np.asarray(mean_error) ** 2 + part)
    return root**2


def planned(width: float, rows: int, level: float) -> float:
    """Return the ρ with which :func:`mixture_radius` is close to its smallest value at n = ``rows``."""
    return rows * (0.5 * width) ** 2 / (2.0 * level + math.log(1.0 + 2.0 * level))


def mixture_radius(width: float, n: ArrayLike, level: float, *, rows: int) -> Any:
    r"""Return the error of a mean for all n at once, for variables in an interval of this width.

    .. math:: \frac1n\sqrt{(n\sigma^2+\rho)\,(2L+\log(1+n\sigma^2/\rho))},\qquad \sigma = \text{width}/2

    For an interval this is Hoeffding's lemma and a normal mixture over the rates, and it bounds both
    sides. For vectors in a set of this diameter around their mean, σ = ``width``/2 is replaced by the
    largest distance from the mean, so pass twice that distance; then it bounds the norm, because
    E cosh(λ‖x + D‖) ≤ cosh(λ‖x‖)·cosh(λb) for E D = 0 and ‖D‖ ≤ b: cosh(√u) is convex in u, so for a
    given ‖D‖ the chord between the two ends of ⟨x, D⟩ lies above it.
    """
    n = np.asarray(n, dtype=float)
    rho = planned(width, rows, level)
    total = n * (0.5 * width) ** 2
    return np.sqrt((total + rho) * (2.0 * level + np.log1p(total / rho))) / n


def rates(largest: float, level: float, *, rows: int) -> tuple[Array, Array]:
    """Return a grid of rates and their weights, which add up to 1, for variables with X ≥ −``largest``.

    The weights are largest where n = ``rows`` and the moment is a quarter of b²/4 want the rate.
    """
    grid = 2.0 / largest * _RATES
    wanted = math.sqrt(2.0 * level / (rows * 0.0625 * largest**2))
    distance = np.abs(np.log2(grid / wanted)) / 0.5
    weights = (1.0 + distance) ** -_SPREAD
    return grid, weights / weights.sum()


def bernstein_radius(
    moment: ArrayLike, largest: float, n: ArrayLike, level: float, *, rows: int
) -> Any:
    r"""Return by how much E X can exceed the mean of X ≥ −b, E X² ≤ v, for all n at once.

    The smallest t with Σ_k w_k exp(n λ_k t − n v ψ(λ_k)) ≥ 1/δ, ψ(λ) = (e^{bλ} − 1 − bλ)/b². The left
    side with the true moment and E X − X̄ for t is a non-negative supermartingale that starts at 1.
    Sixty bisections.
    """
    n, moment = np.broadcast_arrays(np.asarray(n, dtype=float), np.asarray(moment, dtype=float))
    grid, weights = rates(largest, level, rows=rows)
    cost = (np.expm1(largest * grid) - largest * grid) / largest**2
    constant = np.log(weights) - (n * moment)[..., None] * cost
    # With one rate alone, t = (log(1/(δw)) / n + vψ(λ)) / λ is large enough.
    high = ((level - constant) / (n[..., None] * grid)).min(axis=-1)
    low = np.zeros_like(high)
    for _ in range(60):
        middle = 0.5 * (low + high)
        exponents = constant + (n * middle)[..., None] * grid
        top = exponents.max(axis=-1)
        total = top + np.log(np.exp(exponents - top[..., None]).sum(axis=-1))
        enough = total >= level
        high = np.where(enough, middle, high)
        low = np.where(enough, low, middle)
    return high[()]


def variance_always(
    sample: ArrayLike, mean_error: ArrayLike, square: ArrayLike, n: ArrayLike, level: float
) -> Any:
    r"""Return an upper bound on Var f for all n at once, from the sample's variance (divisor n).

    As in :func:`variance_once`, but for each of K rates θ, e^{θ Σ(V − W) − nθ²mV/2} is a
    supermartingale, so with the error δ/K for each of them

    .. math:: V \le \min_\theta \frac{V_n + (\bar f-\mu)^2 + \log(K/\delta)/(n\theta)}{1-\theta m/2}.
    """
    sample, error, m, n = np.broadcast_arrays(
        *(np.asarray(x, dtype=float) for x in (sample, mean_error, square, n))
    )
    grid = 2.0 ** -np.arange(0.0, 9.0)
    price = level + math.log(len(grid))
    top = (sample + error**2)[..., None] + price / (n[..., None] * grid)
    return (top / (1.0 - 0.5 * grid * m[..., None])).min(axis=-1)[()]
