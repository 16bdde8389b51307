"""Split a dataset with seeded permutations, scale it, and stack several splits as tensors."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from frhsic_core.data.dataset import Dataset

if TYPE_CHECKING:
    import torch

REFERENCE_SEEDS = (42, 43, 44, 45, 46)
TRAIN_TEST = (0.8, 0.2)
Rows = dict[str, np.ndarray]


def split_indices(n: int, *, random_state: int = 42, fractions: Sequence[float] = TRAIN_TEST) -> Rows:
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
    dict
        The row numbers of ``"train"``, ``"validation"`` (of three parts) and ``"test"``; each row is in one part.

    Examples
    --------
    >>> split = split_indices(10, random_state=42)
    >>> split["train"].tolist(), split["test"].tolist()
    ([8, 1, 5, 0, 7, 2, 9, 4], [3, 6])
    """
    sizes = [int(fraction * n) for fraction in fractions[:-1]]
    order = np.random.RandomState(random_state).permutation(n)
    names = ("train", "validation", "test") if len(fractions) == 3 else ("train", "test")
    return dict(zip(names, np.split(order, np.cumsum(sizes)), strict=True))


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
    device : optional
        Device of the tensors (default CPU); their precision is float32, as in the paper.

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
    x, s, y = tensors_of(dataset, device=device)
    splits = [split_indices(dataset.n, random_state=seed, fractions=fractions) for seed in seeds]
    tensors: dict[str, list[torch.Tensor]] = {f"{key}_{part}": [] for key in "xsy" for part in splits[0]}
    for split in splits:
        rows = {part: torch.as_tensor(numbers, device=x.device) for part, numbers in split.items()}
        for key, values in {"x": _scaled(x, rows["train"]), "s": _scaled(s, rows["train"]), "y": y}.items():
            for part, numbers in rows.items():
                tensors[f"{key}_{part}"].append(values[numbers].float())
    stacked = {name: torch.stack(found) for name, found in tensors.items()}
    return SplitStack(**stacked, seeds=seeds, task=dataset.task, name=dataset.name)


def tensors_of(dataset: Dataset, *, device: torch.device | str | None = None) -> tuple[torch.Tensor, ...]:
    """Return x, s and y as new tensors in float64."""
    import torch

    return tuple(torch.tensor(part, dtype=torch.float64, device=device) for part in (dataset.X, dataset.s, dataset.y))


def _scaled(values: torch.Tensor, train: torch.Tensor) -> torch.Tensor:
    low = values[train].amin(dim=0)
    width = values[train].amax(dim=0) - low
    return (values - low) / width.where(width > 0, 1.0)
