"""Remedies that change X before a learner gets it."""

from __future__ import annotations

from typing import Any

from sklearn.base import BaseEstimator, clone
from sklearn.pipeline import Pipeline

from frhsic_core.remedies.features import Features
from frhsic_core.remedies.learners import learner, without_steps
from frhsic_core.remedies.people import People
from frhsic_core.remedies.remedy import FittedModel, Remedy


class Erased(Remedy):
    """A learner behind a transformer that removes from X what predicts S."""

    def __init__(
        self, key: str, label: str, *, eraser: BaseEstimator, by_default: bool = True
    ) -> None:
        super().__init__(key, label, by_default=by_default)
        self.eraser = eraser

    def fit(self, people: People, name: Any, *, seed: int = 0) -> FittedModel:
        steps, model = without_steps(name)
        features = Features(steps, sees_s=False)
        numbers = features.fit_transform(people)
        behind = learner(model, people.task.name)
        pipeline = Pipeline([("eraser", clone(self.eraser)), ("learner", behind)])
        pipeline.fit(numbers, people.y, eraser__sensitive_features=people.s)
        return FittedModel(features, pipeline, people)
