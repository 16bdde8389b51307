r"""The synthetic laws of the paper, with the interface of a dataset: they need no files.

- ``synthetic``: S ~ U(0,1), X = (S + ε₁, ε₂) with ε₁ ~ N(0, 0.3²), ε₂ ~ N(0,1), Y ~ Bernoulli(1/(1+e^{-X₁})), n = 5,000
  (the synthetic validation).
- ``runtime``: the same law with n = 20,000 (the runtime figure goes from 500 to 20,000).
- ``gaussian_pair``: Z ~ N(0,1), S = ρZ + √(1-ρ²) ε (the convergence figure). X is Z; there is no label in the paper, so
  the target is Z itself: the task of keeping it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from frhsic_core.data.tables import Table

if TYPE_CHECKING:
    import torch

DEFAULT_ROWS = {"synthetic": 5_000, "runtime": 20_000, "gaussian_pair": 5_000}


class _Draws:
    """Uniform and normal draws from a seed (NumPy's legacy generator, the authors' choice) or a torch generator."""

    def __init__(self, seed: int, generator: torch.Generator | None) -> None:
        self.generator = generator
        self.legacy = np.random.RandomState(seed)

    def uniform(self, n: int) -> np.ndarray:
        if self.generator is None:
            return self.legacy.uniform(0.0, 1.0, size=n)
        import torch

        device = self.generator.device
        return torch.rand(n, generator=self.generator, dtype=torch.float64, device=device).cpu().numpy()

    def normal(self, n: int) -> np.ndarray:
        if self.generator is None:
            return self.legacy.normal(0.0, 1.0, size=n)
        import torch

        device = self.generator.device
        return torch.randn(n, generator=self.generator, dtype=torch.float64, device=device).cpu().numpy()

    def bernoulli(self, probability: np.ndarray) -> np.ndarray:
        if self.generator is None:
            # binomial, not a comparison of uniforms: only so are the labels those of the authors' run
            return self.legacy.binomial(1, probability)
        return self.uniform(len(probability)) < probability


def classification(n: int, *, seed: int = 42, generator: torch.Generator | None = None) -> Table:
    """Draw the classification task of the synthetic validation and of the runtime figure.

    With ``generator=None`` and ``seed=42`` the first 5,000-row draw is the sample of the authors' script, row for row.
    """
    draws = _Draws(seed, generator)
    s = draws.uniform(n)
    x1 = s + 0.3 * draws.normal(n)
    x2 = draws.normal(n)
    y = draws.bernoulli(1.0 / (1.0 + np.exp(-x1)))
    return Table(
        columns=pd.DataFrame({"s": s, "x1": x1, "x2": x2}),
        y=np.asarray(y, dtype=np.float64),
        task="classification",
        sensitive="s",
        source="a probability law: S ~ U(0,1), X = (S + N(0, 0.09), N(0,1)), Y ~ Bernoulli(sigmoid(X1))",
        steps=[("rows drawn", n)],
        notes=[] if generator is not None else [f"NumPy legacy generator, seed {seed}."],
    )


def gaussian_pair(n: int, *, rho: float = 0.5, seed: int = 42, generator: torch.Generator | None = None) -> Table:
    """Draw the ρ-Gaussian pair (Z, S) of the convergence figure."""
    if not -1.0 <= rho <= 1.0:
        raise ValueError(f"rho={rho} is no correlation: it must lie in [-1, 1].")
    draws = _Draws(seed, generator)
    z = draws.normal(n)
    s = rho * z + np.sqrt(1.0 - rho**2) * draws.normal(n)
    return Table(
        columns=pd.DataFrame({"s": s, "z": z}),
        y=z.copy(),
        task="regression",
        sensitive="s",
        source=f"a probability law: (Z, S) standard Gaussian with correlation {rho:g}",
        steps=[("rows drawn", n)],
        notes=["The paper gives this law no label; y is Z itself."],
    )
