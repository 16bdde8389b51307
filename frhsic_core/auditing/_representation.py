"""Audit a representation with measures that it was not trained on.

A small penalty means that *its* statistic is small. Dependence can remain at another bandwidth, in
directions of low variance, or in what a head makes of Z. The audit therefore measures Z in four
different ways.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from frhsic_core._arrays import (
    ArrayLike,
    RandomState,
    as_pair,
    as_seed,
    beside,
    binary_scale,
    require_same_rows,
    same_kind,
)
from frhsic_core.backend import Draws, finfo, xp
from frhsic_core.conditional import gdp
from frhsic_core.joint.contraction import center, inverse_root, own_product, smallest_own
from frhsic_core.joint.hsic import distance_correlation
from frhsic_core.kernels import Gaussian, median_distance

if TYPE_CHECKING:
    from torch import Tensor

BANDWIDTHS = (0.5, 1.0, 2.0)
FOLDS = 5
RIDGES = (1e-6, 1e-3, 1e-1)  # of the probes, relative to the mean of the Gram matrix's diagonal


@dataclass(frozen=True)
class RepresentationAudit:
    """The result of :func:`audit_representation`.

    The numbers have the batch shape. They are tensors, float64 on the CPU, if the input had a
    tensor, and floats or arrays otherwise.

    Attributes
    ----------
    normalized_hsic : float, array or Tensor
        ``(..., 3)``: normalized HSIC with σ_Z at each of ``bandwidths`` times the median distance.
    floor : float, array or Tensor
        ``(..., 3)``: the mean of that number if the rows of S are shuffled, which is what
        independence would give.
    distance_correlation : float, array or Tensor
        Squared, bias-corrected: about zero under independence.
    linear_r2, nonlinear_r2 : float, array or Tensor
        Cross-fitted R² of predicting S from Z; the largest over the attributes. Below zero: worse
        than the mean.
    gdp : float, array, Tensor or None
        GDP of the predictions, where they were given; the largest over the attributes.
    bandwidths : tuple of float
        Bandwidths in units of the median distance.
    rows : int
        Number of rows behind the kernel statistics; the probes and GDP use all rows.
    """

    normalized_hsic: Any
    floor: Any
    distance_correlation: Any
    linear_r2: Any
    nonlinear_r2: Any
    gdp: Any
    bandwidths: tuple[float, ...]
    rows: int

    def as_dict(self) -> dict[str, Any]:
        """Return the numbers under flat names, for a row (or, of a stack, rows) of a table.

        ``normalized_hsic_{factor}`` and the ``floor_{factor}`` to read it against, then the others.
        """
        values = {}
        for i, factor in enumerate(self.bandwidths):
            values[f"normalized_hsic_{factor:g}"] = self.normalized_hsic[..., i]
            values[f"floor_{factor:g}"] = self.floor[..., i]
        values |= {
            name: getattr(self, name)
            for name in ("distance_correlation", "linear_r2", "nonlinear_r2", "gdp")
        }
        return {
            name: np.asarray(value).tolist() for name, value in values.items() if value is not None
        }


@same_kind
def audit_representation(
    z: ArrayLike,
    s: ArrayLike,
    *,
    predictions: ArrayLike | None = None,
    features: int = 300,
    max_rows: int = 2000,
    chunk_size: int = 8,
    random_state: RandomState = 0,
) -> RepresentationAudit:
    """Measure how strongly Z depends on S, with kernel statistics, probes and the predictions.

    Normalized HSIC at three bandwidths; the bias-corrected distance correlation; the cross-fitted
    R² of a linear ridge and of a ridge on random Fourier features; GDP. O(r²d) for r = ``max_rows``
    and O(nF²) for F features, for each model; models are taken ``chunk_size`` at a time.

    Parameters
    ----------
    z : array_like
        ``(..., n, d)`` or ``(n,)``: representations, logits or probabilities of one model or of a
        stack. Use rows that the models were not trained on.
    s : array_like
        ``(n,)``, ``(n, p)`` for all models, or with the leading dimensions of ``z``. No attribute
        may be constant.
    predictions : array_like, optional
        ``(..., n)``: probabilities (or real predictions) for :func:`~frhsic_core.gdp`. With several
        attributes the largest GDP is reported.
    features : int
        Number of random features.
    max_rows : int
        Number of evenly spaced rows for the statistics that need a Gram matrix.
    chunk_size : int
        Number of models that are computed at a time.
    random_state : int, numpy.random.Generator or torch.Generator
        Source of the random features and the folds, the same for every model.

    Returns
    -------
    RepresentationAudit
        Zero HSIC and R² for a constant Z.

    Examples
    --------
    >>> import torch
    >>> generator = torch.Generator().manual_seed(0)
    >>> s = torch.randn(600, generator=generator, dtype=torch.float64)
    >>> z = torch.stack([s**2, torch.randn(600, generator=generator, dtype=torch.float64)], dim=-1)
    >>> audit = audit_representation(z, s)
    >>> bool(audit.linear_r2 < 0.05), bool(audit.normalized_hsic[1] > 3 * audit.floor[1])
    (True, True)
    """
    for other, name in ((z, "z"), (s, "s")):
        require_same_rows(other, predictions, names=(name, "predictions"))
    seed = as_seed(random_state)
    z, s = as_pair(z, s, min_rows=2 * FOLDS)
    z, s = z.detach(), s.detach()
    constant = (s == s[..., :1, :]).all(-2).reshape(-1, s.shape[-1]).any(0)
    if bool(constant.any()):
        which = int(constant.nonzero()[0, 0])
        raise ValueError(
            f"s is constant (column {which}): nothing can depend on it. Drop this column."
        )
    if z.device.type != "mps":  # it has no double precision
        z = z.double()
    s = s.to(z)
    batch = z.shape[:-2]
    n, d = z.shape[-2:]
    parity = None
    if predictions is not None:
        parity = _parity(predictions, z, s)
    if s.ndim == 2:
        s = s[None]
    else:
        s = s.expand(*batch, *s.shape[-2:]).reshape(-1, n, s.shape[-1])
    z = z.reshape(-1, n, d)
    keep = xp.as_tensor(_some_rows(n, max_rows), like=z)
    parts: list[list[Tensor]] = []
    for first in range(0, max(len(z), 1), chunk_size):  # one block of a batch without models
        block = slice(first, first + chunk_size)
        # The kernels of an attribute that all models share are computed once.
        sb = s if len(s) == 1 else s[block]
        values = _statistics(z[block], sb, keep, features=features, random_state=seed)
        parts.append([value.double().cpu() for value in values])
    found = []
    for column in zip(*parts, strict=True):
        found.append(xp.cat(column).reshape((*batch, *column[0].shape[1:])))
    normalized_hsic, floor, distance, linear_r2, nonlinear_r2 = found
    return RepresentationAudit(
        normalized_hsic=normalized_hsic,
        floor=floor,
        distance_correlation=distance,
        linear_r2=linear_r2,
        nonlinear_r2=nonlinear_r2,
        gdp=parity,
        bandwidths=BANDWIDTHS,
        rows=len(keep),
    )


def _some_rows(n: int, most: int) -> np.ndarray:
    """Return evenly spaced rows, or all of them.

    In single precision, with the rounding of the processors on which the stored audits were made.
    """
    count = min(n, most)
    place = np.arange(count)
    step = float(np.float32(n - 1) / np.float32(max(count - 1, 1)))
    from_below = (step * place).astype(np.float32)
    from_above = (n - 1 - step * (count - 1 - place)).astype(np.float32)
    return np.where(2 * place < count, from_below, from_above).round().astype(np.int64)


def _parity(predictions: ArrayLike, z: Tensor, s: Tensor) -> Tensor:
    """Return GDP of the predictions, the largest over the attributes."""
    batch = z.shape[:-2]
    n = z.shape[-2]
    f = beside(predictions, z, name="predictions").detach()
    if f.shape[-2:] == (n, 1):
        f = f.squeeze(-1)
    if f.shape[-1:] != (n,):
        raise ValueError(
            f"predictions has shape {tuple(f.shape)}: pass one number for each of the {n} "
            "rows. Of two class probabilities pass the second, predict_proba(X)[:, 1]."
        )
    f = f.expand(*batch, n)
    gaps = [gdp(f, s[..., attribute]) for attribute in range(s.shape[-1])]
    return xp.stack(gaps).amax(0).double().cpu()


def _statistics(
    z: Tensor, s: Tensor, keep: Tensor, *, features: int, random_state: int
) -> list[Tensor]:
    """Return the numbers of some models in the order of :class:`RepresentationAudit`."""
    some_z = z[:, keep]
    some_s = s[:, keep]
    normalized_hsic, floor = _kernel_statistics(some_z, some_s)
    distance = distance_correlation(some_z, some_s, squared=True, estimator="unbiased")
    linear = linear_features(z)
    nonlinear = random_features(z, features=features, random_state=random_state)
    linear_r2 = probe_r2(linear, s, random_state=random_state)
    nonlinear_r2 = probe_r2(nonlinear, s, random_state=random_state)
    return [normalized_hsic, floor, distance, linear_r2, nonlinear_r2]


def _kernel_statistics(z: Tensor, s: Tensor) -> list[Tensor]:
    """Return normalized HSIC and its mean over permutations, ``(models, factors)`` each."""
    n = z.shape[-2]
    sigma = median_distance(z)
    gram_s = Gaussian(median_distance(s))(s)
    centered_s = center(gram_s)
    own_s = own_product(gram_s, centered_s)
    smallest = smallest_own(z, rows=n)
    values = []
    floors = []
    for factor in BANDWIDTHS:
        gram_z = Gaussian(factor * sigma)(z)
        centered_z = center(gram_z)
        root = inverse_root(own_product(gram_z, centered_z), own_s, smallest)
        values.append((centered_z * centered_s).sum((-2, -1)) * root)
        trace_z = centered_z.diagonal(0, -2, -1).sum(-1)
        trace_s = centered_s.diagonal(0, -2, -1).sum(-1)
        traces = trace_z * trace_s
        floors.append(traces * root / (n - 1))
    return [xp.stack(values, -1), xp.stack(floors, -1)]


def linear_features(z: Tensor) -> Tensor:
    """Return Z ``(..., n, d)`` with mean zero and variance one; constant coordinates are zero."""
    z = z / binary_scale(z)
    z = z - z.mean(-2, keepdim=True)
    spread = z.square().mean(-2, keepdim=True).sqrt()
    floor = 1e-9 * spread.amax(-1, keepdim=True)
    varies = spread > floor
    return xp.where(varies, z / xp.where(varies, spread, 1.0), xp.zeros_like(z))


def random_features(z: Tensor, *, features: int = 300, random_state: int = 0) -> Tensor:
    """Return linear and random Fourier features cos(w·z/σ + b); ``(..., n, d + features)``.

    Half of the random features use Z standardized by coordinate. The other half use whitened Z, in
    which a direction of low variance counts as much as any other; a penalized encoder can hide
    there what a head amplifies later. σ is the median distance.
    """
    linear = linear_features(z)
    draws = Draws(random_state)
    parts = [linear]
    for view in (linear, _whitened(linear)):
        width = features // 2
        normal = draws.normal(z.shape[-1], width)
        angles = 2 * math.pi * draws.uniform(width)
        directions = xp.as_tensor(np.asarray(normal), like=z).to(z.dtype)
        phases = xp.as_tensor(np.asarray(angles), like=z).to(z.dtype)
        sigma = median_distance(view)[..., None, None]
        parts.append(xp.cos((view / sigma) @ directions + phases))
    return xp.cat(parts, dim=-1)


def _whitened(z: Tensor) -> Tensor:
    """Return Z with variance one along its axes; those below 1e-6 of the largest are left out.

    The result is rotated back to the coordinates of Z: the sign of an eigenvector is the solver's
    choice, and the random features of a sample should not depend on the machine.
    """
    covariance = z.mT @ z / z.shape[-2]
    values, vectors = xp.eigh(covariance)
    kept = values > 1e-6 * values[..., -1:].clamp_min(finfo(z).tiny)
    scale = xp.where(kept, values, xp.ones_like(values)).rsqrt() * kept
    return ((z @ vectors) * scale.unsqueeze(-2)) @ vectors.mT


def probe_r2(features: Tensor, s: Tensor, *, random_state: int = 0) -> Tensor:
    r"""Return the cross-fitted R² of a ridge regression of S, the largest over the attributes.

    .. math:: R^2 = 1 - \frac{\sum_i (s_i - \hat s_{-k(i)}(z_i))^2}{\sum_i (s_i - \bar s)^2}

    Each row is predicted by a regression that did not see its fold; the ridge is the best of three.
    One Gram matrix for each fold, the training one by subtraction: O(nF² + 5F³).

    Parameters
    ----------
    features : Tensor
        ``(models, n, F)``.
    s : Tensor
        ``(models, n, p)``.
    random_state : int
        Seed of the random parts.

    Returns
    -------
    Tensor
        ``(models,)``, the largest over the attributes, none of which may be constant.

    Examples
    --------
    >>> import torch
    >>> x = torch.linspace(-1, 1, 100, dtype=torch.float64).reshape(1, 100, 1)
    >>> round(probe_r2(x, 3 * x + 1).item(), 4)
    1.0
    """
    n = features.shape[-2]
    order = xp.as_tensor(np.asarray(Draws(random_state).permutation(n)), like=features)
    design = xp.cat([xp.ones_like(features[..., :1]), features], dim=-1)
    s = s / binary_scale(s, dim=-2)  # R² has no units, but its sums of squares have
    s = s - s.mean(-2, keepdim=True)
    parts = [(design[:, rows], s[:, rows]) for rows in order.chunk(FOLDS)]
    grams = [x.mT @ x for x, _ in parts]
    cross = [x.mT @ target for x, target in parts]
    gram = sum(grams, xp.zeros_like(grams[0]))
    moment = sum(cross, xp.zeros_like(cross[0]))
    size = gram.diagonal(dim1=-2, dim2=-1).mean(-1)[:, None, None]
    ridge = xp.eye(gram.shape[-1], like=gram)
    ridge[0, 0] = 1e-9  # the mean is not shrunk
    total = s.square().sum(-2)
    found = []
    for strength in RIDGES:
        residual = xp.zeros_like(s[:, 0])
        for (x, target), own_gram, own_cross in zip(parts, grams, cross, strict=True):
            known = gram - own_gram + strength * size * ridge
            coefficients = xp.cholesky_solve(known, moment - own_cross)
            residual = residual + (target - x @ coefficients).square().sum(-2)
        found.append(1.0 - residual / total)
    return xp.stack(found).amax((0, -1))
