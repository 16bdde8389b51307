"""Expectation of the IPM, the conditional route with a kernel: averages of MMD(P(Z | S = s), P(Z)) over s.

With weights w_i for the conditional law at anchor i and q for the marginal, ``v_i = w_i − q`` and
``MMD²_i = v_i' K v_i``. All anchors together are the diagonal of ``V K V'``: one matrix product and one sum, where
a loop over anchors, as FREM's description suggests, does the same work one row at a time.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from frhsic_core._arrays import (
    DENSE_ROWS,
    ArrayLike,
    RandomState,
    as_draws,
    as_pair,
    batch_shape,
    recomputed,
    require_memory,
    require_value,
    row_weights,
    same_kind,
)
from frhsic_core.backend import is_torch, xp
from frhsic_core.conditional._smoothing import (
    Bandwidth,
    leave_one_out_at,
    resolve_bandwidth,
    take_rows,
)
from frhsic_core.kernels import Kernel, needs_torch, resolve_kernel

if TYPE_CHECKING:
    from torch import Tensor

EPSILON = 1e-10  # inside the root
_BLOCK = 1 << 22  # numbers in one block of a Gram matrix: 32 MiB in float64


def squared_mmd(z: Tensor, contrast: Tensor, kernel: Kernel) -> Tensor:
    """Return ``v_i' K v_i`` for every row of ``contrast``, clamped at zero against rounding.

    With rows that sum to zero, a difference of two weightings of the sample, this is their squared MMD. O(n²d + mn²)
    time; O(n² + mn) memory up to 4,096 rows and O(mn) above.

    Parameters
    ----------
    z : Tensor
        ``(..., n, d)``.
    contrast : Tensor
        ``(..., m, n)``.
    kernel : Kernel
        Kernel on Z.

    Returns
    -------
    Tensor
        ``(..., m)``.

    Examples
    --------
    >>> import torch
    >>> from frhsic_core.kernels import Gaussian
    >>> z = torch.tensor([[0.0], [1.0]])
    >>> squared_mmd(z, torch.tensor([[0.5, -0.5]]), Gaussian(1.0)).round(decimals=4)
    tensor([0.1967])
    """
    if z.shape[-2] > DENSE_ROWS:
        squared = _forms_by_block(z, contrast, kernel)
    else:
        squared = ((contrast @ kernel(z)) * contrast).sum(-1)
    return squared.clamp_min(0.0)


def _forms_by_block(z: Tensor, contrast: Tensor, kernel: Kernel) -> Tensor:
    """Return ``v_i' K v_i`` for each row of ``(..., m, n)``, from blocks of K that are dropped after use."""
    size = max(1, int((_BLOCK / max(1, math.prod(batch_shape(z, contrast)))) ** 0.5))

    def block(x: Tensor, v: Tensor, *other: Tensor) -> tuple[Tensor]:
        if not other:
            return (((v @ kernel(x)) * v).sum(-1),)
        return (2.0 * ((v @ kernel(x, other[0])) * other[1]).sum(-1),)

    parts = list(zip(z.split(size, dim=-2), contrast.split(size, dim=-1), strict=True))
    total: Any = 0.0
    for i, part in enumerate(parts):
        total = total + recomputed(block, *part)[0]
        for other in parts[i + 1 :]:
            total = total + recomputed(block, *part, *other)[0]
    return total


def _marginal(z: Tensor, q: Tensor | None) -> Tensor:
    return z.new_full((z.shape[-2],), 1.0 / z.shape[-2]) if q is None else q


def _anchor_rows(
    anchors: int | Tensor | None,
    n: int,
    q: Tensor | None,
    random_state: RandomState,
    like: Tensor,
) -> Tensor | None:
    """Return the row numbers of the anchors, ``(m,)`` or ``(..., m)``; ``None`` stands for every row."""
    if anchors is None:
        return None
    if is_torch(anchors):
        if anchors.is_floating_point() or str(anchors.dtype) == "torch.bool" or anchors.ndim == 0:
            raise TypeError(
                f"anchors is a {anchors.dtype} tensor of shape {tuple(anchors.shape)}: "
                "pass row numbers, a count or None."
            )
        return (
            xp.as_tensor(anchors.cpu().numpy(), like=like)
            if not is_torch(like)
            else anchors.to(like.device)
        )
    if isinstance(anchors, bool) or not isinstance(anchors, int) or anchors < 1:
        raise ValueError(
            f"anchors is {anchors!r}: pass a positive number of rows, row numbers or None for all."
        )
    if anchors >= n:
        return None
    if random_state is None:
        order = xp.arange(n, like=like)
    else:
        order = as_draws(random_state, like=like).permutation(n)
    if q is None:
        kept: Any = float(n)
    else:
        # Rows that count come first, in the drawn order; nothing here looks at values on the host.
        order = order[(q[..., order] <= 0).long().argsort(dim=-1, stable=True)]
        kept = (q > 0).sum(-1, keepdim=True).clamp_min(1)
    if random_state is not None:
        return order[..., :anchors]
    # Without a generator evenly spaced rows, so that the answer is repeatable; batches are shuffled anyway.
    spaced = xp.linspace(0.0, 1.0, anchors, like=like) * (kept - 1)
    position = spaced.round().long()
    return order.gather(-1, position) if q is not None else order[position]


