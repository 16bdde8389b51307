# SHIM: frhsic_core.learning.batches -> frhsic_core.learning.data
"""Old home of the training data."""

from frhsic_core.learning.data import Batch as Batch
from frhsic_core.learning.data import TrainingData as TrainingData
from frhsic_core.learning.data import random_order as random_order
