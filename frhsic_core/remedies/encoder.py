"""The trained encoder as a remedy; it needs PyTorch."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from frhsic_core import learning  # its names import PyTorch on first use
from frhsic_core.inputs.fitting import require_resolution
from frhsic_core.remedies.attributes import attribute_matrix
from frhsic_core.remedies.cross_fits import CrossFits, Predictor
from frhsic_core.remedies.features import Features
from frhsic_core.remedies.people import People
from frhsic_core.remedies.remedy import FittedModel, Remedy

LAMS = (0.3, 1.0, 5.0, 20.0)


class TrainedEncoder(Remedy):
    """A network whose representation Z is trained to predict y and to have a small HSIC with S.

    The strength is the λ of the penalty, and each λ is a training of its own. The network is its
    own learner.
    """

    strengths = LAMS
    strongest = np.inf
    meaning = "λ of an encoder is zero or more"
    own_learner = "network"
    blends = False
    is_path = False

    def fit(
        self, people: People, name: Any = "network", *, lam: float = 1.0, seed: int = 0
    ) -> FittedModel:
        features = Features(None, sees_s=False)
        numbers = features.fit_transform(people)
        if people.task.name == "regression":
            kind = learning.FairRegressor
        else:
            kind = learning.FairClassifier
        network = kind(lam, random_state=seed, device="cpu")
        network.fit(numbers, people.y, sensitive_features=attribute_matrix(people.s))
        return FittedModel(features, network, people)

    def fit_path(
        self,
        people: People,
        name: Any,
        strengths: Sequence[float],
        *,
        plain: Predictor | None,
        seed: int = 0,
    ) -> Networks:
        """Train a network for each λ."""
        return Networks([self.fit(people, name, lam=lam, seed=seed) for lam in strengths])

    def cross_fit(
        self,
        fits: CrossFits,
        learner: str,
        strengths: Sequence[float],
        *,
        plain: np.ndarray | None,
    ) -> list[np.ndarray]:
        """Train a network for each λ and fold."""
        return [fits.by_fold(self, learner, lam=lam) for lam in strengths]

    def require_resolution(self, s: pd.DataFrame) -> None:
        """Raise an error for an attribute whose differences a bandwidth would round away."""
        for name in s.select_dtypes("number"):
            require_resolution(
                s[name].to_numpy(), str(name), more=" Or leave 'encoder' out of remedies."
            )


class Networks:
    """One fitted model for each λ."""

    def __init__(self, models: list[FittedModel]) -> None:
        self.models = models

    def __call__(self, x: Any, s: pd.DataFrame | None) -> list[np.ndarray]:
        return [model(x, s) for model in self.models]
