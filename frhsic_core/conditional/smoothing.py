"""Smoothing over the sensitive attribute: bandwidths, Nadaraya–Watson weights and leave-one-out weights.

The conditional route never observes the law of Z at one exact value of S. It replaces P(Z | S = s) by the sample with
weights

    w_j(s) = q_j exp(−Σ_a (s_a − S_ja)² / (2h_a²)) / Σ_l q_l exp(−Σ_a (s_a − S_la)² / (2h_a²)),

where q is uniform, or a mask, or weights of the rows. The bandwidth h has a price: at a fixed h every statistic built
on these weights converges to its smoothed version, not to the one at h = 0.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor

from frhsic_core.arrays import ArrayLike, as_mask, as_sample, as_tensor, as_weights, binary_scale
from frhsic_core.kernels import squared_distances
from frhsic_core.memory import require_memory

Bandwidth = float | str | Tensor | tuple[float, ...] | list[float]
_RULES = ("jiang", "silverman", "scott")


def row_weights(
    z: Tensor, mask: ArrayLike | None, sample_weight: ArrayLike | None, *, check_finite: bool = True
) -> Tensor | None:
    """Join a mask and weights into q ``(..., n)``, which sums to one over the rows kept; ``None`` means uniform.

    A batch element whose mask keeps nothing is an error, or, with ``check_finite=False``, has q = 0 throughout, and
    every statistic of this package is then zero for it, without waiting for the GPU.
    """
    if mask is None and sample_weight is None:
        return None
    if sample_weight is None:
        weights = z.new_ones(())
    elif check_finite:
        weights = as_weights(sample_weight, z)
    else:
        weights = as_tensor(sample_weight, name="sample_weight").to(dtype=z.dtype, device=z.device)
    if mask is not None:
        weights = weights * as_mask(mask, z).to(z.dtype)
    total = weights.sum(-1, keepdim=True)
    if check_finite and bool((total == 0).any()):
        raise ValueError(
            "mask keeps no row with a positive weight: keep at least one in every batch element "
            "(check_finite=False returns zero for such elements)."
        )
    return weights / torch.where(total > 0, total, torch.ones_like(total))


def resolve_bandwidth(bandwidth: Bandwidth, s: Tensor, q: Tensor | None) -> float | Tensor:
    """Return the bandwidth as a float or as a tensor ``(..., 1)`` or ``(..., p)``; see :func:`smoothing_bandwidth`."""
    if isinstance(bandwidth, Tensor):
        # Tensors are trusted: looking at their values would make a training step wait for the GPU.
        return bandwidth.to(dtype=s.dtype, device=s.device).unsqueeze(-1)
    if isinstance(bandwidth, str):
        return _rule(bandwidth, s.detach(), q)
    if isinstance(bandwidth, tuple | list):
        if len(bandwidth) != s.shape[-1]:
            raise ValueError(
                f"bandwidth has {len(bandwidth)} entries but s has {s.shape[-1]} columns: give one number for each."
            )
        # Filled on the device: a copy from the host could not be captured in a CUDA graph.
        return torch.stack([s.new_full((), _positive(h)) for h in bandwidth])
    return _positive(bandwidth)


def _positive(bandwidth: float) -> float:
    try:
        value = float(bandwidth)
    except (TypeError, ValueError):
        value = math.nan
    if not (math.isfinite(value) and value > 0):
        raise ValueError(
            f"bandwidth is {bandwidth!r}: it must be a positive number or one of {', '.join(map(repr, _RULES))}."
        )
    return value


def _rule(name: str, s: Tensor, q: Tensor | None) -> float | Tensor:
    if name not in _RULES:
        raise ValueError(
            f"bandwidth is {name!r}: it must be a positive number or one of {', '.join(map(repr, _RULES))}."
        )
    n, p = s.shape[-2:]
    # Kish's effective number of rows, as in scipy.stats.gaussian_kde; a mask makes it the number of rows kept.
    rows = s.new_full((), float(n)) if q is None else 1.0 / (q * q).sum(-1).clamp_min(1.0 / n)
    base = rows if name == "scott" else rows * (p + 2) / 4.0
    factor = (base ** (-1.0 / (p + 4))).unsqueeze(-1)
    if name == "jiang":
        return factor
    weights = s.new_full((n,), 1.0 / n) if q is None else q
    unit = binary_scale(s, dim=-2)
    s = s / unit
    centred = s - (weights.unsqueeze(-1) * s).sum(-2, keepdim=True)
    variance = (weights.unsqueeze(-1) * centred * centred).sum(-2)
    deviation = (variance / (1.0 - 1.0 / rows.unsqueeze(-1)).clamp_min(1.0 / n)).sqrt() * unit.squeeze(-2)
    # A constant attribute has no scale; under any bandwidth all its weights are equal.
    return factor * torch.where(deviation > 0, deviation, torch.ones_like(deviation))


def smoothing_bandwidth(
    s: ArrayLike,
    *,
    rule: str = "silverman",
    mask: ArrayLike | None = None,
    sample_weight: ArrayLike | None = None,
    check_finite: bool = True,
) -> Tensor:
    """Return the bandwidth for smoothing over S by a named rule, one for each attribute, never zero or NaN.

    With p attributes, standard deviations d_a and n rows (weighted rows count as Kish's effective number):

    * ``"silverman"``: ``d_a (n(p+2)/4)^(−1/(p+4))``;
    * ``"scott"``: ``d_a n^(−1/(p+4))``;
    * ``"jiang"``: ``(n(p+2)/4)^(−1/(p+4))``, that is ``(3n/4)^(−1/5)`` for one attribute. This is what the code of
      Jiang et al. (2022) uses: Silverman's factor without the standard deviation. It supposes S scaled to [0, 1] and is
      wide there (.27 at n = 1000); on raw ages it is far too narrow.

    All shrink like n^(−1/5) at p = 1, the rate at which the conditional criteria converge. O(np) time.

    Parameters
    ----------
    s : array_like
        ``(n,)`` or ``(..., n, p)``.
    rule : {"silverman", "scott", "jiang"}
        See above.
    mask, sample_weight : array_like, optional
        Rows to use, and their weights, ``(..., n)``.
    check_finite : bool
        Switch the checks of values off where a training step must not wait for the GPU.

    Returns
    -------
    Tensor
        ``(..., p)``; carries no gradient.

    Examples
    --------
    >>> smoothing_bandwidth([0.0, 1.0, 2.0, 3.0], rule="jiang").round(decimals=4)
    tensor([0.8027], dtype=torch.float64)
    """
    s = as_sample(s, name="s", check_finite=check_finite)
    q = row_weights(s, mask, sample_weight, check_finite=check_finite)
    bandwidth = torch.as_tensor(_rule(rule, s.detach(), q))
    return bandwidth.expand(torch.broadcast_shapes(bandwidth.shape, (s.shape[-1],))).clone()


def require_weights(s: Tensor, values: int, *, batch: int | None = None, advice: str) -> None:
    """Raise an error with advice if the weights of all rows at a number of values of S do not fit into memory."""
    n = s.shape[-2]
    batch = s.shape[:-2].numel() if batch is None else batch
    require_memory(s, n, width=None if values == n else values, batch=batch, copies=6, advice=advice)


def log_kernel(at: Tensor, s: Tensor, h: float | Tensor) -> Tensor:
    """Return the log of the product Gaussian kernel, ``(..., m, n)``, kept finite: a softmax of it is never NaN."""
    if s.shape[-1] == 1:
        # One attribute: differences before squares lose nothing, and cost no more than the expansion.
        scaled = (at - s.mT) / (h.unsqueeze(-1) if isinstance(h, Tensor) else h)
        squared = scaled * scaled
    else:
        scale = h.unsqueeze(-2) if isinstance(h, Tensor) else h
        at, s = at / scale, s / scale
        # A bandwidth far below the spread of S: infinite squares are right, but a difference of them is NaN.
        unit = torch.maximum(binary_scale(at), binary_scale(s))
        squared = squared_distances(at / unit, s / unit) * unit * unit
    return (-0.5 * squared).clamp_min(torch.finfo(s.dtype).min / 4)


def weigh_logits(logits: Tensor, q: Tensor | None) -> Tensor:
    """Add log q to a log-kernel; rows with q = 0 get the lowest finite number, below every row that counts."""
    if q is None:
        return logits
    keep = (q > 0).unsqueeze(-2)
    log_q = torch.where(q > 0, q, torch.ones_like(q)).log().unsqueeze(-2)
    return (logits + log_q).masked_fill(~keep, torch.finfo(logits.dtype).min)


def weights_at(at: Tensor, s: Tensor, h: float | Tensor, q: Tensor | None) -> Tensor:
    """Return Nadaraya–Watson weights for checked input; zero throughout where q is."""
    weights = torch.softmax(weigh_logits(log_kernel(at, s, h), q), dim=-1)
    return weights if q is None else weights * (q > 0).unsqueeze(-2)


def leave_one_out_at(anchors: Tensor | None, s: Tensor, h: float | Tensor, q: Tensor | None) -> tuple[Tensor, Tensor]:
    """Return leave-one-out weights at the rows ``anchors`` (all if ``None``), and whether each has another row."""
    n = s.shape[-2]
    if anchors is None:
        at, itself = s, torch.eye(n, dtype=torch.bool, device=s.device)
    else:
        at = take_rows(s, anchors)
        itself = anchors.unsqueeze(-1) == torch.arange(n, device=s.device)
    logits = weigh_logits(log_kernel(at, s, h), q)
    weights = torch.softmax(logits.masked_fill(itself, torch.finfo(s.dtype).min), dim=-1)
    if q is None:
        return weights, torch.ones((), dtype=torch.bool, device=s.device)
    allowed = (q > 0).unsqueeze(-2) & ~itself
    return weights * allowed, allowed.any(-1, keepdim=True)


def take_rows(x: Tensor, index: Tensor) -> Tensor:
    """Return the rows of ``x`` ``(..., n, d)`` at ``index`` ``(m,)`` or ``(..., m)``."""
    if index.ndim == 1:
        return x.index_select(-2, index)
    batch = torch.broadcast_shapes(x.shape[:-2], index.shape[:-1])
    index = index.expand(*batch, index.shape[-1]).unsqueeze(-1).expand(*batch, index.shape[-1], x.shape[-1])
    return x.expand(*batch, *x.shape[-2:]).gather(-2, index)


def as_queries(at: ArrayLike, s: Tensor, *, name: str = "at") -> Tensor:
    """Return the values at which to condition as ``(..., m, p)`` in the dtype and device of ``s``."""
    query = as_tensor(at, name=name).to(dtype=s.dtype, device=s.device)
    if query.ndim == 1 and s.shape[-1] == 1:
        query = query.unsqueeze(-1)
    if query.ndim < 2 or query.shape[-1] != s.shape[-1]:
        raise ValueError(
            f"{name} has shape {tuple(query.shape)}: pass (m, {s.shape[-1]}), one column for each attribute of s"
            + (", or (m,)." if s.shape[-1] == 1 else ".")
        )
    return query


def nadaraya_watson_weights(
    at: ArrayLike,
    s: ArrayLike,
    *,
    bandwidth: Bandwidth = "silverman",
    mask: ArrayLike | None = None,
    sample_weight: ArrayLike | None = None,
    check_finite: bool = True,
) -> Tensor:
    """Return Nadaraya–Watson weights ``w_j(s)`` of the rows of S at each value in ``at``; each row sums to one.

    ``w_j(s) = q_j k_h(s, S_j) / Σ_l q_l k_h(s, S_l)`` with the product Gaussian kernel k_h. Computed as a softmax of
    the log-kernel, so a value far from all data gets the nearest observations, never 0/0. O(mnp) time, O(mn) memory.

    Parameters
    ----------
    at : array_like
        Values of S to condition on, ``(m,)`` or ``(..., m, p)``.
    s : array_like
        ``(n,)`` or ``(..., n, p)``.
    bandwidth : float, str, Tensor or tuple
        A number, a rule of ``smoothing_bandwidth``, a tensor with the batch shape, or one number per attribute.
    mask, sample_weight : array_like, optional
        Rows to use, and their weights, ``(..., n)``.
    check_finite : bool
        Switch the checks of values off where a training step must not wait for the GPU.

    Returns
    -------
    Tensor
        ``(..., m, n)``.

    Examples
    --------
    >>> nadaraya_watson_weights([0.0, 1e6], [0.0, 1.0, 2.0], bandwidth=1.0).round(decimals=4)
    tensor([[0.5741, 0.3482, 0.0777],
            [0.0000, 0.0000, 1.0000]], dtype=torch.float64)
    """
    s = as_sample(s, name="s", check_finite=check_finite)
    at = as_queries(at, s)
    require_weights(s, at.shape[-2], advice="Pass fewer values in at.")
    q = row_weights(s, mask, sample_weight, check_finite=check_finite)
    return weights_at(at, s, resolve_bandwidth(bandwidth, s, q), q)


def leave_one_out_weights(
    s: ArrayLike,
    *,
    bandwidth: Bandwidth = "silverman",
    anchors: Tensor | None = None,
    mask: ArrayLike | None = None,
    sample_weight: ArrayLike | None = None,
    check_finite: bool = True,
) -> Tensor:
    """Return Nadaraya–Watson weights at the observed ``S_i`` with row i itself left out.

    ``w_ij = 1[j ≠ i] q_j k_h(S_i, S_j) / Σ_{l≠i} q_l k_h(S_i, S_l)``: the smoothed conditional law of FREM (Kong et
    al., 2025; appendix D, ``app:frem_anchors``). A lonely row gets its nearest neighbours. O(mnp) time, O(mn) memory.

    Parameters
    ----------
    s : array_like
        ``(n,)`` or ``(..., n, p)``, at least two rows.
    bandwidth, mask, sample_weight, check_finite
        As in :func:`nadaraya_watson_weights`.
    anchors : Tensor, optional
        Row numbers i, ``(m,)`` or ``(..., m)``; all rows by default.

    Returns
    -------
    Tensor
        ``(..., m, n)``; a row is zero where the mask leaves nothing but the anchor.

    Examples
    --------
    >>> leave_one_out_weights([0.0, 1.0, 2.0], bandwidth=1.0).round(decimals=4)
    tensor([[0.0000, 0.8176, 0.1824],
            [0.5000, 0.0000, 0.5000],
            [0.1824, 0.8176, 0.0000]], dtype=torch.float64)
    """
    s = as_sample(s, name="s", min_rows=2, check_finite=check_finite)
    require_weights(s, s.shape[-2] if anchors is None else anchors.shape[-1], advice="Pass some rows as anchors.")
    q = row_weights(s, mask, sample_weight, check_finite=check_finite)
    return leave_one_out_at(anchors, s, resolve_bandwidth(bandwidth, s, q), q)[0]
