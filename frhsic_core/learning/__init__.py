"""Training of fair representations: FRHSIC and its rivals in one loop that trains a whole sweep.

:class:`Trainer` takes data, a penalty, a stack of λ and seeds, and :class:`TrainingSettings`. It
returns a :class:`TrainedStack`, which encodes and predicts. The estimators ``FairClassifier``,
``FairRegressor`` and ``FairEncoder`` follow scikit-learn. The stub beside this file lists the
public names and their modules. They load on first use, and most of them need PyTorch.
"""

from frhsic_core._lazy import attach_stub

__getattr__, __dir__, __all__ = attach_stub(__name__, __file__)
