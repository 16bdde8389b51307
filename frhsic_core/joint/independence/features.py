"""Features of a kernel at a few landmark rows (the Nyström method), which make statistics linear in n."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

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
