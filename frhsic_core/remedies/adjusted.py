"""Remedies that change the scores of a learner."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from frhsic_core.remedies.cross_fits import CrossFits
from frhsic_core.remedies.features import Features
from frhsic_core.remedies.learners import learner, without_steps
from frhsic_core.remedies.people import People
from frhsic_core.remedies.plain import plain_of
from frhsic_core.remedies.remedy import FittedModel, Remedy


class FittedAdjustment(FittedModel):
    """The same of a model whose scores are adjusted, which takes S once more."""

    def __call__(self, x: Any, s: pd.DataFrame | None) -> np.ndarray:
        numbers = self.features.transform(x, s)
        return self.task.predict(self.model, numbers, sensitive_features=s)


class Adjusted(Remedy):
    """A learner whose scores are adjusted along S, or along what X tells of it."""

    def __init__(
        self, key: str, label: str, *, method: str, needs_s: bool, by_default: bool = True
    ) -> None:
        super().__init__(key, label, needs_s=needs_s, by_default=by_default)
        self.method = method

    def fit(self, people: People, name: Any, *, seed: int = 0) -> FittedModel:
        steps, model = without_steps(name)
        features = Features(steps, sees_s=self.needs_s)
        numbers = features.fit_transform(people)
        wrapped = people.task.adjusted(learner(model, people.task.name), method=self.method)
        wrapped.fit(numbers, people.y, sensitive_features=people.s)
        kind = FittedAdjustment if self.needs_s else FittedModel
        return kind(features, wrapped, people)

    def cross_fit_full(self, fits: CrossFits, learner: str) -> np.ndarray:
        """Adjust the plain model's predictions of all samples, by what other folds decided.

        The plain models are those of the comparison, so only the adjustment is fitted again.
        """
        plain = fits.scores(plain_of(self), learner)
        steps, _ = without_steps(fits.models.get(learner, learner))
        adjusted = np.empty(len(fits.people))
        for (train, test), (known, new) in zip(fits.folds, fits.parts, strict=True):
            features = Features(steps, sees_s=self.needs_s)
            numbers = features.fit_transform(known)
            adjustment = known.task.adjustment(self.method)
            adjustment.fit(plain[train], known.s, numbers, target=known.y)
            adjusted[test] = adjustment(plain[test], new.s, features.transform(new.x, new.s))
        return adjusted
