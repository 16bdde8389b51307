"""Adjust the mean of scores along what X tells of S; S is not needed to predict."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pandas as pd
from scipy import sparse
from sklearn.ensemble import RandomForestRegressor

from frhsic_core.inputs.features import columns_of, fit_columns
from frhsic_core.remedies.basis import whitened
from frhsic_core.remedies.mean_adjustment import MeanAdjustment, with_constant

_SIGNIFICANT = 3.0  # standard errors of a correlation
_GRID = 2.0**20  # steps of one deviation to which a forest's target is rounded


class ProjectedAdjustment(MeanAdjustment):
    r"""Make the mean of the scores flat along what the features X tell of S, without S to predict.

    With ĝ(x) = Ê[φ(S) | X = x] in place of φ(s) the adjustment of the mean needs no S. Since

    .. math:: E[f(X)\,\varphi(S)] = E[f(X)\,g(X)],\qquad g(x) = E[\varphi(S) \mid X = x],

    f − gᵀβ with the least-squares β is the smallest change of f, in mean square, among the
    functions of X alone for which the mean of the scores is flat along φ. What X does not tell
    about S stays.
    """

    def _fit_functions(self, frame: pd.DataFrame, x: Any) -> np.ndarray:
        self.guess = AttributeGuess()
        phi = self.basis.fit(frame).transform(frame)
        return with_constant(self.guess.fit(x, phi))

    def _functions(self, frame: Any, x: Any) -> np.ndarray:
        return with_constant(self.guess(x))


class AttributeGuess:
    """Predict φ(S) from X with a random forest, along what X predicts beyond chance.

    The forest's out-of-bag predictions stand for new samples, so one fit is enough. Of the whitened
    functions φ only those stay whose out-of-bag prediction correlates with them by more than three
    standard errors.
    """

    def fit(self, X: Any, phi: np.ndarray) -> np.ndarray:
        """Fit on training samples and return their out-of-bag predictions of φ."""
        self.columns = None if sparse.issparse(X) else fit_columns(X)
        target = whitened(phi)
        # On a grid the sums of a forest are exact, so columns that split the samples alike tie on
        # every processor.
        target = np.round(target * _GRID) / _GRID
        self.forest = RandomForestRegressor(
            100, min_samples_leaf=5, max_features=0.5, oob_score=True, random_state=0
        )
        one_or_more = target if target.shape[1] > 1 else target[:, 0]
        with warnings.catch_warnings(action="ignore", category=UserWarning):
            # A sample that is in the bag of all trees gets the mean.
            self.forest.fit(self._numbers(X), one_or_more)
        guess = np.nan_to_num(self.forest.oob_prediction_.reshape(target.shape))
        self.kept = is_told(guess, target)
        return guess[:, self.kept]

    def __call__(self, X: Any) -> np.ndarray:
        """Return the predictions of φ for new samples."""
        guess = self.forest.predict(self._numbers(X)).reshape(-1, len(self.kept))
        return guess[:, self.kept]

    def _numbers(self, X: Any) -> Any:
        return X if self.columns is None else columns_of(X, self.columns)


def is_told(guess: np.ndarray, target: np.ndarray) -> np.ndarray:
    """Return which standardized targets are guessed better than by chance.

    Predictions of noise by models that have not seen it correlate negatively with it: the test is
    one-sided.
    """
    return _covariance_over_spread(guess, target) > _SIGNIFICANT / np.sqrt(len(target))


def _covariance_over_spread(guess: np.ndarray, target: np.ndarray) -> np.ndarray:
    """Return the correlation of each guess with its standardized target, 0 for a constant guess."""
    spread = guess.std(0)
    covariance = ((guess - guess.mean(0)) * target).mean(0)
    return np.divide(covariance, spread, out=np.zeros_like(spread), where=spread > 0)
