"""Models without a remedy, the baselines of a comparison."""

from __future__ import annotations

from typing import Any

from frhsic_core.remedies.features import Features
from frhsic_core.remedies.learners import learner, without_steps
from frhsic_core.remedies.people import People
from frhsic_core.remedies.remedy import FittedModel, Remedy


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


# The baseline of remedies that need S to predict is a model that sees S and is not changed.
WITHOUT_S = Plain("none", "no remedy")
WITH_S = Plain("none_with_s", "no remedy, S is a feature", needs_s=True)


def plain_of(remedy: Remedy) -> Plain:
    """Return the model without a remedy that sees what this remedy sees."""
    if remedy.needs_s:
        return WITH_S
    return WITHOUT_S
