"""Functions ψ(S) for models that combine them: those of S, or guesses of them from X."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from frhsic_core.remedies.basis import AttributeBasis, StandardFunctions, standardized, whitened
from frhsic_core.remedies.features import Features
from frhsic_core.remedies.people import People
from frhsic_core.remedies.project import AttributeGuess, is_told


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
    """Guesses E[ψ(S) | X], those of a forest and of a linear model beside each other.

    For the training samples they are out-of-bag and leave-one-out predictions. For a function of X,
    Cov(f, ψₖ) = Cov(f, E[ψₖ | X]), so ``psi`` has only the functions of which X tells something:
    along the others every covariance is chance.
    """

    def fit(self, people: People) -> GuessedFunctions:
        """Fit on training samples."""
        self.features = Features(None, sees_s=False)
        numbers = self.features.fit_transform(people)
        phi = AttributeBasis("spline").fit(people.s).transform(people.s)
        self.forest = AttributeGuess()
        self.linear = LinearGuess()
        fitted = [self.forest.fit(numbers, phi), self.linear.fit(numbers, phi)]
        self.fitted = np.hstack(fitted)
        self.psi = whitened(phi)[:, self.forest.kept | self.linear.kept]
        return self

    def __call__(self, x: Any, s: pd.DataFrame | None) -> np.ndarray:
        """Return the guesses for new samples; S is not looked at."""
        numbers = self.features.transform(x, None)
        return np.hstack([self.forest(numbers), self.linear(numbers)])


class LinearGuess:
    """Predict φ(S) from X by ridge regression, along what X predicts beyond chance."""

    def fit(self, x: np.ndarray, phi: np.ndarray) -> np.ndarray:
        """Fit on training samples, and return their leave-one-out predictions of whitened φ."""
        target = whitened(phi)
        self.mean, self.scale = standardized(x, constant=np.inf)
        z = (x - self.mean) / self.scale
        gram = z.T @ z + np.eye(z.shape[1])
        coefficients = np.linalg.solve(gram, z.T @ target)
        # The share of each sample in its own prediction, with that of the mean.
        own = (z * np.linalg.solve(gram, z.T).T).sum(1) + 1.0 / len(z)
        guess = (z @ coefficients - own[:, None] * target) / (1.0 - own[:, None])
        self.kept = is_told(guess, target)
        self.coefficients = coefficients[:, self.kept]
        return np.asarray(guess[:, self.kept])

    def __call__(self, x: np.ndarray) -> np.ndarray:
        """Return the predictions of φ for new samples."""
        return np.asarray((x - self.mean) / self.scale @ self.coefficients)
