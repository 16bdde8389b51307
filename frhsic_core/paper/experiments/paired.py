r"""Paired comparison of two methods over splits: exact signed-rank test, corrected t-test, Holm's correction.

Splits are random cuts of one dataset. Their training parts overlap (80 % of the rows each), so differences from
different splits are not independent: a p-value says how stable an order is *on this dataset under re-splitting*, not on
a new sample of people. The corrected resampled t-test of Nadeau and Bengio (2003) allows for the overlap and stands
beside the signed-rank test.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
import pandas as pd
from scipy import stats


def signed_rank(difference: np.ndarray) -> float:
    """Return the exact two-sided p-value of Wilcoxon's signed-rank test; ties and zeros are allowed.

    Zeros are left out (Wilcoxon's way), tied |d| share their mean rank, and the law of the rank sum under random signs
    is counted out, conditionally on the ranks: twice the smaller tail, at most 1. The smallest p-value n differences
    can reach is 2^(1 − n): 1/16 with five, 6·10⁻⁸ with 25. O(n³).

    Examples
    --------
    >>> signed_rank(np.array([1.0, 2.0, 3.0, 4.0, 5.0]))
    0.0625
    """
    kept = np.asarray(difference, float)
    kept = kept[kept != 0.0]
    if not len(kept):
        return 1.0
    doubled = np.rint(2 * stats.rankdata(np.abs(kept))).astype(int)  # midranks are halves of integers
    law = np.zeros(doubled.sum() + 1)
    law[0] = 1.0
    for rank in doubled:
        law[rank:] = 0.5 * law[rank:] + 0.5 * law[: len(law) - rank]
        law[:rank] *= 0.5
    observed = int(doubled[kept > 0].sum())
    return float(min(1.0, 2.0 * min(law[: observed + 1].sum(), law[observed:].sum())))


def holm(p: np.ndarray) -> np.ndarray:
    """Return p-values adjusted by Holm's step-down method: any set of claims made at level α has familywise error α.

    Examples
    --------
    >>> holm(np.array([0.01, 0.04, 0.03])).tolist()
    [0.03, 0.06, 0.06]
    """
    p = np.asarray(p, float)
    order = np.argsort(p, kind="stable")
    stepped = np.maximum.accumulate(p[order] * np.arange(len(p), 0, -1))
    adjusted = np.empty_like(p)
    adjusted[order] = np.minimum(stepped, 1.0)
    return adjusted


def mean_of_others(values: np.ndarray) -> np.ndarray:
    """Return for each split (first axis) the mean over the other splits, by which a setting is chosen.

    Examples
    --------
    >>> mean_of_others(np.array([1.0, 2.0, 6.0])).tolist()
    [4.0, 3.5, 1.5]
    """
    return (values.sum(0) - values) / (len(values) - 1)


def corrected_t(difference: np.ndarray, *, test_share: float = 0.2) -> tuple[float, float]:
    r"""Return t and two-sided p of the corrected resampled t-test of Nadeau and Bengio.

    .. math:: t = \bar d\,/\sqrt{\big(\tfrac1J + \tfrac{n_\text{test}}{n_\text{train}}\big)\,s^2},\qquad J - 1
        \text{ degrees of freedom.}

    With one fifth for testing the variance is not s²/J but s²(1/J + 1/4): more splits help only up to a point.

    Examples
    --------
    >>> t, p = corrected_t(np.array([1.0, 2.0, 3.0]))
    >>> round(t, 4), round(p, 4)
    (2.6186, 0.1201)
    """
    d = np.asarray(difference, float)
    variance = d.var(ddof=1) * (1.0 / len(d) + test_share / (1.0 - test_share))
    if variance == 0.0:
        return (0.0, 1.0) if d.mean() == 0.0 else (float(np.copysign(np.inf, d.mean())), 0.0)
    t = d.mean() / np.sqrt(variance)
    return float(t), float(2.0 * stats.t.sf(abs(t), len(d) - 1))


def corrected_scale(splits: int, *, test_share: float = 0.2) -> float:
    """Return by how much the interval of a mean over splits widens in the corrected resampled t-test.

    Examples
    --------
    >>> round(corrected_scale(25), 3)
    2.693
    """
    return float(np.sqrt(1.0 + splits * test_share / (1.0 - test_share)))


def t_interval(difference: np.ndarray) -> tuple[float, float]:
    """Return the mean of paired differences and the half-width of its 95 % t interval; NaN with a single one.

    Examples
    --------
    >>> mean, half = t_interval(np.array([1.0, 2.0, 3.0]))
    >>> mean, round(half, 3)
    (2.0, 2.484)
    """
    d = np.asarray(difference, float)
    half = stats.t.ppf(0.975, len(d) - 1) * d.std(ddof=1) / np.sqrt(len(d)) if len(d) > 1 else np.nan
    return float(d.mean()), float(half)


def compare_all(pairs: Iterable[tuple[dict[str, Any], np.ndarray]]) -> pd.DataFrame:
    """Compare two methods from their differences over splits, of which positive ones favor the first; a line for each.

    A line has its labels; ``splits``, ``wins``, ``losses`` and ``mean``; ``p`` of the exact signed-rank test and
    ``p_corrected`` of the corrected resampled t-test; and both adjusted over all lines by Holm's method, ``p_holm`` and
    ``p_corrected_holm``. ``verdict_corrected`` is what the latter says at 5 %: ``better``, ``worse`` or
    ``not_significant``.
    """
    lines = []
    for labels, d in pairs:
        if not np.isfinite(d).all():
            raise ValueError("difference holds NaN or infinity: leave these splits out of both methods.")
        counts = {"splits": len(d), "wins": (d > 0).sum(), "losses": (d < 0).sum(), "mean": d.mean()}
        lines.append(labels | counts | {"p": signed_rank(d), "p_corrected": corrected_t(d)[1]})
    table = pd.DataFrame(lines)
    table = table.assign(p_holm=holm(table["p"]), p_corrected_holm=holm(table["p_corrected"]))
    side = np.where(table["mean"] > 0, "better", "worse")
    return table.assign(verdict_corrected=np.where(table["p_corrected_holm"] < 0.05, side, "not_significant"))
