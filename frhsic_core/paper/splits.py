"""Split a dataset with seeded permutations, scale it, and stack several splits as tensors."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from frhsic_core.data.dataset import Dataset

if TYPE_CHECKING:
    import torch

REFERENCE_SEEDS = (42, 43, 44, 45, 46)
TRAIN_TEST = (0.8, 0.2)


@dataclass(frozen=True, eq=False)
class SplitIndices:
    """The row numbers of one split; ``validation`` is empty for a split into two parts."""

    train: np.ndarray
    validation: np.ndarray
    test: np.ndarray


def split_indices(n: int, *, random_state: int = 42, fractions: Sequence[float] = TRAIN_TEST) -> SplitIndices:
    """Split n rows as the authors do: permute them, then cut at int(fraction · n).

    Parameters
    ----------
    n : int
        Number of rows.
    random_state : int
        Seed of NumPy's legacy generator; the paper's five splits are 42 to 46.
    fractions : sequence of float
        Two (train, test) or three (train, validation, test) shares that sum to one.

    Returns
    -------
    SplitIndices
        Disjoint parts that together contain all rows.

    Examples
    --------
    >>> split = split_indices(10, random_state=42)
    >>> split.train.tolist(), split.test.tolist()
    ([8, 1, 5, 0, 7, 2, 9, 4], [3, 6])
    """
    if len(fractions) not in (2, 3) or min(fractions) < 0 or abs(sum(fractions) - 1.0) > 1e-9:
        raise ValueError(
            f"fractions is {tuple(fractions)}: give two or three shares (train, validation, test) that sum to 1."
        )
    sizes = [int(fraction * n) for fraction in fractions[:-1]]
    if sizes[0] < 1 or n - sum(sizes) < 1:
        raise ValueError(
            f"{n} rows are too few for fractions {tuple(fractions)}: the training and the test part need a row."
        )
    order = np.random.RandomState(random_state).permutation(n)
    parts = np.split(order, np.cumsum(sizes))
    middle = parts[1] if len(parts) == 3 else order[:0]
    return SplitIndices(parts[0], middle, parts[-1])


@dataclass(frozen=True, eq=False)
class SplitStack:
    """Several splits of one dataset as tensors with a leading dimension, one entry per split.

    ``x_*`` is (splits, n, d), ``s_*`` is (splits, n) or (splits, n, p), ``y_*`` is (splits, n). Without a validation
    part its tensors are None.
    """

    x_train: torch.Tensor
    s_train: torch.Tensor
    y_train: torch.Tensor
    x_test: torch.Tensor
    s_test: torch.Tensor
    y_test: torch.Tensor
    seeds: tuple[int, ...]
    task: str
    name: str
    x_validation: torch.Tensor | None = None
    s_validation: torch.Tensor | None = None
    y_validation: torch.Tensor | None = None

    def __len__(self) -> int:
        return len(self.seeds)


def stack_splits(
    dataset: Dataset,
    *,
    seeds: Iterable[int] = REFERENCE_SEEDS,
    fractions: Sequence[float] = TRAIN_TEST,
    device: torch.device | str | None = None,
    dtype: torch.dtype | None = None,
) -> SplitStack:
    """Split a dataset once per seed and return all splits as one stack of tensors on a device.

    Each column of X and S is mapped to (x - min) / (max - min) with the minimum and maximum of the training rows of
    each split, so that test values may lie outside [0, 1]. A column that is constant on these rows is shifted but not
    divided. Time and memory O(splits · n · d); the scaling is done in float64, one split at a time.

    Parameters
    ----------
    dataset : Dataset
        A dataset from `load_dataset`.
    seeds : iterable of int
        One seed for each split; the paper uses 42 to 46.
    fractions : sequence of float
        See `split_indices`.
    device, dtype : optional
        Device (default CPU) and precision (default float32, as in the paper) of the tensors.

    Examples
    --------
    >>> from frhsic_core.data import load_dataset
    >>> stack = stack_splits(load_dataset("synthetic", n=1000), seeds=range(3))
    >>> tuple(stack.x_train.shape), tuple(stack.s_test.shape)
    ((3, 800, 2), (3, 200))
    >>> float(stack.s_train.min()), float(stack.s_train.max())
    (0.0, 1.0)
    """
    import torch

    seeds = tuple(int(seed) for seed in seeds)
    if not seeds:
        raise ValueError("seeds is empty: give at least one seed.")
    x, s, y = tensors_of(dataset, device=device, dtype=_widest(device))
    splits = [split_indices(dataset.n, random_state=seed, fractions=fractions) for seed in seeds]
    parts = ("train", "validation", "test") if len(splits[0].validation) else ("train", "test")
    tensors: dict[str, list[torch.Tensor]] = {f"{key}_{part}": [] for key in "xsy" for part in parts}
    for split in splits:
        rows = {part: torch.as_tensor(getattr(split, part), device=x.device) for part in parts}
        for key, values in {"x": _scaled(x, rows["train"]), "s": _scaled(s, rows["train"]), "y": y}.items():
            for part in parts:
                tensors[f"{key}_{part}"].append(values[rows[part]].to(dtype or torch.float32))
    stacked = {name: torch.stack(found) for name, found in tensors.items()}
    return SplitStack(**stacked, seeds=seeds, task=dataset.task, name=dataset.name)


def tensors_of(
    dataset: Dataset, *, device: torch.device | str | None = None, dtype: torch.dtype | None = None
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Return x, s and y as new tensors on ``device`` in ``dtype`` (default float64)."""
    import torch

    x, s, y = (
        torch.tensor(array, dtype=dtype or torch.float64, device=device) for array in (dataset.X, dataset.s, dataset.y)
    )
    return x, s, y


def _widest(device: Any) -> torch.dtype:
    """Return float64, or float32 on a device without float64 (Apple's)."""
    import torch

    return torch.float32 if torch.device(device or "cpu").type == "mps" else torch.float64


def _scaled(values: torch.Tensor, train: torch.Tensor) -> torch.Tensor:
    low = values[train].amin(dim=0)
    width = values[train].amax(dim=0) - low
    return (values - low) / width.where(width > 0, 1.0)
