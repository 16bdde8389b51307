"""The gamma fit of the null distribution: two moments (Gretton et al., 2007), and the tail of a shifted gamma."""

from __future__ import annotations

import torch
from scipy.special import gammaincc, gammainccinv
from torch import Tensor

from frhsic_core.joint.independence.sums import GramSums


def gretton_moments(k: GramSums, l: GramSums, squares: Tensor) -> tuple[Tensor, Tensor]:
    """Return the null mean and variance of n·HSIC_b (Gretton et al., 2007, Theorem 4 and its estimates).

    ``squares`` is the sum of (K̃ ∘ L̃)² over the entries off the diagonal.
    """
    n = k.n
    off_diagonal = squares / (n * (n - 1))
    factor = 2.0 * n * (n - 4) * (n - 5) / ((n - 1) * (n - 2) * (n - 3))
    return _gap(k) * _gap(l), factor * off_diagonal


def _gap(gram: GramSums) -> Tensor:
    """Return the mean diagonal entry minus the mean off-diagonal one."""
    n = gram.n
    return gram.diagonal / n - (gram.total - gram.diagonal) / (n * (n - 1))


def fitted_gamma(
    statistic: Tensor, mean: Tensor, variance: Tensor, shape: Tensor, alpha: float
) -> tuple[Tensor, Tensor]:
    """Return the tail probability and critical value of a shifted gamma distribution with these moments."""
    scale = (variance / shape).sqrt()
    shift = mean - shape * scale
    argument = ((statistic - shift) / scale).clamp_min(0.0)
    shape_cpu = shape.cpu().numpy()
    tail = torch.as_tensor(gammaincc(shape_cpu, argument.cpu().numpy()), device=mean.device)
    quantile = torch.as_tensor(gammainccinv(shape_cpu, alpha), device=mean.device)
    return tail, shift + scale * quantile
