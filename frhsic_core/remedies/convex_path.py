"""One convex path: several models and functions of S, combined under a growing penalty."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from frhsic_core.remedies.column_remover import ColumnRemover
from frhsic_core.remedies.combination import Combination
from frhsic_core.remedies.cross_fits import CrossFits, Predictor
from frhsic_core.remedies.erased import Erased
from frhsic_core.remedies.functions_of_s import GuessedFunctions, KnownFunctions
from frhsic_core.remedies.leace import AttributeEraser
from frhsic_core.remedies.learners import LEARNERS
from frhsic_core.remedies.people import People
from frhsic_core.remedies.plain import plain_of
from frhsic_core.remedies.remedy import Path, Remedy

WITHOUT_TWO = Erased("columns", "without two columns", eraser=ColumnRemover(2))
WITHOUT_FOUR = Erased("columns_four", "without four columns", eraser=ColumnRemover(4))
LEACE_SPLINE = Erased("leace_spline", "LEACE on splines of S", eraser=AttributeEraser("spline"))
_STRENGTHS = (0.0, 0.2, 0.4, 0.6, 0.8, 0.9, 1.0)


class ConvexPath(Remedy):
    r"""Combine models and functions of S: least loss for each size of the covariance with S.

    The model is η(x, s) = Σⱼ wⱼ ηⱼ(x) + Σₖ vₖ ψₖ(s) on the scale of the link. The ηⱼ are the
    out-of-fold predictions of a linear model and of boosting, on all columns and without the
    columns that give S away; ψ are functions of S, or guesses E[ψ(S) | X] of a forest if S is not
    needed to predict. One small convex problem
    (:class:`~frhsic_core.remedies.combination.Combination`) gives the weights for all λ.

    **What it does.** For a square loss and all functions of (X, S), or of X, the minimum of
    E(y − f)²/2 + λ‖Cov(f, ψ(S))‖²/2 is

    .. math:: f_\lambda = E[y \mid X] - \sum_k c_k\,E[\psi_k \mid X],\qquad
        c = \lambda\,(I + \lambda G)^{-1}\,\mathrm{Cov}(E[y\mid X], \psi),\qquad
        G = \mathrm{Cov}(E[\psi\mid X])

    (with X and S in place of X if S is a feature, where G = I). So the best predictor under K
    moment conditions is the best predictor, minus K guesses of functions of S: two layers of
    learning problems that every package solves. λ → ∞ gives Cov(f, ψ) = 0.

    **What it cannot see.** ψ spans splines of S. For any other function h of S with variance 1 and
    with the projection Πh on that span,

    .. math:: |\mathrm{Cov}(f, h(S))| \le \|\mathrm{Cov}(f, \psi)\| + \mathrm{sd}(f)\,\|h - \Pi h\|,

    and conditions on means say nothing about the spread of f along S. For probabilities, a flat mean
    of the logit is not a flat mean of the probability either. The distance correlation of a
    comparison sees all of this. Where it stays large and S may be used, adjust the ranks
    of a model instead: on several tables of people this left less at the same score. Where X tells
    nothing of S, there is nothing to remove, and the path is flat.
    """

    strengths = _STRENGTHS
    own_learner = "stack"
    blends = False

    def __init__(self, key: str, label: str, *, needs_s: bool = False) -> None:
        super().__init__(key, label, needs_s=needs_s)
        plain = plain_of(self)
        self.bases: list[tuple[Remedy, str]] = [(plain, name) for name in LEARNERS]
        self.bases += [(WITHOUT_TWO, name) for name in LEARNERS]
        self.bases += [(WITHOUT_FOUR, "linear"), (LEACE_SPLINE, "linear")]

    def fit(self, people: People, name: Any = "stack", *, seed: int = 0) -> Predictor:
        path = self.fit_path(people, name, [1.0], plain=None, seed=seed)
        return lambda x, s: path(x, s)[0]

    def fit_path(
        self,
        people: People,
        name: Any,
        strengths: Sequence[float],
        *,
        plain: Predictor | None,
        seed: int = 0,
    ) -> Path:
        """Fit every model on all samples, and the weights on predictions of folds without them."""
        return self.fit_on_unseen(CrossFits(people, {}, seed=seed), strengths)[0]

    def fit_on_unseen(
        self, fits: CrossFits, strengths: Sequence[float]
    ) -> tuple[FittedPath, np.ndarray]:
        """Return the fitted path, and its predictions of the samples from models without them."""
        people = fits.people
        functions = self._functions().fit(people)
        columns = np.hstack([self._unseen(fits), functions.fitted])
        combined = self._combined(columns, functions.psi, people, strengths)
        models: list[Predictor] = []
        for remedy, learner in self.bases:
            models.append(remedy.fit(people, learner, seed=fits.seed))
        return FittedPath(models, functions, combined, people), combined(columns)

    def cross_fit(
        self,
        fits: CrossFits,
        learner: str,
        strengths: Sequence[float],
        *,
        plain: np.ndarray | None,
    ) -> list[np.ndarray]:
        """Return predictions of all samples, from weights that other folds decided."""
        scores = self._unseen(fits.of_own_learners())
        found = np.empty((len(strengths), len(fits.people)))
        for (train, test), (known, new) in zip(fits.folds, fits.parts, strict=True):
            functions = self._functions().fit(known)
            columns = np.hstack([scores[train], functions.fitted])
            combined = self._combined(columns, functions.psi, known, strengths)
            found[:, test] = combined(np.hstack([scores[test], functions(new.x, new.s)]))
        return list(found)

    def _unseen(self, fits: CrossFits) -> np.ndarray:
        """Return the predictions of all models on the scale of the link."""
        link = fits.people.task.link
        return np.column_stack([link.of(fits.scores(*base)) for base in self.bases])

    def _functions(self) -> KnownFunctions | GuessedFunctions:
        if self.needs_s:
            return KnownFunctions()
        return GuessedFunctions()

    def _combined(
        self, columns: np.ndarray, psi: np.ndarray, people: People, strengths: Sequence[float]
    ) -> Combination:
        link = people.task.link
        losses = [
            np.mean(link.potential(eta) - people.y * eta) for eta in columns.T[: len(self.bases)]
        ]
        best = int(np.argmin(losses))
        return Combination(link).fit(
            columns, people.y, psi, strengths, best=best, models=len(self.bases)
        )


class FittedPath:
    """The fitted models, and their weights at each strength."""

    def __init__(
        self,
        models: list[Predictor],
        functions: KnownFunctions | GuessedFunctions,
        combined: Combination,
        people: People,
    ) -> None:
        self.models = models
        self.functions = functions
        self.combined = combined
        self.link = people.task.link

    def __call__(self, x: Any, s: pd.DataFrame | None) -> list[np.ndarray]:
        scores = np.column_stack([self.link.of(model(x, s)) for model in self.models])
        return list(self.combined(np.hstack([scores, self.functions(x, s)])))
