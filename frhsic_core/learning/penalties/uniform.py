"""Weights that make S uniform: the minority-protection reference P_Z ⊗ Unif(S)."""

from __future__ import annotations

import torch
from torch import Tensor

__all__ = ["uniform_weights"]


def uniform_weights(s: Tensor, *, bins: int = 20, largest: float = 20.0) -> Tensor:
    """Weights ``(..., n)`` with mean one, inverse to a histogram density of S ``(..., n, p)``.

    Under them the marginal of S is uniform over its occupied cells, so that HSIC compares with P_Z ⊗ Unif(S). Each
    attribute is cut into ``bins`` equal-width cells (p > 1: their product); a weight above ``largest`` times the mean
    is cut, since a handful of rows would otherwise be the whole penalty. O(np).

    Examples
    --------
    >>> uniform_weights(torch.tensor([[0.0], [0.0], [0.0], [1.0]]), bins=2)
    tensor([0.6667, 0.6667, 0.6667, 2.0000])
    """
    low, high = s.amin(-2, keepdim=True), s.amax(-2, keepdim=True)
    cell = ((s - low) / (high - low).clamp_min(torch.finfo(s.dtype).tiny) * bins).long().clamp_(0, bins - 1)
    place = torch.zeros_like(cell[..., 0])
    for a in range(s.shape[-1]):
        place = place * bins + cell[..., a]
    flat = place.reshape(-1, place.shape[-1])
    weights = torch.empty(flat.shape, dtype=s.dtype, device=s.device)
    for i, row in enumerate(flat):
        _, inverse, counts = row.unique(return_inverse=True, return_counts=True)
        weights[i] = (1.0 / counts.to(s.dtype))[inverse]
    weights = weights.reshape(place.shape)
    weights = weights / weights.mean(-1, keepdim=True)
    weights = weights.clamp_max(largest)
    return weights / weights.mean(-1, keepdim=True)
