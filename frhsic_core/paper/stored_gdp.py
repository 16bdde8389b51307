"""The two numbers called GDP in stored results: the authors' estimate, and a smoothed one at one bandwidth.

The library has one GDP (:func:`frhsic_core.gdp`). The columns ``gdp_reference`` and ``gdp_sample`` of
the stored results are measured with the functions below, so that they can be compared with the
paper's numbers.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from frhsic_core._arrays import ArrayLike, require_same_rows, row_weights, same_kind
from frhsic_core.conditional._gdp import as_predictions
from frhsic_core.conditional._smoothing import (
    Bandwidth,
    counted_range,
    log_kernel,
    resolve_bandwidth,
    weigh_logits,
    weights_at,
)

AUTHORS_BANDWIDTH = 0.1
AUTHORS_GRID = 50
AUTHORS_CONSTANT = 1e-10  # the authors divide the kernel weights by their sum plus this
_BLOCK = 1 << 24  # numbers in one block of the weight matrix: 128 MiB in float64


@same_kind
def authors_gdp(
    y_pred: ArrayLike,
    s: ArrayLike,
    *,
    mask: ArrayLike | None = None,
    sample_weight: ArrayLike | None = None,
    check_finite: bool = True,
) -> Any:
    """Estimate GDP as the tables of the paper report it. O(n) time and memory.

    Nadaraya–Watson weights with bandwidth 0.1, averaged evenly over 50 points from the smallest to the
    largest S, with S scaled to [0, 1] and predictions on the scale of logits. The sum of the weights has
    1e-10 added to it, which pulls the conditional mean to zero where no observation is near.

    Parameters
    ----------
    y_pred : array_like
        Predictions, ``(..., n)`` or ``(..., n, 1)``, used as they are.
    s : array_like
        One attribute, ``(..., n)`` or ``(..., n, 1)``.
    mask : array_like, optional
        Rows to use, ``(..., n)``; for equal opportunity the rows with y = 1. Where it keeps nothing, the
        value is zero.
    sample_weight : array_like, optional
        Weights of the rows, ``(..., n)``.
    check_finite : bool
        Switch the checks of values off.

    Returns
    -------
    float, array or Tensor
        The batch shape; a tensor if an argument was one.

    Examples
    --------
    >>> round(authors_gdp([0.1, 0.2, 0.7, 0.8], [0.0, 0.0, 1.0, 1.0]), 4)
    0.2924
    """
    require_same_rows(s, mask, names=("s", "mask"))
    require_same_rows(s, sample_weight, names=("s", "sample_weight"))
    y, points = as_predictions(y_pred, s, check_finite, torch=True)
    if points.shape[-1] != 1:
        raise ValueError(f"s has {points.shape[-1]} columns: pass one attribute.")
    q = row_weights(points, mask, sample_weight, check_finite=check_finite)
    low, high = counted_range(points.squeeze(-1), q)
    steps = torch.linspace(0.0, 1.0, AUTHORS_GRID, dtype=points.dtype, device=points.device)
    at = (low + (high - low) * steps).unsqueeze(-1)
    logits = weigh_logits(log_kernel(at, points, AUTHORS_BANDWIDTH), q)
    conditional = (torch.softmax(logits, dim=-1) @ y.unsqueeze(-1)).squeeze(-1)
    total = torch.logsumexp(logits, dim=-1).exp()
    if q is None:
        mean = y.mean(-1, keepdim=True)
    else:
        total = total * (q > 0).sum(-1, keepdim=True)
        mean = (q * y).sum(-1, keepdim=True)
    pulled = conditional * (total / (total + AUTHORS_CONSTANT))
    value = (pulled - mean).abs().mean(-1)
    if q is None:
        return value
    return value * (q > 0).any(-1)


@torch.no_grad()
def smoothed_gdp(y_pred: ArrayLike, s: ArrayLike, *, bandwidth: Bandwidth = 0.1) -> Tensor:
    """Estimate ``E_S |E[f | S] − E f|`` with Nadaraya–Watson weights at one bandwidth, at the observed S. O(n²) time.

    Parameters
    ----------
    y_pred : array_like
        ``(..., n)``: predictions.
    s : array_like
        ``(..., n)`` or ``(..., n, p)``; several attributes have product weights.
    bandwidth : float, str, Tensor or tuple
        As in :func:`frhsic_core.eipm`.

    Returns
    -------
    Tensor
        The batch shape.

    Examples
    --------
    >>> round(smoothed_gdp([0.1, 0.2, 0.7, 0.8], [0.0, 0.0, 1.0, 1.0], bandwidth=0.01).item(), 6)
    0.3
    """
    y, s = as_predictions(y_pred, s, check_finite=False, torch=True)
    h = resolve_bandwidth(bandwidth, s, None)
    mean = y.mean(-1, keepdim=True)
    step = max(1, _BLOCK // max(1, s.shape[:-1].numel()))
    gaps = []
    for at in s.split(step, dim=-2):
        conditional = (weights_at(at, s, h, None) @ y.unsqueeze(-1)).squeeze(-1)
        gaps.append((conditional - mean).abs())
    return torch.cat(gaps, dim=-1).mean(-1)
