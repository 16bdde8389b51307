"""Features of a kernel at a few landmark rows (the Nyström method), which make statistics linear in n."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from frhsic_core.kernels import Categorical, Gaussian, median_bandwidth

_MEDIAN_ROWS = 1024  # the bandwidth comes from this many rows at most

Gram = Callable[..., Tensor]
"""``(x, y=None) -> (n, m)``: a kernel."""


def spaced_rows(n: int, count: int) -> Tensor:
    """Return ``count`` evenly spaced rows of n, or all of them."""
    return torch.linspace(0, n - 1, min(n, count), dtype=torch.float64).round().long()


class Features:
    """F(x) = k(x, X_m)·k(X_m, X_m)^(−1/2) for any rows of a sample; FFᵀ is the Gram matrix if all rows are landmarks.

    Parameters
    ----------
    kernel : callable
        The kernel.
    x : Tensor
        ``(n, d)``, the sample.
    landmarks : int
        m, the number of evenly spaced rows X_m.
    """

    def __init__(self, kernel: Gram, x: Tensor, landmarks: int) -> None:
        self.kernel = kernel
        self.x = x
        self.landmarks = x[spaced_rows(len(x), landmarks).to(x.device)]
        values, vectors = torch.linalg.eigh(kernel(self.landmarks))
        # Directions that rounding alone has made are dropped.
        kept = values > 1e-10 * values.amax()
        self.root = vectors * torch.where(kept, values.clamp_min(1e-300).rsqrt(), 0.0)

    def __call__(self, rows: Tensor) -> Tensor:
        """Return the features of these rows, ``(rows, m)``."""
        return self.kernel(self.x[rows], self.landmarks) @ self.root


@dataclass(frozen=True)
class GivenKernel:
    """The kernel on C: Gaussian on the normal scores, times one plus it for rows of one group.

    Rows are ``[scores, code]``. Rows of different groups have kernel zero, so that each group has a regression of its
    own, with a constant.
    """

    gaussian: Gaussian
    mixed: bool

    def __call__(self, x: Tensor, y: Tensor | None = None) -> Tensor:
        gram = self.gaussian(x[..., :-1], None if y is None else y[..., :-1])
        if not self.mixed:
            return gram
        return (1.0 + gram) * Categorical()(x[..., -1:], None if y is None else y[..., -1:])


def given_kernel(c: Tensor, *, mixed: bool, scale: float = 1.0) -> GivenKernel:
    """Return the kernel on rows of C ``[scores, code]`` at a multiple of the median bandwidth of the scores."""
    rows = c[spaced_rows(len(c), _MEDIAN_ROWS).to(c.device), :-1]
    return GivenKernel(Gaussian(scale * median_bandwidth(rows, max_points=None)), mixed)