@same_kind
def eipm(
    z: ArrayLike,
    s: ArrayLike,
    *,
    kernel_z: Kernel | None = None,
    bandwidth: Bandwidth = "silverman",
    power: int = 1,
    anchors: int | Tensor | None = None,
    random_state: RandomState = None,
    mask: ArrayLike | None = None,
    sample_weight: ArrayLike | None = None,
    check_finite: bool = True,
) -> Any:
    """Estimate the expected MMD between P(Z | S) and P(Z), as FREM does, without a loop.

    ``EIPM = Σ_i a_i (v_i' K v_i)^{power/2}``, ``v_ij = w_ij − q_j``, with the leave-one-out Nadaraya–Watson weights
    ``w_ij ∝ 1[j ≠ i] q_j exp(−(S_i − S_j)²/2γ²)``, the row weights q (1/n), and the same over the anchors a.
    ``power=1`` is E[MMD] (equation after ``eq:GDP`` and the code of the paper), ``power=2`` is the integral of MMD²,
    which appendix D prints (``app:frem_anchors``). For power 1 the root of x is taken as ``x/√(x + ε)`` with ε = 1e-10:
    zero at zero, within √ε of √x, and with a finite gradient at zero. At a fixed bandwidth the value converges at
    root-n, but to the smoothed criterion.

    O(n²d + mn²) time for m anchors: with a few anchors about one HSIC. O(n² + mn) memory up to 4,096 rows and O(mn)
    above, so a large sample needs ``anchors``.

    Parameters
    ----------
    z : array_like
        Representation, ``(..., n, d)`` or ``(n,)``, at least two rows.
    s : array_like
        ``(..., n)`` or ``(..., n, p)``.
    kernel_z : Kernel, optional
        Kernel on Z; ``None`` is the Gaussian kernel at the median bandwidth, per batch element, detached, over all
        rows, masked or not.
    bandwidth : float, str, Tensor or tuple
        Smoothing bandwidth γ over S; FREM uses 0.5. A number, one number for each attribute, a tensor with the batch
        shape, or the name of a rule: ``"silverman"`` or ``"jiang"``.
    power : {1, 2}
        Average of the MMD or of its square.
    anchors : int or Tensor, optional
        Number of rows at which to condition, or their row numbers ``(m,)`` or ``(..., m)``; all rows by default.
    random_state : int, numpy.random.Generator or torch.Generator, optional
        Draws the anchors without replacement, the same for every batch element; without one they are evenly spaced.
    mask, sample_weight : array_like, optional
        Rows to use, and their weights, ``(..., n)``. Anchors are drawn among the rows kept.
    check_finite : bool
        Switch the checks of values off where a training step must not wait for the GPU.

    Returns
    -------
    float, array or Tensor
        EIPM with the batch shape, never negative; a tensor if an argument was one.

    Examples
    --------
    >>> from frhsic_core.kernels import Gaussian
    >>> z = [0.0, 0.2, 1.0, 1.3]
    >>> round(eipm(z, [0.0, 0.0, 1.0, 1.0], kernel_z=Gaussian(1.0), bandwidth=0.1), 4)
    0.4612
    >>> round(eipm([1.0, 1.0, 1.0], [0.0, 0.5, 1.0]), 12)
    0.0
    """
    if power not in (1, 2):
        raise ValueError(
            f"power is {power!r}: pass 1 to average the MMD, or 2 to average its square."
        )
    torch = needs_torch(kernel_z)
    z, s = as_pair(z, s, min_rows=2, check_finite=check_finite, torch=torch)
    q = row_weights(z, mask, sample_weight, check_finite=check_finite)
    rows = _anchor_rows(anchors, z.shape[-2], q, random_state, z)
    advice = "Pass a number of anchors, such as 200."
    width = None if rows is None else rows.shape[-1]
    require_memory(
        s, z.shape[-2], width=width, batch=math.prod(batch_shape(z, s)), copies=6, advice=advice
    )
    weights, partner = leave_one_out_at(rows, s, resolve_bandwidth(bandwidth, s, q), q)
    # An anchor with no other row has no conditional law: no contrast.
    contrast = (weights - _marginal(z, q).unsqueeze(-2)) * partner
    squared = squared_mmd(z, contrast, resolve_kernel(kernel_z, z, name="kernel_z"))
    if check_finite:
        require_value(squared, "eipm")
    value = squared if power == 2 else squared * (squared + EPSILON).rsqrt()
    if q is None:
        return value.mean(-1)
    share = q if rows is None else take_rows(q.unsqueeze(-1), rows).squeeze(-1)
    total = share.sum(-1)
    return (share * value).sum(-1) / xp.where(total > 0, total, 1.0)
