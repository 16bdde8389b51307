"""What a remedy is for a comparison: its name, whether it needs S, and its fits along strengths.

To add a remedy, write a subclass of :class:`Remedy`, or use that of erasers or of adjusted scores,
and put an object of it into the list in :mod:`frhsic_core.remedies.catalog`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pandas as pd

from frhsic_core.remedies.cross_fits import CrossFits, Predictor
from frhsic_core.remedies.features import Features
from frhsic_core.remedies.people import People

Path = Callable[[Any, pd.DataFrame | None], list[np.ndarray]]
"""Like a predictor, with the numbers at every strength of a list."""


class Remedy(ABC):
    """One way to make predictions depend less on S.

    Parameters
    ----------
    key, label : str
        Its name in calls and tables, and its name for readers.
    needs_s : bool
        Whether it needs S of the person that is predicted.
    by_default : bool
        Whether it is compared unless the user names others.
    """

    strengths: tuple[float, ...] = (0.1, 0.25, 0.5, 0.75, 1.0)
    strongest = 1.0
    meaning = "a strength lies between 0 and 1"
    own_learner: str | None = None  # a remedy that is a learner itself gets no other
    is_plain = False
    blends = True  # a weaker one is a blend of predictions with those of the plain model
    is_path = True  # whether its predictions change smoothly with the strength

    def __init__(
        self, key: str, label: str, *, needs_s: bool = False, by_default: bool = True
    ) -> None:
        self.key = key
        self.label = label
        self.needs_s = needs_s
        self.by_default = by_default

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

    def cross_fit(
        self,
        fits: CrossFits,
        learner: str,
        strengths: Sequence[float],
        *,
        plain: np.ndarray | None,
    ) -> list[np.ndarray]:
        """Return predictions of all samples at each strength, by fits that have not seen them.

        ``plain`` are those of the model without a remedy, which a blend needs.
        """
        return blended(plain, fits.scores(self, learner), strengths)

    def cross_fit_full(self, fits: CrossFits, learner: str) -> np.ndarray:
        """Return predictions of all samples at full strength: a fit for each fold."""
        return fits.by_fold(self, learner)


class Blend:
    """Predictions with and without a remedy, in shares of a list."""

    def __init__(
        self, plain: Predictor | None, remedied: Predictor, strengths: Sequence[float]
    ) -> None:
        self.plain = plain
        self.remedied = remedied
        self.strengths = list(strengths)

    def __call__(self, x: Any, s: pd.DataFrame | None) -> list[np.ndarray]:
        without = None
        if self.plain is not None:
            without = self.plain(x, s)
        return blended(without, self.remedied(x, s), self.strengths)


def blended(
    without: np.ndarray | None, full: np.ndarray, strengths: Sequence[float]
) -> list[np.ndarray]:
    """Return predictions with and without a remedy in shares of a list, or those with it alone."""
    if without is None:
        return [full for _ in strengths]
    return [(1.0 - t) * without + t * full for t in strengths]


class FittedModel:
    """A model behind the features that it reads."""

    def __init__(self, features: Features, model: Any, people: People) -> None:
        self.features = features
        self.model = model
        self.task = people.task

    def __call__(self, x: Any, s: pd.DataFrame | None) -> np.ndarray:
        return self.task.predict(self.model, self.features.transform(x, s))
