"""Smooth over the sensitive attribute with kernel weights: bandwidths, Nadaraya–Watson and leave-one-out weights.

The conditional route never observes the law of Z at one exact value of S. It replaces P(Z | S = s) by the sample with
weights

    w_j(s) = q_j exp(−Σ_a (s_a − S_ja)² / (2h_a²)) / Σ_l q_l exp(−Σ_a (s_a − S_la)² / (2h_a²)),

where q is uniform, or a mask, or weights of the rows. The bandwidth h has a price: at a fixed h every statistic built
on these weights converges to its smoothed version, not to the one at h = 0.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from frhsic_core._arrays import batch_shape, beside, binary_scale
from frhsic_core.backend import finfo, is_tensor, xp
from frhsic_core.kernels import squared_distances

if TYPE_CHECKING:
    from torch import Tensor

Bandwidth = (
    Any  # a number, one for each attribute, a tensor with the batch shape, or the name of a rule
)
_RULES = ("jiang", "silverman")


def resolve_bandwidth(bandwidth: Bandwidth, s: Tensor, q: Tensor | None) -> float | Tensor:
    """Return the bandwidth as a float or as a tensor ``(..., 1)`` or ``(..., p)``.

    A number, one number for each attribute, a tensor with the batch shape, or the name of a rule. With p attributes,
    standard deviations d_a and n rows (weighted rows count as Kish's effective number) the rules are

    * ``"silverman"``: ``d_a (n(p+2)/4)^(−1/(p+4))``;
    * ``"jiang"``: ``(n(p+2)/4)^(−1/(p+4))``, which the code of Jiang et al. (2022) uses: Silverman's factor without the
      standard deviation. It supposes S scaled to [0, 1] and is wide there; on raw ages it is far too narrow.

    Both shrink like n^(−1/5) at p = 1, the rate at which the conditional criteria converge.
    """
    if is_tensor(bandwidth):
        # Tensors are trusted: looking at their values would make a training step wait for the GPU.
        return beside(bandwidth, s, name="bandwidth").unsqueeze(-1)
    if isinstance(bandwidth, str) and bandwidth in _RULES:
        return _rule(bandwidth, s.detach(), q)
    if isinstance(bandwidth, tuple | list):
        if len(bandwidth) != s.shape[-1]:
            raise ValueError(
                f"bandwidth has {len(bandwidth)} entries but s has {s.shape[-1]} columns: give one number for each."
            )
        # Filled on the device: a copy from the host could not be captured in a CUDA graph.
        return xp.stack([s.new_full((), _positive(h)) for h in bandwidth])
    return _positive(bandwidth)


def _positive(bandwidth: Any) -> float:
    try:
        value = math.nan if isinstance(bandwidth, str) else float(bandwidth)
    except (TypeError, ValueError):
        value = math.nan
    if not (math.isfinite(value) and value > 0):
        raise ValueError(
            f"bandwidth is {bandwidth!r}: it must be a positive number or one of {', '.join(map(repr, _RULES))}."
        )
    return value


def _rule(name: str, s: Tensor, q: Tensor | None) -> float | Tensor:
    n, p = s.shape[-2:]
    # Kish's effective number of rows, as in scipy.stats.gaussian_kde; a mask makes it the number of rows kept.
    rows = s.new_full((), float(n)) if q is None else 1.0 / (q * q).sum(-1).clamp_min(1.0 / n)
    factor = ((rows * (p + 2) / 4.0) ** (-1.0 / (p + 4))).unsqueeze(-1)
    if name == "jiang":
        return factor
    weights = s.new_full((n,), 1.0 / n) if q is None else q
    unit = binary_scale(s, dim=-2)
    s = s / unit
    centred = s - (weights.unsqueeze(-1) * s).sum(-2, keepdim=True)
    variance = (weights.unsqueeze(-1) * centred * centred).sum(-2)
    deviation = (
        variance / (1.0 - 1.0 / rows.unsqueeze(-1)).clamp_min(1.0 / n)
    ).sqrt() * unit.squeeze(-2)
    # A constant attribute has no scale; under any bandwidth all its weights are equal.
    return factor * xp.where(deviation > 0, deviation, xp.ones_like(deviation))


def counted_range(values: Tensor, weights: Tensor | None) -> tuple[Tensor, Tensor]:
    """Return the smallest and the largest of the values ``(..., m)`` with a positive weight, each ``(..., 1)``."""
    if weights is None:
        return values.amin(-1, keepdim=True), values.amax(-1, keepdim=True)
    largest = finfo(values).max
    low = values.masked_fill(weights <= 0, largest).amin(-1, keepdim=True)
    high = values.masked_fill(weights <= 0, -largest).amax(-1, keepdim=True)
    empty = low > high  # no row counts: any finite range will do, because the statistic is zero
    return low.masked_fill(empty, 0.0), high.masked_fill(empty, 0.0)


def log_kernel(at: Tensor, s: Tensor, h: float | Tensor) -> Tensor:
    """Return the log of the product Gaussian kernel, ``(..., m, n)``, kept finite: a softmax of it is never NaN."""
    if s.shape[-1] == 1:
        # One attribute: differences before squares lose nothing, and cost no more than the expansion.
        scaled = (at - s.mT) / (h.unsqueeze(-1) if is_tensor(h) else h)
        squared = scaled * scaled
    else:
        scale = h.unsqueeze(-2) if is_tensor(h) else h
        at, s = at / scale, s / scale
        # A bandwidth far below the spread of S: infinite squares are right, but a difference of them is NaN.
        unit = xp.maximum(binary_scale(at), binary_scale(s))
        squared = squared_distances(at / unit, s / unit) * unit * unit
    return (-0.5 * squared).clamp_min(-finfo(s).max / 4)


def weigh_logits(logits: Tensor, q: Tensor | None) -> Tensor:
    """Add log q to a log-kernel; rows with q = 0 get the lowest finite number, below every row that counts."""
    if q is None:
        return logits
    keep = (q > 0).unsqueeze(-2)
    log_q = xp.where(q > 0, q, xp.ones_like(q)).log().unsqueeze(-2)
    return (logits + log_q).masked_fill(~keep, -finfo(logits).max)


def weights_at(at: Tensor, s: Tensor, h: float | Tensor, q: Tensor | None) -> Tensor:
    """Return Nadaraya–Watson weights ``(..., m, n)`` of the rows at each value in ``at``; zero throughout where q is.

    A softmax of the log-kernel: a value far from all data gets the nearest observations, never 0/0. O(mnp) time.

    Examples
    --------
    >>> import torch
    >>> at, s = torch.tensor([[0.0], [1e6]]), torch.tensor([[0.0], [1.0], [2.0]])
    >>> weights_at(at, s, 1.0, None).round(decimals=4)
    tensor([[0.5741, 0.3482, 0.0777],
            [0.0000, 0.0000, 1.0000]])
    """
    weights = xp.softmax(weigh_logits(log_kernel(at, s, h), q), dim=-1)
    return weights if q is None else weights * (q > 0).unsqueeze(-2)


def leave_one_out_at(
    anchors: Tensor | None, s: Tensor, h: float | Tensor, q: Tensor | None
) -> tuple[Tensor, Tensor]:
    """Return Nadaraya–Watson weights at the rows ``anchors`` (all if ``None``), and whether each has another row.

    Row i itself is left out of its own weights: the smoothed conditional law of FREM (Kong et al., 2025; appendix D of
    the paper, ``app:frem_anchors``). A lonely row gets its nearest neighbors. O(mnp) time, O(mn) memory.

    Examples
    --------
    >>> import torch
    >>> leave_one_out_at(None, torch.tensor([[0.0], [1.0], [2.0]]), 1.0, None)[0].round(decimals=4)
    tensor([[0.0000, 0.8176, 0.1824],
            [0.5000, 0.0000, 0.5000],
            [0.1824, 0.8176, 0.0000]])
    """
    n = s.shape[-2]
    if anchors is None:
        at, itself = s, xp.own_entries(n, like=s)
    else:
        at = take_rows(s, anchors)
        itself = anchors.unsqueeze(-1) == xp.arange(n, like=s)
    logits = weigh_logits(log_kernel(at, s, h), q)
    weights = xp.softmax(logits.masked_fill(itself, -finfo(s).max), dim=-1)
    if q is None:
        return weights, s.new_ones(()) > 0
    allowed = (q > 0).unsqueeze(-2) & ~itself
    return weights * allowed, allowed.any(-1, keepdim=True)


def take_rows(x: Tensor, index: Tensor) -> Tensor:
    """Return the rows of ``x`` ``(..., n, d)`` at ``index`` ``(m,)`` or ``(..., m)``."""
    if index.ndim == 1:
        return x.index_select(-2, index)
    batch = batch_shape(x, index.unsqueeze(-1))
    index = (
        index.expand(*batch, index.shape[-1])
        .unsqueeze(-1)
        .expand(*batch, index.shape[-1], x.shape[-1])
    )
    return x.expand(*batch, *x.shape[-2:]).gather(-2, index)
