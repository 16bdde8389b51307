"""Centring a Gram matrix, and the weights it leaves on the other one.

Every form of HSIC used here is linear in the Gram matrix K of the representation: HSIC = Σ_ij K_ij A_ij, where A
depends on the sensitive attribute alone. :func:`contraction_weights` gives A; the gradient in K is A itself, which is
what makes a training step cheap.
"""

from __future__ import annotations

import torch
from torch import Tensor

__all__ = ["centre", "contraction_weights", "require_estimator"]

ESTIMATORS = ("biased", "unbiased")


def require_estimator(estimator: str) -> None:
    """Raise unless ``estimator`` is one of the two names."""
    if estimator not in ESTIMATORS:
        raise ValueError(f"estimator is {estimator!r}: choose 'biased' or 'unbiased'.")


def centre(gram: Tensor, *, estimator: str = "biased", weights: Tensor | None = None) -> Tensor:
    """Centre a Gram matrix by its row and column means, in O(n²).

    ``"biased"``: H G H with H = I − 11ᵀ/n; with ``weights`` p (summing to one) the means are weighted ones.
    ``"unbiased"``: the U-centred matrix of Székely and Rizzo (2014), zero on the diagonal, with sums over j ≠ i divided
    by n − 2 and the grand sum by (n − 1)(n − 2); with ``weights`` that are 0/1 (a mask) only the kept rows count. Both
    are orthogonal projections, so one of two matrices in an inner product is enough to centre.

    Parameters
    ----------
    gram : Tensor
        Symmetric, ``(..., n, n)``.
    estimator : {"biased", "unbiased"}
        Which centring.
    weights : Tensor, optional
        ``(..., n)``: probabilities for the biased form, a 0/1 mask for the unbiased one.

    Examples
    --------
    >>> centre(torch.tensor([[2.0, 0.0], [0.0, 2.0]]))
    tensor([[ 1., -1.],
            [-1.,  1.]])
    """
    require_estimator(estimator)
    if estimator == "biased":
        if weights is None:
            row = gram.mean(-1, keepdim=True)
            row = row - 0.5 * row.mean(-2, keepdim=True)
            return (gram - row).sub_(row.mT)
        row = gram @ weights.unsqueeze(-1)
        row = row - 0.5 * (row * weights.unsqueeze(-1)).sum(-2, keepdim=True)
        return (gram - row).sub_(row.mT)
    n = gram.shape[-1]
    eye = torch.eye(n, dtype=torch.bool, device=gram.device)
    hollow = gram.masked_fill(eye, 0.0)
    if weights is None:
        row = hollow.sum(-1, keepdim=True) / (n - 2)
        return (hollow - row - row.mT + row.sum(-2, keepdim=True) / (n - 1)).masked_fill(eye, 0.0)
    kept = weights.to(gram.dtype).unsqueeze(-1)
    count = kept.sum(-2, keepdim=True)
    # Fewer than four kept rows define no unbiased estimate; the clamps keep the numbers finite and callers return zero.
    row = hollow @ kept / (count - 2).clamp_min(1.0)
    centred = hollow - row - row.mT + (row * kept).sum(-2, keepdim=True) / (count - 1).clamp_min(1.0)
    return centred.masked_fill(eye, 0.0) * kept * kept.mT


def contraction_weights(gram: Tensor, *, estimator: str = "biased", weights: Tensor | None = None) -> Tensor:
    """Return A with HSIC = Σ_ij K_ij A_ij, from the Gram matrix L of the sensitive attribute.

    Biased: A = p pᵀ ∘ (centred L), p = 1/n. Unbiased (Song et al., 2012): A = (U-centred L) / (n(n − 3)), and zero
    where a mask keeps fewer than four rows: such a batch says nothing. ``weights`` as in :func:`centre`.
    """
    centred = centre(gram, estimator=estimator, weights=weights)
    n = gram.shape[-1]
    if estimator == "biased":
        if weights is None:
            return centred.mul_(1.0 / (n * n))
        return centred * weights.unsqueeze(-1) * weights.unsqueeze(-2)
    if weights is None:
        return centred / (n * (n - 3))
    count = weights.to(gram.dtype).sum(-1)[..., None, None]
    enough = (count >= 4).to(gram.dtype)
    return centred * (enough / (count * (count - 3)).clamp_min(1.0))
