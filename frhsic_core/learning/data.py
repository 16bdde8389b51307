"""The training data of a stack, and the order in which each model sees its samples.

Every model has its own order of samples. It is drawn by a counter-based generator: a hash of (seed,
epoch, row) is sorted. The order of a model therefore depends on its seed and the epoch alone. It
does not depend on the other models of the stack, on the device or on earlier draws, so a run that
resumes at epoch 37 sees the same mini-batches as an uninterrupted run.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor

from frhsic_core._arrays import ArrayLike, as_tensor, spaced_rows
from frhsic_core._choices import one_of

TASKS = ("classification", "regression")
LARGEST_ROUNDING = 1e-3  # error of float32, in typical distances of a value from the median
# Constants of splitmix64 (Steele, Lea and Flood, 2014), as signed 64-bit integers.
_GOLDEN = 0x9E3779B97F4A7C15 - (1 << 64)
_FIRST = 0xBF58476D1CE4E5B9 - (1 << 64)
_SECOND = 0x94D049BB133111EB - (1 << 64)


def _mix(x: Tensor) -> Tensor:
    """Apply the last step of splitmix64; masks turn torch's arithmetic shifts into logical ones."""
    x = (x ^ ((x >> 30) & ((1 << 34) - 1))) * _FIRST
    x = (x ^ ((x >> 27) & ((1 << 37) - 1))) * _SECOND
    return x ^ ((x >> 31) & ((1 << 33) - 1))


def random_order(seeds: Tensor, *, epoch: int, n: int) -> Tensor:
    """Return a permutation of ``range(n)`` for each seed, ``(models, n)``, in O(n log n) per model.

    Examples
    --------
    >>> orders = random_order(torch.tensor([42, 43]), epoch=0, n=1000)
    >>> orders.sort(-1).values.equal(torch.arange(1000).expand(2, 1000))
    True
    >>> orders[0].equal(orders[1])
    False
    >>> random_order(torch.tensor([43]), epoch=0, n=1000)[0].equal(orders[1])
    True
    """
    key = _mix(_mix(seeds.to(torch.int64) + _GOLDEN) + epoch * 2 + 1)
    counter = torch.arange(1, n + 1, device=seeds.device, dtype=torch.int64)
    return _mix(key.unsqueeze(-1) + _GOLDEN * counter).argsort(dim=-1, stable=True)


@dataclass(frozen=True)
class Batch:
    """One mini-batch of every model, as a penalty receives it.

    Parameters
    ----------
    z : Tensor
        Representations, ``(models, m, d)``.
    output : Tensor
        The head's output, ``(models, m)``; logits for classification.
    s, y : Tensor
        ``(models, m, p)`` and ``(models, m)``.
    weights : Tensor or None
        Sample weights, ``(models, m)``, which need not sum to one.
    rows : Tensor
        Index of each sample in the flattened datasets, ``(models, m)``. A penalty that stores a
        value for each training sample (its bin, its density) looks it up with this index.
    """

    z: Tensor
    output: Tensor
    s: Tensor
    y: Tensor
    weights: Tensor | None
    rows: Tensor

    def detach(self) -> Batch:
        """Return the batch without its graph, for the step of an adversary."""
        return Batch(self.z.detach(), self.output.detach(), self.s, self.y, self.weights, self.rows)


