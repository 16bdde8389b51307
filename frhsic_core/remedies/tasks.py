"""The two kinds of targets, numbers and two classes: what differs between them in a comparison."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

import numpy as np
from sklearn.metrics import r2_score, roc_auc_score
from sklearn.model_selection import KFold, StratifiedKFold

from frhsic_core.remedies.links import IDENTITY, LOGIT, Link
from frhsic_core.remedies.mean_adjustment import MeanAdjustment
from frhsic_core.remedies.models import METHODS, AdjustedClassifier, AdjustedRegressor


class Task(ABC):
    """What is predicted, and how predictions of it are made and scored."""

    name: str
    score_name: str
    adjusted: type[Any]
    folds: type[Any]
    link: Link

    @abstractmethod
    def score(self, predicted: np.ndarray, y: np.ndarray) -> float:
        """Return how good the predictions are, 1 at best."""

    @abstractmethod
    def predict(self, model: Any, x: Any, **more: Any) -> np.ndarray:
        """Return the predictions of a fitted model, one number for each sample."""

    @abstractmethod
    def contributions(self, predicted: np.ndarray, y: np.ndarray) -> np.ndarray:
        """Return a number for each sample whose mean is the score.

        The standard error of the score is that of their mean, and the same holds for differences.
        """

    @abstractmethod
    def adjustment(self, method: str) -> MeanAdjustment:
        """Return an unfitted adjustment of scores of this kind."""

    @abstractmethod
    def unit(self, y: np.ndarray) -> float:
        """Return the unit in which GDP is measured, from the target of the training samples."""


class Regression(Task):
    """Numbers: the score is R², and GDP is in standard deviations of y."""

    name = "regression"
    score_name = "R²"
    adjusted = AdjustedRegressor
    folds = KFold
    link = IDENTITY

    def score(self, predicted: np.ndarray, y: np.ndarray) -> float:
        return float(r2_score(y, predicted))

    def contributions(self, predicted: np.ndarray, y: np.ndarray) -> np.ndarray:
        # The influence of each sample on a ratio of two means, which are both estimated.
        errors = (y - predicted) ** 2 / y.var()
        spread = (y - y.mean()) ** 2 / y.var()
        return np.asarray(1.0 - errors + errors.mean() * (spread - 1.0))

    def adjustment(self, method: str) -> MeanAdjustment:
        return METHODS[method](IDENTITY)

    def predict(self, model: Any, x: Any, **more: Any) -> np.ndarray:
        return np.asarray(model.predict(x, **more), dtype=np.float64)

    def unit(self, y: np.ndarray) -> float:
        return float(y.std())


class Classification(Task):
    """Two classes, 0 and 1: a prediction is the probability of 1, and the score is AUC."""

    name = "classification"
    score_name = "AUC"
    adjusted = AdjustedClassifier
    folds = StratifiedKFold
    link = LOGIT

    def score(self, predicted: np.ndarray, y: np.ndarray) -> float:
        return float(roc_auc_score(y, predicted))

    def contributions(self, predicted: np.ndarray, y: np.ndarray) -> np.ndarray:
        """Of AUC, as DeLong and others (1988): how many of the other class each sample is beyond."""
        positive = y == 1.0
        counts = np.array([(~positive).sum(), positive.sum()])
        beyond = np.empty(len(y))
        beyond[positive] = _share_below(predicted[positive], predicted[~positive])
        beyond[~positive] = 1.0 - _share_below(predicted[~positive], predicted[positive])
        auc = beyond[positive].mean()
        share = counts[positive.astype(int)] / len(y)
        return np.asarray(auc + (beyond - auc) / share)

    def adjustment(self, method: str) -> MeanAdjustment:
        return METHODS[method](LOGIT)

    def predict(self, model: Any, x: Any, **more: Any) -> np.ndarray:
        return np.asarray(model.predict_proba(x, **more), dtype=np.float64)[:, 1]

    def unit(self, y: np.ndarray) -> float:
        return 1.0


def _share_below(values: np.ndarray, others: np.ndarray) -> np.ndarray:
    """Return the share of the others that are below each value; equal ones count half."""
    ordered = np.sort(others)
    below = np.searchsorted(ordered, values, side="left")
    not_above = np.searchsorted(ordered, values, side="right")
    return np.asarray((below + not_above) / (2.0 * len(others)))


TASKS: dict[str, Task] = {task.name: task for task in (Regression(), Classification())}
