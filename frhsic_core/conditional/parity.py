"""Demographic parity, the criterion GDP generalises."""

from __future__ import annotations

import torch
from torch import Tensor

from frhsic_core.arrays import ArrayLike
from frhsic_core.conditional.bandwidth import row_weights
from frhsic_core.conditional.gdp import as_predictions, attribute_range

__all__ = ["demographic_parity"]


def demographic_parity(
    y_pred: ArrayLike,
    s: ArrayLike,
    *,
    mask: ArrayLike | None = None,
    sample_weight: ArrayLike | None = None,
    check_finite: bool = True,
) -> Tensor:
    """Demographic-parity gap ``|E[f | S = 1] − E[f | S = 0]|`` of a binary attribute.

    The paper says GDP reduces to it for binary S (below ``eq:GDP``); the exact relation is ``GDP = 2p(1 − p)·DP`` with
    p = P(S = 1), at most half of it. O(n) time and memory.

    Parameters
    ----------
    y_pred, s : array_like
        ``(..., n)``; the two values of S may be any two numbers.
    mask, sample_weight, check_finite
        As in ``gdp``. With ``check_finite=False`` values above the middle of the range of S form one group, and a
        missing group gives zero instead of an error.

    Returns
    -------
    Tensor
        The gap, with the batch shape.

    Examples
    --------
    >>> round(demographic_parity([0.1, 0.2, 0.7, 0.8], [0, 0, 1, 1]).item(), 6)
    0.6
    """
    y, s = as_predictions(y_pred, s, check_finite)
    if s.shape[-1] != 1:
        raise ValueError(f"s has {s.shape[-1]} columns: demographic_parity needs one binary attribute.")
    q = row_weights(s, mask, sample_weight, check_finite=check_finite)
    low, high = attribute_range(s, q)
    flat = s.squeeze(-1)
    kept = y.new_full(y.shape[-1:], 1.0 / y.shape[-1]) if q is None else q
    if check_finite:
        if bool(((flat != low) & (flat != high) & (kept > 0)).any()):
            raise ValueError("s has more than two values: demographic_parity is for binary s; gdp takes any s.")
        if bool((low == high).any()):
            raise ValueError("s has a single value: demographic_parity compares two groups; gdp is zero here.")
    upper = kept * (flat > 0.5 * (low + high))
    lower = kept - upper
    means = [(g * y).sum(-1) / torch.where(g.sum(-1) > 0, g.sum(-1), 1.0) for g in (lower, upper)]
    both = (lower.sum(-1) > 0) & (upper.sum(-1) > 0)
    return (means[1] - means[0]).abs() * both
