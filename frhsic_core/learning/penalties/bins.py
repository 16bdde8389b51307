"""Cutting a continuous attribute into bins, on the training data."""

from __future__ import annotations

import torch
from torch import Tensor

__all__ = ["bin_rows"]


def bin_rows(s: Tensor, *, bins: int, edges: str = "quantile") -> Tensor:
    """Bin number of every value, ``(datasets, n, p) -> (datasets, n, p)``, for each dataset and attribute.

    ``"quantile"``: edges at the k/bins quantiles; equal values share a bin, so ties can leave bins empty.
    ``"width"``: equally wide bins between the smallest and the largest value. O(n log n).

    Examples
    --------
    >>> bin_rows(torch.tensor([[[0.0], [1.0], [2.0], [9.0]]]), bins=2)[0, :, 0]
    tensor([0, 0, 1, 1])
    >>> bin_rows(torch.tensor([[[0.0], [1.0], [2.0], [9.0]]]), bins=2, edges="width")[0, :, 0]
    tensor([0, 0, 0, 1])
    """
    if bins < 2:
        raise ValueError(f"bins is {bins}: at least two are needed.")
    if edges not in ("quantile", "width"):
        raise ValueError(f"edges is {edges!r}: choose 'quantile' or 'width'.")
    inner = torch.arange(1, bins, dtype=s.dtype, device=s.device) / bins
    columns = s.mT.contiguous()  # (datasets, p, n)
    if edges == "width":
        low, high = columns.amin(-1, keepdim=True), columns.amax(-1, keepdim=True)
        cuts = low + (high - low) * inner
    else:
        # torch.quantile refuses more than 2**24 values; a sort and an interpolation do not.
        ordered = columns.sort(-1).values
        position = inner * (s.shape[1] - 1)
        below = position.floor().long()
        above = (below + 1).clamp_max(s.shape[1] - 1)
        cuts = torch.lerp(ordered[..., below], ordered[..., above], position - below)
    return torch.searchsorted(cuts.contiguous(), columns).mT.contiguous()
