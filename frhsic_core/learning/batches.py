"""The data of a stack, and the order in which each model sees them.

Every model has its own order of rows, drawn by a counter-based generator: a hash of (seed, epoch, row) is sorted. The
order of a model therefore depends on its seed and the epoch alone, not on its neighbours in the stack, on the device or
on what was drawn before; a run resumed from epoch 37 sees what it would have seen.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from frhsic_core.arrays import ArrayLike, as_tensor

__all__ = ["Batch", "TrainingData", "random_order"]

TASKS = ("classification", "regression")
# Constants of splitmix64 (Steele, Lea and Flood, 2014), as signed 64-bit integers.
_GOLDEN = 0x9E3779B97F4A7C15 - (1 << 64)
_FIRST = 0xBF58476D1CE4E5B9 - (1 << 64)
_SECOND = 0x94D049BB133111EB - (1 << 64)


def _mix(x: Tensor) -> Tensor:
    """Finalise splitmix64; the masks make torch's arithmetic shifts logical ones."""
    x = (x ^ ((x >> 30) & ((1 << 34) - 1))) * _FIRST
    x = (x ^ ((x >> 27) & ((1 << 37) - 1))) * _SECOND
    return x ^ ((x >> 31) & ((1 << 33) - 1))


def random_order(seeds: Tensor, *, epoch: int, n: int) -> Tensor:
    """Permutations of ``range(n)``, one for each seed, ``(models, n)``; O(n log n) for each model.

    Examples
    --------
    >>> orders = random_order(torch.tensor([42, 43]), epoch=0, n=1000)
    >>> bool((orders.sort(-1).values == torch.arange(1000)).all()), bool((orders[0] == orders[1]).all())
    (True, False)
    >>> bool((random_order(torch.tensor([43]), epoch=0, n=1000)[0] == orders[1]).all())
    True
    """
    key = _mix(_mix(seeds.to(torch.int64) + _GOLDEN) + epoch * 2 + 1)
    counter = torch.arange(1, n + 1, device=seeds.device, dtype=torch.int64)
    return _mix(key.unsqueeze(-1) + _GOLDEN * counter).argsort(dim=-1, stable=True)


@dataclass(frozen=True)
class Batch:
    """What a penalty sees of one step: everything with a leading model dimension.

    Parameters
    ----------
    z : Tensor
        Representations, ``(models, m, d)``.
    output : Tensor
        The head's output, ``(models, m)``; logits for classification.
    s, y : Tensor
        ``(models, m, p)`` and ``(models, m)``.
    weights : Tensor or None
        Sample weights, ``(models, m)``, not normalised.
    rows : Tensor
        Where the rows stand in the flattened datasets, ``(models, m)``: penalties that keep a value for each training
        row (its bin, its density) look it up here.
    """

    z: Tensor
    output: Tensor
    s: Tensor
    y: Tensor
    weights: Tensor | None
    rows: Tensor

    def detach(self) -> Batch:
        """Return the batch without its graph, for a step of an adversary."""
        return Batch(self.z.detach(), self.output.detach(), self.s, self.y, self.weights, self.rows)


@dataclass(frozen=True)
class TrainingData:
    """Training samples: one dataset, or several of equal size (splits), checked once.

    ``x (datasets, n, d)``, ``y (datasets, n)``; ``s (datasets, n, p)`` and ``sample_weight (datasets, n)`` or None.
    """

    x: Tensor
    y: Tensor
    s: Tensor | None
    sample_weight: Tensor | None
    task: str

    @property
    def datasets(self) -> int:
        """Number of datasets."""
        return self.x.shape[0]

    @property
    def n(self) -> int:
        """Rows of each dataset."""
        return self.x.shape[1]

    @property
    def attributes(self) -> int:
        """Number of sensitive attributes p."""
        return 0 if self.s is None else self.s.shape[-1]

    @classmethod
    def from_arrays(
        cls,
        x: ArrayLike,
        y: ArrayLike,
        s: ArrayLike | None,
        *,
        sample_weight: ArrayLike | None = None,
        task: str = "classification",
        dtype: torch.dtype = torch.float32,
        device: torch.device | str = "cpu",
    ) -> TrainingData:
        """Check and move the data; ``(n, d)`` is one dataset, ``(datasets, n, d)`` several.

        Raises
        ------
        ValueError, TypeError
            NaN, text, rows that do not match, classes other than 0 and 1, a single class, a constant attribute, weights
            that are negative or all zero.
        """
        if task not in TASKS:
            raise ValueError(f"task is {task!r}: choose 'classification' or 'regression'.")
        x = _read(x, "X", dtype, device)
        if x.ndim not in (2, 3):
            raise ValueError(f"X has shape {tuple(x.shape)}: give (n, d), or (datasets, n, d) for a stack.")
        x = x if x.ndim == 3 else x.unsqueeze(0)
        if min(x.shape) == 0:
            raise ValueError(f"X has shape {tuple(x.shape)}: at least one row and one column are needed.")
        y = _rows_of(_read(y, "y", dtype, device), x, "y")
        if task == "classification":
            if not bool(((y == 0) | (y == 1)).all()):
                raise ValueError("y holds values other than 0 and 1: encode the two classes as 0 and 1.")
            if bool((y == y[:, :1]).all(-1).any()):
                raise ValueError("y has one class only: a classifier needs rows of both.")
        if s is not None:
            s = _read(s, "s", dtype, device)
            s = s.unsqueeze(0) if s.ndim == 2 and s.shape[:2] != x.shape[:2] else s
            s = s.reshape(1, -1, 1) if s.ndim == 1 else s
            s = s.unsqueeze(-1) if s.ndim == 2 else s
            s = s.expand(x.shape[0], *s.shape[1:]) if s.shape[0] == 1 else s
            if s.shape[:2] != x.shape[:2]:
                raise ValueError(f"s has {s.shape[-2]} rows but X has {x.shape[-2]}: both need one row per sample.")
            constant = (s == s[:, :1]).all(1)
            if bool(constant.any()):
                column = int(constant.any(0).nonzero()[0])
                raise ValueError(f"s is constant (column {column}): nothing can depend on it; drop it or use lam=0.")
        if sample_weight is not None:
            sample_weight = _rows_of(_read(sample_weight, "sample_weight", dtype, device), x, "sample_weight")
            if bool((sample_weight < 0).any()) or bool((sample_weight.sum(-1) == 0).any()):
                raise ValueError("sample_weight must be zero or positive, and positive somewhere.")
        return cls(x.contiguous(), y.contiguous(), None if s is None else s.contiguous(), sample_weight, task)


def _read(value: ArrayLike, name: str, dtype: torch.dtype, device: torch.device | str) -> Tensor:
    tensor = as_tensor(value, name=name)
    if not bool(torch.isfinite(tensor).all()):
        bad = int((~torch.isfinite(tensor)).sum())
        raise ValueError(f"{name} has {bad} NaN or infinite values: drop those rows first.")
    return tensor.detach().to(dtype=dtype, device=device)


def _rows_of(value: Tensor, x: Tensor, name: str) -> Tensor:
    if value.ndim > 1 and value.shape[-1] == 1 and x.shape[1] != 1:
        value = value.squeeze(-1)
    value = value.unsqueeze(0) if value.ndim == 1 else value
    if value.ndim != 2 or value.shape[-1] != x.shape[1] or value.shape[0] not in (1, x.shape[0]):
        raise ValueError(f"{name} has {value.shape[-1]} rows but X has {x.shape[1]}: both need one row per sample.")
    return value.expand(x.shape[:2]).contiguous()
