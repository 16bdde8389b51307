r"""How good can a bound be? Lower limits on every valid upper bound for GDP, and what known bounds give.

Let U be computed from n rows, with U ≥ GDP with probability at least 1 − δ for every distribution. Let the score be a
fair coin, independent of G groups of equal share. Then GDP = 0, and still U is at least g with probability ½ if

- two groups: no test can distinguish a coin with P(score = group) = ½ from the mixture of ½ + g and ½ − g well enough,
  which the number of agreements decides exactly (Neyman and Pearson);
- G groups, G even: :math:`16n^2g^4/G\le\log(1+(1-2\delta)^2)`, by the χ² distance of a mixture over signs.

The chapter "What can be promised?" has both proofs.
"""

from __future__ import annotations

import math
from functools import cache

from scipy.stats import binom, norm

from frhsic_core.bounds.gdp import Once, variance_slack
from frhsic_core.bounds.inequalities import hoeffding


def least_median(n: int, *, delta: float = 0.05) -> float:
    """Return the number that the median of every valid bound reaches at a fair coin and two groups, by bisection.

    Examples
    --------
    >>> [round(least_median(n) * n**0.5, 2) for n in (100, 10_000)]
    [1.14, 1.15]
    """
    low, high = 0.0, 0.5
    for _ in range(50):
        middle = 0.5 * (low + high)
        if power_at_half(n, middle) > delta:
            low = middle
        else:
            high = middle
    return low


def power_at_half(n: int, gap: float) -> float:
    """Return the smallest probability under the mixture of a set of samples with probability ½ under the fair coin.

    The set has the samples whose number of agreements is nearest to n/2, some of them with a part of their probability.
    """
    width, part = _nearest_half(n)
    inside = _near(n, 0.5 + gap, width - 1)
    return inside + part * (_near(n, 0.5 + gap, width) - inside)


@cache
def _nearest_half(n: int) -> tuple[int, float]:
    """Return the smallest half width with probability ½ or more, and the part of its last step that gives ½."""
    low, high = -1, n // 2
    while high - low > 1:
        middle = (low + high) // 2
        if _near(n, 0.5, middle) >= 0.5:
            high = middle
        else:
            low = middle
    before = _near(n, 0.5, high - 1)
    return high, (0.5 - before) / (_near(n, 0.5, high) - before)


def _near(n: int, probability: float, width: int) -> float:
    """Return the probability that a number of agreements is at most ``width`` from n/2, or ½ farther if n is odd."""
    if width < 0:
        return 0.0
    first, last = n // 2 - width, n - n // 2 + width
    return float(binom.cdf(last, n, probability) - binom.cdf(first - 1, n, probability))


def least_of_groups(groups: int, *, delta: float = 0.05) -> float:
    """Return c, where the median of every valid bound is at least c/√n at a fair coin and ``groups`` equal groups.

    The larger one of the limit for two groups, with many rows, and of that for G groups.

    Examples
    --------
    >>> [round(least_of_groups(groups), 2) for groups in (2, 40, 1000)]
    [1.15, 1.15, 2.47]
    """
    of_many = (math.log1p((1.0 - 2.0 * delta) ** 2) / 16.0) ** 0.25 * groups**0.25
    return max(least_constant(delta=delta), of_many)


def least_constant(*, delta: float = 0.05) -> float:
    """Return the limit of √n times :func:`least_median`.

    Half of the t for which a normal variable with mean t and variance one lies between the quartiles of the standard
    normal distribution with probability δ.
    """
    quartile = float(norm.ppf(0.75))
    low, high = 0.0, 40.0
    for _ in range(80):
        middle = 0.5 * (low + high)
        inside = norm.cdf(quartile - middle) - norm.cdf(-quartile - middle)
        if inside > delta:
            low = middle
        else:
            high = middle
    return 0.5 * low


def slacks(n: int, variance: float, *, delta: float = 0.05) -> dict[str, float]:
    """Return √n times what bounds add to GDP_n, at GDP_n = 0 and scores around ½ with this variance.

    Examples
    --------
    >>> {name: round(value, 2) for name, value in slacks(10_000, 0.25).items()}
    {'McDiarmid': 2.45, 'last year': 2.72, 'now': 1.35}
    """
    root = math.sqrt(n)
    level = math.log(1.0 / delta)
    deviation = math.sqrt(variance * n / (n - 1))
    plain = float(hoeffding(2.0, n, level))
    now = plain
    if Once().method(n, delta) == "variance":
        now = float(variance_slack(0.5, deviation, n, delta))
    return {
        "McDiarmid": root * plain,
        "last year": root * former_slack(n, variance, delta=delta),
        "now": root * now,
    }


FORMER_SHARES = (0.7, 0.1, 0.1, 0.1)


def former_slack(n: int, variance: float, *, delta: float = 0.05) -> float:
    """Return what the library added before: the smaller one of two bounds at δ/2, of which one used min(1, 4 Var f)."""
    one, two, three, four = (math.log(2.0 / (share * delta)) for share in FORMER_SHARES)
    deviation = math.sqrt(variance * n / (n - 1))
    root = min(1.0, 2.0 * deviation + 2.0 * math.sqrt(2.0 * two / (n - 1)))
    small = math.sqrt((three + math.log(2.0)) * (four + math.log(2.0))) / n
    with_variance = root * math.sqrt(2.0 * one / n) + 2.0 * one / (3.0 * n) + small
    return min(float(hoeffding(2.0, n, math.log(2.0 / delta))), with_variance)
