"""GDP by kernel smoothing at a fixed bandwidth, in the conventions that the stored results of the paper's runs have.

The library itself has one GDP (:func:`frhsic_core.gdp`). The columns ``gdp_sample``, ``gdp_uniform`` and
``gdp_density`` of the stored results are measured with this function, so that they can be compared with the paper.
"""

from __future__ import annotations

import torch
from torch import Tensor

from frhsic_core.arrays import ArrayLike
from frhsic_core.choices import one_of
from frhsic_core.conditional._gdp import as_predictions, attribute_range
from frhsic_core.conditional._smoothing import Bandwidth, log_kernel, resolve_bandwidth

GRID = {"uniform": 50, "density": 999}
_BLOCK = 1 << 24  # numbers in one block of the weight matrix: 128 MiB in float64


@torch.no_grad()
def smoothed_gdp(
    y_pred: ArrayLike, s: ArrayLike, *, average: str = "sample", bandwidth: Bandwidth = "silverman"
) -> Tensor:
    """Estimate ``E_S |E[f | S] − E f|`` with Nadaraya–Watson weights at one bandwidth. O(mn) time for m values of S.

    Parameters
    ----------
    y_pred : array_like
        ``(..., n)``: predictions.
    s : array_like
        ``(..., n)`` or ``(..., n, p)``; several attributes have product weights and need ``average="sample"``.
    average : {"sample", "uniform", "density"}
        Over the observed S; evenly over 50 points from the smallest to the largest S; or over 999 points between them,
        weighted by the kernel density estimate of S. With ``bandwidth="jiang"``, probabilities and S scaled to [0, 1]
        the last one is the form of Jiang et al. (2022).
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
    one_of("average", average, ("sample", *GRID))
    y, s = as_predictions(y_pred, s, check_finite=False)
    h = resolve_bandwidth(bandwidth, s, None)
    at, counts = s, None
    if average == "sample" and s.ndim == 2:  # equal attributes have equal weights: one row stands for all
        at, counts = s.unique(dim=0, return_counts=True)
    if average != "sample":
        low, high = attribute_range(s, None)
        count = GRID[average]
        steps = torch.linspace(0.0, 1.0, count + 2, dtype=s.dtype, device=s.device)[1:-1]
        if average == "uniform":
            steps = torch.linspace(0.0, 1.0, count, dtype=s.dtype, device=s.device)
        at = (low + (high - low) * steps).unsqueeze(-1)
    mean = y.mean(-1, keepdim=True)
    step = max(1, _BLOCK // max(1, s.shape[:-1].numel()))
    gaps, densities = [], []
    for start in range(0, at.shape[-2], step):
        logits = log_kernel(at[..., start : start + step, :], s, h)
        conditional = (torch.softmax(logits, dim=-1) @ y.unsqueeze(-1)).squeeze(-1)
        gaps.append((conditional - mean).abs())
        densities.append(torch.logsumexp(logits, dim=-1))
    gap = torch.cat(gaps, dim=-1)
    if average == "density":
        return (torch.softmax(torch.cat(densities, dim=-1), dim=-1) * gap).sum(-1)
    return gap.mean(-1) if counts is None else (counts * gap).sum(-1) / counts.sum()
