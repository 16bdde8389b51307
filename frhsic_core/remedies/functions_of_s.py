"""Functions ψ(S) for models that combine them: those of S, or guesses of them from X."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from frhsic_core.remedies.basis import StandardFunctions
from frhsic_core.remedies.features import Features
from frhsic_core.remedies.people import People
from frhsic_core.remedies.project import AttributeGuess


class KnownFunctions:
    """The functions ψ(S) of people whose S is known.

    ``fitted`` are those of the training samples, and ``psi`` the functions along which the mean of a
    model shall be flat.
    """

    def fit(self, people: People) -> KnownFunctions:
        """Fit on training samples."""
        self.functions = StandardFunctions().fit(people.s)
        self.psi = self.functions.transform(people.s)
        self.fitted = self.psi
        return self

    def __call__(self, x: Any, s: pd.DataFrame | None) -> np.ndarray:
        """Return ψ(S) of new samples."""
        assert s is not None
        return self.functions.transform(s)


class GuessedFunctions:
    """Guesses E[ψ(S) | X] of a forest; those of the training samples are out of bag.

    ``psi`` are all functions, also those of which X tells nothing: along these a covariance is
    chance, and to remove it costs little.
    """

    def fit(self, people: People) -> GuessedFunctions:
        """Fit on training samples."""
        self.features = Features(None, sees_s=False)
        numbers = self.features.fit_transform(people)
        self.psi = StandardFunctions().fit(people.s).transform(people.s)
        self.forest = AttributeGuess()
        self.fitted = self.forest.fit(numbers, self.psi)
        return self

    def __call__(self, x: Any, s: pd.DataFrame | None) -> np.ndarray:
        """Return the guesses for new samples; S is not looked at."""
        return self.forest(self.features.transform(x, None))
