"""The learners of a comparison: two of our own, a model of yours, or the last step of a pipeline."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, clone, is_classifier
from sklearn.compose import ColumnTransformer
from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor
from sklearn.linear_model import LogisticRegression, RidgeCV
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import StandardScaler

from frhsic_core._choices import one_of

LEARNERS = ("linear", "boosting")
_BOOSTING: dict[str, Any] = {
    "max_iter": 100,
    "learning_rate": 0.06,
    "max_leaf_nodes": 15,
    "min_samples_leaf": 20,
    "random_state": 0,
}


def learner(name: Any, task: str) -> Any:
    """Return an unfitted learner: a linear model on standardized columns, boosting, or yours."""
    classes = task == "classification"
    if not isinstance(name, str):
        require_predictions(name, classes=classes)
        return clone(name)
    one_of("learner", name, LEARNERS)
    if name == "linear":
        return make_pipeline(StandardScaler(), _linear(classes=classes))
    if classes:
        return HistGradientBoostingClassifier(**_BOOSTING)
    return HistGradientBoostingRegressor(**_BOOSTING)


def _linear(*, classes: bool) -> Any:
    if classes:
        return LogisticRegression(max_iter=2000)
    return RidgeCV(np.logspace(-2, 4, 13))


def require_predictions(model: Any, *, classes: bool) -> None:
    """Raise an error for a model that does not predict probabilities of classes, or numbers."""
    name = type(model).__name__
    if classes and not hasattr(model, "predict_proba"):
        raise TypeError(
            f"{name} has no predict_proba, which two classes need. Wrap it in "
            "CalibratedClassifierCV if it is a classifier. A regressor is for numbers: use "
            "AdjustedRegressor, or task='regression'."
        )
    if is_classifier(model) and not classes:
        raise TypeError(f"{name} is a classifier, but y has numbers to predict: pass a regressor.")


def without_steps(model: Any) -> tuple[Pipeline | None, Any]:
    """Return the steps of a pipeline that chooses columns of a table, and its model.

    Other learners have no steps: None.
    """
    if not _chooses_columns(model):
        return None, model
    if not isinstance(model, Pipeline):
        raise TypeError(
            f"{type(model).__name__} wraps a pipeline that chooses columns: pass the pipeline "
            "instead."
        )
    return clone(model[:-1]), model[-1]


def _chooses_columns(model: Any) -> bool:
    if not isinstance(model, BaseEstimator):
        return False
    parts = model.get_params().values()
    return any(isinstance(part, ColumnTransformer) for part in parts)
