"""Predictions of every sample by models that have not seen it; each model is fitted once a fold."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Protocol

import numpy as np
import pandas as pd

from frhsic_core.remedies.learners import LEARNERS
from frhsic_core.remedies.people import People

Predictor = Callable[[Any, pd.DataFrame | None], np.ndarray]
"""A fitted model, from a table and attributes (None where it needs none) to one number a sample."""


class Fittable(Protocol):
    """What is needed of a remedy to predict samples that its models have not seen."""

    key: str

    def fit(self, people: People, name: Any, *, seed: int = 0) -> Predictor:
        """Fit at full strength, with a learner or the name of one."""
        ...

    def cross_fit_full(self, fits: CrossFits, learner: str) -> np.ndarray:
        """Return predictions of all samples at full strength."""
        ...


class CrossFits:
    """The folds of a comparison, and what was predicted for them.

    A remedy that changes scores, or combines them, needs predictions of all samples by models that
    have not seen them. They are kept, so that remedies of the same models share the fits.
    """

    def __init__(
        self, people: People, models: Mapping[str, Any], *, folds: int = 5, seed: int = 0
    ) -> None:
        self.people = people
        self.models = models
        self.seed = seed
        splitter = people.task.folds(folds, shuffle=True, random_state=seed)
        self.folds: list[tuple[np.ndarray, np.ndarray]] = list(splitter.split(people.x, people.y))
        self.parts = [(people.take(train), people.take(test)) for train, test in self.folds]
        self._kept: dict[tuple[str, str], np.ndarray] = {}

    def of_own_learners(self) -> CrossFits:
        """Return the same folds with the library's learners, if a user's model has such a name."""
        if all(isinstance(self.models.get(name, name), str) for name in LEARNERS):
            return self
        return CrossFits(self.people, {}, folds=len(self.folds), seed=self.seed)

    def scores(self, remedy: Fittable, learner: str) -> np.ndarray:
        """Return the predictions of a remedy at full strength for all samples."""
        key = remedy.key, learner
        if key not in self._kept:
            self._kept[key] = remedy.cross_fit_full(self, learner)
        return self._kept[key]

    def by_fold(self, remedy: Fittable, learner: str, **more: Any) -> np.ndarray:
        """Fit a remedy on each fold's training samples, and predict the others."""
        name = self.models.get(learner, learner)
        found = np.empty(len(self.people))
        for (_, test), (known, new) in zip(self.folds, self.parts, strict=True):
            predictor = remedy.fit(known, name, seed=self.seed, **more)
            found[test] = predictor(new.x, new.s)
        return found
