"""The supremum of |HSIC_n(h) − HSIC(h)| over a class of encoders, computed and not sampled.

On inputs with finitely many values both HSICs are linear in the Gram matrix of the encoded values, so

    HSIC_n(h) − HSIC(h) = Σ_ij k(h(x_i), h(x_j))·M_ij,    M = A(counts/n) − A(probabilities),

and M does not depend on h. A grid over the parameters and a Lipschitz constant then bracket the supremum rigorously, at
a cost that does not depend on n; for any class whatsoever ½Σ|M_ij| bounds it from above, since 0 ≤ k ≤ 1 and
ΣM_ij = 0.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import torch
from torch import Tensor

from frhsic_core.joint.centring import contraction_weights
from frhsic_core.kernels import Gaussian

__all__ = ["FiniteInputs", "Supremum", "any_class", "linear_class", "mlp_class", "two_column_inputs"]


@dataclass(frozen=True)
class FiniteInputs:
    """A law of (X, S) on finitely many points.

    Attributes
    ----------
    x, s, probabilities : Tensor
        ``(N, d)``, ``(N, 1)``, ``(N,)``.
    kernel_z, kernel_s : Gaussian
        Unit kernels, with one bandwidth each.
    """

    x: Tensor
    s: Tensor
    probabilities: Tensor
    kernel_z: Gaussian
    kernel_s: Gaussian

    @cached_property
    def gram_s(self) -> Tensor:
        """Gram matrix on the points of S, ``(N, N)``."""
        return self.kernel_s(self.s)

    @cached_property
    def population(self) -> Tensor:
        """A with HSIC(h) = Σ k(h(x_i), h(x_j))·A_ij, ``(N, N)``."""
        return contraction_weights(self.gram_s, weights=self.probabilities)

    def draw(self, n: int, draws: int, *, generator: torch.Generator) -> Tensor:
        """Relative frequencies of ``draws`` samples of size n, ``(draws, N)``; O(N·draws), whatever n is."""
        seed = int(torch.randint(2**62, (), generator=generator))
        probabilities = self.probabilities.numpy()
        counts = np.random.default_rng(seed).multinomial(n, probabilities / probabilities.sum(), size=draws)
        return torch.as_tensor(counts, dtype=self.x.dtype) / n

    def empirical(self, frequencies: Tensor) -> Tensor:
        """A of each sample, ``(draws, N, N)``."""
        return contraction_weights(self.gram_s, weights=frequencies)

    def contrast(self, frequencies: Tensor) -> Tensor:
        """M = A(frequencies) − A(probabilities), ``(draws, N, N)``."""
        return self.empirical(frequencies) - self.population

    def encoded_gram(self, weights: Tensor) -> Tensor:
        """Gram matrices of h_w(x) = w·x for each row of ``weights`` ``(G, d)``, shape ``(G, N, N)``."""
        return self.kernel_z((self.x @ weights.T).T.unsqueeze(-1))


@dataclass(frozen=True)
class Supremum:
    """A bracket of the supremum for each draw: ``lower`` is reached by an encoder of the class, ``upper`` by none."""

    lower: Tensor
    upper: Tensor


def two_column_inputs(*, columns: int = 2, points: int = 5, bandwidth: float = 0.5) -> FiniteInputs:
    """X uniform on a grid in [−1, 1]^columns (1 or 2), S = X₁ + X_last²/2 ± 1/4 with a fair sign.

    Examples
    --------
    >>> law = two_column_inputs()
    >>> tuple(law.x.shape), round(law.probabilities.sum().item(), 12)
    ((50, 2), 1.0)
    """
    axis = torch.linspace(-1.0, 1.0, points, dtype=torch.float64)
    x = torch.cartesian_prod(*[axis] * columns).reshape(-1, columns)
    signal = x[:, 0] + 0.5 * x[:, -1].square()
    s = torch.stack([signal - 0.25, signal + 0.25], -1).reshape(-1, 1)
    x = x.repeat_interleave(2, 0)
    probabilities = torch.full((len(x),), 1.0 / len(x), dtype=torch.float64)
    return FiniteInputs(x, s, probabilities, Gaussian(bandwidth), Gaussian(bandwidth))


def parameter_grid(columns: int, *, radius: float, step: float) -> tuple[Tensor, float]:
    """Return points w, and how far the farthest w with |w| ≤ radius is from one of them.

    w and −w encode alike, so half of the ball will do. Points just outside it take part in the upper side alone.
    """
    axis = torch.arange(0.0, radius + step, step, dtype=torch.float64)
    if columns == 1:
        return axis.unsqueeze(-1), 0.5 * step
    if columns == 2:
        both = torch.cat([-axis.flip(0)[:-1], axis])
        lattice = torch.cartesian_prod(both, axis)
        reach = step / math.sqrt(2.0)
        return lattice[torch.linalg.vector_norm(lattice, dim=-1) <= radius + reach], reach
    raise ValueError(f"the encoder has {columns} parameters: the grid is for one or two; beyond that use mlp_class.")


def linear_class(law: FiniteInputs, frequencies: Tensor, *, radius: float, step: float) -> Supremum:
    """Bracket sup |HSIC_n − HSIC| over h_w(x) = w·x, |w| ≤ radius, for each draw; O(G·N²·draws).

    k is Lipschitz in the distance of its arguments with constant c = e^(−1/2)/σ, and moving w by ε moves that distance
    by at most ε·|x_i − x_j|. So the difference of the two HSICs is Lipschitz in w with constant c·Σ|M_ij|·|x_i − x_j|.
    """
    grid, reach = parameter_grid(law.x.shape[-1], radius=radius, step=step)
    contrast = law.contrast(frequencies)
    values = (law.encoded_gram(grid).flatten(1) @ contrast.flatten(1).T).abs()
    inside = torch.linalg.vector_norm(grid, dim=-1) <= radius * (1.0 + 1e-12)
    slope = math.exp(-0.5) / law.kernel_z.bandwidth * (contrast.abs() * torch.cdist(law.x, law.x)).sum((-2, -1))
    return Supremum(values[inside].amax(0), values.amax(0) + slope * reach)


def any_class(law: FiniteInputs, frequencies: Tensor) -> Tensor:
    """½Σ|M_ij|: no encoder into any space has a larger difference under a kernel with values in [0, 1]."""
    return 0.5 * law.contrast(frequencies).abs().sum((-2, -1))


def mlp_class(
    law: FiniteInputs,
    frequencies: Tensor,
    *,
    radius: float,
    hidden: int = 4,
    restarts: int = 4,
    steps: int = 60,
    generator: torch.Generator,
) -> Supremum:
    """Bracket the supremum over h(x) = v·tanh(Wx), ‖v‖ ≤ radius, ‖W‖_F ≤ radius: ascent below, :func:`any_class` above.

    The lower side is a lower bound by optimisation (Adam from several starts, parameters normalised onto their balls),
    not the supremum itself.
    """
    contrast = law.contrast(frequencies)
    draws, columns = len(frequencies), law.x.shape[-1]
    inner = torch.randn(draws, restarts, columns, hidden, generator=generator, dtype=law.x.dtype)
    outer = torch.randn(draws, restarts, hidden, 1, generator=generator, dtype=law.x.dtype)
    parameters = [inner.requires_grad_(), outer.requires_grad_()]
    optimiser = torch.optim.Adam(parameters, lr=0.1)
    best = torch.zeros(draws, dtype=law.x.dtype)
    for _ in range(steps):
        w, v = (
            radius * p / torch.linalg.matrix_norm(p, keepdim=True).clamp_min(radius) for p in parameters
        )  # inside the ball unchanged, outside pulled back to it
        encoded = torch.tanh(law.x @ w) @ v
        values = (law.kernel_z(encoded) * contrast.unsqueeze(1)).sum((-2, -1)).abs()
        best = torch.maximum(best, values.detach().amax(1))
        optimiser.zero_grad()
        (-values.sum()).backward()
        optimiser.step()
    return Supremum(best, any_class(law, frequencies))
