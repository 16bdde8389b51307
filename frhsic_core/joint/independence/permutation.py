"""Permutation tests: the p-value, and n·HSIC_b under many orders of the rows of S."""

from __future__ import annotations

import torch
from torch import Tensor

_CHUNK = 2**22  # numbers held at once: 32 MB


def permutation_null(
    k: Tensor, l: Tensor, n_permutations: int, generator: torch.Generator, alpha: float
) -> tuple[Tensor, Tensor]:
    """Return the p-value (1 + #{T_π ≥ T})/(1 + B) and the level-α critical value that it implies.

    Permuting the rows of S leaves K as it is and permutes L. Indexing an n × n matrix by B permutations is slow. But
    Gram matrices of scalar attributes have a numerical rank r of a few tens, L = GGᵀ, and n²HSIC = ‖K^{1/2}G_π‖²_F:
    permuting n × r factors and one matrix product took about a tenth of the time at n = 300. Matrices of full rank are
    indexed.

    Parameters
    ----------
    k, l : Tensor
        Centred Gram matrices of one shape, ``(..., n, n)``.
    n_permutations : int
        B; every batch element has its own B permutations.
    generator : torch.Generator
        Source of the permutations.
    alpha : float
        Level.

    Examples
    --------
    >>> k = torch.eye(2, dtype=torch.float64) - 0.5
    >>> permutation_null(k, k, 19, torch.Generator().manual_seed(0), 0.05)[0].item()  # two rows: every order ties
    1.0
    """
    batch, n = k.shape[:-2], k.shape[-1]
    k, l = k.reshape(-1, n, n), l.reshape(-1, n, n)
    k_factor, l_factor = low_rank_factor(k), low_rank_factor(l)
    if l_factor is None and k_factor is not None:  # moving the rows of either side gives the same law
        k, l, k_factor, l_factor = l, k, l_factor, k_factor
    identity = torch.arange(n, device=k.device).expand(len(k), 1, n)
    observed = _permuted(k, l, k_factor, l_factor, identity)
    width = n * (n if l_factor is None else l_factor.shape[-1])
    chunk = max(1, _CHUNK // max(1, len(k) * width))
    draws = []
    for start in range(0, n_permutations, chunk):
        count = min(chunk, n_permutations - start)
        keys = torch.rand(len(k), count, n, generator=generator, device=generator.device, dtype=torch.float64)
        draws.append(_permuted(k, l, k_factor, l_factor, keys.argsort(-1).to(k.device)))
    null = torch.cat(draws, -1)
    # Equal statistics (discrete attributes) must count as equal whatever the order of summation.
    as_large = null >= observed * (1.0 - 1e-7)
    pvalue = (1.0 + as_large.sum(-1, dtype=torch.float64)) / (1.0 + n_permutations)
    # p ≤ α exactly when the statistic exceeds the m-th largest permuted one, m = ⌊α(B + 1)⌋.
    m = int(alpha * (n_permutations + 1) * (1 + 1e-12))
    if m == 0:
        threshold = torch.full_like(pvalue, torch.inf)
    else:
        threshold = null.topk(m, -1).values[..., -1]
    return pvalue.reshape(batch), threshold.reshape(batch)


def _permuted(k: Tensor, l: Tensor, k_factor: Tensor | None, l_factor: Tensor | None, order: Tensor) -> Tensor:
    """Return n·HSIC_b of K̃ with the rows of S in each ``order`` ``(batch, count, n)``, as ``(batch, count)``."""
    n, count = k.shape[-1], order.shape[1]
    batch = torch.arange(len(k), device=k.device)[:, None, None]
    if l_factor is None:
        moved = l[batch[..., None], order.unsqueeze(-1), order.unsqueeze(-2)]
        return (moved.flatten(-2) @ k.flatten(-2).unsqueeze(-1)).squeeze(-1) / n
    # All permuted factors side by side: one matrix product for each batch element.
    moved = l_factor[batch, order.mT].flatten(-2)
    if k_factor is not None:
        products = (k_factor.mT @ moved).square()
    else:
        products = (k @ moved) * moved
    return products.sum(-2).unflatten(-1, (count, -1)).sum(-1) / n


def low_rank_factor(gram: Tensor) -> Tensor | None:
    """Return the pivoted Cholesky factor G with at most n/2 columns, or ``None`` if 1e-12 of the trace is left."""
    n = gram.shape[-1]
    residual = gram.diagonal(dim1=-2, dim2=-1).clone()
    small = 1e-12 * residual.sum(-1)
    columns = gram.new_zeros(len(gram), n, 0)
    batch = torch.arange(len(gram), device=gram.device)
    while bool((residual.clamp_min(0.0).sum(-1) > small).any()):
        if columns.shape[-1] >= n // 2:
            return None
        best, pivot = residual.max(-1)
        column = gram[batch, :, pivot] - (columns @ columns[batch, pivot].unsqueeze(-1)).squeeze(-1)
        column = column / torch.where(best > 0, best, 1.0).sqrt().unsqueeze(-1) * (best > 0).unsqueeze(-1)
        columns = torch.cat([columns, column.unsqueeze(-1)], -1)
        residual = residual - column.square()
        residual[batch, pivot] = 0.0
    return columns
