"""A stack of trained models: encode, predict, take one out, save and load."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import torch
from torch import Tensor, nn

from frhsic_core.arrays import ArrayLike, as_tensor
from frhsic_core.learning.history import History
from frhsic_core.learning.networks import ModelStack

__all__ = ["TrainedStack"]


@dataclass
class TrainedStack:
    """Models of a stack with what they were trained for.

    Parameters
    ----------
    model : ModelStack
        Encoders and heads.
    history : History
        Per epoch and model.
    lam : Tensor
        λ of each model.
    seeds, dataset : tuple of int
        Seed and dataset of each model.
    task : str
        ``"classification"`` or ``"regression"``.
    penalty : nn.Module
        As it was at the end (bandwidths, adversary).
    interrupted : bool
        Whether Ctrl-C ended the training early.
    """

    model: ModelStack
    history: History
    lam: Tensor
    seeds: tuple[int, ...]
    dataset: tuple[int, ...]
    task: str
    penalty: nn.Module = field(repr=False)
    interrupted: bool = False

    @property
    def models(self) -> int:
        """Number of models."""
        return len(self.seeds)

    @torch.no_grad()
    def forward(
        self, x: ArrayLike, *, dataset: Sequence[int] | None = None, chunk: int = 8192
    ) -> tuple[Tensor, Tensor]:
        """Return Z ``(models, n, d)`` and the head's output ``(models, n)`` on the models' device.

        Parameters
        ----------
        x : array_like
            ``(n, d)`` for every model, or ``(datasets, n, d)``: each model sees its own.
        dataset : sequence of int, optional
            Which of several datasets each model sees; by default the one it was trained on.
        chunk : int
            Rows at a time.
        """
        first = next(self.model.parameters())
        x = as_tensor(x, name="X").to(dtype=first.dtype, device=first.device)
        if x.ndim == 3:
            which = torch.tensor(self.dataset if dataset is None else list(dataset), device=first.device)
        else:
            x, which = x.unsqueeze(0), torch.zeros(self.models, dtype=torch.int64, device=first.device)
        if x.shape[-1] != self.model.n_features:
            raise ValueError(f"X has {x.shape[-1]} columns but the models were trained on {self.model.n_features}.")
        parts = [self.model(block[which]) for block in x.split(chunk, dim=1)]
        return torch.cat([z for z, _ in parts], dim=1), torch.cat([output for _, output in parts], dim=1)

    def encode(self, x: ArrayLike, *, dataset: Sequence[int] | None = None) -> Tensor:
        """Z of every model, ``(models, n, d)``."""
        return self.forward(x, dataset=dataset)[0]

    def output(self, x: ArrayLike, *, dataset: Sequence[int] | None = None) -> Tensor:
        """Logits (classification) or predictions (regression), ``(models, n)``."""
        return self.forward(x, dataset=dataset)[1]

    def probabilities(self, x: ArrayLike, *, dataset: Sequence[int] | None = None) -> Tensor:
        """Probabilities of class 1, ``(models, n)``; classification only."""
        if self.task != "classification":
            raise ValueError("probabilities exist for classification only: use output() for a regression.")
        return torch.sigmoid(self.output(x, dataset=dataset))

    def lone(self, i: int = 0) -> tuple[nn.Sequential, nn.Linear]:
        """Encoder and head of model ``i`` as plain PyTorch modules."""
        return self.model.encoder.lone(i), self.model.head.lone(i)
