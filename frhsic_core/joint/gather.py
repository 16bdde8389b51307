"""Gather the rows of all processes, for the penalty of a global batch under ``torch.distributed``."""

from __future__ import annotations

from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor


class _Gather(torch.autograd.Function):
    """Concatenate along dimension −2; backward keeps one's own rows, times the number of processes."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, sizes: tuple[int, ...], rank: int) -> Tensor:
        largest = max(sizes)
        padded = x.new_zeros(*x.shape[:-2], largest, x.shape[-1])
        padded[..., : x.shape[-2], :] = x
        parts = [torch.empty_like(padded) for _ in sizes]
        dist.all_gather(parts, padded.contiguous())
        ctx.start, ctx.rows, ctx.world = sum(sizes[:rank]), sizes[rank], len(sizes)
        return torch.cat([part[..., :n, :] for part, n in zip(parts, sizes, strict=True)], dim=-2)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None, None]:
        return grad[..., ctx.start : ctx.start + ctx.rows, :] * ctx.world, None, None


def gather_rows(x: Tensor) -> Tensor:
    """Return the rows of all processes in the order of ranks, ``(..., n_r, d) -> (..., Σ n_r, d)``.

    Every process computes the same function P of all rows, so the gradient of P in one's own rows is known without
    further communication. It is multiplied by the number of processes W, because DistributedDataParallel averages:
    (1/W) Σ_r W ∂P/∂z_r · ∂z_r/∂θ = ∂P/∂θ, the gradient of a single process on the global batch. Where gradients are
    summed instead of averaged, divide the penalty by W.

    The processes may have different numbers of rows. Without an initialized process group, or with one process, the
    result is ``x`` itself.

    Examples
    --------
    >>> gather_rows(torch.ones(2, 1)).shape
    torch.Size([2, 1])
    """
    if not (dist.is_available() and dist.is_initialized()) or dist.get_world_size() == 1:
        return x
    mine = torch.tensor([x.shape[-2]], device=x.device)
    counts = [torch.empty_like(mine) for _ in range(dist.get_world_size())]
    dist.all_gather(counts, mine)
    return _Gather.apply(x, tuple(int(c) for c in counts), dist.get_rank())
