"""Encoder, head and adversary: a stack of models is one module.

Weights have shape ``(models, in, out)`` and a forward pass is one batched matrix product, so that 125 models cost a few
kernel launches, not 125 times as many. A single model is a stack of one.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import cast

import torch
from torch import Tensor, nn
from torch.nn import functional as F

__all__ = ["ModelStack", "StackedLinear", "StackedMLP"]

ACTIVATIONS: dict[str, tuple[Callable[[Tensor], Tensor], type[nn.Module]]] = {
    "selu": (F.selu, nn.SELU),
    "relu": (F.relu, nn.ReLU),
    "tanh": (torch.tanh, nn.Tanh),
}


def seeded_generators(seeds: Sequence[int]) -> list[torch.Generator]:
    """Return one CPU generator for each seed: the stream ``torch.manual_seed(seed)`` would start."""
    return [torch.Generator().manual_seed(int(seed)) for seed in seeds]


class StackedLinear(nn.Module):
    """One affine map for each model: ``(models, n, in) -> (models, n, out)`` by ``torch.baddbmm``.

    Examples
    --------
    >>> layer = StackedLinear(3, 4, 2)
    >>> layer.initialise(seeded_generators([0, 1, 2]))
    >>> tuple(layer(torch.zeros(3, 5, 4)).shape)
    (3, 5, 2)
    """

    def __init__(self, models: int, n_in: int, n_out: int, *, dtype: torch.dtype = torch.float32) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.zeros(models, n_in, n_out, dtype=dtype))
        self.bias = nn.Parameter(torch.zeros(models, 1, n_out, dtype=dtype))

    @torch.no_grad()
    def initialise(self, generators: Sequence[torch.Generator]) -> None:
        """Draw each model's weights from its generator exactly as ``nn.Linear`` draws them from the global one."""
        models, n_in, n_out = self.weight.shape
        if len(generators) != models:
            raise ValueError(f"{len(generators)} generators were given for {models} models: one for each is needed.")
        for i, generator in enumerate(generators):
            weight = torch.empty(n_out, n_in, dtype=self.weight.dtype)
            nn.init.kaiming_uniform_(weight, a=math.sqrt(5), generator=generator)
            bound = 1.0 / math.sqrt(n_in)
            bias = torch.empty(n_out, dtype=self.bias.dtype).uniform_(-bound, bound, generator=generator)
            self.weight[i].copy_(weight.T)
            self.bias[i, 0].copy_(bias)

    def forward(self, x: Tensor) -> Tensor:
        return torch.baddbmm(self.bias, x, self.weight)

    def lone(self, i: int) -> nn.Linear:
        """Return model ``i`` as a plain ``nn.Linear``."""
        _, n_in, n_out = self.weight.shape
        layer = nn.Linear(n_in, n_out, dtype=self.weight.dtype, device=self.weight.device)
        with torch.no_grad():
            layer.weight.copy_(self.weight[i].T)
            layer.bias.copy_(self.bias[i, 0])
        return layer


class StackedMLP(nn.Module):
    """A stack of multilayer perceptrons with widths ``(in, ..., out)``.

    Parameters
    ----------
    models : int
        Number of models.
    widths : sequence of int
        Input width, hidden widths, output width.
    activation : {"selu", "relu", "tanh"}
        Between layers.
    activate_output : bool
        Also after the last layer.

    Examples
    --------
    >>> net = StackedMLP(2, (4, 50, 50))
    >>> net.initialise([42, 43])
    >>> _ = torch.manual_seed(42)
    >>> bool((nn.Linear(4, 50).weight.T == net.layers[0].weight[0]).all())
    True
    """

    def __init__(
        self,
        models: int,
        widths: Sequence[int],
        *,
        activation: str = "selu",
        activate_output: bool = False,
        dtype: torch.dtype = torch.float32,
    ) -> None:
        super().__init__()
        if activation not in ACTIVATIONS:
            raise ValueError(f"activation is {activation!r}: choose one of {', '.join(map(repr, ACTIVATIONS))}.")
        if len(widths) < 2 or min(widths) < 1:
            raise ValueError(f"widths is {tuple(widths)}: give at least an input and an output width, all positive.")
        self.activation = activation
        self.activate_output = activate_output
        self.layers = nn.ModuleList(StackedLinear(models, a, b, dtype=dtype) for a, b in pairwise(widths))

    def initialise(self, seeds: Sequence[int] | Sequence[torch.Generator]) -> None:
        """Give each model what a lone PyTorch model would get after ``torch.manual_seed(seed)``.

        Generators may be passed instead of seeds, to go on where an earlier network of the same model stopped drawing.
        """
        generators = [s if isinstance(s, torch.Generator) else seeded_generators([s])[0] for s in seeds]
        for layer in self.layers:
            cast(StackedLinear, layer).initialise(generators)

    def forward(self, x: Tensor) -> Tensor:
        function = ACTIVATIONS[self.activation][0]
        last = len(self.layers) - 1
        for i, layer in enumerate(self.layers):
            x = layer(x)
            if i < last or self.activate_output:
                x = function(x)
        return x

    def lone(self, i: int) -> nn.Sequential:
        """Return model ``i`` as a plain ``nn.Sequential``."""
        modules: list[nn.Module] = []
        for j, layer in enumerate(self.layers):
            modules.append(cast(StackedLinear, layer).lone(i))
            if j < len(self.layers) - 1 or self.activate_output:
                modules.append(ACTIVATIONS[self.activation][1]())
        return nn.Sequential(*modules)


class ModelStack(nn.Module):
    """Encoders h and linear heads f of a stack: ``z = h(x)``, ``output = f(z)``.

    Parameters
    ----------
    models, n_features : int
        Number of models; columns of X.
    widths : sequence of int
        Hidden widths and, last, the dimension of Z.
    activation, activate_output
        As in :class:`StackedMLP`; the text's encoder ends in SELU, the reference's does not.
    """

    def __init__(
        self,
        models: int,
        n_features: int,
        *,
        widths: Sequence[int] = (50, 50),
        activation: str = "selu",
        activate_output: bool = False,
        dtype: torch.dtype = torch.float32,
    ) -> None:
        super().__init__()
        self.encoder = StackedMLP(
            models, (n_features, *widths), activation=activation, activate_output=activate_output, dtype=dtype
        )
        self.head = StackedLinear(models, widths[-1], 1, dtype=dtype)

    @property
    def n_features(self) -> int:
        """Columns of X."""
        return cast(StackedLinear, self.encoder.layers[0]).weight.shape[1]

    def initialise(self, seeds: Sequence[int]) -> list[torch.Generator]:
        """Encoder first, then head, as a lone script would build them; returns the generators, for an adversary."""
        generators = seeded_generators(seeds)
        self.encoder.initialise(generators)
        self.head.initialise(generators)
        return generators

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """Return Z ``(models, n, d)`` and the head's output ``(models, n)``; logits for classification."""
        z = self.encoder(x)
        return z, self.head(z).squeeze(-1)
