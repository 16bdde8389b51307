"""Load real datasets with a numeric sensitive attribute, and two synthetic ones.

>>> from frhsic_core.data import load_dataset
>>> load_dataset("people").feature_names
('test_score', 'habit_1', 'habit_2')
"""

from frhsic_core.data._files import (
    CorruptFile,
    DataError,
    DataUnavailable,
    FileRecord,
    Folders,
    FormatError,
)
from frhsic_core.data._loading import available_datasets, load_dataset
from frhsic_core.data._recipes import Dataset, Provenance

__all__ = [
    "CorruptFile",
    "DataError",
    "DataUnavailable",
    "Dataset",
    "FileRecord",
    "Folders",
    "FormatError",
    "Provenance",
    "available_datasets",
    "load_dataset",
]
