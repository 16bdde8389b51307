"""Split a dataset with seeded permutations, scale it, and stack several splits as tensors."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from frhsic_core.choices import one_of
from frhsic_core.data.dataset import Dataset

if TYPE_CHECKING:
    import torch

REFERENCE_SEEDS = (42, 43, 44, 45, 46)
TRAIN_TEST = (0.8, 0.2)
Scaling = Literal["train", "full", "none"]


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

    ``x_*`` is (splits, n, d), ``s_*`` is (splits, n) or (splits, n, p), ``y_*`` and ``weights_*`` are (splits, n).
    Without a validation part or without weights, these tensors are None.
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
    weights_train: torch.Tensor | None = None
    weights_validation: torch.Tensor | None = None
    weights_test: torch.Tensor | None = None

    def __len__(self) -> int:
        return len(self.seeds)

    def to(self, device: torch.device | str | None = None, dtype: torch.dtype | None = None) -> SplitStack:
        """Return the stack on another device or in another dtype."""
        named = {field.name: getattr(self, field.name) for field in fields(self)}
        tensors = {key: value for key, value in named.items() if hasattr(value, "device")}
        return replace(self, **{key: value.to(device=device, dtype=dtype) for key, value in tensors.items()})


def stack_splits(
    dataset: Dataset,
    *,
    seeds: Iterable[int] = REFERENCE_SEEDS,
    fractions: Sequence[float] = TRAIN_TEST,
    scaling: Scaling = "train",
    device: torch.device | str | None = None,
    dtype: torch.dtype | None = None,
) -> SplitStack:
    """Split a dataset once per seed and return all splits as one stack of tensors on a device.

    Each column of X and S is mapped to (x - min) / (max - min). Time and memory O(splits · n · d); the scaling is done
    in float64, one split at a time, and stored in ``dtype``.

    Parameters
    ----------
    dataset : Dataset
        A dataset from `load_dataset`.
    seeds : iterable of int
        One seed for each split; the paper uses 42 to 46.
    fractions : sequence of float
        See `split_indices`.
    scaling : {"train", "full", "none"}
        ``"train"`` takes minimum and maximum from the training rows of each split, so that test values may lie outside
        [0, 1]. ``"full"`` takes them from all rows, as the released code does in most of its side experiments.
        ``"none"`` does not scale.
    device, dtype : optional
        Device (default CPU) and precision (default float32, as in the paper) of the tensors.

    Returns
    -------
    SplitStack
        ``x_train`` (splits, n_train, d), ``s_train``, ``y_train``, ``x_test``, ...

    Notes
    -----
    A column that is constant on the training rows (for example a rare level that only the test part has) is shifted
    but not divided.

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
    one_of("scaling", scaling, ("train", "full", "none"))
    dtype = dtype or torch.float32
    if not dtype.is_floating_point:
        raise TypeError(f"dtype is {dtype}: a floating dtype is needed.")
    x, s, y, weights = tensors_of(dataset, device=device, dtype=_widest(device))
    arrays = {"x": x, "s": s, "y": y} | ({} if weights is None else {"weights": weights})
    splits = [split_indices(dataset.n, random_state=seed, fractions=fractions) for seed in seeds]
    parts = ("train", "validation", "test") if len(splits[0].validation) else ("train", "test")
    rows = {
        part: torch.as_tensor(np.stack([getattr(split, part) for split in splits]), device=x.device) for part in parts
    }
    tensors: dict[str, Any] = {}
    for key, values in arrays.items():
        for part in parts:
            shape = (len(seeds), rows[part].shape[1], *values.shape[1:])
            tensors[f"{key}_{part}"] = torch.empty(shape, dtype=dtype, device=x.device)
        for index in range(len(seeds)):
            shift, stretch = _range(values, rows["train"][index], scaling if key in ("x", "s") else "none")
            for part in parts:
                tensors[f"{key}_{part}"][index] = ((values[rows[part][index]] - shift) / stretch).to(dtype)
    return SplitStack(**tensors, seeds=seeds, task=dataset.task, name=dataset.name)


def tensors_of(
    dataset: Dataset, *, device: torch.device | str | None = None, dtype: torch.dtype | None = None
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor | None]:
    """Return x, s, y and the weights (or None) as new tensors on ``device`` in ``dtype`` (default float64)."""
    import torch

    def convert(array: np.ndarray) -> torch.Tensor:
        return torch.tensor(array, dtype=dtype or torch.float64, device=device)

    weights = None if dataset.weights is None else convert(dataset.weights)
    return convert(dataset.X), convert(dataset.s), convert(dataset.y), weights


def _widest(device: Any) -> torch.dtype:
    """Return float64, or float32 on a device without float64 (Apple's)."""
    import torch

    return torch.float32 if torch.device(device or "cpu").type == "mps" else torch.float64


def _range(values: torch.Tensor, train: torch.Tensor, scaling: Scaling) -> tuple[Any, Any]:
    import torch

    if scaling == "none":
        return 0.0, 1.0
    fitted = values[train] if scaling == "train" else values
    low, high = fitted.amin(dim=0), fitted.amax(dim=0)
    width = high - low
    return low, torch.where(width > 0, width, torch.ones_like(width))
