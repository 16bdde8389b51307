"""Bootstrap intervals for GDP: how much the reported number depends on the sample."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from frhsic_core.arrays import ArrayLike, RandomState, as_generator, binary_scale
from frhsic_core.conditional.gdp import REFERENCE_CONSTANT, Options, Plan, average, plan
from frhsic_core.conditional.smoothing import log_kernel

_REPLICATES = 1 << 23  # numbers in one block of resampled predictions: 64 MiB in float64


@dataclass(frozen=True)
class GDPInterval:
    """A GDP estimate with its bootstrap interval; tensors have the batch shape.

    Attributes
    ----------
    estimate : Tensor
        GDP of the sample.
    lower, upper : Tensor
        Ends of the interval.
    standard_error : Tensor
        Standard deviation of the bootstrap replicates.
    bias : Tensor
        Mean of the replicates minus the estimate; large against ``standard_error`` near GDP = 0.
    level : float
        Nominal coverage.
    n_bootstrap : int
        Number of replicates.
    method : str
        ``"basic"`` or ``"percentile"``.
    """

    estimate: Tensor
    lower: Tensor
    upper: Tensor
    standard_error: Tensor
    bias: Tensor
    level: float
    n_bootstrap: int
    method: str


def gdp_interval(
    y_pred: ArrayLike,
    s: ArrayLike,
    *,
    n_bootstrap: int = 1000,
    level: float = 0.95,
    method: str = "basic",
    random_state: RandomState = None,
    **options: Any,
) -> GDPInterval:
    """Compute a bootstrap interval for ``gdp``; the same rows are resampled for every batch element.

    A replicate is GDP with the resampling counts c as row weights, at the bandwidth and on the grid of the sample. All
    replicates are two matrix products with the kernel matrix, ``(K(c·f))/(Kc)``: O(mn·n_bootstrap) time in BLAS, no
    kernel is evaluated again. Because rows are shared, two models in one batch can be compared row by row.

    GDP is a mean of absolute values: it is biased upwards near zero, and each replicate is biased once more.
    ``"basic"`` reflects the replicates at the estimate, ``[2·GDP − upper quantile, 2·GDP − lower quantile]`` clipped at
    zero, which takes that second bias out; ``"percentile"`` takes the quantiles as they are. Both aim at the smoothed
    GDP at the bandwidth used. On 400 Gaussian samples of n = 200, nominal 95 % intervals covered 94 % (basic) and 96 %
    (percentile) of the time at a GDP of .37, but 86 % and 81 % at .11: near zero test independence instead.

    Parameters
    ----------
    y_pred, s : array_like
        Predictions and sensitive attribute, as in ``gdp``.
    n_bootstrap : int
        Number of replicates.
    level : float
        Nominal coverage, between 0 and 1.
    method : {"basic", "percentile"}
        See above.
    random_state : int, numpy.random.Generator or torch.Generator, optional
        Source of the resampled rows; without one, a generator seeded with 0, so that the answer is repeatable.
    **options
        ``weights``, ``bandwidth``, ``grid``, ``reference``, ``mask``, ``sample_weight`` and ``check_finite``, as in
        ``gdp``.

    Returns
    -------
    GDPInterval
        Estimate, lower and upper end, standard error, bias; without gradient.

    Examples
    --------
    >>> s = torch.linspace(0, 1, 200, dtype=torch.float64)
    >>> result = gdp_interval(s**2, s, n_bootstrap=200, random_state=torch.Generator().manual_seed(0))
    >>> bool(result.lower < result.estimate < result.upper)
    True
    """
    if isinstance(n_bootstrap, bool) or not isinstance(n_bootstrap, int) or n_bootstrap < 2:
        raise ValueError(f"n_bootstrap is {n_bootstrap!r}: pass at least 2 replicates; 1000 are usual.")
    if not 0.0 < level < 1.0:
        raise ValueError(f"level is {level}: it must lie between 0 and 1, as in 0.95.")
    if method not in ("basic", "percentile"):
        raise ValueError(f"method is {method!r}: it must be 'basic' or 'percentile'.")
    with torch.no_grad():
        task = plan(y_pred, s, Options(**options))
        estimate = average(task)
        generator = as_generator(random_state)
        if generator is None:
            generator = torch.Generator().manual_seed(0)
        replicates = torch.cat([_replicates(task, c) for c in _counts(task, n_bootstrap, generator)], dim=-1)
        tail = 0.5 * (1.0 - level)
        lower = upper = error = estimate  # for an empty batch, of which torch knows no quantiles
        if estimate.numel() > 0:
            lower, upper = torch.quantile(replicates, replicates.new_tensor([tail, 1.0 - tail]), dim=-1)
            unit = binary_scale(replicates, dim=-1)  # squares of predictions can leave the range
            error = (replicates / unit).std(-1) * unit.squeeze(-1)
        if method == "basic":
            lower, upper = (2.0 * estimate - upper).clamp_min(0.0), (2.0 * estimate - lower).clamp_min(0.0)
        return GDPInterval(
            estimate=estimate,
            lower=lower,
            upper=upper,
            standard_error=error,
            bias=replicates.mean(-1) - estimate,
            level=level,
            n_bootstrap=n_bootstrap,
            method=method,
        )


def _counts(task: Plan, n_bootstrap: int, generator: torch.Generator) -> Iterator[Tensor]:
    """Yield resampling counts ``(n, b)``, in blocks small enough that batch × n × b numbers fit in memory."""
    n = task.s.shape[-2]
    step = max(1, _REPLICATES // max(1, n * task.mean().numel()))
    for start in range(0, n_bootstrap, step):
        size = (min(step, n_bootstrap - start), n)
        drawn = torch.randint(n, size, generator=generator, device=generator.device).to(task.y.device)
        yield (
            torch.zeros(size, dtype=task.y.dtype, device=drawn.device)
            .scatter_add_(1, drawn, torch.ones(size, dtype=task.y.dtype, device=drawn.device))
            .T
        )


def _replicates(task: Plan, counts: Tensor) -> Tensor:
    """Return GDP under each column of counts, ``(..., b)``."""
    # Predictions are centred at their mean, which leaves every gap as it is and keeps the digits of small ones; the
    # reference's shrinkage towards zero needs the level back.
    level = task.mean().unsqueeze(-1)
    y = (task.y - level).unsqueeze(-1)
    c = counts if task.q is None else counts * task.q.unsqueeze(-1) * task.s.shape[-2]
    total = c.sum(-2)
    some = total > 0
    mean = (c * y).sum(-2) / torch.where(some, total, 1.0)
    top = torch.zeros_like(mean)
    bottom = torch.zeros_like(mean)
    for block in task.blocks():
        logits = log_kernel(task.at[..., block, :], task.s, task.h)
        highest = logits.amax(-1, keepdim=True)
        kernel = torch.exp(logits - highest)
        density = kernel @ c
        # A value whose neighbours were all left out of a replicate has no conditional mean there: no gap.
        seen = density > 0
        conditional = (kernel @ (c * y)) / torch.where(seen, density, 1.0)
        raw = density * highest.exp()
        if task.shrink:
            shrink = raw / (raw + REFERENCE_CONSTANT)
            conditional = conditional * shrink - level.unsqueeze(-1) * (1.0 - shrink)
        gap = (conditional - mean.unsqueeze(-2)).abs() * seen
        if task.weights == "density":
            share = raw
        elif task.weights == "sample":
            share = c[..., block, :]
        else:
            share = torch.ones_like(raw)
        top = top + (share * gap).sum(-2)
        bottom = bottom + share.sum(-2)
    return torch.where(some, top / torch.where(bottom > 0, bottom, 1.0), 0.0)
