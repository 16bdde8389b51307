r"""How well models predict samples held out, and how sure the difference between two of them is.

Of numbers it is R². Of classes it is the AUC, the probability that a sample with y = 1 gets a
larger output than one with y = 0, where a tie counts half:

.. math:: \mathrm{AUC} = \sum_{i: y_i=1}\sum_{j: y_j=0} w_i w_j \{1(f_i > f_j) + 1(f_i = f_j)/2\}
    \Big/ \sum_{i: y_i=1} w_i \sum_{j: y_j=0} w_j .

Accuracy cannot judge models of a rare outcome. If two of a hundred people have y = 1, then models
that predict y = 0 for everybody are all 98 % right, whatever their probabilities are.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


class Judged(NamedTuple):
    """The performance of each model, and the standard error of its change from the first one."""

    performance: Array
    standard_error: Array


def judge_numbers(predictions: Array, y: Array, weight: Array, *, first: int) -> Judged:
    """Return R² of predictions ``(models, n)``; the change is from that of the model ``first``."""
    weight = weight / weight.sum()
    spread = max(float(weight @ (y - weight @ y) ** 2), 1e-30)
    score = -((predictions - y) ** 2) / spread
    return Judged(1.0 + score @ weight, _error_of_mean(score - score[first], weight))


def judge_classes(outputs: Array, y: Array, weight: Array, *, first: int) -> Judged:
    """Return the AUC of outputs ``(models, n)`` for classes 0 and 1; the change is from ``first``.

    The standard error is that of DeLong and others (1988): the AUC is a mean over the positive
    samples and a mean over the negative ones, and the errors of the two add up.
    """
    positive = (y > 0.5) & (weight > 0)
    negative = (y <= 0.5) & (weight > 0)
    if not positive.any() or not negative.any():
        raise ValueError(
            "the validation part has one class only: λ cannot be chosen. Use more samples, raise "
            "validation_fraction, or give lam a number."
        )
    of_positive = weight[positive] / weight[positive].sum()
    of_negative = weight[negative] / weight[negative].sum()
    below = []
    above = []
    for output in outputs:
        high, low = output[positive], output[negative]
        below.append(share_below(high, low, of_negative))
        above.append(1.0 - share_below(low, high, of_positive))
    wins = np.array(below)
    losses = np.array(above)
    from_positive = _error_of_mean(wins - wins[first], of_positive)
    from_negative = _error_of_mean(losses - losses[first], of_negative)
    return Judged(wins @ of_positive, np.hypot(from_positive, from_negative))


def share_below(values: Array, others: Array, weight: Array) -> Array:
    """Return the weighted share of the others below each value; an equal one counts half.

    The weights sum to one. O(n log n).

    Examples
    --------
    >>> share_below(np.array([1.0, 2.0]), np.array([0.0, 2.0]), np.array([0.5, 0.5]))
    array([0.5 , 0.75])
    """
    order = others.argsort(kind="stable")
    ordered = others[order]
    total = np.concatenate([[0.0], weight[order].cumsum()])
    less = total[np.searchsorted(ordered, values, side="left")]
    at_most = total[np.searchsorted(ordered, values, side="right")]
    return 0.5 * (less + at_most)


def _error_of_mean(values: Array, weight: Array) -> Array:
    """Return the standard error of weighted means; with equal weights it is sd/√n."""
    centered = values - (values @ weight)[:, np.newaxis]
    variance = centered**2 @ weight**2
    count = 1.0 / float(weight @ weight)  # Kish's number of samples
    return np.sqrt(variance * count / max(count - 1.0, 1.0))
