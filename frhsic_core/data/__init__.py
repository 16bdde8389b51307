"""Five real datasets and the synthetic laws of the paper: verified bytes, columns by name, splits as tensors.

>>> from frhsic_core.data import load_dataset, stack_splits
>>> stack = stack_splits(load_dataset("synthetic"))
>>> tuple(stack.x_train.shape)
(5, 4000, 2)
"""

from frhsic_core.data.dataset import Dataset, FileRecord, Provenance
from frhsic_core.data.files import CorruptFile, DataError, DataUnavailable, FormatError
from frhsic_core.data.registry import available_datasets, load_dataset
from frhsic_core.data.splits import SplitIndices, SplitStack, split_indices, stack_splits

__all__ = [
    "CorruptFile",
    "DataError",
    "DataUnavailable",
    "Dataset",
    "FileRecord",
    "FormatError",
    "Provenance",
    "SplitIndices",
    "SplitStack",
    "available_datasets",
    "load_dataset",
    "split_indices",
    "stack_splits",
]
