"""Adjust the mean of scores along S."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
import pandas as pd

from frhsic_core.remedies.basis import AttributeBasis
from frhsic_core.remedies.links import IDENTITY, Link, flat_offset
from frhsic_core.remedies.ranges import ScoreRange


class MeanAdjustment:
    r"""Make the mean of the scores equal at every S, with S of every person.

    .. math:: f - (m(s) - \bar m),\qquad m(s) = E[f \mid S = s],

    estimated by least squares on functions φ(S). For squared error it is the best prediction at
    every level of mean dependence, if f is the conditional mean. On another scale, the link g, it
    is g⁻¹(g(f) + φ(s)ᵀβ), where β makes the mean *score* flat
    (:func:`~frhsic_core.remedies.links.flat_offset`). Nobody overtakes a person with the same S.
    """

    def __init__(self, link: Link = IDENTITY, *, keep_range: bool = True) -> None:
        self.link = link
        self.keep_range = keep_range
        self.basis = AttributeBasis("spline")

    def fit(
        self,
        score: np.ndarray,
        frame: pd.DataFrame,
        x: Any = None,
        weight: np.ndarray | None = None,
        target: np.ndarray | None = None,
    ) -> Self:
        """Fit on scores and attributes.

        Features ``x`` are for an adjustment that predicts without S. The ``target`` of a model says
        whether its scores are positive.
        """
        phi = self._fit_functions(frame, x)
        eta = self.link.of(score)
        self.beta = flat_offset(eta, phi, link=self._flat_on, weight=weight)
        flat = eta + phi @ self.beta
        adjusted = self.link.inverse(self._fit_flat(flat, eta, frame, weight))
        self.range = ScoreRange()
        if self.keep_range and self.link is IDENTITY:
            self.range.fit(score, adjusted, weight, target)
        return self

    def __call__(self, score: np.ndarray, frame: Any, x: Any = None) -> np.ndarray:
        """Return the adjusted scores."""
        flat = self.link.of(score) + self._functions(frame, x) @ self.beta
        adjusted = self.link.inverse(self._of_flat(flat, frame))
        return self.range(adjusted, score)

    @property
    def _flat_on(self) -> Link:
        """The scale on which the mean becomes flat: that of the scores."""
        return self.link

    def _fit_functions(self, frame: pd.DataFrame, x: Any) -> np.ndarray:
        """Fit and return the functions along which the mean becomes flat, a constant first."""
        return with_constant(self.basis.fit(frame).transform(frame))

    def _functions(self, frame: Any, x: Any) -> np.ndarray:
        return with_constant(self.basis.transform(frame))

    def _fit_flat(
        self, flat: np.ndarray, eta: np.ndarray, frame: pd.DataFrame, weight: np.ndarray | None
    ) -> np.ndarray:
        """Fit on flat scores, and return what becomes of them."""
        return flat

    def _of_flat(self, flat: np.ndarray, frame: Any) -> np.ndarray:
        return flat


def with_constant(functions: np.ndarray) -> np.ndarray:
    """Return functions with a constant before them."""
    return np.insert(functions, 0, 1.0, axis=1)
