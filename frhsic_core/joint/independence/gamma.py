"""The gamma fit of the null distribution: two moments (Gretton et al., 2007), and the tail of a shifted gamma."""

from __future__ import annotations

import torch
from scipy.special import gammaincc, gammainccinv
from torch import Tensor


def trace(a: Tensor) -> Tensor:
    """Return the sum of the diagonal."""
    return a.diagonal(dim1=-2, dim2=-1).sum(-1)


def gretton_moments(k: Tensor, l: Tensor, k_centered: Tensor, l_centered: Tensor) -> tuple[Tensor, Tensor]:
    """Return the null mean and variance of n·HSIC_b (Gretton et al., 2007, Theorem 4 and its estimates)."""
    n = k.shape[-1]

    def gap(gram: Tensor) -> Tensor:
        diagonal = trace(gram)
        return diagonal / n - (gram.sum((-2, -1)) - diagonal) / (n * (n - 1))

    products = (k_centered * l_centered).square()
    off_diagonal = (products.sum((-2, -1)) - trace(products)) / (n * (n - 1))
    factor = 2.0 * n * (n - 4) * (n - 5) / ((n - 1) * (n - 2) * (n - 3))
    return gap(k) * gap(l), factor * off_diagonal


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
