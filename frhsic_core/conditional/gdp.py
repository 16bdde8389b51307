"""Generalised demographic parity in every convention of the literature, and the demographic-parity gap.

GDP is the distance of the mean prediction at one value of S from the overall mean, averaged over S. The literature
agrees on the inside of that average but not on the average itself. The convention is therefore an argument here, so
that the differences can be measured.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor
from torch.utils.checkpoint import checkpoint

from frhsic_core.arrays import ArrayLike, as_pair, as_tensor, require_same_rows
from frhsic_core.conditional.smoothing import Bandwidth, log_kernel, resolve_bandwidth, row_weights, weigh_logits

_WEIGHTS = ("sample", "uniform", "density")
_GRID = {"uniform": 50, "density": 999}
REFERENCE_CONSTANT = 1e-10  # the authors divide the kernel weights by their sum plus this
_BLOCK = 1 << 24  # numbers in one block of the weight matrix: 128 MiB in float64


@dataclass(frozen=True)
class Options:
    """The keywords of :func:`gdp`, carried from the public functions to :func:`plan`."""

    weights: str = "sample"
    bandwidth: Bandwidth | None = None
    grid: int | ArrayLike | None = None
    reference: bool = False
    mask: ArrayLike | None = None
    sample_weight: ArrayLike | None = None
    check_finite: bool = True


@dataclass(frozen=True)
class Plan:
    """Checked input of one GDP computation: the predictions, where they are averaged, and how."""

    y: Tensor  # (..., n)
    s: Tensor  # (..., n, p)
    q: Tensor | None  # (..., n), None = uniform
    at: Tensor  # (..., m, p)
    h: float | Tensor
    weights: str  # "sample", "uniform" or "density"
    shrink: bool  # the reference's constant in the denominator

    def mean(self) -> Tensor:
        """Return the overall mean of the predictions, ``(...)``."""
        return self.y.mean(-1) if self.q is None else (self.q * self.y).sum(-1)

    def rows(self) -> float | Tensor:
        """Return the rows that count, ``(..., 1)`` or a number."""
        return float(self.y.shape[-1]) if self.q is None else (self.q > 0).sum(-1, keepdim=True)

    def blocks(self) -> list[slice]:
        """Return the slices of ``at`` whose weights fit one block of memory."""
        batch = torch.broadcast_shapes(
            self.s.shape[:-2],
            () if self.q is None else self.q.shape[:-1],
            self.h.shape[:-1] if isinstance(self.h, Tensor) else (),
        )
        m, n = self.at.shape[-2], self.s.shape[-2]
        step = max(1, _BLOCK // max(1, n * batch.numel()))
        return [slice(start, start + step) for start in range(0, m, step)]


def as_predictions(y_pred: ArrayLike, s: ArrayLike, check_finite: bool) -> tuple[Tensor, Tensor]:
    """Return ``y_pred`` as ``(..., n)`` and ``s`` as ``(..., n, p)``."""
    require_same_rows(y_pred, s, names=("y_pred", "s"), stacklevel=4)
    # NumPy, not a tensor, where no tensor was given: the other argument then decides the dtype.
    y = y_pred if isinstance(y_pred, Tensor) else as_tensor(y_pred, name="y_pred").numpy()
    if y.ndim >= 2 and y.shape[-1] != 1:
        if y.shape[-1] not in tuple(s.shape if hasattr(s, "shape") else np.shape(s))[-2:]:
            raise ValueError(
                f"y_pred has shape {tuple(y.shape)}: pass one prediction for each row of s, (..., n) or (..., n, 1), "
                "and put several outputs in a leading dimension."
            )
        y = y[..., None]
    z, s = as_pair(y, s, names=("y_pred", "s"), check_finite=check_finite)
    return z.squeeze(-1), s


def attribute_range(s: Tensor, q: Tensor | None) -> tuple[Tensor, Tensor]:
    """Return the smallest and largest S among the rows kept, ``(..., 1)``; zero where none is kept."""
    s = s.squeeze(-1)
    if q is None:
        return s.amin(-1, keepdim=True), s.amax(-1, keepdim=True)
    low = torch.where(q > 0, s, torch.inf).amin(-1, keepdim=True)
    high = torch.where(q > 0, s, -torch.inf).amax(-1, keepdim=True)
    return torch.where(low <= high, low, 0.0), torch.where(low <= high, high, 0.0)


def _grid(grid: int | ArrayLike | None, weights: str, s: Tensor, q: Tensor | None) -> Tensor:
    if s.shape[-1] != 1:
        raise ValueError(
            f"s has {s.shape[-1]} columns and weights={weights!r} needs a grid over one: use weights='sample'."
        )
    if grid is None:
        grid = _GRID[weights]
    if not isinstance(grid, int):
        return as_tensor(grid, name="grid").to(dtype=s.dtype, device=s.device).unsqueeze(-1)
    if grid < 2:
        raise ValueError(f"grid is {grid}: pass at least 2 points.")
    low, high = attribute_range(s, q)
    if weights == "density":
        steps = torch.arange(1, grid + 1, dtype=s.dtype, device=s.device) / (grid + 1)
    else:
        steps = torch.linspace(0.0, 1.0, grid, dtype=s.dtype, device=s.device)
    return (low + (high - low) * steps).unsqueeze(-1)


def plan(y_pred: ArrayLike, s: ArrayLike, options: Options) -> Plan:
    """Check the arguments of :func:`gdp` and return what is to be computed."""
    weights = options.weights
    if weights not in (*_WEIGHTS, "reference"):
        raise ValueError(f"weights is {weights!r}: it must be one of {', '.join(map(repr, _WEIGHTS))}.")
    if options.reference and weights == "density":
        raise ValueError("reference=True averages uniformly over a grid: leave weights='density' out.")
    if weights == "reference":
        warnings.warn("weights='reference' is deprecated: use reference=True.", DeprecationWarning, stacklevel=3)
    reference = options.reference or weights == "reference"
    if reference:
        weights = "uniform"
    bandwidth = options.bandwidth
    if bandwidth is None:
        bandwidth = 0.1 if reference else "silverman"
    for name in ("mask", "sample_weight"):
        require_same_rows(s, getattr(options, name), names=("s", name), stacklevel=3)
    y, s = as_predictions(y_pred, s, options.check_finite)
    q = row_weights(s, options.mask, options.sample_weight, check_finite=options.check_finite)
    if weights == "sample" and options.grid is not None:
        raise ValueError("weights='sample' averages over the observed S and takes no grid: leave grid out.")
    at = s if weights == "sample" else _grid(options.grid, weights, s, q)
    return Plan(y, s, q, at, resolve_bandwidth(bandwidth, s, q), weights, reference)


def _gaps(task: Plan, at: Tensor, mean: Tensor) -> tuple[Tensor, Tensor | None]:
    """Return ``|E[f | S = s] − E f|`` at each value, ``(..., m)``, and the log-density there, where it is used."""
    logits = weigh_logits(log_kernel(at, task.s, task.h), task.q)
    conditional = (torch.softmax(logits, dim=-1) @ task.y.unsqueeze(-1)).squeeze(-1)
    log_density = torch.logsumexp(logits, dim=-1) if task.shrink or task.weights == "density" else None
    if task.shrink and log_density is not None:
        total = log_density.exp() * (1.0 if task.q is None else task.rows())
        conditional = conditional * (total / (total + REFERENCE_CONSTANT))
    return (conditional - mean.unsqueeze(-1)).abs(), log_density


def average(task: Plan) -> Tensor:
    """Return GDP of a plan, ``(...)``."""
    mean = task.mean()
    blocks = task.blocks()
    # Autograd would keep the weights of all blocks: with several of them each is computed again in the backward pass.
    again = len(blocks) > 1 and torch.is_grad_enabled() and (task.y.requires_grad or task.s.requires_grad)
    parts = []
    for block in blocks:
        arguments = (task, task.at[..., block, :], mean)
        parts.append(checkpoint(_gaps, *arguments, use_reentrant=False) if again else _gaps(*arguments))
    gaps = torch.cat([gap for gap, _ in parts], dim=-1)
    if task.weights == "density":
        log_density = torch.cat([density for _, density in parts if density is not None], dim=-1)
        value = (torch.softmax(log_density, dim=-1) * gaps).sum(-1)
    elif task.weights == "sample" and task.q is not None:
        value = (task.q * gaps).sum(-1)
    else:
        value = gaps.mean(-1)
    # A mask that keeps nothing has no gap; only the unweighted averages would still see the padding.
    return value if task.q is None else value * (task.q > 0).any(-1)


def gdp(
    y_pred: ArrayLike,
    s: ArrayLike,
    *,
    weights: str = "sample",
    bandwidth: Bandwidth | None = None,
    grid: int | ArrayLike | None = None,
    reference: bool = False,
    mask: ArrayLike | None = None,
    sample_weight: ArrayLike | None = None,
    check_finite: bool = True,
) -> Tensor:
    """Estimate generalised demographic parity ``E_S |E[f | S] − E f|`` of the predictions f, by smoothing on S.

    The inside is ``|Σ_j w_j(s) f_j − Σ_j q_j f_j|`` with Nadaraya–Watson weights w(s). The outer average is

    * ``"sample"``: over the observed ``S_i``. This is the definition (equation ``eq:GDP`` of the paper) with the
      empirical law of S in place of P_S;
    * ``"uniform"``: unweighted over ``grid`` equally spaced points (50) from the smallest to the largest S, so that a
      sparse tail counts as much as the bulk;
    * ``"density"``: over ``grid`` interior points (999) weighted by the kernel density estimate of S. With
      ``bandwidth="jiang"``, probabilities and S scaled to [0, 1] this is the form of Jiang et al. (2022).

    ``reference=True`` is the number that the paper's tables report: uniform, 50 points, bandwidth 0.1, with S min–max
    scaled and f on the scale of logits, and with 1e-10 added to the sum of the kernel weights, which pulls the
    conditional mean to zero where no observation is near. As a penalty during training the same code uses
    ``reference=True, grid=30, bandwidth=0.2``.

    GDP depends on the scale of f: logits and probabilities give different numbers. For binary S and a bandwidth far
    below the distance of its two values ``GDP = 2p(1 − p)·DP`` with p = P(S = 1), see ``demographic_parity``.
    Differentiable in ``y_pred``, with gradient zero where a gap is zero. O(mnp) time for m points (m = n for
    ``"sample"``); the memory is O(n) plus a few blocks of 128 MiB.

    Parameters
    ----------
    y_pred : array_like
        Predictions, ``(..., n)`` or ``(..., n, 1)``: probabilities, logits or real values, used as they are.
    s : array_like
        ``(..., n)`` or ``(..., n, p)``; several attributes have product Gaussian weights and need ``weights="sample"``.
    weights : {"sample", "uniform", "density"}
        The outer average.
    bandwidth : float, str, Tensor or tuple, optional
        A number, ``"silverman"`` (the default), ``"scott"`` or ``"jiang"`` (see ``smoothing_bandwidth``), a tensor
        with the batch shape, or one number for each attribute.
    grid : int or array_like, optional
        Number of points, or the points themselves, ``(m,)`` or ``(..., m)``.
    reference : bool
        The authors' form.
    mask : array_like, optional
        Rows to use, ``(..., n)``; for equal opportunity the rows with y = 1. The grid spans their S.
    sample_weight : array_like, optional
        Weights of the rows, ``(..., n)``.
    check_finite : bool
        Switch the checks of values off where a training step must not wait for the GPU.

    Returns
    -------
    Tensor
        GDP with the batch shape.

    Examples
    --------
    >>> y, s = [0.1, 0.2, 0.7, 0.8], [0.0, 0.0, 1.0, 1.0]
    >>> round(gdp(y, s, bandwidth=0.01).item(), 6), round(2 * 0.5 * 0.5 * demographic_parity(y, s).item(), 6)
    (0.3, 0.3)
    >>> round(gdp(y, s, reference=True).item(), 4)
    0.2924
    """
    options = Options(weights, bandwidth, grid, reference, mask, sample_weight, check_finite)
    return average(plan(y_pred, s, options))


def demographic_parity(
    y_pred: ArrayLike,
    s: ArrayLike,
    *,
    mask: ArrayLike | None = None,
    sample_weight: ArrayLike | None = None,
    check_finite: bool = True,
) -> Tensor:
    """Estimate the demographic-parity gap ``|E[f | S = 1] − E[f | S = 0]|`` of a binary attribute.

    The paper says GDP reduces to it for binary S (below ``eq:GDP``); the exact relation is ``GDP = 2p(1 − p)·DP`` with
    p = P(S = 1), at most half of it. O(n) time and memory.

    Parameters
    ----------
    y_pred, s : array_like
        ``(..., n)``; the two values of S may be any two numbers.
    mask, sample_weight, check_finite
        As in :func:`gdp`. With ``check_finite=False`` values above the middle of the range of S form one group, and a
        missing group gives zero instead of an error.

    Returns
    -------
    Tensor
        The gap, with the batch shape.

    Examples
    --------
    >>> round(demographic_parity([0.1, 0.2, 0.7, 0.8], [0, 0, 1, 1]).item(), 6)
    0.6
    """
    y, s = as_predictions(y_pred, s, check_finite)
    if s.shape[-1] != 1:
        raise ValueError(f"s has {s.shape[-1]} columns: demographic_parity needs one binary attribute.")
    q = row_weights(s, mask, sample_weight, check_finite=check_finite)
    low, high = attribute_range(s, q)
    flat = s.squeeze(-1)
    kept = y.new_full(y.shape[-1:], 1.0 / y.shape[-1]) if q is None else q
    if check_finite:
        if bool(((flat != low) & (flat != high) & (kept > 0)).any()):
            raise ValueError("s has more than two values: demographic_parity is for binary s; gdp takes any s.")
        if bool((low == high).any()):
            raise ValueError("s has a single value: demographic_parity compares two groups; gdp is zero here.")
    upper = kept * (flat > 0.5 * (low + high))
    lower = kept - upper
    means = [(g * y).sum(-1) / torch.where(g.sum(-1) > 0, g.sum(-1), 1.0) for g in (lower, upper)]
    both = (lower.sum(-1) > 0) & (upper.sum(-1) > 0)
    return (means[1] - means[0]).abs() * both
