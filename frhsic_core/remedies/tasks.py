"""The two kinds of targets, numbers and two classes: what differs between them in a comparison."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

import numpy as np
from sklearn.metrics import r2_score, roc_auc_score
from sklearn.model_selection import KFold, ShuffleSplit, StratifiedKFold, StratifiedShuffleSplit

from frhsic_core.remedies.models import AdjustedClassifier, AdjustedRegressor


class Task(ABC):
    """What is predicted, and how predictions of it are made and scored."""

    name: str
    score_name: str
    adjusted: type[Any]
    random_splits: type[Any]
    folds: type[Any]

    @abstractmethod
    def score(self, predicted: np.ndarray, y: np.ndarray) -> float:
        """Return how good the predictions are, 1 at best."""

    @abstractmethod
    def predict(self, model: Any, x: Any, **more: Any) -> np.ndarray:
        """Return the predictions of a fitted model, one number for each sample."""

    @abstractmethod
    def unit(self, y: np.ndarray) -> float:
        """Return the unit in which GDP is measured, from the target of the training samples."""


class Regression(Task):
    """Numbers: the score is R², and GDP is in standard deviations of y."""

    name = "regression"
    score_name = "R²"
    adjusted = AdjustedRegressor
    random_splits = ShuffleSplit
    folds = KFold

    def score(self, predicted: np.ndarray, y: np.ndarray) -> float:
        return float(r2_score(y, predicted))

    def predict(self, model: Any, x: Any, **more: Any) -> np.ndarray:
        return np.asarray(model.predict(x, **more), dtype=np.float64)

    def unit(self, y: np.ndarray) -> float:
        return float(y.std())


class Classification(Task):
    """Two classes, 0 and 1: a prediction is the probability of 1, and the score is AUC."""

    name = "classification"
    score_name = "AUC"
    adjusted = AdjustedClassifier
    random_splits = StratifiedShuffleSplit
    folds = StratifiedKFold

    def score(self, predicted: np.ndarray, y: np.ndarray) -> float:
        return float(roc_auc_score(y, predicted))

    def predict(self, model: Any, x: Any, **more: Any) -> np.ndarray:
        return np.asarray(model.predict_proba(x, **more), dtype=np.float64)[:, 1]

    def unit(self, y: np.ndarray) -> float:
        return 1.0


TASKS: dict[str, Task] = {task.name: task for task in (Regression(), Classification())}
