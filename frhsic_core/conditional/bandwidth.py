"""Bandwidths for smoothing over S: a number, a tensor, one for each attribute, or a rule by name."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from frhsic_core.arrays import ArrayLike, as_mask, as_sample, as_tensor, as_weights

__all__ = ["Bandwidth", "resolve_bandwidth", "row_weights", "smoothing_bandwidth"]

Bandwidth = float | str | Tensor | tuple[float, ...] | list[float]
_RULES = ("jiang", "silverman", "scott")


def row_weights(
    z: Tensor, mask: ArrayLike | None, sample_weight: ArrayLike | None, *, check_finite: bool = True
) -> Tensor | None:
    """Join a mask and weights into q, shape ``(..., n)``, summing to one over the rows kept; ``None`` means uniform.

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
            "mask keeps no row with a positive weight: at least one is needed in every batch element "
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
    centred = s - (weights.unsqueeze(-1) * s).sum(-2, keepdim=True)
    variance = (weights.unsqueeze(-1) * centred * centred).sum(-2)
    deviation = (variance / (1.0 - 1.0 / rows.unsqueeze(-1)).clamp_min(1.0 / n)).sqrt()
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
    """Bandwidth for smoothing over S by a named rule, one for each attribute: never zero, never NaN.

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