@dataclass(frozen=True)
class TrainingData:
    """Checked training samples: one dataset, or several datasets (splits) of equal size.

    :meth:`from_arrays` checks its input. The constructor does not: it takes tensors that were
    checked before.

    Parameters
    ----------
    x : Tensor
        Features, ``(datasets, n, d)``.
    y : Tensor
        Targets, ``(datasets, n)``; 0 and 1 for a classification.
    s : Tensor or None
        Sensitive attributes, ``(datasets, n, p)``.
    sample_weight : Tensor or None
        Weights, ``(datasets, n)``.
    task : {"classification", "regression"}
        The task, which decides the loss.
    control : Tensor or None
        Control features, ``(datasets, n, q + 1)``: the rows of ``joint.given.Given``.
    """

    x: Tensor
    y: Tensor
    s: Tensor | None
    sample_weight: Tensor | None
    task: str
    control: Tensor | None = None

    @property
    def datasets(self) -> int:
        """Number of datasets."""
        return self.x.shape[0]

    @property
    def n(self) -> int:
        """Number of samples in each dataset."""
        return self.x.shape[1]

    @property
    def attributes(self) -> int:
        """Number of sensitive attributes p."""
        return 0 if self.s is None else self.s.shape[-1]

    @classmethod
    def from_arrays(
        cls,
        x: ArrayLike,
        y: ArrayLike | None,
        s: ArrayLike | None,
        *,
        sample_weight: ArrayLike | None = None,
        task: str = "classification",
        dtype: torch.dtype | None = None,
        device: torch.device | str | None = None,
    ) -> TrainingData:
        """Check and convert arrays; ``(n, d)`` is one dataset, ``(datasets, n, d)`` are several.

        Tensors keep their dtype and device unless others are given.

        Raises
        ------
        ValueError, TypeError
            The input has NaN, text, row counts that do not match, classes other than 0 and 1, a
            single class, a constant attribute, or weights that are negative or all zero.
        """
        if y is None:
            raise TypeError("y is missing: pass x, y and s.")
        one_of("task", task, TASKS)
        x = _features(_read(x, "X"))
        y = _one_per_sample(_read(y, "y"), x, "y")
        if task == "classification" and not bool(((y == 0) | (y == 1)).all()):
            raise ValueError("y has values other than 0 and 1: encode the two classes as 0 and 1.")
        if s is not None:
            s = _attributes(_read(s, "s"), x)
        if sample_weight is not None:
            weights = _read(sample_weight, "sample_weight")
            sample_weight = _one_per_sample(weights, x, "sample_weight")
        data = cls(x, y, s, sample_weight, task)
        if dtype == torch.float32:
            data.require_digits()
        data = data.to(dtype=dtype, device=device)
        data.require_variation()
        return data

    def require_digits(self) -> None:
        """Raise ``ValueError`` where float32 would round away differences, as of seconds."""
        _require_digits(self.x, "X")
        _require_digits(self.y.unsqueeze(-1), "y")
        if self.s is not None:
            _require_digits(self.s, "s")

    def require_variation(self) -> None:
        """Raise ``ValueError`` if nothing can be learned.

        There is one class only, a constant attribute, or no positive weight.
        """
        if self.task == "classification" and bool((self.y == self.y[:, :1]).all(-1).any()):
            raise ValueError("y has one class only: a classifier needs samples of both classes.")
        if self.s is not None:
            constant = (self.s == self.s[:, :1]).all(1)
            if bool(constant.any()):
                column = int(constant.any(0).nonzero()[0])
                raise ValueError(
                    f"s is constant (column {column}): nothing can depend on it. Drop it, or use "
                    "lam=0."
                )
        weights = self.sample_weight
        if weights is None:
            return
        negative = bool((weights < 0).any())
        all_zero = bool((weights.sum(-1) == 0).any())
        if negative or all_zero:
            raise ValueError(
                "sample_weight must be zero or positive, and positive for at least one sample."
            )

    def part(self, rows: Tensor) -> TrainingData:
        """Return the given rows of every dataset."""
        return self._each(lambda values: values[:, rows])

    def to(self, *, dtype: torch.dtype | None, device: torch.device | str | None) -> TrainingData:
        """Return the data in another dtype and on another device."""
        return self._each(lambda values: values.to(dtype=dtype, device=device))

    def _each(self, function: Callable[[Tensor], Tensor]) -> TrainingData:
        """Return the data with a function applied to each of its tensors."""
        changed: dict[str, Any] = {}
        for name, value in vars(self).items():
            if isinstance(value, Tensor):
                changed[name] = function(value)
        return replace(self, **changed)


