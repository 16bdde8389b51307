"""Load the five real datasets and the synthetic distributions of the paper, and split them.

>>> from frhsic_core.data import load_dataset, stack_splits
>>> stack = stack_splits(load_dataset("synthetic"))
>>> tuple(stack.x_train.shape)
(5, 4000, 2)
"""

from frhsic_core.data.dataset import Dataset, FileRecord, Provenance
from frhsic_core.data.fetching import Folders
from frhsic_core.data.files import CorruptFile, DataError, DataUnavailable, FormatError
from frhsic_core.data.loading import available_datasets, load_dataset
from frhsic_core.data.splits import SplitIndices, SplitStack, split_indices, stack_splits

__all__ = [
    "CorruptFile",
    "DataError",
    "DataUnavailable",
    "Dataset",
    "FileRecord",
    "Folders",
    "FormatError",
    "Provenance",
    "SplitIndices",
    "SplitStack",
    "available_datasets",
    "load_dataset",
    "split_indices",
    "stack_splits",
]
