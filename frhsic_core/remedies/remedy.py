"""What a remedy is for a comparison: its name, whether it needs S, and its fits along strengths.

To add a remedy, write a subclass of :class:`Remedy`, or use one of the two below, and put an object
of it into the list in :mod:`frhsic_core.remedies.catalog`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pandas as pd
from sklearn.base import BaseEstimator, clone
from sklearn.pipeline import Pipeline

from frhsic_core.remedies.features import Features
from frhsic_core.remedies.learners import learner, without_steps
from frhsic_core.remedies.people import People

Predictor = Callable[[Any, pd.DataFrame | None], np.ndarray]
"""A fitted model: a table and attributes (None where a model needs none) to one number a sample."""

Path = Callable[[Any, pd.DataFrame | None], list[np.ndarray]]
"""The same at every strength of a list."""


class Remedy(ABC):
    """One way to make predictions depend less on S.

    Parameters
    ----------
    key, label : str
        Its name in calls and tables, and its name for readers.
    needs_s : bool
        Whether it needs S of the person that is predicted.
    """

    strengths: tuple[float, ...] = (0.5, 1.0)
    strongest = 1.0
    meaning = "a strength lies between 0 and 1"
    own_learner: str | None = None  # a remedy that is a learner itself gets no other
    is_plain = False
    blends = True  # a weaker one is a blend of predictions with those of the plain model

    def __init__(self, key: str, label: str, *, needs_s: bool = False) -> None:
        self.key = key
        self.label = label
        self.needs_s = needs_s

    @abstractmethod
    def fit(self, people: People, name: Any, *, seed: int = 0) -> Predictor:
        """Fit at full strength, with a learner or the name of one."""

    def fit_path(
        self,
        people: People,
        name: Any,
        strengths: Sequence[float],
        *,
        plain: Predictor | None,
        seed: int = 0,
    ) -> Path:
        """Fit once, and blend the predictions with those of a model without a remedy.

        A learner could undo a weaker change of X; a blend (1 − t) · plain + t · remedy it cannot.
        """
        return Blend(plain, self.fit(people, name, seed=seed), strengths)


class Blend:
    """Predictions with and without a remedy, in shares of a list."""

    def __init__(
        self, plain: Predictor | None, remedied: Predictor, strengths: Sequence[float]
    ) -> None:
        self.plain = plain
        self.remedied = remedied
        self.strengths = list(strengths)

    def __call__(self, x: Any, s: pd.DataFrame | None) -> list[np.ndarray]:
        full = self.remedied(x, s)
        if self.plain is None:
            return [full for _ in self.strengths]
        without = self.plain(x, s)
        return [(1.0 - t) * without + t * full for t in self.strengths]


class FittedModel:
    """A model behind the features that it reads."""

    def __init__(self, features: Features, model: Any, people: People) -> None:
        self.features = features
        self.model = model
        self.task = people.task

    def __call__(self, x: Any, s: pd.DataFrame | None) -> np.ndarray:
        return self.task.predict(self.model, self.features.transform(x, s))


class FittedAdjustment(FittedModel):
    """The same of a model whose scores are adjusted, which takes S once more."""

    def __call__(self, x: Any, s: pd.DataFrame | None) -> np.ndarray:
        numbers = self.features.transform(x, s)
        return self.task.predict(self.model, numbers, sensitive_features=s)


class Plain(Remedy):
    """No remedy: the learner alone, with S as a feature where the others of its league have it."""

    strengths = (0.0,)
    is_plain = True
    blends = False

    def fit(self, people: People, name: Any, *, seed: int = 0) -> FittedModel:
        steps, model = without_steps(name)
        features = Features(steps, sees_s=self.needs_s)
        numbers = features.fit_transform(people)
        fitted = learner(model, people.task.name).fit(numbers, people.y)
        return FittedModel(features, fitted, people)


class Erased(Remedy):
    """A learner behind a transformer that removes from X what predicts S."""

    def __init__(self, key: str, label: str, *, eraser: BaseEstimator) -> None:
        super().__init__(key, label)
        self.eraser = eraser

    def fit(self, people: People, name: Any, *, seed: int = 0) -> FittedModel:
        steps, model = without_steps(name)
        features = Features(steps, sees_s=False)
        numbers = features.fit_transform(people)
        behind = learner(model, people.task.name)
        pipeline = Pipeline([("eraser", clone(self.eraser)), ("learner", behind)])
        pipeline.fit(numbers, people.y, eraser__sensitive_features=people.s)
        return FittedModel(features, pipeline, people)


class Adjusted(Remedy):
    """A learner whose scores are adjusted along S, or along what X tells of it."""

    def __init__(self, key: str, label: str, *, method: str, needs_s: bool) -> None:
        super().__init__(key, label, needs_s=needs_s)
        self.method = method

    def fit(self, people: People, name: Any, *, seed: int = 0) -> FittedModel:
        steps, model = without_steps(name)
        features = Features(steps, sees_s=self.needs_s)
        numbers = features.fit_transform(people)
        wrapped = people.task.adjusted(learner(model, people.task.name), method=self.method)
        wrapped.fit(numbers, people.y, sensitive_features=people.s)
        kind = FittedAdjustment if self.needs_s else FittedModel
        return kind(features, wrapped, people)