def _read(value: ArrayLike, name: str) -> Tensor:
    """Return finite numbers at the precision in which they were given."""
    tensor = as_tensor(value, name=name).detach()
    bad = int((~torch.isfinite(tensor)).sum())
    if bad:
        raise ValueError(f"{name} has {bad} NaN or infinite values: drop those rows first.")
    return tensor


def _require_digits(values: Tensor, name: str) -> None:
    """Raise ``ValueError`` where float32 has too few digits for values ``(datasets, n, columns)``.

    Of up to 1,000 evenly spaced rows, the typical rounding error must be small beside the typical
    distance from the median.
    """
    if values.dtype != torch.float64:
        return
    largest = float(values.abs().max())
    if largest > torch.finfo(torch.float32).max:
        raise ValueError(
            f"{name} has values up to {largest:.1e}, too large for float32: divide {name} by a "
            "constant first, or use dtype=torch.float64."
        )
    rows = values[:, spaced_rows(values.shape[1], 1000, values.device)]
    middle = rows.median(1, keepdim=True).values
    distance = (rows - middle).abs()
    # Where most values are equal, the others decide; where all are, nothing is lost.
    typical = distance.masked_fill(distance == 0, torch.nan).nanmedian(1).values
    rounding = (rows - rows.float()).abs().median(1).values
    lost = rounding > LARGEST_ROUNDING * typical
    if bool(lost.any()):
        which, column = lost.nonzero()[0].tolist()
        raise ValueError(
            f"{name} has values around {middle[which, 0, column]:.6g} (column {column}) that "
            f"typically differ by {typical[which, column]:.2g}: float32 has too few digits for "
            "them. Subtract the median and divide by a typical distance first, or use "
            "dtype=torch.float64."
        )


def _features(x: Tensor) -> Tensor:
    """Return ``(datasets, n, d)``."""
    shape = tuple(x.shape)
    if x.ndim not in (2, 3):
        raise ValueError(f"X has shape {shape}: give (n, d), or (datasets, n, d) for a stack.")
    if min(shape) == 0:
        raise ValueError(f"X has shape {shape}: at least one row and one column are needed.")
    if x.ndim == 2:
        x = x.unsqueeze(0)
    return x.contiguous()


def _one_per_sample(value: Tensor, x: Tensor, name: str) -> Tensor:
    """Return ``(datasets, n)``; one dataset's values serve all datasets."""
    if value.ndim > 1 and value.shape[-1] == 1 and x.shape[1] != 1:
        value = value.squeeze(-1)
    if value.ndim == 1:
        value = value.unsqueeze(0)
    if value.ndim != 2 or value.shape[-1] != x.shape[1] or value.shape[0] not in (1, x.shape[0]):
        raise ValueError(
            f"{name} has {value.shape[-1]} rows but X has {x.shape[1]}: both need one row per "
            "sample."
        )
    return value.expand(x.shape[:2]).contiguous()


def _attributes(s: Tensor, x: Tensor) -> Tensor:
    """Return ``(datasets, n, p)``; one dataset's attributes serve all datasets."""
    if s.ndim not in (1, 2, 3):
        raise ValueError(f"s has shape {tuple(s.shape)}: give (n,), (n, p) or (datasets, n, p).")
    if s.ndim == 2 and s.shape[:2] != x.shape[:2]:
        s = s.unsqueeze(0)  # (n, p)
    elif s.ndim == 1:
        s = s.reshape(1, -1, 1)
    elif s.ndim == 2:
        s = s.unsqueeze(-1)  # (datasets, n)
    if s.shape[0] == 1:
        s = s.expand(x.shape[0], *s.shape[1:])
    if s.shape[:2] != x.shape[:2]:
        raise ValueError(
            f"s has {s.shape[-2]} rows but X has {x.shape[-2]}: both need one row per sample."
        )
    return s.contiguous()
