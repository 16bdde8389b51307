"""Generalized demographic parity: the distance of the mean prediction at one value of S from the overall mean.

There is one estimate of the curve E[f | S] and one GDP (``conditional._curve``).
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from frhsic_core._arrays import (
    ArrayLike,
    RandomState,
    as_numbers,
    as_pair,
    as_seed,
    batch_shape,
    require_same_rows,
    row_weights,
    same_kind,
)
from frhsic_core.backend import is_torch, xp
from frhsic_core.conditional._curve import Curve, Smoother

if TYPE_CHECKING:
    from torch import Tensor


def as_predictions(
    y_pred: ArrayLike, s: ArrayLike, check_finite: bool, *, torch: bool = False
) -> tuple[Tensor, Tensor]:
    """Return ``y_pred`` as ``(..., n)`` and ``s`` as ``(..., n, p)``."""
    require_same_rows(y_pred, s, names=("y_pred", "s"))
    # NumPy, not a tensor, where no tensor was given: the other argument then decides the dtype.
    y = y_pred if is_torch(y_pred) else as_numbers(y_pred, name="y_pred").numpy()
    if y.ndim >= 2 and y.shape[-1] != 1:
        if y.shape[-1] not in tuple(s.shape if hasattr(s, "shape") else np.shape(s))[-2:]:
            raise ValueError(
                f"y_pred has shape {tuple(y.shape)}: pass one prediction for each row of s, (..., n) or (..., n, 1), "
                "and put several outputs in a leading dimension."
            )
        y = y[..., None]
    z, s = as_pair(y, s, names=("y_pred", "s"), check_finite=check_finite, torch=torch)
    return z.squeeze(-1), s


def _single_attribute(s: Tensor, name: str) -> None:
    if s.shape[-1] != 1:
        raise ValueError(
            f"s has {s.shape[-1]} columns: {name} measures one attribute. Call it for each column."
        )


@same_kind
def gdp(
    y_pred: ArrayLike,
    s: ArrayLike,
    *,
    mask: ArrayLike | None = None,
    sample_weight: ArrayLike | None = None,
    check_finite: bool = True,
) -> Any:
    """Estimate generalized demographic parity ``E_S |E[f | S] − E f|`` of the predictions f.

    The mean is taken over the people. E[f | S] is a local quadratic fit with a bandwidth chosen by cross-validation,
    and an attribute with few distinct values is not smoothed (:func:`gdp_curve` gives the curve, its band and an
    interval). Every other function of the library that reports a GDP reports this number. O(n log n) time, O(n) memory.

    GDP depends on the scale of f: logits and probabilities give different numbers. For binary S it is
    ``2p(1 − p)·|E[f | S = 1] − E[f | S = 0]|`` with p = P(S = 1), at most half of the demographic-parity gap.
    Differentiable in ``y_pred``, at a fixed bandwidth, with gradient zero where a gap is zero. The curve is computed on
    the CPU.

    Parameters
    ----------
    y_pred : array_like
        Predictions, ``(..., n)`` or ``(..., n, 1)``: probabilities, logits or real values, used as they are.
    s : array_like
        One attribute, ``(..., n)`` or ``(..., n, 1)``.
    mask : array_like, optional
        Rows to use, ``(..., n)``; for equal opportunity the rows with y = 1.
    sample_weight : array_like, optional
        Weights of the rows, ``(..., n)``.
    check_finite : bool
        Switch the checks of values off. Where a mask keeps nothing, GDP is then zero.

    Returns
    -------
    float, array or Tensor
        GDP with the batch shape; a tensor if an argument was one.

    Examples
    --------
    >>> y, s = [0.1, 0.2, 0.7, 0.8], [0.0, 0.0, 1.0, 1.0]
    >>> round(gdp(y, s), 6)
    0.3
    """
    for name, other in (("mask", mask), ("sample_weight", sample_weight)):
        require_same_rows(s, other, names=("s", name))
    y, points = as_predictions(y_pred, s, check_finite)
    _single_attribute(points, "gdp")
    q = row_weights(points, mask, sample_weight, check_finite=check_finite)
    return _from_curves(y, points.squeeze(-1), q)


def _from_curves(y: Tensor, s: Tensor, q: Tensor | None) -> Tensor:
    """Return GDP of the curve of each batch element; an attribute that elements share is sorted once."""
    n = y.shape[-1]
    given = (s,) if q is None else (s, q)
    own, batch = batch_shape(*given, last=1), batch_shape(y, *given, last=1)
    scores = y.expand(*batch, n).reshape(-1, n)
    points = s.expand(*batch, n).reshape(-1, n)
    weights = None if q is None else q.expand(*batch, n).reshape(-1, n)
    smoother = None
    kept: slice | np.ndarray = slice(None)
    values = []
    for k in range(len(scores)):
        if smoother is None or math.prod(own) > 1:
            weight = None if weights is None else _numpy(weights[k])
            if weight is not None:
                kept = np.flatnonzero(weight > 0)
                if len(kept) == 0:
                    values.append((scores[k] * 0.0).sum())
                    continue
                weight = weight[kept]
            smoother = Smoother(_numpy(points[k])[kept], weight=weight)
        value, slope = smoother.gdp(_numpy(scores[k])[kept])
        found = scores.new_tensor(value)
        if scores.requires_grad:
            moved = (scores[k] - scores[k].detach())[kept]
            found = found + (xp.as_tensor(slope, like=scores).to(scores) * moved).sum()
        values.append(found)
    return xp.stack(values).reshape(batch) if values else y.new_zeros(batch)


def _numpy(x: Tensor) -> np.ndarray:
    return x.detach().double().cpu().numpy()


def gdp_curve(
    y_pred: ArrayLike,
    s: ArrayLike,
    *,
    sample_weight: ArrayLike | None = None,
    alpha: float = 0.05,
    random_state: RandomState = 0,
) -> Curve:
    """Estimate the curve E[f | S = s] with a band for the whole curve, and GDP with an interval.

    O(n log n) time, O(n) memory.

    Parameters
    ----------
    y_pred, s : array_like
        ``(n,)``: predictions and one attribute.
    sample_weight : array_like, optional
        ``(n,)``: weights of the rows, such as exposure or survey weights.
    alpha : float
        One minus the coverage of the band and of the interval.
    random_state : int, numpy.random.Generator or torch.Generator
        Source of the draws of the error process.

    Returns
    -------
    Curve
        The curve (``.s``, ``.mean``), its band (``.low``, ``.high``), ``.gdp`` and its interval (``.gdp_low``,
        ``.gdp_high``), and what chance alone gives (``.floor``).

    Examples
    --------
    >>> s = np.linspace(0, 1, 500)
    >>> curve = gdp_curve(s**2, s)
    >>> round(curve.gdp, 3), curve.gdp_low <= curve.gdp <= curve.gdp_high
    (0.257, True)
    """
    if not 0.0 < alpha < 1.0:
        raise ValueError(
            f"alpha is {alpha}: it lies between 0 and 1, such as 0.05 for a coverage of 95 %."
        )
    y, points = as_predictions(y_pred, s, check_finite=True)
    _single_attribute(points, "gdp_curve")
    if y.ndim != 1 or points.ndim != 2:
        raise ValueError(
            f"y_pred has shape {tuple(y.shape)}: gdp_curve takes the predictions of one model, (n,)."
        )
    q = row_weights(points, None, sample_weight)
    kept = slice(None) if q is None else np.flatnonzero(_numpy(q) > 0)
    smoother = Smoother(
        _numpy(points.squeeze(-1))[kept], weight=None if q is None else _numpy(q)[kept]
    )
    return smoother.curve(_numpy(y)[kept], alpha=alpha, random_state=as_seed(random_state))
